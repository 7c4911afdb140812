//! An envelope that cannot be read says what is wrong with it.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A header of the envelope is missing.
    Missing(&'static str),
    /// No message goes by that name.
    UnknownMessage(String),
    /// A field of the message is missing.
    NoField(&'static str),
    /// A field does not read as what it should be.
    BadField { field: &'static str, value: String },
    /// The body holds something else than the message says.
    WrongBody { expected: &'static str },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Missing(header) => write!(f, "the header {header} is missing"),
            WireError::UnknownMessage(name) => write!(f, "no message is called {name:?}"),
            WireError::NoField(field) => write!(f, "the message lacks the field {field}"),
            WireError::BadField { field, value } => write!(f, "{value:?} cannot be read as {field}"),
            WireError::WrongBody { expected } => write!(f, "the body should hold {expected}"),
        }
    }
}

impl std::error::Error for WireError {}

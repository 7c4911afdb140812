//! The headers of an envelope have the form `name field=value field=value`.
//!
//! Values are not escaped. They are numbers, epochs, positions, and words without a blank: the configuration checks the name of a
//! cluster and an address before they get here. A reader ignores unknown fields, and of two fields with one name it takes the
//! first.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Write;

use crate::protocol::Term;
use crate::types::{ClaimId, ClusterId, Epoch, NodeId, Position, Span, Vector, number};

/// The maximum number of fields in one header: none of ours has half as many. Further ones are ignored, so a long header costs no
/// more memory than a short one.
const FIELDS_MOST: usize = 24;

pub struct FieldWriter {
    text: String,
}

impl FieldWriter {
    pub fn new(name: &str) -> FieldWriter {
        let mut text = String::with_capacity(160);
        text.push_str(name);
        FieldWriter { text }
    }

    /// The value must have no blank.
    pub fn put(mut self, field: &str, value: impl std::fmt::Display) -> FieldWriter {
        write!(self.text, " {field}={value}").expect("writing to a String cannot fail");
        self
    }

    pub fn term(self, term: Term) -> FieldWriter {
        self.put("term", format_args!("{}/{:x}", term.epoch, term.claim.0))
    }

    pub fn flag(self, field: &str, value: bool) -> FieldWriter {
        self.put(field, if value { "yes" } else { "no" })
    }

    pub fn nodes(self, field: &str, nodes: &BTreeSet<NodeId>) -> FieldWriter {
        let ids: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
        self.put(field, ids.join(","))
    }

    /// In available mode: the vector of a log.
    pub fn vector(self, vector: &Option<Vector>) -> FieldWriter {
        match vector {
            Some(vector) => self.put("vector", vector),
            None => self,
        }
    }

    pub fn done(self) -> String {
        self.text
    }
}

pub struct Fields<'a> {
    pub name: &'a str,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    pub fn parse(text: &'a str) -> Fields<'a> {
        let mut words = text.split(' ');
        let name = words.next().unwrap_or_default();
        let fields = words.filter_map(|word| word.split_once('=')).take(FIELDS_MOST).collect();
        Fields { name, fields }
    }

    pub fn get(&self, field: &'static str) -> Result<&'a str, WireError> {
        self.find(field).ok_or(WireError::NoField(field))
    }

    pub fn find(&self, field: &str) -> Option<&'a str> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, value)| *value)
    }

    /// Rejects a number beyond the bound of all numbers (P50).
    pub fn number<T: TryFrom<u64>>(&self, field: &'static str) -> Result<T, WireError> {
        let value = self.get(field)?;
        number(value).and_then(|number| T::try_from(number).ok()).ok_or_else(|| bad(field, value))
    }

    /// Random numbers and digests use all 64 bits. They are compared and never counted up, so they do not need the bound of P50.
    pub fn hex(&self, field: &'static str) -> Result<u64, WireError> {
        let value = self.get(field)?;
        u64::from_str_radix(value, 16).map_err(|_| bad(field, value))
    }

    /// Returns `NONE` if the field is missing.
    pub fn cluster(&self, field: &'static str) -> Result<ClusterId, WireError> {
        let Some(value) = self.find(field) else {
            return Ok(ClusterId::NONE);
        };
        u128::from_str_radix(value, 16).map(ClusterId).map_err(|_| bad(field, value))
    }

    pub fn flag(&self, field: &'static str) -> Result<bool, WireError> {
        match self.get(field)? {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(bad(field, other)),
        }
    }

    pub fn span(&self, field: &'static str) -> Result<Span, WireError> {
        self.number(field).map(Span)
    }

    pub fn epoch(&self, field: &'static str) -> Result<Epoch, WireError> {
        let value = self.get(field)?;
        value.parse().map_err(|_| bad(field, value))
    }

    pub fn position(&self, field: &'static str) -> Result<Position, WireError> {
        let value = self.get(field)?;
        value.parse().map_err(|_| bad(field, value))
    }

    pub fn term(&self) -> Result<Term, WireError> {
        self.term_in("term")
    }

    pub fn term_in(&self, field: &'static str) -> Result<Term, WireError> {
        let value = self.get(field)?;
        let term = || {
            let (text, claim) = value.split_once('/')?;
            let claim = ClaimId(u64::from_str_radix(claim, 16).ok()?);
            Some(Term { epoch: text.parse().ok()?, claim })
        };
        term().ok_or_else(|| bad(field, value))
    }

    pub fn vector(&self) -> Result<Option<Vector>, WireError> {
        self.find("vector").map(|_| self.vector_in("vector")).transpose()
    }

    pub fn vector_in(&self, field: &'static str) -> Result<Vector, WireError> {
        let value = self.get(field)?;
        value.parse().map_err(|_| bad(field, value))
    }

    pub fn nodes(&self, field: &'static str) -> Result<BTreeSet<NodeId>, WireError> {
        let value = self.get(field)?;
        let ids = value.split(',').filter(|id| !id.is_empty());
        ids.map(|id| id.parse().map(NodeId)).collect::<Result<_, _>>().map_err(|_| bad(field, value))
    }
}

pub fn bad(field: &'static str, value: &str) -> WireError {
    /// Enough of a bad value to recognise it.
    const SHOWN_MOST: usize = 64;
    WireError::BadField { field, value: value.chars().take(SHOWN_MOST).collect() }
}

// An envelope that cannot be read is refused with one of these errors.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A header of the envelope is missing.
    Missing(&'static str),
    /// No message has this name.
    UnknownMessage(String),
    /// A field of the message is missing.
    NoField(&'static str),
    /// A field cannot be parsed.
    BadField { field: &'static str, value: String },
    /// The body does not hold what the message says.
    WrongBody { expected: &'static str },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Missing(header) => write!(f, "the header {header} is missing"),
            WireError::UnknownMessage(name) => write!(f, "unknown message {name:?}"),
            WireError::NoField(field) => write!(f, "the message lacks the field {field}"),
            WireError::BadField { field, value } => write!(f, "{value:?} is not a valid {field}"),
            WireError::WrongBody { expected } => write!(f, "the body must contain {expected}"),
        }
    }
}

impl std::error::Error for WireError {}

//! The rows of a snapshot.

use std::borrow::Cow;

/// The length limit of a line, because a line is held in memory as a whole. No request that the node accepts comes near it. A
/// stream without line ends is refused at this length.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// A key's new value, or its deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// A short word: a lowercase letter, then lowercase letters, digits and underscores; not `end`.
    pub table: &'a str,
    pub key: Cow<'a, str>,
    /// One line of JSON.
    pub value: Option<Cow<'a, str>>,
}

//! What a snapshot is made of.

use std::borrow::Cow;

/// A line is held in memory whole. No request that the node accepts comes near it; a stream without line ends
/// gets no further than this.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

/// A key's new value, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// A short word: a lowercase letter, then these, digits and underscores; not `end`.
    pub table: &'a str,
    pub key: Cow<'a, str>,
    /// One line of JSON.
    pub value: Option<Cow<'a, str>>,
}

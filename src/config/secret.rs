//! A text that is shown to nobody.

use std::fmt;

/// Never shown: its `Debug` hides it, and there is no `Display`. Compare it in constant time only, so there is
/// no `PartialEq` either.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub(super) fn new(text: &str) -> Secret {
        Secret(text.to_string())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// What proves nodes to each other: what this node proves itself with, and while that is being changed, what it believes besides.
#[derive(Clone, Debug)]
pub struct ClusterSecrets {
    pub first: Secret,
    pub other: Option<Secret>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

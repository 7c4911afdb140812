//! A text that is never shown.

use std::fmt;

/// A secret. It is never shown: its `Debug` hides it, and there is no `Display`. It must be compared in constant
/// time, so there is no `PartialEq` either.
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

/// The secrets that nodes use to prove themselves to each other. This node sends the first one, and accepts the other
/// one as well while the secret is being changed.
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

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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

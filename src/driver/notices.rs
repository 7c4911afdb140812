//! What parts of the node besides its loop have to tell an operator: one text each, for as long as it holds.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Shown with the other remarks, in the status and in the log.
#[derive(Debug, Default)]
pub struct Notices(Mutex<BTreeMap<&'static str, String>>);

impl Notices {
    /// What there is to tell of this matter now; none ends it.
    pub fn set(&self, matter: &'static str, text: Option<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match text {
            Some(text) => drop(all.insert(matter, text)),
            None => drop(all.remove(matter)),
        }
    }

    /// Each matter with its text.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(matter, text)| (*matter, text.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matter_has_one_text() {
        let notices = Notices::default();
        notices.set("b", Some("old".into()));
        notices.set("b", Some("new".into()));
        notices.set("a", Some("first".into()));
        assert_eq!(notices.all(), [("a", "first".to_string()), ("b", "new".to_string())]);
        notices.set("b", None);
        notices.set("c", None);
        assert_eq!(notices.all(), [("a", "first".to_string())]);
    }
}

//! The changes that a reader of the feed heard, compared with the writes and with the final state.

use std::collections::{BTreeMap, BTreeSet};

use super::Verdict;

/// A reader's life. It begins again where the feed says that changes are not reported one by one.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Keys and values, as the changes leave them.
    pub mirror: BTreeMap<String, u64>,
    /// Ids of changes since the last beginning.
    pub ids: Vec<String>,
    /// Revisions of documents that were written since the last beginning.
    pub revisions: BTreeSet<String>,
    pub beginnings: u64,
}

/// The mirror must equal the store.
pub fn mirrors(heard: &Heard, store: &BTreeMap<String, u64>) -> Verdict {
    if heard.mirror == *store {
        return Ok(());
    }
    let unlike = |one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>| -> Vec<String> {
        let differs = |(key, value): &(&String, &u64)| other.get(*key) != Some(*value);
        one.iter().filter(differs).map(|(key, value)| format!("{key}={value}")).collect()
    };
    let (mirror, there) = (unlike(&heard.mirror, store), unlike(store, &heard.mirror));
    Err(format!("the mirror has {mirror:?}, the store {there:?}; {} beginnings", heard.beginnings))
}

/// Ids rise, and every acknowledged put was heard of. This is known only for a life with one beginning.
pub fn complete(heard: &Heard, acknowledged: &BTreeSet<String>) -> Verdict {
    let mut last = (0, 0);
    for id in &heard.ids {
        let place = place(id).ok_or_else(|| format!("no place in a log: {id}"))?;
        if place <= last {
            return Err(format!("{id} came after {last:?}"));
        }
        last = place;
    }
    let missed: Vec<&String> = acknowledged.difference(&heard.revisions).collect();
    if heard.beginnings > 1 || missed.is_empty() {
        return Ok(());
    }
    Err(format!("acknowledged, and never told: {missed:?}"))
}

/// `12` or `12.3`, as in safe mode.
pub fn place(id: &str) -> Option<(u64, u64)> {
    let (index, event) = id.split_once('.').unwrap_or((id, "0"));
    Some((index.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(ids: &[&str], revisions: &[&str]) -> Heard {
        Heard {
            mirror: BTreeMap::from([("a".to_string(), 1)]),
            ids: ids.iter().map(ToString::to_string).collect(),
            revisions: set(revisions),
            beginnings: 1,
        }
    }

    fn set(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_mirror_is_the_store() {
        let heard = heard(&[], &[]);
        assert_eq!(mirrors(&heard, &BTreeMap::from([("a".to_string(), 1)])), Ok(()));
        assert!(mirrors(&heard, &BTreeMap::from([("a".to_string(), 2)])).is_err());
        assert!(mirrors(&heard, &BTreeMap::new()).is_err());
    }

    #[test]
    fn missed_repeated_and_disordered_changes_are_found() {
        assert_eq!(
            complete(&heard(&["3", "4.1", "4.2", "11"], &["3", "4", "11"]), &set(&["3", "11"])),
            Ok(())
        );
        assert!(complete(&heard(&["3"], &["3"]), &set(&["3", "4"])).unwrap_err().contains("never told"));
        assert!(complete(&heard(&["3", "3"], &["3"]), &set(&[])).is_err());
        assert!(complete(&heard(&["11", "9"], &[]), &set(&[])).is_err());
        let again = Heard { beginnings: 2, ..heard(&["3"], &["3"]) };
        assert_eq!(complete(&again, &set(&["1"])), Ok(()));
    }
}

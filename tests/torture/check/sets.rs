//! Elements that are created once and never deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::{Outcome, Verdict};

#[derive(Clone, Copy, Debug)]
pub struct Add {
    pub element: u64,
    pub outcome: Outcome,
}

/// Every acknowledged element is there; no element is there that was refused or never added.
pub fn check(adds: &[Add], found: &BTreeSet<u64>) -> Verdict {
    let asked: BTreeMap<u64, Outcome> = adds.iter().map(|add| (add.element, add.outcome)).collect();
    let of = |outcome| asked.iter().filter(move |(_, had)| **had == outcome).map(|(element, _)| *element);
    let lost: Vec<u64> = of(Outcome::Done).filter(|element| !found.contains(element)).collect();
    let refused: Vec<u64> = of(Outcome::Refused).filter(|element| found.contains(element)).collect();
    let never: Vec<u64> = found.iter().filter(|element| !asked.contains_key(element)).copied().collect();
    if lost.is_empty() && refused.is_empty() && never.is_empty() {
        return Ok(());
    }
    Err(format!(
        "acknowledged and lost: {lost:?}; refused and there: {refused:?}; never asked for: {never:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adds() -> Vec<Add> {
        let add = |element, outcome| Add { element, outcome };
        vec![
            add(1, Outcome::Done),
            add(2, Outcome::Refused),
            add(3, Outcome::Unknown),
            add(4, Outcome::Unknown),
        ]
    }

    #[test]
    fn an_unknown_element_may_be_there_or_not() {
        assert_eq!(check(&adds(), &BTreeSet::from([1, 3])), Ok(()));
    }

    #[test]
    fn lost_refused_and_foreign_elements_are_found() {
        assert!(check(&adds(), &BTreeSet::from([3])).unwrap_err().contains("lost: [1]"));
        assert!(check(&adds(), &BTreeSet::from([1, 2])).unwrap_err().contains("refused and there: [2]"));
        assert!(check(&adds(), &BTreeSet::from([1, 9])).unwrap_err().contains("never asked for: [9]"));
    }
}

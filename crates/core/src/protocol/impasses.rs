//! Merges that do not succeed, and the time until they are tried again (P48).

use std::collections::BTreeMap;

use super::messages::Impasse;
use crate::types::{NodeId, Span, Time};

/// Patience doubles at most this many times. The longest attempt and the longest rest are 64 times the first.
const DOUBLINGS: u32 = 6;

/// The failed merges, by the leader of the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Impasses(BTreeMap<NodeId, Tried>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Tried {
    why: Impasse,
    times: u32,
    /// No merge is tried before this time.
    rests_until: Time,
    /// If no merge has been tried by this time, the impasse is over and forgotten.
    known_until: Time,
}

impl Impasses {
    /// Whether a merge with that side may be tried now.
    pub fn may_try(&self, other: NodeId, now: Time) -> bool {
        self.0.get(&other).is_none_or(|tried| now >= tried.rests_until)
    }

    /// The time that a merge may take: it doubles with each try, so that a merge that only needs longer gets enough time in the end.
    pub fn patience(&self, other: NodeId, first: Span) -> Span {
        let times = self.0.get(&other).map_or(0, |tried| tried.times);
        first.times(1 << times.min(DOUBLINGS))
    }

    /// The merge has failed. No merge with that side is tried for as long as this one was allowed to take, so clients are served
    /// for half of the time.
    pub fn failed(&mut self, other: NodeId, why: Impasse, now: Time, first: Span) {
        let patience = self.patience(other, first);
        let times = self.0.get(&other).map_or(0, |tried| tried.times).saturating_add(1);
        let rests_until = now + patience;
        // The next attempt may take twice the patience: if it fails, too, its failure must still find this
        // count.
        let known_until = rests_until + patience.times(4);
        self.0.insert(other, Tried { why, times, rests_until, known_until });
    }

    pub fn forget_old(&mut self, now: Time) {
        self.0.retain(|_, tried| now < tried.known_until);
    }

    pub fn over(&mut self, other: NodeId) {
        self.0.remove(&other);
    }

    pub fn all_over(&mut self) {
        self.0.clear();
    }

    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Impasse)> {
        self.0.iter().map(|(other, tried)| (*other, &tried.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_doubles_and_so_does_the_rest() {
        let (mut impasses, other, first) = (Impasses::default(), NodeId(2), Span::millis(10));
        let mut now = Time(0);
        for doubling in 0..10 {
            assert!(impasses.may_try(other, now));
            let patience = impasses.patience(other, first);
            assert_eq!(patience, first.times(1 << doubling.min(DOUBLINGS)));
            impasses.failed(other, Impasse::NothingComes, now, first);
            assert!(!impasses.may_try(other, now) && impasses.may_try(NodeId(3), now));
            now = now + patience;
        }
        impasses.over(other);
        assert_eq!(impasses.patience(other, first), first);
    }

    #[test]
    fn what_is_not_tried_again_is_forgotten() {
        let (mut impasses, other, first) = (Impasses::default(), NodeId(2), Span::millis(10));
        impasses.failed(other, Impasse::NothingComes, Time(0), first);
        impasses.forget_old(Time(0) + first.times(4));
        assert_eq!(impasses.iter().count(), 1);
        impasses.forget_old(Time(0) + first.times(5));
        assert_eq!(impasses.iter().count(), 0);
    }
}

//! Merges that do not come off, and how long they are left alone (P48).

use std::collections::BTreeMap;

use super::messages::Impasse;
use crate::types::{NodeId, Span, Time};

/// Patience doubles so often, and no more.
const DOUBLINGS: u32 = 6;

/// By the leader of the other side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Impasses(BTreeMap<NodeId, Tried>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Tried {
    why: Impasse,
    times: u32,
    /// Nothing is tried before.
    rests_until: Time,
    /// If nothing has been tried by then, that is over: it comes to nothing no more.
    known_until: Time,
}

impl Impasses {
    /// Whether a merge with that side may be tried now.
    pub fn may_try(&self, other: NodeId, now: Time) -> bool {
        self.0.get(&other).is_none_or(|tried| now >= tried.rests_until)
    }

    /// How long a try may take: twice as long each time, so that what only needs longer has it in the end.
    pub fn patience(&self, other: NodeId, first: Span) -> Span {
        let times = self.0.get(&other).map_or(0, |tried| tried.times);
        first.times(1 << times.min(DOUBLINGS))
    }

    /// Nothing has come of it. It rests for as long as it might have taken: half of the time clients are served.
    pub fn failed(&mut self, other: NodeId, why: Impasse, now: Time, first: Span) {
        let patience = self.patience(other, first);
        let times = self.0.get(&other).map_or(0, |tried| tried.times).saturating_add(1);
        let rests_until = now + patience;
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

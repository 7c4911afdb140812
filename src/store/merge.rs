//! Two histories become one (P34).
//!
//! Of each key the two states say a set of things: the current value or its deletion, and its rivals. What survives is what
//! both say, and what one says while the other has not known it: what it had known it has written over. The best of the
//! survivors is current, by an order that depends on them alone; the others are its rivals. That makes the outcome the
//! same whatever the order in which sides meet, and however often (an observed-remove set with version vectors).
//!
//! Every survivor that is not current and says something else goes to the journal, so that nothing vanishes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::calls::Age;
use super::conflict::Conflict;
use super::difference::Difference;
use super::held::{Held, in_order_of_merit};
use super::key::{Key, lost_id};
use super::parse::Unreadable;
use super::sides::Sides;
use super::state::Store;
use crate::types::{Position, Stamp, Vector, WallTime};

/// What a merge came to.
#[derive(Clone, Debug)]
pub struct Merged {
    pub store: Store,
    /// Each entry that is not as it was, for the next snapshot.
    pub changes: Vec<Key>,
    /// How many values were overridden that nobody had seen together before.
    pub conflicts: usize,
}

/// A value that is not current, and the one that is.
pub(super) struct Lost {
    pub key: Key,
    pub lost: Held,
    pub kept: Held,
}

impl Store {
    /// This state, which includes `own`, and what another has beyond it that includes `vector`. The merge stands at `at`.
    pub fn merged(
        &self,
        own: &Vector,
        theirs: &Difference,
        vector: &Vector,
        at: Position,
        stamp: Stamp,
    ) -> Result<Merged, Unreadable> {
        let (Some(sides), Some(other)) = (&self.sides, &theirs.part.sides) else {
            return Err(Unreadable::NoSides);
        };
        let mut store = Store { applied: at, stamp, staged: None, ..self.clone() };
        let strays = sides.strays_below(other.bounds.settled, vector)
            || other.strays_below(sides.bounds.settled, own)
            || sides.bounds.strays
            || other.bounds.strays;
        if strays {
            store.settle_nothing_below(other);
        }
        let (mut changes, mut lost) = (vec![Key::Side], Vec::new());
        for key in self.keys_to_merge(theirs) {
            let (ours, yours) = (self.said(&key), theirs.part.said(&key));
            if let Some(stray) = yours.iter().find(|held| !vector.covers(held.at)) {
                return Err(Unreadable::Entry {
                    table: key.table(),
                    key: lost_id(&key, stray.at).to_string(),
                });
            }
            let mut said = survivors(&key, &ours, own, &yours, vector);
            if key.lease().is_some() {
                said.truncate(1);
                self.keep_own_lease(&ours, &mut said, at);
            }
            if !are_the_same(&said, &ours) {
                store.say(&key, &said, &mut changes);
            }
            note_lost(&key, &said, &mut lost);
        }
        store.merge_calls(own, &theirs.part, &mut changes);
        store.merge_tokens(&theirs.part, &mut changes);
        let conflicts = store.write_journal(lost, at, stamp.wall, &mut changes);
        store.settle_as(other, &mut changes);
        Ok(Merged { store, changes, conflicts })
    }

    /// The elder side's holder stays (P42): of what the other side did with the lease it has heard nothing. The merge says so anew,
    /// for all to hear.
    fn keep_own_lease(&self, ours: &[Held], said: &mut Vec<Held>, at: Position) {
        let Some(own) = ours.first().filter(|own| own.value.is_some()) else { return };
        if said.first() != Some(own) {
            *said = vec![Held { at, ..own.clone() }];
        }
    }

    fn merge_tokens(&mut self, theirs: &Store, changes: &mut Vec<Key>) {
        if theirs.last_token > self.last_token {
            self.last_token = theirs.last_token;
            changes.push(Key::Token);
        }
    }

    fn keys_to_merge(&self, theirs: &Difference) -> BTreeSet<Key> {
        let own = theirs.whole.then(|| self.keys());
        own.into_iter().flatten().chain(theirs.part.keys()).collect()
    }

    /// A call of both sides is answered as the later record did: that one is remembered longer.
    fn merge_calls(&mut self, own: &Vector, theirs: &Store, changes: &mut Vec<Key>) {
        for (key, call) in theirs.calls.table().iter().filter(|(_, call)| !own.covers(call.at)) {
            self.take_call(*key, call, changes);
        }
        if let Some(bounds) = theirs.sides.as_ref().map(|sides| sides.bounds) {
            self.forget_calls_upto(bounds.calls, changes);
        }
    }

    pub(super) fn forget_calls_upto(&mut self, upto: Age, changes: &mut Vec<Key>) {
        let upto = self.sides.as_ref().map_or(upto, |sides| sides.bounds.calls.max(upto));
        for (age, key) in self.calls.forget_upto(upto) {
            changes.push(Key::Call(key));
            if let Some(sides) = self.sides_mut() {
                sides.forget(&Key::Call(key), Some(age.1));
            }
        }
    }

    /// Entries for what is in the journal of neither side, nor was dropped from one.
    pub(super) fn write_journal(
        &mut self,
        lost: Vec<Lost>,
        at: Position,
        wall: WallTime,
        changes: &mut Vec<Key>,
    ) -> usize {
        let mut count = 0;
        for Lost { key, lost, kept } in lost {
            let id = Key::Conflict(lost_id(&key, lost.at));
            if self.current(&id).is_none() {
                let entry = Conflict { at, lost, kept, wall };
                self.write(&id, at, &entry.value().into(), changes);
                count += 1;
            }
        }
        count
    }

    /// One of the two sides has not known what the other had settled.
    fn settle_nothing_below(&mut self, other: &Arc<Sides>) {
        if let Some(sides) = self.sides_mut() {
            sides.bounds.strays = true;
            sides.bounds.settled = sides.bounds.settled.max(other.bounds.settled);
        }
        self.index_anew();
    }

    /// What is settled for one of the sides was known to both.
    fn settle_as(&mut self, other: &Arc<Sides>, changes: &mut Vec<Key>) {
        if let Some(sides) = self.sides_mut() {
            sides.bounds.join(other.bounds);
            if !sides.bounds.strays {
                sides.settle(other.bounds.settled, changes);
            }
            sides.bound_tombs(changes);
        }
    }
}

/// The winner first.
fn survivors(key: &Key, ours: &[Held], own: &Vector, yours: &[Held], vector: &Vector) -> Vec<Held> {
    let says = |said: &[Held], at: Position| said.iter().any(|held| held.at == at);
    let mine = ours.iter().filter(|held| says(yours, held.at) || !vector.covers(held.at));
    let theirs = yours.iter().filter(|held| !says(ours, held.at) && !own.covers(held.at));
    let mut said: Vec<Held> = mine.chain(theirs).cloned().collect();
    in_order_of_merit(key, &mut said);
    said
}

/// A position says what was written there.
fn are_the_same(one: &[Held], other: &[Held]) -> bool {
    let first = |said: &[Held]| said.first().map(|held| held.at);
    let all = |said: &[Held]| said.iter().map(|held| held.at).collect::<BTreeSet<_>>();
    first(one) == first(other) && all(one) == all(other)
}

fn note_lost(key: &Key, said: &[Held], lost: &mut Vec<Lost>) {
    let Some((kept, rivals)) = said.split_first().filter(|_| !matches!(key, Key::Conflict(_))) else {
        return;
    };
    let different = rivals.iter().filter(|rival| rival.value != kept.value);
    lost.extend(different.map(|rival| Lost { key: key.clone(), lost: rival.clone(), kept: kept.clone() }));
}

//! Merges two histories into one (P34).
//!
//! For each key, each of the two states has a set of versions: the current one, and its rivals. A version survives if both
//! states have it, or if one state has it and the other never knew it. A version that the other state knew and no longer has
//! was overwritten there. The best of the survivors becomes current, by an order that depends on the survivors alone; the
//! others become its rivals. So the result is the same no matter in which order sides meet, and how often (an observed-remove
//! set with version vectors).
//!
//! Every survivor that is not current and has a different value goes to the journal, so that no value is lost.
//!
//! An operator may also add a whole document to a state, as in the original design (`unite`). The common past of the two is
//! unknown, so existing values stay, missing values are added, and differing values go to the journal.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::transfer::Difference;
use crate::store::command::Unreadable;
use crate::store::encoding::RIVALS_MOST;
use crate::store::state::Store;
use crate::store::tables::{Age, Bounds, Conflict, Key, MergeMetadata, Version, lost_id, sort_by_precedence};
use crate::types::{Position, Stamp, Text, Vector, WallTime};

/// The result of a merge.
#[derive(Clone, Debug)]
pub struct Merged {
    pub store: Store,
    /// Each entry that has changed, for the next snapshot.
    pub changes: Vec<Key>,
    /// The number of entries that this merge added to the journal.
    pub conflicts: usize,
    /// Documents whose lease did not survive the merge.
    pub ended: Vec<Text>,
}

/// Two states with equal prints give the same results in the same merges. A print covers the entries, and how far back the
/// merge metadata go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    digest: u64,
    bounds: Option<Bounds>,
}

/// A value that is not current, and the value that is.
pub struct Lost {
    pub key: Key,
    pub lost: Version,
    pub kept: Version,
}

impl Store {
    pub fn print(&self) -> Print {
        Print { digest: self.digest(), bounds: self.merging.as_ref().map(|merging| merging.bounds) }
    }

    /// The same entries as the state of another record.
    pub fn standing_at(self, at: Position, stamp: Stamp) -> Store {
        Store { applied: at, stamp, ..self }
    }

    /// Merges this state, which includes `own`, with the entries of another state, which includes `vector`. The merge stands at
    /// `at`.
    pub fn merged(
        &self,
        own: &Vector,
        theirs: &Difference,
        vector: &Vector,
        at: Position,
        stamp: Stamp,
    ) -> Result<Merged, Unreadable> {
        let (Some(merging), Some(other)) = (&self.merging, &theirs.part.merging) else {
            return Err(Unreadable::NotMergeable);
        };
        // Staged parts end with the epoch, which the merge ends, too (P46).
        let mut store = Store { applied: at, stamp, staged: None, ..self.clone() };
        let strays = merging.strays_below(other.bounds.settled, vector)
            || other.strays_below(merging.bounds.settled, own)
            || merging.bounds.strays
            || other.bounds.strays;
        // A side that began alone has entries below what the other has settled. To count them as known would lose them
        // (P35, P36).
        if strays {
            store.settle_nothing_below(other);
        }
        let (mut changes, mut lost) = (vec![Key::Side], Vec::new());
        for key in self.keys_to_merge(theirs) {
            let (ours, yours) = (self.versions(&key), theirs.part.versions(&key));
            // A state must not have a version that its own vector does not include: every comparison rests on that. So this
            // one is refused.
            if let Some(stray) = yours.iter().find(|version| !vector.covers(version.at)) {
                return Err(Unreadable::Entry {
                    table: key.table(),
                    key: lost_id(&key, stray.at).to_string(),
                });
            }
            let mut versions = survivors(&key, &ours, own, &yours, vector);
            if key.lease().is_some() {
                decide_lease(&ours, &mut versions, at);
            }
            decide_end(&ours, &mut versions, at);
            if let Key::Access(_) = key {
                // The choice of the current version depends on the versions alone (P56), so no rival is kept.
                versions.truncate(1);
            }
            // Keys that do not differ are not written, so the next snapshot has only what has changed.
            if !are_the_same(&versions, &ours) {
                store.set_versions(&key, &versions, &mut changes);
            }
            note_lost(&key, &versions, &mut lost);
        }
        store.merge_calls(own, &theirs.part, &mut changes);
        store.merge_tokens(&theirs.part, &mut changes);
        let conflicts = store.write_journal(lost, at, stamp.wall, &mut changes);
        // After the leases are decided: a document whose holder lost the merge ends here (P54, mutant `LooseDocsStay`).
        let ended = store.end_loose(at, &mut changes);
        store.settle_as(other, &mut changes);
        Ok(Merged { store, changes, conflicts, ended })
    }

    fn merge_tokens(&mut self, theirs: &Store, changes: &mut Vec<Key>) {
        if theirs.last_token > self.last_token {
            self.last_token = theirs.last_token;
            changes.push(Key::Token);
        }
    }

    /// A part has every key that may differ. A whole state says that a key does not exist by not having it, so the keys
    /// of this state are looked at as well.
    fn keys_to_merge(&self, theirs: &Difference) -> BTreeSet<Key> {
        let own = theirs.whole.then(|| self.keys());
        own.into_iter().flatten().chain(theirs.part.keys()).collect()
    }

    /// A call that both sides remember keeps the answer of the later record, because that one is remembered longer.
    fn merge_calls(&mut self, own: &Vector, theirs: &Store, changes: &mut Vec<Key>) {
        // A call that `own` covers and that is not here was forgotten here. It stays forgotten.
        for (key, call) in theirs.idempotency_keys.table().iter().filter(|(_, call)| !own.covers(call.at)) {
            self.take_call(*key, call, changes);
        }
        if let Some(bounds) = theirs.merging.as_ref().map(|merging| merging.bounds) {
            self.forget_calls_upto(bounds.calls, changes);
        }
    }

    pub(in crate::store) fn forget_calls_upto(&mut self, upto: Age, changes: &mut Vec<Key>) {
        let upto = self.merging.as_ref().map_or(upto, |merging| merging.bounds.calls.max(upto));
        for (age, key) in self.idempotency_keys.forget_upto(upto) {
            changes.push(Key::Call(key));
            if let Some(merging) = self.merging_mut() {
                merging.forget(&Key::Call(key), Some(age.1));
            }
        }
    }

    /// Writes journal entries for conflicts that are in the journal of neither side, and that neither side has dropped.
    pub(in crate::store) fn write_journal(
        &mut self,
        lost: Vec<Lost>,
        at: Position,
        wall: WallTime,
        changes: &mut Vec<Key>,
    ) -> usize {
        let mut count = 0;
        for Lost { key, lost, kept } in lost {
            let id = Key::Conflict(lost_id(&key, lost.at));
            // A tombstone of the entry counts, too: an operator has dropped or applied it already.
            if self.current(&id).is_none() {
                let entry = Conflict { at, lost, kept, wall };
                self.write(&id, &Version::row(at, entry.value().into()), changes);
                count += 1;
            }
        }
        count
    }

    pub(in crate::store) fn unite(
        &mut self,
        with: &Store,
        at: Position,
        stamp: Stamp,
        changes: &mut Vec<Key>,
    ) {
        let mut lost = Vec::new();
        for key in with.keys() {
            let Some(theirs) = with.row(&key) else { continue };
            match (self.row(&key), &theirs.value) {
                (None, Some(_)) => self.write(&key, &Version { at, ..theirs }, changes),
                (Some(ours), value) if ours.value != *value => {
                    lost.push(Lost { key, lost: theirs, kept: ours })
                }
                _ => {}
            }
        }
        self.write_journal(lost, at, stamp.wall, changes);
    }

    /// One of the two sides has not seen entries that the other side had settled.
    fn settle_nothing_below(&mut self, other: &Arc<MergeMetadata>) {
        if let Some(merging) = self.merging_mut() {
            merging.bounds.strays = true;
            merging.bounds.settled = merging.bounds.settled.max(other.bounds.settled);
        }
        self.rebuild_index();
    }

    /// Entries that are settled for one of the sides were known to both.
    fn settle_as(&mut self, other: &Arc<MergeMetadata>, changes: &mut Vec<Key>) {
        if let Some(merging) = self.merging_mut() {
            merging.bounds.join(other.bounds);
            if !merging.bounds.strays {
                merging.settle(other.bounds.settled, changes);
            }
            merging.bound_tombstones(changes);
            merging.bound_rivals(RIVALS_MOST, changes);
        }
    }
}

/// The surviving versions, the winner first.
fn survivors(key: &Key, ours: &[Version], own: &Vector, yours: &[Version], vector: &Vector) -> Vec<Version> {
    let says = |versions: &[Version], at: Position| versions.iter().any(|version| version.at == at);
    let mine = ours.iter().filter(|version| says(yours, version.at) || !vector.covers(version.at));
    let theirs = yours.iter().filter(|version| !says(ours, version.at) && !own.covers(version.at));
    let mut versions: Vec<Version> = mine.chain(theirs).cloned().collect();
    sort_by_precedence(key, &mut versions);
    versions
}

/// The holder of the elder side stays (P42), because the elder side has not seen what the other side did with the lease. No
/// rival is kept, so the lease is rewritten at the position of the merge: otherwise the positions would not show that this
/// state chose it over a version that its vector covers.
fn decide_lease(ours: &[Version], versions: &mut Vec<Version>, at: Position) {
    let contested = versions.len() > 1;
    let own = ours.first().filter(|own| own.value.is_some());
    let stays = own.or(versions.first()).cloned();
    if contested || own.is_some_and(|own| versions.first() != Some(own)) {
        *versions = stays.map(|version| Version { at, ..version }).into_iter().collect();
    }
    versions.truncate(1);
}

/// An expiry does not reach beyond its side (P54), because it did not know of renewals here. The document that stands here
/// stays, and is rewritten at the position of the merge, like a lease.
fn decide_end(ours: &[Version], versions: &mut Vec<Version>, at: Position) {
    let all_ended = versions.first().is_some_and(|best| best.ended);
    if let Some(own) = ours.first().filter(|own| all_ended && own.value.is_some()) {
        *versions = vec![Version { at, ..own.clone() }];
    }
}

/// A position identifies the value that was written there.
fn are_the_same(one: &[Version], other: &[Version]) -> bool {
    let first = |versions: &[Version]| versions.first().map(|version| version.at);
    let all = |versions: &[Version]| versions.iter().map(|version| version.at).collect::<BTreeSet<_>>();
    first(one) == first(other) && all(one) == all(other)
}

fn note_lost(key: &Key, versions: &[Version], lost: &mut Vec<Lost>) {
    let Some((kept, rivals)) = versions.split_first().filter(|_| key.is_journaled()) else {
        return;
    };
    // An expiry is not data.
    let says = |version: &Version| (version.value.clone(), version.lifetime.clone());
    let different = rivals.iter().filter(|rival| !rival.ended && says(rival) != says(kept));
    lost.extend(different.map(|rival| Lost { key: key.clone(), lost: rival.clone(), kept: kept.clone() }));
}

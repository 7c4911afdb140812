//! The preconditions and effects of each operation on data. They are two functions: the leader calls the first before it writes
//! a record, and every node calls both when it applies the record.

use std::sync::Arc;

use crate::store::command::{DocCondition, Operation, Reason, Rule, Thing};
use crate::store::state::Store;
use crate::store::tables::{CastVote, Doc, Election, Key, KeyChange, User, ballot};
use crate::types::{Position, Text, WallTime};

impl Store {
    pub(in crate::store) fn check_data(&self, operation: &Operation, wall: WallTime) -> Result<(), Reason> {
        match operation {
            Operation::CreateUser(user) => refuse_if(self.users.get(&user.name).is_some(), || {
                Reason::Exists { thing: Thing::User, name: user.name.clone() }
            }),
            Operation::RemoveUser { name } => refuse_if(self.users.get(name).is_none(), || {
                Reason::NotFound { thing: Thing::User, name: name.clone() }
            }),
            Operation::CreateElection(new) => refuse_if(self.elections.get(&new.name).is_some(), || {
                Reason::Exists { thing: Thing::Election, name: new.name.clone() }
            }),
            Operation::VoteElection { election, voter, choice } => {
                self.check_vote(election, voter, choice, wall)
            }
            Operation::PutDoc { key, condition, holder, ending, .. } => {
                self.check_holder(holder.as_ref())?;
                self.check_condition(key, condition)?;
                self.check_ending(key, ending)
            }
            Operation::DeleteDoc { key, condition, holder } => {
                // This check comes before the condition: a request that would fail without its condition must not fail because
                // of it (RFC 9110, 13.2.1).
                refuse_if(self.docs.get(key).is_none(), || Reason::NotFound {
                    thing: Thing::Document,
                    name: key.clone(),
                })?;
                self.check_holder(holder.as_ref())?;
                self.check_condition(key, condition)
            }
            Operation::Lease(_) | Operation::Token(_) => Ok(()),
            Operation::ApplyConflict { .. } | Operation::DropConflict { .. } => Ok(()),
        }
    }

    /// The end of the election is judged by the stamp of the record, so every node judges alike, no matter what its clock
    /// shows.
    fn check_vote(&self, election: &Text, voter: &str, choice: &str, wall: WallTime) -> Result<(), Reason> {
        let (Some(found), Some(tally)) = (self.elections.get(election), self.votes.tally(election)) else {
            return Err(Reason::NotFound { thing: Thing::Election, name: election.clone() });
        };
        let Some(user) = self.users.get(voter) else {
            return Err(Reason::RuleViolated(Rule::UnknownVoter));
        };
        let admitted = match (&found.new.groups, &user.new.group) {
            (None, _) => true,
            (Some(groups), Some(group)) => groups.contains(group),
            (Some(_), None) => false,
        };
        let over = |ends: i64| i64::try_from(wall.0).unwrap_or(i64::MAX) >= ends;
        let broken = match () {
            () if tally.count(choice).is_none() => Rule::UnknownChoice,
            () if !admitted => Rule::GroupNotAdmitted,
            () if self.votes.has_voted(election, voter) => Rule::AlreadyVoted,
            () if found.new.ends.is_some_and(over) => Rule::ElectionOver,
            () => return Ok(()),
        };
        Err(Reason::RuleViolated(broken))
    }

    pub(in crate::store) fn check_condition(
        &self,
        key: &Text,
        condition: &DocCondition,
    ) -> Result<(), Reason> {
        if *condition == DocCondition::None {
            return Ok(());
        }
        let current = self.docs.get(key).map(|doc| self.rev(doc.at));
        let holds = match condition {
            DocCondition::None => true,
            DocCondition::Rev(rev) => current.as_deref() == Some(rev),
            DocCondition::Present => current.is_some(),
            DocCondition::Absent => current.is_none(),
        };
        refuse_if(!holds, || Reason::PreconditionFailed { key: key.clone(), current })
    }

    /// The caller must have called `check_data` first. Returns whether the operation created a document.
    pub(in crate::store) fn carry_out(
        &mut self,
        operation: &Operation,
        at: Position,
        changes: &mut Vec<Key>,
    ) -> bool {
        let (changed, before) = match operation {
            Operation::CreateUser(new) => {
                let before = self.users.insert(new.name.clone(), User { at, new: new.clone() });
                (Key::User(new.name.clone()), before.map(|user| user.at))
            }
            Operation::RemoveUser { name } => {
                (Key::User(name.clone()), self.users.remove(name).map(|user| user.at))
            }
            Operation::CreateElection(new) => {
                let before = self.elections.insert(new.name.clone(), Election { at, new: new.clone() });
                self.votes.open(new);
                (Key::Election(new.name.clone()), before.map(|election| election.at))
            }
            Operation::VoteElection { election, voter, choice } => {
                let name = ballot(election, voter);
                let before = self.votes.put(election, name.clone(), CastVote::new(at, choice.clone()));
                (Key::Vote(name), before.map(|vote| vote.at))
            }
            Operation::PutDoc { key, value, ending, .. } => {
                let lifetime = self.lifetime_of(ending).map(Arc::new);
                let before = self.docs.insert(key.clone(), Doc { at, value: value.clone(), lifetime });
                (Key::Doc(key.clone()), before.map(|doc| doc.at))
            }
            Operation::DeleteDoc { key, .. } => {
                (Key::Doc(key.clone()), self.docs.remove(key).map(|doc| doc.at))
            }
            Operation::Lease(_) | Operation::Token(_) => return false,
            Operation::ApplyConflict { .. } | Operation::DropConflict { .. } => {
                return false;
            }
        };
        changes.push(changed.clone());
        if let Some(merging) = self.merging_mut() {
            let gone = matches!(operation, Operation::RemoveUser { .. } | Operation::DeleteDoc { .. });
            // The tombstone is of a deletion that a client requested, not of an expiry or an end with a lease (P54).
            let now = if gone { KeyChange::deleted(at) } else { KeyChange::Row(at) };
            merging.wrote(&changed, before, now, changes);
        }
        matches!(operation, Operation::PutDoc { .. }) && before.is_none()
    }
}

fn refuse_if(broken: bool, reason: impl FnOnce() -> Reason) -> Result<(), Reason> {
    if broken { Err(reason()) } else { Ok(()) }
}

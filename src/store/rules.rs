//! What each operation demands of the state, and what it does to it. Two functions for each: the leader asks the first
//! before it writes a record, every node asks it again when it applies one.

use super::command::{Condition, Operation};
use super::key::{Key, ballot};
use super::leasing::Making;
use super::rejection::{Reason, Rule, Thing};
use super::rows::{Doc, Election, User, Vote};
use super::sides::Written;
use super::state::Store;
use crate::types::{Position, Text, WallTime};

impl Store {
    pub(super) fn check(&self, operation: &Operation, wall: WallTime) -> Result<(), Reason> {
        match operation {
            Operation::Lease(operation) => self.check_lease(operation),
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
            Operation::PutDoc { key, condition, .. } => self.check_condition(key, condition),
            Operation::DeleteDoc { key, condition } => {
                // Before its condition: what would fail without one does not fail because of it (RFC 9110, 13.2.1).
                refuse_if(self.docs.get(key).is_none(), || Reason::NotFound {
                    thing: Thing::Document,
                    name: key.clone(),
                })?;
                self.check_condition(key, condition)
            }
            Operation::ApplyConflict { id } | Operation::DropConflict { id } => {
                let there = self.sides.as_ref().is_some_and(|sides| sides.conflicts.get(id).is_some());
                refuse_if(!there, || Reason::NotFound { thing: Thing::Conflict, name: id.clone() })
            }
        }
    }

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

    fn check_condition(&self, key: &Text, condition: &Condition) -> Result<(), Reason> {
        if *condition == Condition::None {
            return Ok(());
        }
        let current = self.docs.get(key).map(|doc| self.rev(doc.at));
        let holds = match condition {
            Condition::None => true,
            Condition::Rev(rev) => current.as_deref() == Some(rev),
            Condition::Present => current.is_some(),
            Condition::Absent => current.is_none(),
        };
        refuse_if(!holds, || Reason::PreconditionFailed { key: key.clone(), current })
    }

    /// Only after `check`. Whether a document is there now where none was.
    pub(super) fn carry_out(&mut self, operation: &Operation, making: &mut Making) -> bool {
        let at = making.at;
        let (changed, before) = match operation {
            Operation::Lease(operation) => {
                self.carry_out_lease(operation, making);
                return false;
            }
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
                let before = self.votes.put(election, name.clone(), Vote::new(at, choice.clone()));
                (Key::Vote(name), before.map(|vote| vote.at))
            }
            Operation::PutDoc { key, value, .. } => {
                let before = self.docs.insert(key.clone(), Doc { at, value: value.clone() });
                (Key::Doc(key.clone()), before.map(|doc| doc.at))
            }
            Operation::DeleteDoc { key, .. } => {
                (Key::Doc(key.clone()), self.docs.remove(key).map(|doc| doc.at))
            }
            Operation::ApplyConflict { id } => {
                self.apply_conflict(id, at, making.changes);
                return false;
            }
            Operation::DropConflict { id } => {
                self.erase(&Key::Conflict(id.clone()), Some(at), making.changes);
                return false;
            }
        };
        making.changes.push(changed.clone());
        if let Some(sides) = self.sides_mut() {
            let gone = matches!(operation, Operation::RemoveUser { .. } | Operation::DeleteDoc { .. });
            let now = if gone { Written::Gone(at) } else { Written::Row(at) };
            sides.wrote(&changed, before, now, making.changes);
        }
        matches!(operation, Operation::PutDoc { .. }) && before.is_none()
    }

    /// What lost is written again, or deleted again.
    fn apply_conflict(&mut self, id: &Text, at: Position, changes: &mut Vec<Key>) {
        let Some(entry) = self.conflict(id) else { return };
        match &entry.conflict.lost.value {
            Some(value) => self.write(&entry.key, at, value, changes),
            None => self.erase(&entry.key, Some(at), changes),
        }
        self.erase(&Key::Conflict(id.clone()), Some(at), changes);
    }
}

fn refuse_if(broken: bool, reason: impl FnOnce() -> Reason) -> Result<(), Reason> {
    if broken { Err(reason()) } else { Ok(()) }
}

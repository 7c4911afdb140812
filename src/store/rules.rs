//! What each operation demands of the state, and what it does to it. Two functions for each: the leader asks the first
//! before it writes a record, every node asks it again when it applies one.

use super::command::{Condition, Operation};
use super::key::Key;
use super::rejection::{Reason, Rule, Thing};
use super::rows::{Doc, Election, User, Vote};
use super::state::Store;
use crate::types::{Position, Text, WallTime};

/// What an operation that passed its rules came to.
#[derive(Debug)]
pub struct Done {
    pub changed: Key,
    /// A document is there now where none was.
    pub created: bool,
}

impl Store {
    pub(super) fn check(&self, operation: &Operation, wall: WallTime) -> Result<(), Reason> {
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
            Operation::PutDoc { key, condition, .. } => self.check_condition(key, condition),
            Operation::DeleteDoc { key, condition } => {
                // Before its condition: what would fail without one does not fail because of it (RFC 9110, 13.2.1).
                refuse_if(self.docs.get(key).is_none(), || Reason::NotFound {
                    thing: Thing::Document,
                    name: key.clone(),
                })?;
                self.check_condition(key, condition)
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
        let current = self.docs.get(key).map(Doc::rev);
        let holds = match condition {
            Condition::None => true,
            Condition::Rev(rev) => current.as_deref() == Some(rev),
            Condition::Present => current.is_some(),
            Condition::Absent => current.is_none(),
        };
        refuse_if(!holds, || Reason::PreconditionFailed { key: key.clone(), current })
    }

    /// Only after `check`.
    pub(super) fn carry_out(&mut self, operation: &Operation, at: Position) -> Done {
        let mut created = false;
        let changed = match operation {
            Operation::CreateUser(new) => {
                self.users.insert(new.name.clone(), User { at, new: new.clone() });
                Key::User(new.name.clone())
            }
            Operation::RemoveUser { name } => {
                self.users.remove(name);
                Key::User(name.clone())
            }
            Operation::CreateElection(new) => {
                self.elections.insert(new.name.clone(), Election { at, new: new.clone() });
                self.votes.open(new);
                Key::Election(new.name.clone())
            }
            Operation::VoteElection { election, voter, choice } => {
                let cast = self.votes.cast(election, voter, Vote::new(at, choice.clone()));
                Key::Vote(cast.expect("checked: there is such a choice, and no such vote"))
            }
            Operation::PutDoc { key, value, .. } => {
                created = self.docs.insert(key.clone(), Doc { at, value: value.clone() }).is_none();
                Key::Doc(key.clone())
            }
            Operation::DeleteDoc { key, .. } => {
                self.docs.remove(key);
                Key::Doc(key.clone())
            }
        };
        Done { changed, created }
    }
}

fn refuse_if(broken: bool, reason: impl FnOnce() -> Reason) -> Result<(), Reason> {
    if broken { Err(reason()) } else { Ok(()) }
}

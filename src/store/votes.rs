//! The votes of all elections, and what they add up to.
//!
//! A vote stays when its voter is removed: it was cast by somebody who was entitled to it, and a user of the same name
//! created later has voted already.

use imbl::OrdMap;

use super::command::NewElection;
use super::key::{ballot, ballots_of};
use super::rows::Vote;
use super::table::Table;
use crate::types::{Position, Text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    table: Table<Text, Vote>,
    /// By election. Follows from the table and the elections, and so is in no digest and no snapshot.
    tallies: OrdMap<Text, Tally>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// By choice, those without a vote too.
    counts: OrdMap<Text, u64>,
    pub votes: u64,
}

impl Tally {
    /// None for what is no choice of this election.
    pub fn count(&self, choice: &str) -> Option<u64> {
        self.counts.get(choice).copied()
    }
}

impl Votes {
    pub fn table(&self) -> &Table<Text, Vote> {
        &self.table
    }

    /// Starts the count of a new election.
    pub fn open(&mut self, election: &NewElection) {
        let counts = election.choices.iter().map(|choice| (choice.clone(), 0_u64)).collect();
        self.tallies.insert(election.name.clone(), Tally { counts, votes: 0 });
    }

    pub fn tally(&self, election: &str) -> Option<&Tally> {
        self.tallies.get(election)
    }

    pub fn has_voted(&self, election: &str, voter: &str) -> bool {
        self.table.get(&ballot(election, voter)).is_some()
    }

    /// The name of the vote's entry; none if there is no such election or choice, or that voter has voted.
    pub fn cast(&mut self, election: &str, voter: &str, vote: Vote) -> Option<Text> {
        let name = ballot(election, voter);
        if self.table.get(&name).is_some() {
            return None;
        }
        let tally = self.tallies.get_mut(election)?;
        *tally.counts.get_mut(&*vote.choice)? += 1;
        tally.votes += 1;
        self.table.insert(name.clone(), vote);
        Some(name)
    }

    /// The names and the votes of an election, in the order of the voters.
    pub fn of(&self, election: &str) -> Vec<(&Text, &Vote)> {
        let prefix = ballots_of(election);
        self.table.starting_with(&prefix).collect()
    }
}

impl Vote {
    pub fn new(at: Position, choice: Text) -> Vote {
        Vote { at, choice }
    }
}

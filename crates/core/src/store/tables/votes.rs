//! The votes of all elections, and what they add up to.
//!
//! A vote stays when its voter is removed: it was cast by somebody who was entitled to it, and a user of the same name
//! created later has voted already.
//!
//! In a mergeable state a vote may be there whose election is not, or has no such choice: another election of that name
//! has won in a merge. Such a vote is kept and not counted, and its voter may vote again.

use imbl::OrdMap;

use super::data::CastVote;
use super::key::{ballot, ballots_of};
use super::table::Table;
use crate::store::command::NewElection;
use crate::types::{Position, Text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    table: Table<Text, CastVote>,
    /// By election. Follows from the table and the elections, and so is in no digest and no snapshot.
    tallies: OrdMap<Text, VoteCounts>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VoteCounts {
    /// By choice, those without a vote too.
    counts: OrdMap<Text, u64>,
    pub votes: u64,
}

impl VoteCounts {
    /// None for what is no choice of this election.
    pub fn count(&self, choice: &str) -> Option<u64> {
        self.counts.get(choice).copied()
    }

    fn count_in(&mut self, choice: &str) {
        if let Some(count) = self.counts.get_mut(choice) {
            *count += 1;
            self.votes += 1;
        }
    }

    fn count_out(&mut self, choice: &str) {
        if let Some(count) = self.counts.get_mut(choice) {
            *count -= 1;
            self.votes -= 1;
        }
    }
}

impl Votes {
    pub fn table(&self) -> &Table<Text, CastVote> {
        &self.table
    }

    pub fn table_mut(&mut self) -> &mut Table<Text, CastVote> {
        &mut self.table
    }

    /// Starts the count of a new election, and counts what is there.
    pub fn open(&mut self, election: &NewElection) {
        let counts = election.choices.iter().map(|choice| (choice.clone(), 0_u64)).collect();
        let mut tally = VoteCounts { counts, votes: 0 };
        for (_, vote) in self.table.starting_with(&ballots_of(&election.name)) {
            tally.count_in(&vote.choice);
        }
        self.tallies.insert(election.name.clone(), tally);
    }

    /// Its votes stay, uncounted.
    pub fn close(&mut self, election: &str) {
        self.tallies.remove(election);
    }

    pub fn tally(&self, election: &str) -> Option<&VoteCounts> {
        self.tallies.get(election)
    }

    pub fn has_voted(&self, election: &str, voter: &str) -> bool {
        self.is_cast(election, &ballot(election, voter))
    }

    fn is_cast(&self, election: &str, name: &str) -> bool {
        self.table.get(name).is_some_and(|vote| self.counts(election, &vote.choice))
    }

    fn counts(&self, election: &str, choice: &str) -> bool {
        self.tallies.get(election).is_some_and(|tally| tally.count(choice).is_some())
    }

    /// The name of the vote's entry; none if there is no such election or choice, or that voter has voted.
    pub fn cast(&mut self, election: &str, voter: &str, vote: CastVote) -> Option<Text> {
        let name = ballot(election, voter);
        if self.is_cast(election, &name) || !self.counts(election, &vote.choice) {
            return None;
        }
        self.put(election, name.clone(), vote);
        Some(name)
    }

    /// Puts a vote in the place of whatever the voter has said before, counted if there is such a choice.
    pub fn put(&mut self, election: &str, name: Text, vote: CastVote) -> Option<CastVote> {
        if let Some(tally) = self.tallies.get_mut(election) {
            tally.count_in(&vote.choice);
        }
        let before = self.table.insert(name, vote);
        self.count_out(election, before.as_ref());
        before
    }

    pub fn remove(&mut self, election: &str, name: &str) -> Option<CastVote> {
        let before = self.table.remove(name);
        self.count_out(election, before.as_ref());
        before
    }

    fn count_out(&mut self, election: &str, vote: Option<&CastVote>) {
        if let (Some(vote), Some(tally)) = (vote, self.tallies.get_mut(election)) {
            tally.count_out(&vote.choice);
        }
    }

    /// The names and the votes of an election that count, in the order of the voters.
    pub fn of(&self, election: &str) -> Vec<(&Text, &CastVote)> {
        let votes = self.table.starting_with(&ballots_of(election)).collect::<Vec<_>>();
        votes.into_iter().filter(|(_, vote)| self.counts(election, &vote.choice)).collect()
    }
}

impl CastVote {
    pub fn new(at: Position, choice: Text) -> CastVote {
        CastVote { at, choice }
    }
}

//! The votes of all elections, and their sums.
//!
//! A vote stays when its voter is removed: the voter was entitled to vote when it was cast. A user of the same name that is
//! created later has already voted.
//!
//! In a mergeable state a vote may exist whose election does not exist or does not have its choice: another election of that
//! name has won a merge. Such a vote is kept but not counted, and its voter may vote again.

use imbl::OrdMap;

use super::data::CastVote;
use super::key::{ballot, ballots_of};
use super::table::Table;
use crate::store::command::NewElection;
use crate::types::{Position, Text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    table: Table<Text, CastVote>,
    /// The counts by election. They are derived from the table and the elections, so they are in no digest and no snapshot.
    tallies: OrdMap<Text, VoteCounts>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VoteCounts {
    /// The votes by choice, including choices without votes.
    counts: OrdMap<Text, u64>,
    pub votes: u64,
}

impl VoteCounts {
    /// Returns `None` for a text that is not a choice of this election.
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

    /// Starts the count of a new election, and counts the votes that already exist.
    pub fn open(&mut self, election: &NewElection) {
        let counts = election.choices.iter().map(|choice| (choice.clone(), 0_u64)).collect();
        let mut tally = VoteCounts { counts, votes: 0 };
        for (_, vote) in self.table.starting_with(&ballots_of(&election.name)) {
            tally.count_in(&vote.choice);
        }
        self.tallies.insert(election.name.clone(), tally);
    }

    /// Stops the count of an election. Its votes stay, uncounted.
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

    /// Casts a vote, and returns the name of its entry. Returns `None` if there is no such election or choice, or if the voter
    /// has already voted.
    pub fn cast(&mut self, election: &str, voter: &str, vote: CastVote) -> Option<Text> {
        let name = ballot(election, voter);
        // A vote that is not counted does not stand in the way: its election was replaced in a merge.
        if self.is_cast(election, &name) || !self.counts(election, &vote.choice) {
            return None;
        }
        self.put(election, name.clone(), vote);
        Some(name)
    }

    /// Replaces the voter's earlier vote, and counts the new one if the election has its choice.
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

    /// The names and the counted votes of an election, in the order of the voters.
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

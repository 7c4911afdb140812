//! Leaders one after another, each with its own clock, and the log that they share: the committed state, and the records that
//! the present leader has proposed. A leader that is replaced learns it late. Its undecided records survive it up to some
//! point.

use std::collections::{BTreeMap, VecDeque};

use super::super::super::{Due, Leases};
use crate::types::{Lease, LeaseName, Span, Time};

pub type LeaderId = usize;

#[derive(Clone, Debug)]
pub enum Record {
    /// `over`: the token that the grant replaces, if it may replace one.
    Grant {
        name: LeaseName,
        lease: Lease,
        over: Option<u64>,
        sent: Time,
    },
    /// The holder changes its own description, and keeps its token.
    Again {
        name: LeaseName,
        token: u64,
        sent: Time,
    },
    Release {
        name: LeaseName,
        token: u64,
    },
    Due(Due),
}

#[derive(Debug)]
pub struct Leader {
    pub leases: Leases,
    /// Its records are committed and its rounds answered. A leader that was replaced does not know it yet.
    pub in_charge: bool,
    pub resigned: bool,
    /// The reading of its clock when the game began.
    clock: Span,
    /// The deadline for which the leader is to be woken.
    pub wake: Time,
    pub undecided: VecDeque<(u64, Record)>,
    /// The number of records that were refused one after another.
    pub refusals: u64,
}

impl Leader {
    pub fn pop_up_to(&mut self, number: u64) -> Option<Record> {
        self.undecided.front().filter(|(first, _)| *first <= number)?;
        self.undecided.pop_front().map(|(_, record)| record)
    }

    pub fn clock(&self, now: Time) -> Time {
        now + self.clock
    }

    /// The game's time at which the leader's clock shows `time`.
    pub fn game_time(&self, time: Time) -> Time {
        time - self.clock
    }
}

#[derive(Debug, Default)]
pub struct Cluster {
    /// All leaders; the newest is last.
    pub leaders: Vec<Leader>,
    pub state: BTreeMap<LeaseName, Lease>,
    /// Records that a leader left in the log for the next leader.
    pub survivors: Vec<Record>,
}

impl Cluster {
    /// The newest leader that has not resigned. It may have been deposed already.
    pub fn newest(&self) -> Option<LeaderId> {
        self.believing().next_back()
    }

    /// An older leader that has not resigned, either.
    pub fn outdated(&self) -> Option<LeaderId> {
        self.believing().next().filter(|id| Some(*id) != self.newest())
    }

    pub fn in_charge(&self) -> Option<LeaderId> {
        self.newest().filter(|id| self.leaders[*id].in_charge)
    }

    fn believing(&self) -> impl DoubleEndedIterator<Item = LeaderId> {
        (0..self.leaders.len()).filter(|id| !self.leaders[*id].resigned)
    }

    pub fn begin_term(&mut self, now: Time, clock: Span) -> LeaderId {
        let mut leader = Leader {
            leases: Leases::default(),
            in_charge: true,
            resigned: false,
            clock,
            wake: Time::NEVER,
            undecided: VecDeque::new(),
            refusals: 0,
        };
        leader.leases.lead(leader.clock(now), self.state.clone().into_iter());
        self.leaders.push(leader);
        self.leaders.len() - 1
    }

    pub fn replace_state(&mut self, now: Time, id: LeaderId) {
        let state = self.state.clone();
        let leader = &mut self.leaders[id];
        leader.leases.lead(leader.clock(now), state.into_iter());
    }

    /// The first `surviving` of the leader's undecided records go on without it.
    pub fn depose(&mut self, id: LeaderId, surviving: usize) {
        let leader = &mut self.leaders[id];
        leader.in_charge = false;
        let surviving = surviving.min(leader.undecided.len());
        self.survivors = leader.undecided.drain(..surviving).map(|(_, record)| record).collect();
        leader.undecided.clear();
    }

    /// Commits a record as the store does: a record that names a token does nothing to another one. Returns the changes.
    pub fn commit(&mut self, record: &Record) -> Vec<(LeaseName, Option<Lease>)> {
        match record {
            Record::Grant { name, lease, over, .. } => {
                let held = self.state.get(name).map(|held| held.token);
                let granted = held == *over;
                self.put(granted.then(|| (name.clone(), Some(*lease))))
            }
            Record::Again { name, token, .. } => {
                self.put(self.change(name, *token, |held| Some(Lease { aged: false, ..held })))
            }
            Record::Release { name, token } => self.put(self.change(name, *token, |_| None)),
            Record::Due(due) => {
                let end = due.end.iter().filter_map(|(name, token)| self.change(name, *token, |_| None));
                let age = |aged: bool| move |held: Lease| Some(Lease { aged, ..held });
                let aged = due.age.iter().filter_map(|(name, token)| self.change(name, *token, age(true)));
                let refresh =
                    due.refresh.iter().filter_map(|(name, token)| self.change(name, *token, age(false)));
                let changes: Vec<_> = end.chain(aged).chain(refresh).collect();
                self.put(changes)
            }
        }
    }

    fn change(
        &self,
        name: &LeaseName,
        token: u64,
        to: impl Fn(Lease) -> Option<Lease>,
    ) -> Option<(LeaseName, Option<Lease>)> {
        let held = self.state.get(name).filter(|held| held.token == token)?;
        Some((name.clone(), to(*held)))
    }

    fn put(
        &mut self,
        changes: impl IntoIterator<Item = (LeaseName, Option<Lease>)>,
    ) -> Vec<(LeaseName, Option<Lease>)> {
        let changes: Vec<_> = changes.into_iter().collect();
        for (name, lease) in &changes {
            match lease {
                Some(lease) => self.state.insert(name.clone(), *lease),
                None => self.state.remove(name),
            };
        }
        changes
    }
}

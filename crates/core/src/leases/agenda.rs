//! What is due, and when: an ordered set for each thing that a record can do to a lease.

use std::collections::BTreeSet;

use super::counted::{Act, CountedLease};
use crate::types::{LeaseName, Time};

/// What one record is to say, each lease with its token: ends, or ages and refreshes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub end: Vec<(LeaseName, u64)>,
    /// Not renewed for half their ttl.
    pub age: Vec<(LeaseName, u64)>,
    /// Renewed since they were aged.
    pub refresh: Vec<(LeaseName, u64)>,
}

impl Due {
    pub fn is_empty(&self) -> bool {
        self.end.is_empty() && self.age.is_empty() && self.refresh.is_empty()
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = &(LeaseName, u64)> {
        self.end.iter().chain(&self.age).chain(&self.refresh)
    }
}

/// Ties go by name: they come in the order in which the state hands its leases out, and take no sorting.
type Schedule = BTreeSet<(Time, LeaseName)>;

#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    ends: Schedule,
    ages: Schedule,
    refreshes: Schedule,
}

impl Agenda {
    /// Of many leases at once, which costs less than one by one.
    pub fn of<'a>(leases: impl Iterator<Item = (&'a LeaseName, &'a CountedLease)> + Clone) -> Agenda {
        let schedule = |act| {
            leases.clone().filter_map(move |(name, counted)| Some((due(name, counted, act)?, name.clone())))
        };
        Agenda {
            ends: schedule(Act::End).collect(),
            ages: schedule(Act::Age).collect(),
            refreshes: schedule(Act::Refresh).collect(),
        }
    }

    pub fn add(&mut self, name: &LeaseName, counted: &CountedLease) {
        for act in [Act::End, Act::Age, Act::Refresh] {
            if let Some(time) = due(name, counted, act) {
                self.schedule(act).insert((time, name.clone()));
            }
        }
    }

    pub fn remove(&mut self, name: &LeaseName, counted: &CountedLease) {
        for act in [Act::End, Act::Age, Act::Refresh] {
            if let Some(time) = due(name, counted, act) {
                self.schedule(act).remove(&(time, name.clone()));
            }
        }
    }

    /// The first that are due, up to `limit`.
    pub fn due(&self, act: Act, now: Time, limit: usize) -> Vec<LeaseName> {
        let schedule = match act {
            Act::End => &self.ends,
            Act::Age => &self.ages,
            Act::Refresh => &self.refreshes,
        };
        let due = schedule.iter().take_while(|(time, _)| *time <= now);
        due.take(limit).map(|(_, name)| name.clone()).collect()
    }

    /// When the next thing is due.
    pub fn deadline(&self) -> Option<Time> {
        let firsts = [self.ends.first(), self.ages.first(), self.refreshes.first()];
        firsts.into_iter().flatten().map(|(time, _)| *time).min()
    }

    fn schedule(&mut self, act: Act) -> &mut Schedule {
        match act {
            Act::End => &mut self.ends,
            Act::Age => &mut self.ages,
            Act::Refresh => &mut self.refreshes,
        }
    }
}

fn due(name: &LeaseName, counted: &CountedLease, act: Act) -> Option<Time> {
    let never = act == Act::Age && !name.ages();
    counted.due(act).filter(|_| !never)
}

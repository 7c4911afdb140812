//! The agenda has an ordered set of due times for each change that a record can make to a lease.
//!
//! A lease has at most one entry in each set, at the time that `CountedLease::due` gave when the entry was added.
//! `Leases` removes the entries before it changes a lease and adds them again afterwards. An entry that stayed behind
//! would end a renewed lease early (I13), because a lease that the agenda names is proposed without another look at its
//! time.

use std::collections::BTreeSet;

use super::counted::{Act, CountedLease};
use crate::types::{LeaseName, Time};

/// The content of one record, each lease with its token: ends, or ages and refreshes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub end: Vec<(LeaseName, u64)>,
    /// These leases were not renewed for half their ttl.
    pub age: Vec<(LeaseName, u64)>,
    /// These leases were renewed since they were aged.
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

/// Leases that are due at the same time are ordered by name. A new leader adds its leases by name, so those with the same due
/// time need no sorting.
type Schedule = BTreeSet<(Time, LeaseName)>;

#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    ends: Schedule,
    ages: Schedule,
    refreshes: Schedule,
}

impl Agenda {
    /// The agenda of many leases at once, which costs less than adding one by one.
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

    /// The first leases that are due, up to `limit`.
    pub fn due(&self, act: Act, now: Time, limit: usize) -> Vec<LeaseName> {
        let schedule = match act {
            Act::End => &self.ends,
            Act::Age => &self.ages,
            Act::Refresh => &self.refreshes,
        };
        let due = schedule.iter().take_while(|(time, _)| *time <= now);
        due.take(limit).map(|(_, name)| name.clone()).collect()
    }

    /// The time when the next lease is due.
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

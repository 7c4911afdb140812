//! Who holds the service down, and until when (P22).

use std::collections::BTreeMap;

use crate::types::{Entry, Owner, Record, Span};

/// Each owner's hold, with the cluster time at which it lapses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holds {
    until: BTreeMap<Owner, Span>,
}

impl Holds {
    pub fn any(&self) -> bool {
        !self.until.is_empty()
    }

    pub fn held_by(&self, owner: Owner) -> bool {
        self.until.contains_key(&owner)
    }

    /// The cluster time at which that owner's hold lapses.
    pub fn until(&self, owner: Owner) -> Option<Span> {
        self.until.get(&owner).copied()
    }

    pub fn hold(&mut self, owner: Owner, until: Span) {
        self.until.insert(owner, until);
    }

    /// An owner whose hold has lapsed. Lifting it is a record too, so that all nodes agree when.
    pub fn lapsed(&self, cluster_now: Span) -> Option<Owner> {
        let mut holds = self.until.iter();
        holds.find(|(_, until)| **until <= cluster_now).map(|(owner, _)| *owner)
    }

    /// Every hold with the cluster time at which it lapses.
    pub fn iter(&self) -> impl Iterator<Item = (Owner, Span)> + '_ {
        self.until.iter().map(|(owner, until)| (*owner, *until))
    }

    /// Takes in a record; says whether it changed a hold.
    pub fn absorb(&mut self, record: &Record) -> bool {
        match &record.entry {
            Entry::ServiceDown { owner, ttl, .. } => {
                self.until.insert(*owner, record.stamp.cluster + *ttl);
                true
            }
            Entry::ServiceUp { owner } => self.until.remove(owner).is_some(),
            _ => false,
        }
    }
}

impl FromIterator<(Owner, Span)> for Holds {
    fn from_iter<I: IntoIterator<Item = (Owner, Span)>>(holds: I) -> Holds {
        Holds { until: holds.into_iter().collect() }
    }
}

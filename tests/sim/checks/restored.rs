//! A restore is all or nothing. Until its last step no part of it can be seen. Then the data is its document,
//! and roles and processes are what they were; so is the last token, except that no token up to the floor is
//! given any more (P57). A restore that is acknowledged is in place, and it takes place once.

use std::collections::{BTreeMap, BTreeSet};

use eldest::store::{Applied, Key, Store};
use eldest::types::{Entry, Index, LeaseName, NodeId, Record, Text};

use super::{Check, ensure};
use crate::commands::END_OF_RESTORE;
use crate::restores::number_of;

const NAME: &str = "I5 a restore is all or nothing";
const TOKENS: &str = "I6 a restore and tokens";

/// Clients' data, regardless of its revisions.
pub type Content = BTreeMap<Key, Text>;

/// Documents that are to end with a lease, under this token (P54).
type Bonds = Vec<(Key, LeaseName, u64)>;

#[derive(Debug, Default)]
pub struct Restored {
    wanted: BTreeMap<u64, (Content, Bonds)>,
    /// The index at which each restore has replaced everything.
    at: BTreeMap<u64, Index>,
    refused: BTreeSet<u64>,
    /// The token floor that an operator gave with each restore.
    floors: BTreeMap<u64, u64>,
}

/// The token that the last step of a restore names.
fn token_of(step: &str) -> Option<u64> {
    let number = step.split_once("\"token\":")?.1;
    number[..number.find([',', '}'])?].parse().ok()
}

pub fn content(store: &Store) -> Content {
    let keys = store.entries().map(|(key, _)| key).filter(Key::is_data);
    keys.filter_map(|key| store.value(&key).map(|value| (key, value))).collect()
}

fn bonds(store: &Store) -> Bonds {
    let docs = store.entries().map(|(key, _)| key).filter(|key| matches!(key, Key::Doc(_)));
    let bond = |key: Key| {
        let bond = store.doc(&key.name())?.lifetime.as_ref()?.with.clone()?;
        Some((key, bond.lease, bond.token))
    };
    docs.filter_map(bond).collect()
}

/// The content without the documents that are to end with a lease that is over.
fn that_stands((content, bonds): &(Content, Bonds), state: &Store) -> Content {
    let mut content = content.clone();
    for (key, lease, token) in bonds {
        if state.lease(lease).is_none_or(|lease| lease.token != *token) {
            content.remove(key);
        }
    }
    content
}

impl Restored {
    pub fn asked(&mut self, number: u64, document: &Store) {
        self.wanted.insert(number, (content(document), bonds(document)));
    }

    pub fn under(&mut self, number: u64, floor: u64) {
        self.floors.insert(number, floor);
    }

    /// A node has applied a record that is a step of a restore.
    pub fn step(
        &mut self,
        node: NodeId,
        record: &Record,
        before: &Store,
        after: &Store,
        applied: &Applied,
    ) -> Check {
        let Entry::Client(payload) = &record.entry else { return Ok(()) };
        if !applied.restored {
            return ensure(before.digest() == after.digest(), NAME, || {
                format!("{node}: {record} changes something")
            });
        }
        let number = number_of(&payload.text).filter(|_| payload.kind == END_OF_RESTORE).unwrap_or_default();
        let (found, wanted) =
            (content(after), self.wanted.get(&number).map(|wanted| that_stands(wanted, before)));
        ensure(Some(&found) == wanted.as_ref(), NAME, || {
            format!("{node}: {record} leaves {found:?}, not {wanted:?}")
        })?;
        ensure(!self.refused.contains(&number), NAME, || format!("{node}: {record} was refused"))?;
        let at = *self.at.entry(number).or_insert(record.index());
        ensure(at == record.index(), NAME, || format!("{node}: {record} does again what was done at {at}"))?;
        let leases = |store: &Store| store.leases().filter(|(name, _)| name.ages()).collect::<Vec<_>>();
        ensure(leases(before) == leases(after), NAME, || format!("{node}: {record} changes a lease"))?;
        let raised = before.last_token().max(token_of(&payload.text).unwrap_or_default());
        ensure(after.last_token() == raised, TOKENS, || {
            format!("{node}: {record} leaves {} of {}", after.last_token(), before.last_token())
        })?;
        let begins = payload.text.contains("\"history\":");
        ensure((before.history() != after.history()) == begins, "P60 a history begins", || {
            format!("{node}: {record} goes on with {} after {}", after.history(), before.history())
        })?;
        // Stamps never go back, and no token is less than the stamp of its record (P30).
        let least = after.last_token().max(record.stamp.wall.0);
        let floor = self.floors.get(&number).copied().unwrap_or_default();
        ensure(floor <= least, TOKENS, || {
            format!("{node}: {record} may be followed by a token below {floor}")
        })?;
        let tokens = |store: &Store| store.tokens(None, usize::MAX).items;
        ensure(tokens(before) == tokens(after), "P56 a restore keeps tokens", || {
            format!("{node}: {record} leaves {:?} of {:?}", tokens(after), tokens(before))
        })
    }

    /// The restore is not applied, now or later (I8).
    pub fn refused(&mut self, number: u64) -> Check {
        self.refused.insert(number);
        ensure(!self.at.contains_key(&number), NAME, || format!("{number} is refused, and in place"))
    }

    pub fn acknowledged(&self, number: u64, index: Index) -> Check {
        let at = self.at.get(&number);
        ensure(at == Some(&index), NAME, || format!("{number} is acknowledged at {index}, but is at {at:?}"))
    }
}

//! The documents, and their derived indexes: the documents that end with a lease, those with a ttl, and the size of each area.
//!
//! The indexes are in no digest and no snapshot.

use imbl::{OrdMap, OrdSet};

use super::data::Doc;
use super::table::{Table, weight};
use super::version::Bond;
use crate::types::{LeaseName, Text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Docs {
    table: Table<Text, Doc>,
    /// The keys of the documents that end with a lease, by the lease's name, each with the token of the grant.
    bound: OrdMap<LeaseName, OrdMap<Text, u64>>,
    with_ttl: OrdSet<Text>,
    /// The size of each area, in bytes.
    areas: OrdMap<Text, u64>,
}

impl Docs {
    pub fn table(&self) -> &Table<Text, Doc> {
        &self.table
    }

    pub fn table_mut(&mut self) -> &mut Table<Text, Doc> {
        &mut self.table
    }

    pub fn get(&self, key: &str) -> Option<&Doc> {
        self.table.get(key)
    }

    pub fn insert(&mut self, key: Text, doc: Doc) -> Option<Doc> {
        self.note(&key, &doc);
        let before = self.table.insert(key.clone(), doc.clone());
        if let Some(before) = &before {
            self.forget(&key, before, Some(&doc));
        }
        before
    }

    pub fn remove(&mut self, key: &str) -> Option<Doc> {
        let before = self.table.remove(key)?;
        self.forget(&key.into(), &before, None);
        Some(before)
    }

    /// The keys of the documents that end with this lease, under any token.
    pub fn bound_to(&self, lease: &LeaseName) -> impl Iterator<Item = (&Text, u64)> {
        self.bound.get(lease).into_iter().flatten().map(|(key, token)| (key, *token))
    }

    /// The number of documents that end with this lease.
    pub fn count_bound_to(&self, lease: &LeaseName) -> usize {
        self.bound.get(lease).map_or(0, OrdMap::len)
    }

    pub fn is_bound_to(&self, lease: &LeaseName, key: &str) -> bool {
        self.bound.get(lease).is_some_and(|keys| keys.contains_key(key))
    }

    /// Every document that ends with some lease.
    pub fn bonds(&self) -> impl Iterator<Item = (&Text, &LeaseName, u64)> {
        self.bound.iter().flat_map(|(lease, keys)| keys.iter().map(move |(key, token)| (key, lease, *token)))
    }

    /// A new leader starts to count these documents, and must not scan all documents to find them.
    pub fn with_ttl(&self) -> impl Iterator<Item = (&Text, &Doc)> {
        self.with_ttl.iter().filter_map(|key| Some((key, self.table.get(key)?)))
    }

    pub fn bytes_in(&self, area: &str) -> u64 {
        self.areas.get(area).copied().unwrap_or(0)
    }

    fn note(&mut self, key: &Text, doc: &Doc) {
        if let Some(Bond { lease, token }) = doc.bond() {
            self.bound.entry(lease.clone()).or_default().insert(key.clone(), *token);
        }
        if doc.lease().is_some() {
            self.with_ttl.insert(key.clone());
        }
        if let Some(area) = area(key) {
            *self.areas.entry(area.into()).or_default() += weight(key, doc);
        }
    }

    /// Removes the document `before` from the indexes. `now` replaces it and is noted already: an entry that
    /// both have stays.
    fn forget(&mut self, key: &Text, before: &Doc, now: Option<&Doc>) {
        let bond = now.and_then(Doc::bond).map(|bond| &bond.lease);
        if let Some(Bond { lease, .. }) = before.bond().filter(|before| Some(&before.lease) != bond) {
            self.unbind(lease, key);
        }
        if now.is_none_or(|now| now.lease().is_none()) {
            self.with_ttl.remove(key);
        }
        let Some(area) = area(key) else { return };
        let left = self.bytes_in(area).saturating_sub(weight(key, before));
        match left {
            0 => self.areas.remove(area),
            left => self.areas.insert(area.into(), left),
        };
    }

    fn unbind(&mut self, lease: &LeaseName, key: &Text) {
        let Some(keys) = self.bound.get_mut(lease) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.bound.remove(lease);
        }
    }
}

/// The area of a key, for which a limit can be set: the part up to and including the first slash.
pub fn area(key: &str) -> Option<&str> {
    key.find('/').map(|slash| &key[..=slash])
}

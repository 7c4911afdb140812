//! A table is a sorted map that is copied in no time and always knows its digest.
//!
//! The digest is the wrapping sum of one hash an entry: it follows a change at the price of that entry, and does not
//! depend on the order in which entries came.

use std::fmt::{self, Write};
use std::ops::Bound;

use imbl::OrdMap;

use crate::store::encoding::{Hash, Json, Mix, PAGE_BYTES_MOST, PAGE_MOST, write_list, write_text};
use crate::types::Text;

/// What a table holds.
pub trait Row: Clone + Mix {
    /// Stands in every hash, so that equal entries of two tables differ.
    const TABLE: &'static str;
}

#[derive(Clone, PartialEq, Eq)]
pub struct Table<K: Ord, V> {
    rows: OrdMap<K, V>,
    digest: u64,
}

impl<K: Ord + Clone + Mix, V: Row> Table<K, V> {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    /// What stood there before.
    pub fn insert(&mut self, key: K, row: V) -> Option<V> {
        let added = hash(&key, &row);
        let before = self.rows.insert(key.clone(), row);
        let removed = before.as_ref().map_or(0, |before| hash(&key, before));
        self.digest = self.digest.wrapping_add(added).wrapping_sub(removed);
        before
    }

    pub fn at(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    pub fn take(&mut self, key: &K) -> Option<V> {
        let row = self.rows.remove(key)?;
        self.digest = self.digest.wrapping_sub(hash(key, &row));
        Some(row)
    }

    /// The digest as it would be if it were not kept up.
    #[cfg(test)]
    pub fn digest_anew(&self) -> u64 {
        self.rows.iter().fold(0, |sum, (key, row)| sum.wrapping_add(hash(key, row)))
    }
}

impl<V: Row> Table<Text, V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        self.rows.get(key)
    }

    pub fn remove(&mut self, key: &str) -> Option<V> {
        let (key, row) = self.rows.remove_with_key(key)?;
        self.digest = self.digest.wrapping_sub(hash(&key, &row));
        Some(row)
    }

    pub fn starting_with<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a Text, &'a V)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        self.rows.range::<_, str>(from).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// The rows under `prefix` that follow the key `after`, and the key to go on after if there are more.
    pub fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        size: impl Fn(&Text, &V) -> usize,
    ) -> (Vec<(Text, V)>, Option<Text>) {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let rows = self.rows.range::<_, str>((from, Bound::Unbounded));
        let mut rows = rows.take_while(|(key, _)| key.starts_with(prefix)).peekable();
        let (mut items, mut bytes) = (Vec::new(), 0);
        while let Some((key, row)) = rows.peek() {
            bytes += size(key, row);
            let full = items.len() >= limit.clamp(1, PAGE_MOST) || bytes > PAGE_BYTES_MOST;
            if full && !items.is_empty() {
                let next = items.last().map(|(key, _): &(Text, V)| key.clone());
                return (items, next);
            }
            items.extend(rows.next().map(|(key, row)| (key.clone(), row.clone())));
        }
        (items, None)
    }
}

impl<V: Row> Table<u128, V> {
    pub fn get(&self, key: u128) -> Option<&V> {
        self.rows.get(&key)
    }

    pub fn remove(&mut self, key: u128) -> Option<V> {
        self.take(&key)
    }
}

fn hash<K: Mix, V: Row>(key: &K, row: &V) -> u64 {
    let mut hash = Hash::new();
    V::TABLE.mix(&mut hash);
    key.mix(&mut hash);
    row.mix(&mut hash);
    hash.finish()
}

impl<K: Ord, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { rows: OrdMap::default(), digest: 0 }
    }
}

/// A million rows are no help to anybody.
impl<K: Ord, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, digest {:016x}", self.rows.len(), self.digest)
    }
}

/// A part of a list, and the name to go on after if there is more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<Text>,
}

/// `{"items","next"}`
impl<T: Json> Json for Page<T> {
    fn write_json(&self, out: &mut dyn Write) -> fmt::Result {
        out.write_str("{\"items\":")?;
        write_list(out, &self.items, |out, item| item.write_json(out))?;
        out.write_str(",\"next\":")?;
        match &self.next {
            Some(next) => write_text(out, next)?,
            None => out.write_str("null")?,
        }
        out.write_char('}')
    }
}

//! A table is a sorted map that is copied in no time and always knows its digest.
//!
//! The digest is the wrapping sum of one hash an entry: it follows a change at the price of that entry, and does not
//! depend on the order in which entries came.
//!
//! It has two levels. Most rows are settled: states that follow one another share them. What has been written since is in a
//! small map above them, and only that is copied when a state and its successor part. Now and then all states let go of the
//! settled rows together, and these take in what the oldest state has written, in place.

use std::fmt::{self, Write};
use std::iter::Peekable;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::store::encoding::{Hash, Json, Mix, PAGE_BYTES_MOST, PAGE_MOST, write_list, write_text};
use crate::types::Text;

/// Rows written since the others were settled: enough that settling them costs little a row, few enough that they stay in a
/// processor's cache. Tests settle more often than they could with their few rows otherwise.
const SETTLED_FROM: u64 = if cfg!(debug_assertions) { 8 } else { 256 };
/// A state in the making, which settles with no other, settles alone beyond this; so does one that is far ahead of the oldest.
const RECENT_MOST: usize = 4 * SETTLED_FROM as usize;

/// What a table holds.
pub trait Row: Clone + Mix {
    /// Stands in every hash, so that equal entries of two tables differ.
    const TABLE: &'static str;

    /// How many bytes of text it holds.
    fn weight(&self) -> usize;
}

/// What a row is found by.
pub trait Weight {
    fn weight(&self) -> usize;
}

/// What a row takes besides its text: positions, the tree's nodes, allocations. Rounded up, and the same on every machine.
const ROW_REST: usize = 128;

/// What a row counts for in the size of the state (P55): it follows from what it says alone.
pub fn weight<K: Weight, V: Row>(key: &K, row: &V) -> u64 {
    (ROW_REST + key.weight() + row.weight()) as u64
}

impl Weight for Text {
    fn weight(&self) -> usize {
        self.len()
    }
}

impl Weight for u128 {
    fn weight(&self) -> usize {
        size_of::<u128>()
    }
}

#[derive(Clone)]
pub struct Table<K, V> {
    settled: Arc<OrdMap<K, V>>,
    recent: OrdMap<K, Recent<V>>,
    len: usize,
    digest: u64,
    bytes: u64,
    /// Counts what was written, in this state and those before it; what is settled of that.
    writes: u64,
    settled_upto: u64,
}

/// What was written last under a key.
#[derive(Clone)]
struct Recent<V> {
    /// Which of the table's writes it was.
    number: u64,
    /// None: the row is gone.
    row: Option<V>,
}

impl<K: Ord + Clone + Mix + Weight, V: Row> Table<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// What all rows come to.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        Rows { settled: self.settled.iter().peekable(), recent: self.recent.iter().peekable() }
    }

    /// What stood there before.
    pub fn insert(&mut self, key: K, row: V) -> Option<V> {
        let (added, weighs) = (hash(&key, &row), weight(&key, &row));
        let before = self.put(&key, Some(row));
        let removed = before.as_ref().map_or(0, |before| hash(&key, before));
        self.bytes = self.bytes + weighs - before.as_ref().map_or(0, |before| weight(&key, before));
        self.len += usize::from(before.is_none());
        self.digest = self.digest.wrapping_add(added).wrapping_sub(removed);
        before
    }

    pub fn at(&self, key: &K) -> Option<&V> {
        match self.recent.get(key) {
            Some(recent) => recent.row.as_ref(),
            None => self.settled.get(key),
        }
    }

    pub fn take(&mut self, key: &K) -> Option<V> {
        self.at(key)?;
        let row = self.put(key, None)?;
        self.len -= 1;
        self.digest = self.digest.wrapping_sub(hash(key, &row));
        self.bytes -= weight(key, &row);
        Some(row)
    }

    /// Whether so little has been written that it can stay where it is.
    pub fn is_settled(&self) -> bool {
        self.writes - self.settled_upto < SETTLED_FROM
    }

    /// Settles what the first of these tables has written; the others have grown out of it, each out of the one before. A row
    /// moves once, and none is copied unless somebody else still reads. What later tables have written stays where it is, in
    /// front of what is settled: only the last is cleared of the rest, because those to come are its copies.
    pub fn settle(tables: &mut [&mut Table<K, V>]) {
        let Some((oldest, rest)) = tables.split_first_mut() else { return };
        let shared = mem::take(&mut oldest.settled);
        let mut followers: Vec<_> =
            rest.iter_mut().filter(|table| Arc::ptr_eq(&table.settled, &shared)).collect();
        followers.iter_mut().for_each(|table| table.settled = Arc::default());
        let mut settled = Arc::unwrap_or_clone(shared);
        move_down(&mut settled, mem::take(&mut oldest.recent), oldest.settled_upto);
        let (settled, upto) = (Arc::new(settled), oldest.writes);
        if let Some(newest) = followers.last_mut() {
            let recent = mem::take(&mut newest.recent);
            newest.recent = recent.into_iter().filter(|(_, recent)| recent.number > upto).collect();
        }
        for table in followers.into_iter().map(|table| &mut **table).chain([&mut **oldest]) {
            table.settled = settled.clone();
            table.settled_upto = upto;
            debug_assert!(table.is_sound(), "no state has lost a row by settling");
        }
    }

    /// What stood there before. Rows that nobody shares are changed in place.
    fn put(&mut self, key: &K, row: Option<V>) -> Option<V> {
        self.writes += 1;
        if self.recent.len() >= RECENT_MOST {
            self.settled = Arc::new(OrdMap::clone(&self.settled));
        }
        if let Some(settled) = Arc::get_mut(&mut self.settled) {
            move_down(settled, mem::take(&mut self.recent), self.settled_upto);
            self.settled_upto = self.writes;
            return match row {
                Some(row) => settled.insert(key.clone(), row),
                None => settled.remove(key),
            };
        }
        match self.recent.insert(key.clone(), Recent { number: self.writes, row }) {
            Some(before) => before.row,
            None => self.settled.get(key).cloned(),
        }
    }

    /// Whether it is what it says: for small tables, where that is quickly found out.
    fn is_sound(&self) -> bool {
        self.settled.len() > RECENT_MOST
            || (self.digest_anew() == self.digest
                && self.iter().count() == self.len
                && self.bytes_anew() == self.bytes)
    }

    /// The bytes as they would be if they were not kept up.
    pub fn bytes_anew(&self) -> u64 {
        self.iter().map(|(key, row)| weight(key, row)).sum()
    }

    /// The digest as it would be if it were not kept up.
    pub fn digest_anew(&self) -> u64 {
        self.iter().fold(0, |sum, (key, row)| sum.wrapping_add(hash(key, row)))
    }
}

/// Takes in what was written after that number.
fn move_down<K: Ord + Clone, V: Clone>(settled: &mut OrdMap<K, V>, recent: OrdMap<K, Recent<V>>, above: u64) {
    for (key, recent) in recent.into_iter().filter(|(_, recent)| recent.number > above) {
        match recent.row {
            Some(row) => drop(settled.insert(key, row)),
            None => drop(settled.remove(&key)),
        }
    }
}

/// Both levels as one, in order.
struct Rows<S: Iterator, R: Iterator> {
    settled: Peekable<S>,
    recent: Peekable<R>,
}

impl<'a, K, V, S, R> Iterator for Rows<S, R>
where
    K: Ord + 'a,
    V: 'a,
    S: Iterator<Item = (&'a K, &'a V)>,
    R: Iterator<Item = (&'a K, &'a Recent<V>)>,
{
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            let Some((newer, _)) = self.recent.peek() else { return self.settled.next() };
            if let Some(row) = self.settled.next_if(|(key, _)| key < newer) {
                return Some(row);
            }
            self.settled.next_if(|(key, _)| key == newer);
            let (key, recent) = self.recent.next()?;
            if let Some(row) = &recent.row {
                return Some((key, row));
            }
        }
    }
}

impl<V: Row> Table<Text, V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        match self.recent.get(key) {
            Some(recent) => recent.row.as_ref(),
            None => self.settled.get(key),
        }
    }

    pub fn remove(&mut self, key: &str) -> Option<V> {
        let recent = || self.recent.get_key_value(key).map(|(key, _)| key);
        let settled = || self.settled.get_key_value(key).map(|(key, _)| key);
        let key = recent().or_else(settled)?.clone();
        self.take(&key)
    }

    pub fn starting_with<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a Text, &'a V)> {
        self.from(Bound::Included(prefix)).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// The rows that follow a key, or all of them.
    pub fn after<'a>(&'a self, key: Option<&str>) -> impl Iterator<Item = (&'a Text, &'a V)> {
        self.from(key.map_or(Bound::Included(""), Bound::Excluded))
    }

    fn from<'a>(&'a self, from: Bound<&str>) -> impl Iterator<Item = (&'a Text, &'a V)> {
        let range = (from, Bound::Unbounded);
        let (settled, recent) = (self.settled.range::<_, str>(range), self.recent.range::<_, str>(range));
        Rows { settled: settled.peekable(), recent: recent.peekable() }
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
        let mut rows = self.from(from).take_while(|(key, _)| key.starts_with(prefix)).peekable();
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
        self.at(&key)
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
        Table {
            settled: Arc::default(),
            recent: OrdMap::default(),
            len: 0,
            digest: 0,
            bytes: 0,
            writes: 0,
            settled_upto: 0,
        }
    }
}

/// What is settled already makes no difference.
impl<K: Ord + Clone + Mix + Weight, V: Row + PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Table<K, V>) -> bool {
        self.len == other.len && self.digest == other.digest && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Clone + Mix + Weight, V: Row + Eq> Eq for Table<K, V> {}

/// A million rows are no help to anybody.
impl<K: Ord, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, digest {:016x}", self.len, self.digest)
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

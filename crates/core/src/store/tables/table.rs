//! A table is a sorted map with a cheap copy and an always current digest.
//!
//! The digest is the wrapping sum of one hash per entry: updating it for a change costs one hash of that entry, and it does not
//! depend on the order in which entries were added.
//!
//! A table has two levels. Most rows are settled: successive states share them. Rows that were written since are in a small map
//! above, and only that map is copied when a state and its successor diverge. From time to time all states release the settled
//! rows together, and the rows that the oldest state has written are moved into the settled level, in place.
//!
//! ```text
//!             before                       after `Table::settle`
//!  boundary   [settled] + {a}              [settled, a]
//!  committed  [settled] + {a, b}           [settled, a] + {a, b}    a is in both levels, and is the same in both
//!  newest     [settled] + {a, b, c}        [settled, a] + {b, c}    later states are copies of this one
//! ```

use std::fmt::{self, Write};
use std::iter::Peekable;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::store::encoding::{Hash, Json, Mix, PAGE_BYTES_MOST, PAGE_MOST, write_list, write_text};
use crate::types::Text;

/// The number of rows to write before they are settled: enough that settling costs little per row, and few enough that they
/// stay in a processor's cache. In debug builds the number is smaller, so that tests with few rows settle at all.
const SETTLED_FROM: u64 = if cfg!(debug_assertions) { 8 } else { 256 };
/// A state that is being built settles with no other state. It settles alone beyond this number of recent rows. So does a state
/// that is far ahead of the oldest.
const RECENT_MOST: usize = 4 * SETTLED_FROM as usize;

/// The rows that a table contains.
pub trait Row: Clone + Mix {
    /// The name of the table is part of every hash, so that equal entries of two tables differ.
    const TABLE: &'static str;

    /// The size of the row's text, in bytes.
    fn weight(&self) -> usize;
}

/// The keys of rows.
pub trait Weight {
    fn weight(&self) -> usize;
}

/// The size of a row apart from its text: positions, the tree's nodes, allocations. It is rounded up, and the same on every
/// machine.
const ROW_REST: usize = 128;

/// The share of a row in the size of the state (P55). It follows from the row's content alone.
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
    /// Counts the writes of this state and of the states before it. `settled_upto` is the number of those that are settled.
    writes: u64,
    settled_upto: u64,
}

/// The last write of a key.
#[derive(Clone)]
struct Recent<V> {
    /// The number of this write among the table's writes.
    number: u64,
    /// `None`: the row is removed.
    row: Option<V>,
}

impl<K: Ord + Clone + Mix + Weight, V: Row> Table<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The size of all rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        Rows { settled: self.settled.iter().peekable(), recent: self.recent.iter().peekable() }
    }

    /// Returns the row that stood there before.
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

    /// Whether so few rows are recent that they need not be settled yet.
    pub fn is_settled(&self) -> bool {
        self.writes - self.settled_upto < SETTLED_FROM
    }

    /// Settles the rows that the first of these tables has written. Each of the other tables is a successor of the table before
    /// it. A row moves once, and no row is copied unless a reader still uses it. The rows that later tables have written stay
    /// in their recent level, in front of the settled level. Only the last table drops the recent rows that are settled now,
    /// because future tables are its copies.
    pub fn settle(tables: &mut [&mut Table<K, V>]) {
        let Some((oldest, rest)) = tables.split_first_mut() else { return };
        let shared = mem::take(&mut oldest.settled);
        // A table that has settled alone (`RECENT_MOST`) has another settled level, and keeps it.
        let mut followers: Vec<_> =
            rest.iter_mut().filter(|table| Arc::ptr_eq(&table.settled, &shared)).collect();
        // All let go of the settled level before it is unwrapped. Otherwise `unwrap_or_clone` would copy every node
        // that changes.
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

    /// Returns the row that stood there before. Rows that are not shared are changed in place.
    fn put(&mut self, key: &K, row: Option<V>) -> Option<V> {
        self.writes += 1;
        // The copy shares its nodes, and only the paths that change are copied. It costs more than settling together,
        // and keeps the recent level small.
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

    /// Whether digest, size and count match the rows. It is checked for small tables only, where the check is fast.
    fn is_sound(&self) -> bool {
        self.settled.len() > RECENT_MOST
            || (self.recomputed_digest() == self.digest
                && self.iter().count() == self.len
                && self.recounted_bytes() == self.bytes)
    }

    /// The size of all rows, recounted.
    pub fn recounted_bytes(&self) -> u64 {
        self.iter().map(|(key, row)| weight(key, row)).sum()
    }

    /// The digest, recomputed from all rows.
    pub fn recomputed_digest(&self) -> u64 {
        self.iter().fold(0, |sum, (key, row)| sum.wrapping_add(hash(key, row)))
    }
}

/// Moves the writes after the number `above` into the settled level.
/// Recent rows with lower numbers are settled already: only the newest table drops them (`Table::settle`).
fn move_down<K: Ord + Clone, V: Clone>(settled: &mut OrdMap<K, V>, recent: OrdMap<K, Recent<V>>, above: u64) {
    for (key, recent) in recent.into_iter().filter(|(_, recent)| recent.number > above) {
        match recent.row {
            Some(row) => drop(settled.insert(key, row)),
            None => drop(settled.remove(&key)),
        }
    }
}

/// Both levels merged, in order.
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

    /// The rows with `prefix` that follow the key `after`, and the key to continue after if there are more.
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
            // A row that is larger than a page is a page by itself. Otherwise no reader would get past it.
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

/// Equality does not depend on which rows are settled.
impl<K: Ord + Clone + Mix + Weight, V: Row + PartialEq> PartialEq for Table<K, V> {
    fn eq(&self, other: &Table<K, V>) -> bool {
        self.len == other.len && self.digest == other.digest && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Clone + Mix + Weight, V: Row + Eq> Eq for Table<K, V> {}

/// Does not print the rows: a million of them would not help.
impl<K: Ord, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, digest {:016x}", self.len, self.digest)
    }
}

/// A part of a list, and the name to continue after if there is more.
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

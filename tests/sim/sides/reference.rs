use std::collections::{BTreeMap, BTreeSet};
use eldest::store::{Command, Condition, Key, Operation};
use eldest::types::{Entry, Position, Record, Stamp, Vector};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    applied: Position,
    stamp: Stamp,
    cands: BTreeMap<Key, Vec<(Position, Option<String>)>>,
    pub journal: BTreeSet<Position>,
}
pub type Difference = Store;
pub struct Applied { pub changes: Vec<Key> }
pub struct Merged { pub store: Store }
type Cand = (Position, Option<String>);
fn rank(c: &Cand) -> (eldest::types::NodeId, std::cmp::Reverse<(u64, u64)>) {
    (c.0.epoch.leader, std::cmp::Reverse((c.0.epoch.counter, c.0.index)))
}
impl Store {
    pub fn with_sides() -> Store { Store::default() }
    pub fn applied(&self) -> Position { self.applied }
    pub fn digest(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = std::collections::hash_map::DefaultHasher::new();
        format!("{:?}{:?}", self.cands, self.journal).hash(&mut h);
        h.finish()
    }
    pub fn entry(&self, key: &Key) -> Option<String> { self.cands.get(key)?.first()?.1.clone() }
    pub fn get(&self, key: &str) -> Option<String> {
        let e = self.entry(&Key::Doc(key.into()))?;
        Some(e.split_once("\"value\":")?.1.trim_end_matches('}').into())
    }
    pub fn entries(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        self.cands.keys().filter_map(|k| Some((k.clone(), self.entry(k)?)))
    }
    fn put(&mut self, key: Key, at: Position, value: Option<&str>) -> Key {
        let entry = value.map(|v| format!("{{\"at\":\"{at}\",\"value\":{v}}}"));
        self.cands.insert(key.clone(), vec![(at, entry)]);
        key
    }
    pub fn rev(&self, key: &str) -> Option<String> {
        let c = self.cands.get(&Key::Doc(key.into()))?.first()?;
        c.1.as_ref().map(|_| c.0.to_string())
    }
    pub fn apply(&mut self, record: &Record) -> Result<Applied, ()> {
        assert_eq!(record.index(), self.applied.index + 1, "gap");
        self.applied = record.position;
        self.stamp = record.stamp;
        let mut changes = vec![];
        let Entry::Client(p) = &record.entry else { return Ok(Applied { changes }) };
        let c = Command::from_payload(p).map_err(|_| ())?;
        for o in c.operations() {
            let at = record.position;
            let k = match o {
                Operation::PutDoc { key, value, condition } => {
                    let rev = self.rev(key);
                    let ok = match condition {
                        Condition::None => true, Condition::Absent => rev.is_none(),
                        Condition::Present => rev.is_some(), Condition::Rev(r) => rev.as_deref() == Some(r),
                    };
                    if !ok { continue; }
                    self.put(Key::Doc(key.clone()), at, Some(value))
                }
                Operation::DeleteDoc { key, .. } => {
                    if self.rev(key).is_none() { continue; }
                    self.put(Key::Doc(key.clone()), at, None)
                }
                Operation::CreateUser(u) => {
                    let k = Key::User(u.name.clone());
                    if self.entry(&k).is_some() { continue; }
                    self.put(k, at, Some(&u.text))
                }
                Operation::RemoveUser { name } => {
                    let k = Key::User(name.clone());
                    if self.entry(&k).is_none() { continue; }
                    self.put(k, at, None)
                }
                Operation::CreateElection(u) => {
                    let k = Key::Election(u.name.clone());
                    if self.entry(&k).is_some() { continue; }
                    self.put(k, at, Some(&u.text))
                }
                Operation::VoteElection { election, voter, choice } => {
                    let k = Key::Vote(format!("[\"{election}\",\"{voter}\"]").into());
                    if self.entry(&k).is_some() { continue; }
                    self.put(k, at, Some(&format!("\"{choice}\"")))
                }
            };
            changes.push(k);
        }
        Ok(Applied { changes })
    }
    pub fn difference(&self, _: &Vector) -> Option<Store> { Some(self.clone()) }
    pub fn whole(&self) -> Store { self.clone() }
    pub fn merged(&self, own: &Vector, d: &Store, theirs: &Vector, at: Position, stamp: Stamp) -> Result<Merged, ()> {
        let mut m = Store { applied: at, stamp, ..Store::default() };
        m.journal = self.journal.union(&d.journal).copied().collect();
        let keys: BTreeSet<&Key> = self.cands.keys().chain(d.cands.keys()).collect();
        for k in keys {
            let none = vec![];
            let (a, b) = (self.cands.get(k).unwrap_or(&none), d.cands.get(k).unwrap_or(&none));
            let mut s: Vec<Cand> = a.iter().filter(|c| b.contains(c) || !theirs.covers(c.0)).cloned().collect();
            s.extend(b.iter().filter(|c| !a.contains(c) && !own.covers(c.0)).cloned());
            s.sort_by_key(rank);
            let v = |c: &Cand| c.1.as_ref().map(|e| e.split_once("value").unwrap().1.to_string());
            for l in s.iter().skip(1) {
                if l.1.is_some() && v(l) != v(&s[0]) { m.journal.insert(l.0); }
            }
            m.cands.insert(k.clone(), s);
        }
        Ok(Merged { store: m })
    }
    pub fn overridden(&self, d: &Store, at: Position, stamp: Stamp) -> Result<(Store, ()), ()> {
        Ok((Store { applied: at, stamp, ..d.clone() }, ()))
    }
}

//! Readers of the feed: each mirrors all data by the events of one node, loses that node, and goes on at
//! another from its cursor. Its mirror is the state of the node that it reads from, or it has had to start
//! over (I7). The product's own ring decides what a node keeps, and where a reader goes on.

use std::collections::BTreeSet;

use eldest::feed::{Refused, Ring, RingEvent as Told, Since};
use eldest::replica::{Fact, FeedEvent};
use eldest::store::Key;
use eldest::types::{Index, Position, Text, WallTime};

use crate::checks::restored::{Content, content};
use crate::checks::{Check, Violation, ensure};
use crate::host::Host;
use crate::membership;
use crate::rng::Rng;
use crate::world::{Event, World};

const NAME: &str = "I7 what a reader mirrors is the state";
/// The number of events that a node keeps. There are few, so that some readers have to start over.
const KEPT: usize = 60;
const KEPT_BYTES: usize = 64 << 10;
/// Whole states are compared once in this many records; each record's own changes always are.
const COMPARED: Index = 20;

#[derive(Debug, Default)]
struct Reader {
    at: Option<Seat>,
    /// The place at which it read last, whether or not it still does.
    last: Option<Seat>,
    /// The id of the last event that has one, as the reader got it.
    cursor: Option<String>,
    mirror: Content,
}

/// The place at which a reader reads.
#[derive(Clone, Copy, Debug)]
struct Seat {
    node: usize,
    /// The number of that node's process.
    life: u64,
    /// The number of the event that comes next.
    next: u64,
}

#[derive(Debug)]
pub struct Readers {
    all: Vec<Reader>,
    /// Nodes that are replacing their state by another one. Their events about it are compared at their next
    /// record.
    replaced: BTreeSet<usize>,
    rng: Rng,
    pub resumed: usize,
    pub started_over: usize,
}

/// The events that a process keeps of its feed, if it begins with this state.
pub fn begin(host: &Host, is_available: bool) -> Ring {
    let mut kept = Ring::bounded(KEPT, KEPT_BYTES);
    let store = &host.state.store;
    kept.open(store.applied(), is_available, store.history());
    kept
}

impl Reader {
    /// Takes an event, and returns the key that it changes.
    fn hears(&mut self, event: &Told) -> Option<Key> {
        if let Some(id) = event.id() {
            self.cursor = Some(id.to_string());
        }
        let Fact::Change { key, value, .. } = event.fact() else { return None };
        match value {
            Some(value) => drop(self.mirror.insert(key.clone(), value.clone())),
            None => drop(self.mirror.remove(key)),
        }
        Some(key.clone())
    }

    /// Reads everything again at this node.
    fn starts_over(&mut self, node: usize, host: &Host) {
        let next = host.kept.next();
        self.mirror = content(&host.state.store);
        self.cursor = host.kept.place_before(next).map(|id| id.to_string());
        self.sits_at(Seat { node, life: host.life, next });
    }

    fn sits_at(&mut self, seat: Seat) {
        (self.at, self.last) = (Some(seat), Some(seat));
    }

    /// Takes all events that its node keeps from its place on, and returns the keys that they have changed.
    /// With `all` it also takes events without an id, as a connected reader does. With `breaks` its
    /// connection breaks before the last event.
    fn reads_on(&mut self, seat: Seat, host: &Host, all: bool, breaks: bool) -> Vec<Key> {
        let end = host.kept.next();
        let Some(events) = host.kept.from(seat.next, usize::MAX) else {
            // The reader was too slow.
            self.at = None;
            return Vec::new();
        };
        let mut changed = Vec::new();
        for (number, event) in (seat.next..).zip(events) {
            if breaks && number > seat.next && number + 1 == end {
                (self.at, self.last) = (None, Some(Seat { next: number, ..seat }));
                return Vec::new();
            }
            if all || event.id().is_some() {
                changed.extend(self.hears(event));
            }
            if event.is_for_all() {
                self.starts_over(seat.node, host);
                return Vec::new();
            }
        }
        self.sits_at(Seat { next: end, ..seat });
        changed
    }

    /// Its cursor, which every node can read.
    fn since(&self, kept: &Ring) -> Result<Option<Since>, Violation> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let since = Since::parse(cursor, kept.sides());
        ensure(since.is_some(), NAME, || format!("nobody can read the cursor {cursor:?}"))?;
        Ok(since)
    }

    /// Whether this process has sent it the event before its place, from which one may go on, and keeps all
    /// events that follow.
    fn has_just_read(&self, node: usize, host: &Host) -> bool {
        let is_here = |seat: &Seat| (seat.node, seat.life) == (node, host.life);
        self.last.filter(is_here).is_some_and(|seat| host.kept.place_before(seat.next).is_some())
    }

    fn mirrors(&self, key: &Key, host: &Host) -> Check {
        let (has, must): (Option<&Text>, Option<Text>) = (self.mirror.get(key), host.state.store.value(key));
        ensure(has == must.as_ref(), NAME, || format!("{key:?} is {must:?}, and {has:?} there"))
    }

    fn mirrors_all(&self, host: &Host) -> Check {
        let must = content(&host.state.store);
        ensure(self.mirror == must, NAME, || {
            format!("at {:?} {} has {must:?}, its reader {:?}", self.cursor, host.id, self.mirror)
        })
    }
}

/// Whether its readers have got all that its state holds.
fn has_told(host: &Host) -> bool {
    let told = host.kept.place_before(host.kept.next());
    told.is_some_and(|told| told.at == host.state.store.applied())
}

impl Readers {
    pub fn new(count: usize, rng: Rng) -> Readers {
        let all = (0..count).map(|_| Reader::default()).collect();
        Readers { all, replaced: BTreeSet::new(), rng, resumed: 0, started_over: 0 }
    }

    /// All of them read here now.
    pub fn sit_at(&mut self, node: usize, host: &Host) {
        self.all.iter_mut().for_each(|reader| reader.starts_over(node, host));
    }

    /// The readers lose their node, because another cluster is to be read from.
    pub fn are_cut_off(&mut self) {
        self.all.iter_mut().for_each(|reader| (reader.at, reader.last) = (None, None));
    }

    fn resumes(&mut self, number: usize, node: usize, host: &Host) -> Check {
        if !has_told(host) {
            return Ok(());
        }
        let reader = &mut self.all[number];
        let found = reader.since(&host.kept)?.map(|since| host.kept.find(&since));
        if reader.has_just_read(node, host) {
            ensure(!matches!(found, Some(Err(_))), NAME, || {
                format!("{} has just told {:?}, and answers {found:?}", host.id, reader.cursor)
            })?;
        }
        match found {
            // The cursor names a place that this node has not reached yet.
            Some(Err(Refused::Ahead { .. } | Refused::Closed)) => return Ok(()),
            Some(Ok(next)) => {
                self.resumed += 1;
                reader.reads_on(Seat { node, life: host.life, next }, host, false, false);
            }
            None | Some(Err(Refused::Compacted { .. } | Refused::OtherHistory { .. })) => {
                self.started_over += 1;
                reader.starts_over(node, host);
            }
        }
        reader.mirrors_all(host)
    }
}

impl World {
    /// A node sends an event to its readers.
    pub fn publish(&mut self, node: usize, event: &FeedEvent) -> Check {
        let Some(mut readers) = self.readers.take() else { return Ok(()) };
        let host = &mut self.hosts[node];
        let whole = match event.clone() {
            FeedEvent::Record { at, history, stamp, drafts } => {
                host.kept.record(at, history, stamp.wall, drafts);
                readers.replaced.remove(&node) || at.index.is_multiple_of(COMPARED)
            }
            FeedEvent::Replaced { at, history, changes, last } => {
                host.kept.replaced(at, history, changes, last);
                readers.replaced.insert(node);
                false
            }
            FeedEvent::Passing(draft) => {
                host.kept.passing(WallTime::default(), draft);
                false
            }
        };
        let host = &self.hosts[node];
        let mut heard = Ok(());
        for reader in &mut readers.all {
            let Some(seat) = reader.at.filter(|seat| (seat.node, seat.life) == (node, host.life)) else {
                continue;
            };
            // Its connection may break in the middle of a record, or of the events that replace this state by
            // another.
            let breaks = readers.rng.chance(if readers.replaced.contains(&node) { 300 } else { 20 });
            let changed = reader.reads_on(seat, host, true, breaks);
            if readers.replaced.contains(&node) {
                continue;
            }
            heard = heard.and_then(|()| changed.iter().try_for_each(|key| reader.mirrors(key, host)));
            if whole && reader.at.is_some() {
                heard = heard.and_then(|()| reader.mirrors_all(host));
            }
        }
        self.readers = Some(readers);
        heard
    }

    pub fn reader_wakes(&mut self, reader: usize) -> Check {
        let Some(mut readers) = self.readers.take() else { return Ok(()) };
        let is_there = |seat: Seat| self.hosts[seat.node].life == seat.life;
        match readers.all[reader].at.filter(|seat| is_there(*seat)) {
            Some(seat) if !readers.rng.chance(150) => {
                // A reader that gets no events for some time learns its place all the same.
                if let Some(place) = self.hosts[seat.node].kept.place_before(seat.next) {
                    readers.all[reader].cursor = Some(place.to_string());
                }
            }
            _ => {
                readers.all[reader].at = None;
                let node = readers.rng.below(self.hosts.len() as u64) as usize;
                if self.hosts[node].is_up() {
                    readers.resumes(reader, node, &self.hosts[node])?;
                }
            }
        }
        let pause = readers.rng.range(20_000, 300_000);
        self.readers = Some(readers);
        self.after(pause, Event::ReaderWakes { reader });
        Ok(())
    }

    /// In the end each reader goes on at the node that it is sent to, once that node has come as far. In
    /// available mode a reader may have read from a side whose disks are lost since: it waits until the
    /// cluster has written as much, and then starts over.
    pub fn readers_agree(&mut self) -> Check {
        let until = self.now + self.hosts[0].settings.timing.election_timeout().0;
        for reader in 0..self.readers.as_ref().map_or(0, |readers| readers.all.len()) {
            // A node that was removed or replaced has no readers any more.
            let stays = |node: &usize| !self.hosts[*node].retired && membership::belongs(self, *node);
            let stay: Vec<usize> = (0..self.hosts.len()).filter(stays).collect();
            let node = stay[reader % stay.len()];
            let has_come = |world: &World| {
                let (host, readers) = (&world.hosts[node], world.readers.as_ref());
                let kept = &host.kept;
                let since = readers.map_or(Ok(None), |readers| readers.all[reader].since(kept));
                let has_come = |since: Since| !matches!(kept.find(&since), Err(Refused::Ahead { .. }));
                has_told(host) && since.ok().flatten().is_none_or(has_come)
            };
            let came = self.run_until_true(until, has_come)?;
            if !came && self.is_place_lost(reader, node) {
                continue;
            }
            ensure(came, NAME, || format!("n{} lets reader {reader} wait for ever", node + 1))?;
            if let Some(mut readers) = self.readers.take() {
                readers.resumes(reader, node, &self.hosts[node])?;
                self.readers = Some(readers);
            }
        }
        Ok(())
    }

    /// Whether no node has the record that the reader read last.
    fn is_place_lost(&self, reader: usize, node: usize) -> bool {
        let since = self.readers.as_ref().map(|readers| readers.all[reader].since(&self.hosts[node].kept));
        let Some(Ok(Some(since))) = since else { return false };
        let Some(place) = since.epoch.map(|epoch| Position::new(epoch, since.mark.index)) else {
            return false;
        };
        let has = |host: &Host| {
            host.core().and_then(|core| core.log().vector()).is_some_and(|vector| vector.covers(place))
        };
        !self.hosts.iter().any(has)
    }
}

#[cfg(test)]
mod tests {
    use crate::plan;

    /// Readers that never go on elsewhere prove nothing.
    #[test]
    fn some_go_on_and_some_start_over() {
        let (mut resumed, mut started_over) = (0, 0);
        for seed in 1..40 {
            let (mut world, mut plan) = plan::world(seed);
            crate::run::live(&mut world, &mut plan).expect("a seed that holds");
            let readers = world.readers.iter();
            readers.for_each(|readers| {
                (resumed, started_over) = (resumed + readers.resumed, started_over + readers.started_over)
            });
        }
        println!("{resumed} went on, {started_over} started over");
        assert!(resumed > 100 && started_over > 20);
    }
}

//! Readers of the feed: each mirrors all data by what one node tells, loses that node, and goes on at another from its
//! cursor. What it mirrors is the state of the node that it reads from, or it was told to start over (I7).

use std::collections::VecDeque;

use eldest::replica::{Draft, Fact, FeedEvent};
use eldest::types::Index;

use crate::checks::restored::{Content, content};
use crate::checks::{Check, ensure};
use crate::membership;
use crate::rng::Rng;
use crate::world::{Event, World};

const NAME: &str = "I7 what a reader mirrors is the state";
/// Records that a node tells again. Few, so that some readers are told to start over.
const KEPT: usize = 40;
/// Whole states are compared once in so many records: each record's own changes always are.
const COMPARED: Index = 20;

/// What a process has told and still keeps.
#[derive(Debug, Default)]
pub struct Kept {
    records: VecDeque<(Index, Vec<Draft>)>,
    /// A reader that has got as far as this misses nothing.
    floor: Index,
    head: Index,
}

#[derive(Debug, Default)]
struct Reader {
    /// Where it reads, and from which process.
    at: Option<(usize, u64)>,
    /// The last record of which it has heard all, and how many events of the next one.
    cursor: (Index, usize),
    mirror: Content,
}

#[derive(Debug)]
pub struct Readers {
    all: Vec<Reader>,
    rng: Rng,
    pub resumed: usize,
    pub started_over: usize,
}

impl Kept {
    pub fn from(at: Index) -> Kept {
        Kept { records: VecDeque::new(), floor: at, head: at }
    }

    fn tell(&mut self, event: &FeedEvent) {
        match event {
            FeedEvent::Record { at, drafts, .. } => {
                self.head = at.index;
                self.records.push_back((at.index, drafts.clone()));
                if self.records.len() > KEPT {
                    self.floor = self.records.pop_front().map_or(self.floor, |(index, _)| index);
                }
            }
            FeedEvent::Replaced { at, .. } => *self = Kept::from(at.index),
            FeedEvent::Passing(_) => {}
        }
    }

    fn behind(&self, index: Index) -> Vec<(Index, Vec<Draft>)> {
        self.records.iter().filter(|(at, _)| *at > index).cloned().collect()
    }
}

impl Reader {
    /// The record up to which a node must have told, to be of use to it.
    fn next(&self) -> Index {
        self.cursor.0 + u64::from(self.cursor.1 > 0)
    }

    /// True if it is told to read everything anew.
    fn hears(&mut self, drafts: &[Draft]) -> bool {
        for draft in drafts {
            match &draft.fact {
                Fact::Change { key, value: Some(value), .. } => {
                    drop(self.mirror.insert(key.clone(), value.clone()))
                }
                Fact::Change { key, value: None, .. } => drop(self.mirror.remove(key)),
                _ => {}
            }
        }
        drafts.iter().any(|draft| draft.for_all)
    }
}

impl Readers {
    pub fn new(count: usize, rng: Rng) -> Readers {
        let all = (0..count).map(|_| Reader::default()).collect();
        Readers { all, rng, resumed: 0, started_over: 0 }
    }
}

impl World {
    /// A node tells whoever reads there.
    pub fn tell_readers(&mut self, node: usize, event: &FeedEvent) -> Check {
        let Some(mut readers) = self.readers.take() else { return Ok(()) };
        self.hosts[node].kept.tell(event);
        let here = Some((node, self.hosts[node].life));
        let mut heard = Ok(());
        for reader in readers.all.iter_mut().filter(|reader| reader.at == here) {
            // Its connection may break in the middle of a record.
            let breaks = readers.rng.chance(20);
            heard = heard.and_then(|()| self.reader_hears(node, reader, event, breaks));
        }
        self.readers = Some(readers);
        heard
    }

    fn reader_hears(&self, node: usize, reader: &mut Reader, event: &FeedEvent, breaks: bool) -> Check {
        let anew = match event {
            FeedEvent::Record { drafts, .. } if breaks && drafts.len() > 1 => {
                reader.at = None;
                reader.cursor.1 = 1;
                if reader.hears(&drafts[..1]) {
                    self.start_over(node, reader);
                }
                return Ok(());
            }
            FeedEvent::Record { at, drafts, .. } => {
                reader.cursor = (at.index, 0);
                reader.hears(drafts)
            }
            FeedEvent::Replaced { at, changes, last, .. } => {
                reader.cursor = (at.index, 0);
                reader.hears(changes) | last.for_all
            }
            FeedEvent::Passing(_) => return Ok(()),
        };
        if anew {
            self.start_over(node, reader);
        }
        self.mirrors(node, reader, event)
    }

    fn start_over(&self, node: usize, reader: &mut Reader) {
        reader.mirror = content(&self.hosts[node].state.store);
        reader.cursor = (self.hosts[node].kept.head, 0);
    }

    fn mirrors(&self, node: usize, reader: &Reader, event: &FeedEvent) -> Check {
        let store = &self.hosts[node].state.store;
        let drafts = match event {
            FeedEvent::Record { drafts, .. } => drafts.as_slice(),
            _ => &[],
        };
        for draft in drafts {
            if let Fact::Change { key, .. } = &draft.fact {
                let (has, must) = (reader.mirror.get(key), store.value(key));
                ensure(has == must.as_ref(), NAME, || format!("{key:?} is {must:?}, and {has:?} there"))?;
            }
        }
        if reader.cursor.0.is_multiple_of(COMPARED) { self.mirrors_all(node, reader) } else { Ok(()) }
    }

    fn mirrors_all(&self, node: usize, reader: &Reader) -> Check {
        let must = content(&self.hosts[node].state.store);
        ensure(reader.mirror == must, NAME, || {
            format!("at {:?} n{} has {must:?}, its reader {:?}", reader.cursor, node + 1, reader.mirror)
        })
    }

    pub fn reader_wakes(&mut self, reader: usize) -> Check {
        let Some(mut readers) = self.readers.take() else { return Ok(()) };
        let lost = |(node, life): (usize, u64)| self.hosts[node].life != life;
        if readers.all[reader].at.is_none_or(lost) || readers.rng.chance(150) {
            readers.all[reader].at = None;
            let node = readers.rng.below(self.hosts.len() as u64) as usize;
            self.resumes_at(node, &mut readers, reader)?;
        }
        let pause = readers.rng.range(20_000, 300_000);
        self.readers = Some(readers);
        self.after(pause, Event::ReaderWakes { reader });
        Ok(())
    }

    /// Whoever names a place that is yet to come waits; one that names what is not kept reads everything anew.
    fn resumes_at(&self, node: usize, readers: &mut Readers, number: usize) -> Check {
        let (host, reader) = (&self.hosts[node], &mut readers.all[number]);
        let (index, n) = reader.cursor;
        if !host.is_up() || host.kept.head < reader.next() {
            return Ok(());
        }
        reader.at = Some((node, host.life));
        if index < host.kept.floor || index == 0 {
            readers.started_over += 1;
            self.start_over(node, reader);
            return Ok(());
        }
        readers.resumed += 1;
        let mut skip = n;
        for (at, drafts) in host.kept.behind(index) {
            reader.cursor = (at, 0);
            if reader.hears(&drafts[std::mem::take(&mut skip).min(drafts.len())..]) {
                self.start_over(node, reader);
                break;
            }
        }
        self.mirrors_all(node, reader)
    }

    /// In the end each goes on wherever it is sent, once that node has come as far.
    pub fn readers_agree(&mut self) -> Check {
        let until = self.now + self.hosts[0].settings.timing.election_timeout().0;
        for reader in 0..self.readers.as_ref().map_or(0, |readers| readers.all.len()) {
            // Who was removed, or replaced, reads nothing any more.
            let stays = |node: &usize| !self.hosts[*node].retired && membership::belongs(self, *node);
            let stay: Vec<usize> = (0..self.hosts.len()).filter(stays).collect();
            let node = stay[reader % stay.len()];
            let has_come = |world: &World| {
                let readers = world.readers.as_ref();
                readers.is_some_and(|readers| world.hosts[node].kept.head >= readers.all[reader].next())
            };
            let came = self.run_until_true(until, has_come)?;
            ensure(came, NAME, || format!("n{} lets reader {reader} wait for ever", node + 1))?;
            if let Some(mut readers) = self.readers.take() {
                self.resumes_at(node, &mut readers, reader)?;
                self.readers = Some(readers);
            }
        }
        Ok(())
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

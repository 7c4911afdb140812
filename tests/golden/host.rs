//! One machine of the stage: a process that may die at any moment, and a disk that keeps what was
//! synced before.

use eldest::protocol::{Envelope, Input, Message};
use eldest::protocol::{Log, Node, Recovered, Seq, Settings, SnapshotMeta, Term, Vote, Write};
use eldest::types::{Boot, Incarnation, Index, NodeId, Now, Time, WallTime};

pub struct Host {
    pub settings: Settings,
    pub node: Option<Node>,
    pub disk: Disk,
    /// What a process that does not get the processor has not seen yet.
    pub asleep: Option<Vec<Input>>,
    lives: u64,
    unsynced: Vec<(Seq, Write)>,
    /// How many of `unsynced` the sync under way covers.
    syncing: usize,
    durable: Seq,
    outbox: Vec<(Seq, Envelope)>,
}

#[derive(Clone)]
pub struct Disk {
    number: u64,
    pub incarnation: Incarnation,
    pub vote: Vote,
    pub log: Log,
    pub snapshot: SnapshotMeta,
}

impl Disk {
    /// The second disk of node 3 is i31, so that a script shows whose it is.
    fn blank(node: NodeId, number: u64) -> Disk {
        Disk {
            number,
            incarnation: Incarnation(u64::from(node.0) * 16 + number),
            vote: Vote::default(),
            log: Log::new(SnapshotMeta::default(), Vec::new()),
            snapshot: SnapshotMeta::default(),
        }
    }

    fn take(&mut self, write: Write) {
        match write {
            Write::Vote(vote) => self.vote = vote,
            Write::Append(records) => records.iter().for_each(|r| self.log.push(r.clone())),
            Write::Truncate { above } => self.log.truncate(above),
            Write::Install(meta) | Write::Rebase(meta) => {
                self.log.reset(meta.clone());
                self.snapshot = meta;
            }
            Write::Trim { upto } => self.log.trim(upto),
        }
    }
}

impl Host {
    pub fn new(settings: Settings) -> Host {
        Host {
            disk: Disk::blank(settings.me, 0),
            settings,
            node: None,
            asleep: None,
            lives: 0,
            unsynced: Vec::new(),
            syncing: 0,
            durable: Seq::default(),
            outbox: Vec::new(),
        }
    }

    pub fn start(&mut self, now: Now) {
        self.lives += 1;
        let log = &self.disk.log;
        let base = log.base().index;
        let recovered = Recovered {
            boot: self.boot(),
            incarnation: self.disk.incarnation,
            vote: self.disk.vote,
            base: log.meta_at(base),
            records: log.range(base, log.last().index),
        };
        self.durable = Seq::default();
        self.node = Some(Node::new(self.settings.clone(), recovered, now));
    }

    /// The process dies; what was not synced and what had not been sent dies with it.
    pub fn crash(&mut self) {
        self.node = None;
        self.asleep = None;
        self.unsynced.clear();
        self.syncing = 0;
        self.outbox.clear();
    }

    pub fn wipe(&mut self) {
        self.disk = Disk::blank(self.settings.me, self.disk.number + 1);
    }

    /// A bad line was found at or below the sync marker: what precedes it is kept, the disk is a new
    /// one in name, and nothing that it promised is believed.
    pub fn doubt(&mut self, keep: Index) {
        let Disk { vote, mut log, snapshot, number, .. } = self.disk.clone();
        log.truncate(keep);
        let vote = Vote { formed: true, admitted: false, ..vote };
        let blank = Disk::blank(self.settings.me, number + 1);
        self.disk = Disk { vote, log, snapshot, ..blank };
    }

    /// The promise file is lost or bad: the log is there, but not what was promised beyond it.
    pub fn forget(&mut self) {
        self.doubt(self.disk.log.last().index);
        self.disk.vote.promise = Term::default();
    }

    /// What the driver puts around a message that the core did not make.
    pub fn envelope(&self, to: NodeId, message: Message) -> Envelope {
        Envelope {
            from: self.settings.me,
            to,
            boot: self.boot(),
            incarnation: self.disk.incarnation,
            admitted: self.disk.vote.admitted,
            format: self.settings.format,
            message,
        }
    }

    fn boot(&self) -> Boot {
        Boot(u64::from(self.settings.me.0) * 100 + self.lives)
    }

    pub fn life(&self) -> u64 {
        self.lives
    }

    pub fn deadline(&self) -> Time {
        match (&self.node, &self.asleep) {
            (Some(node), None) => node.deadline(),
            _ => Time::NEVER,
        }
    }

    pub fn write(&mut self, seq: Seq, write: Write) {
        self.unsynced.push((seq, write));
    }

    /// True if a sync begins: there is something to be synced, and none is under way.
    pub fn start_sync(&mut self) -> bool {
        let starts = self.syncing == 0 && !self.unsynced.is_empty();
        if starts {
            self.syncing = self.unsynced.len();
        }
        starts
    }

    /// The sync under way is done: everything that had been written when it began is on disk. Says up
    /// to where that is.
    pub fn synced(&mut self) -> Seq {
        for (seq, write) in self.unsynced.drain(..self.syncing) {
            self.disk.take(write);
            self.durable = seq;
        }
        self.syncing = 0;
        self.durable
    }

    pub fn is_writing(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Keeps a message back until what it needs is on disk.
    pub fn post(&mut self, after: Seq, envelope: Envelope) {
        self.outbox.push((after, envelope));
    }

    pub fn ready_to_leave(&mut self) -> Vec<Envelope> {
        let durable = self.durable;
        let (ready, waiting) =
            std::mem::take(&mut self.outbox).into_iter().partition(|(after, _)| *after <= durable);
        self.outbox = waiting;
        let ready: Vec<(Seq, Envelope)> = ready;
        ready.into_iter().map(|(_, envelope)| envelope).collect()
    }
}

/// All clocks of the stage run alike: scripts are about order, not about drift.
pub fn clocks(us: u64) -> Now {
    Now { mono: Time(us), wall: WallTime(us) }
}

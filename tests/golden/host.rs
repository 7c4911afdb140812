//! One machine of the stage: a process that may die at any moment, and a disk that keeps
//! everything synced before.

use eldest::protocol::{After, Envelope, Message};
use eldest::protocol::{Log, Node, Recovered, Seq, Settings, SnapshotMeta, Term, Vote};
use eldest::replica::{Brought, DiskWrite, In, Replica, SnapshotOrder, Start};
use eldest::store::Store;
use eldest::types::{
    Boot, ClusterId, Entry, Format, Incarnation, Index, NodeId, Now, Payload, Record, Time, WallTime,
};

pub struct Host {
    pub settings: Settings,
    /// The number of records from one snapshot to the next.
    pub snapshot_every: u64,
    pub replica: Option<Replica>,
    pub disk: Disk,
    /// Inputs that wait while the process gets no processor.
    pub asleep: Option<Vec<In>>,
    /// The write as which the next write of a leader arrives.
    pub garbled: Option<Payload>,
    lives: u64,
    unsynced: Vec<Op>,
    /// The number of operations in `unsynced` that the sync under way covers.
    syncing: usize,
    durable: Seq,
    outbox: Vec<(After, Envelope)>,
}

#[derive(Clone)]
pub struct Disk {
    number: u64,
    pub incarnation: Incarnation,
    pub vote: Vote,
    pub log: Log,
    pub snapshot: Snapshot,
}

/// A state and its position.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub meta: SnapshotMeta,
    origin: Index,
    store: Store,
}

/// A write that has not reached the disk yet.
pub enum Op {
    Log(Seq, DiskWrite),
    /// A snapshot from a leader replaces log and state.
    Install(Seq, Snapshot),
    /// A snapshot of the node's own state.
    Snapshot(Snapshot),
}

impl Snapshot {
    pub fn of(order: SnapshotOrder) -> Snapshot {
        Snapshot { meta: order.meta, origin: order.origin, store: order.store }
    }

    /// The form in which it arrives with a message.
    pub fn brought(&self) -> Brought {
        let Snapshot { meta, origin, store } = self.clone();
        Brought::Snapshot { meta, origin, store: store.into() }
    }
}

impl Disk {
    /// The second disk of node 3 is i31, so that a script shows to which node a disk belongs.
    fn blank(node: NodeId, number: u64) -> Disk {
        Disk {
            number,
            incarnation: Incarnation(u64::from(node.0) * 16 + number),
            vote: Vote::default(),
            log: Log::new(SnapshotMeta::default(), Vec::new()),
            snapshot: Snapshot::default(),
        }
    }

    fn take(&mut self, op: Op) {
        match op {
            Op::Log(_, DiskWrite::Vote(vote)) => self.vote = vote,
            Op::Log(_, DiskWrite::Append(records)) => {
                records.iter().for_each(|r| self.log.push(r.clone()));
            }
            Op::Log(_, DiskWrite::Truncate { above }) => self.log.truncate(above),
            Op::Log(_, DiskWrite::Trim { upto }) => self.log.trim(upto),
            Op::Log(_, DiskWrite::Install | DiskWrite::Rebase(..)) => unreachable!("no write of the log"),
            Op::Install(_, snapshot) => {
                self.log.reset(snapshot.meta.clone());
                self.snapshot = snapshot;
            }
            // A snapshot that was installed meanwhile is newer.
            Op::Snapshot(snapshot) if snapshot.meta.index() < self.snapshot.meta.index() => {}
            Op::Snapshot(snapshot) => self.snapshot = snapshot,
        }
    }
}

impl Host {
    pub fn new(settings: Settings, snapshot_every: u64) -> Host {
        Host {
            disk: Disk::blank(settings.me, 0),
            settings,
            snapshot_every,
            replica: None,
            asleep: None,
            garbled: None,
            lives: 0,
            unsynced: Vec::new(),
            syncing: 0,
            durable: Seq::default(),
            outbox: Vec::new(),
        }
    }

    /// The protocol's core, if the process lives.
    pub fn core(&self) -> Option<&Node> {
        self.replica.as_ref().map(Replica::core)
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
        let snapshot = self.disk.snapshot.clone();
        let start = Start {
            settings: self.settings.clone(),
            snapshot_every: self.snapshot_every,
            recovered,
            store: snapshot.store,
            snapshot_index: snapshot.meta.index(),
            origin: snapshot.origin,
        };
        self.durable = Seq::default();
        self.replica = Some(Replica::new(start, now));
    }

    /// The process dies; everything unsynced and everything unsent is lost with it.
    pub fn crash(&mut self) {
        self.replica = None;
        self.asleep = None;
        self.unsynced.clear();
        self.syncing = 0;
        self.outbox.clear();
    }

    pub fn wipe(&mut self) {
        self.disk = Disk::blank(self.settings.me, self.disk.number + 1);
    }

    /// A bad line was found at or below the sync marker: the records before it are kept, the disk gets a new
    /// incarnation, and none of its promises is believed. A snapshot beyond that line goes as well.
    pub fn doubt(&mut self, keep: Index) {
        let Disk { vote, mut log, snapshot, number, .. } = self.disk.clone();
        let vote = Vote { formed: true, admitted: false, ..vote };
        let blank = Disk::blank(self.settings.me, number + 1);
        self.disk = if keep < snapshot.meta.index() {
            Disk { vote, ..blank }
        } else {
            log.truncate(keep);
            Disk { vote, log, snapshot, ..blank }
        };
    }

    /// The promise file is lost or bad: the log is there, but not the promises beyond it.
    pub fn forget(&mut self) {
        self.doubt(self.disk.log.last().index);
        self.disk.vote.promise = Term::default();
    }

    /// The envelope that the driver puts around a message that the core did not make.
    pub fn envelope(&self, to: NodeId, message: Message) -> Envelope {
        Envelope {
            from: self.settings.me,
            to,
            boot: self.boot(),
            incarnation: self.disk.incarnation,
            admitted: self.disk.vote.admitted,
            cluster: ClusterId::NONE,
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
        match (&self.replica, &self.asleep) {
            (Some(replica), None) => replica.deadline(),
            _ => Time::NEVER,
        }
    }

    pub fn write(&mut self, op: Op) {
        self.unsynced.push(op);
    }

    /// The snapshot that has just replaced log and state.
    pub fn installed(&self) -> Option<Snapshot> {
        let replica = self.replica.as_ref()?;
        let log = replica.core().log();
        let meta = log.meta_at(log.base().index);
        Some(Snapshot { meta, origin: replica.origin(), store: replica.committed().clone() })
    }

    /// True if a sync begins: there is something to be synced, and none is under way.
    pub fn start_sync(&mut self) -> bool {
        let starts = self.syncing == 0 && !self.unsynced.is_empty();
        if starts {
            self.syncing = self.unsynced.len();
        }
        starts
    }

    /// The sync under way is done: everything written before it began is on disk. Returns the indexes of the
    /// own snapshots among it, and how far the log is on disk.
    pub fn synced(&mut self) -> (Vec<Index>, Seq) {
        let mut taken = Vec::new();
        for op in self.unsynced.drain(..self.syncing) {
            match &op {
                Op::Log(seq, _) | Op::Install(seq, _) => self.durable = *seq,
                Op::Snapshot(snapshot) => taken.push(snapshot.meta.index()),
            }
            self.disk.take(op);
        }
        self.syncing = 0;
        (taken, self.durable)
    }

    pub fn is_writing(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Keeps a message back until the writes that it needs are on disk.
    pub fn post(&mut self, after: After, envelope: Envelope) {
        self.outbox.push((after, envelope));
    }

    pub fn ready_to_leave(&mut self) -> Vec<Envelope> {
        let durable = self.durable;
        let (ready, waiting) = std::mem::take(&mut self.outbox)
            .into_iter()
            .partition(|(after, _)| after.is_met(durable, durable));
        self.outbox = waiting;
        let ready: Vec<(After, Envelope)> = ready;
        ready.into_iter().map(|(_, envelope)| envelope).collect()
    }

    /// The message as the process receives it: with another write, if a bit flips on the way.
    pub fn receive(&mut self, mut envelope: Envelope) -> Envelope {
        if let Message::Append { records, .. } = &mut envelope.message
            && let Some(write) = records.iter().position(|record| matches!(record.entry, Entry::Client(_)))
            && let Some(garbled) = self.garbled.take()
        {
            let mut arrived: Vec<Record> = records.to_vec();
            arrived[write].entry = Entry::Client(garbled);
            *records = arrived.into();
        }
        envelope
    }
}

/// A write of the scripts makes a user.
pub fn user(name: &str) -> Payload {
    let text = format!("{{\"name\":\"{name}\"}}").into();
    Payload { kind: 1, format: Format(1), call: None, text }
}

/// All clocks of the stage run at the same rate: scripts are about order, not about drift.
pub fn clocks(us: u64) -> Now {
    Now { mono: Time(us), wall: WallTime(us) }
}

//! A machine: its clock, its disk, and the process that runs the production core on them.

use std::collections::{BTreeMap, VecDeque};

use eldest::protocol::{Envelope, Node, Seq, Settings, SnapshotMeta};
use eldest::types::{NodeId, Now, RequestId, Time, Vector, WallTime};

use crate::disk::Disk;
use crate::leases::Leasing;
use crate::store::{Command, Store, Tag};

/// A clock that is off by an amount and runs at its own rate.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub offset: u64,
    pub rate_ppm: i64,
    pub wall_offset: i64,
}

impl Clock {
    pub fn now(&self, truth: u64) -> Now {
        let drift = truth as i64 / 1000 * self.rate_ppm / 1000;
        let mono = self.offset.wrapping_add_signed(truth as i64 + drift);
        let wall = 1_700_000_000_000_000_i64 + truth as i64 + self.wall_offset;
        Now { mono: Time(mono), wall: WallTime(wall as u64) }
    }

    /// The first true instant at which this clock shows `time`.
    pub fn truth_at(&self, time: Time) -> u64 {
        let local = time.0.saturating_sub(self.offset) as i128;
        let truth = local * 1_000_000 / (1_000_000 + self.rate_ppm as i128);
        truth.clamp(0, u64::MAX as i128 / 4) as u64 + 2
    }
}

/// What a client asks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Command(Command),
    Read { key: u32 },
    ReadPair { key: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub client: usize,
    pub tag: Tag,
    pub ask: Ask,
    /// The answer was judged before it was written: a refusal that waits to leave (P14).
    pub judged: bool,
}

#[derive(Debug)]
pub struct Host {
    pub id: NodeId,
    pub settings: Settings,
    pub core: Option<Node>,
    /// Counts the processes: what belongs to an earlier one is void.
    pub life: u64,
    pub disk: Disk,
    pub store: Store,
    /// Messages that wait for their durability.
    pub held: VecDeque<(Seq, Envelope, Option<Store>)>,
    pub done: Seq,
    pub clock: Clock,
    pub paused_until: u64,
    pub powered: bool,
    pub calls: BTreeMap<RequestId, Call>,
    pub next_request: u64,
    pub snapshot: Option<(SnapshotMeta, Store)>,
    /// The state that came with the message at hand, and what of it was left out because this node has it.
    pub incoming: Option<Store>,
    pub left_out: Vector,
    pub tick_at: u64,
    /// How long a sync takes at least, in µs.
    pub sync_us: u64,
    /// Every sync takes exactly that long: for figures.
    pub steady: bool,
    /// Its state was damaged in memory on purpose.
    pub flipped: bool,
    pub leasing: Leasing,
}

impl Host {
    pub fn new(settings: Settings, disk: Disk, clock: Clock) -> Host {
        Host {
            id: settings.me,
            settings,
            core: None,
            life: 0,
            disk,
            store: Store::default(),
            held: VecDeque::new(),
            done: Seq::default(),
            clock,
            paused_until: 0,
            powered: true,
            calls: BTreeMap::new(),
            next_request: 0,
            snapshot: None,
            incoming: None,
            left_out: Vector::default(),
            tick_at: u64::MAX,
            sync_us: 200,
            steady: false,
            flipped: false,
            leasing: Leasing::default(),
        }
    }

    pub fn is_up(&self) -> bool {
        self.core.is_some()
    }

    /// Everything that a process holds is gone.
    pub fn lose_process(&mut self) {
        self.core = None;
        self.life += 1;
        self.held.clear();
        self.calls.clear();
        self.done = Seq::default();
        self.incoming = None;
        self.tick_at = u64::MAX;
        self.flipped = false;
        self.paused_until = 0;
        self.leasing = Leasing::default();
    }

    pub fn request(&mut self, call: Call) -> RequestId {
        self.next_request += 1;
        let request = RequestId(self.next_request);
        self.calls.insert(request, call);
        request
    }

    /// The state with everything in the log applied, committed or not: what a leader judges by.
    pub fn ahead(&self) -> Store {
        let mut ahead = self.store.clone();
        if let Some(core) = &self.core {
            for record in core.log().records().filter(|record| record.index() > self.store.applied) {
                ahead.apply(record);
            }
        }
        ahead
    }
}

//! A machine: its clock, its disk, and the process that runs the production replica on them.

use std::collections::{BTreeMap, VecDeque};

use eldest::feed::Ring;
use eldest::protocol::{After, Envelope, Node, Seq, Settings};
use eldest::replica::{Call, CallId, Replica};
use eldest::store::Store;
use eldest::types::{Epoch, Incarnation, Index, Members, NodeId, Now, Position, Record, Time, WallTime};

use crate::calls::Waiting;
use crate::disk::Disk;
use crate::state::{State, Transfer};

/// The start of the simulation, by a wall clock that is right.
const START: i64 = 1_800_000_000_000_000;

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
        let wall = START + truth as i64 + self.wall_offset;
        Now { mono: Time(mono), wall: WallTime(wall.max(0) as u64) }
    }

    /// The wall clock shows another time, mostly within the hour; now and then it is set to 1970, to another
    /// century, to the year 9999, or to the right time.
    pub fn jump(&mut self, drawn: u64) {
        const CENTURY: i64 = 100 * 365 * 24 * 3_600 * 1_000_000;
        match drawn % 8 {
            0 => self.wall_offset = -START,
            1 => self.wall_offset = 80 * CENTURY,
            2 => self.wall_offset = CENTURY,
            3 => self.wall_offset = 0,
            _ => self.wall_offset += drawn as i64 - 3_600_000_000,
        }
    }

    /// The first true instant at which this clock shows `time`.
    pub fn truth_at(&self, time: Time) -> u64 {
        let local = time.0.saturating_sub(self.offset) as i128;
        let truth = local * 1_000_000 / (1_000_000 + self.rate_ppm as i128);
        truth.clamp(0, u64::MAX as i128 / 4) as u64 + 2
    }
}

#[derive(Debug)]
pub struct Host {
    pub id: NodeId,
    pub settings: Settings,
    pub replica: Option<Replica>,
    /// Counts the processes; events of an earlier process are void.
    pub life: u64,
    pub disk: Disk,
    /// The state that the replica must have, by the records that it says it has applied and the states that
    /// it was given.
    pub state: State,
    /// Every record that this process wrote or found in its log.
    pub written: BTreeMap<Position, Record>,
    /// Messages that wait until the writes that they rely on are durable.
    pub held: VecDeque<(After, Envelope, Option<Transfer>)>,
    pub done: Seq,
    pub promised: Seq,
    /// The process knows that its disk has no room.
    pub full: bool,
    pub clock: Clock,
    pub paused_until: u64,
    pub powered: bool,
    pub calls: BTreeMap<CallId, Waiting>,
    pub next_call: CallId,
    /// Calls that wait for the next round.
    pub inbox: Vec<(Waiting, Call)>,
    /// The state that came with the current message.
    pub incoming: Option<Transfer>,
    /// Whether a state from another node is being prepared (P49), how long that takes at least and at most,
    /// in µs, and the newest such state.
    pub prepares: bool,
    pub prepare_us: (u64, u64),
    pub prepared_from: Option<Transfer>,
    /// The events that the process has sent to the readers of its feed.
    pub kept: Ring,
    pub tick_at: u64,
    /// The number of ticks in a row that have left something due.
    pub restless: u32,
    /// The least time that a sync takes, in µs.
    pub sync_us: u64,
    /// Every sync takes exactly that long, for figures.
    pub steady: bool,
    /// The epoch that it led when it was given its last input: it may answer and then end that epoch.
    pub led: Option<Epoch>,
    /// Its members at that time, by its log: it may answer and then give one of them a vote.
    pub members_before: Option<Members>,
    /// Its state was damaged in memory on purpose.
    pub flipped: bool,
    /// The last disk under which its state was damaged.
    pub suspect: Option<Incarnation>,
    /// Its damaged state has been replaced by another node's since.
    pub replaced: bool,
    /// An older copy of its disk was put back.
    pub put_back: bool,
    /// Another machine has taken its place for good.
    pub retired: bool,
}

impl Host {
    pub fn new(settings: Settings, disk: Disk, clock: Clock) -> Host {
        Host {
            id: settings.me,
            settings,
            replica: None,
            life: 0,
            state: disk.durable.snapshot.state.clone(),
            disk,
            written: BTreeMap::new(),
            held: VecDeque::new(),
            done: Seq::default(),
            promised: Seq::default(),
            full: false,
            clock,
            paused_until: 0,
            powered: true,
            calls: BTreeMap::new(),
            next_call: CallId::default(),
            inbox: Vec::new(),
            incoming: None,
            prepares: false,
            prepare_us: (100, 1_000),
            prepared_from: None,
            kept: Ring::default(),
            tick_at: u64::MAX,
            restless: 0,
            sync_us: 200,
            steady: false,
            led: None,
            members_before: None,
            flipped: false,
            suspect: None,
            replaced: false,
            put_back: false,
            retired: false,
        }
    }

    /// The protocol's core, if the process lives.
    pub fn core(&self) -> Option<&Node> {
        self.replica.as_ref().map(Replica::core)
    }

    pub fn is_up(&self) -> bool {
        self.replica.is_some()
    }

    /// The index that the state has reached.
    pub fn applied(&self) -> Index {
        self.state.store.applied().index
    }

    /// A bit of its state flips in memory.
    pub fn flip_a_bit(&mut self) {
        let Some(replica) = &mut self.replica else { return };
        replica.damage();
        (self.flipped, self.replaced) = (true, false);
        self.suspect = Some(self.disk.durable.incarnation);
    }

    /// Its state was damaged, perhaps in an earlier process: a leader remembers what that process said (P25).
    pub fn is_suspect(&self) -> bool {
        self.suspect == Some(self.disk.durable.incarnation)
    }

    /// Its state is not what its records make of it.
    pub fn is_flipped(&self) -> bool {
        self.flipped && !self.replaced
    }

    /// The state as it is written to disk. A bit flips in a row that has not changed, and such a row is not
    /// written. The bit may have flipped after this state was set apart.
    pub fn as_written(&self, store: &Store) -> Store {
        let mut store = store.clone();
        // No role is granted where bits flip.
        if self.is_flipped() && store.last_token() != self.state.store.last_token() {
            store.damage();
        }
        store
    }

    /// All that a process holds is gone.
    pub fn lose_process(&mut self) {
        self.replica = None;
        self.life += 1;
        self.held.clear();
        self.calls.clear();
        self.inbox.clear();
        self.written.clear();
        self.done = Seq::default();
        self.promised = Seq::default();
        self.full = false;
        self.incoming = None;
        self.prepares = false;
        self.prepared_from = None;
        self.tick_at = u64::MAX;
        self.restless = 0;
        self.led = None;
        self.flipped = false;
        self.replaced = false;
        self.paused_until = 0;
    }

    /// A tick may make something else due, once. A node that is never done asks for ticks forever.
    pub fn comes_to_rest(&mut self, ticked: bool, now: Now) -> bool {
        let due = self.replica.as_ref().is_some_and(|replica| replica.deadline() <= now.mono);
        if ticked {
            self.restless = if due { self.restless + 1 } else { 0 };
        }
        self.restless < 3
    }

    /// Remembers the party that waits for an answer.
    pub fn expect(&mut self, waiting: Waiting) -> CallId {
        self.next_call.0 += 1;
        self.calls.insert(self.next_call, waiting);
        self.next_call
    }
}

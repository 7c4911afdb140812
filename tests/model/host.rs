//! One node with its disk and its clock. It is the only place that calls the replica.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use eldest::protocol::{Envelope, Event, Node, Settings, Write};
use eldest::replica::{DiskWrite, FeedEvent, In, Out, Replica, Start};
use eldest::store::Store;
use eldest::types::{Boot, NodeId, Now, Position, Time, WallTime};

use crate::disk::Disk;
use crate::history::{Breach, History};

/// More records than any case writes: there are no snapshots.
const NEVER: u64 = 1_000_000;

#[derive(Clone, Debug)]
pub struct Host {
    replica: Replica,
    pub disk: Disk,
    /// It moves only by a tick, and then to the replica's own deadline: between two ticks
    /// everything is immediate.
    clock: Time,
    boots: u64,
}

/// Two hosts with the same print are one state. The replica's print leaves out leases, waits for roles,
/// restores and snapshots, because no case has any: all calls are writes without a key, and hand-overs. It
/// also leaves out whether its feed has reported an election, and since when it has a leader: no output that
/// is checked here contains that.
impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.replica.fingerprint(state);
        (&self.disk, self.clock, self.boots).hash(state);
    }
}

/// The moment when a write becomes safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// It becomes safe before anything else happens.
    AtOnce,
    /// It becomes safe by a separate action: a crash may come first.
    Later,
}

impl Host {
    /// Clocks start late: instant zero stands for "never" in the core.
    pub fn new(settings: Settings, disk: Disk) -> Host {
        let clock = Time(1_000_000_000);
        let replica = start(settings, &disk, 1, clock);
        Host { replica, disk, clock, boots: 1 }
    }

    pub fn id(&self) -> NodeId {
        self.replica.me()
    }

    pub fn core(&self) -> &Node {
        self.replica.core()
    }

    /// Carries out all consequences of an input; returns the messages that reach the network.
    pub fn feed(&mut self, input: In, sync: Sync, history: &mut History) -> Result<Vec<Envelope>, Breach> {
        let mut sent = Vec::new();
        self.handle(input, history, &mut sent)?;
        while sync == Sync::AtOnce && !self.disk.queue.is_empty() {
            self.sync(history, &mut sent)?;
        }
        Ok(sent)
    }

    pub fn sync(&mut self, history: &mut History, sent: &mut Vec<Envelope>) -> Result<(), Breach> {
        let (done, free) = self.disk.sync()?;
        for envelope in free {
            self.release(envelope, sent)?;
        }
        self.handle(In::Durable(done), history, sent)
    }

    /// The replica's next deadline has come.
    pub fn tick(&mut self, sync: Sync, history: &mut History) -> Result<Vec<Envelope>, Breach> {
        let deadline = self.replica.deadline();
        if deadline != Time::NEVER {
            self.clock = self.clock.max(deadline);
        }
        self.feed(In::Tick, sync, history)
    }

    /// The process dies and loses everything that was not safe, and starts again.
    pub fn crash(&mut self, kept: usize) -> Result<(), Breach> {
        self.disk.lose(kept)?;
        self.boots += 1;
        self.replica = start(self.core().settings().clone(), &self.disk, self.boots, self.clock);
        Ok(())
    }

    fn handle(&mut self, input: In, history: &mut History, sent: &mut Vec<Envelope>) -> Result<(), Breach> {
        let now = at(self.clock);
        let outs = quietly(|| self.replica.handle(now, input))?;
        for out in outs {
            self.carry_out(out, history, sent)?;
        }
        if self.core().leads().is_some() {
            history.note_leader(self.core().vote().promise)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, out: Out, history: &mut History, sent: &mut Vec<Envelope>) -> Result<(), Breach> {
        match out {
            Out::Write { seq, write } => self.disk.queue.push_back((seq, of_log(write)?)),
            Out::Send { envelope, after } => {
                if let Some(free) = self.disk.hold(envelope, after) {
                    self.release(free, sent)?;
                }
            }
            Out::Feed(FeedEvent::Record { at, .. }) => self.applies(at, history)?,
            Out::Answer(call, answer) => history.note_answer(call, &answer)?,
            Out::Event(Event::Opened { epoch }) => history.note_opened(epoch),
            Out::Event(_) | Out::Feed(_) | Out::Probe(_) | Out::Members { .. } => {}
            Out::SendSnapshot { .. }
            | Out::SendState(_)
            | Out::Snapshot(_)
            | Out::Prepare(_)
            | Out::Discard(_) => {
                return Err(Breach::Unexpected);
            }
            Out::End(_) => return Err(Breach::Stopped),
        }
        Ok(())
    }

    /// The replica has applied a record, which stands in its log.
    fn applies(&self, at: Position, history: &mut History) -> Result<(), Breach> {
        let record = self.core().log().get(at.index).filter(|record| record.position == at);
        let record = record.ok_or(Breach::CommittedDiffer)?;
        history.note_applied(record, self.core().vote().promise.epoch)
    }

    /// The message leaves. Its statements must be safe by now (I9).
    fn release(&self, envelope: Envelope, sent: &mut Vec<Envelope>) -> Result<(), Breach> {
        let matched = matched(&envelope).and_then(|index| self.core().log().position(index));
        let promise = self.core().vote().promise.epoch;
        if !self.disk.covers(&envelope.message, promise, matched) {
            return Err(Breach::SentBeforeDurable);
        }
        sent.push(envelope);
        Ok(())
    }
}

fn matched(envelope: &Envelope) -> Option<u64> {
    use eldest::protocol::{BeatReply, Message};
    match envelope.message {
        Message::Appended { matched, .. } | Message::HeartbeatReply(BeatReply { matched, .. }) => {
            Some(matched)
        }
        _ => None,
    }
}

/// No case takes snapshots.
fn of_log(write: DiskWrite) -> Result<Write, Breach> {
    match write {
        DiskWrite::Vote(vote) => Ok(Write::Vote(vote)),
        DiskWrite::Append(records) => Ok(Write::Append(records)),
        DiskWrite::Truncate { above } => Ok(Write::Truncate { above }),
        DiskWrite::Trim { .. } | DiskWrite::Install | DiskWrite::Rebase(..) => Err(Breach::Unexpected),
    }
}

fn start(settings: Settings, disk: &Disk, boots: u64, clock: Time) -> Replica {
    let recovered = disk.recover(boot(settings.me, boots));
    let (store, snapshot_index, origin) = (Store::default(), 0, 0);
    let start = Start { settings, snapshot_every: NEVER, recovered, store, snapshot_index, origin };
    Replica::new(start, at(clock))
}

fn boot(node: NodeId, count: u64) -> Boot {
    Boot(u64::from(node.0) * 100 + count)
}

fn at(clock: Time) -> Now {
    Now { mono: clock, wall: WallTime(0) }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A failed assertion of the core is a finding with a path to it, and does not end the checker's thread.
fn quietly<T>(call: impl FnOnce() -> T) -> Result<T, Breach> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    QUIET.set(false);
    result.map_err(|_| Breach::Assertion)
}

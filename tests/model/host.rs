//! One node with its disk and its clock. The only place that calls the core.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use eldest::protocol::{Envelope, Event, Input, Node, Output, Settings};
use eldest::types::{Boot, NodeId, Now, Time, WallTime};

use crate::disk::Disk;
use crate::history::{Breach, History};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub node: Node,
    pub disk: Disk,
    /// Moves only by a tick, and then to the core's own deadline: between two ticks all is immediate.
    clock: Time,
    boots: u64,
}

/// When a write is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before anything else happens.
    AtOnce,
    /// By an action of its own: a crash may come first.
    Later,
}

impl Host {
    /// Clocks start late: instant zero stands for "never" in the core.
    pub fn new(settings: Settings, disk: Disk) -> Host {
        let clock = Time(1_000_000_000);
        let node = Node::new(settings.clone(), disk.recover(boot(settings.me, 1)), at(clock));
        Host { node, disk, clock, boots: 1 }
    }

    pub fn id(&self) -> NodeId {
        self.node.settings().me
    }

    /// Carries out everything that follows from an input; returns what reaches the network.
    pub fn feed(&mut self, input: Input, sync: Sync, history: &mut History) -> Result<Vec<Envelope>, Breach> {
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
        self.handle(Input::Durable(done), history, sent)
    }

    /// The core's next deadline has come.
    pub fn tick(&mut self, sync: Sync, history: &mut History) -> Result<Vec<Envelope>, Breach> {
        let deadline = self.node.deadline();
        if deadline != Time::NEVER {
            self.clock = self.clock.max(deadline);
        }
        self.feed(Input::Tick, sync, history)
    }

    /// The process dies with what was not safe, and starts again.
    pub fn crash(&mut self, kept: usize) -> Result<(), Breach> {
        self.disk.lose(kept)?;
        self.boots += 1;
        let settings = self.node.settings().clone();
        let recovered = self.disk.recover(boot(settings.me, self.boots));
        self.node = Node::new(settings, recovered, at(self.clock));
        Ok(())
    }

    fn handle(
        &mut self,
        input: Input,
        history: &mut History,
        sent: &mut Vec<Envelope>,
    ) -> Result<(), Breach> {
        let now = at(self.clock);
        let outputs = quietly(|| self.node.handle(now, input))?;
        for output in outputs {
            self.carry_out(output, history, sent)?;
        }
        if self.node.leads().is_some() {
            history.note_leader(self.node.vote().promise)?;
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        output: Output,
        history: &mut History,
        sent: &mut Vec<Envelope>,
    ) -> Result<(), Breach> {
        match output {
            Output::Write { seq, write } => self.disk.queue.push_back((seq, write)),
            Output::Send { envelope, after } => {
                if let Some(free) = self.disk.hold(envelope, after) {
                    self.release(free, sent)?;
                }
            }
            Output::Apply(records) => {
                history.note_applied(&records, self.node.vote().promise.epoch)?;
            }
            Output::Verdict { request, verdict } => history.note_verdict(request, &verdict)?,
            Output::Event(Event::Opened { epoch }) => history.note_opened(epoch),
            Output::Event(_) | Output::Probe(_) => {}
            Output::SendSnapshot { .. }
            | Output::Restore(_)
            | Output::SendMerge { .. }
            | Output::SendOverride { .. }
            | Output::Merge { .. }
            | Output::Override(_) => return Err(Breach::Unexpected),
            Output::Stop(_) => return Err(Breach::Stopped),
        }
        Ok(())
    }

    /// The message leaves. What it says must be safe by now (I9).
    fn release(&self, envelope: Envelope, sent: &mut Vec<Envelope>) -> Result<(), Breach> {
        let matched = matched(&envelope).and_then(|index| self.node.log().position(index));
        let promise = self.node.vote().promise.epoch;
        if !self.disk.covers(&envelope.message, promise, matched) {
            return Err(Breach::SentBeforeDurable);
        }
        sent.push(envelope);
        Ok(())
    }
}

fn matched(envelope: &Envelope) -> Option<u64> {
    use eldest::protocol::Message;
    match envelope.message {
        Message::Appended { matched, .. } | Message::HeartbeatReply { matched, .. } => Some(matched),
        _ => None,
    }
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

/// A failed assertion of the core is a finding with a path to it, not the end of the checker's thread.
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

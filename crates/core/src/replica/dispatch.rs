//! The dispatch of inputs, and how the replica comes to rest.

use super::answer::Denied;
use super::io::{Call, CallId, In, Out};
use super::state::{Replica, Turn};
use crate::protocol::{Impasse, Input};
use crate::types::{Now, Time};

impl Replica {
    /// Takes in one input and says what to do about it.
    pub fn handle(&mut self, now: Now, input: In) -> Vec<Out> {
        if self.has_ended() {
            return Vec::new();
        }
        // A monotonic clock does not go back; if one does, time stands still until it has caught up.
        self.now = Now { mono: now.mono.max(self.now.mono), wall: now.wall };
        self.dispatch(input);
        self.settle();
        self.out.extend(self.ended.clone().map(Out::End));
        std::mem::take(&mut self.out)
    }

    fn dispatch(&mut self, input: In) {
        match input {
            In::Tick => self.tick(),
            In::Message(envelope, brought) => {
                self.hear(*envelope, brought);
            }
            In::StateTooLarge { to, bytes } => {
                let most = self.core.settings().limits.merge_bytes;
                self.tell_core(Input::MergeFails { other: to, why: Impasse::TooLarge { bytes, most } });
            }
            In::Durable(seq) => self.tell_core(Input::Durable(seq)),
            In::Promised(seq) => self.tell_core(Input::Promised(seq)),
            In::DiskFull(full) => self.tell_core(Input::DiskFull(full)),
            In::PeerRefused(peer) => self.tell_core(Input::PeerRefused(peer)),
            In::Calls(calls) => self.take_calls(calls),
            In::Gone(call) => self.caller_has_gone(call),
            In::Unheard(unheard) => self.take_back(&unheard),
            In::Prepared(prepared) => self.is_prepared(prepared),
            In::SnapshotEnded(reached) => {
                self.snapshots.ended(reached);
                self.inputs.extend(reached.map(Input::SnapshotTaken));
            }
        }
    }

    fn tick(&mut self) {
        if self.now.mono >= self.core.deadline() {
            self.tell_core(Input::Tick);
        }
        self.tick_leases();
    }

    /// What is answered by the clock is answered before the rest takes its time.
    fn take_calls(&mut self, calls: Vec<(CallId, Call)>) {
        let (looks, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(_, call)| call.only_looks());
        looks.into_iter().chain(others).for_each(|(id, call)| self.take_call(id, call));
    }

    fn take_call(&mut self, id: CallId, call: Call) {
        if self.has_ended() {
            return self.deny(id, Denied::Stopping);
        }
        match call {
            Call::Write { command, key } => self.on_write(id, &command, key),
            Call::Restore(document) => self.on_restore(id, document),
            Call::Read(level) => self.on_read(id, level),
            Call::HandOver { to } => self.on_hand_over(id, to),
            Call::Service(change) => self.on_service(id, change),
            Call::Form { without } => self.on_form(id, without),
            Call::ChangeMembers(change) => self.on_change_members(id, change),
            Call::Acquire(acquire) => self.on_acquire(id, *acquire),
            Call::Renew(renewal) => self.on_renew(id, renewal),
            Call::Untie(untie) => self.on_untie(id, untie),
            Call::Register(registration) => self.on_register(id, registration),
            Call::Stop => self.on_stop(),
        }
    }

    /// Goes on until nothing is left to do: what one thing brings about may be another.
    fn settle(&mut self) {
        while !self.has_ended() {
            self.follow_leadership();
            if let Some(turn) = self.roles.next_turn() {
                self.take_turn(turn);
            } else if self.settle_restore() {
                continue;
            } else if !self.round.is_empty() {
                self.propose_round();
            } else if let Some(input) = self.inputs.pop_front() {
                self.tell_core(input);
            } else if !self.settle_taking() {
                break;
            }
        }
        if !self.has_ended() {
            self.settle_untold();
            self.settle_snapshots();
            self.note_leader();
        }
    }

    fn take_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Acquire(acquiring) => self.take_acquire(acquiring),
            Turn::Renew(renewing) => self.take_renewal(renewing),
            Turn::Freed(role) => self.take_freed(&role),
        }
    }

    /// Gives the protocol an input, and carries out what it says.
    pub(super) fn tell_core(&mut self, input: Input) {
        for output in self.core.handle(self.now, input) {
            if self.has_ended() {
                return;
            }
            self.carry_out(output);
        }
    }

    fn note_leader(&mut self) {
        match self.core.leader() {
            Some(leader) if leader == self.me() => self.led_at = self.now.mono,
            Some(leader) => self.led_at = self.core.last_heard(leader).unwrap_or(self.led_at),
            None => {}
        }
    }

    /// When to call `handle` with a tick, if nothing else happens before.
    pub fn deadline(&self) -> Time {
        if self.has_ended() {
            return Time::NEVER;
        }
        let own = self.next_snapshot().min(self.roles.deadline()).min(self.restore_deadline());
        self.core.deadline().min(own)
    }
}

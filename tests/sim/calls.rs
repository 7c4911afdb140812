//! What a node's store and its clients see: records applied, snapshots, calls judged and answered.

use std::collections::VecDeque;

use eldest::protocol::mutant::{self, Mutant};
use eldest::protocol::{Checkpoint, Event as Told, Fault, Input, Refusal, SnapshotMeta, Verdict};
use eldest::types::{Entry, Epoch, Format, Index, NodeId, Record, RequestId};

use crate::checks::{Check, Violation, ensure};
use crate::client::Answer;
use crate::disk::Op;
use crate::host::{Ask, Call};
use crate::store::{Command, Effect, Store, encode};
use crate::world::{Event, World};

/// Every ten records a snapshot falls due.
pub const BOUNDARY: Index = 10;
impl World {
    pub fn apply(&mut self, node: usize, record: &Record, inputs: &mut VecDeque<Input>) -> Check {
        if self.hosts[node].store.side.is_some() {
            return self.apply_to_side(node, record, inputs);
        }
        let id = self.hosts[node].id;
        let index = record.index();
        if index == self.checks.survival.len() + 1 {
            self.checks.time.committed(record)?;
        }
        let promise = self.hosts[node].core.as_ref().map_or(Epoch::ZERO, |core| core.vote().promise.epoch);
        self.checks.survival.committed(id, promise, record)?;
        if self.lessees.is_some() {
            return self.apply_to_product(node, record, inputs);
        }
        let host = &mut self.hosts[node];
        let happened = host.store.apply(record);
        let (digest, flipped) = (host.store.digest, host.flipped);
        if !flipped {
            self.checks.applied.state(id, index, digest)?;
        }
        if let Some((tag, command, effect)) = happened {
            let second_half = matches!(command, Command::Half { second: true, .. });
            self.checks.applied.effect(tag, second_half, index)?;
            self.checks.refused.applied(tag)?;
            if let (Command::Grant { role }, Effect::Token(token)) = (command, effect) {
                self.checks.tokens.granted(role, index, token)?;
            }
        }
        if index.is_multiple_of(BOUNDARY) {
            self.snapshot(node, index);
            inputs.push_back(Input::Digest(Checkpoint { index, digest }));
        }
        Ok(())
    }

    pub fn snapshot(&mut self, node: usize, index: Index) {
        let host = &mut self.hosts[node];
        if let Some(core) = &host.core {
            let meta = core.log().meta_at(index);
            let state = host.store.frozen();
            host.disk.push(Op::Snapshot(meta, state));
        }
    }

    pub fn restore(&mut self, node: usize, meta: &SnapshotMeta) -> Check {
        let id = self.hosts[node].id;
        let Some(state) = self.hosts[node].incoming.take() else {
            return ensure(false, "P26 a snapshot comes with a state", || format!("{id} at {}", meta.at));
        };
        ensure(state.applied == meta.index(), "P26 a snapshot comes with a state", || {
            format!("{id}: state at {}, meta at {}", state.applied, meta.at)
        })?;
        let forward = state.applied >= self.hosts[node].store.applied;
        ensure(forward, "I7 applied once", || format!("{id} goes back to {}", state.applied))?;
        self.replaces(node, &state)?;
        self.hosts[node].snapshot = Some((meta.clone(), state.clone()));
        self.hosts[node].store = state;
        Ok(())
    }

    pub fn told(&mut self, node: usize, told: Told) -> Check {
        let id = self.hosts[node].id;
        self.note(|| format!("{id} {told:?}"));
        if let Told::Opened { epoch } = told {
            self.openings.push((self.now, id));
            self.witness_opening();
            if let Some(core) = &self.hosts[node].core.as_ref().filter(|_| !self.is_available()) {
                self.checks.survival.opened(id, epoch, core.log())?;
            }
        }
        Ok(())
    }

    pub fn stopped(&mut self, node: usize, fault: Fault) -> Check {
        let host = &self.hosts[node];
        let expected = fault == Fault::Odd && host.flipped;
        let id = host.id;
        self.note(|| format!("{id} stops: {fault:?}"));
        ensure(expected, "no node stops without a cause", || format!("{id} stops: {fault:?}"))?;
        self.odd.push(id);
        self.restart_doubtful(node);
        Ok(())
    }
}

impl World {
    pub fn call(&mut self, node: usize, call: Call) -> Check {
        let host = &mut self.hosts[node];
        let Some(core) = host.core.as_ref() else {
            return Ok(());
        };
        let last = core.last().index;
        let judge = core.is_open();
        let command = match call.ask {
            Ask::Command(command) => command,
            Ask::Read { .. } | Ask::ReadPair { .. } => {
                let request = host.request(call);
                return self.feed(node, Input::Read { request, at_least: 0 });
            }
        };
        if judge && matches!(command, Command::Cas { .. } | Command::Create { .. }) {
            let ahead = host.ahead();
            if ahead.result(call.tag.op).is_none() && !ahead.would_change(command) {
                return self.refuse_command(node, call, last);
            }
        }
        self.propose(node, call, command)
    }

    /// A refusal is a read (P14): it waits for what it was judged against.
    pub fn refuse_command(&mut self, node: usize, call: Call, last: Index) -> Check {
        if mutant::is_on(Mutant::RefusalUnconfirmed) {
            self.reply(call, Answer::Mismatch);
            return Ok(());
        }
        let request = self.hosts[node].request(Call { judged: true, ..call });
        self.feed(node, Input::Read { request, at_least: last })
    }

    pub fn propose(&mut self, node: usize, call: Call, command: Command) -> Check {
        let host = &mut self.hosts[node];
        let format = match command {
            Command::Grant { role: 1 } => host.settings.format,
            _ => Format(1),
        };
        let parts = match command {
            Command::Pair { key, value } if mutant::is_on(Mutant::SplitBatch) => {
                vec![Command::Half { key, second: false, value }, Command::Half { key, second: true, value }]
            }
            whole => vec![whole],
        };
        let mut entries = Vec::new();
        for part in parts {
            let request = host.request(call);
            entries.push((request, Entry::Client(encode(call.tag, part, format))));
        }
        self.feed(node, Input::Propose(entries))
    }

    pub fn verdict(&mut self, node: usize, request: RequestId, verdict: Verdict) -> Check {
        if self.is_available() {
            return self.side_verdict(node, request, &verdict);
        }
        if self.lessees.is_some() {
            return self.lease_verdict(node, request, &verdict);
        }
        let host = &mut self.hosts[node];
        let Some(call) = host.calls.remove(&request) else {
            return Ok(());
        };
        let answer = match (&verdict, call.ask) {
            (Verdict::Written { .. }, _) => match host.store.result(call.tag.op) {
                Some(effect) => Answer::Effect(effect),
                None => return Ok(()),
            },
            (Verdict::Readable { .. }, Ask::Command(_)) => Answer::Mismatch,
            (Verdict::Readable { index }, ask) => {
                let behind = host.store.applied < *index;
                ensure(!behind, "P13 reads see what they must", || format!("{call:?} at {index}"))?;
                read(&host.store, ask)?
            }
            (Verdict::Refused(refusal), ask) => {
                if matches!(ask, Ask::Command(_)) && !call.judged {
                    self.checks.refused.refused(call.tag)?;
                }
                Answer::Refused(hint(*refusal))
            }
            (Verdict::Unknown | Verdict::Done, _) => Answer::Unknown,
        };
        self.reply(call, answer);
        Ok(())
    }

    pub fn reply(&mut self, call: Call, answer: Answer) {
        if self.rng.chance(995) || self.clients.reliable {
            let delay = self.net.delay(&mut self.rng);
            self.after(delay, Event::Answer { call, answer });
        }
    }
}

fn hint(refusal: Refusal) -> Option<NodeId> {
    match refusal {
        Refusal::NotLeader { leader } => leader,
        _ => None,
    }
}

fn read(store: &Store, ask: Ask) -> Result<Answer, Violation> {
    match ask {
        Ask::Read { key } => Ok(Answer::Value(store.register(key))),
        Ask::ReadPair { key } => {
            let pair = store.pair(key);
            let whole = pair.is_none_or(|(first, second)| first == second);
            ensure(whole, "P12 a batch is whole", || format!("pair {key} reads {pair:?}"))?;
            Ok(Answer::Value(pair.map(|(first, _)| first)))
        }
        Ask::Command(_) => Ok(Answer::Mismatch),
    }
}

//! Clients' and operators' calls.

use super::api::{Ask, CatchUp, Denied, Level, Opinion, Reply, View, Written};
use super::engine::Engine;
use super::pending::Call;
use super::{End, clock};
use crate::protocol::{Input, ServiceChange};
use crate::storage::line;
use crate::store::{Command, Judged};
use crate::types::{self, Entry, NodeId, Owner, Payload, Text};

impl Engine {
    pub fn ask(&mut self, ask: Ask) {
        match ask {
            Ask::Write { command, payload, call, reply } => self.on_write(&command, payload, call, reply),
            Ask::Step { payload, reply } => self.on_step(payload, reply),
            Ask::Read { level, reply } => self.on_read(level, reply),
            Ask::IsLeader(reply) => drop(reply.send(self.core.is_leader(clock::now().mono))),
            Ask::HandOver { to, reply } => self.on_hand_over(to, reply),
            Ask::Service { change, reply } => self.on_service(change, reply),
            Ask::Form { without, reply } => {
                let formed = self.core.vote().formed;
                if !formed {
                    self.feed(Input::Form { without });
                }
                let _ = reply.send(if formed { Err(Denied::AlreadyFormed) } else { Ok(()) });
            }
            Ask::Opinion { candidate, reply } => drop(reply.send(self.opinion(candidate))),
            Ask::CatchUp { snapshot_id, reply } => drop(reply.send(self.catch_up(snapshot_id))),
            Ask::Lease(ask) => self.on_lease(ask),
            Ask::Status(reply) => drop(reply.send(self.status())),
            Ask::Stop => self.on_stop(),
        }
    }

    fn on_write(
        &mut self,
        command: &Command,
        payload: Payload,
        call: Option<types::Call>,
        reply: Reply<Written>,
    ) {
        if !self.core.is_open() {
            return drop(reply.send(Err(self.not_leading())));
        }
        if !self.look_ahead() {
            return;
        }
        let now = self.core.stamp(clock::now()).unwrap_or_default();
        match self.states.newest().judge(command, call, now) {
            Judged::Accept => self.propose(payload, Call::Write { reply, outcome: None }),
            Judged::Replay { at, reply: first } => {
                self.answer_judged(reply, Ok(Written { position: at, acks: None, reply: first }));
            }
            Judged::Rejected(rejection) => self.answer_judged(reply, Err(Denied::Rejected(rejection))),
            Judged::TooManyKeys => {
                drop(reply.send(Err(Denied::TooMany { bound: "idempotency keys that are remembered" })));
            }
        }
    }

    /// Brings the newest state up to the log's end. False only if that cannot be: then the loop ends.
    pub fn look_ahead(&mut self) -> bool {
        let followed = self.states.follow(self.core.log());
        if let Err(error) = followed {
            self.end = Some(End::Unreadable { index: self.core.last().index, error });
        }
        self.end.is_none()
    }

    fn on_step(&mut self, payload: Payload, reply: Reply<Written>) {
        if !self.core.is_open() {
            return drop(reply.send(Err(self.not_leading())));
        }
        if !self.look_ahead() {
            return;
        }
        self.propose(payload, Call::Write { reply, outcome: None });
    }

    pub fn propose(&mut self, payload: Payload, call: Call) {
        let request = self.pending.next();
        self.pending.add(request, call);
        let index = self.core.last().index + 1;
        self.feed(Input::Propose(vec![(request, Entry::Client(payload))]));
        if !self.pending.waits(request) {
            return;
        }
        // It stands in the log, perhaps with the leader's own records behind it: what it brings about there is what its
        // caller will be told.
        if self.look_ahead() {
            let outcome = self.states.brought_about(index).map(|applied| applied.outcome.clone());
            self.pending.set_outcome(request, outcome);
            self.move_lines(index);
        }
        self.settle_leases();
    }

    /// What was judged by records that are not committed yet, or by a leader that may have been deposed, leaves
    /// only once neither is so (P14).
    fn answer_judged(&mut self, reply: Reply<Written>, answer: Result<Written, Denied>) {
        let at_least = self.core.last().index;
        let call = Call::Judged { reply, answer: Box::new(answer) };
        self.request(call, |request| Input::Read { request, at_least });
    }

    fn on_read(&mut self, level: Level, reply: Reply<View>) {
        match level {
            Level::Local => drop(reply.send(Ok(self.view()))),
            Level::Leader if self.core.is_leader(clock::now().mono) => drop(reply.send(Ok(self.view()))),
            Level::Leader => drop(reply.send(Err(self.not_leading()))),
            Level::Linear => self.request(Call::Read(reply), |request| Input::Read { request, at_least: 0 }),
        }
    }

    pub fn request(&mut self, call: Call, input: impl FnOnce(types::RequestId) -> Input) {
        let request = self.pending.next();
        self.pending.add(request, call);
        self.feed(input(request));
    }

    fn on_hand_over(&mut self, to: Option<NodeId>, reply: Reply<()>) {
        self.request(Call::Admin(reply), |request| Input::HandOver { request, to });
    }

    fn on_service(&mut self, change: ServiceChange, reply: Reply<()>) {
        self.request(Call::Admin(reply), |request| Input::Service { request, change });
    }

    fn opinion(&self, candidate: NodeId) -> Opinion {
        let approved = self.core.opinion_of(candidate);
        let reason = match (approved, self.core.leader()) {
            _ if self.setup.member(candidate).is_none() => "no node of the topology has that index",
            (true, _) => "this node would approve it now",
            (false, Some(leader)) if leader == self.me() => "this node leads",
            (false, Some(_)) => "this node follows a leader that it does not suspect",
            (false, None) => "this node may not vote, or waits for another candidate",
        };
        Opinion { approved: approved && self.setup.member(candidate).is_some(), reason }
    }

    /// What follows a boundary: from the log, or from the newest boundary's state if the log has gone on.
    fn catch_up(&self, snapshot_id: u64) -> Result<CatchUp, Denied> {
        if !self.core.is_open() {
            return Err(self.not_leading());
        }
        let from = snapshot_id.saturating_mul(self.setup.snapshot_every).saturating_add(self.origin);
        let from = from.min(self.core.commit_index());
        if from >= self.core.log().base().index {
            return Ok(CatchUp { snapshot: None, lines: self.lines_text(from) });
        }
        let (id, index, store) = self.boundary.clone().unwrap_or_else(|| {
            let store = self.states.committed().clone();
            let index = store.applied().index;
            ((index - self.origin) / self.setup.snapshot_every, index, store)
        });
        Ok(CatchUp { snapshot: Some((id, store)), lines: self.lines_text(index) })
    }

    /// The committed records above an index, as the seed writes them.
    fn lines_text(&self, above: u64) -> Vec<String> {
        let records = self.core.log().range(above, self.core.commit_index().max(above));
        records.iter().map(|record| line::seed_text(&record.entry)).collect()
    }

    pub fn view(&self) -> View {
        let store = self.states.committed().clone();
        let index = store.applied().index;
        let leader = self.core.leader();
        let age = match leader {
            Some(leader) if leader == self.me() => 0,
            _ => clock::now().mono.since(self.led_at).0 / 1000,
        };
        View { store, leader, epoch: self.core.vote().promise.epoch, index, age_ms: age }
    }

    /// Why the service is down, in the words of whoever stopped it last.
    pub fn reason_for_stop(&self) -> Text {
        let said = self.core.log().records().filter_map(|record| match &record.entry {
            Entry::ServiceDown { owner: Owner::Operator, reason, .. } => Some(reason.clone()),
            _ => None,
        });
        said.last().unwrap_or_else(|| "".into())
    }

    /// Ends the loop; a leader hands over first, so that its lease is given up before its port closes (C5).
    fn on_stop(&mut self) {
        if !self.core.is_open() || self.setup.members.len() == 1 {
            self.end = Some(End::Asked);
            return;
        }
        self.request(Call::Farewell, |request| Input::HandOver { request, to: None });
    }
}

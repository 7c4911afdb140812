//! Carrying out what the protocol says: what concerns disk and network goes on to the driver, the rest ends here.

use super::answer::{Answer, Denied, Written};
use super::feed::{self, FeedEvent};
use super::io::{DiskWrite, End, Out};
use super::state::{Replica, Waiting};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Checkpoint, Event, Input, Output, Refusal, Verdict, Write};
use crate::types::{Digest, Entry, Owner, Record, RequestId, Text};

impl Replica {
    pub(super) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Write { seq, write } => {
                if let Some(write) = self.disk_write(write) {
                    self.out.push(Out::Write { seq, write });
                }
            }
            Output::Send { envelope, after } => self.out.push(Out::Send { envelope, after }),
            Output::SendSnapshot { to, term, after } => self.out.push(Out::SendSnapshot { to, term, after }),
            Output::SendMerge { to, base, after } => self.send_merge(to, base, after),
            Output::SendOverride { to, term, base, after } => self.send_override(to, term, base, after),
            Output::Merge { meta, .. } => self.merge(meta),
            Output::Override(meta) => self.be_overridden(meta),
            Output::Apply(records) => self.apply(&records),
            // The state has been replaced when the disk was told to install it.
            Output::Restore(meta) => {
                let history = self.committed().history();
                self.tell_readers(feed::of_snapshot(meta.at, history));
            }
            Output::Verdict { request, verdict } => self.verdict(request, verdict),
            Output::Members { cluster, members } => self.out.push(Out::Members { cluster, members }),
            Output::Probe(peer) => self.out.push(Out::Probe(peer)),
            Output::Event(event) => self.tell(event),
            Output::Stop(fault) => self.end(End::Fault(fault)),
        }
    }

    fn disk_write(&mut self, write: Write) -> Option<DiskWrite> {
        match write {
            Write::Vote(vote) => Some(DiskWrite::Vote(vote)),
            Write::Append(records) => Some(DiskWrite::Append(records)),
            Write::Truncate { above } => Some(DiskWrite::Truncate { above }),
            Write::Trim { upto } => Some(DiskWrite::Trim { upto }),
            Write::Install(_) => self.install(),
            Write::Rebase(_) => self.rebase_disk(),
        }
    }

    fn tell(&mut self, event: Event) {
        let me = self.me();
        self.out.extend(feed::of_protocol(&event, me, &mut self.electing).map(Out::Feed));
        self.out.push(Out::Event(event));
    }

    /// A merge begins an epoch at once. Until the disk knows, the same node may begin it again, with another state at the same place.
    pub(super) fn settle_untold(&mut self) {
        if self.core.promise_is_durable() || mutant::is_on(Mutant::MergeToldAtOnce) {
            self.out.extend(self.untold.take().map(Out::Feed));
        }
    }

    /// What comes after a merge is committed on the disk that has its epoch.
    fn tell_readers(&mut self, event: FeedEvent) {
        self.out.extend(self.untold.take().into_iter().chain([event]).map(Out::Feed));
    }

    fn apply(&mut self, records: &[Record]) {
        for record in records {
            if record.index() <= self.versions.meta().index() {
                continue;
            }
            let committed = match self.versions.commit(record, records) {
                Ok(committed) => committed,
                Err(error) => return self.end(End::Unreadable { index: record.index(), error }),
            };
            let effect = committed.effect;
            let (at, stamp) = (record.position, record.stamp);
            let (history, drafts) = (effect.history, effect.drafts);
            self.tell_readers(FeedEvent::Record { at, history, stamp, drafts });
            if effect.applied.restored {
                self.roles.start_over();
                self.snapshots.start_over();
            } else {
                self.count_leases(effect.leases);
                self.snapshots.changed(effect.applied.changes);
            }
            if let Some(store) = committed.boundary {
                let digest = Digest { version: self.core.settings().digests, value: store.digest() };
                let checkpoint = Checkpoint { index: record.index(), digest };
                self.inputs.push_back(Input::Digest(checkpoint));
                self.snapshots.due(self.versions.meta().clone(), self.versions.origin(), store);
                self.versions.settle(self.snapshots.boundary_mut());
            }
        }
    }

    fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        if let Some(waiting) = self.pending.take(request) {
            self.decided(waiting, verdict);
        }
    }

    /// Tells a caller what became of its call, or goes on with it.
    pub(super) fn decided(&mut self, waiting: Waiting, verdict: Verdict) {
        match (waiting, verdict) {
            (Waiting::Write { call, outcome: Ok(reply) }, Verdict::Written { position, acks }) => {
                self.answer(call, Ok(Answer::Written(Written { position, acks: Some(acks), reply })));
            }
            (Waiting::Write { call, outcome: Err(rejection) }, Verdict::Written { .. }) => {
                self.deny(call, Denied::Rejected(rejection));
            }
            (Waiting::Judged { call, answer }, Verdict::Readable { .. }) => {
                self.answer(call, answer.map(Answer::Written));
            }
            (Waiting::Read(call), Verdict::Readable { .. }) => {
                let view = self.view(self.now.mono);
                self.answer(call, Ok(Answer::View(view.into())));
            }
            (Waiting::Admin(call), Verdict::Done | Verdict::Written { .. } | Verdict::Readable { .. }) => {
                self.answer(call, Ok(Answer::Done));
            }
            (Waiting::Acquire(acquiring), verdict) => self.acquire_verdict(acquiring, verdict),
            (Waiting::Renew(renewing), verdict) => self.renew_verdict(renewing, verdict),
            (Waiting::Restore { call, outcome }, verdict) => self.restore_verdict(call, outcome, verdict),
            (Waiting::Leases(record), verdict) => self.leases_verdict(record, &verdict),
            (Waiting::Farewell, _) => self.end(End::Asked),
            (waiting, verdict) => {
                let denied = self.denied(&verdict);
                if let Some(call) = waiting.call() {
                    self.deny(call, denied);
                }
            }
        }
    }

    /// What whoever asked is told of a verdict that answers nothing.
    pub(super) fn denied(&self, verdict: &Verdict) -> Denied {
        let Verdict::Refused(refusal) = verdict else {
            return Denied::Unknown;
        };
        match refusal {
            Refusal::NotLeader { .. } => self.not_leading(),
            // Another leader's record stands in its place: it never happens, and that leader may be asked.
            Refusal::Superseded => self.not_leading(),
            Refusal::HandingOver => Denied::HandingOver,
            Refusal::ServiceDown => Denied::ServiceDown { reason: self.reason_for_stop() },
            Refusal::DiskFull => Denied::DiskFull,
            Refusal::TooMany => Denied::TooMany { bound: "writes that are not committed yet" },
            Refusal::TooManyReads => Denied::TooMany { bound: "answers that wait for a round" },
            Refusal::FormatNotShared => Denied::FormatNotShared,
            Refusal::NotAnHeir => Denied::NotAnHeir,
            Refusal::Members(refusal) => Denied::Members(*refusal),
        }
    }

    /// Why this node does not answer as the leader.
    pub(super) fn not_leading(&self) -> Denied {
        match self.core.leader() {
            Some(leader) if leader != self.me() => Denied::NotLeader { leader },
            _ if !self.core.is_admitted() && self.core.vote().formed => Denied::CatchingUp,
            // In available mode nobody needs a majority.
            _ if self.core.reaches_majority(self.now.mono) => Denied::NoLeader,
            _ => Denied::NoQuorum,
        }
    }

    /// Why the service is down, in the words of whoever stopped it last.
    fn reason_for_stop(&self) -> Text {
        let said = self.core.log().records().filter_map(|record| match &record.entry {
            Entry::ServiceDown { owner: Owner::Operator, reason, .. } => Some(reason.clone()),
            _ => None,
        });
        said.last().unwrap_or_else(|| "".into())
    }
}

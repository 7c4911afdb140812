//! A leader hands over as planned (P18), or to a returning elder that takes over (P19).

use super::messages::{Cause, Certificate, Message, Refusal, Verdict};
use super::mutant::{self, Mutant};
use super::node::{Leader, Node, RoleState};
use super::roles::{HandingOver, Seeking, Yielded};
use super::settings::Takeover;
use crate::types::{NodeId, RequestId};

impl Node {
    pub(in crate::protocol) fn on_hand_over(&mut self, request: RequestId, to: Option<NodeId>) {
        let Some(leader) = self.as_open_leader() else {
            let leader = self.leader();
            return self.verdict(request, Verdict::Refused(Refusal::NotLeader { leader }));
        };
        if leader.leading.handing.is_some() {
            return self.verdict(request, Verdict::Refused(Refusal::HandingOver));
        }
        if to == Some(self.me()) {
            return self.verdict(request, Verdict::Done);
        }
        match to.map_or_else(|| leader.best_heir(), |heir| leader.can_inherit(heir).then_some(heir)) {
            Some(heir) => self.start_hand_over(heir, Some(request)),
            None => self.verdict(request, Verdict::Refused(Refusal::NotAnHeir)),
        }
    }

    fn start_hand_over(&mut self, heir: NodeId, request: Option<RequestId>) {
        let until = self.mono() + self.settings.timing.window;
        if let Some(leading) = self.leading_mut() {
            leading.handing = Some(HandingOver { heir, request, until });
        }
    }

    /// A returning elder takes over once it has been up, caught up and off its hold for a while.
    pub(in crate::protocol) fn consider_takeover(&mut self) {
        let never = self.settings.takeover == Takeover::Never;
        let leader = self.as_open_leader().filter(|leader| !never && leader.leading.handing.is_none());
        if let Some(heir) = leader.and_then(Leader::returning_elder) {
            self.start_hand_over(heir, None);
        }
    }

    /// Without room on its disk a leader is of no use: it looks for an heir at each beat (P24).
    pub(in crate::protocol) fn leave_if_full(&mut self) {
        let leader =
            self.as_open_leader().filter(|leader| self.journal.is_full() && leader.leading.handing.is_none());
        if let Some(heir) = leader.and_then(Leader::best_heir) {
            self.start_hand_over(heir, None);
        }
    }

    pub(in crate::protocol) fn settle_hand_over(&mut self) {
        let Some(leading) = self.leading() else {
            return;
        };
        let Some(handing) = leading.handing.clone() else {
            return;
        };
        let last = self.last().index;
        let matched = leading.progress.get(&handing.heir).map(|progress| progress.matched);
        // Under `ack = all` what has been written is answered first: nobody can afterwards.
        let answered = self.acknowledged() == last || mutant::is_on(Mutant::AckAllWhenDeposed);
        if matched == Some(last) && self.journal.commit() == last && answered {
            self.yield_to(handing);
        } else if self.mono() >= handing.until {
            // Nothing has left yet, so this epoch may go on.
            if let Some(leading) = self.leading_mut() {
                leading.handing = None;
            }
            if let Some(request) = handing.request {
                self.verdict(request, Verdict::Refused(Refusal::NotAnHeir));
            }
        }
    }

    /// Ends this epoch: the lease goes first, then the certificate (P18, C6).
    fn yield_to(&mut self, handing: HandingOver) {
        let (now, window) = (self.mono(), self.settings.timing.window);
        let certificate = Certificate { epoch: self.promise(), heir: handing.heir, last: self.last() };
        let until = now + window;
        self.yielded = Some(Yielded { certificate, request: handing.request, next_send: now, until });
        if let Some(leading) = self.leading_mut() {
            leading.handing = None;
        }
        if mutant::is_on(Mutant::ServeAfterHandOver) {
            return;
        }
        self.leave_leading(Cause::HandedOver);
        self.epochs.end(certificate.epoch);
        let mut seeking = Seeking::new(now, Cause::HandedOver);
        seeking.quiet_until = until;
        self.role = RoleState::Seeking(seeking);
    }

    /// Repeats the certificate until the heir leads or the window closes.
    pub(in crate::protocol) fn settle_yielded(&mut self) {
        let Some(yielded) = &mut self.yielded else {
            return;
        };
        let heir = yielded.certificate.heir;
        let request = yielded.request;
        let now = self.now.mono;
        let follows =
            matches!(&self.role, RoleState::Following(f) if f.leader == heir && f.tentative.is_none());
        if follows || now >= yielded.until {
            self.yielded = None;
            if let Some(request) = request {
                let verdict = if follows { Verdict::Done } else { Verdict::Unknown };
                self.verdict(request, verdict);
            }
            return;
        }
        if now >= yielded.next_send {
            yielded.next_send = now + self.settings.timing.declare;
            if self.journal.promise().epoch != yielded.certificate.epoch {
                return;
            }
            let certificate = yielded.certificate;
            self.send(heir, Message::HandOver(certificate));
        }
    }

    pub(in crate::protocol) fn on_certificate(&mut self, from: NodeId, certificate: Certificate) {
        let current = certificate.epoch == self.promise() && certificate.epoch.leader == from;
        let complete = self.last() == certificate.last;
        if !current
            || !complete
            || certificate.heir != self.me()
            || !self.may_vote()
            || self.journal.is_full()
        {
            return;
        }
        self.epochs.end(certificate.epoch);
        self.grants.void_epoch(certificate.epoch);
        if matches!(self.role, RoleState::Following(_)) {
            self.role = RoleState::Seeking(Seeking::new(self.mono(), Cause::HandedOver));
        }
        if matches!(self.role, RoleState::Seeking(_)) && self.claiming().is_none() {
            self.claim(Some(certificate));
        }
    }
}

impl Leader<'_> {
    /// Whether that node could lead now: its disk counts, it answers, it is nearly caught up.
    fn can_inherit(self, heir: NodeId) -> bool {
        let node = self.node;
        let lag = node.settings.limits.ready_lag;
        self.leading.progress.get(&heir).is_some_and(|progress| {
            let answers = progress.answered_at + node.fresh() >= node.mono();
            let near = progress.matched + lag >= node.last().index;
            answers && near && !progress.full && progress.matched >= self.leading.open_index
        }) && node.peer_counts(heir)
            && !node.peers.is_refused(heir)
    }

    /// Who comes next: the lowest index that could lead, those on hold last (P4, P20).
    pub(in crate::protocol) fn best_heir(self) -> Option<NodeId> {
        let heirs = self.node.other_voters().filter(|heir| self.can_inherit(*heir));
        heirs.min_by_key(|heir| (self.node.peers.is_on_hold(*heir, self.node.mono()), *heir))
    }

    fn returning_elder(self) -> Option<NodeId> {
        self.best_heir().filter(|heir| *heir < self.node.me() && self.is_stable(*heir))
    }

    fn is_stable(self, heir: NodeId) -> bool {
        let (now, stable_for) = (self.node.mono(), self.node.settings.timing.stable_for);
        self.node.peers.get(heir).is_some_and(|peer| {
            let steady = peer.up_since.max(self.leading.since) + stable_for <= now;
            steady && !peer.hold.lasts(now)
        })
    }
}

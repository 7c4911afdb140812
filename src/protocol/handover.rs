//! Planned hand-over (P18) and takeover by a returning elder (P19).

use super::io::{Cause, Refusal, Verdict};
use super::message::{Certificate, Message};
use super::mutant::{self, Mutant};
use super::node::{Node, Role};
use super::seeking::Seeking;
use super::settings::Takeover;
use crate::types::{NodeId, RequestId, Time};

/// The leader waits for its heir to have everything. Writes are refused meanwhile, none is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct HandingOver {
    heir: NodeId,
    pub request: Option<RequestId>,
    pub until: Time,
}

/// The certificate has left: this node's epoch is over, whatever the heir makes of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Yielded {
    certificate: Certificate,
    request: Option<RequestId>,
    next_send: Time,
    pub until: Time,
}

impl Yielded {
    pub fn deadline(&self) -> Time {
        self.until.min(self.next_send)
    }
}

impl Node {
    pub(super) fn on_hand_over(&mut self, request: RequestId, to: Option<NodeId>) {
        let leader = self.leader();
        let Some(leading) = self.leading().filter(|leading| leading.opened) else {
            return self.verdict(request, Verdict::Refused(Refusal::NotLeader { leader }));
        };
        if leading.handing.is_some() {
            return self.verdict(request, Verdict::Refused(Refusal::HandingOver));
        }
        if to == Some(self.me()) {
            return self.verdict(request, Verdict::Done);
        }
        match to.map_or_else(|| self.best_heir(), |heir| self.can_inherit(heir).then_some(heir)) {
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

    /// Whether that node could lead now: its disk counts, it answers, it is nearly caught up.
    fn can_inherit(&self, node: NodeId) -> bool {
        let Some(leading) = self.leading() else {
            return false;
        };
        let lag = self.settings.limits.ready_lag;
        leading.progress.get(&node).is_some_and(|progress| {
            let answers = progress.answered_at + self.fresh() >= self.mono();
            let near = progress.matched + lag >= self.log.last().index;
            answers && near && !progress.full && progress.matched >= leading.open_index
        }) && self.peer_counts(node)
            && !self.peers.is_refused(node)
    }

    /// Who comes next: the lowest index that could lead, those on hold last (P4, P20).
    pub(super) fn best_heir(&self) -> Option<NodeId> {
        let heirs = self.settings.others().filter(|node| self.can_inherit(*node));
        heirs.min_by_key(|node| (self.peers.is_held(*node, self.mono()), *node))
    }

    /// A returning elder takes over once it has been up, caught up and off its hold for a while.
    pub(super) fn consider_takeover(&mut self) {
        let Some(leading) = self.leading() else {
            return;
        };
        let busy = leading.handing.is_some() || !leading.opened;
        if self.settings.takeover == Takeover::Never || busy {
            return;
        }
        let elder = self.best_heir().filter(|heir| *heir < self.me() && self.is_stable(*heir));
        if let Some(heir) = elder {
            self.start_hand_over(heir, None);
        }
    }

    fn is_stable(&self, node: NodeId) -> bool {
        let (now, stable_for) = (self.mono(), self.settings.timing.stable_for);
        let leading_for = self.leading().map_or(now, |leading| leading.since);
        self.peers.get(node).is_some_and(|peer| {
            let steady = peer.up_since.max(leading_for) + stable_for <= now;
            steady && !peer.hold.holds(now)
        })
    }

    /// Without room on its disk a leader is of no use: it looks for an heir at each beat (P24).
    pub(super) fn leave_if_full(&mut self) {
        let busy = self.leading().is_none_or(|leading| leading.handing.is_some() || !leading.opened);
        if self.full
            && !busy
            && let Some(heir) = self.best_heir()
        {
            self.start_hand_over(heir, None);
        }
    }

    pub(super) fn settle_hand_over(&mut self) {
        let Some(leading) = self.leading() else {
            return;
        };
        let Some(handing) = leading.handing.clone() else {
            return;
        };
        let last = self.log.last().index;
        let matched = leading.progress.get(&handing.heir).map(|progress| progress.matched);
        if matched == Some(last) && self.commit == last {
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
        let certificate = Certificate { epoch: self.promise(), heir: handing.heir, last: self.log.last() };
        let until = now + window;
        self.yielded = Some(Yielded { certificate, request: handing.request, next_send: now, until });
        if let Some(leading) = self.leading_mut() {
            leading.handing = None;
        }
        if mutant::is_on(Mutant::ServeAfterHandOver) {
            return;
        }
        self.leave_leading(Cause::HandedOver);
        self.over = self.over.max(certificate.epoch);
        let mut seeking = Seeking::new(now, Cause::HandedOver);
        seeking.quiet_until = until;
        self.role = Role::Seeking(seeking);
    }

    /// Repeats the certificate until the heir leads or the window closes.
    pub(super) fn settle_yielded(&mut self) {
        let Some(yielded) = &mut self.yielded else {
            return;
        };
        let heir = yielded.certificate.heir;
        let request = yielded.request;
        let now = self.now.mono;
        let follows = matches!(&self.role, Role::Following(f) if f.leader == heir && f.tentative.is_none());
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
            if self.vote.promise.epoch != yielded.certificate.epoch {
                return;
            }
            let certificate = yielded.certificate;
            self.send(heir, Message::HandOver(certificate));
        }
    }

    pub(super) fn on_certificate(&mut self, from: NodeId, certificate: Certificate) {
        let current = certificate.epoch == self.promise() && certificate.epoch.leader == from;
        let complete = self.log.last() == certificate.last;
        if !current || !complete || certificate.heir != self.me() || !self.may_vote() || self.full {
            return;
        }
        self.over = self.over.max(certificate.epoch);
        self.grants.void(from);
        if matches!(self.role, Role::Following(_)) {
            self.role = Role::Seeking(Seeking::new(self.mono(), Cause::HandedOver));
        }
        if matches!(self.role, Role::Seeking(_)) && self.claiming().is_none() {
            self.claim(Some(certificate));
        }
    }
}

//! A leader that has handed over sends its certificate to its heir until the heir leads; the heir claims by that certificate (P18).

use super::{Node, RoleState, Yielded};
use crate::protocol::messages::{Cause, Certificate, Event, Message, Verdict};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{NodeId, Time};

impl Yielded {
    pub(super) fn deadline(&self) -> Time {
        self.until.min(self.next_send)
    }
}

impl Node {
    /// Repeats the certificate until the heir leads or the window closes. The caller hears `Done` only when
    /// this node follows the heir. If the window closes first, the heir may still win later, so the outcome
    /// is unknown.
    pub(super) fn settle_yielded(&mut self) {
        let (now, leader) = (self.core.now.mono, self.followed());
        let Some(yielded) = &mut self.yielded else {
            return;
        };
        let Yielded { certificate, request, next_send, until } = *yielded;
        let follows = leader == Some(certificate.heir);
        if follows || now >= until {
            self.yielded = None;
            if let Some(request) = request {
                let verdict = if follows { Verdict::Done } else { Verdict::Unknown };
                self.core.verdict(request, verdict);
            }
            return;
        }
        if now >= next_send {
            yielded.next_send = now + self.core.settings.timing.declare;
            if self.core.promise() == certificate.epoch {
                self.core.send(certificate.heir, Message::HandOver(certificate));
            }
        }
    }

    /// Otherwise only the former leader could explain this, and it may be gone (P58).
    pub(super) fn note_hand_over(&mut self, certificate: &Certificate) {
        let leader = certificate.epoch.leader;
        if self.following().is_some_and(|following| following.leader() == leader)
            && !mutant::is_on(Mutant::HandOverUntold)
        {
            self.core.event(Event::HandedOver { leader, heir: certificate.heir });
        }
    }

    /// The leader has ended its lease before it sent the certificate, so its grant from this node is void: the heir need not wait
    /// for that grant (P11). The certificate is repeated; only the first one starts a claim.
    pub(super) fn on_certificate(&mut self, from: NodeId, certificate: Certificate) {
        let core = &mut self.core;
        let current = certificate.epoch == core.promise() && certificate.epoch.leader == from;
        // The leader saw this log complete. If it is not, this may be another disk: an ordinary election decides.
        let complete = core.last() == certificate.last;
        let able = core.may_vote() && !core.journal.is_full();
        if !current || !complete || certificate.heir != core.me() || !able {
            return;
        }
        core.epochs.end(certificate.epoch);
        core.grants.void_epoch(certificate.epoch);
        if matches!(self.role, RoleState::Following(_)) {
            self.note_hand_over(&certificate);
            self.seek(Cause::HandedOver);
        }
        if let Some((seeking, core)) = self.seeking_mut()
            && seeking.claim().is_none()
        {
            let won = seeking.make_claim(core, Some(certificate));
            self.lead_if_won(won);
        }
    }
}

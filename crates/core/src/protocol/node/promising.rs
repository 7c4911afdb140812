//! A node decides which candidate gets its promise, when, and what the approval says (P8).
//!
//! ```text
//!   claim ──► on_claim ── promised more, or may not vote ──► refuse
//!                │        promised to this very claim ─────► repeat_approval
//!                └─ consent ── Yes ──► approve: promise, follow, send the approval once that is on disk
//!                      ├────── No ───► refuse
//!                      └─ NotYet ────► keep_pending ── settle_pending, after every input ──► consent again
//! ```

use super::{Node, PendingClaim, RoleState};
use crate::protocol::following::Following;
use crate::protocol::messages::{Cause, Claim, Condition, Event, Message, Objection, Output};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::seeking::{Consent, Seeking};
use crate::types::{NodeId, Time};

impl Node {
    /// The objection of this node to that candidate, without regard to its turn (P58): would this node approve a claim now? It is the
    /// answer to a dry run (P4).
    pub(super) fn objection_to(&self, candidate: NodeId, condition: Condition) -> Option<Objection> {
        let core = &self.core;
        let founds = core.may_found(condition) && !core.founds_too_early(condition);
        if !core.may_vote() {
            return Some(Objection::MayNotVote);
        }
        if core.is_blank() && !founds {
            return Some(Objection::MayNotFound);
        }
        match &self.role {
            RoleState::Leading(_) => Some(Objection::Leads),
            RoleState::Following(following) => {
                let leaves = following.would_leave(candidate, core.ranks_last(candidate, condition));
                (!leaves).then(|| following.objection())
            }
            RoleState::Seeking(seeking) => seeking.objection_to(core, candidate, condition),
        }
    }

    pub(super) fn on_claim(&mut self, from: NodeId, claim: Claim) {
        let (epoch, promise) = (claim.term.epoch, self.core.promise());
        if epoch.leader != from {
            return;
        }
        // This is noted even if the claim is refused: this node's own claim must be above it (P2).
        self.core.epochs.hear_of(epoch);
        // The same claim again is no second promise, so it comes before the comparison of epochs.
        if claim.term == self.core.journal.promise() {
            return self.repeat_approval(from, &claim);
        }
        // A cluster is formed once (P9); an epoch is approved for one claim only (P2).
        let objection = match () {
            () if epoch <= promise => Objection::Promised { epoch: promise },
            () if !self.core.may_found(claim.condition) => Objection::MayNotFound,
            () if !self.core.is_of_one_history(claim.vector.as_ref()) => Objection::OtherHistory,
            () if !self.core.may_vote() => Objection::MayNotVote,
            () => return self.consider(from, claim),
        };
        self.refuse(from, &claim, objection);
    }

    fn consider(&mut self, from: NodeId, claim: Claim) {
        match self.consent(from, &claim) {
            Consent::Yes => self.approve(from, &claim),
            Consent::No(why) => self.refuse(from, &claim, why),
            Consent::NotYet(why) => {
                self.core.event(Event::Deferred { epoch: claim.term.epoch, why });
                self.keep_pending(from, claim);
            }
        }
    }

    fn consent(&self, from: NodeId, claim: &Claim) -> Consent {
        if self.honours(from, claim) {
            return Consent::Yes;
        }
        match &self.role {
            RoleState::Leading(_) => Consent::No(Objection::Leads),
            RoleState::Seeking(seeking) => seeking.consent(&self.core, from, claim),
            RoleState::Following(following) => {
                let ranks_last = self.core.ranks_last(from, claim.condition);
                match following.objection() {
                    _ if following.would_leave(from, ranks_last) => Consent::Yes,
                    objection if following.is_awaiting() => Consent::No(objection),
                    objection => Consent::NotYet(objection),
                }
            }
        }
    }

    /// A certificate ends the epoch of the leader that signed it, and no other epoch (P18).
    fn honours(&self, from: NodeId, claim: &Claim) -> bool {
        claim.certificate.is_some_and(|certificate| {
            let current = certificate.epoch == self.core.promise() || mutant::is_on(Mutant::OldCertificate);
            certificate.heir == from && current
        })
    }

    fn approve(&mut self, from: NodeId, claim: &Claim) {
        if self.honours(from, claim)
            && let Some(certificate) = claim.certificate
        {
            self.note_hand_over(&certificate);
            // That leader ended its lease before the certificate left.
            self.core.grants.void_epoch(certificate.epoch);
            self.core.epochs.end(certificate.epoch);
        }
        // From here on this node grants nothing to an older leader, so `lease_left` in the approval is
        // complete (P11).
        self.core.raise_promise(claim.term);
        self.leave_leading(Cause::GreaterEpoch);
        let now = self.core.mono();
        let until = now + self.core.settings.timing.window;
        self.role = RoleState::Following(Following::awaiting(claim.term.epoch, now, until, claim.last));
        self.pending = None;
        self.core.event(Event::Approved { epoch: claim.term.epoch });
        self.send_approval(from, claim);
    }

    fn send_approval(&mut self, to: NodeId, claim: &Claim) {
        let core = &mut self.core;
        let (last, after) = core.journal.reported_end(&core.settings);
        let lease_left = core.grants.left(to, core.disk_of(to), core.mono());
        let approval = Message::Approve { term: claim.term, last, lease_left };
        match mutant::is_on(Mutant::ApproveBeforeStore) {
            true => core.send_after(to, approval, Default::default()),
            false => core.send_after(to, approval, after),
        }
    }

    /// The claim was repeated: the approval may have been lost, or the candidate shows its progress (C27).
    fn repeat_approval(&mut self, from: NodeId, claim: &Claim) {
        let until = self.core.mono() + self.core.settings.timing.window;
        if let Some((following, _)) = self.following_mut()
            && following.waits_on(claim.last, until)
        {
            self.send_approval(from, claim);
        }
    }

    fn refuse(&mut self, from: NodeId, claim: &Claim, why: Objection) {
        let promise = self.core.promise();
        self.core.event(Event::Refused { epoch: claim.term.epoch, why });
        self.core.send(from, Message::Refuse { term: claim.term, promise });
        // The answer to a beat tells a leader about the greater promise (P28).
        if let Some((leading, core)) = self.leading_mut() {
            leading.beat_to(core, from);
        }
    }

    /// Keeps the claim, or the elder's if there are several (P8), and probes whether the leader lives (C28). If the leader's port
    /// refuses, the claim can be approved without the candidate having to ask again.
    fn keep_pending(&mut self, from: NodeId, claim: Claim) {
        let kept = self.pending.as_ref().filter(|pending| self.is_still_wanted(pending));
        if kept.is_none_or(|pending| from <= pending.from) {
            self.pending = Some(PendingClaim { from, claim, at: self.core.mono() });
        }
        if let Some(leader) = self.following().map(Following::leader) {
            self.core.out.push(Output::Probe(leader));
        }
    }

    fn is_still_wanted(&self, pending: &PendingClaim) -> bool {
        // A candidate repeats its claim every `declare`. If it misses three times, it counts as gone.
        let patience = self.core.settings.timing.declare.times(3);
        pending.at + patience >= self.core.mono() && pending.claim.term.epoch > self.core.promise()
    }

    pub(super) fn settle_pending(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        if !self.is_still_wanted(&pending) || !self.core.may_vote() {
            return;
        }
        match self.consent(pending.from, &pending.claim) {
            Consent::Yes => self.approve(pending.from, &pending.claim),
            Consent::No(why) => self.refuse(pending.from, &pending.claim, why),
            Consent::NotYet(_) => self.pending = Some(pending),
        }
    }

    /// The time at which the turn of a pending claim comes.
    pub(super) fn pending_deadline(&self, seeking: &Seeking) -> Time {
        let pending = self.pending.as_ref();
        pending.map_or(Time::NEVER, |kept| seeking.turn_of_claim(&self.core, kept.from, &kept.claim))
    }
}

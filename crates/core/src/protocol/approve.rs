//! A node gives a promise: to whom, when, and what it says with it (P8).

use super::messages::{Cause, Claim, Condition, Event, Message, Objection};
use super::mutant::{self, Mutant};
use super::node::{Node, RoleState};
use super::roles::{Following, PendingClaim, Seeking, Tentative};
use crate::types::{NodeId, Time};

enum Consent {
    Yes,
    NotYet(Objection),
    No(Objection),
}

impl Node {
    /// The dry run's answer: would this node approve a claim of `candidate` now, its turn apart (P4)?
    pub(in crate::protocol) fn would_approve(&self, candidate: NodeId, condition: Condition) -> bool {
        self.objection_to(candidate, condition).is_none()
    }

    /// What this node has against that one, its turn apart (P58).
    pub(in crate::protocol) fn objection_to(
        &self,
        candidate: NodeId,
        condition: Condition,
    ) -> Option<Objection> {
        let founds = self.may_found(condition) && !self.founds_too_early(condition);
        if !self.may_vote() {
            return Some(Objection::MayNotVote);
        }
        if self.is_blank() && !founds {
            return Some(Objection::MayNotFound);
        }
        match &self.role {
            RoleState::Leading(_) => Some(Objection::Leads),
            RoleState::Following(following) => {
                let leaves = self.would_leave(following, candidate, condition);
                (!leaves).then(|| following.objection())
            }
            RoleState::Seeking(seeking) if seeking.claim.is_some() => {
                let gives_way = self.gives_way_to(candidate, condition);
                (!gives_way).then_some(Objection::ClaimsItself)
            }
            RoleState::Seeking(seeking) => (self.mono() < seeking.quiet_until).then_some(Objection::Quiet),
        }
    }

    /// Founders agree once each has listened: the candidate may have been removed since, and hear nobody (P9).
    fn founds_too_early(&self, condition: Condition) -> bool {
        let founds = condition == Condition::Blank && !self.settings.is_available();
        founds && self.listens_for_a_cluster() && !mutant::is_on(Mutant::AgreeWithoutListening)
    }

    /// One follows whom one follows; from a candidate that has not opened its epoch one may turn to
    /// its elder, not to its younger (P8, C27).
    fn would_leave(&self, following: &Following, candidate: NodeId, condition: Condition) -> bool {
        let elder = candidate < following.leader && !self.comes_last(candidate, condition);
        candidate == following.leader
            || (following.tentative.is_some() && elder)
            || mutant::is_on(Mutant::ApproveWithoutSuspicion)
    }

    /// Whether this node, itself a candidate, lets that one go first.
    fn gives_way_to(&self, candidate: NodeId, condition: Condition) -> bool {
        let (theirs, own) = (self.comes_last(candidate, condition), self.condition() == Condition::Held);
        (theirs, candidate) < (own, self.me())
    }

    fn comes_last(&self, candidate: NodeId, condition: Condition) -> bool {
        condition == Condition::Held || self.peers.is_on_hold(candidate, self.mono())
    }

    pub(in crate::protocol) fn on_claim(&mut self, from: NodeId, claim: Claim) {
        let (epoch, promise) = (claim.term.epoch, self.promise());
        if epoch.leader != from {
            return;
        }
        self.epochs.hear_of(epoch);
        if claim.term == self.journal.promise() {
            return self.approve_again(from, &claim);
        }
        // A cluster is formed once (P9); an epoch is approved for one claim only (P2).
        let objection = match () {
            () if epoch <= promise => Objection::Promised { epoch: promise },
            () if !self.may_found(claim.condition) => Objection::MayNotFound,
            () if !self.is_of_one_history(claim.vector.as_ref()) => Objection::OtherHistory,
            () if !self.may_vote() => Objection::MayNotVote,
            () => return self.consider(from, claim),
        };
        self.refuse(from, &claim, objection);
    }

    fn consider(&mut self, from: NodeId, claim: Claim) {
        match self.consent(from, &claim) {
            Consent::Yes => self.approve(from, &claim),
            Consent::No(why) => self.refuse(from, &claim, why),
            Consent::NotYet(why) => {
                self.event(Event::Deferred { epoch: claim.term.epoch, why });
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
            RoleState::Following(following) if self.would_leave(following, from, claim.condition) => {
                Consent::Yes
            }
            RoleState::Following(following) if following.tentative.is_none() => {
                Consent::NotYet(following.objection())
            }
            RoleState::Following(following) => Consent::No(following.objection()),
            RoleState::Seeking(seeking) => self.consent_seeking(seeking, from, claim),
        }
    }

    fn consent_seeking(&self, seeking: &Seeking, from: NodeId, claim: &Claim) -> Consent {
        let now = self.mono();
        if seeking.claim.is_some() && !self.gives_way_to(from, claim.condition) {
            return Consent::No(Objection::ClaimsItself);
        }
        let rank = self.rank_of(from, seeking, claim.condition);
        let turn = seeking.since + self.settings.timing.stagger.times(rank);
        match () {
            () if now < turn && !mutant::is_on(Mutant::NoRankWait) => {
                Consent::NotYet(Objection::NotItsTurn { before: rank })
            }
            () if self.founds_too_early(claim.condition) => Consent::NotYet(Objection::MayNotFound),
            () if now < seeking.quiet_until => Consent::NotYet(Objection::Quiet),
            () => Consent::Yes,
        }
    }

    /// A certificate ends the epoch of the one who signed it, and no other (P18).
    fn honours(&self, from: NodeId, claim: &Claim) -> bool {
        claim.certificate.is_some_and(|certificate| {
            let current = certificate.epoch == self.promise() || mutant::is_on(Mutant::OldCertificate);
            certificate.heir == from && current
        })
    }

    fn approve(&mut self, from: NodeId, claim: &Claim) {
        if self.honours(from, claim)
            && let Some(certificate) = claim.certificate
        {
            // That leader ended its lease before the certificate left.
            self.grants.void_epoch(certificate.epoch);
            self.epochs.end(certificate.epoch);
        }
        self.raise_promise(claim.term);
        let until = self.mono() + self.settings.timing.window;
        let tentative = Tentative { until, progress: claim.last };
        self.leave_leading(Cause::GreaterEpoch);
        self.role = RoleState::Following(Following::new(claim.term.epoch, self.mono(), Some(tentative)));
        self.pending = None;
        self.event(Event::Approved { epoch: claim.term.epoch });
        self.send_approval(from, claim);
    }

    fn send_approval(&mut self, to: NodeId, claim: &Claim) {
        let (last, after) = self.journal.told_end(&self.settings);
        let approval = Message::Approve {
            term: claim.term,
            last,
            lease_left: self.grants.left(to, self.disk_of(to), self.mono()),
        };
        if mutant::is_on(Mutant::ApproveBeforeStore) {
            return self.send_after(to, approval, Default::default());
        }
        self.send_after(to, approval, after);
    }

    /// The claim was repeated: the approval may be lost, or the candidate shows its progress (C27).
    fn approve_again(&mut self, from: NodeId, claim: &Claim) {
        let until = self.mono() + self.settings.timing.window;
        let RoleState::Following(following) = &mut self.role else {
            return;
        };
        let Some(tentative) = &mut following.tentative else {
            return;
        };
        if claim.last > tentative.progress {
            *tentative = Tentative { until, progress: claim.last };
        }
        self.send_approval(from, claim);
    }

    fn refuse(&mut self, from: NodeId, claim: &Claim, why: Objection) {
        let promise = self.promise();
        self.event(Event::Refused { epoch: claim.term.epoch, why });
        self.send(from, Message::Refuse { term: claim.term, promise });
        // A leader is told of the greater promise by the answer to a beat (P28).
        self.beat_to(from);
    }

    /// Keeps the claim that comes first in turn, and looks whether the leader lives (C28).
    fn keep_pending(&mut self, from: NodeId, claim: Claim) {
        let kept = self.pending.as_ref().filter(|pending| self.still_wanted(pending));
        if kept.is_none_or(|pending| from <= pending.from) {
            let at = self.mono();
            self.pending = Some(PendingClaim { from, claim, at });
        }
        if let RoleState::Following(following) = &self.role {
            self.probe(following.leader);
        }
    }

    fn still_wanted(&self, pending: &PendingClaim) -> bool {
        let patience = self.settings.timing.declare.times(3);
        pending.at + patience >= self.mono() && pending.claim.term.epoch > self.promise()
    }

    pub(in crate::protocol) fn settle_pending(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        if !self.still_wanted(&pending) || !self.may_vote() {
            return;
        }
        match self.consent(pending.from, &pending.claim) {
            Consent::Yes => self.approve(pending.from, &pending.claim),
            Consent::No(why) => self.refuse(pending.from, &pending.claim, why),
            Consent::NotYet(_) => self.pending = Some(pending),
        }
    }

    /// When a pending claim's turn comes.
    pub(in crate::protocol) fn pending_deadline(&self, seeking: &Seeking) -> Time {
        let Some(pending) = &self.pending else {
            return Time::NEVER;
        };
        let rank = self.rank_of(pending.from, seeking, pending.claim.condition);
        let turn = seeking.since + self.settings.timing.stagger.times(rank);
        turn.max(seeking.quiet_until)
    }
}

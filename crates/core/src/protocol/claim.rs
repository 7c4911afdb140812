//! A candidate gathers promises, pulls the newest log, then opens its epoch (P6, P8).

use std::collections::{BTreeMap, BTreeSet};

use super::durability::After;
use super::log::may_follow;
use super::messages::{Cause, Certificate, Claim, Event, Message, Term};
use super::meta::Records;
use super::mutant::{self, Mutant};
use super::node::{Node, RoleState};
use super::quorum::{Tally, tally};
use super::roles::{Approval, Claiming, Seeking};
use super::settings::LEASE_MOST;
use crate::types::{Epoch, Incarnation, NUMBER_MOST, NodeId, Position, Span, Time};

/// What the approvals that count amount to.
struct Backing {
    voters: BTreeMap<NodeId, Incarnation>,
    newest: Position,
    holder: NodeId,
    leases_until: Time,
}

impl Node {
    /// Claims an epoch above every one heard of (P2). The claim may leave before this node's own
    /// promise is stored: it promises nothing, it asks.
    pub(in crate::protocol) fn claim(&mut self, certificate: Option<Certificate>) {
        let expected = match &self.role {
            RoleState::Seeking(seeking) => self.expected_voters(seeking, certificate.is_some()),
            _ => BTreeSet::new(),
        };
        let counter = match mutant::is_on(Mutant::SameEpochTwice) {
            true => self.promise().counter.max(1) + u64::from(self.promise().leader != self.me()),
            false => (self.epochs.next_counter() + self.lonely_jump(&expected)).min(NUMBER_MOST),
        };
        let term = self.own_term(counter);
        let condition = self.condition();
        self.note_beginning();
        self.raise_promise(term);
        let now = self.mono();
        let claiming = Claiming {
            term,
            condition,
            certificate,
            stored_by: self.journal.disk().vote(),
            approvals: BTreeMap::new(),
            refused: BTreeSet::new(),
            until: now + self.settings.timing.window,
            next_send: now,
            pulling_from: None,
            won: false,
            expected,
            gathers_until: now + self.fresh(),
        };
        if let RoleState::Seeking(seeking) = &mut self.role {
            if seeking.as_heir {
                self.claimed_as_heir = Some(now);
                seeking.as_heir = false;
            }
            seeking.claim = Some(claiming);
        }
        self.event(Event::Claimed { epoch: term.epoch });
        self.settle_claim();
    }

    pub(in crate::protocol) fn claiming(&self) -> Option<&Claiming> {
        match &self.role {
            RoleState::Seeking(seeking) => seeking.claim.as_ref(),
            _ => None,
        }
    }

    fn claiming_mut(&mut self) -> Option<&mut Claiming> {
        match &mut self.role {
            RoleState::Seeking(seeking) => seeking.claim.as_mut(),
            _ => None,
        }
    }

    pub(in crate::protocol) fn settle_claim(&mut self) {
        let Some(claiming) = self.claiming() else {
            return;
        };
        if self.journal.is_full() {
            // It could not write the record that opens its epoch (P24).
            return self.abandon_claim();
        }
        let (until, next_send) = (claiming.until, claiming.next_send);
        if self.mono() >= until {
            if claiming.won {
                // Consent there was, but the epoch could not be opened: others come first (P20).
                let (now, timing) = (self.now.mono, &self.settings.timing);
                self.own_hold.failed(now, timing);
            }
            return self.abandon_claim();
        }
        match self.claim_tally() {
            Tally::Lost => self.abandon_claim(),
            Tally::Pending if self.mono() >= next_send => self.repeat_claim(),
            Tally::Pending => {}
            Tally::Won => self.lead_or_pull(next_send),
        }
    }

    fn abandon_claim(&mut self) {
        let suspected = match &self.role {
            RoleState::Seeking(seeking) => seeking.suspected,
            _ => None,
        };
        let mut seeking = Seeking::new(self.mono(), Cause::NoDecision);
        seeking.suspected = suspected;
        self.role = RoleState::Seeking(seeking);
    }

    fn repeat_claim(&mut self) {
        let (now, declare, last) = (self.mono(), self.settings.timing.declare, self.last());
        let Some(claiming) = self.claiming_mut() else {
            return;
        };
        claiming.next_send = now + declare;
        claiming.pulling_from = None;
        let claim = Message::Claim(Claim {
            term: claiming.term,
            last,
            condition: claiming.condition,
            certificate: claiming.certificate,
            vector: self.vector_to_send(),
        });
        self.broadcast(&claim, After::default());
    }

    fn claim_tally(&self) -> Tally {
        let Some(claiming) = self.claiming() else {
            return Tally::Lost;
        };
        if self.settings.is_available() {
            return self.gathered(claiming);
        }
        let (voters, quorum) = (self.voters().count(), self.quorum());
        let refusals = claiming.refused.iter().filter(|node| self.is_voter(**node)).count();
        let refused = tally(0, refusals, quorum, voters);
        if refused == Tally::Lost || !self.journal.disk().is_met(claiming.stored_by) {
            return refused;
        }
        let votes = self.own_vote() == 1 || mutant::is_on(Mutant::LearnerLeads);
        let may_lead = claiming.condition.is_blank() || (self.has_seat() && votes);
        if !may_lead {
            // What it has pulled tells that another disk has its place (P10), or that it only learns (P43).
            return Tally::Lost;
        }
        let backing = self.backing(claiming);
        let won = if claiming.condition.is_blank() {
            let others = backing.voters.keys().copied().filter(|node| *node != self.me());
            self.founders_agree(&others.collect())
        } else {
            backing.voters.keys().filter(|node| self.is_voter(**node)).count() >= quorum
        };
        if won { Tally::Won } else { Tally::Pending }
    }

    /// Everybody who is expected has answered, or has had the time to.
    fn gathered(&self, claiming: &Claiming) -> Tally {
        let answered =
            |node: &NodeId| claiming.approvals.contains_key(node) || claiming.refused.contains(node);
        let complete = claiming.expected.iter().all(|node| answered(node) || self.peers.is_refused(*node));
        let ready = complete || self.mono() >= claiming.gathers_until;
        if ready && self.journal.disk().is_met(claiming.stored_by) { Tally::Won } else { Tally::Pending }
    }

    /// The approvals that count: those of disks that the log knows (P10). A blank candidate's log knows
    /// nobody; there, all voters are founders (P9).
    fn backing(&self, claiming: &Claiming) -> Backing {
        let mut backing = Backing {
            voters: BTreeMap::from([(self.me(), self.incarnation)]),
            newest: self.last(),
            holder: self.me(),
            leases_until: self.mono() + self.grants.left(self.me(), self.incarnation, self.mono()),
        };
        for (node, approval) in &claiming.approvals {
            if !self.approval_counts(*node, approval, claiming) {
                continue;
            }
            backing.voters.insert(*node, approval.incarnation);
            backing.leases_until = backing.leases_until.max(approval.lease_until);
            if approval.last > backing.newest {
                backing.newest = approval.last;
                backing.holder = *node;
            }
        }
        backing
    }

    fn approval_counts(&self, node: NodeId, approval: &Approval, claiming: &Claiming) -> bool {
        claiming.condition.is_blank()
            || self.settings.is_available()
            || self.vote_counts(node, approval.incarnation)
    }

    /// Leads once its log ends exactly at the newest position of those that promised (P6, C9). What it
    /// learns by pulling may tell it that some of them do not count: then it is no longer won.
    fn lead_or_pull(&mut self, next_send: Time) {
        let Some(claiming) = self.claiming() else {
            return;
        };
        let backing = self.backing(claiming);
        let term = claiming.term;
        if backing.newest == self.last() || mutant::is_on(Mutant::LeadWithoutPull) {
            let founders = claiming.condition.is_blank().then_some(backing.voters);
            let approved: Vec<NodeId> = claiming.approvals.keys().copied().collect();
            self.lead(term, founders, backing.leases_until);
            return self.count_on(&approved);
        }
        if self.mono() >= next_send {
            self.repeat_claim();
        }
        let holder = Some(backing.holder);
        if self.claiming().is_some_and(|claiming| claiming.pulling_from != holder) {
            self.pull_from(backing.holder, term, self.last());
        }
    }

    fn pull_from(&mut self, holder: NodeId, term: Term, after: Position) {
        if let Some(claiming) = self.claiming_mut() {
            claiming.pulling_from = Some(holder);
            claiming.won = true;
        }
        self.send(holder, Message::Pull { term, after });
    }

    pub(in crate::protocol) fn on_approve(
        &mut self,
        from: NodeId,
        incarnation: Incarnation,
        term: Term,
        last: Position,
        lease_left: Span,
    ) {
        let most = match mutant::is_on(Mutant::LeaseLeftCutShort) {
            true => self.settings.timing.lease,
            false => LEASE_MOST,
        };
        let lease_until = self.mono() + lease_left.min(most);
        let Some(claiming) = self.claiming_mut().filter(|claiming| claiming.term == term) else {
            return;
        };
        claiming.refused.remove(&from);
        let approval = Approval { incarnation, last, lease_until };
        if claiming.approvals.insert(from, approval).is_none() {
            self.event(Event::Backed { epoch: term.epoch, by: from });
        }
    }

    pub(in crate::protocol) fn on_refuse(&mut self, from: NodeId, term: Term, promise: Epoch) {
        self.epochs.hear_of(promise);
        let Some(claiming) = self.claiming_mut().filter(|claiming| claiming.term == term) else {
            return;
        };
        claiming.approvals.remove(&from);
        if claiming.refused.insert(from) {
            self.event(Event::TurnedDown { epoch: term.epoch, by: from });
        }
    }

    /// A part of the newest log (P6). It is asked for until nothing is missing.
    pub(in crate::protocol) fn on_pulled(
        &mut self,
        from: NodeId,
        term: Term,
        prev: Position,
        records: &Records,
    ) {
        if self.journal.is_full() || self.claiming().is_none_or(|claiming| claiming.term != term) {
            return;
        }
        if !may_follow(prev, records, term.epoch) {
            return;
        }
        if !self.continues(prev) {
            let after = self.log().common_candidate(prev).unwrap_or(self.log().base());
            return self.pull_from(from, term, after);
        }
        let before = self.last();
        if self.merge(records).is_err() || self.last() == before {
            return;
        }
        self.give_claim_more_time();
        if mutant::is_on(Mutant::LeadAfterHalfPull) {
            let until = self.mono();
            return self.lead(term, None, until);
        }
        self.pull_on(from, term);
    }

    /// After progress: a candidate that pulls is not cut short (C27).
    pub(in crate::protocol) fn give_claim_more_time(&mut self) {
        let until = self.mono() + self.settings.timing.window;
        if let Some(claiming) = self.claiming_mut() {
            claiming.until = until;
        }
    }

    pub(in crate::protocol) fn pull_on(&mut self, from: NodeId, term: Term) {
        let Some(claiming) = self.claiming() else {
            return;
        };
        if self.backing(claiming).newest > self.last() {
            self.pull_from(from, term, self.last());
        }
    }
}

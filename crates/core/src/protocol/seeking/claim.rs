//! A candidate gathers promises and pulls the newest log; then it may open its epoch (P6, P8).
//!
//! ```text
//!   claim to all, repeated every `declare` ─► approvals (epoch promised, end of the log, lease left)
//!   a majority of disks that count, this node's own promise on disk
//!      └─ is one of their logs newer? yes ─► pull from it ─► count the approvals again, by the longer log
//!                                         no ──► Won: the node leads, and the epoch opens with its first record
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::core::Core;
use crate::protocol::durability::After;
use crate::protocol::log::may_follow;
use crate::protocol::messages::{Certificate, Claim, Condition, Event, Message, Term};
use crate::protocol::meta::Records;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::quorum::{Tally, tally};
use crate::protocol::settings::LEASE_MOST;
use crate::types::{Incarnation, NodeId, Position, Span, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claiming {
    term: Term,
    condition: Condition,
    certificate: Option<Certificate>,
    /// This node's own promise, which must be on disk before it counts (P2).
    stored_by: After,
    approvals: BTreeMap<NodeId, Approval>,
    refused: BTreeSet<NodeId>,
    until: Time,
    next_send: Time,
    /// The node that was asked, since the claim was last repeated, to send the missing records.
    pulling_from: Option<NodeId>,
    /// A majority has promised.
    has_majority: bool,
    /// Available mode: the nodes whose answer is awaited, and until when (P31).
    expected: BTreeSet<NodeId>,
    gathers_until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Approval {
    incarnation: Incarnation,
    last: Position,
    /// On this node's clock: until this time an older leader may rely on the approver (P11).
    lease_until: Time,
}

/// The sum of the approvals that count.
struct Backing {
    voters: BTreeMap<NodeId, Incarnation>,
    newest: Position,
    holder: NodeId,
    leases_until: Time,
}

/// The state of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    Pending,
    Abandoned,
    Won(Won),
}

/// A claim that has won: the epoch may be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Won {
    pub term: Term,
    /// The founders of the cluster, if the epoch begins by founding one (P9).
    pub founders: Option<BTreeMap<NodeId, Incarnation>>,
    /// Older leaders may still rely on their leases until this time (P11).
    pub leases_until: Time,
    pub approved: Vec<NodeId>,
}

impl Claiming {
    /// Begins a claim: this node has promised `term` to itself already.
    pub fn new(
        core: &Core,
        term: Term,
        condition: Condition,
        certificate: Option<Certificate>,
        expected: BTreeSet<NodeId>,
    ) -> Claiming {
        let now = core.mono();
        Claiming {
            term,
            condition,
            certificate,
            stored_by: core.journal.disk().vote(),
            approvals: BTreeMap::new(),
            refused: BTreeSet::new(),
            until: now + core.settings.timing.window,
            next_send: now,
            pulling_from: None,
            has_majority: false,
            expected,
            gathers_until: now + core.fresh(),
        }
    }

    pub fn term(&self) -> Term {
        self.term
    }

    pub fn deadline(&self) -> Time {
        self.until.min(self.next_send)
    }

    pub fn settle(&mut self, core: &mut Core) -> ClaimOutcome {
        if core.journal.is_full() {
            // With a full disk this node could not write the record that opens its epoch (P24).
            return ClaimOutcome::Abandoned;
        }
        let next_send = self.next_send;
        if core.mono() >= self.until {
            if self.has_majority {
                // A majority consented, but the epoch could not be opened: other candidates go first for a while (P20).
                core.fail();
            }
            return ClaimOutcome::Abandoned;
        }
        match self.tally(core) {
            Tally::Lost => ClaimOutcome::Abandoned,
            Tally::Pending => {
                if core.mono() >= next_send {
                    self.repeat(core);
                }
                ClaimOutcome::Pending
            }
            Tally::Won => self.lead_or_pull(core, next_send),
        }
    }

    /// Repeats the claim, and the pull as well, because the answer to the pull may have been lost.
    fn repeat(&mut self, core: &mut Core) {
        self.next_send = core.mono() + core.settings.timing.declare;
        self.pulling_from = None;
        let claim = Message::Claim(Claim {
            term: self.term,
            last: core.last(),
            condition: self.condition,
            certificate: self.certificate,
            vector: core.vector_to_send(),
        });
        core.broadcast(&claim, After::default());
    }

    fn tally(&self, core: &Core) -> Tally {
        if core.settings.is_available() {
            return self.gathered(core);
        }
        let (voters, quorum) = (core.voters().count(), core.quorum());
        let refusals = self.refused.iter().filter(|node| core.is_voter(**node)).count();
        let refused = tally(0, refusals, quorum, voters);
        // The claim may fail before this node's own promise is on disk, but it cannot win before (P2).
        if refused == Tally::Lost || !core.journal.disk().is_met(self.stored_by) {
            return refused;
        }
        let votes = core.own_vote_count() == 1 || mutant::is_on(Mutant::LearnerLeads);
        let may_lead = self.condition.is_blank() || (core.has_seat() && votes);
        if !may_lead {
            // The log that this node has pulled says that another disk has this node's place in the roster (P10), or that this
            // node is only a learner (P43).
            return Tally::Lost;
        }
        let backing = self.backing(core);
        let won = if self.condition.is_blank() {
            let others = backing.voters.keys().copied().filter(|node| *node != core.me());
            core.founders_agree(&others.collect())
        } else {
            backing.voters.keys().filter(|node| core.is_voter(**node)).count() >= quorum
        };
        if won { Tally::Won } else { Tally::Pending }
    }

    /// Every expected node has answered, or has had the time to.
    fn gathered(&self, core: &Core) -> Tally {
        let answered = |node: &NodeId| self.approvals.contains_key(node) || self.refused.contains(node);
        let complete = self.expected.iter().all(|node| answered(node) || core.peers.is_refused(*node));
        let ready = complete || core.mono() >= self.gathers_until;
        if ready && core.journal.disk().is_met(self.stored_by) { Tally::Won } else { Tally::Pending }
    }

    /// The approvals that count are those of disks that the log knows (P10). The log of a blank candidate knows
    /// no disks; in that case all voters are founders (P9).
    fn backing(&self, core: &Core) -> Backing {
        let (me, now) = (core.me(), core.mono());
        let mut backing = Backing {
            voters: BTreeMap::from([(me, core.incarnation)]),
            newest: core.last(),
            holder: me,
            leases_until: now + core.grants.left(me, core.incarnation, now),
        };
        let counts = |node: NodeId, approval: &Approval| {
            let any = self.condition.is_blank() || core.settings.is_available();
            any || core.vote_counts(node, approval.incarnation)
        };
        for (node, approval) in self.approvals.iter().filter(|(node, approval)| counts(**node, approval)) {
            backing.voters.insert(*node, approval.incarnation);
            backing.leases_until = backing.leases_until.max(approval.lease_until);
            if approval.last > backing.newest {
                backing.newest = approval.last;
                backing.holder = *node;
            }
        }
        backing
    }

    /// The node leads once its log ends exactly at the newest position of the nodes that promised (P6, C9). The records that it
    /// pulls may show that some of the approvals do not count: then the claim is no longer won.
    fn lead_or_pull(&mut self, core: &mut Core, next_send: Time) -> ClaimOutcome {
        let backing = self.backing(core);
        if backing.newest == core.last() || mutant::is_on(Mutant::LeadWithoutPull) {
            let founders = self.condition.is_blank().then_some(backing.voters);
            let approved = self.approvals.keys().copied().collect();
            let leases_until = backing.leases_until;
            return ClaimOutcome::Won(Won { term: self.term, founders, leases_until, approved });
        }
        if core.mono() >= next_send {
            self.repeat(core);
        }
        if self.pulling_from != Some(backing.holder) {
            self.pull_from(core, backing.holder, core.last());
        }
        ClaimOutcome::Pending
    }

    fn pull_from(&mut self, core: &mut Core, holder: NodeId, after: Position) {
        self.pulling_from = Some(holder);
        self.has_majority = true;
        core.send(holder, Message::Pull { term: self.term, after });
    }

    pub fn on_approve(
        &mut self,
        core: &mut Core,
        (from, incarnation): (NodeId, Incarnation),
        last: Position,
        lease_left: Span,
    ) {
        let most = match mutant::is_on(Mutant::LeaseLeftCutShort) {
            true => core.settings.timing.lease,
            false => LEASE_MOST,
        };
        self.refused.remove(&from);
        // The rest of the lease counts from when the approval arrives, which is later than when it was sent: this node may
        // wait too long, but never too short a time (I4). A longer span than `LEASE_MOST` is cut to it, because no lease is
        // longer (P50).
        let approval = Approval { incarnation, last, lease_until: core.mono() + lease_left.min(most) };
        if self.approvals.insert(from, approval).is_none() {
            core.event(Event::Backed { epoch: self.term.epoch, by: from });
        }
    }

    /// The last answer of a node counts: after its approval it may have promised a greater epoch. If the
    /// network has swapped the two, the next repetition of the claim brings the approval again.
    pub fn on_refuse(&mut self, core: &mut Core, from: NodeId) {
        self.approvals.remove(&from);
        if self.refused.insert(from) {
            core.event(Event::TurnedDown { epoch: self.term.epoch, by: from });
        }
    }

    /// Takes a part of the newest log (P6). The candidate asks for more until nothing is missing.
    pub fn on_pulled(
        &mut self,
        core: &mut Core,
        from: NodeId,
        prev: Position,
        records: &Records,
    ) -> Option<Won> {
        if core.journal.is_full() || !may_follow(prev, records, self.term.epoch) {
            return None;
        }
        if !core.continues(prev) {
            let after = core.log().common_candidate(prev).unwrap_or(core.log().base());
            self.pull_from(core, from, after);
            return None;
        }
        let before = core.last();
        // A claim gets more time only for progress: otherwise a sender of records that are here already could
        // keep it alive forever.
        if core.merge(records).is_err() || core.last() == before {
            return None;
        }
        if mutant::is_on(Mutant::LeadAfterHalfPull) {
            let (term, leases_until) = (self.term, core.mono());
            return Some(Won { term, founders: None, leases_until, approved: Vec::new() });
        }
        self.pull_on(core, from);
        None
    }

    /// After progress the claim gets a new window, so that a candidate that pulls is not cut short (C27). It asks for what is still
    /// missing.
    pub fn pull_on(&mut self, core: &mut Core, from: NodeId) {
        self.until = core.mono() + core.settings.timing.window;
        if self.backing(core).newest > core.last() {
            self.pull_from(core, from, core.last());
        }
    }

    /// Checks what must be true after every input (I11).
    pub fn validate(&self, promise: Term) {
        assert_eq!(self.term, promise, "claims what it has not promised itself (P8)");
        let both = self.refused.iter().any(|node| self.approvals.contains_key(node));
        assert!(!both, "one answer to a claim counts twice");
    }
}

//! One node: what outlives its roles, the dispatch of inputs, and the small tools that all rules use.

use std::collections::BTreeSet;

use super::ballots::Checkpoints;
use super::following::Following;
use super::grants::Grants;
use super::impasses::Impasses;
use super::leading::{Leading, Yielded};
use super::peers::{Hold, Peers};
use super::seeking::{Pending, Seeking};
use crate::protocol::log::{Durability, Log, Waiting};
use crate::protocol::messages::{Cause, Fault, Output, Recovered, Term, Vote};
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::settings::Settings;
use crate::types::{Boot, ClaimId, ClusterId, Epoch, Incarnation, Index, Members, NodeId, Now, Time, Vector};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a node has one role at a time")]
pub enum Role {
    Seeking(Seeking),
    Following(Following),
    Leading(Box<Leading>),
}

/// A role's name, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleName {
    Candidate,
    Follower,
    Leader,
    Stopped,
}

/// The pure core of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub(in crate::protocol) settings: Settings,
    pub(in crate::protocol) boot: Boot,
    pub(in crate::protocol) incarnation: Incarnation,
    pub(in crate::protocol) now: Now,
    /// When it last found that it had slept: the silence of others before that proves nothing (P3).
    pub(in crate::protocol) woke_at: Time,
    pub(in crate::protocol) out: Vec<Output>,
    pub(in crate::protocol) vote: Vote,
    pub(in crate::protocol) disk: Durability,
    pub(in crate::protocol) log: Log,
    pub(in crate::protocol) commit: Index,
    pub(in crate::protocol) role: Role,
    pub(in crate::protocol) peers: Peers,
    /// Whom `peers` and the role know of.
    pub(in crate::protocol) known_members: Members,
    /// Which cluster others have been told that this is.
    pub(in crate::protocol) known_cluster: ClusterId,
    pub(in crate::protocol) grants: Grants,
    /// The greatest epoch heard of: the next claim must beat it.
    pub(in crate::protocol) seen: Epoch,
    /// The greatest epoch known to be over by its own leader's word (P16, P18).
    pub(in crate::protocol) over: Epoch,
    pub(in crate::protocol) pending: Option<Pending>,
    pub(in crate::protocol) waiting: Waiting,
    pub(in crate::protocol) yielded: Option<Yielded>,
    pub(in crate::protocol) forming_without: Option<BTreeSet<NodeId>>,
    /// Until then a blank node listens for a cluster that has it already (P9).
    pub(in crate::protocol) listens_until: Time,
    /// It has heard somebody of a cluster.
    pub(in crate::protocol) hears_cluster: bool,
    pub(in crate::protocol) own_hold: Hold,
    /// When this node last claimed as the heir, without a dry run (P4).
    pub(in crate::protocol) claimed_as_heir: Option<Time>,
    pub(in crate::protocol) checkpoints: Checkpoints,
    /// Which disk it has said to have taken its place (P10).
    pub(in crate::protocol) told_replaced: Option<Incarnation>,
    /// Merges that do not come off (P48).
    pub(in crate::protocol) impasses: Impasses,
    pub(in crate::protocol) full: bool,
    pub(in crate::protocol) stopped: bool,
    /// What it would have stopped for, had it been proved who says so (P51).
    pub(in crate::protocol) told_fault: Option<Fault>,
    /// When this process took in the newest record. None: it was there when it started.
    pub(in crate::protocol) stamped_at: Option<Time>,
}

impl Node {
    pub fn new(settings: Settings, recovered: Recovered, now: Now) -> Node {
        let mut base = recovered.base;
        // Without one it was written in safe mode, or is new: one history, up to here (P31).
        base.vector = settings.is_available().then(|| base.vector.unwrap_or(Vector::linear(base.at)));
        let log = Log::new(base, recovered.records);
        let mut vote = recovered.vote;
        let granted = !vote.promise.epoch.is_zero() || !log.is_empty();
        // What it may have been asked for before; a disk that says nothing of leases was written by an earlier version.
        let stored = vote.lease;
        vote.lease = stored.max(settings.timing.lease);
        let untold = granted && stored < vote.lease && !mutant::is_on(Mutant::LeaseUntold);
        let lease = match mutant::is_on(Mutant::LeaseByConfiguration) {
            true => settings.timing.lease,
            false => vote.lease,
        };
        let grants = Grants::after_start(now.mono, granted, lease);
        vote.formed |= !log.is_empty();
        if vote.promise.epoch < log.last().epoch {
            // The promise file is lost: the log tells the least that it must have said (P27).
            let epoch = log.last().epoch;
            vote.promise = Term { epoch, claim: ClaimId::default() };
        }
        // In available mode the topology file says who belongs together, whatever the log says from before (P43).
        let by_log = log.roster().members().filter(|_| !settings.is_available());
        let members = by_log.unwrap_or(&settings.members).clone();
        // What stands in the log may not have reached the vote file before the crash.
        let votes = members.iter().any(|member| member.id == settings.me && member.votes);
        let counts = votes && log.roster().knows(settings.me, recovered.incarnation);
        vote.admitted |= counts && !settings.is_available();
        let others = members.iter().map(|member| member.id).filter(|node| *node != settings.me);
        let mut node = Node {
            boot: recovered.boot,
            incarnation: recovered.incarnation,
            now,
            woke_at: Time::default(),
            out: Vec::new(),
            disk: Durability::starting_at(log.last().index),
            commit: log.base().index,
            role: Role::Seeking(Seeking::new(now.mono, Cause::Started)),
            peers: Peers::new(others),
            known_members: members.clone(),
            known_cluster: log.roster().cluster(),
            grants,
            seen: vote.promise.epoch,
            // A process never leads, and never follows itself, in an epoch of a life before (P2).
            over: own_epoch_before(vote.promise.epoch, settings.me),
            vote,
            log,
            pending: None,
            waiting: Waiting::default(),
            yielded: None,
            forming_without: None,
            listens_until: now.mono + settings.timing.fresh(),
            hears_cluster: false,
            own_hold: Hold::default(),
            claimed_as_heir: None,
            checkpoints: Checkpoints::default(),
            told_replaced: None,
            impasses: Impasses::default(),
            full: false,
            stopped: false,
            told_fault: None,
            stamped_at: None,
            settings,
        };
        if untold {
            // Before it answers any beat (P11).
            node.write_vote();
        }
        node
    }
}

fn own_epoch_before(promise: Epoch, me: NodeId) -> Epoch {
    match promise.leader == me && !mutant::is_on(Mutant::SameEpochTwice) {
        true => promise,
        false => Epoch::ZERO,
    }
}

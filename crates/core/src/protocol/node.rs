//! One node: what outlives its roles, and the tools that all rules use: writing, promising, sending, committing. What must be durable before a
//! message leaves is decided here and nowhere else (I9).

use std::collections::BTreeSet;

use super::ballots::Checkpoints;
use super::durability::After;
use super::epochs::Epochs;
use super::grants::GivenLeases;
use super::impasses::Impasses;
use super::journal::{Journal, Undecided};
use super::messages::{Cause, Envelope, Event, Fault, Message, Output, Recovered, Term, Verdict};
use super::mutant::{self, Mutant};
use super::peers::{Hold, Peers};
use super::progress::Progress;
use super::roles::{Following, Leading, PendingClaim, Seeking, Yielded};
use super::settings::Settings;
use crate::types::{
    Boot, ClaimId, ClusterId, Epoch, Incarnation, Index, Members, NodeId, Now, RequestId, Span, Time,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a node has one role at a time")]
pub enum RoleState {
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
    pub(in crate::protocol) journal: Journal,
    pub(in crate::protocol) role: RoleState,
    pub(in crate::protocol) peers: Peers,
    /// Whom `peers` and the role know of.
    pub(in crate::protocol) known_members: Members,
    /// Which cluster others have been told that this is.
    pub(in crate::protocol) known_cluster: ClusterId,
    pub(in crate::protocol) grants: GivenLeases,
    pub(in crate::protocol) epochs: Epochs,
    pub(in crate::protocol) pending: Option<PendingClaim>,
    pub(in crate::protocol) waiting: Undecided,
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
    pub(in crate::protocol) stopped: bool,
    /// The fault that an unproved peer's message has shown last: it was logged, and is not acted on (P51).
    pub(in crate::protocol) told_fault: Option<Fault>,
}

impl Node {
    pub fn new(settings: Settings, recovered: Recovered, now: Now) -> Node {
        let (boot, incarnation, stored) = (recovered.boot, recovered.incarnation, recovered.vote.lease);
        let mut journal = Journal::new(&settings, recovered);
        let (promise, log) = (journal.promise().epoch, journal.log());
        let granted = !promise.is_zero() || !log.is_empty();
        let promised = journal.vote().lease;
        let untold = granted && stored < promised && !mutant::is_on(Mutant::LeaseUntold);
        let lease = match mutant::is_on(Mutant::LeaseByConfiguration) {
            true => settings.timing.lease,
            false => promised,
        };
        let grants = GivenLeases::after_start(now.mono, granted, lease);
        // In available mode the topology file says who belongs together, whatever the log says from before (P43).
        let by_log = log.roster().members().filter(|_| !settings.is_available());
        let members = by_log.unwrap_or(&settings.members).clone();
        let known_cluster = log.roster().cluster();
        // What stands in the log may not have reached the vote file before the crash.
        let votes = members.iter().any(|member| member.id == settings.me && member.votes);
        let counts = votes && log.roster().knows(settings.me, incarnation);
        if counts && !settings.is_available() {
            journal.note_admitted();
        }
        let others = members.iter().map(|member| member.id).filter(|node| *node != settings.me);
        let mut node = Node {
            boot,
            incarnation,
            now,
            woke_at: Time::default(),
            out: Vec::new(),
            journal,
            role: RoleState::Seeking(Seeking::new(now.mono, Cause::Started)),
            peers: Peers::new(others),
            known_members: members.clone(),
            known_cluster,
            grants,
            epochs: Epochs::after_start(promise, settings.me),
            pending: None,
            waiting: Undecided::default(),
            yielded: None,
            forming_without: None,
            listens_until: now.mono + settings.timing.fresh(),
            hears_cluster: false,
            own_hold: Hold::default(),
            claimed_as_heir: None,
            checkpoints: Checkpoints::default(),
            told_replaced: None,
            impasses: Impasses::default(),
            stopped: false,
            told_fault: None,
            settings,
        };
        if untold {
            // Before it answers any beat (P11).
            node.write_vote();
        }
        node
    }
}

/// A node that leads, with what its role remembers. Its methods only find out what is to be done; `Node` does it.
#[derive(Clone, Copy, Debug)]
pub struct Leader<'a> {
    pub node: &'a Node,
    pub leading: &'a Leading,
}

impl Node {
    pub(in crate::protocol) fn as_leader(&self) -> Option<Leader<'_>> {
        self.leading().map(|leading| Leader { node: self, leading })
    }

    /// Once the first record of its epoch is committed (P6).
    pub(in crate::protocol) fn as_open_leader(&self) -> Option<Leader<'_>> {
        self.as_leader().filter(|leader| leader.leading.opened)
    }

    pub(in crate::protocol) fn leading(&self) -> Option<&Leading> {
        match &self.role {
            RoleState::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    pub(in crate::protocol) fn leading_mut(&mut self) -> Option<&mut Leading> {
        match &mut self.role {
            RoleState::Leading(leading) => Some(leading),
            _ => None,
        }
    }

    /// How far that node is, if this one leads.
    pub(in crate::protocol) fn follower_mut(&mut self, node: NodeId) -> Option<&mut Progress> {
        self.leading_mut()?.progress.get_mut(&node)
    }
}

// The tools that all rules use: writing, promising, sending, committing. What must be durable
// before a message leaves is decided here and nowhere else (I9).
impl Node {
    pub(in crate::protocol) fn me(&self) -> NodeId {
        self.settings.me
    }

    pub(in crate::protocol) fn mono(&self) -> Time {
        self.now.mono
    }

    pub(in crate::protocol) fn promise(&self) -> Epoch {
        self.journal.promise().epoch
    }

    /// The disk that this node's last message came from.
    pub(in crate::protocol) fn disk_of(&self, node: NodeId) -> Incarnation {
        self.peers.get(node).map(|peer| peer.incarnation).unwrap_or_default()
    }

    pub(in crate::protocol) fn own_term(&self, counter: u64) -> Term {
        Term { epoch: Epoch::new(counter, self.me()), claim: ClaimId(self.boot.0) }
    }

    /// The vote as it stands goes to the disk.
    pub(in crate::protocol) fn write_vote(&mut self) {
        let write = self.journal.write_vote();
        self.out.push(write);
    }

    /// Raises the promise: from now on nothing below it is accepted (P2).
    pub(in crate::protocol) fn raise_promise(&mut self, term: Term) {
        self.epochs.hear_of(term.epoch);
        let write = self.journal.raise_promise(term);
        self.out.push(write);
    }

    pub fn envelope(&self, to: NodeId, message: Message) -> Envelope {
        Envelope {
            from: self.me(),
            to,
            boot: self.boot,
            incarnation: self.incarnation,
            admitted: self.journal.vote().admitted,
            cluster: self.log().roster().cluster(),
            format: self.settings.format,
            message,
        }
    }

    /// A message that binds this node to its promise: leaves once the promise is on disk (P29).
    pub(in crate::protocol) fn send(&mut self, to: NodeId, message: Message) {
        let after = self.journal.disk().vote();
        self.send_after(to, message, after);
    }

    /// An acknowledgement: leaves once the records are on disk too (P29).
    pub(in crate::protocol) fn send_acknowledgement(&mut self, to: NodeId, message: Message) {
        let after = match mutant::is_on(Mutant::AckBeforeSync) {
            true => After::default(),
            false => self.journal.disk().vote_and_log(),
        };
        self.send_after(to, message, after);
    }

    pub(in crate::protocol) fn send_after(&mut self, to: NodeId, message: Message, after: After) {
        let envelope = self.envelope(to, message);
        self.out.push(Output::Send { envelope, after });
    }

    pub(in crate::protocol) fn broadcast(&mut self, message: &Message, after: After) {
        for to in self.others() {
            self.send_after(to, message.clone(), after);
        }
    }

    pub(in crate::protocol) fn event(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }

    pub(in crate::protocol) fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        self.out.push(Output::Verdict { request, verdict });
    }

    /// Ends this node because of what another one has sent. Where nobody proves who speaks anybody may have sent it: there
    /// people are told, once, and what was sent is not listened to (P51).
    pub(in crate::protocol) fn stop_on_word(&mut self, fault: Fault) {
        if self.settings.peers_prove {
            self.stop(fault);
        } else if self.told_fault != Some(fault) {
            self.told_fault = Some(fault);
            self.event(Event::Accused { fault });
        }
    }

    pub(in crate::protocol) fn stop(&mut self, fault: Fault) {
        self.stopped = true;
        self.out.push(Output::Stop(fault));
    }

    /// Commits up to there and has it applied. A leader answers its writes by itself, once enough nodes have them.
    pub(in crate::protocol) fn commit_to(&mut self, index: Index) {
        let records = self.journal.commit_to(index);
        if records.is_empty() {
            return;
        }
        if let Some(leading) = self.leading_mut() {
            let bytes: usize = records.iter().map(|record| record.entry.size()).sum();
            leading.uncommitted_bytes = leading.uncommitted_bytes.saturating_sub(bytes);
        }
        self.out.push(Output::Apply(records));
        if !matches!(self.role, RoleState::Leading(_)) {
            self.decide_waiting(self.journal.commit());
        }
    }

    pub(in crate::protocol) fn fresh(&self) -> Span {
        self.settings.timing.fresh()
    }
}

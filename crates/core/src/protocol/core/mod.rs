//! The state and the operations that a node has in every role: what it must not forget, what it knows of other nodes, and its
//! outputs. The core knows no rules of a role: if an operation depends on a role, the role passes in what the operation needs.
//! The journal says what must be durable before a message leaves. `send` and `send_acknowledgement` ask the journal, and so does
//! a caller that needs other durability (I9).

mod copying;
mod histories;
mod members;

use std::collections::BTreeSet;

use crate::protocol::ballots::Checkpoints;
use crate::protocol::durability::After;
use crate::protocol::epochs::Epochs;
use crate::protocol::grants::GivenLeases;
use crate::protocol::impasses::Impasses;
use crate::protocol::journal::{Journal, Undecided};
use crate::protocol::log::Log;
use crate::protocol::messages::{
    Condition, Envelope, Event, Fault, Message, Output, Recovered, Refusal, Standing, Term, Verdict,
};
use crate::protocol::meta::Records;
use crate::protocol::mutant::{self, Mutant};
use crate::protocol::peers::{Hold, Peers};
use crate::protocol::settings::{Ack, LEASE_MOST, Settings};
use crate::types::{
    Boot, ClaimId, ClusterId, Epoch, Incarnation, Index, Members, NodeId, Now, Owner, Position, RequestId,
    Span, Time,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    pub settings: Settings,
    pub boot: Boot,
    pub incarnation: Incarnation,
    pub now: Now,
    /// The time at which this node last found that it had slept: the silence of others before that time proves nothing (P3).
    pub woke_at: Time,
    pub out: Vec<Output>,
    pub journal: Journal,
    pub undecided: Undecided,
    pub peers: Peers,
    /// The members that `peers` and the role know of.
    known_members: Members,
    /// The cluster id in the last `Output::Members`.
    known_cluster: ClusterId,
    pub grants: GivenLeases,
    pub epochs: Epochs,
    /// An operator has ordered that the cluster forms without these nodes (P9).
    pub forming_without: Option<BTreeSet<NodeId>>,
    /// A blank node listens until this time for a cluster that it may belong to already (P9). That is two beats after the start:
    /// the leader of such a cluster sends beats to every member.
    listens_until: Time,
    /// This node has heard a node of a cluster.
    pub hears_cluster: bool,
    pub own_hold: Hold,
    /// The time at which this node last claimed as the heir, without a dry run (P4).
    pub claimed_as_heir: Option<Time>,
    pub checkpoints: Checkpoints,
    /// The disk that this node has reported as the one that replaced it (P10).
    told_replaced: Option<Incarnation>,
    /// Merges that do not succeed (P48).
    pub impasses: Impasses,
    pub stopped: bool,
    /// The last fault that a message of an unproved peer named: it was logged, and has no effect (P51).
    told_fault: Option<Fault>,
}

impl Core {
    pub fn new(settings: Settings, recovered: Recovered, now: Now) -> Core {
        let (boot, incarnation, stored) = (recovered.boot, recovered.incarnation, recovered.vote.lease);
        let mut journal = Journal::new(&settings, recovered);
        let (promise, log) = (journal.promise().epoch, journal.log());
        // A lease is granted in answer to a beat, and a beat raises the promise first. So a disk without a
        // promise and without records has granted none.
        let granted = !promise.is_zero() || !log.is_empty();
        let promised = journal.vote().lease;
        let untold = granted && stored < promised && !mutant::is_on(Mutant::LeaseUntold);
        let lease = match mutant::is_on(Mutant::LeaseByConfiguration) {
            true => settings.timing.lease,
            false => promised,
        };
        let grants = GivenLeases::after_start(now.mono, granted, lease);
        // In available mode the topology file names the members, even if the log of an earlier safe mode does, too (P43).
        let by_log = log.roster().members().filter(|_| !settings.is_available());
        let members = by_log.unwrap_or(&settings.members).clone();
        let known_cluster = log.roster().cluster();
        // A fact that stands in the log may not have reached the vote file before the crash.
        let votes = members.iter().any(|member| member.id == settings.me && member.votes);
        let counts = votes && log.roster().knows(settings.me, incarnation);
        if counts && !settings.is_available() {
            journal.note_admitted();
        }
        let others = members.iter().map(|member| member.id).filter(|node| *node != settings.me);
        let mut core = Core {
            boot,
            incarnation,
            now,
            woke_at: Time::default(),
            out: Vec::new(),
            journal,
            undecided: Undecided::default(),
            peers: Peers::new(others),
            known_members: members.clone(),
            known_cluster,
            grants,
            epochs: Epochs::after_start(promise, settings.me),
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
            // The vote is written before this node answers any beat (P11).
            core.write_vote();
        }
        core
    }

    pub fn me(&self) -> NodeId {
        self.settings.me
    }

    pub fn mono(&self) -> Time {
        self.now.mono
    }

    pub fn fresh(&self) -> Span {
        self.settings.timing.fresh()
    }

    pub fn log(&self) -> &Log {
        self.journal.log()
    }

    pub fn last(&self) -> Position {
        self.journal.log().last()
    }

    pub fn promise(&self) -> Epoch {
        self.journal.promise().epoch
    }

    /// The disk from which the last message of that node came.
    pub fn disk_of(&self, node: NodeId) -> Incarnation {
        self.peers.get(node).map(|peer| peer.incarnation).unwrap_or_default()
    }

    /// The time at which this node last heard that node, if it ever did.
    pub fn last_heard(&self, node: NodeId) -> Option<Time> {
        let heard = self.peers.get(node)?.last_message;
        (heard != Time::default()).then_some(heard)
    }

    /// The boot is the claim's id: another process of this node cannot go on with a claim of this one (P2,
    /// C11).
    pub fn own_term(&self, counter: u64) -> Term {
        Term { epoch: Epoch::new(counter, self.me()), claim: ClaimId(self.boot.0) }
    }

    pub fn service_is_down(&self) -> bool {
        self.log().holds_of_service().any()
    }

    /// Whether the service is held for a merge and the whole log is committed: no write is in flight any more.
    pub fn is_at_rest(&self) -> bool {
        let held = self.log().holds_of_service().held_by(Owner::Merge);
        self.journal.commit() == self.last().index && held
    }
}

// Promising, writing and committing.
impl Core {
    /// Writes the current vote to the disk.
    pub fn write_vote(&mut self) {
        let write = self.journal.write_vote();
        self.out.push(write);
    }

    /// Raises the promise: from now on nothing below it is accepted (P2).
    pub fn raise_promise(&mut self, term: Term) {
        self.epochs.hear_of(term.epoch);
        let write = self.journal.raise_promise(term);
        self.out.push(write);
    }

    pub fn append(&mut self, records: Records) {
        let write = self.journal.append(records, self.mono());
        self.out.push(write);
        self.note_formed();
    }

    /// Commits up to `index` and has the records applied. Returns whether there was anything to commit.
    /// Outputs are carried out in order, so the state has these records before their writers get a verdict.
    pub fn commit_to(&mut self, index: Index) -> bool {
        let records = self.journal.commit_to(index);
        let any = !records.is_empty();
        if any {
            self.out.push(Output::Apply(records));
        }
        any
    }

    /// Commits up to the index that another node, the leader, reports as committed.
    pub fn commit_to_leaders_index(&mut self, index: Index) {
        if self.commit_to(index) {
            self.answer_committed_by_leader(self.journal.commit());
        }
    }

    /// Answers the writes up to `upto`. Either the record of the write stands at its index, or the record of another leader does, or the
    /// log no longer holds that index. `answer` decides unless another record stands there. Its last argument says whether the log shows
    /// the write's own record.
    pub fn decide(&mut self, upto: Index, answer: impl Fn(&Core, Position, bool) -> Verdict) {
        while let Some((position, request)) = self.undecided.take(upto) {
            let there = self.log().position(position.index);
            let verdict = match there {
                Some(there) if there != position => Verdict::Refused(Refusal::Superseded),
                _ => answer(self, position, there.is_some()),
            };
            self.verdict(request, verdict);
        }
    }

    /// Answers the writes that this node accepted while it led. It now learns that a record is committed, but not which nodes
    /// have it on disk, and under `ack = all` the caller asked for that. It also cannot tell whether a snapshot includes the
    /// write itself. In both cases the outcome is unknown.
    pub fn answer_committed_by_leader(&mut self, upto: Index) {
        let unknown = self.settings.ack == Ack::All && !mutant::is_on(Mutant::AckAllWhenDeposed);
        self.decide(upto, |core, position, stands| match stands && !unknown {
            true => Verdict::Written { position, acks: core.quorum() },
            false => Verdict::Unknown,
        });
    }
}

// Leases that other nodes may rely on.
impl Core {
    /// Grants the lease that the leader asks for, not the one configured here: the leader relies on what it asked for. The lease
    /// is on disk before the answer leaves (P11).
    pub fn grant(&mut self, to: NodeId, epoch: Epoch, lease: Span) {
        let (now, own) = (self.mono(), self.settings.timing.lease);
        let most = if mutant::is_on(Mutant::GrantsByConfiguration) { own } else { LEASE_MOST };
        let lease = lease.min(most);
        self.grants.grant(epoch, self.disk_of(to), now, lease);
        let others = match mutant::is_on(Mutant::LeaseFallsAtOnce) {
            true => Span::ZERO,
            false => self.grants.longest(now),
        };
        // The stored lease falls in one step, once no leader relies on this node for longer than usual. It does not fall a
        // little, with a write, at each beat.
        let (stored, usual) = (self.journal.vote().lease, lease.max(own));
        let longest = usual.max(others);
        if longest > stored || (longest < stored && longest == usual) {
            let write = self.journal.note_lease(longest);
            self.out.push(write);
        }
    }
}

// Outputs to other nodes, to clients, and to people.
impl Core {
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

    /// Sends a message that binds this node to its promise: it leaves once the promise is on disk (P29).
    pub fn send(&mut self, to: NodeId, message: Message) {
        let after = self.journal.disk().vote();
        self.send_after(to, message, after);
    }

    /// Sends an acknowledgement: it leaves once the records are on disk too (P29).
    pub fn send_acknowledgement(&mut self, to: NodeId, message: Message) {
        let after = match mutant::is_on(Mutant::AckBeforeSync) {
            true => After::default(),
            false => self.journal.disk().vote_and_log(),
        };
        self.send_after(to, message, after);
    }

    pub fn send_after(&mut self, to: NodeId, message: Message, after: After) {
        let envelope = self.envelope(to, message);
        self.out.push(Output::Send { envelope, after });
    }

    pub fn broadcast(&mut self, message: &Message, after: After) {
        for to in self.others() {
            self.send_after(to, message.clone(), after);
        }
    }

    pub fn event(&mut self, event: Event) {
        self.out.push(Output::Event(event));
    }

    /// This node could have led and did not: others come first for a while (P20).
    pub fn fail(&mut self) {
        let (before, now) = (self.own_hold, self.mono());
        self.own_hold.failed(now, &self.settings.timing);
        if let Some(time) = self.own_hold.grown_since(before, now) {
            self.event(Event::StandsBack { time });
        }
    }

    pub fn note_hold(&mut self, node: NodeId, held: Option<Span>) {
        if let Some(time) = held.filter(|_| !mutant::is_on(Mutant::HoldUntold)) {
            self.event(Event::Held { node, time });
        }
    }

    pub fn verdict(&mut self, request: RequestId, verdict: Verdict) {
        self.out.push(Output::Verdict { request, verdict });
    }

    pub fn refuse(&mut self, request: RequestId, refusal: Refusal) {
        self.verdict(request, Verdict::Refused(refusal));
    }

    /// The report of this node about itself. `hears`: the nodes that have answered it lately; `seeking`: how long it has looked for a
    /// leader.
    pub fn standing(&self, hears: BTreeSet<NodeId>, seeking: Span, condition: Condition) -> Standing {
        Standing {
            promise: self.promise(),
            seen: self.epochs.newest(),
            last: self.last(),
            hears,
            seeking,
            condition,
            vector: self.vector_to_send(),
        }
    }

    /// `held`: other nodes have this node on hold (P20).
    pub fn condition(&self, held: bool) -> Condition {
        match () {
            () if self.is_blank() && self.forming_without.is_some() => Condition::Ordered,
            () if self.is_blank() => Condition::Blank,
            () if !self.may_vote() => Condition::Recovering,
            () if held || self.journal.is_full() || self.own_hold.lasts(self.mono()) => Condition::Held,
            () => Condition::Fit,
        }
    }

    /// The message that asks a question. Only the node that it goes to knows the number of the question (P51).
    pub fn question(&self, to: NodeId, ask: u64, standing: Standing) -> Message {
        Message::Willing { ask: self.settings.numbers_from(to) + ask, standing }
    }

    /// The number at which this node's beats to that node begin, if this node leads.
    pub fn beats_from(&self, to: NodeId) -> u64 {
        if mutant::is_on(Mutant::BeatsAreGuessed) { 0 } else { self.settings.numbers_from(to) }
    }

    /// Ends this node because of a message of another node. If peers do not prove who they are, any process may have sent the message. In
    /// that case the fault is logged once, and the message is ignored (P51).
    pub fn stop_if_proven(&mut self, fault: Fault) {
        if self.settings.peers_prove {
            self.stop(fault);
        } else if self.told_fault != Some(fault) {
            self.told_fault = Some(fault);
            self.event(Event::Accused { fault });
        }
    }

    pub fn stop(&mut self, fault: Fault) {
        self.stopped = true;
        self.out.push(Output::Stop(fault));
    }

    /// This node, the leader of that epoch, has ended it (P16).
    pub fn note_over(&mut self, epoch: Epoch) {
        self.epochs.end(epoch);
        self.broadcast(&Message::Resigned { epoch }, self.journal.disk().vote());
    }
}

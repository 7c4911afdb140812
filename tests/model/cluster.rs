//! Three nodes, the messages between them, and the memory of a spectator: one state.

use std::fmt;

use eldest::protocol::Envelope;
use eldest::protocol::HandOverReason;
use eldest::replica::{Call, CallId, In};
use eldest::store::Command;
use eldest::types::NodeId;

use crate::history::{Breach, History, user};
use crate::host::{Host, Sync};
use crate::shared::Shared;

/// The number of times that each thing may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Deadlines that come.
    pub ticks: u8,
    /// Ports that refuse, rightly or not.
    pub refusals: u8,
    /// Crashes with the restart that follows.
    pub crashes: u8,
    /// Client writes.
    pub writes: u8,
    /// Messages delivered twice.
    pub copies: u8,
    /// Planned hand-overs.
    pub hand_overs: u8,
}

#[derive(Clone, PartialEq)]
pub enum Action {
    Deliver { packet: Packet, keep: bool },
    Sync(NodeId),
    Tick(NodeId),
    Refuse { at: NodeId, peer: NodeId },
    Crash { node: NodeId, kept: usize },
    Propose(NodeId),
    HandOver(NodeId),
}

pub type Packet = Shared<Envelope>;

#[derive(Clone, PartialEq, Hash)]
pub struct Cluster {
    pub hosts: [Shared<Host>; 3],
    /// The messages in flight, each at most once, by print. They may arrive in any order, or never: a loss is
    /// a message that stays here.
    flying: Vec<Packet>,
    pub budget: Budget,
    pub history: Shared<History>,
    pub breach: Option<Breach>,
}

impl Cluster {
    pub fn new(hosts: [Host; 3], history: History, budget: Budget) -> Cluster {
        Cluster {
            hosts: hosts.map(Shared::new),
            flying: Vec::new(),
            budget,
            history: Shared::new(history),
            breach: None,
        }
    }

    pub fn host(&self, node: NodeId) -> &Host {
        &self.hosts[node.0 as usize - 1]
    }

    /// Everything that may happen next. After a breach there is no action: the path ends there.
    pub fn actions(&self, actions: &mut Vec<Action>) {
        if self.breach.is_some() {
            return;
        }
        for packet in &self.flying {
            let (packet, keep) = (packet.clone(), false);
            actions.push(Action::Deliver { packet: packet.clone(), keep });
            if self.budget.copies > 0 {
                actions.push(Action::Deliver { packet, keep: true });
            }
        }
        for host in &self.hosts {
            self.actions_at(host, actions);
        }
    }

    fn actions_at(&self, host: &Host, actions: &mut Vec<Action>) {
        let (node, left, waiting) = (host.id(), self.budget, host.disk.queue.len());
        if waiting > 0 {
            actions.push(Action::Sync(node));
        }
        if left.ticks > 0 {
            actions.push(Action::Tick(node));
        }
        if left.crashes > 0 {
            actions.extend((0..=waiting).map(|kept| Action::Crash { node, kept }));
        }
        if left.refusals > 0
            && let Some(peer) = host.core().leader().filter(|leader| *leader != node)
        {
            actions.push(Action::Refuse { at: node, peer });
        }
        if left.writes > 0 && host.core().is_open() {
            actions.push(Action::Propose(node));
        }
        if left.hand_overs > 0 && host.core().is_open() && host.core().heir().is_some() {
            actions.push(Action::HandOver(node));
        }
    }

    /// The state after an action; None if the action changes nothing.
    pub fn after(&self, action: &Action, sync: Sync, lost: fn(&Envelope) -> bool) -> Option<Cluster> {
        let mut next = self.clone();
        next.spend(action);
        let flying = next.flying.len();
        let mut host = self.host(action.node()).clone();
        let mut history = History::clone(&self.history);
        match next.carry_out(action, &mut host, &mut history, sync) {
            Ok(sent) => sent.into_iter().filter(|envelope| !lost(envelope)).for_each(|envelope| {
                next.fly(Shared::new(envelope));
            }),
            Err(breach) => next.breach = Some(breach),
        }
        next.hosts[action.node().0 as usize - 1] = Shared::new(host);
        if history != *self.history {
            next.history = Shared::new(history);
        }
        // A message that changes nothing may as well be lost, and a loss is no action: see `flying`.
        let news = next.hosts != self.hosts || next.flying.len() > flying;
        (news || next.breach.is_some()).then_some(next)
    }

    fn carry_out(
        &self,
        action: &Action,
        host: &mut Host,
        history: &mut History,
        sync: Sync,
    ) -> Result<Vec<Envelope>, Breach> {
        match action {
            Action::Deliver { packet, .. } => {
                let envelope = Envelope::clone(packet);
                host.feed(In::Message(envelope.into(), None), sync, history)
            }
            Action::Sync(_) => {
                let mut sent = Vec::new();
                host.sync(history, &mut sent).map(|()| sent)
            }
            Action::Tick(_) => host.tick(sync, history),
            Action::Refuse { peer, .. } => host.feed(In::PeerRefused(*peer), sync, history),
            Action::Crash { kept, .. } => host.crash(*kept).map(|()| Vec::new()),
            Action::Propose(_) => {
                // The rest of the budget tells one write from another.
                host.feed(write(self.budget.writes), sync, history)
            }
            Action::HandOver(_) => {
                let calls = vec![(
                    CallId(99),
                    Call::HandOver { to: None, reason: HandOverReason::Ordered { by: "operator".into() } },
                )];
                host.feed(In::Calls(calls), sync, history)
            }
        }
    }

    fn spend(&mut self, action: &Action) {
        let budget = &mut self.budget;
        match action {
            Action::Deliver { packet, keep: false } => {
                self.flying.retain(|other| other != packet);
            }
            Action::Deliver { keep: true, .. } => budget.copies -= 1,
            Action::Sync(_) => {}
            Action::Tick(_) => budget.ticks -= 1,
            Action::Refuse { .. } => budget.refusals -= 1,
            Action::Crash { .. } => budget.crashes -= 1,
            Action::Propose(_) => budget.writes -= 1,
            Action::HandOver(_) => budget.hand_overs -= 1,
        }
    }

    fn fly(&mut self, packet: Packet) {
        let place = self.flying.binary_search_by_key(&packet.print(), Packet::print);
        if let Err(place) = place {
            self.flying.insert(place, packet);
        }
    }

    /// Keeps only these messages in flight.
    pub fn keep_flying(&mut self, wanted: impl Fn(&Envelope) -> bool) {
        self.flying.retain(|packet| wanted(packet));
    }
}

fn write(number: u8) -> In {
    let command = Command::from_payload(&user(&number.to_string())).expect("a command");
    let call = Call::Write { command: command.into(), key: None };
    In::Calls(vec![(CallId(number.into()), call)])
}

impl Action {
    /// The node at which it happens.
    fn node(&self) -> NodeId {
        match self {
            Action::Deliver { packet, .. } => packet.to,
            Action::Sync(node) | Action::Tick(node) | Action::Propose(node) => *node,
            Action::Crash { node, .. } | Action::HandOver(node) => *node,
            Action::Refuse { at, .. } => *at,
        }
    }
}

/// The notation of the logs and of the simulator's traces.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Deliver { packet, keep } => {
                let copy = if *keep { " (and once more)" } else { "" };
                write!(f, "{}{copy}", **packet)
            }
            Action::Sync(node) => write!(f, "{node} synced"),
            Action::Tick(node) => write!(f, "{node} tick"),
            Action::Refuse { at, peer } => write!(f, "{at} finds {peer} refusing"),
            Action::Crash { node, kept } => write!(f, "{node} crashes, {kept} writes made it"),
            Action::Propose(node) => write!(f, "{node} is given a write"),
            Action::HandOver(node) => write!(f, "{node} is asked to hand over"),
        }
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A line for each node: the first thing that a reader of a counterexample wants to see.
impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for host in &self.hosts {
            let (node, id) = (host.core(), host.id());
            let (role, promise) = (node.role_name(), node.vote().promise.epoch);
            write!(f, "{id} {role:?} promise {promise} commit {} log", node.commit_index())?;
            for record in node.log().records() {
                write!(f, " {record},")?;
            }
            writeln!(f, " on disk {} and {}", host.disk.vote.promise.epoch, host.disk.last())?;
        }
        write!(f, "breach {:?}", self.breach)
    }
}

//! The links: cut in one direction or both, or closed for one kind of message.

use std::collections::{BTreeMap, BTreeSet};

use eldest::protocol::Envelope;
use eldest::types::NodeId;

use crate::trace::{Fate, kind};

#[derive(Debug, Default)]
pub struct Network {
    cut: BTreeSet<(NodeId, NodeId)>,
    rules: Vec<Rule>,
    held: Vec<Envelope>,
    /// The newest message of each kind on each link, to be sent again.
    newest: BTreeMap<(NodeId, NodeId, String), Envelope>,
}

/// The fate of one kind of message on one link.
#[derive(Debug)]
pub struct Rule {
    pub from: NodeId,
    pub to: NodeId,
    pub kind: String,
    pub fate: Fate,
}

impl Network {
    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        self.cut.insert((from, to));
    }

    pub fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.contains(&(from, to))
    }

    pub fn heal(&mut self) {
        self.cut.clear();
        self.rules.retain(|rule| rule.fate == Fate::Held);
    }

    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// The fate of a message that leaves now; a held one stays here until it is released.
    pub fn judge(&mut self, envelope: &Envelope) -> Fate {
        let (from, to, kind) = (envelope.from, envelope.to, kind(&envelope.message));
        let rule = self.rules.iter().find(|rule| rule.from == from && rule.to == to && rule.kind == kind);
        let fate = match rule {
            _ if self.is_cut(from, to) => Fate::Lost,
            Some(rule) => rule.fate,
            None => Fate::Sent,
        };
        if fate == Fate::Held {
            self.held.push(envelope.clone());
        }
        self.newest.insert((from, to, kind), envelope.clone());
        fate
    }

    /// The messages that were held, in the order in which they were sent. Nothing is held from now on.
    pub fn release(&mut self) -> Vec<Envelope> {
        self.rules.retain(|rule| rule.fate != Fate::Held);
        std::mem::take(&mut self.held)
    }

    pub fn newest(&self, from: NodeId, to: NodeId, kind: &str) -> Option<&Envelope> {
        self.newest.get(&(from, to, kind.to_string()))
    }
}

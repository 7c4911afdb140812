//! P58: the story that the nodes' chronicles tell together is true. For each change of leader it names a cause, the cause concerns
//! the leader before, and it is what happened: the checker knows which process had died, which order was given, and which beats
//! had arrived.

use std::collections::{BTreeMap, BTreeSet};

use eldest::chronicle::{Book, Change, Note, NotedStep, changes};
use eldest::protocol::{Cause, Event, HandOverReason, Message};
use eldest::types::{Epoch, NodeId, Now, Position, Span, Time};

use super::{Check, ensure};

const NAME: &str = "P58 the story is true";

/// The chronicle of one machine, over all its processes.
#[derive(Debug)]
struct Journal {
    id: NodeId,
    book: Book,
    entries: Vec<Note>,
    /// The epoch that the process follows, and when a beat of it came last.
    heard: Option<(Epoch, Time)>,
    /// The epoch that the machine approved or followed last.
    turned_to: Option<Epoch>,
}

#[derive(Debug, Default)]
pub struct Story {
    /// One for each machine, because two of them may run under one id.
    journals: BTreeMap<usize, Journal>,
    /// When each epoch was claimed, and when each node's process died last, in true time.
    claimed: BTreeMap<Epoch, u64>,
    died: BTreeMap<NodeId, u64>,
    /// The nodes in whose name something else has refused a connection.
    denied: BTreeSet<NodeId>,
    /// The nodes that were ordered to hand over.
    ordered: BTreeSet<NodeId>,
}

impl Story {
    pub fn begins(&mut self, machine: usize, id: NodeId, now: Now) {
        let (book, started) = Book::open([], now, true);
        let before = self.journals.remove(&machine);
        let turned_to = before.as_ref().and_then(|before| before.turned_to);
        let mut entries = before.map_or(Vec::new(), |before| before.entries);
        entries.push(started);
        self.journals.insert(machine, Journal { id, book, entries, heard: None, turned_to });
    }

    pub fn died(&mut self, node: NodeId, at: u64) {
        self.died.insert(node, at);
    }

    /// Something refused a connection in the name of a node that lives.
    pub fn denied(&mut self, node: NodeId) {
        self.denied.insert(node);
    }

    pub fn ordered(&mut self, node: NodeId) {
        self.ordered.insert(node);
    }

    pub fn delivered(&mut self, machine: usize, message: &Message, now: Time) {
        let Message::Heartbeat(beat) = message else { return };
        let heard = self.journals.get_mut(&machine).and_then(|journal| journal.heard.as_mut());
        if let Some((_, at)) = heard.filter(|(epoch, _)| *epoch == beat.term.epoch) {
            *at = now;
        }
    }

    /// The machine reports an event at this true time. Its log ends at `last`, and it has promised that epoch.
    pub fn told(
        &mut self,
        at: u64,
        machine: usize,
        now: Now,
        event: &Event,
        (last, promised): (Position, Epoch),
    ) -> Check {
        if let Event::Claimed { epoch } = event {
            self.claimed.entry(*epoch).or_insert(at);
        }
        let Some(journal) = self.journals.get(&machine) else { return Ok(()) };
        ensure(self.is_true(journal, now.mono, event), NAME, || format!("{} says {event:?}", journal.id))?;
        let Some(journal) = self.journals.get_mut(&machine) else { return Ok(()) };
        match event {
            Event::Following { epoch } => {
                (journal.heard, journal.turned_to) = (Some((*epoch, now.mono)), Some(*epoch));
            }
            Event::Approved { epoch } => journal.turned_to = Some(*epoch),
            _ => {}
        }
        let noted = journal.book.note(now, event, last, promised);
        journal.entries.extend(noted);
        Ok(())
    }

    /// The cause that a node states is what happened.
    fn is_true(&self, journal: &Journal, now: Time, event: &Event) -> bool {
        match event {
            Event::Suspected { leader, cause: Cause::Refused, .. } => {
                self.has_died(journal, *leader) || self.denied.contains(leader)
            }
            Event::Suspected { leader, cause: Cause::Silence, silent, patience } => {
                let heard = journal.heard.filter(|(epoch, _)| epoch.leader == *leader);
                silent >= patience
                    && *silent > Span::ZERO
                    && heard.is_some_and(|(_, at)| now.since(at) >= *silent)
            }
            Event::HandsOver { reason: HandOverReason::Ordered { by }, .. } => {
                self.ordered.contains(&journal.id) && **by == *"operator"
            }
            Event::HandsOver { heir, reason: HandOverReason::Elder } => *heir < journal.id,
            _ => true,
        }
    }

    /// The process that claimed the epoch which this machine has turned to is dead.
    fn has_died(&self, journal: &Journal, leader: NodeId) -> bool {
        let turned_to = journal.turned_to.filter(|epoch| epoch.leader == leader);
        // In available mode a leader needs no claim. Of two machines under one id, the other one may have died.
        let is_alone = self.journals.values().filter(|other| other.id == leader).count() == 1;
        let claimed = turned_to.filter(|_| is_alone).and_then(|epoch| self.claimed.get(&epoch)).copied();
        self.died.get(&leader).is_some_and(|died| *died >= claimed.unwrap_or_default())
    }

    /// This epoch has opened. If there was a leader before, the story says why that one leads no longer.
    pub fn opened(&self, epoch: Epoch) -> Check {
        self.is_told(epoch, None)?;
        // The former leader may be gone, with its journal: others know of a hand-over as well.
        let all = self.changes(None);
        let change = all.iter().find(|change| change.epoch.as_deref() == Some(&epoch.to_string()));
        let cause = change.and_then(Change::cause).map(|step| &step.entry);
        let to_this_leader =
            cause.filter(|cause| cause.event == "hands_over" && cause.node == Some(epoch.leader.0));
        match change.and_then(|change| change.previous).filter(|_| to_this_leader.is_some()) {
            Some(former) => self.is_told(epoch, Some(NodeId(former))),
            None => Ok(()),
        }
    }

    fn is_told(&self, epoch: Epoch, without: Option<NodeId>) -> Check {
        let (epoch, all) = (epoch.to_string(), self.changes(without));
        let change = all.iter().find(|change| change.epoch.as_ref() == Some(&epoch));
        let is_told = |change: &Change| change.previous.is_none() || change.cause().is_some();
        ensure(change.is_some_and(is_told), NAME, || format!("no cause is told for {epoch}: {change:#?}"))?;
        let Some((change, cause)) = change.and_then(|change| Some((change, change.cause()?))) else {
            return Ok(());
        };
        // A node that never knew the leader before tells of an earlier one, unless another node knows better.
        let of_former =
            |step: &NotedStep| step.entry.event == "suspected" && step.entry.node == change.previous;
        let concerns = cause.entry.event != "suspected"
            || cause.entry.node == change.previous
            || !change.steps.iter().any(of_former);
        ensure(concerns, NAME, || format!("{epoch} is told to follow from {cause:?}: {change:#?}"))?;
        // A hand-over must name its heir and its reason.
        let is_bare =
            cause.entry.event == "stepped_down" && cause.entry.cause.as_deref() == Some("handed_over");
        ensure(!is_bare, NAME, || format!("{epoch}: nobody says why {cause:?}"))
    }

    /// The newest change of leader.
    pub fn newest(&self) -> Option<Change> {
        self.changes(None).into_iter().rev().nth(1)
    }

    /// Counts the events of that kind that the machine has noted.
    pub fn notes(&self, machine: usize, event: &str) -> usize {
        let journal = self.journals.get(&machine);
        journal.map_or(0, |journal| journal.entries.iter().filter(|entry| entry.event == event).count())
    }

    /// All changes of leader, and what has happened since.
    fn changes(&self, without: Option<NodeId>) -> Vec<Change> {
        let journals = self.journals.values().filter(|journal| Some(journal.id) != without);
        changes(&journals.map(|journal| (journal.id.0, journal.entries.clone())).collect())
    }
}

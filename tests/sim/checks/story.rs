//! P58: the story that the nodes' chronicles tell together is true. For each change of leader it names a cause, the cause concerns
//! the leader before, and it is what happened: the checker knows which process had died, which order was given, and which beats
//! had arrived.

use std::collections::BTreeMap;
use std::sync::Arc;

use eldest::chronicle::{Book, Change, Note, NotedStep, changes};
use eldest::protocol::{Cause, Event, HandOverReason, Message};
use eldest::types::{Epoch, NodeId, Now, Position, Span, Time};

use super::{Check, Violation, ensure};

const NAME: &str = "P58 the story is true";

/// The chronicle of one machine, over all its processes.
#[derive(Debug)]
struct Journal {
    id: NodeId,
    book: Book,
    /// The entries in the file.
    written: Vec<Arc<Note>>,
    /// The epoch that the process follows, and when a beat of it came last.
    heard: Option<(Epoch, Time)>,
    /// The epoch that the machine approved or followed last.
    turned_to: Option<Epoch>,
    /// The epoch that the process led last.
    led: Option<Epoch>,
}

impl Journal {
    fn entries(&self) -> Vec<Arc<Note>> {
        self.written.iter().cloned().chain(self.book.unnoted()).collect()
    }
}

#[derive(Debug, Default)]
pub struct Story {
    /// One for each machine, because two of them may run under one id.
    journals: BTreeMap<usize, Journal>,
    /// When each epoch was claimed, and when each node's process died last, in true time.
    claimed: BTreeMap<Epoch, u64>,
    died: BTreeMap<NodeId, u64>,
    /// When something else refused a machine's connection in the name of a node last.
    denied: BTreeMap<(usize, NodeId), u64>,
    /// When each machine was ordered last to hand over.
    ordered: BTreeMap<usize, u64>,
}

impl Story {
    pub fn begins(&mut self, machine: usize, id: NodeId, now: Now) {
        let (book, started) = Book::open([], now, true);
        let before = self.journals.remove(&machine);
        let turned_to = before.as_ref().and_then(|before| before.turned_to);
        let mut written = before.map_or(Vec::new(), |before| before.written);
        written.push(started.into());
        self.journals.insert(machine, Journal { id, book, written, heard: None, turned_to, led: None });
    }

    pub fn died(&mut self, node: NodeId, at: u64) {
        self.died.insert(node, at);
    }

    /// Something refused a connection in the name of a node that lives.
    pub fn denied(&mut self, machine: usize, node: NodeId, at: u64) {
        self.denied.insert((machine, node), at);
    }

    pub fn ordered(&mut self, machine: usize, at: u64) {
        self.ordered.insert(machine, at);
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
        ensure(self.is_true(machine, journal, now.mono, event), NAME, || {
            format!("{} says {event:?}", journal.id)
        })?;
        let Some(journal) = self.journals.get_mut(&machine) else { return Ok(()) };
        match event {
            Event::Following { epoch } => {
                (journal.heard, journal.turned_to) = (Some((*epoch, now.mono)), Some(*epoch));
            }
            Event::Approved { epoch } => journal.turned_to = Some(*epoch),
            Event::Opened { epoch } => journal.led = Some(*epoch),
            _ => {}
        }
        let noted = journal.book.note(now, event, last, promised);
        journal.written.extend(noted.iter().filter_map(|entry| Note::parse(&entry.line()).map(Arc::new)));
        Ok(())
    }

    /// The cause that a node states is what happened.
    fn is_true(&self, machine: usize, journal: &Journal, now: Time, event: &Event) -> bool {
        match event {
            Event::Suspected { leader, cause: Cause::Refused, .. } => {
                let claimed = self.claim(journal, *leader).unwrap_or_default();
                let since = |at: Option<&u64>| at.is_some_and(|at| *at >= claimed);
                since(self.died.get(leader)) || since(self.denied.get(&(machine, *leader)))
            }
            Event::Suspected { leader, cause: Cause::Silence, silent, patience } => {
                let heard = journal.heard.filter(|(epoch, _)| epoch.leader == *leader);
                silent >= patience
                    && *silent > Span::ZERO
                    && heard.is_some_and(|(_, at)| now.since(at) >= *silent)
            }
            Event::HandsOver { reason: HandOverReason::Ordered { by }, .. } => {
                let claimed = journal.led.and_then(|epoch| self.claimed.get(&epoch)).copied();
                let since = |at: &u64| *at >= claimed.unwrap_or_default();
                self.ordered.get(&machine).is_some_and(since) && **by == *"operator"
            }
            Event::HandsOver { heir, reason: HandOverReason::Elder } => *heir < journal.id,
            _ => true,
        }
    }

    /// When that leader claimed the epoch which this machine has turned to. In available mode a leader needs no claim. Of two machines
    /// under one id it is unknown which one claimed it.
    fn claim(&self, journal: &Journal, leader: NodeId) -> Option<u64> {
        let turned_to = journal.turned_to.filter(|epoch| epoch.leader == leader);
        let is_alone = self.journals.values().filter(|other| other.id == leader).count() == 1;
        turned_to.filter(|_| is_alone).and_then(|epoch| self.claimed.get(&epoch)).copied()
    }

    /// This epoch has opened. If there was a leader before, the story says why that one leads no longer.
    pub fn opened(&self, epoch: Epoch) -> Check {
        let (epoch, all) = (epoch.to_string(), self.changes(None));
        let change = find(&all, &epoch)?;
        let cause = is_told(change)?
            .filter(|cause| cause.entry.event == "hands_over" && cause.entry.node == change.leader);
        // The former leader may be gone, with its journal: others know of a hand-over to this leader as well.
        let Some(former) = change.previous().filter(|_| cause.is_some()) else { return Ok(()) };
        let all = self.changes(Some(NodeId(former)));
        is_told(find(&all, &epoch)?).map(drop)
    }

    /// At the end of a run, the story still says the cause of each change.
    pub fn ended(&self) -> Check {
        self.changes(None)
            .iter()
            .filter(|change| change.epoch.is_some())
            .try_for_each(|change| is_told(change).map(drop))
    }

    /// The newest change of leader.
    pub fn newest(&self) -> Option<Change> {
        self.changes(None).into_iter().rev().nth(1)
    }

    /// Counts the events of that kind that the machine has noted.
    pub fn notes(&self, machine: usize, event: &str) -> usize {
        let journal = self.journals.get(&machine);
        journal.map_or(0, |journal| journal.entries().iter().filter(|entry| entry.event == event).count())
    }

    /// All changes of leader, and what has happened since.
    fn changes(&self, without: Option<NodeId>) -> Vec<Change> {
        let journals = self.journals.values().filter(|journal| Some(journal.id) != without);
        changes(&journals.map(|journal| (journal.id.0, journal.entries())).collect(), false)
    }
}

fn find<'a>(all: &'a [Change], epoch: &str) -> Result<&'a Change, Violation> {
    let found = all.iter().find(|change| change.epoch.as_deref() == Some(epoch));
    found.ok_or_else(|| Violation { checker: NAME, what: format!("{epoch} is no change") })
}

/// Returns the cause of a change, which must have one if there was a leader before.
fn is_told(change: &Change) -> Result<Option<&NotedStep>, Violation> {
    let Some(cause) = change.cause() else {
        let is_first = change.previous().is_none();
        return ensure(is_first, NAME, || format!("no cause is told: {change:#?}")).map(|()| None);
    };
    let entry = &cause.entry;
    // A node that never knew the leader before tells of an earlier one, unless another node knows better. A candidate that never led is
    // no leader before.
    let knows_better = |step: &NotedStep| {
        step.entry.event == "suspected"
            && step.entry.node == change.previous()
            && step.entry.cause.as_deref() != Some(Cause::NoDecision.word())
    };
    let concerns = entry.event != "suspected"
        || entry.node == change.previous()
        || !change.steps.iter().any(knows_better);
    ensure(concerns, NAME, || format!("{cause:?} is told: {change:#?}"))?;
    // A hand-over must name its heir and its reason.
    let is_bare = entry.event == "stepped_down" && entry.cause.as_deref() == Some(Cause::HandedOver.word());
    ensure(!is_bare, NAME, || format!("nobody says why {cause:?}"))?;
    Ok(Some(cause))
}

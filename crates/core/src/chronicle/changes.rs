//! Derives what happened from the notes of all nodes: one change for each epoch that had a leader, with its steps in order.
//!
//! ```text
//!   n2:   following 1.1, suspected n1, claimed 2.2, backed 2.2, opened 2.2
//!   n3:   following 1.1, suspected n1, approved 2.2, following 2.2
//!                        │             └── names an epoch that was led: it belongs to the change to 2.2
//!                        └──────────────── ends 1.1 for its node: it belongs to the change after 1.1, which is to 2.2
//! ```
//!
//! An entry with an epoch that was led belongs to the change to that epoch, unless it says that the leader of that epoch steps down. Any
//! other entry belongs to the next leader that its node turns to. But in safe mode, the entries until a node lost its leader belong to the
//! change after that leader, even if the node was away during it. In available mode several sides may lead at the same time, so this
//! rule does not hold there. Entries that belong to no change have happened since the last one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::Serialize;

use super::note::Note;
use crate::protocol::Cause;
use crate::types::WallTime;

/// Orders epochs as P1 does: the greater counter, then the lower leader, is the greater epoch.
type Order = (u64, Reverse<u32>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotedStep {
    /// The node that has noted the step.
    pub by: u32,
    /// When it happened, by the wall clock of that node as it was set last.
    #[serde(skip)]
    pub placed: WallTime,
    /// The leadership that is over for that node with this step.
    #[serde(skip)]
    ends: Option<Order>,
    #[serde(flatten)]
    pub entry: Arc<Note>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Missing for the change that happens now.
    pub epoch: Option<String>,
    pub leader: Option<u32>,
    /// The epoch of the leader before, as far as the entries go back.
    former: Option<Order>,
    /// The time for which each node knew no leader, in milliseconds.
    pub leaderless: BTreeMap<u32, u64>,
    pub steps: Vec<NotedStep>,
}

impl Change {
    /// The leader before.
    pub fn previous(&self) -> Option<u32> {
        self.former.map(|(_, Reverse(leader))| leader)
    }

    /// The step that best explains why the former leader no longer leads: the first one in the order of P58.
    pub fn cause(&self) -> Option<&NotedStep> {
        let ranked = self.steps_before().filter_map(|(place, step)| {
            let rank = self.rank(step)?;
            Some((rank, Some(step.by) != self.leader, step.by, Reverse(place)))
        });
        ranked.min().map(|(.., Reverse(place))| &self.steps[place])
    }

    /// The number of the step in the list of P58.
    fn rank(&self, step: &NotedStep) -> Option<u8> {
        let event = step.entry.event.as_ref();
        let (by_new, by_former) = (Some(step.by) == self.leader, Some(step.by) == self.previous());
        if event == "merged" && by_new {
            return Some(1);
        }
        let former = self.former?;
        if step.ends == Some(former) {
            match event {
                "hands_over" => return Some(2),
                "handed_over" if self.has_a_say(step.by) => return Some(3),
                "stepped_down" if step.has(&[Cause::NoMajority, Cause::Stuck]) => return Some(6),
                "stepped_down" if step.has(&[Cause::GreaterEpoch, Cause::Merged]) => return Some(10),
                "stepped_down" => return Some(4),
                "suspected" if by_new && !step.has(&[Cause::Resigned]) => return Some(5),
                "suspected" if by_new => return Some(7),
                "suspected" if self.has_a_say(step.by) => return Some(8),
                "started" if by_former => return Some(9),
                _ => {}
            }
        }
        match event {
            _ if self.leader.is_none() || !self.has_a_say(step.by) => None,
            "suspected" => Some(11),
            "started" => Some(12),
            _ => None,
        }
    }

    /// Whether the node leads now, or has approved the node that leads. While there is no leader, every node counts.
    fn has_a_say(&self, node: u32) -> bool {
        let approved = |step: &NotedStep| {
            step.by == node && step.entry.event == "approved" && step.entry.epoch == self.epoch
        };
        self.leader.is_none_or(|leader| leader == node) || self.steps.iter().any(approved)
    }

    /// The steps of each node until it knows the new leader, with their indexes.
    fn steps_before(&self) -> impl Iterator<Item = (usize, &NotedStep)> {
        let mut know = BTreeSet::new();
        self.steps.iter().enumerate().filter(move |(_, step)| {
            let knows = know.contains(&step.by);
            if step.entry.begins_to_follow() {
                know.insert(step.by);
            }
            !knows
        })
    }

    /// The former leader's own observations that may explain the cause: the newest one of each kind. Some may have been noted after the
    /// next leader began to lead.
    pub fn testimony(&self) -> Vec<&NotedStep> {
        let Some(cause) = self.cause() else { return Vec::new() };
        let is = |causes: &[Cause]| cause.has(causes);
        let (before, later): (&[&str], &[&str]) = match cause.entry.event.as_ref() {
            "suspected" if is(&[Cause::Refused, Cause::NewProcess]) => (&[], &["started"]),
            "suspected" if is(&[Cause::Silence, Cause::Resigned]) => {
                (&["slept", "disk_waits", "stands_back"], &["disk_answers", "started"])
            }
            "stepped_down" if is(&[Cause::NoMajority]) => {
                (&["slept", "disk_waits", "barred"], &["disk_answers", "started"])
            }
            "stepped_down" if is(&[Cause::Stuck]) => {
                (&["slept", "disk_waits", "stands_back"], &["disk_answers"])
            }
            _ => return Vec::new(),
        };
        let mut told: Vec<&NotedStep> = Vec::new();
        // Later observations of the former leader do not explain its end. One exception: its wait for the disk is over.
        let mut explaining = before;
        for (_, step) in self.steps_before().filter(|(_, step)| Some(step.by) == self.previous()) {
            let event = step.entry.event.as_ref();
            if explaining.contains(&event) || later.contains(&event) {
                told.retain(|earlier| earlier.entry.event != event);
                told.push(step);
            }
            if step.ends.is_some() {
                explaining = &[];
            }
        }
        told
    }

    /// The start of the leadership, by the clock of the first node that notes it.
    pub fn led_since(&self) -> Option<WallTime> {
        self.steps.iter().find(|step| step.entry.begins_to_follow()).map(|step| step.entry.at)
    }

    /// Adds a step that names this epoch. The epoch contains the leader's id, so the entries of any follower show the leader, even if its
    /// own chronicle is lost.
    fn add(&mut self, step: NotedStep) {
        if step.entry.begins_to_follow() {
            self.epoch = step.entry.epoch.clone();
            self.leader = step.entry.epoch.as_deref().and_then(order).map(|(_, Reverse(leader))| leader);
            // If a node loses the same leader later and finds it again, that gap is not counted.
            let knows = self.steps.iter().any(|one| one.by == step.by && one.entry.begins_to_follow());
            if let Some(leaderless) = step.entry.leaderless_ms.filter(|_| !knows) {
                self.leaderless.insert(step.by, leaderless);
            }
        }
        self.steps.push(step);
    }
}

impl NotedStep {
    fn has(&self, causes: &[Cause]) -> bool {
        causes.iter().any(|cause| self.entry.cause.as_deref() == Some(cause.word()))
    }
}

/// Returns the changes, oldest first. The last one has no epoch and holds what has happened since, which may be nothing. An epoch
/// that no entry shows as led is no change: nodes may have claimed it without success. `sides`: several nodes may lead at once.
pub fn changes(nodes: &BTreeMap<u32, Vec<Arc<Note>>>, sides: bool) -> Vec<Change> {
    let follows = nodes.values().flatten().filter(|entry| entry.begins_to_follow());
    let led = follows.filter_map(|entry| order(entry.epoch.as_deref()?));
    let mut story =
        Story { sides, changes: led.map(|order| (order, Change::default())).collect(), ..Story::default() };
    for (by, entries) in nodes {
        story.hear(*by, entries);
    }
    let Story { mut changes, mut since, .. } = story;
    if !sides {
        let orders: Vec<Order> = changes.keys().copied().collect();
        for (before, change) in orders.iter().zip(changes.values_mut().skip(1)) {
            change.former = Some(*before);
        }
    }
    since.former = changes.keys().next_back().copied();
    let mut all: Vec<Change> = changes.into_values().chain([since]).collect();
    // The sort is stable: the steps of one node keep their order.
    all.iter_mut().for_each(|change| change.steps.sort_by_key(|step| step.placed));
    all
}

#[derive(Debug, Default)]
struct Story {
    sides: bool,
    /// One for each epoch that was led. With sides, the former epoch is the greatest one that the new leader or an approver had turned to.
    changes: BTreeMap<Order, Change>,
    since: Change,
}

impl Story {
    /// Adds the entries of one node.
    fn hear(&mut self, by: u32, entries: &[Arc<Note>]) {
        // The epoch that was led and that the node has turned to last.
        let mut turned_to = None;
        // The same epoch, until the node gives up its leader or turns to a candidate.
        let mut current = None;
        let mut open: Vec<NotedStep> = Vec::new();
        let entries = in_order(entries);
        for (placed, entry) in placed(&entries).into_iter().zip(entries) {
            let named = entry.epoch.as_deref().and_then(order);
            let turns = matches!(entry.event.as_ref(), "claimed" | "approved" | "opened" | "following");
            let own = named.filter(|epoch| self.changes.contains_key(epoch) && entry.event != "stepped_down");
            let Some(epoch) = own else {
                let ends = ended(&entry, &mut current);
                current = current.filter(|_| !turns);
                open.push(NotedStep { by, placed, ends, entry });
                continue;
            };
            let before = turned_to.filter(|before| entry.event != "following" && *before < epoch);
            if turns && turned_to != Some(epoch) {
                self.settle(turned_to, Some(epoch), placed, &mut open);
            }
            let change = self.changes.entry(epoch).or_default();
            if turns {
                // If the node has found the same leader again, that leader was not lost.
                let found = recent(std::mem::take(&mut open), placed);
                change.steps.extend(found.map(|step| NotedStep { ends: None, ..step }));
                (turned_to, current) = (Some(epoch), Some(epoch));
                if self.sides {
                    change.former = change.former.max(before);
                }
            }
            change.add(NotedStep { by, placed, ends: None, entry });
        }
        let now = open.last().map(|step| step.placed).unwrap_or_default();
        self.settle(turned_to, None, now, &mut open);
    }

    /// Puts the steps of a node where they belong. The node had turned to one epoch, and turns to another one at that time.
    fn settle(&mut self, from: Option<Order>, to: Option<Order>, time: WallTime, open: &mut Vec<NotedStep>) {
        let from = from.filter(|_| !self.sides);
        let after =
            from.and_then(|from| self.changes.range((Bound::Excluded(from), Bound::Unbounded)).next());
        let after = after.map(|(epoch, _)| *epoch);
        let mut first = std::mem::take(open);
        let end =
            first.iter().rposition(|step| from.is_some() && step.ends == from).map_or(0, |place| place + 1);
        let rest = first.split_off(end);
        for (epoch, steps) in [(after, first), (to.or(after), rest)] {
            let change = epoch.and_then(|epoch| self.changes.get_mut(&epoch)).unwrap_or(&mut self.since);
            change.steps.extend(recent(steps, time));
        }
    }
}

/// The leadership that is over for its node with this entry. `current` is the one that the node knows.
fn ended(entry: &Note, current: &mut Option<Order>) -> Option<Order> {
    match entry.event.as_ref() {
        "hands_over" => *current,
        "stepped_down" => {
            *current = None;
            entry.epoch.as_deref().and_then(order)
        }
        "suspected" | "handed_over" => {
            // A candidate that did not become leader was no leader.
            let was_led = entry.cause.as_deref() != Some(Cause::NoDecision.word());
            current.take().filter(|(_, Reverse(leader))| was_led && entry.node == Some(*leader))
        }
        "started" => current.take(),
        _ => None,
    }
}

/// Drops the steps long before the first decisive one, or, if none is decisive, long before `end`.
fn recent(open: Vec<NotedStep>, end: WallTime) -> impl Iterator<Item = NotedStep> {
    const LONG_BEFORE_US: u64 = 60_000_000;
    let first = open.iter().find(|step| step.entry.is_decisive()).map_or(end, |step| step.placed);
    open.into_iter().filter(move |step| step.placed.0.saturating_add(LONG_BEFORE_US) >= first.0)
}

/// The entries in the order in which they happened. A repeated observation may be noted later than an event that came after it.
fn in_order(entries: &[Arc<Note>]) -> Vec<Arc<Note>> {
    let mut entries = entries.to_vec();
    for process in entries.chunk_by_mut(|_, next| next.event != "started") {
        // Earlier versions did not note the time since the machine started.
        if process.iter().all(|entry| entry.up_us.is_some()) {
            process.sort_by_key(|entry| entry.up_us);
        }
    }
    entries
}

/// The time of each entry by the wall clock of its node as it was set last. The time since the machine started tells what a clock that
/// was set forward or back would have shown. No entry comes after the next one.
fn placed(entries: &[Arc<Note>]) -> Vec<WallTime> {
    let mut later: Option<(WallTime, Option<u64>)> = None;
    let mut times: Vec<WallTime> = Vec::with_capacity(entries.len());
    for entry in entries.iter().rev() {
        let at = match later {
            None => entry.at,
            Some((next, next_up)) => {
                match next_up.zip(entry.up_us).and_then(|(next, up)| next.checked_sub(up)) {
                    Some(between) => WallTime(next.0.saturating_sub(between)),
                    // The machine has started in between, or the entry is of an older version.
                    None => entry.at.min(next),
                }
            }
        };
        // The machine may have started in between as well, or the disk may have moved to another one.
        let up = entry.up_us.filter(|_| entry.event != "started");
        later = Some((at, up));
        times.push(at);
    }
    times.reverse();
    times
}

fn order(epoch: &str) -> Option<Order> {
    let (counter, leader) = epoch.split_once('.')?;
    Some((counter.parse().ok()?, Reverse(leader.parse().ok()?)))
}

/// Orders epochs such as `7.1` as P1 does. An invalid epoch comes before all.
pub fn epoch_order(epoch: &str) -> (u64, Reverse<u32>) {
    order(epoch).unwrap_or((0, Reverse(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Event, HandOverReason};
    use crate::types::{Epoch, NodeId, Span};

    fn changes(nodes: &BTreeMap<u32, Vec<Note>>, sides: bool) -> Vec<Change> {
        let shared = |entries: &Vec<Note>| entries.iter().cloned().map(Arc::new).collect();
        super::changes(&nodes.iter().map(|(node, entries)| (*node, shared(entries))).collect(), sides)
    }

    fn entry(at: u64, event: Event) -> Note {
        Note::of(WallTime(at), &event).expect("it is about who leads")
    }

    fn epoch(counter: u64, leader: u32) -> Epoch {
        Epoch { counter, leader: NodeId(leader) }
    }

    fn gives_up(at: u64, leader: u32) -> Note {
        entry(
            at,
            Event::Suspected {
                leader: NodeId(leader),
                cause: Cause::Refused,
                silent: Span::ZERO,
                patience: Span::ZERO,
            },
        )
    }

    fn words(change: &Change) -> Vec<(u32, &str)> {
        change.steps.iter().map(|step| (step.by, step.entry.event.as_ref())).collect()
    }

    #[test]
    fn a_hand_over_is_told_without_the_node_that_handed_over() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let n2 = vec![
            entry(10, Event::Following { epoch: first }),
            entry(20, Event::HandedOver { leader: NodeId(1), heir: NodeId(2) }),
            entry(21, Event::Claimed { epoch: second }),
            entry(22, Event::Opened { epoch: second }),
        ];
        let all = changes(&BTreeMap::from([(2, n2)]), false);
        assert_eq!(all[1].cause().map(|step| step.entry.event.as_ref()), Some("handed_over"));
    }

    #[test]
    fn sides_that_merged_are_the_cause_of_the_leader_that_merged_them() {
        let (elder, younger, both) = (epoch(1, 1), epoch(2, 2), epoch(3, 1));
        let n1 = vec![
            entry(10, Event::Opened { epoch: elder }),
            entry(30, Event::SteppedDown { epoch: elder, cause: Cause::Merged }),
            entry(31, Event::Merged { with: NodeId(2), index: 7 }),
            entry(32, Event::Opened { epoch: both }),
        ];
        let n2 = vec![
            entry(20, Event::Opened { epoch: younger }),
            entry(33, Event::SteppedDown { epoch: younger, cause: Cause::GreaterEpoch }),
            entry(34, Event::Following { epoch: both }),
        ];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), true);
        let cause = all[2].cause().expect("a cause");
        assert_eq!((cause.by, cause.entry.event.as_ref()), (1, "merged"));
        assert_eq!(all[2].previous(), Some(1), "node 1 led its side, and still leads");
    }

    /// n1 was cut off. It saw no majority before the others gave it up, and its clock is behind.
    #[test]
    fn the_cause_is_the_same_whatever_the_clocks_show() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        for behind in [0, 100] {
            let n1 = vec![
                entry(1, Event::Opened { epoch: first }),
                entry(110 - behind, Event::SteppedDown { epoch: first, cause: Cause::NoMajority }),
                entry(111 - behind, Event::Slept { late: Span::millis(900) }),
                entry(130 - behind, Event::Following { epoch: second }),
            ];
            let n2 = vec![
                entry(2, Event::Following { epoch: first }),
                gives_up(112, 1),
                entry(120, Event::Opened { epoch: second }),
            ];
            let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), false);
            let cause = all[1].cause().expect("a cause");
            assert_eq!((cause.by, cause.entry.event.as_ref()), (2, "suspected"));
            assert!(
                all[1].testimony().is_empty(),
                "a pause does not explain that a port refused connections"
            );
        }
    }

    /// n1 led 1.1 and died. It restarted, was approved for 2.1, and died again before it led.
    #[test]
    fn a_candidate_that_is_given_up_is_no_leader_before() {
        let (first, third) = (epoch(1, 1), epoch(3, 2));
        let no_decision = Event::Suspected {
            leader: NodeId(1),
            cause: Cause::NoDecision,
            silent: Span::ZERO,
            patience: Span::ZERO,
        };
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            Note::started(WallTime(12), false),
            entry(13, Event::Claimed { epoch: epoch(2, 1) }),
            entry(16, Event::SteppedDown { epoch: epoch(2, 1), cause: Cause::Stuck }),
        ];
        let mut n2 = vec![
            entry(2, Event::Following { epoch: first }),
            gives_up(10, 1),
            entry(14, Event::Approved { epoch: epoch(2, 1) }),
            entry(19, no_decision),
        ];
        let nodes = |n2: &[Note]| BTreeMap::from([(1, n1.clone()), (2, n2.to_vec())]);
        let told = |change: &Change| {
            let cause = change.cause().expect("a cause");
            (cause.by, cause.entry.cause.clone().expect("a word").into_owned())
        };
        assert_eq!(told(&changes(&nodes(&n2), false)[1]), (2, "refused".to_string()), "while nobody leads");
        n2.push(entry(20, Event::Opened { epoch: third }));
        assert_eq!(told(&changes(&nodes(&n2), false)[1]), (2, "refused".to_string()));
    }

    /// n3 gave up n1 when n1 led for the first time. Then it was cut off until it led itself.
    #[test]
    fn an_earlier_leadership_of_the_same_node_explains_nothing() {
        let n1 = vec![
            entry(1, Event::Opened { epoch: epoch(1, 1) }),
            entry(30, Event::Opened { epoch: epoch(3, 1) }),
        ];
        let n2 = vec![entry(20, Event::Opened { epoch: epoch(2, 2) })];
        let silence = Event::Suspected {
            leader: NodeId(1),
            cause: Cause::Silence,
            silent: Span::millis(500),
            patience: Span::millis(500),
        };
        let n3 = vec![
            entry(2, Event::Following { epoch: epoch(1, 1) }),
            entry(10, silence),
            entry(45, Event::Opened { epoch: epoch(4, 3) }),
        ];
        let n4 = vec![
            entry(31, Event::Following { epoch: epoch(3, 1) }),
            gives_up(40, 1),
            entry(44, Event::Approved { epoch: epoch(4, 3) }),
        ];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2), (3, n3), (4, n4)]), false);
        assert_eq!(all[3].cause().map(|step| step.by), Some(4));
        assert_eq!(words(&all[1]), [(3, "suspected"), (2, "opened")], "it belongs to the change after 1.1");
    }

    /// n1 handed over, and was away while n2 and n3 led.
    #[test]
    fn what_a_leader_said_stays_with_its_change_when_it_returns() {
        let (first, second, third) = (epoch(1, 1), epoch(2, 2), epoch(3, 3));
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            entry(10, Event::HandsOver { heir: NodeId(2), reason: HandOverReason::Stopping }),
            entry(11, Event::SteppedDown { epoch: first, cause: Cause::HandedOver }),
            Note::started(WallTime(40), false),
            entry(41, Event::Following { epoch: third }),
        ];
        let n2 = vec![entry(12, Event::Opened { epoch: second })];
        let n3 =
            vec![entry(13, Event::Following { epoch: second }), entry(30, Event::Opened { epoch: third })];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2), (3, n3)]), false);
        assert_eq!(all[1].cause().map(|step| step.entry.event.as_ref()), Some("hands_over"));
        assert_eq!(words(&all[2]), [(3, "opened"), (1, "started"), (1, "following")]);
    }

    /// n1 reached no majority. Hours later, still cut off, its machine was suspended.
    #[test]
    fn what_a_leader_observed_after_its_end_does_not_explain_it() {
        let n1 = vec![
            entry(1, Event::Opened { epoch: epoch(1, 1) }),
            entry(8, Event::Slept { late: Span::millis(300) }),
            entry(10, Event::SteppedDown { epoch: epoch(1, 1), cause: Cause::NoMajority }),
            entry(9_000, Event::Slept { late: Span::millis(5_000) }),
        ];
        let n2 = vec![entry(12, Event::Opened { epoch: epoch(2, 2) })];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), false);
        let slept: Vec<_> = all[1].testimony().iter().map(|step| step.entry.for_ms).collect();
        assert_eq!(slept, [Some(300)]);
    }

    /// n3 gave up n1 and leads its side. An hour later n1, which still leads the other side, ends.
    #[test]
    fn a_leader_that_ends_later_does_not_explain_the_other_side() {
        let n1 = vec![
            entry(1, Event::Opened { epoch: epoch(1, 1) }),
            entry(90, Event::SteppedDown { epoch: epoch(1, 1), cause: Cause::Stuck }),
        ];
        let n3 = vec![
            entry(2, Event::Following { epoch: epoch(1, 1) }),
            gives_up(10, 1),
            entry(11, Event::Opened { epoch: epoch(2, 3) }),
        ];
        let all = changes(&BTreeMap::from([(1, n1), (3, n3)]), true);
        assert_eq!((all[1].previous(), all[1].cause().map(|step| step.by)), (Some(1), Some(3)));
        assert_eq!(words(&all[2]), [(1, "stepped_down")]);
    }

    /// n3 lost n1 for a moment. Hours later n1 reached no majority.
    #[test]
    fn an_alarm_that_passed_explains_nothing() {
        let (first, second) = (epoch(1, 1), epoch(2, 3));
        let suspected = |at, cause| {
            let (silent, patience) = (Span::ZERO, Span::ZERO);
            entry(at, Event::Suspected { leader: NodeId(1), cause, silent, patience })
        };
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            entry(9_000, Event::SteppedDown { epoch: first, cause: Cause::NoMajority }),
        ];
        let n3 = vec![
            entry(2, Event::Following { epoch: first }),
            suspected(10, Cause::Silence),
            entry(12, Event::Following { epoch: first }),
            suspected(9_001, Cause::Resigned),
            entry(9_002, Event::Opened { epoch: second }),
        ];
        let all = changes(&BTreeMap::from([(1, n1), (3, n3)]), false);
        assert_eq!(all[1].cause().map(|step| step.by), Some(1));
        assert_eq!(
            words(&all[0])[2..],
            [(3, "suspected"), (3, "following")],
            "it belongs to that leadership"
        );
        assert!(all[0].cause().is_none());
    }

    /// n2 lost its link to n1 hours before n1 reached no majority. There is no leader.
    #[test]
    fn the_word_of_the_leader_before_counts_more_than_that_of_a_node_cut_off() {
        let first = epoch(1, 1);
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            entry(9_000, Event::SteppedDown { epoch: first, cause: Cause::NoMajority }),
        ];
        let n2 = vec![entry(2, Event::Following { epoch: first }), gives_up(10, 1)];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), false);
        assert_eq!(all[1].cause().map(|step| step.by), Some(1));
    }

    /// An observation that was noted late is placed at the time at which it happened.
    #[test]
    fn what_recurs_stands_where_it_happened() {
        let noted = |at: u64, event| Note { up_us: Some(at), ..entry(at, event) };
        let n1 = vec![
            Note { up_us: Some(0), ..Note::started(WallTime(0), false) },
            noted(1, Event::Opened { epoch: epoch(1, 1) }),
            noted(7, Event::WallClockSet { micros: 900_000 }),
            noted(5, Event::Slept { late: Span::millis(900) }),
            noted(9, Event::SteppedDown { epoch: epoch(1, 1), cause: Cause::NoMajority }),
            noted(30, Event::Following { epoch: epoch(2, 2) }),
        ];
        let all = changes(&BTreeMap::from([(1, n1)]), false);
        let wanted = [(1, "slept"), (1, "clock_set"), (1, "stepped_down"), (1, "following")];
        assert_eq!(words(&all[1]), wanted);
        assert_eq!(all[1].testimony().len(), 1);
    }

    /// Each side has its leader. Node 3 never followed node 1.
    #[test]
    fn the_leader_of_another_side_is_no_leader_before() {
        let (elder, younger, third) = (epoch(2, 1), epoch(1, 2), epoch(3, 3));
        let nodes = BTreeMap::from([
            (1, vec![entry(20, Event::Opened { epoch: elder })]),
            (2, vec![entry(10, Event::Opened { epoch: younger })]),
            (
                3,
                vec![
                    entry(11, Event::Following { epoch: younger }),
                    entry(40, Event::Opened { epoch: third }),
                ],
            ),
        ]);
        assert_eq!(changes(&nodes, true)[2].previous(), Some(2));
        assert_eq!(
            changes(&nodes, false)[2].previous(),
            Some(1),
            "with one leader at a time it is the last one"
        );
    }

    /// An observation of node 1 about itself, an hour earlier, explains nothing.
    #[test]
    fn old_observations_are_no_steps() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let slept = |at: u64| entry(at, Event::Slept { late: Span::millis(900) });
        const HOUR: u64 = 3_600_000_000;
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            slept(2),
            slept(HOUR - 5_000_000),
            entry(HOUR, Event::SteppedDown { epoch: first, cause: Cause::NoMajority }),
            entry(HOUR + 9, Event::Following { epoch: second }),
        ];
        let n2 = vec![
            entry(1, Event::Following { epoch: first }),
            entry(HOUR + 5, Event::Opened { epoch: second }),
        ];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), false);
        assert_eq!(words(&all[1]), [(1, "slept"), (1, "stepped_down"), (2, "opened"), (1, "following")]);
        assert_eq!(all[1].testimony().len(), 1);
    }

    #[test]
    fn the_steps_of_all_nodes_make_one_change() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let leaderless = |entry: Note, ms| Note { leaderless_ms: Some(ms), ..entry };
        let n2 = vec![
            entry(10, Event::Following { epoch: first }),
            gives_up(20, 1),
            entry(21, Event::Claimed { epoch: second }),
            entry(23, Event::Backed { epoch: second, by: NodeId(3) }),
            leaderless(entry(25, Event::Opened { epoch: second }), 5),
        ];
        let n3 = vec![
            entry(11, Event::Following { epoch: first }),
            gives_up(19, 1),
            entry(22, Event::Approved { epoch: second }),
            leaderless(entry(26, Event::Following { epoch: second }), 7),
        ];
        let all = changes(&BTreeMap::from([(2, n2), (3, n3)]), false);
        assert_eq!(all.len(), 3);
        assert_eq!(all[1].epoch.as_deref(), Some("2.2"));
        assert_eq!(all[1].leader, Some(2));
        let wanted = [
            (3, "suspected"),
            (2, "suspected"),
            (2, "claimed"),
            (3, "approved"),
            (2, "backed"),
            (2, "opened"),
            (3, "following"),
        ];
        assert_eq!(words(&all[1]), wanted);
        assert_eq!(all[1].cause().map(|step| step.by), Some(2), "the one who leads now");
        assert_eq!(all[1].leaderless, BTreeMap::from([(2, 5), (3, 7)]));
        assert_eq!(all[1].led_since(), Some(WallTime(25)));
        assert_eq!(
            all[2],
            Change { former: order("2.2"), ..Change::default() },
            "nothing has happened since"
        );
    }

    /// n3 was cut off, and n1 handed over to n2 later.
    #[test]
    fn who_was_not_asked_is_no_cause() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            entry(20, Event::SteppedDown { epoch: first, cause: Cause::HandedOver }),
            entry(23, Event::Following { epoch: second }),
        ];
        let n2 = vec![
            entry(2, Event::Following { epoch: first }),
            entry(21, Event::Claimed { epoch: second }),
            entry(22, Event::Opened { epoch: second }),
        ];
        let n3 = vec![
            entry(2, Event::Following { epoch: first }),
            gives_up(10, 1),
            entry(30, Event::Following { epoch: second }),
        ];
        let all = changes(&BTreeMap::from([(1, n1.clone()), (2, n2), (3, n3)]), false);
        assert_eq!(
            all[1].cause().map(|step| (step.by, step.entry.event.as_ref())),
            Some((1, "stepped_down"))
        );
        // The node loses the same leader and finds it again: that says nothing about how this leader came to lead.
        let again = vec![
            Note { leaderless_ms: Some(5), ..entry(2, Event::Following { epoch: first }) },
            gives_up(10, 1),
            Note { leaderless_ms: Some(4_000), ..entry(14, Event::Following { epoch: first }) },
        ];
        let all = changes(&BTreeMap::from([(1, n1[..1].to_vec()), (3, again)]), false);
        assert_eq!((all[0].cause(), all[0].leaderless.get(&3)), (None, Some(&5)));
    }

    #[test]
    fn a_clock_that_is_set_reorders_nothing() {
        let up = |at, up, event| Note { up_us: Some(up), ..entry(at, event) };
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let n1 = vec![
            up(1_000, 10, Event::Opened { epoch: first }),
            up(1_020, 30, Event::SteppedDown { epoch: first, cause: Cause::NoMajority }),
            // Its clock was an hour ahead until here.
            up(50, 60, Event::Following { epoch: second }),
        ];
        let n2 =
            vec![entry(2, Event::Following { epoch: first }), entry(40, Event::Opened { epoch: second })];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), false);
        assert_eq!(words(&all[1]), [(1, "stepped_down"), (2, "opened"), (1, "following")]);
        let placed: Vec<u64> = all[1].steps.iter().map(|step| step.placed.0).collect();
        assert_eq!(placed, [20, 40, 50]);
        assert_eq!(all[1].cause().map(|step| step.by), Some(1));
    }

    /// n3 never knew n2, which led after n1.
    #[test]
    fn the_cause_is_about_the_leader_before() {
        let (first, second, third) = (epoch(1, 1), epoch(2, 2), epoch(3, 3));
        let n3 = vec![
            entry(1, Event::Following { epoch: first }),
            gives_up(2, 1),
            entry(33, Event::Claimed { epoch: third }),
            entry(35, Event::Opened { epoch: third }),
        ];
        let n4 = vec![
            entry(11, Event::Following { epoch: second }),
            gives_up(30, 2),
            entry(34, Event::Approved { epoch: third }),
            entry(36, Event::Following { epoch: third }),
        ];
        let all = changes(&BTreeMap::from([(3, n3), (4, n4.clone())]), false);
        assert_eq!((all[2].previous(), all[2].cause().map(|step| step.by)), (Some(2), Some(4)));
        // All nodes have started since, so the leader before no longer leads.
        let n3 = vec![Note::started(WallTime(32), false), entry(35, Event::Opened { epoch: third })];
        let all = changes(&BTreeMap::from([(3, n3), (4, n4[..1].to_vec())]), false);
        assert_eq!(all[1].cause().map(|step| (step.by, step.entry.event.as_ref())), Some((3, "started")));
    }

    /// n1 has handed over, and does not know yet that n2 leads.
    #[test]
    fn what_a_node_does_before_it_knows_the_leader_belongs_to_that_leader() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let n1 = vec![
            entry(1, Event::Opened { epoch: first }),
            entry(2, Event::HandsOver { heir: NodeId(2), reason: HandOverReason::Stopping }),
            entry(2, Event::SteppedDown { epoch: first, cause: Cause::HandedOver }),
        ];
        let n2 = vec![entry(1, Event::Following { epoch: first }), entry(5, Event::Opened { epoch: second })];
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]), false);
        assert_eq!(words(&all[1]), [(1, "hands_over"), (1, "stepped_down"), (2, "opened")]);
        assert_eq!(all[1].cause().map(|step| step.entry.event.as_ref()), Some("hands_over"));
    }

    #[test]
    fn a_claim_that_fails_is_a_step_on_the_way_to_the_next_leader() {
        let entries = vec![
            entry(1, Event::Claimed { epoch: epoch(4, 2) }),
            entry(2, Event::TurnedDown { epoch: epoch(4, 2), by: NodeId(3) }),
            entry(9, Event::Following { epoch: epoch(5, 1) }),
            gives_up(12, 1),
        ];
        let all = changes(&BTreeMap::from([(2, entries)]), false);
        assert_eq!(words(&all[0]), [(2, "claimed"), (2, "turned_down"), (2, "following")]);
        assert_eq!((all[1].epoch.as_deref(), words(&all[1])), (None, vec![(2, "suspected")]));
    }

    #[test]
    fn what_a_leader_says_when_it_ends_belongs_to_the_change_after() {
        let end = entry(7, Event::SteppedDown { epoch: epoch(1, 1), cause: Cause::NoMajority });
        let entries = vec![
            entry(1, Event::Opened { epoch: epoch(1, 1) }),
            end,
            entry(9, Event::Following { epoch: epoch(10, 2) }),
        ];
        let all = changes(&BTreeMap::from([(1, entries)]), false);
        assert_eq!(words(&all[1]), [(1, "stepped_down"), (1, "following")]);
        assert_eq!(all[1].epoch.as_deref(), Some("10.2"), "10 comes after 1, as a number");
    }

    #[test]
    fn strange_words_of_another_version_harm_nothing() {
        let strange = |text: &str| Note::parse(text).expect("an entry");
        let entries = vec![
            strange(r#"{"at":"2023-11-14T22:13:20Z","event":"opened"}"#),
            strange(r#"{"at":"2023-11-14T22:13:20Z","event":"opened","epoch":"x"}"#),
            strange(r#"{"at":"2023-11-14T22:13:20Z","event":"danced","epoch":"9.9"}"#),
        ];
        let all = changes(&BTreeMap::from([(1, entries)]), false);
        assert_eq!(all.iter().map(|change| change.steps.len()).sum::<usize>(), 3);
    }
}

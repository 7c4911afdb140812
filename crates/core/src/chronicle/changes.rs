//! Derives what happened from the notes of all nodes: one change for each epoch that had a leader, with its steps in order.
//!
//! Steps of different nodes are ordered by wall clocks, which may differ; steps of one node keep the order in which they
//! happened, even if its clock was set meanwhile.
//!
//! ```text
//!   entries of n2:   suspected n1, claimed 2.2, backed 2.2, opened 2.2 ── all belong to the change to 2.2
//!   entries of n3:   suspected n1, approved 2.2, following 2.2 ────────── so do these
//!                    └── names no epoch: it belongs to the next epoch that this node follows
//! ```
//!
//! An entry with an epoch that was led belongs to the change to that epoch, unless it says that the leader of that epoch steps
//! down. Any other entry belongs to the next leader that its node finds: it was a step on the way there, like a failed claim. While the
//! node has not found the newest leader yet, its last entries belong to the leader after the last one that it knew.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::note::Note;
use crate::types::WallTime;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotedStep {
    /// The node that has noted the step.
    pub by: u32,
    /// When it happened, by the wall clock of that node as it was set last.
    #[serde(skip)]
    pub placed: WallTime,
    #[serde(flatten)]
    pub entry: Note,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Missing for the change that happens now.
    pub epoch: Option<String>,
    pub leader: Option<u32>,
    /// The leader before, as far as the entries go back.
    pub previous: Option<u32>,
    /// The greatest epoch that the new leader and its approvers followed before.
    knew: Option<(u64, Reverse<u32>)>,
    /// The time for which each node knew no leader, in milliseconds.
    pub leaderless: BTreeMap<u32, u64>,
    pub steps: Vec<NotedStep>,
}

impl Change {
    /// The step that explains why the former leader leads no longer: the first one that is known, in the order of P58. A node that gave up
    /// the leader for its own reason, and was not asked, does not explain it. If no node gave it up, all have started since.
    pub fn cause(&self) -> Option<&NotedStep> {
        let (new, former) = (self.leader, self.previous);
        let is_former = |node: u32| former.is_none_or(|former| former == node);
        let led = self.steps.iter().position(|step| step.entry.begins_to_follow());
        let before = &self.steps[..led.unwrap_or(self.steps.len())];
        let own = |steps: &'_ [NotedStep], event: &str, outdated: bool| {
            let ends = |step: &NotedStep| {
                step.says(event) && is_former(step.by) && step.entry.is_outdated() == outdated
            };
            steps.iter().rposition(ends).map(|place| &self.steps[place])
        };
        let approvers: BTreeSet<u32> =
            self.steps.iter().filter(|step| step.says("approved")).map(|step| step.by).collect();
        // While no node leads, the word of each one counts.
        let others: BTreeSet<u32> = match new {
            Some(_) => approvers,
            None => self.steps.iter().map(|step| step.by).collect(),
        };
        let nodes = || new.into_iter().chain(others.iter().copied());
        let gave_up = |is_right: &dyn Fn(u32) -> bool| {
            let found = |step: &&NotedStep| step.says("suspected") && step.entry.node.is_some_and(is_right);
            nodes().find_map(|node| self.steps_of(node).filter(found).last())
        };
        let started = |node: u32| self.steps_of(node).find(|step| step.says("started"));
        let heard = |step: &&NotedStep| step.says("handed_over") && step.entry.node.is_some_and(is_former);
        let merged = new.and_then(|new| self.steps_of(new).find(|step| step.says("merged")));
        // The clocks of nodes differ, so a hand-over counts even if it seems to come after the next leader.
        merged
            .or_else(|| own(&self.steps, "hands_over", false))
            .or_else(|| nodes().find_map(|node| self.steps_of(node).filter(heard).last()))
            .or_else(|| own(before, "stepped_down", false))
            .or_else(|| gave_up(&is_former))
            .or_else(|| own(&self.steps, "stepped_down", false))
            .or_else(|| former.and_then(started))
            .or_else(|| own(&self.steps, "stepped_down", true))
            .or_else(|| gave_up(&|_| true))
            .or_else(|| former.and(nodes().find_map(started)))
    }

    /// The steps of one node until it knows this leader.
    fn steps_of(&self, node: u32) -> impl Iterator<Item = &NotedStep> {
        self.steps
            .iter()
            .filter(move |step| step.by == node)
            .take_while(|step| !step.entry.begins_to_follow())
    }

    /// The newest three observations of the former leader about itself. It may have made them after the next one began to lead.
    pub fn testimony(&self) -> Vec<&NotedStep> {
        let explains = |step: &&NotedStep| {
            matches!(
                step.entry.event.as_ref(),
                "slept" | "disk_waits" | "disk_answers" | "started" | "barred"
            )
        };
        let by_former = |step: &&NotedStep| Some(step.by) == self.previous;
        let cause = self.cause();
        let all = self.steps.iter().filter(by_former).filter(explains).filter(|step| Some(*step) != cause);
        let mut newest: Vec<&NotedStep> = all.rev().take(3).collect();
        newest.reverse();
        newest
    }

    /// The start of the leadership, by the clock of the first node that notes it.
    pub fn led_since(&self) -> Option<WallTime> {
        self.steps.iter().find(|step| step.entry.begins_to_follow()).map(|step| step.entry.at)
    }

    /// The epoch names its leader, so any node that followed shows who led, even if the leader's own chronicle is lost.
    fn add(&mut self, by: u32, (placed, entry): (WallTime, Note)) {
        if entry.begins_to_follow() {
            self.epoch = entry.epoch.clone();
            self.leader = self.leader.or_else(|| leader(entry.epoch.as_deref()?));
            if let Some(leaderless) = entry.leaderless_ms {
                // A node that later loses the same leader and finds it again has a separate gap, which is not counted.
                self.leaderless.entry(by).or_insert(leaderless);
            }
        }
        self.steps.push(NotedStep { by, placed, entry });
    }
}

impl NotedStep {
    fn says(&self, event: &str) -> bool {
        self.entry.event == event
    }
}

/// Returns the changes, oldest first. The last one has no epoch and holds what has happened since, which may be nothing. An epoch
/// that no entry shows as led is no change: nodes may have claimed it without success.
pub fn changes(nodes: &BTreeMap<u32, Vec<Note>>) -> Vec<Change> {
    let led: BTreeSet<&str> = nodes
        .values()
        .flatten()
        .filter(|entry| entry.begins_to_follow())
        .filter_map(|entry| entry.epoch.as_deref())
        .collect();
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    let mut since = Change::default();
    for (by, entries) in nodes {
        let mut open: Vec<(WallTime, Note)> = Vec::new();
        let mut known = None;
        for (placed, entry) in placed(entries).into_iter().zip(entries.iter().cloned()) {
            // The step of a leader that steps down belongs to the next change.
            let own =
                entry.epoch.as_deref().filter(|epoch| led.contains(epoch) && entry.event != "stepped_down");
            match own.map(str::to_string) {
                Some(epoch) => {
                    let order = epoch_order(&epoch);
                    let has_a_say = entry.event != "following";
                    let change = changes.entry(epoch).or_default();
                    if let Some(before) = known.filter(|before| has_a_say && *before < order) {
                        change.knew = change.knew.max(Some(before));
                    }
                    if entry.begins_to_follow() {
                        known = Some(order);
                        recent(&mut open, placed).for_each(|before| change.add(*by, before));
                    }
                    change.add(*by, (placed, entry));
                }
                None => open.push((placed, entry)),
            }
        }
        // A node that does not know the newest leader yet is on the way to the one after the last that it knew.
        let next = known.and_then(|known| {
            let later = led.iter().filter(|epoch| epoch_order(epoch) > known);
            later.min_by_key(|epoch| epoch_order(epoch))
        });
        let change = match next {
            Some(epoch) => changes.entry(epoch.to_string()).or_default(),
            None => &mut since,
        };
        let now = open.last().map(|(placed, _)| *placed).unwrap_or_default();
        recent(&mut open, now).for_each(|entry| change.add(*by, entry));
    }
    let mut all: Vec<Change> = changes.into_values().filter(|change| change.epoch.is_some()).collect();
    all.push(since);
    // The sort is stable: the steps of one node keep their order.
    all.iter_mut().for_each(|change| change.steps.sort_by_key(|step| step.placed));
    let last = all.len() - 1;
    all[..last].sort_by_key(|change| (change.epoch.as_deref().map(epoch_order), change.led_since()));
    for later in 1..all.len() {
        // In available mode the leader of another side is no leader before.
        let knew = all[later].knew.map(|(_, Reverse(leader))| leader);
        all[later].previous = knew.or(all[later - 1].leader);
    }
    all
}

/// The entries that belong to a change, which ends at that time. What a node observed long before its first step explains nothing.
fn recent(open: &mut Vec<(WallTime, Note)>, end: WallTime) -> impl Iterator<Item = (WallTime, Note)> {
    const LONG_BEFORE_US: u64 = 60_000_000;
    let first = open.iter().find(|(_, entry)| !entry.is_observation()).map_or(end, |(placed, _)| *placed);
    let is_recent = move |(placed, entry): &(WallTime, Note)| {
        !entry.is_observation() || placed.0.saturating_add(LONG_BEFORE_US) >= first.0
    };
    std::mem::take(open).into_iter().filter(is_recent)
}

/// The time of each entry by the wall clock of its node as it was set last. The time since the machine started tells what a clock that
/// was set forward or back would have shown. No entry comes after the next one.
fn placed(entries: &[Note]) -> Vec<WallTime> {
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

/// The leader of epoch `7.2` is node 2.
fn leader(epoch: &str) -> Option<u32> {
    epoch.rsplit_once('.')?.1.parse().ok()
}

/// Orders epochs such as `7.1`: the greater counter, then the lower leader, is the greater epoch. An invalid epoch comes before
/// all. It is the order of P1, here for the text of an epoch.
pub fn epoch_order(epoch: &str) -> (u64, Reverse<u32>) {
    let parts = epoch.split_once('.');
    let parsed =
        parts.and_then(|(counter, leader)| Some((counter.parse().ok()?, Reverse(leader.parse().ok()?))));
    parsed.unwrap_or((0, Reverse(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cause, Event, HandOverReason};
    use crate::types::{Epoch, NodeId, Span};

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
        let all = changes(&BTreeMap::from([(2, n2)]));
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
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]));
        let cause = all[2].cause().expect("a cause");
        assert_eq!((cause.by, cause.entry.event.as_ref()), (1, "merged"));
        assert_eq!(all[2].previous, Some(1), "node 1 led its side, and still leads");
    }

    /// What node 1 observed of itself an hour before explains nothing.
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
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]));
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
        let all = changes(&BTreeMap::from([(2, n2), (3, n3)]));
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
        assert_eq!(all[2], Change { previous: Some(2), ..Change::default() }, "nothing has happened since");
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
        let all = changes(&BTreeMap::from([(1, n1.clone()), (2, n2), (3, n3)]));
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
        let all = changes(&BTreeMap::from([(1, n1[..1].to_vec()), (3, again)]));
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
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]));
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
        let all = changes(&BTreeMap::from([(3, n3), (4, n4.clone())]));
        assert_eq!((all[2].previous, all[2].cause().map(|step| step.by)), (Some(2), Some(4)));
        // All have started since: that is why nobody leads who led before.
        let n3 = vec![Note::started(WallTime(32), false), entry(35, Event::Opened { epoch: third })];
        let all = changes(&BTreeMap::from([(3, n3), (4, n4[..1].to_vec())]));
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
        let all = changes(&BTreeMap::from([(1, n1), (2, n2)]));
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
        let all = changes(&BTreeMap::from([(2, entries)]));
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
        let all = changes(&BTreeMap::from([(1, entries)]));
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
        let all = changes(&BTreeMap::from([(1, entries)]));
        assert_eq!(all.iter().map(|change| change.steps.len()).sum::<usize>(), 3);
    }
}

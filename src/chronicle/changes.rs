//! Derives what happened from the notes of all nodes: one change for each epoch that had a leader, with its steps in order.
//!
//! Steps of different nodes are ordered by wall clocks, which may differ; steps of one node keep the order in which they
//! happened.
//!
//! ```text
//!   entries of n2:   suspected n1, claimed 2.2, backed 2.2, opened 2.2 ── all belong to the change to 2.2
//!   entries of n3:   suspected n1, approved 2.2, following 2.2 ────────── so do these
//!                    └── names no epoch: it belongs to the next epoch that this node follows
//! ```
//!
//! An entry with an epoch that was led belongs to the change to that epoch, unless it says that the leader of that epoch steps
//! down. Any other entry belongs to the next leader that its node finds: it was a step on the way there, like a failed claim.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::entry::Entry;
use crate::types::WallTime;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The node that has noted the step.
    pub by: u32,
    #[serde(flatten)]
    pub entry: Entry,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Missing for the change that happens now.
    pub epoch: Option<String>,
    pub leader: Option<u32>,
    /// The time for which each node knew no leader, in milliseconds.
    pub leaderless: BTreeMap<u32, u64>,
    pub steps: Vec<Step>,
}

impl Change {
    /// The step that says why the former leader was given up: its own step, or else that of the new leader, or that of a node that
    /// approved the new leader. A node that gave up the leader for its own reason, and was not asked, is no cause; nor is any later step.
    pub fn cause(&self) -> Option<&Step> {
        let led =
            self.steps.iter().position(|step| step.entry.begins_to_follow()).unwrap_or(self.steps.len());
        let before = &self.steps[..led];
        let says = |step: &Step, event: &str| step.entry.event == event;
        let approved = |by: u32| before.iter().any(|step| step.by == by && says(step, "approved"));
        let suspected = |is_one: &dyn Fn(u32) -> bool| {
            before.iter().rev().find(|step| says(step, "suspected") && is_one(step.by))
        };
        // A leader that steps down because of a greater epoch has only heard of the next leader, which is no cause.
        let is_own =
            |step: &&Step| says(step, "stepped_down") && step.entry.cause.as_deref() != Some("greater_epoch");
        let own = before.iter().rev().find(is_own);
        own.or_else(|| suspected(&|by| Some(by) == self.leader)).or_else(|| suspected(&approved))
    }

    /// The start of the leadership, by the clock of the first node that notes it.
    pub fn led_since(&self) -> Option<WallTime> {
        self.steps.iter().find(|step| step.entry.begins_to_follow()).map(|step| step.entry.at)
    }

    /// The epoch names its leader, so any node that followed shows who led, even if the leader's own chronicle is lost.
    fn add(&mut self, by: u32, entry: Entry) {
        if entry.begins_to_follow() {
            self.epoch = entry.epoch.clone();
            self.leader = self.leader.or_else(|| leader(entry.epoch.as_deref()?));
            if let Some(leaderless) = entry.leaderless_ms {
                // A node that later loses the same leader and finds it again has a separate gap, which is not counted.
                self.leaderless.entry(by).or_insert(leaderless);
            }
        }
        self.steps.push(Step { by, entry });
    }
}

/// Returns the changes, oldest first. The last one has no epoch and holds what has happened since, which may be nothing. An epoch
/// that no entry shows as led is no change: nodes may have claimed it without success.
pub fn changes(nodes: &BTreeMap<u32, Vec<Entry>>) -> Vec<Change> {
    let led: BTreeSet<&str> = nodes
        .values()
        .flatten()
        .filter(|entry| entry.begins_to_follow())
        .filter_map(|entry| entry.epoch.as_deref())
        .collect();
    let mut changes: BTreeMap<String, Change> = BTreeMap::new();
    let mut since = Change::default();
    for (by, entries) in nodes {
        let mut open: Vec<Entry> = Vec::new();
        for entry in entries.iter().cloned() {
            // The step of a leader that steps down belongs to the next change.
            let own =
                entry.epoch.as_deref().filter(|epoch| led.contains(epoch) && entry.event != "stepped_down");
            match own.map(str::to_string) {
                Some(epoch) => {
                    let change = changes.entry(epoch).or_default();
                    if entry.begins_to_follow() {
                        open.drain(..).for_each(|before| change.add(*by, before));
                    }
                    change.add(*by, entry);
                }
                None => open.push(entry),
            }
        }
        open.into_iter().for_each(|entry| since.add(*by, entry));
    }
    let mut all: Vec<Change> = changes.into_values().filter(|change| change.epoch.is_some()).collect();
    all.push(since);
    // The sort is stable: the steps of one node keep their order.
    all.iter_mut().for_each(|change| change.steps.sort_by_key(|step| step.entry.at));
    let last = all.len() - 1;
    all[..last].sort_by_key(|change| (change.epoch.as_deref().map(epoch_order), change.led_since()));
    all
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
    use crate::protocol::{Cause, Event};
    use crate::types::{Epoch, NodeId};

    fn entry(at: u64, event: Event) -> Entry {
        Entry::of(WallTime(at), &event).expect("it is about who leads")
    }

    fn epoch(counter: u64, leader: u32) -> Epoch {
        Epoch { counter, leader: NodeId(leader) }
    }

    fn gives_up(at: u64, leader: u32) -> Entry {
        entry(at, Event::Suspected { leader: NodeId(leader), cause: Cause::Refused })
    }

    fn words(change: &Change) -> Vec<(u32, &str)> {
        change.steps.iter().map(|step| (step.by, step.entry.event.as_ref())).collect()
    }

    #[test]
    fn the_steps_of_all_nodes_make_one_change() {
        let (first, second) = (epoch(1, 1), epoch(2, 2));
        let leaderless = |entry: Entry, ms| Entry { leaderless_ms: Some(ms), ..entry };
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
        assert_eq!(all[2], Change::default(), "nothing has happened since");
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
            Entry { leaderless_ms: Some(5), ..entry(2, Event::Following { epoch: first }) },
            gives_up(10, 1),
            Entry { leaderless_ms: Some(4_000), ..entry(14, Event::Following { epoch: first }) },
        ];
        let all = changes(&BTreeMap::from([(1, n1[..1].to_vec()), (3, again)]));
        assert_eq!((all[0].cause(), all[0].leaderless.get(&3)), (None, Some(&5)));
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
        let strange = |text: &str| Entry::parse(text).expect("an entry");
        let entries = vec![
            strange(r#"{"at":"2023-11-14T22:13:20Z","event":"opened"}"#),
            strange(r#"{"at":"2023-11-14T22:13:20Z","event":"opened","epoch":"x"}"#),
            strange(r#"{"at":"2023-11-14T22:13:20Z","event":"danced","epoch":"9.9"}"#),
        ];
        let all = changes(&BTreeMap::from([(1, entries)]));
        assert_eq!(all.iter().map(|change| change.steps.len()).sum::<usize>(), 3);
    }
}

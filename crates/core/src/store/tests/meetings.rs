//! Random histories of nodes that split and meet: the result follows from the writes and from what their writers knew, whatever
//! the order of meetings.

use std::collections::{BTreeMap, BTreeSet};

use super::random::{random_call, random_command, random_token};
use super::rng::Rng;
use super::sides::{Side, Write, meet};
use super::*;
use crate::store::tables::lost_id;
use crate::store::tables::{Version, sort_by_precedence};
use crate::types::Text;

struct World {
    rng: Rng,
    tokens: Rng,
    sides: Vec<Side>,
    writes: Vec<Write>,
    settled: Position,
    numbers: u32,
    /// Entries of the journal that were dropped or applied.
    dropped: BTreeSet<Text>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let ids = [1, 2, 3, 4];
        let sides = Side::group(&ids[..2 + rng.below(3)], |_| ());
        World {
            rng,
            tokens: Rng::new(seed + 9000),
            sides,
            writes: Vec::new(),
            settled: Position::ZERO,
            numbers: 0,
            dropped: BTreeSet::new(),
        }
    }

    fn any(&mut self) -> usize {
        self.rng.below(self.sides.len())
    }

    fn step(&mut self) {
        match self.rng.below(16) {
            0 => self.follow(),
            1 => {
                let (one, other) = (self.any(), self.any());
                if one != other {
                    meet(&mut self.sides, one, other);
                }
            }
            2 => self.merge_alone(),
            3 => self.settle(),
            4 => self.resolve(),
            _ => self.write(),
        }
    }

    /// Writes some records on one node.
    fn write(&mut self) {
        let node = self.any();
        let span = if self.rng.one_in(30) { CALLS_KEPT.0 / 2 } else { 1000 };
        for side in &mut self.sides {
            side.now.cluster = side.now.cluster + Span(span);
        }
        let command = match self.rng.below(3) {
            0 => {
                self.numbers += 1;
                let (key, number) = (self.rng.pick(&["a", "a/b", "a:1.1@2", "z"]), self.numbers);
                command("PutDoc", &format!(r#"{{"key":"{key}","value":{number}}}"#))
            }
            1 => command("DeleteDoc", &format!(r#"{{"key":"{}"}}"#, self.rng.pick(&["a", "a/b", "z"]))),
            _ => random_command(&mut self.rng, &self.sides[node].store),
        };
        if self.tokens.one_in(4) {
            let token = random_token(&mut self.tokens).to_payload(None);
            self.sides[node].apply(Entry::Client(token));
        }
        let call = random_call(&mut self.rng);
        let (_, writes) = self.sides[node].apply(Entry::Client(command.to_payload(call)));
        self.writes.extend(writes);
    }

    /// Applies or drops an entry of the journal.
    fn resolve(&mut self) {
        let node = self.any();
        let page = self.sides[node].store.conflicts("", None, PAGE_MOST).items;
        if page.is_empty() {
            return;
        }
        let id = page[self.rng.below(page.len())].id.clone();
        let kind = self.rng.pick(&["ApplyConflict", "DropConflict"]);
        let payload = command(kind, &format!(r#"{{"id":{}}}"#, serde_json::to_string(&id).expect("text")));
        let (applied, writes) = self.sides[node].apply(Entry::Client(payload.to_payload(None)));
        assert!(applied.outcome.is_ok());
        self.dropped.insert(id);
        self.writes.extend(writes);
    }

    /// A node follows a leader that knows everything the node knows.
    fn follow(&mut self) {
        let (leader, node) = (self.any(), self.any());
        if leader != node && self.sides[leader].vector.includes(&self.sides[node].vector) {
            let leader = self.sides[leader].clone();
            self.sides[node].follow(&leader);
        }
    }

    /// A node merges another node's entries, and loses contact before it can override any other node.
    fn merge_alone(&mut self) {
        let (one, other) = (self.any(), self.any());
        if one != other {
            let theirs = self.sides[other].clone();
            self.sides[one].merge(&theirs);
        }
    }

    /// All nodes have one history: the leader settles it, and some nodes learn of it.
    fn settle(&mut self) {
        let leader = self.any();
        let known = self.sides[leader].clone();
        if self.sides.iter().any(|side| !known.vector.includes(&side.vector)) {
            return;
        }
        self.sides[leader].apply(Entry::Lead { founding: None });
        let known = self.sides[leader].clone();
        (0..self.sides.len()).filter(|node| *node != leader).for_each(|node| self.sides[node].follow(&known));
        self.settled = known.store.applied();
        self.sides[leader].settle(self.settled);
        let known = self.sides[leader].clone();
        for node in 0..self.sides.len() {
            if node != leader && self.rng.one_in(2) {
                self.sides[node].follow(&known);
            }
        }
    }

    /// Merges all nodes, in a random order.
    fn joined(&self, rng: &mut Rng) -> Side {
        let mut sides = self.sides.clone();
        while sides.iter().any(|side| side.vector != sides[0].vector) {
            let (one, other) = (rng.below(sides.len()), rng.below(sides.len()));
            if one == other {
                continue;
            }
            let known = sides[one].clone();
            match known.vector.includes(&sides[other].vector) {
                true => sides[other].follow(&known),
                false => drop(meet(&mut sides, one, other)),
            }
        }
        sides.swap_remove(0)
    }

    /// The versions that no writer has overwritten knowingly, the winner first.
    fn expected(&self) -> BTreeMap<Key, Vec<Version>> {
        let mut expected: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
        for write in &self.writes {
            let over = |other: &Write| other.key == write.key && other.known.covers(write.held.at);
            if !self.writes.iter().any(over) {
                expected.entry(write.key.clone()).or_default().push(write.held.clone());
            }
        }
        expected.iter_mut().for_each(|(key, held)| sort_by_precedence(key, held));
        expected
    }

    fn check_joined(&self, joined: &Side) {
        joined.check();
        let unsettled = |held: &&Version| held.at > self.settled;
        for (key, held) in self.expected() {
            let said = joined.store.versions(&key);
            let (winner, rivals) = held.split_first().expect("one at least");
            assert_eq!(
                joined.store.row(&key).map(|row| row.value),
                winner.value.clone().map(Some),
                "{key:?}"
            );
            let rivals: BTreeSet<_> = rivals.iter().filter(unsettled).map(|held| held.at).collect();
            let said: BTreeSet<_> = said.iter().skip(1).map(|held| held.at).collect();
            assert_eq!(said, rivals, "{key:?}");
            self.check_journal(joined, &key, &held);
        }
    }

    /// Every version that lost is in the journal, unless its entry was dropped or applied.
    fn check_journal(&self, joined: &Side, key: &Key, held: &[Version]) {
        for lost in held.iter().skip(1).filter(|lost| lost.value != held[0].value) {
            let id = lost_id(key, lost.at);
            let entry = joined.store.conflict(&id);
            assert!(entry.is_some() || self.dropped.contains(&id), "{id} vanished");
            if let Some(entry) = entry {
                assert_eq!(entry.conflict.lost, *lost);
            }
        }
    }
}

#[test]
fn whatever_the_order_of_meetings_nothing_vanishes() {
    let (mut rivals, mut conflicts, mut settled) = (0, 0, 0);
    for seed in 0..50 {
        let mut world = World::new(seed);
        for _ in 0..60 + seed % 60 {
            world.step();
        }
        world.sides.iter().for_each(Side::check);
        let joined = world.joined(&mut Rng::new(seed));
        world.check_joined(&joined);
        for order in 1..4 {
            let other = world.joined(&mut Rng::new(seed + 1000 * order));
            assert_eq!(other.data(), joined.data(), "seed {seed}, order {order}");
            world.check_joined(&other);
        }
        let sides = joined.store.merging.as_ref().expect("told apart");
        rivals += sides.rivals.len();
        conflicts += sides.conflicts.len();
        settled += usize::from(world.settled != Position::ZERO);
    }
    assert!(rivals > 40 && conflicts > 100 && settled > 10, "{rivals} {conflicts} {settled}");
}

#[test]
fn a_merge_again_changes_nothing_and_a_whole_state_says_the_same() {
    for seed in 0..30 {
        let mut world = World::new(seed + 5000);
        (0..60).for_each(|_| world.step());
        let (one, two) = (&world.sides[0], &world.sides[1]);
        let at = one.meeting(two);
        let data = two.difference_to(&one.vector);
        let merged = one.store.merged(&one.vector, &data, &two.vector, at, one.now).expect("sound").store;
        let whole = two.store.whole();
        let by_whole = one.store.merged(&one.vector, &whole, &two.vector, at, one.now).expect("sound").store;
        assert_eq!(by_whole, merged, "seed {seed}");
        let mut joined = one.vector.clone();
        joined.join(&two.vector);
        joined.note(at);
        for data in [data, whole] {
            let later = Position::new(at.epoch, at.index + 7);
            let again = merged.merged(&joined, &data, &two.vector, later, one.now).expect("sound");
            assert_eq!(again.conflicts, 0);
            assert!(again.store.entries().eq(merged.entries()), "seed {seed}");
            assert_eq!(Store { applied: at, ..again.store }, merged, "seed {seed}");
        }
        let (by_whole, _) = two.store.overridden(&merged.whole(), at, one.now).expect("sound");
        assert_eq!(by_whole, merged);
    }
}

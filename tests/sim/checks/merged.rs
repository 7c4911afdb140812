//! C20 to C23: a state is what the records that it includes make of it, no matter how often and in which
//! order sides have met; and every value that lost is in the journal.

use std::collections::BTreeSet;

use eldest::store::Key;
use eldest::types::{NodeId, Position, Vector};

use super::history::{History, Rival};
use super::{Check, ensure};
use crate::sides::Side;

const VALUES: &str = "C21 a state is what its records make of it";
const JOURNAL: &str = "C23 nothing vanishes";

/// Checks one state. `vector` is what the node says that the state includes.
pub fn state(history: &History, node: NodeId, side: &Side, vector: &Vector) -> Check {
    for key in history.keys() {
        let rivals = history.rivals(key, &side.known);
        let found = side.store.entry(key);
        let wins = |winner: Option<&Rival<'_>>| winner.and_then(|rival| rival.entry) == found.as_deref();
        // A delete that every disk has had needs no tombstone, and no longer takes part (P35).
        let settled = |rival: &&Rival<'_>| rival.entry.is_none() && vector.is_settled(rival.at);
        let right = wins(rivals.first()) || wins(rivals.iter().find(|rival| !settled(rival)));
        ensure(right, VALUES, || format!("{node} has {key:?} = {found:?}; rivals: {rivals:?}"))?;
    }
    journal(history, node, side)?;
    votes(node, side)
}

/// The values that have lost by the records known, and must be in the journal.
pub fn losers(history: &History, side: &Side) -> BTreeSet<Position> {
    let mut losers = BTreeSet::new();
    // A lost version of a token needs no operator's decision (P56).
    for key in history.keys().filter(|key| key.is_data()) {
        let rivals = history.rivals(key, &side.known);
        let found = side.store.entry(key);
        // A settled deletion may no longer take part. The winner is the rival that the state holds, if there
        // is one.
        let Some(winner) = rivals.iter().find(|rival| rival.entry == found.as_deref()).or(rivals.first())
        else {
            continue;
        };
        // A deletion that lost loses no value.
        let lost = rivals.iter().filter(|rival| rival.entry.is_some() && rival.value() != winner.value());
        losers.extend(lost.map(|rival| rival.at));
    }
    losers
}

fn journal(history: &History, node: NodeId, side: &Side) -> Check {
    let there = journaled(side);
    let missing = side.lost.iter().find(|at| !there.contains(at) && !history.dropped.contains(at));
    ensure(missing.is_none(), JOURNAL, || {
        let changes = missing.and_then(|at| history.number(*at)).map(|number| &history.facts[number].changes);
        let keys = changes.into_iter().flatten().map(|change| &change.key);
        let rivals: Vec<_> =
            keys.map(|key| (key, side.store.entry(key), history.rivals(key, &side.known))).collect();
        format!("{node} lost {missing:?} without a word: {rivals:?}; its journal has {there:?}")
    })
}

/// The positions of the values in the journal.
pub fn journaled(side: &Side) -> BTreeSet<Position> {
    let lost = |key: Key| match key {
        // Its name ends with the position of the value that lost.
        Key::Conflict(id) => id.rsplit(':').next()?.parse().ok(),
        _ => None,
    };
    side.store.entries().filter_map(|(key, _)| lost(key)).collect()
}

/// Votes are a set keyed by voter, so as many are counted as there are.
fn votes(node: NodeId, side: &Side) -> Check {
    let cast = side.store.entries().filter(|(key, _)| matches!(key, Key::Vote(_))).count() as u64;
    let counted: u64 =
        side.store.elections("", None, usize::MAX).items.iter().map(|election| election.votes()).sum();
    ensure(cast == counted, "C23 each vote counts once", || {
        format!("{node}: {cast} votes, {counted} counted")
    })
}

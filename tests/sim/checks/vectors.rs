//! P31: a vector says what the state includes, no more and no less.

use eldest::types::{NodeId, Vector};

use super::history::{History, Known};
use super::{Check, ensure};

pub fn truthful(history: &History, node: NodeId, known: &Known, vector: &Vector) -> Check {
    for (number, fact) in history.facts.iter().enumerate() {
        let (says, has) = (vector.covers(fact.at), known.holds(number));
        // A settled stretch may cover a record that no disk holds any more: nothing is lost by that.
        ensure(says == has || (says && fact.gone), "P31 a vector tells the truth", || {
            let verb = if says { "says" } else { "does not say" };
            format!("{node} {verb} that it has {}, by {vector}", fact.at)
        })?;
    }
    Ok(())
}

//! C23: every acknowledged write is part of the one state that all nodes come to, no matter what became of it
//! there.

use eldest::types::NodeId;

use super::history::{History, Known};
use super::{Check, ensure};

pub fn all(history: &History, node: NodeId, known: &Known) -> Check {
    let kept = |number: usize| known.holds(number) || history.facts[number].gone;
    let acknowledged = (0..history.facts.len()).filter(|number| history.facts[*number].acknowledged);
    let missing = acknowledged.into_iter().find(|number| !kept(*number));
    ensure(missing.is_none(), "C23 nothing vanishes", || {
        format!("{node} does not have {:?}", missing.map(|number| &history.facts[number]))
    })
}

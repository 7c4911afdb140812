//! Links that pass nothing, one way only, little, or late.

use crate::arena::Arena;
use crate::harness::Rng;

use super::shuffled;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    CutOff,
    OneWay,
    Deaf,
    Split,
    Bridge,
    Ring,
    Refused,
    Lossy,
    Narrow,
    Delayed,
}

pub const ALL: [Kind; 10] = [
    Kind::CutOff,
    Kind::OneWay,
    Kind::Deaf,
    Kind::Split,
    Kind::Bridge,
    Kind::Ring,
    Kind::Refused,
    Kind::Lossy,
    Kind::Narrow,
    Kind::Delayed,
];

pub fn begin(kind: Kind, arena: &Arena, rng: &mut Rng) -> Option<String> {
    let ids = shuffled(arena, rng);
    let network = &arena.network;
    let (first, rest) = ids.split_first()?;
    let (left, right) = rest.split_at(rest.len() / 2);
    match kind {
        Kind::CutOff => network.split(&[*first], rest),
        Kind::OneWay => network.cut(*first, rest[0]),
        Kind::Deaf => rest.iter().for_each(|from| network.cut(*from, *first)),
        Kind::Split => {
            let (left, right) = ids.split_at(1 + rng.below(u64::from(arena.nodes()) - 1) as usize);
            network.split(left, right);
            return Some(format!("{left:?} from {right:?}"));
        }
        Kind::Bridge => network.split(left, right),
        // Of three nodes each is the neighbour of all.
        Kind::Ring if ids.len() < 4 => return None,
        Kind::Ring => ring(arena, &ids),
        Kind::Refused => rest.iter().for_each(|from| network.refuse_calls(*from, *first)),
        Kind::Lossy => {
            let percent = 5 + rng.below(45);
            ids.iter().take(1 + rng.below(2) as usize).for_each(|id| network.lose(*id, percent));
            return Some(format!("{percent} % at {ids:?}, the first or two"));
        }
        Kind::Narrow => {
            let kilobits = 100 + rng.below(900);
            let words = format!("tbf rate {kilobits}kbit burst 8kb latency 500ms");
            return network.queue(*first, &words).then(|| format!("n{first} sends {kilobits} kbit/s"));
        }
        Kind::Delayed => {
            let (delay, varies) = (5 + rng.below(150), rng.below(50));
            let words = format!("netem delay {delay}ms {varies}ms loss {}% reorder 10% 50%", rng.below(10));
            return network.queue(*first, &words).then(|| format!("n{first}: {words}"));
        }
    }
    Some(format!("{ids:?}"))
}

/// Each hears its two neighbours alone.
fn ring(arena: &Arena, ids: &[u32]) {
    for (at, one) in ids.iter().enumerate() {
        for (other_at, other) in ids.iter().enumerate() {
            let apart = at.abs_diff(other_at);
            if apart > 1 && apart < ids.len() - 1 {
                arena.network.cut(*one, *other);
            }
        }
    }
}

pub fn lift(arena: &Arena) {
    arena.network.heal();
    arena.network.unqueue();
}

//! Links that pass nothing, only one direction, little, or late.

use std::process::Command;
use std::time::Duration;

use crate::arena::Arena;
use crate::harness::{Network, Rng, system};
use crate::late::QUEUE;

use super::processes::leader_now;
use super::shuffled;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    CutOff,
    OneWay,
    Deaf,
    Mute,
    MuteLeader,
    LateAnswers,
    Split,
    Bridge,
    Ring,
    Refused,
    Lossy,
    Narrow,
    Delayed,
}

pub const ALL: [Kind; 13] = [
    Kind::CutOff,
    Kind::OneWay,
    Kind::Deaf,
    Kind::Mute,
    Kind::MuteLeader,
    Kind::LateAnswers,
    Kind::Split,
    Kind::Bridge,
    Kind::Ring,
    Kind::Refused,
    Kind::Lossy,
    Kind::Narrow,
    Kind::Delayed,
];

pub async fn begin(kind: Kind, arena: &Arena, rng: &mut Rng) -> Option<String> {
    let mut ids = shuffled(arena, rng);
    if matches!(kind, Kind::MuteLeader | Kind::LateAnswers) {
        let leader = leader_now(arena, &arena.cluster.running()).await?;
        ids.sort_by_key(|id| *id != leader);
    }
    let network = &arena.network;
    let (first, rest) = ids.split_first()?;
    let (left, right) = rest.split_at(rest.len() / 2);
    match kind {
        Kind::CutOff => network.split(&[*first], rest),
        Kind::OneWay => network.cut(*first, rest[0]),
        Kind::Deaf => rest.iter().for_each(|from| network.cut(*from, *first)),
        Kind::Mute | Kind::MuteLeader => rest.iter().for_each(|to| network.cut(*first, *to)),
        Kind::LateAnswers => {
            // The others' answers are late; then the leader is not heard any more, and those answers still
            // come. Even later ones would be given up.
            let ms = 20 + rng.below(230);
            rest.iter().for_each(|from| delay(arena, *from, *first, ms, 0));
            tokio::time::sleep(Duration::from_millis(500 + rng.below(3_000))).await;
            rest.iter().for_each(|to| network.cut(*first, *to));
            return Some(format!("n{first} leads and hears {rest:?} {ms} ms late"));
        }
        Kind::Split => {
            let (left, right) = ids.split_at(1 + rng.below(u64::from(arena.nodes()) - 1) as usize);
            network.split(left, right);
            return Some(format!("{left:?} from {right:?}"));
        }
        Kind::Bridge => network.split(left, right),
        // In a ring of three nodes each is the neighbour of all.
        Kind::Ring if ids.len() < 4 => return None,
        Kind::Ring => ring(arena, &ids),
        Kind::Refused => rest.iter().for_each(|from| refuse_calls(network, *from, *first)),
        Kind::Lossy => {
            let percent = 5 + rng.below(45);
            ids.iter().take(1 + rng.below(2) as usize).for_each(|id| lose(network, *id, percent));
            return Some(format!("{percent} % at {ids:?}, the first or two"));
        }
        Kind::Narrow => {
            let (kilobits, late) = (100 + rng.below(900), 200 + rng.below(2_000));
            let words = format!("tbf rate {kilobits}kbit burst 8kb latency {late}ms");
            return queue(network, *first, &words).then(|| format!("n{first} sends {kilobits} kbit/s"));
        }
        Kind::Delayed => {
            let (ms, varies) = (1 + rng.below(200), rng.below(50));
            for at in ids.iter().take(1 + rng.below(ids.len() as u64) as usize) {
                ids.iter().filter(|from| *from != at).for_each(|from| delay(arena, *from, *at, ms, varies));
            }
            return Some(format!("{ms} ms, and up to {varies} more, to {ids:?}, the first of them or all"));
        }
    }
    Some(format!("{ids:?}"))
}

/// Each hears only its two neighbours.
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
    for id in arena.cluster.ids() {
        arena.late(id).delay(Duration::ZERO, Duration::ZERO);
    }
    unqueue(&arena.network);
}

const NEEDED: &str = "the long random test needs iptables in network namespaces";

/// The words that run a command in the network of this node.
fn inside(network: &Network, id: u32) -> Vec<String> {
    network.launchers().swap_remove(id as usize - 1)
}

/// A packet that arrives at `at` from `from` and matches `rest` meets the target named there.
fn rule(network: &Network, from: u32, at: u32, rest: &[&str]) {
    let (words, source) = (inside(network, at), network.addresses()[from as usize - 1].to_string());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    system(&[&words[..], &["iptables", "-w", "-A", "INPUT", "-s", &source], rest].concat(), NEEDED);
}

/// Calls of `from` are refused, as by a host without that process; `to` can still call `from`.
fn refuse_calls(network: &Network, from: u32, to: u32) {
    rule(network, from, to, &["-p", "tcp", "--dport", "9000", "-j", "REJECT", "--reject-with", "tcp-reset"]);
}

/// A packet that arrives at `at` from `from` waits for `ms`, and up to `varies` longer.
fn delay(arena: &Arena, from: u32, at: u32, ms: u64, varies: u64) {
    arena.late(at).delay(Duration::from_millis(ms), Duration::from_millis(varies));
    let queue = QUEUE.to_string();
    rule(&arena.network, from, at, &["-j", "NFQUEUE", "--queue-num", &queue]);
}

/// This percentage of the packets to this node from the others is lost.
fn lose(network: &Network, to: u32, percent: u64) {
    let chance = format!("0.{percent:02}");
    let some = ["-m", "statistic", "--mode", "random", "--probability", &chance, "-j", "DROP"];
    let ids = 1..=network.addresses().len() as u32;
    ids.filter(|from| *from != to).for_each(|from| rule(network, from, to, &some));
}

/// Packets that this node sends pass such a queue, in the words of `tc qdisc`, until `unqueue`. Returns false
/// if this kernel has no such queue.
fn queue(network: &Network, from: u32, words: &str) -> bool {
    let inside = inside(network, from);
    let mut command = Command::new(&inside[0]);
    command.args(&inside[1..]).args(["tc", "qdisc", "replace", "dev", "eth0", "root"]).args(words.split(' '));
    command.output().is_ok_and(|output| output.status.success())
}

fn unqueue(network: &Network) {
    for inside in network.launchers() {
        // There may be no queue.
        let _ = Command::new(&inside[0])
            .args(&inside[1..])
            .args(["tc", "qdisc", "del", "dev", "eth0", "root"])
            .output();
    }
}

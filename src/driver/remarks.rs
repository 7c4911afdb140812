//! What an operator should know without asking: why nobody leads, who is too far away, and where files and cluster disagree.

use std::time::Duration;

use super::member::Member;
use crate::protocol::{Waits, majority};
use crate::types::{Span, Time};

/// How often the loop looks. What it sees twice in a row is told: an election under way is nothing to worry about.
const LOOK_EVERY: Span = Span::millis(1_000);

#[derive(Debug, Default)]
pub struct Remarks {
    next_look: Time,
    seen: Vec<String>,
    told: Vec<String>,
}

impl Remarks {
    /// Whether it is time to look again.
    pub fn are_due(&self, now: Time) -> bool {
        now >= self.next_look
    }

    /// Takes what is seen now, and gives what is to be told.
    pub fn note(&mut self, now: Time, seen: Vec<String>) -> Vec<String> {
        let lasting: Vec<String> = seen.iter().filter(|remark| self.seen.contains(remark)).cloned().collect();
        let new = lasting.iter().filter(|remark| !self.told.contains(remark)).cloned().collect();
        *self = Remarks { next_look: now + LOOK_EVERY, seen, told: lasting };
        new
    }
}

pub fn advise(waits: &Waits, silent: &[Member], voters: usize) -> Option<String> {
    let them = match silent.len() {
        0 => return None,
        1 => "it",
        _ => "them",
    };
    let who = names(silent);
    if !waits.to_form {
        let needed = majority(voters);
        return Some(format!(
            "no leader can be elected: nothing is heard of {who}, and {needed} of {voters} nodes are needed. Start {them}, or \
             mend the network between"
        ));
    }
    let start = format!("the cluster has never been formed and waits for {who}: start {them}");
    if voters - silent.len() < majority(voters) {
        return Some(start);
    }
    let ids: Vec<String> = silent.iter().map(|member| member.id.0.to_string()).collect();
    Some(format!(
        "{start}, or form the cluster without {them}: eldest form --without {} --yes",
        ids.join(",")
    ))
}

fn names(members: &[Member]) -> String {
    let names: Vec<String> =
        members.iter().map(|member| format!("{} ({})", member.name, member.authority())).collect();
    names.join(" and ")
}

pub fn too_late(members: &[Member], fresh: Duration) -> String {
    format!(
        "no leader can be elected: what {} answers takes longer than two heartbeats ({} ms), and does not count. Give all nodes \
         longer timings, as in config/wan.toml",
        names(members),
        fresh.as_millis()
    )
}

pub fn too_far(members: &[Member], heartbeat: Duration) -> String {
    format!(
        "a round trip to {} takes longer than a heartbeat ({} ms): leases lapse, and elections drag on. Give all nodes longer \
         timings, as in config/wan.toml",
        names(members),
        heartbeat.as_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_told_once() {
        let mut remarks = Remarks::default();
        let mut look = |seconds: u64, seen: &[&str]| {
            let now = Time(seconds * 1_000_000);
            assert!(remarks.are_due(now));
            remarks.note(now, seen.iter().map(|text| text.to_string()).collect())
        };
        assert_eq!(look(1, &["a"]), [""; 0]);
        assert_eq!(look(2, &["a", "b"]), ["a"]);
        assert_eq!(look(3, &["a", "b"]), ["b"]);
        assert_eq!(look(4, &[]), [""; 0]);
        assert_eq!(look(5, &["a"]), [""; 0]);
        assert_eq!(look(6, &["a"]), ["a"]);
        assert!(!remarks.are_due(Time(6_500_000)));
    }
}

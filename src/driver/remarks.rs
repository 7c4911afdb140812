//! What an operator should know without asking: why nobody leads, who is too far away, and where files and cluster disagree.

use std::time::Duration;

use serde::Serialize;

use super::member::Member;
use crate::protocol::{Waits, majority};
use crate::types::{Span, Time};

/// How often the loop looks. What it sees twice in a row is told: an election under way is nothing to worry about.
const LOOK_EVERY: Span = Span::millis(1_000);

/// What it is about, in one word that programs may compare, and the text for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    pub about: &'static str,
    pub text: String,
}

impl Remark {
    pub fn new(about: &'static str, text: String) -> Remark {
        Remark { about, text }
    }
}

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
    if !waits.doubted.is_empty() {
        return None;
    }
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

/// What is said of a lease that is longer than those of the present timings: usually it has passed before anybody looks.
pub fn old_leases() -> String {
    "this node leads and takes writes; /is_leader says so here, and disks are let in, once no leader before it can rely on its lease any more, \
     within a minute"
        .to_string()
}

/// A majority of the disks waits to be let in, and nobody is left to do that.
pub fn doubted(members: &[Member], silent: &[Member]) -> Option<String> {
    if members.is_empty() {
        return None;
    }
    let (whose, are) = (names(members), if members.len() == 1 { "disk" } else { "disks" });
    let others = match silent {
        [] => String::new(),
        silent => format!("start {} first, if their disks are whole; then ", names(silent)),
    };
    Some(format!(
        "no leader can be elected: the {are} of {whose} may have forgotten what they acknowledged (see the log and `quarantine/` of \
         each), and no majority is left to let them in again. To go on with what is left, {others}start each of them once \
         with: eldest serve --trust-disk. What all of them have forgotten is lost then"
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

/// From nine tenths on: there is time to do something about it.
pub fn too_full(bytes: u64, most: u64) -> Option<String> {
    (bytes >= most - most / 10).then(|| {
        format!(
            "the state has {bytes} bytes and may have {most} (limits.state_bytes): beyond, writes that make it larger are answered \
             507. Delete what nobody needs, or raise the limit on all nodes"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_nearly_full_from_nine_tenths() {
        assert_eq!(too_full(899, 1000), None);
        assert!(too_full(900, 1000).is_some_and(|text| text.contains("900 bytes and may have 1000")));
        assert!(too_full(5000, 1000).is_some());
    }

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

//! The types in which a node shows itself: response headers, status, measures, and remarks for an operator.
//!
//! Fields and remarks' subjects are part of the HTTP API (`docs/http-api.md`): programs read them, so their names stay.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::setup::Member;
use crate::chronicle::Note;
use crate::protocol::{Waits, majority};
use crate::types::{Epoch, Index, NodeId, Now, Span, Time};

#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub cluster: String,
    pub mode: &'static str,
    pub node: NodeStatus,
    pub role: &'static str,
    pub leader: Option<LeaderStatus>,
    pub epoch: String,
    pub commit_index: Index,
    pub applied_index: Index,
    pub last_index: Index,
    pub snapshot_id: u64,
    pub digest: String,
    /// The size of the state, and the limit up to which clients may grow it while this node leads.
    pub state_bytes: u64,
    pub state_bytes_most: u64,
    pub admitted: bool,
    /// Another disk votes under this node's id (P10).
    pub replaced: bool,
    pub heir: Option<u32>,
    pub service_down: bool,
    pub disk_full: bool,
    /// Distinguishes the cluster from another of the same name. Null before the cluster is formed, and in available mode.
    pub cluster_id: Option<String>,
    /// The remarks for an operator in one text, if there are any.
    pub remark: Option<String>,
    pub members: Vec<MemberStatus>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    pub id: u32,
    pub name: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct LeaderStatus {
    pub id: u32,
    pub url: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct MemberStatus {
    pub id: u32,
    pub name: String,
    pub url: String,
    /// Null if this node cannot know it.
    pub role: Option<&'static str>,
    pub reachable: bool,
    /// The last index on the member's disk, as far as this node knows it as the leader; null on a follower.
    pub match_index: Option<Index>,
    pub lag: Option<u64>,
    pub last_heard_ms: Option<u64>,
    /// Whether this node leads, and has heard nothing from the member for as long as it takes to give it up.
    pub silent: bool,
    /// Why calls from or to the member are refused, if they are.
    pub trouble: Option<String>,
    /// False while the member still learns the cluster's data.
    pub votes: bool,
}

/// The interval of the loop's checks. A finding is reported if two checks in a row show it: a running election is no reason to worry.
const LOOK_EVERY: Span = Span::millis(1_000);

/// Findings that an operator should know without asking: why there is no leader, which node is too far away, and where files and cluster
/// disagree. Each has a subject in one word that programs may compare, and a text for people.
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
    /// Returns whether the next check is due.
    pub fn are_due(&self, now: Time) -> bool {
        now >= self.next_look
    }

    /// Returns whether the last check has shown this finding.
    pub fn has_seen(&self, finding: &str) -> bool {
        self.seen.iter().any(|seen| seen == finding)
    }

    /// Takes the current findings, and returns those to be reported. A finding is reported once for as long as it lasts. If one
    /// check does not show it, it counts as new when it returns.
    pub fn note(&mut self, now: Time, seen: Vec<String>) -> Vec<String> {
        let lasting: Vec<String> = seen.iter().filter(|remark| self.seen.contains(remark)).cloned().collect();
        let new = lasting.iter().filter(|remark| !self.told.contains(remark)).cloned().collect();
        *self = Remarks { next_look: now + LOOK_EVERY, seen, told: lasting };
        new
    }
}

/// Advises how to add this node, which members of a cluster have told that it is not one of them (P43).
pub fn no_member(me: &Member) -> String {
    format!(
        "members of the cluster say that this node is not one of them. To add it, run this at a member: \
            eldest members add {} {} --name {}",
        me.id.0,
        me.authority(),
        me.name
    )
}

/// The nodes at whose addresses a server answers, while calls fail. Each comes with the reason. It may be another server.
pub fn refused(members: &[(Member, String)]) -> Option<String> {
    let each: Vec<String> = members
        .iter()
        .map(|(member, why)| {
            format!(
                "calls to {} ({}) fail, although a server answers there: {why}",
                member.name,
                member.authority()
            )
        })
        .collect();
    (!each.is_empty()).then(|| format!("this node finds no leader: {}", each.join("; ")))
}

/// The advice to form the cluster without the silent nodes is given only if the others are a majority, because such an order
/// needs one, too (P9), and if `all_speak`: a server that answers and refuses may be a node to repair. If disks are doubted, `doubted` says
/// what to do instead.
pub fn advise(waits: &Waits, silent: &[Member], voters: usize, all_speak: bool) -> Option<String> {
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
            "no leader can be elected: {who} cannot be reached, and {needed} of {voters} nodes are needed. \
                Start {them}, or repair the network"
        ));
    }
    let start = format!("the cluster has never been formed and is waiting for {who}: start {them}");
    if !all_speak || voters - silent.len() < majority(voters) {
        return Some(start);
    }
    let ids: Vec<String> = silent.iter().map(|member| member.id.0.to_string()).collect();
    Some(format!(
        "{start}, or form the cluster without {them}: eldest form --without {} --yes",
        ids.join(",")
    ))
}

/// The remark about an old lease that is longer than the present timings allow. The lease has usually passed before an operator looks.
pub fn old_leases() -> String {
    "this node leads and accepts writes; within a minute, when no former leader can still rely on its lease, \
        /is_leader will say so here and disks will be admitted"
        .to_string()
}

/// The remark if no majority is left that can admit the doubted disks. A sound disk that is only silent is better than
/// `--trust-disk`, so its node is to be started first (P27).
pub fn doubted(members: &[Member], silent: &[Member]) -> Option<String> {
    if members.is_empty() {
        return None;
    }
    let (whose, are) = (names(members), if members.len() == 1 { "disk" } else { "disks" });
    let others = match silent {
        [] => String::new(),
        silent => format!("start {} first, if their disks are intact; then ", names(silent)),
    };
    Some(format!(
        "no leader can be elected: the {are} of {whose} may have lost acknowledged records (see the log and \
            `quarantine/` of each), and no majority is left to admit them again. To continue with the remaining \
            data, {others}start each of them once with: eldest serve --trust-disk. Records that all of them \
            have lost are then gone"
    ))
}

fn names(members: &[Member]) -> String {
    let names: Vec<String> =
        members.iter().map(|member| format!("{} ({})", member.name, member.authority())).collect();
    names.join(" and ")
}

pub fn too_late(members: &[Member], fresh: Duration) -> String {
    format!(
        "no leader can be elected: answers of {} take longer than two heartbeats ({} ms) and are ignored. Set \
            longer timings on all nodes, as in config/wan.toml",
        names(members),
        fresh.as_millis()
    )
}

pub fn too_far(members: &[Member], heartbeat: Duration) -> String {
    format!(
        "a round trip to {} takes longer than a heartbeat ({} ms): leases expire, and elections take long. Set \
            longer timings on all nodes, as in config/wan.toml",
        names(members),
        heartbeat.as_millis()
    )
}

/// The files that an operator may remove from a full disk.
const MAKE_ROOM: &str = "of its own files you may remove old copies in backup.dir, and, once you no longer need them, those in \
    `quarantine/` and those that end with `.snap.bad`";

pub fn disk_full() -> String {
    format!("the disk of this node is full: it accepts no writes until there is free space; {MAKE_ROOM}")
}

/// Warns from nine tenths on, which leaves time to act.
pub fn too_full(bytes: u64, most: u64) -> Option<String> {
    (bytes >= most - most / 10).then(|| {
        format!(
            "the state has {bytes} bytes; the limit is {most} (limits.state_bytes), beyond which writes that \
                enlarge it get 507. Delete data, or raise the limit on all nodes"
        )
    })
}

#[derive(Clone, Debug)]
pub struct Measures {
    /// This machine's clocks at the moment of the measurement.
    pub at: Now,
    pub status: Status,
    /// The number of entries in each table of the state.
    pub rows: [(&'static str, usize); 8],
    pub conflicts: usize,
    /// The number of calls that wait for a role that another process holds; only the leader knows them.
    pub waiting_for_roles: usize,
    pub uncommitted_bytes: usize,
    /// The number of messages that wait for the disk.
    pub unsynced: usize,
    /// The round trip to each other node, if it is known.
    pub round_trips: Vec<(u32, Duration)>,
    /// The remarks for an operator, each with its subject.
    pub remarks: Vec<Remark>,
    /// The time that the oldest round has waited for the disk.
    pub disk_waits: Duration,
    /// The slowest sync of at least the last half minute.
    pub slowest_sync: Duration,
}

/// Also sent between nodes: a reader ignores fields that it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    pub node: u32,
    pub leader: Option<u32>,
    pub epoch: String,
    /// The node that the leader has named as its heir, as this node knows it.
    pub heir: Option<u32>,
    /// Why there is no leader, and what to do.
    pub advice: Option<String>,
    /// The number of votes that an election needs: one if no majority is needed.
    pub needed: usize,
    /// The nodes that this node reaches.
    pub reaches: Vec<u32>,
    /// Stated only by the leader: how fit each node is to be the next leader.
    pub contenders: Vec<ContenderShown>,
    /// Stated only by the leader: its successor if it dies, then the successor of that node, and so on.
    pub succession: Vec<HeirShown>,
    pub entries: Vec<Arc<Note>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContenderShown {
    pub node: u32,
    pub fitness: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeirShown {
    /// The dead nodes, in the order in which they die.
    pub dead: Vec<u32>,
    pub next: Option<u32>,
    pub votes: usize,
}

/// The values that every response states about the node, kept where any thread reads them without a call to the loop. Only the loop writes
/// them. Each number is correct by itself; two numbers may be from slightly different moments.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Zero means that there is no leader.
    leader: AtomicU64,
    counter: AtomicU64,
    epoch_leader: AtomicU64,
    applied: AtomicU64,
    disk_full: AtomicBool,
    service_down: AtomicBool,
    advice: RwLock<Option<String>>,
}

impl Pulse {
    /// Returns the code with which this node refuses writes, if it leads and does so.
    pub fn writes_refused(&self) -> Option<&'static str> {
        match () {
            () if self.disk_full.load(Ordering::Relaxed) => Some("disk_full"),
            () if self.service_down.load(Ordering::Relaxed) => Some("service_down"),
            () => None,
        }
    }

    pub(super) fn refuse_writes(&self, disk_full: bool, service_down: bool) {
        self.disk_full.store(disk_full, Ordering::Relaxed);
        self.service_down.store(service_down, Ordering::Relaxed);
    }

    pub fn leader(&self) -> Option<NodeId> {
        match self.leader.load(Ordering::Relaxed) as u32 {
            0 => None,
            id => Some(NodeId(id)),
        }
    }

    pub fn epoch(&self) -> Epoch {
        let leader = self.epoch_leader.load(Ordering::Relaxed) as u32;
        Epoch::new(self.counter.load(Ordering::Relaxed), NodeId(leader))
    }

    pub fn applied(&self) -> Index {
        self.applied.load(Ordering::Relaxed)
    }

    /// Returns why there is no leader and what to do, if the cause is more than a running election.
    pub fn advice(&self) -> Option<String> {
        self.advice.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn advise(&self, advice: Option<String>) {
        *self.advice.write().unwrap_or_else(PoisonError::into_inner) = advice;
    }

    pub(super) fn set(&self, leader: Option<NodeId>, epoch: Epoch, applied: Index) {
        self.leader.store(leader.map_or(0, |node| node.0.into()), Ordering::Relaxed);
        self.counter.store(epoch.counter, Ordering::Relaxed);
        self.epoch_leader.store(epoch.leader.0.into(), Ordering::Relaxed);
        self.applied.store(applied, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u32) -> Member {
        Member { id: NodeId(id), name: format!("n{id}"), host: "h".to_string(), port: 9000, votes: true }
    }

    #[test]
    fn a_node_that_runs_is_never_left_out() {
        let waits = Waits { to_form: true, ..Waits::default() };
        let told = advise(&waits, &[member(3)], 3, true).expect("advice");
        assert!(told.ends_with("or form the cluster without it: eldest form --without 3 --yes"), "{told}");
        let told = advise(&waits, &[member(3)], 5, false).expect("advice");
        assert!(told.ends_with("is waiting for n3 (h:9000): start it"), "{told}");
        assert_eq!(advise(&waits, &[], 3, false), None);
        let told = refused(&[(member(2), "409 x".to_string())]).expect("advice");
        assert!(
            told.ends_with("calls to n2 (h:9000) fail, although a server answers there: 409 x"),
            "{told}"
        );
        assert_eq!(refused(&[]), None);
    }

    #[test]
    fn a_state_is_nearly_full_from_nine_tenths() {
        assert_eq!(too_full(899, 1000), None);
        assert!(too_full(900, 1000).is_some_and(|text| text.contains("900 bytes; the limit is 1000")));
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

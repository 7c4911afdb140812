//! Read-only queries of the engine.
//!
//! They run on the loop's thread, so each shows one moment. No input is handled meanwhile, so each must be short.

use std::time::Duration;

use super::chronicle::in_words;
use super::clock;
use super::engine::Engine;
use super::handle::Opinion;
use super::handle::{Ask, Handle};
use super::setup::Member;
use super::shown::{
    ContenderShown, Explained, HeirShown, LeaderStatus, Measures, MemberStatus, NodeStatus, Remark, Status,
    advise, disk_full, doubted, no_member, old_leases, refused, too_far, too_full, too_late,
};
use crate::protocol::{Fitness, RoleName, Waits, succession};
use crate::types::{NodeId, Text};

/// A refused call is repeated within a fraction of a second. A busy machine may take longer.
const REFUSED_LATELY: Duration = Duration::from_secs(1);

impl Handle {
    /// Asks whether this node would approve that candidate now. Nothing changes.
    pub async fn opinion(&self, candidate: NodeId) -> Option<Opinion> {
        self.tell(|reply| Ask::Opinion { candidate, reply }).await
    }

    /// Returns None only when the loop has ended.
    pub async fn status(&self) -> Option<Status> {
        self.tell(Ask::Status).await
    }

    /// Returns None only when the loop has ended.
    pub async fn explain(&self) -> Option<Explained> {
        self.tell(Ask::Explain).await
    }

    pub async fn turns(&self, role: Text) -> Vec<String> {
        self.tell(|reply| Ask::Turns { role, reply }).await.unwrap_or_default()
    }

    /// Returns None only when the loop has ended.
    pub async fn measures(&self) -> Option<Measures> {
        self.tell(Ask::Measures).await
    }
}

impl Engine {
    /// Returns what this node knows about leadership. No node knows all of it: a caller asks each node and combines the answers
    /// (`chronicle::changes`).
    pub(super) fn explain(&mut self) -> Explained {
        let entries = self.chronicle.entries();
        let core = self.replica.core();
        let contenders = core.contenders(clock::now().mono);
        let needed = if self.setup.settings.is_available() { 1 } else { core.quorum() };
        let others: Vec<NodeId> = self.setup.others().iter().map(|member| member.id).collect();
        let number = |node: NodeId| node.0;
        // A follower does not know which nodes are behind or on hold, so the leader alone predicts who is next (P58).
        let heirs = match core.leader() == Some(self.me()) {
            true => succession(self.me(), &contenders, needed),
            false => Vec::new(),
        };
        Explained {
            node: self.me().0,
            leader: core.leader().map(number),
            epoch: core.vote().promise.epoch.to_string(),
            heir: core.heir().map(number),
            advice: self.advice().map(|advice| advice.text),
            needed,
            reaches: others.iter().filter(|id| self.network.is_reachable(**id)).map(|id| id.0).collect(),
            contenders: contenders.into_iter().map(|one| shown(one.node, one.fitness)).collect(),
            succession: heirs
                .into_iter()
                .map(|heir| HeirShown {
                    dead: heir.dead.into_iter().map(number).collect(),
                    next: heir.next.map(number),
                    votes: heir.votes,
                })
                .collect(),
            entries,
        }
    }
}

fn shown(node: NodeId, fitness: Fitness) -> ContenderShown {
    let (word, lag) = match fitness {
        Fitness::Ready => ("ready", None),
        Fitness::Behind { lag } => ("behind", Some(lag)),
        Fitness::Held => ("held", None),
        Fitness::Full => ("disk_full", None),
        Fitness::NoVote => ("no_vote", None),
        Fitness::Silent => ("silent", None),
    };
    ContenderShown { node: node.0, fitness: word.to_string(), lag }
}

// A node's own view of itself and of the cluster.
impl Engine {
    pub fn status(&self) -> Status {
        let setup = &self.setup;
        let (core, store) = (self.replica.core(), self.replica.committed());
        let known = setup.known();
        let name = known.member(self.me()).map(|member| member.name.clone()).unwrap_or_default();
        let leader = core.leader().and_then(|leader| known.member(leader));
        let applied_index = store.applied().index;
        Status {
            cluster: setup.cluster.name.clone(),
            cluster_id: known.cluster.is_known().then(|| known.cluster.to_string()),
            mode: setup.settings.mode.name(),
            node: NodeStatus { id: self.me().0, name },
            role: role_name(core.role_name()),
            leader: leader.map(|member| LeaderStatus { id: member.id.0, url: setup.url(member) }),
            epoch: core.vote().promise.epoch.to_string(),
            // A snapshot holds only committed records, even if the log starts further back.
            commit_index: core.commit_index().max(applied_index),
            applied_index,
            last_index: core.last().index,
            snapshot_id: self.replica.snapshot_id(),
            digest: format!("{:016x}", store.digest()),
            state_bytes: store.bytes(),
            state_bytes_most: setup.settings.limits.state_bytes,
            admitted: core.is_admitted(),
            replaced: core.replaced_by().is_some(),
            heir: core.heir().map(|node| node.0),
            service_down: core.service_is_down(),
            disk_full: self.disk.full,
            remark: self.remark(),
            members: known.members.iter().map(|member| self.member(member)).collect(),
        }
    }

    pub fn measures(&self) -> Measures {
        let (core, store) = (self.replica.core(), self.replica.committed());
        let others = self.setup.others();
        let takes = |id| self.network.round_trip(id);
        let now = clock::now();
        Measures {
            at: now,
            status: self.status(),
            rows: store.rows(),
            conflicts: store.conflict_count(),
            waiting_for_roles: self.replica.waiting_for_roles(),
            uncommitted_bytes: core.uncommitted_bytes(),
            unsynced: self.disk.unsynced.len(),
            round_trips: others.iter().filter_map(|other| Some((other.id.0, takes(other.id)?))).collect(),
            remarks: self.all_remarks(),
            disk_waits: Duration::from_micros(self.counting.disk_waits(now.mono).0),
            slowest_sync: self.counting.slowest_sync(now.mono),
        }
    }

    /// Checks the node from time to time: callers can then be told why there is no leader, and lasting findings go to the log.
    pub fn look_around(&mut self) {
        let now = clock::now().mono;
        if !self.remarks.are_due(now) {
            return;
        }
        let recent = self.refused_lately();
        for other in self.setup.others() {
            if let Some(why) = self.network.why_refused(other.id, recent) {
                self.chronicle.barred(other.id, &why);
            }
        }
        let advice = self.advice().map(|advice| advice.text);
        let lasts = |text: &String| self.remarks.has_seen(text);
        self.signs.advise(advice.clone().filter(lasts));
        let seen = advice.into_iter().chain(self.other_remarks().map(|remark| remark.text)).collect();
        for remark in self.remarks.note(now, seen) {
            tracing::warn!("{remark}");
        }
    }

    fn remark(&self) -> Option<String> {
        let all: Vec<String> = self.all_remarks().into_iter().map(|remark| remark.text).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn all_remarks(&self) -> Vec<Remark> {
        self.advice().into_iter().chain(self.other_remarks()).collect()
    }

    /// Returns why this node knows no leader, and what to do.
    fn advice(&self) -> Option<Remark> {
        let waits = self.replica.core().waits_for(clock::now().mono)?;
        match waits.no_member {
            true => self.setup.known().member(self.me()).map(|me| Remark::new("no_member", no_member(me))),
            false => self.why_no_leader(&waits).map(|text| Remark::new("no_leader", text)),
        }
    }

    fn why_no_leader(&self, waits: &Waits) -> Option<String> {
        let known = self.setup.known();
        let members = |ids: &[_]| -> Vec<Member> {
            known.members.iter().filter(|member| ids.contains(&member.id)).cloned().collect()
        };
        let recent = self.refused_lately();
        let mut refusing = Vec::new();
        let mut without_refusing = |ids: &[NodeId]| {
            let mut rest = members(ids);
            rest.retain(|member| match self.network.why_refused(member.id, recent) {
                Some(why) => {
                    refusing.push((member.clone(), why));
                    false
                }
                None => true,
            });
            rest
        };
        let (silent, late) = (without_refusing(&waits.silent), without_refusing(&waits.late));
        // A disk may be sound although calls to its node are refused.
        let doubted = doubted(&members(&waits.doubted), &members(&waits.silent));
        let silent = advise(waits, &silent, known.voters(), refusing.is_empty());
        let late = (!late.is_empty())
            .then(|| too_late(&late, Duration::from_micros(self.setup.settings.timing.fresh().0)));
        let texts: Vec<String> =
            refused(&refusing).into_iter().chain(doubted).chain(silent).chain(late).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The time within which a call must have failed to count. A node without a leader calls the others more often than this.
    fn refused_lately(&self) -> Duration {
        Duration::from_micros(self.setup.settings.timing.dead_after.0).max(REFUSED_LATELY)
    }

    fn other_remarks(&self) -> impl Iterator<Item = Remark> {
        let timing = &self.setup.settings.timing;
        let heartbeat = Duration::from_micros(timing.heartbeat.0);
        let takes = |member: &Member| self.network.round_trip(member.id).unwrap_or_default();
        let far: Vec<Member> =
            self.setup.others().into_iter().filter(|member| takes(member) > heartbeat).collect();
        let far = (!far.is_empty()).then(|| too_far(&far, heartbeat));
        let most = self.setup.settings.limits.state_bytes;
        let full = too_full(self.replica.committed().bytes(), most);
        let no_room = self.disk.full.then(disk_full);
        let waits = self.replica.core().waits_for_leases(clock::now().mono).then(old_leases);
        let notices = self.setup.notices.all();
        let disagreement = self.setup.directory.disagreement();
        (far.into_iter().map(|text| Remark::new("round_trip", text)))
            .chain(no_room.into_iter().map(|text| Remark::new("disk_full", text)))
            .chain(full.into_iter().map(|text| Remark::new("quota", text)))
            .chain(waits.into_iter().map(|text| Remark::new("old_lease", text)))
            .chain(self.impasses().map(|text| Remark::new("impasse", text)))
            .chain(disagreement.into_iter().map(|text| Remark::new("topology", text)))
            .chain(notices.into_iter().map(|(about, text)| Remark { about, text }))
    }

    fn impasses(&self) -> impl Iterator<Item = String> {
        let name = |node| self.setup.member(node).map_or("?".to_string(), |member| member.name);
        self.replica.core().impasses().map(move |(other, why)| {
            format!("this side and the side of {} cannot merge: {}", name(other), in_words(why))
        })
    }

    fn member(&self, member: &Member) -> MemberStatus {
        let (id, me) = (member.id, self.me());
        let heard = self.replica.core().last_heard(id).map(|at| clock::now().mono.since(at).0 / 1000);
        let matched = self.replica.core().matched_by(id);
        let leads = self.replica.core().leader() == Some(me);
        let dead_after_ms = self.setup.settings.timing.dead_after.0 / 1000;
        MemberStatus {
            id: id.0,
            name: member.name.clone(),
            url: self.setup.url(member),
            votes: member.votes,
            role: self.role_of(id),
            reachable: id == me || self.network.is_reachable(id),
            match_index: matched,
            lag: matched.map(|matched| self.replica.core().last().index.saturating_sub(matched)),
            last_heard_ms: if id == me { Some(0) } else { heard },
            silent: leads && id != me && heard.is_none_or(|ms| ms > dead_after_ms),
            trouble: self.network.trouble(id),
        }
    }

    fn role_of(&self, id: NodeId) -> Option<&'static str> {
        match self.replica.core().leader() {
            _ if id == self.me() => Some(role_name(self.replica.core().role_name())),
            Some(leader) if leader == id => Some("leader"),
            // A leader knows its followers: they answer its heartbeats.
            Some(leader) if leader == self.me() && self.network.is_reachable(id) => Some("follower"),
            _ => None,
        }
    }
}

fn role_name(role: RoleName) -> &'static str {
    match role {
        RoleName::Candidate => "candidate",
        RoleName::Follower => "follower",
        RoleName::Leader => "leader",
        RoleName::Stopped => "stopped",
    }
}

//! What an operator should know without asking: why nobody leads, who is too far away, and where files and cluster disagree.

use std::time::Duration;

use super::clock;
use super::engine::Engine;
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

impl Engine {
    pub fn look_around(&mut self) {
        let now = clock::now().mono;
        if now < self.remarks.next_look {
            return;
        }
        let advice = self.advice();
        self.signs.advise(advice.clone());
        let seen: Vec<String> = advice.into_iter().chain(self.other_remarks()).collect();
        let Remarks { seen: before, told, .. } = &self.remarks;
        let lasting: Vec<String> = seen.iter().filter(|remark| before.contains(remark)).cloned().collect();
        for remark in lasting.iter().filter(|remark| !told.contains(remark)) {
            tracing::warn!("{remark}");
        }
        self.remarks = Remarks { next_look: now + LOOK_EVERY, seen, told: lasting };
    }

    pub fn remark(&self) -> Option<String> {
        let all: Vec<String> = self.advice().into_iter().chain(self.other_remarks()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Why nobody leads, and what to do.
    fn advice(&self) -> Option<String> {
        let waits = self.replica.core().waits_for(clock::now().mono)?;
        let known = self.setup.known();
        let members = |ids: &[_]| -> Vec<Member> {
            known.members.iter().filter(|member| ids.contains(&member.id)).cloned().collect()
        };
        let silent = advise(&waits, &members(&waits.silent), known.voters());
        let late = members(&waits.late);
        let fresh = Duration::from_micros(self.setup.settings.timing.fresh().0);
        let late = (!late.is_empty()).then(|| too_late(&late, fresh));
        Some(silent.into_iter().chain(late).collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    fn other_remarks(&self) -> impl Iterator<Item = String> {
        let timing = &self.setup.settings.timing;
        let heartbeat = Duration::from_micros(timing.heartbeat.0);
        let takes = |member: &Member| self.network.round_trip(member.id).unwrap_or_default();
        let far: Vec<Member> =
            self.setup.others().into_iter().filter(|member| takes(member) > heartbeat).collect();
        let far = (!far.is_empty()).then(|| too_far(&far, heartbeat));
        far.into_iter().chain(self.setup.directory.disagreement())
    }
}

fn advise(waits: &Waits, silent: &[Member], voters: usize) -> Option<String> {
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

fn too_late(members: &[Member], fresh: Duration) -> String {
    format!(
        "no leader can be elected: what {} answers takes longer than two heartbeats ({} ms), and does not count. Give all nodes \
         longer timings, as in config/wan.toml",
        names(members),
        fresh.as_millis()
    )
}

fn too_far(members: &[Member], heartbeat: Duration) -> String {
    format!(
        "a round trip to {} takes longer than a heartbeat ({} ms): leases lapse, and elections drag on. Give all nodes longer \
         timings, as in config/wan.toml",
        names(members),
        heartbeat.as_millis()
    )
}

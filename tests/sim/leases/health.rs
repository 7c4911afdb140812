//! The conditions under which a lease must come to its end: a leader is open, and nothing keeps it from
//! writing.

use eldest::protocol::{Ack, majority};
use eldest::types::{Epoch, LeaseName, Text};

use super::Event;
use super::contenders::Wants;
use crate::checks::Check;
use crate::host::Host;
use crate::world::{Event as Happens, World};

const EVERY: u64 = 20_000;

/// On a slower disk records wait for longer than the checkers allow.
const SYNC_MOST: u64 = 20_000;

const TICK_LATE: u64 = 1_000;

impl World {
    pub fn audit(&mut self) -> Check {
        let now = self.now;
        let healthy = self.healthy_leader();
        let witness = &mut self.lessees_mut().witness;
        let before = std::mem::replace(&mut witness.healthy, healthy);
        let passed = now - std::mem::replace(&mut witness.audited_at, now);
        self.after(EVERY, Happens::Lease(Event::Audit));
        let Some((node, _)) = healthy.filter(|_| before == healthy) else {
            self.checks.late.pardon();
            return Ok(());
        };
        self.checks.late.passed(passed)?;
        self.checks.returned.passed(passed)?;
        self.audit_lines(node, passed)
    }

    fn audit_lines(&mut self, node: usize, passed: u64) -> Check {
        for role in self.roles() {
            let waiting = self.waiters(node, &role) > 0;
            let free = self.witness().store.role(&role).is_none() && !self.is_nearly_full();
            self.checks.late.waits(&role, waiting && free, passed)?;
        }
        Ok(())
    }

    /// The number of waiters for a role at this node.
    fn waiters(&self, node: usize, role: &Text) -> usize {
        let host = &self.hosts[node];
        let name = [LeaseName::Role(role.clone())];
        let times =
            host.replica.as_ref().and_then(|replica| replica.lease_times(host.clock.now(self.now), &name));
        times.map_or(0, |times| times.times[0].waiting)
    }

    pub fn roles(&self) -> std::collections::BTreeSet<Text> {
        let all = self.lessees.iter().flat_map(|lessees| &lessees.all);
        all.filter_map(|contender| match &contender.wants {
            Wants::Role(role) => Some(role.clone()),
            Wants::Process(_) => None,
        })
        .collect()
    }

    /// The leader of the newest epoch, if it reaches a majority that can write, both ways.
    fn healthy_leader(&self) -> Option<(usize, Epoch)> {
        let calm =
            self.net.loss == 0 && self.net.straggle == 0 && self.net.late == 0 && self.net.slow.is_empty();
        let promise = |host: &Host| host.core().map(|core| core.vote().promise.epoch);
        let newest = self.hosts.iter().filter_map(promise).max()?;
        let leads = |host: &Host| {
            let core = host.core().filter(|core| core.is_open());
            core.is_some_and(|core| core.leads() == Some(newest) && !core.service_is_down())
        };
        let leader = self.hosts.iter().position(|host| leads(host) && self.writes(host))?;
        let id = self.hosts[leader].id;
        let hear_each_other =
            |node: usize, host: &Host| self.net.both_ways(id, host.id) && self.are_configured_alike(id, node);
        let reached =
            self.hosts.iter().enumerate().filter(|(node, host)| {
                self.writes(host) && (*node == leader || hear_each_other(*node, host))
            });
        let reached = reached.count();
        // Then a follower that lives and does not write holds everything up.
        let all = self.hosts[leader].settings.ack == Ack::All;
        let enough = if all { self.hosts.len() } else { majority(self.hosts.len()) };
        (calm && reached >= enough).then_some((leader, newest))
    }

    fn writes(&self, host: &Host) -> bool {
        let counts = host.core().is_some_and(|core| core.is_admitted());
        // A freeze that was cut short leaves a tick behind at its old end.
        let awake = host.paused_until <= self.now && self.now <= host.tick_at.saturating_add(TICK_LATE);
        counts && awake && host.disk.has_room() && host.sync_us <= SYNC_MOST
    }

    /// A leader has opened its epoch.
    pub fn witness_opening(&mut self) {
        self.checks.late.leader_changed();
        self.checks.returned.leader_changed();
    }
}

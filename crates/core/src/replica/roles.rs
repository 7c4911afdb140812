//! Roles and processes on the leader: grants, waits, renewals, and what nobody renews.
//!
//! ```text
//! acquire ──► judged by the newest version ──┬─ free ──► a record ──► committed ──► granted
//!                 ▲                          ├─ held, and there is time to wait ──► the waiter queue ──┐
//!                 │                          └─ held ──► a round ──► still so ──► told who             │
//!                 └────────── a release or an end enters the log: the first waiter ◄───────────────────┘
//!
//! renewal, or acquire by the holder ──► a round ──► counted (`crate::leases`) ──► answered
//! ```
//!
//! The queue moves as soon as the record that frees the role enters the log: the grant of the next one is the record behind
//! it, and both are synced together. Nobody who comes later passes by.
//!
//! Nothing of this is on disk but the records. A leader that is deposed sends everybody who waits to the next one.

use super::answer::{Denied, Unheard};
use super::io::CallId;
use super::state::{Replica, Turn};
use crate::protocol::mutant::{self, Mutant};
use crate::store::LeaseEvent;
use crate::types::{Index, Lease, LeaseName, Time};

impl Replica {
    /// Leases are counted in one epoch at a time, by the state as it is when that begins.
    pub(super) fn follow_leadership(&mut self) {
        let epoch = self.core.is_open().then(|| self.core.vote().promise.epoch);
        if epoch != self.roles.led {
            if !mutant::is_on(Mutant::LeasesCarriedOver) {
                self.roles.leases.resign();
                self.roles.anew = true;
            }
            self.roles.anew |= self.roles.leases.deadline() == Time::NEVER;
            self.roles.led = epoch;
            for acquiring in self.roles.drain_waiters() {
                let denied = self.not_leading();
                self.deny(acquiring.call, denied);
            }
        }
        if std::mem::take(&mut self.roles.anew) && epoch.is_some() {
            let forgets = mutant::is_on(Mutant::DocTtlForgotten);
            let leases = self.versions.committed().leases();
            self.roles.leases.lead(self.now.mono, leases.filter(|(name, _)| name.ages() || !forgets));
        }
    }

    /// A record has been committed that left these leases so.
    pub(super) fn count_leases(&mut self, leases: Vec<(LeaseName, Option<Lease>)>) {
        if self.roles.leads() {
            for (name, lease) in leases {
                self.roles.leases.changed(self.now.mono, name, lease);
            }
        }
    }

    /// This record enters the log: whoever waits for what it frees is next.
    pub(super) fn move_waiters(&mut self, index: Index) {
        let Some(effect) = self.versions.effect(index) else { return };
        for event in &effect.applied.events {
            if let LeaseEvent::RoleLost { role, .. } = event {
                self.roles.turns.push_back(Turn::Freed(role.clone()));
            }
        }
    }

    /// What was granted to somebody who did not hear of it is free again.
    pub(super) fn take_back(&mut self, unheard: &Unheard) {
        let Unheard { name, token, granted } = unheard;
        match granted {
            true => self.roles.leases.give_up(self.now.mono, name, *token),
            false => self.roles.leases.take_back(self.now.mono, name, *token),
        }
    }

    /// Nobody waits for this answer any more.
    pub(super) fn caller_has_gone(&mut self, call: CallId) {
        let Some(caller) = self.roles.callers.get_mut(&call) else { return };
        caller.gone = true;
        if mutant::is_on(Mutant::GrantToTheGone) {
            return;
        }
        let left = self.roles.waiters.leave(&caller.role, &caller.instance, |waiter| waiter.call == call);
        if left.is_some() {
            // Nobody hears it, and whoever keeps the way to the caller forgets it.
            self.deny(call, Denied::Unknown);
        }
    }
}

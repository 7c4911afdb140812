//! Leases on the leader (`src/driver/leasing/mod.rs`): turns, leadership, counts, lines.

use std::collections::{BTreeMap, VecDeque};

use eldest::leases::{Leases, Waiters};
use eldest::protocol::mutant::{self, Mutant};
use eldest::protocol::{Checkpoint, Input, Verdict};
use eldest::store::{Applied, Command, LeaseEvent, LeaseOperation, Operation};
use eldest::types::{Entry, Epoch, NodeId, Now, Payload, Record, RequestId, Text, Time};

use super::acquire::Acquiring;
use super::renew::Renewing;
use super::states::Ahead;
use super::{Asked, Told};
use crate::calls::BOUNDARY;
use crate::checks::Check;
use crate::store::Store;
use crate::world::World;

/// What a process knows of leases and forgets with its end.
#[derive(Debug, Default)]
pub struct Leasing {
    pub leases: Leases,
    pub waiters: Waiters<Box<Acquiring>>,
    pub led: Option<Epoch>,
    /// The number of the record about leases that is under way, or was the last.
    pub record: u64,
    pub turns: VecDeque<Turn>,
    pub busy: bool,
    pub ahead: Ahead,
    pub pending: BTreeMap<RequestId, Pending>,
}

#[derive(Debug)]
pub enum Turn {
    Acquire(Box<Acquiring>),
    Renew(Renewing),
    /// Somebody gave it back, or it ended.
    Freed(Text),
}

/// What waits for a verdict.
#[derive(Debug)]
pub enum Pending {
    Acquire(Box<Acquiring>),
    Renew(Renewing),
    Leases(u64),
    /// A release or a removal; `Some` is an answer that changes nothing.
    Write(Asked, Option<Told>),
}

impl Leasing {
    pub fn deadline(&self) -> Time {
        self.leases.deadline().min(self.waiters.deadline())
    }
}

impl World {
    pub fn settle_leases(&mut self, node: usize) -> Check {
        if self.lessees.is_none() || std::mem::replace(&mut self.hosts[node].leasing.busy, true) {
            return Ok(());
        }
        self.follow_leadership(node)?;
        while let Some(turn) = self.hosts[node].leasing.turns.pop_front() {
            match turn {
                Turn::Acquire(acquiring) => self.take_acquire(node, acquiring)?,
                Turn::Renew(renewing) => self.take_renewal(node, renewing)?,
                Turn::Freed(role) => self.take_freed(node, &role)?,
            }
            self.follow_leadership(node)?;
        }
        self.hosts[node].leasing.busy = false;
        Ok(())
    }

    fn follow_leadership(&mut self, node: usize) -> Check {
        let now = self.clock_of(node).mono;
        let host = &mut self.hosts[node];
        let Some(core) = &host.core else { return Ok(()) };
        let epoch = core.is_open().then(|| core.vote().promise.epoch);
        if epoch == host.leasing.led {
            return Ok(());
        }
        let leasing = &mut host.leasing;
        leasing.led = epoch;
        let carried_over = mutant::is_on(Mutant::LeasesCarriedOver);
        if !carried_over {
            leasing.leases.resign();
        }
        let counts = carried_over && leasing.leases.deadline() != Time::NEVER;
        if epoch.is_some() && !counts {
            leasing.leases.lead(now, host.store.product().leases());
        }
        for waiter in self.hosts[node].leasing.waiters.drain() {
            self.deny_leaderless(node, &waiter.ticket.asked)?;
        }
        Ok(())
    }

    /// A committed record reaches the product's store.
    pub fn apply_to_product(&mut self, node: usize, record: &Record, inputs: &mut VecDeque<Input>) -> Check {
        let now = self.clock_of(node).mono;
        let host = &mut self.hosts[node];
        let (id, index) = (host.id, record.index());
        let (store, applied) = host.leasing.ahead.commit(host.store.product(), record);
        if host.leasing.led.is_some() {
            for name in applied.changes.iter().filter_map(|key| key.lease()) {
                let lease = store.lease(&name);
                host.leasing.leases.changed(now, name, lease);
            }
        }
        let digest = store.digest();
        host.store = Store::of_product(store, record.stamp);
        self.checks.applied.state(id, index, digest)?;
        self.witness_commit(record)?;
        if index.is_multiple_of(BOUNDARY) {
            self.snapshot(node, index);
            inputs.push_back(Input::Digest(Checkpoint { index, digest }));
        }
        Ok(())
    }

    pub fn lease_verdict(&mut self, node: usize, request: RequestId, verdict: &Verdict) -> Check {
        let Some(call) = self.hosts[node].leasing.pending.remove(&request) else {
            return Ok(());
        };
        match (call, verdict) {
            (Pending::Acquire(acquiring), _) => self.acquire_verdict(node, acquiring, verdict),
            (Pending::Renew(renewing), _) => self.renew_verdict(node, renewing, verdict),
            (Pending::Leases(record), _) => {
                self.leases_verdict(node, record, verdict);
                Ok(())
            }
            (Pending::Write(asked, judged), Verdict::Written { .. } | Verdict::Readable { .. }) => {
                self.lease_reply(node, &asked, judged.unwrap_or(Told::Done)).map(|_| ())
            }
            (Pending::Write(asked, _), verdict) => self.deny(node, &asked, verdict),
        }
    }

    pub fn propose_lease(&mut self, node: usize, payload: Payload, call: Pending) -> Check {
        let request = self.pend(node, call);
        let index = self.last_index(node) + 1;
        self.feed(node, Input::Propose(vec![(request, Entry::Client(payload))]))?;
        if !self.hosts[node].leasing.pending.contains_key(&request) {
            return Ok(());
        }
        self.look_ahead(node);
        self.move_lines(node, index);
        self.settle_leases(node)
    }

    /// This record stands in the log: whoever waits for what it frees is next.
    fn move_lines(&mut self, node: usize, index: u64) {
        let newest = mutant::is_on(Mutant::NewestMovesTheLine).then(|| self.last_index(node));
        let index = newest.unwrap_or(index);
        let leasing = &mut self.hosts[node].leasing;
        let Some(Applied { events, .. }) = leasing.ahead.brought_about(index) else { return };
        for event in events {
            if let LeaseEvent::RoleLost { role, .. } = event {
                leasing.turns.push_back(Turn::Freed(role.clone()));
            }
        }
    }

    /// A round that starts now, and everything up to `at_least` committed.
    pub fn confirm(&mut self, node: usize, call: Pending, at_least: u64) -> Check {
        if mutant::is_on(Mutant::RenewUnconfirmed) {
            let request = self.pend(node, call);
            return self.lease_verdict(node, request, &Verdict::Readable { index: at_least });
        }
        let request = self.pend(node, call);
        self.feed(node, Input::Read { request, at_least })
    }

    fn pend(&mut self, node: usize, call: Pending) -> RequestId {
        let host = &mut self.hosts[node];
        host.next_request += 1;
        let request = RequestId(host.next_request);
        host.leasing.pending.insert(request, call);
        request
    }

    pub fn look_ahead(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        if let Some(core) = &host.core {
            host.leasing.ahead.follow(host.store.product(), core.log());
        }
    }

    pub fn newest(&self, node: usize) -> &eldest::store::Store {
        let host = &self.hosts[node];
        host.leasing.ahead.newest(host.store.product())
    }

    pub fn is_open(&self, node: usize) -> bool {
        self.hosts[node].core.as_ref().is_some_and(|core| core.is_open())
    }

    pub fn last_index(&self, node: usize) -> u64 {
        self.hosts[node].core.as_ref().map_or(0, |core| core.last().index)
    }

    pub fn clock_of(&self, node: usize) -> Now {
        self.hosts[node].clock.now(self.now)
    }

    pub fn leader_known_to(&self, node: usize) -> Option<NodeId> {
        self.hosts[node].core.as_ref().and_then(|core| core.leader())
    }
}

pub fn command(operation: LeaseOperation) -> Command {
    Command::Single(Operation::Lease(operation.into()))
}

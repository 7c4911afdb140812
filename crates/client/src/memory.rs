//! A store of roles in this process's memory, for the tests of programs that use roles. It needs no cluster and no
//! sockets. It uses the runtime's clock, which a test may stop. A test can inject faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::backend::{Acquire, Backend, Grant, Hold, Outcome, Renewal, WATCHED_MAX, Watch, Watched};
use super::clock::{Clock, Moment};
use super::error::Error;
use super::holder::{Leader, RoleHeld, RoleState};
use super::lease::{Term, millis};
use super::problem::Tried;

/// A clone shares the same store.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    state: Mutex<State>,
    /// Counts changes, to wake calls that wait.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    roles: BTreeMap<String, Role>,
    last_token: u64,
    last_waiter: u64,
    changes: u64,
    cut: BTreeSet<String>,
    unanswered: BTreeSet<String>,
    watchers: Vec<(String, mpsc::Sender<Result<Watched, Error>>)>,
}

#[derive(Debug, Default)]
struct Role {
    held: Option<Held>,
    waiting: Vec<Waiter>,
}

#[derive(Clone, Debug)]
struct Held {
    leader: Leader,
    token: u64,
    ttl: Duration,
    until: Moment,
}

#[derive(Clone, Debug)]
struct Waiter {
    number: u64,
    ask: Acquire,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Memory {
    /// An empty store. Must be called within a tokio runtime, whose clock counts the leases.
    pub fn new() -> Memory {
        let (state, changes) = (Mutex::default(), watch::Sender::new(0));
        Memory(Arc::new(Inner { clock: Clock::runtime(), state, changes }))
    }

    /// Cuts this instance off: from now on its calls fail and change nothing.
    pub fn cut(&self, instance_id: &str) {
        self.state().cut.insert(instance_id.to_string());
    }

    /// Loses the answers to this instance: from now on its calls take effect, but return an unknown outcome.
    pub fn lose_answers(&self, instance_id: &str) {
        self.state().unanswered.insert(instance_id.to_string());
    }

    /// Ends all faults of this instance.
    pub fn mend(&self, instance_id: &str) {
        let mut state = self.state();
        state.cut.remove(instance_id);
        state.unanswered.remove(instance_id);
    }

    /// Sends a change of one of the role's documents to the watchers of the role.
    pub fn change(&self, role: &str, event: Value) {
        self.state().tell(role, Watched::Changed(event));
    }

    fn now(&self) -> Moment {
        self.0.clock.now()
    }

    /// No change of the state can panic half-way, so a poisoned lock can be used.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` at this moment, for an instance that is not cut off.
    fn act<T>(
        &self,
        instance_id: &str,
        act: impl FnOnce(&mut State, Moment) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut state = self.state();
        if state.cut.contains(instance_id) {
            return Err(Error::Unavailable { tried: vec![tried("cut off")] });
        }
        let now = self.now();
        state.lapse(now);
        let done = act(&mut state, now);
        let unanswered = state.unanswered.contains(instance_id);
        let changes = state.changes;
        drop(state);
        // Waiting calls are woken only by a change, and not by every call.
        self.0.changes.send_if_modified(|known| {
            let news = *known < changes;
            *known = changes.max(*known);
            news
        });
        if unanswered { Err(Error::Indeterminate { tried: vec![tried("no answer")] }) } else { done }
    }
}

fn tried(why: &str) -> Tried {
    Tried { url: "memory".to_string(), why: why.to_string() }
}

impl State {
    /// Ends the leases that are over, and grants free roles to waiting contenders.
    fn lapse(&mut self, now: Moment) {
        let names: Vec<String> = self.roles.keys().cloned().collect();
        for name in names {
            let role = self.roles.entry(name.clone()).or_default();
            if role.held.as_ref().is_some_and(|held| held.until <= now) {
                self.free(&name);
            }
            self.hand_on(&name, now);
        }
    }

    fn free(&mut self, role: &str) {
        if let Some(held) = self.roles.entry(role.to_string()).or_default().held.take() {
            let (instance_id, token) = (held.leader.instance_id, held.token);
            self.tell(role, Watched::Lost { instance_id, token });
        }
    }

    fn hand_on(&mut self, role: &str, now: Moment) {
        let entry = self.roles.entry(role.to_string()).or_default();
        if entry.held.is_some() {
            return;
        }
        let first = |waiter: &&Waiter| (std::cmp::Reverse(waiter.ask.priority), waiter.number);
        if let Some(waiter) = entry.waiting.iter().min_by_key(first).cloned() {
            entry.waiting.retain(|other| other.number != waiter.number);
            self.give(&waiter.ask, now);
        }
    }

    fn give(&mut self, ask: &Acquire, now: Moment) -> Held {
        self.last_token += 1;
        let leader = Leader {
            instance_id: ask.instance_id.clone(),
            address: ask.address.clone(),
            metadata: ask.metadata.clone(),
        };
        let held = Held { leader, token: self.last_token, ttl: ask.ttl, until: now.plus(ask.ttl) };
        self.roles.entry(ask.role.clone()).or_default().held = Some(held.clone());
        let (instance_id, token) = (ask.instance_id.clone(), held.token);
        self.tell(&ask.role, Watched::Acquired { instance_id, token });
        held
    }

    /// Grants the role, or returns who holds it.
    fn ask(&mut self, ask: &Acquire, now: Moment) -> Result<(Outcome, Held), Box<RoleHeld>> {
        match &mut self.roles.entry(ask.role.clone()).or_default().held {
            None => Ok((Outcome::Elected, self.give(ask, now))),
            Some(held) if held.leader.instance_id == ask.instance_id => {
                (held.ttl, held.until) = (ask.ttl, now.plus(ask.ttl));
                Ok((Outcome::AlreadyLeader, held.clone()))
            }
            Some(held) => Err(Box::new(RoleHeld {
                role: ask.role.clone(),
                leader: held.leader.clone(),
                token: held.token,
                expires_in: held.until.since(now),
                conflict: false,
            })),
        }
    }

    fn held_by(&mut self, hold: &Hold) -> Result<&mut Held, Error> {
        let held = self.roles.entry(hold.role.clone()).or_default().held.as_mut();
        let lost = |held: Option<&Held>| Error::LeaseLost {
            role: hold.role.clone(),
            leader: held.map(|held| Box::new(held.leader.clone())),
            token: held.map(|held| held.token),
        };
        match held {
            Some(held) if held.token == hold.token && held.leader.instance_id == hold.instance_id => Ok(held),
            held => Err(lost(held.as_deref())),
        }
    }

    /// Sends an event to the watchers of the role. A watcher that does not keep up is removed: its watch ends.
    fn tell(&mut self, role: &str, event: Watched) {
        self.changes += 1;
        self.watchers.retain(|(name, watcher)| name != role || watcher.try_send(Ok(event.clone())).is_ok());
    }
}

/// A place in the queue for a role. It is given up when this is dropped, however the waiting ends.
struct Place<'a> {
    memory: &'a Memory,
    role: &'a str,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(role) = self.memory.state().roles.get_mut(self.role) {
            role.waiting.retain(|waiter| waiter.number != self.number);
        }
    }
}

impl Backend for Memory {
    fn clock(&self) -> Clock {
        self.0.clock
    }

    async fn acquire(&self, ask: &Acquire) -> Result<Grant, Error> {
        let sent = self.now();
        let end = sent.plus(ask.wait);
        let mut changes = self.0.changes.subscribe();
        let mut place: Option<Place<'_>> = None;
        loop {
            let tried = self.act(&ask.instance_id, |state, now| {
                let asked = state.ask(ask, now);
                if asked.is_err() && place.is_none() && !ask.wait.is_zero() {
                    state.last_waiter += 1;
                    let number = state.last_waiter;
                    let role = state.roles.entry(ask.role.clone()).or_default();
                    role.waiting.push(Waiter { number, ask: ask.clone() });
                    place = Some(Place { memory: self, role: &ask.role, number });
                }
                Ok(asked)
            })?;
            let held = match tried {
                Ok((outcome, held)) => {
                    // An instance that had to wait was elected meanwhile.
                    let outcome = if place.is_some() { Outcome::Elected } else { outcome };
                    return Ok(granted(outcome, held, sent, self.now(), ask));
                }
                Err(held) => held,
            };
            if self.now() >= end {
                return Err(Error::RoleHeld(held));
            }
            let lapses = self.now().plus(held.expires_in);
            changes.mark_unchanged();
            tokio::select! {
                () = self.0.clock.sleep_until(end.min(lapses)) => {}
                // The sender lives as long as this store, so `changed` cannot fail.
                _ = changes.changed() => {}
            }
        }
    }

    async fn renew(&self, hold: &Hold) -> Result<Renewal, Error> {
        let sent = self.now();
        self.act(&hold.instance_id, |state, now| {
            let held = state.held_by(hold)?;
            (held.ttl, held.until) = (hold.ttl, now.plus(hold.ttl));
            Ok(Renewal { sent, expires_in: hold.ttl })
        })
    }

    async fn release(&self, hold: &Hold) -> Result<(), Error> {
        self.act(&hold.instance_id, |state, now| {
            state.held_by(hold)?;
            state.free(&hold.role);
            state.hand_on(&hold.role, now);
            Ok(())
        })
    }

    async fn elect(&self, ask: &Acquire) -> Result<Grant, Error> {
        let sent = self.now();
        self.act(&ask.instance_id, |state, now| {
            state.free(&ask.role);
            let held = state.give(ask, now);
            Ok(granted(Outcome::Elected, held, sent, now, ask))
        })
    }

    async fn holder(&self, role: &str) -> Result<RoleState, Error> {
        self.act("", |state, now| {
            let entry = state.roles.entry(role.to_string()).or_default();
            let held = entry.held.as_ref();
            Ok(RoleState {
                role: role.to_string(),
                leader: held.map(|held| held.leader.clone()),
                token: held.map(|held| held.token),
                ttl_ms: held.map(|held| millis(held.ttl)),
                acquired_at: None,
                expires_in_ms: held.map(|held| millis(held.until.since(now))),
                waiting: Some(entry.waiting.len() as u64),
            })
        })
    }

    async fn watch(&self, role: &str) -> Result<Watch, Error> {
        let (tell, watch) = mpsc::channel(WATCHED_MAX);
        self.state().watchers.push((role.to_string(), tell));
        Ok(watch)
    }
}

fn granted(outcome: Outcome, held: Held, sent: Moment, now: Moment, ask: &Acquire) -> Grant {
    let term = Term::new(held.token, sent, ask.ttl, held.until.since(now));
    Grant { outcome, leader: held.leader, term }
}

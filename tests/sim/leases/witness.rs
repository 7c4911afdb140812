//! The knowledge of an onlooker that sees every machine: the one log, every answer, every belief.

use std::collections::{BTreeMap, BTreeSet};

use eldest::store::{Applied, Ended, Key, LeaseEvent, Store};
use eldest::types::{Entry, LeaseName, Position, Record, Text};

use super::contenders::{Wants, certain};
use super::{Asked, Event, Told, Wish};
use crate::checks::{Check, ensure};
use crate::world::{Event as Happens, World};

#[derive(Debug, Default)]
pub struct Witness {
    /// The state after all records that any node has committed.
    pub store: Store,
    /// Committed records by kind.
    pub records: BTreeMap<u16, usize>,
    pub answers: usize,
    pub beliefs: usize,
    pub expired: usize,
    /// Leases that ended before the time that had been promised, because the connection that their holders
    /// relied on had closed.
    pub untied: usize,
    /// Renewals of leases that may be aged by the log.
    pub halved: usize,
    /// Grants to callers that had hung up.
    pub gone: usize,
    pub restored: usize,
    /// Documents that ended by their ttl, and those that ended with a lease; `full` counts calls that found
    /// no room for one.
    pub docs_expired: usize,
    pub docs_went: usize,
    pub in_the_name_of_a_role: usize,
    /// Documents that were to be written under a condition.
    pub conditions: usize,
    /// Attempts to end what is held under a secret without showing it.
    pub thefts: usize,
    pub full: usize,
    pub audited_at: u64,
    pub healthy: Option<(usize, eldest::types::Epoch)>,
}

impl World {
    pub fn witness(&self) -> &Witness {
        &self.lessees.as_ref().expect("contenders").witness
    }

    pub fn witness_commit(&mut self, record: &Record) -> Check {
        let witness = &mut self.lessees_mut().witness;
        if record.index() != witness.store.applied().index + 1 {
            return Ok(());
        }
        let before = witness.store.clone();
        let applied = witness.store.apply(record).expect("a record that this test wrote");
        witness.restored += usize::from(applied.restored);
        if let Entry::Client(payload) = &record.entry {
            *witness.records.entry(payload.kind).or_default() += 1;
        }
        if applied.restored {
            self.witness_restore();
        }
        let names: BTreeSet<LeaseName> = applied.changes.iter().filter_map(Key::lease).collect();
        for name in names {
            self.witness_change(&name, &before, &applied)?;
        }
        self.witness_documents(record, &before, &applied)
    }

    fn witness_change(&mut self, name: &LeaseName, before: &Store, applied: &Applied) -> Check {
        let (was, is) = (before.lease(name), self.witness().store.lease(name));
        let same = was.zip(is).is_some_and(|(was, is)| was.token == is.token);
        if let Some(was) = was.filter(|_| !same) {
            self.witness_end(name, was.token, ended(name, applied))?;
        }
        let Some(is) = is else { return Ok(()) };
        if was.is_none_or(|was| was.token != is.token || was.ttl != is.ttl) {
            self.checks.late.sign(name, is.token, is.ttl.0);
        }
        if same {
            return Ok(());
        }
        self.note(|| format!("{name:?} is given out under {}", is.token));
        self.checks.fenced.granted(is.token)?;
        match name {
            LeaseName::Role(role) => self.checks.believers.granted(self.now, role, is.token),
            LeaseName::Process(_) | LeaseName::Doc(_) => Ok(()),
        }
    }

    fn witness_end(&mut self, name: &LeaseName, token: u64, why: Option<Ended>) -> Check {
        let now = self.now;
        self.note(|| format!("{name:?} ends under {token}: {why:?}"));
        self.checks.late.ended(token);
        self.checks.returned.ended(token);
        if let LeaseName::Role(role) = name {
            self.checks.believers.ended(role, token, why == Some(Ended::Replaced));
        }
        let believed = self.checks.believers.believe_in(now, token);
        ensure(!believed, "C14 never early", || format!("{token} is believed in and {why:?}"))?;
        match why {
            Some(Ended::Expired) => {
                self.lessees_mut().witness.expired += 1;
                let untied = self.checks.early.is_untied(now, token);
                self.lessees_mut().witness.untied += usize::from(untied);
                self.checks.early.expired(now, token)
            }
            _ => Ok(()),
        }
    }

    /// A node answers, whether or not the answer arrives.
    pub fn witness_answer(&mut self, node: usize, asked: &Asked, told: Told) -> Check {
        self.lessees_mut().witness.answers += 1;
        if let (Told::Lost, Wish::Renew { role, token, .. }) = (told, &asked.wish) {
            let held = self.witness().store.role(role).map(|held| held.token);
            return ensure(held != Some(*token), "C14 lost is lost", || {
                format!("n{} says so of {token} of {role}", node + 1)
            });
        }
        let Told::Yours { token, expires_in, ttl } = told else {
            return Ok(());
        };
        self.checks.returned.told(token);
        if asked.wish.waits() {
            return Ok(());
        }
        if matches!(asked.wish, Wish::Renew { ttl: None, .. }) && expires_in < ttl {
            self.lessees_mut().witness.halved += 1;
        }
        let clock = self.contender(asked.who).clock;
        let until = clock.now(asked.sent).mono + certain(expires_in.min(ttl));
        self.checks.early.promised(token, asked.sent, clock.truth_at(until))
    }

    pub fn witness_belief(&mut self, who: usize) -> Check {
        let now = self.now;
        let contender = self.contender(who).clone();
        let (Wants::Role(role), Some(token)) = (&contender.wants, contender.token) else {
            return Ok(());
        };
        let until = contender.clock.truth_at(contender.believes_until);
        self.lessees_mut().witness.beliefs += 1;
        self.note(|| format!("contender {who} believes in {role} under {token} until {until}"));
        // The holder's writes may still arrive after it has stopped believing.
        let at = now + self.lessees_mut().rng.below(2 * (until - now) + 1);
        self.at(at, Happens::Lease(Event::Uses { who, role: role.clone(), token }));
        self.checks.believers.believes(now, who, role, token, until)
    }

    pub fn uses(&mut self, who: usize, role: &Text, token: u64) -> Check {
        let (now, contender) = (self.now, self.contender(who));
        let believes = contender.believes(now) && contender.token == Some(token);
        let believes = believes && !self.checks.believers.is_overruled(token);
        self.checks.fenced.used(role, who, token, believes)
    }

    /// A role has just been granted, by this record, to a waiter that this node knows to be gone. A node that
    /// has begun to lead again since it wrote the record cannot tell which answers were given meanwhile.
    pub fn witness_gone(&mut self, node: usize, record: Position, token: u64) {
        if self.hosts[node].core().and_then(|core| core.leads()) == Some(record.epoch) {
            self.lessees_mut().witness.gone += 1;
            self.checks.returned.owes(self.now, token);
        }
    }
}

fn ended(name: &LeaseName, applied: &Applied) -> Option<Ended> {
    applied.events.iter().find_map(|event| match (event, name) {
        (LeaseEvent::RoleLost { role, why, .. }, LeaseName::Role(name)) if role == name => Some(*why),
        (LeaseEvent::ProcessRemoved { id, why, .. }, LeaseName::Process(name)) if id == name => Some(*why),
        _ => None,
    })
}

//! Holders of leases. A holder renews every third of its ttl, or is silent for a while or for ever. It believes in its lease from when it
//! sent the request that was answered.

use super::checker::Violation;
use super::cluster::Record;
use super::renewals::Renewal;
use super::world::{Event, World};
use crate::types::{Lease, LeaseName, Span, Time};

impl World {
    /// An instance asks for the lease. An operator may name a new holder while another one has it.
    pub fn want(&mut self, name: LeaseName) {
        let again = self.rng.span(100, 900);
        self.after(again, Event::Want(name.clone()));
        let Some(leader) = self.cluster.in_charge() else { return };
        let held = self.cluster.state.get(&name).map(|held| held.token);
        if held.is_some() && !self.mishap(100) {
            return;
        }
        let ttl = Span::millis(500 * (2 + self.rng.below(3)));
        let lease = Lease { token: self.number(), ttl, aged: false };
        self.propose(leader, Record::Grant { name, lease, over: held, sent: self.now });
    }

    /// The holder gets the answer with its grant, unless the answer was lost: then it does not know that it holds anything.
    pub fn granted(&mut self, name: LeaseName, lease: Lease, sent: Time) -> Result<(), Violation> {
        if self.mishap(8) {
            return Ok(());
        }
        self.checker.believes(lease.token, sent + lease.ttl)?;
        let Lease { token, ttl, .. } = lease;
        let until_next = self.until_next(ttl);
        self.after(until_next, Event::Act { name, token, ttl });
        Ok(())
    }

    pub fn act(&mut self, name: LeaseName, token: u64, ttl: Span) {
        if self.mishap(12) {
            return;
        }
        if self.mishap(40) {
            return self.give_up(name, token);
        }
        let until_next = self.until_next(ttl);
        self.after(until_next, Event::Act { name: name.clone(), token, ttl });
        if self.mishap(12) {
            return self.say_again(name, token);
        }
        let asked = match self.mishap(6) {
            true => Some(Span(ttl.0 / 4 + self.rng.below(ttl.0))),
            false => None,
        };
        let astray = if self.mishap(4) { self.cluster.outdated() } else { None };
        let leader = astray.or(self.cluster.newest());
        let renewal = Renewal { name, token, ttl, asked, sent: self.now, leader, judged: None };
        if !self.mishap(8) {
            let slow = if self.mishap(10) { 400 } else { 40 };
            let travel = self.rng.span(0, slow);
            self.after(travel, Event::Arrive(renewal));
        }
    }

    pub fn answer(&mut self, renewal: &Renewal, expires_in: Span) -> Result<(), Violation> {
        let asked = renewal.asked.unwrap_or(renewal.ttl);
        self.checker.believes(renewal.token, renewal.sent + asked.min(expires_in))
    }

    fn say_again(&mut self, name: LeaseName, token: u64) {
        if let Some(leader) = self.cluster.in_charge() {
            self.propose(leader, Record::Again { name, token, sent: self.now });
        }
    }

    /// The holder stops believing before it sends the release.
    fn give_up(&mut self, name: LeaseName, token: u64) {
        self.checker.void(token);
        if let Some(leader) = self.cluster.in_charge() {
            self.propose(leader, Record::Release { name, token });
        }
    }

    /// The time until the next renewal: usually a third of the ttl.
    fn until_next(&mut self, ttl: Span) -> Span {
        match self.mishap(3) {
            true => Span(self.rng.below(ttl.0 / 10 * 11)),
            false => Span(ttl.0 / 3),
        }
    }
}

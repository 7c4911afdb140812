//! The actions of leaders: they wake for what is due, see records decided, lose the leadership and gain it.

use super::super::super::{Due, Outcome};
use super::checker::Violation;
use super::cluster::{LeaderId, Record};
use super::world::{Event, Kind, Seen, World};
use crate::types::{Lease, LeaseName, Span, Time};

impl World {
    pub fn wake(&mut self, id: LeaderId, deadline: Time) -> Result<(), Violation> {
        let leader = &mut self.cluster.leaders[id];
        if leader.resigned || leader.wake != deadline {
            return Ok(());
        }
        leader.wake = Time::NEVER;
        let in_charge = leader.in_charge;
        let due = leader.leases.due(leader.clock(self.now));
        if due.is_empty() || !in_charge {
            return Ok(());
        }
        self.check_due(&due)?;
        self.tally.see(Seen::End, due.end.len());
        self.tally.see(Seen::Age, due.age.len());
        self.tally.see(Seen::Refresh, due.refresh.len());
        self.propose(id, Record::Due(due));
        Ok(())
    }

    /// Checks that everything in a record agrees with the committed state.
    fn check_due(&self, due: &Due) -> Result<(), Violation> {
        for (name, token) in due.leases() {
            if self.cluster.state.get(name).is_none_or(|held| held.token != *token) {
                return Err(Violation::WrongToken { name: name.clone(), token: *token });
            }
        }
        due.age.iter().try_for_each(|(_, token)| self.checker.aged(*token, self.now))
    }

    /// Decides this record, and all records before it in the log.
    pub fn decide(&mut self, id: LeaderId, number: u64, refused: bool) -> Result<(), Violation> {
        if !self.cluster.leaders[id].in_charge {
            return Ok(());
        }
        if refused {
            self.tally.see(Seen::Refusal, 1);
            self.settle(id, Outcome::Refused);
            return Ok(());
        }
        while let Some(record) = self.cluster.leaders[id].pop_up_to(number) {
            self.commit(Some(id), &record)?;
            if matches!(record, Record::Due(_)) {
                self.settle(id, Outcome::Applied);
            }
        }
        Ok(())
    }

    pub fn depose(&mut self) {
        let Some(id) = self.cluster.in_charge() else { return };
        let surviving = self.rng.below(3) as usize;
        self.cluster.depose(id, surviving);
        self.cluster.leaders[id].leases.settled(self.now, Outcome::Unknown);
        let notices = self.rng.span(0, 2000);
        self.after(notices, Event::Resign(id));
        let slowest = if self.kind == Kind::Calm { 50 } else { 1200 };
        let leaderless = self.rng.span(1, slowest);
        self.after(leaderless, Event::Lead { since: self.now });
    }

    pub fn lead(&mut self, since: Time) -> Result<(), Violation> {
        self.checker.term_begins(self.now, self.now.since(since));
        for record in std::mem::take(&mut self.cluster.survivors) {
            self.tally.see(Seen::Survivor, 1);
            self.commit(None, &record)?;
        }
        let clock = self.rng.span(0, 1_000_000);
        self.cluster.begin_term(self.now, clock);
        self.tally.see(Seen::Term, 1);
        let longest = [1500, 4000, 12_000][self.rng.below(3) as usize];
        let term = self.rng.span(300, longest);
        self.after(term, Event::Depose);
        if self.mishap(4) {
            let restored = self.rng.span(0, longest);
            self.after(restored, Event::ReplaceState);
        }
        Ok(())
    }

    pub fn resign(&mut self, id: LeaderId) {
        let leader = &mut self.cluster.leaders[id];
        leader.leases.resign();
        leader.resigned = true;
    }

    pub fn replace_state(&mut self) {
        if let Some(id) = self.cluster.in_charge() {
            self.cluster.replace_state(self.now, id);
            self.checker.term_begins(self.now, Span::ZERO);
        }
    }

    /// Applies a record: by a leader in charge, or between two terms.
    fn commit(&mut self, by: Option<LeaderId>, record: &Record) -> Result<(), Violation> {
        if let Record::Grant { name, over: Some(over), .. } = record {
            self.overruled(name, *over);
        }
        let changes = self.cluster.commit(record);
        if let Record::Due(due) = record {
            let mut ended = due.end.iter().filter(|(name, _)| changes.contains(&(name.clone(), None)));
            ended.try_for_each(|(_, token)| self.checker.ended(*token, self.now))?;
        }
        if let (Record::Grant { name, lease, sent, .. }, [_]) = (record, &changes[..]) {
            self.tally.see(Seen::Grant, 1);
            self.checker.counted(lease.token, self.now, lease.ttl);
            if by.is_some() {
                self.granted(name.clone(), *lease, *sent)?;
            }
        }
        if let Some(id) = by {
            let leader = &mut self.cluster.leaders[id];
            let now = leader.clock(self.now);
            changes.iter().cloned().for_each(|(name, lease)| leader.leases.changed(now, name, lease));
            if let (Record::Again { name, sent, .. }, [(_, Some(lease))]) = (record, &changes[..]) {
                let left = leader.leases.left(name, now).unwrap_or_default();
                return self.said_again(*lease, *sent, left);
            }
        }
        Ok(())
    }

    /// The holder gets an answer with the time that its lease has left.
    fn said_again(&mut self, lease: Lease, sent: Time, left: Span) -> Result<(), Violation> {
        self.checker.counted(lease.token, self.now, lease.ttl);
        self.tally.see(Seen::Again, 1);
        match self.mishap(6) {
            true => Ok(()),
            false => self.checker.believes(lease.token, sent + lease.ttl.min(left)),
        }
    }

    fn overruled(&mut self, name: &LeaseName, token: u64) {
        if self.cluster.state.get(name).is_some_and(|held| held.token == token) {
            self.checker.void(token);
        }
    }

    /// Renewals that waited for the outcome go on.
    fn settle(&mut self, id: LeaderId, outcome: Outcome) {
        let leader = &mut self.cluster.leaders[id];
        leader.leases.settled(leader.clock(self.now), outcome);
        for renewal in std::mem::take(&mut self.waiting) {
            self.process(renewal);
        }
    }
}

//! The end of each lease, by the clock of the node that leads.

use std::collections::BTreeMap;

use super::agenda::{Agenda, Due};
use super::counted::{Act, CountedLease};
use crate::protocol::mutant::{self, Mutant};
use crate::types::{LEASES_MOST, Lease, LeaseName, Span, Time};

/// The pause after a refused record. It is long enough for a full queue to drain, and short compared with the second within which a lease
/// must end once it is over. A hold of the service or a full disk refuses such records for longer: then leases end late, never early.
const PAUSE: Span = Span::millis(50);

/// The bound on the rows that end together with the leases of one record. The rows of the last lease may exceed it.
const ROWS_MOST: usize = 10_000;

/// The leases that this node counts; empty on a node that does not lead. One record about them is under way at a time (rule 5 in
/// `counted`), and the agenda has the due times of exactly the leases in `counted`.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    counted: BTreeMap<LeaseName, CountedLease>,
    agenda: Agenda,
    /// The content of the one record under way; empty if there is none.
    under_way: Due,
    /// No lease is due before this time, because the last record was refused, or left a lease as it was.
    paused_until: Time,
}

/// The verdict on a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalVerdict {
    Renewable,
    /// The lease has no holder, or another token holds it.
    Lost,
    /// A record that ends this token is under way. Ask again once it is settled.
    Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The time for which the holder may believe in the lease, from when it sent the renewal. It is less than the ttl while the lease may
    /// be aged, or if the holder asked for less.
    pub expires_in: Span,
}

/// The outcome of the record that `due` asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The record was committed, and `changed` was called for all that it did.
    Applied,
    /// The record is not applied, now or later (P15).
    Refused,
    /// The leadership was lost before the record was decided. `resign` follows; until then the record stays under way.
    Unknown,
}

impl Leases {
    /// Starts all leases again. Either this node has begun to lead, and has applied all that its log held when its epoch opened; or it led
    /// already, and a merge or a restore has just replaced its state. A record that is under way stays under way.
    pub fn lead(&mut self, now: Time, leases: impl Iterator<Item = (LeaseName, Lease)>) {
        let before = std::mem::take(&mut self.counted);
        let anew = |(name, lease)| {
            let counted = match before.get(&name) {
                Some(before) => CountedLease::restarted(now, lease, before),
                None => CountedLease::anew(now, lease),
            };
            (name, counted)
        };
        self.counted = leases.map(anew).collect();
        self.agenda = Agenda::of(self.counted.iter());
    }

    /// This node no longer leads, so its counts mean nothing.
    pub fn resign(&mut self) {
        *self = Leases::default();
    }

    /// A committed record granted, changed or ended this lease.
    pub fn changed(&mut self, now: Time, name: LeaseName, lease: Option<Lease>) {
        let before = self.counted.remove(&name);
        if let Some(before) = &before {
            self.agenda.remove(&name, before);
        }
        let Some(lease) = lease else { return };
        let counted = match before {
            Some(mut counted) if counted.lease.token == lease.token => {
                counted.changed(now, lease);
                counted
            }
            // Another token is another grant. No promise was made under it before this record.
            _ => CountedLease::granted(now, lease),
        };
        self.agenda.add(&name, &counted);
        self.counted.insert(name, counted);
    }

    /// Judges a renewal when it arrives, and again after a round that started after it arrived.
    pub fn renewal(&self, name: &LeaseName, token: u64) -> RenewalVerdict {
        match self.counted.get(name) {
            Some(counted) if counted.lease.token == token => match counted.proposed {
                Some(Act::End) if !mutant::is_on(Mutant::RenewWhileEnding) => RenewalVerdict::Ending,
                _ => RenewalVerdict::Renewable,
            },
            _ => RenewalVerdict::Lost,
        }
    }

    /// Renews a lease after that round. The lease goes on even if its end has come due meanwhile and was not proposed yet. `None` if it
    /// is not renewable; `renewal` says why. `ttl` is the time that the holder asks for, if it wants less than it was granted.
    pub fn renew(&mut self, now: Time, name: &LeaseName, token: u64, ttl: Option<Span>) -> Option<Renewed> {
        if self.renewal(name, token) != RenewalVerdict::Renewable {
            return None;
        }
        let expires_in = self.update(name, |counted| counted.renew(now, ttl))?;
        Some(Renewed { expires_in })
    }

    /// Gives up a lease that was granted to a caller that has disconnected since. Its end is due, unless its holder has renewed it.
    pub fn give_up(&mut self, now: Time, name: &LeaseName, token: u64) {
        if self.renewal(name, token) == RenewalVerdict::Renewable {
            self.update(name, |counted| counted.give_up(now));
        }
    }

    /// Takes back a promise to a caller that asked for its lease again, and has disconnected since.
    pub fn take_back(&mut self, now: Time, name: &LeaseName, token: u64) {
        if self.renewal(name, token) == RenewalVerdict::Renewable {
            self.update(name, |counted| counted.take_back(now));
        }
    }

    /// Notes the tie that a renewal names: the connection whose loss is to end the lease.
    pub fn name_tie(&mut self, name: &LeaseName, token: u64, tie: Option<u64>) {
        if self.renewal(name, token) == RenewalVerdict::Renewable {
            self.update(name, |counted| counted.name_tie(tie));
        }
    }

    /// The holder has asked for its lease again, and the answer says that it holds the lease.
    pub fn forget_tie(&mut self, name: &LeaseName, token: u64) {
        if self.renewal(name, token) == RenewalVerdict::Renewable {
            self.update(name, CountedLease::forget_tie);
        }
    }

    /// The holder's connection with this number has closed. The lease's end is due, unless its holder has named another connection since.
    pub fn untie(&mut self, now: Time, name: &LeaseName, token: u64, tie: u64) -> bool {
        match self.renewal(name, token) {
            RenewalVerdict::Renewable => {
                self.update(name, |counted| counted.untie(now, tie)).unwrap_or_default()
            }
            RenewalVerdict::Ending => true,
            RenewalVerdict::Lost => false,
        }
    }

    /// The content of the next record. It is under way from now on, and nothing else is due until it is `settled`. If
    /// any ends are due, the record has only ends; otherwise it has ages and refreshes.
    pub fn due(&mut self, now: Time) -> Due {
        self.due_within(now, |_| 1)
    }

    /// Does the same if more rows than one may end with a lease: `rows` says how many. A lease with many rows ends alone, or with a few others.
    pub fn due_within(&mut self, now: Time, rows: impl Fn(&LeaseName) -> usize) -> Due {
        if !self.under_way.is_empty() || now < self.paused_until {
            return Due::default();
        }
        let mut due = Due { end: self.propose_ends(now, rows), ..Due::default() };
        if due.end.is_empty() {
            // Refreshes take the room first: until its refresh is applied, a holder that has renewed is promised only
            // half of its ttl.
            due.refresh = self.propose(Act::Refresh, self.agenda.due(Act::Refresh, now, LEASES_MOST));
            let room = LEASES_MOST - due.refresh.len();
            due.age = self.propose(Act::Age, self.agenda.due(Act::Age, now, room));
        }
        self.under_way = due.clone();
        due
    }

    /// The record under way is decided. If it has not made a change that it proposed, that change is due again after a pause.
    pub fn settled(&mut self, now: Time, outcome: Outcome) {
        if outcome == Outcome::Unknown {
            return;
        }
        for (name, token) in std::mem::take(&mut self.under_way).leases() {
            // The proposed change is left over if the lease has the same token and has not changed as proposed.
            let left_over =
                |counted: &&CountedLease| counted.lease.token == *token && counted.proposed.is_some();
            if self.counted.get(name).filter(left_over).is_some() {
                self.update(name, CountedLease::unpropose);
                self.paused_until = now + PAUSE;
            }
        }
    }

    /// The time to call `due` next; `Time::NEVER` while a record is under way.
    pub fn deadline(&self) -> Time {
        match self.agenda.deadline() {
            Some(time) if self.under_way.is_empty() => time.max(self.paused_until),
            _ => Time::NEVER,
        }
    }

    /// The connection that a lease ends with, by the number that its holder named.
    pub fn tie(&self, name: &LeaseName) -> Option<u64> {
        self.counted.get(name)?.tie()
    }

    /// The time until this lease ends, if it is not renewed; zero if it is over and its end is not committed yet.
    pub fn left(&self, name: &LeaseName, now: Time) -> Option<Span> {
        self.counted.get(name).map(|counted| counted.end.since(now))
    }

    fn propose_ends(&mut self, now: Time, rows: impl Fn(&LeaseName) -> usize) -> Vec<(LeaseName, u64)> {
        let mut room = ROWS_MOST;
        let mut names = self.agenda.due(Act::End, now, LEASES_MOST);
        let fits = names.iter().take_while(|name| {
            let fits = room > 0;
            room = room.saturating_sub(rows(name));
            fits
        });
        names.truncate(fits.count());
        self.propose(Act::End, names)
    }

    fn propose(&mut self, act: Act, names: Vec<LeaseName>) -> Vec<(LeaseName, u64)> {
        let mut proposed = Vec::new();
        for name in names {
            let token = self.update(&name, |counted| {
                counted.propose(act);
                counted.lease.token
            });
            proposed.extend(token.map(|token| (name, token)));
        }
        proposed
    }

    /// Every change to one lease goes through here, so that the agenda changes with it.
    fn update<R>(&mut self, name: &LeaseName, change: impl FnOnce(&mut CountedLease) -> R) -> Option<R> {
        let counted = self.counted.get_mut(name)?;
        self.agenda.remove(name, counted);
        let result = change(counted);
        self.agenda.add(name, counted);
        Some(result)
    }
}

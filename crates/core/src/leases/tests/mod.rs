//! Tests of every rule, and a game of leaders and holders.

mod ageing;
mod ends;
mod game;
mod records;
mod ties;
mod waiters;

use super::{Due, Leases, Outcome, Renewed};
use crate::types::{Lease, LeaseName, Span, Text, Time};

const TTL: Span = Span::millis(30_000);

fn at(ms: u64) -> Time {
    Time(ms * 1000)
}

fn role(name: &str) -> LeaseName {
    LeaseName::Role(Text::from(name))
}

fn fresh(token: u64) -> Lease {
    Lease { token, ttl: TTL, aged: false }
}

fn aged(token: u64) -> Lease {
    Lease { aged: true, ..fresh(token) }
}

fn renewed(ms: u64) -> Option<Renewed> {
    Some(Renewed { expires_in: Span::millis(ms) })
}

/// A leader since the beginning, with one lease `a` under token 1.
fn leader_of(lease: Lease) -> Leases {
    let mut leases = Leases::default();
    leases.lead(at(0), [(role("a"), lease)].into_iter());
    leases
}

fn ends(leases: &[(&str, u64)]) -> Due {
    Due { end: named(leases), ..Due::default() }
}

fn ages(leases: &[(&str, u64)]) -> Due {
    Due { age: named(leases), ..Due::default() }
}

fn refreshes(leases: &[(&str, u64)]) -> Due {
    Due { refresh: named(leases), ..Due::default() }
}

fn named(leases: &[(&str, u64)]) -> Vec<(LeaseName, u64)> {
    leases.iter().map(|(name, token)| (role(name), *token)).collect()
}

/// Commits everything that is due, as the store would.
fn carry_out(leases: &mut Leases, now: Time, ttl: Span) -> Due {
    let due = leases.due(now);
    let of = |token, aged| Some(Lease { token, ttl, aged });
    due.end.iter().for_each(|(name, _)| leases.changed(now, name.clone(), None));
    due.age.iter().for_each(|(name, token)| leases.changed(now, name.clone(), of(*token, true)));
    due.refresh.iter().for_each(|(name, token)| leases.changed(now, name.clone(), of(*token, false)));
    leases.settled(now, Outcome::Applied);
    due
}

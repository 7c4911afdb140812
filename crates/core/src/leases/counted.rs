//! One lease as the leader counts it, and what a holder may be promised (C14, P40, I13).
//!
//! A holder that sent its renewal at `s` and is promised `p` believes in its lease until `s + p`, even if the leader changes.
//! So a leader that ends the lease must do it at `s + p` or later. With `T` the ttl, these rules guarantee that:
//!
//! 1. A renewal counts from when it is carried out, at `c`, after a round that started after it arrived. So `c` is later
//!    than `s`, and so is the beginning `f` of every later leader's term: this leader's was confirmed after `s`.
//! 2. A leader starts each lease with `T` at `f`, an aged one with `T/2`. It counts all leases that it has applied, and begins
//!    when it has applied all that its log held when its term opened.
//! 3. A lease is proposed to be aged `T/2` or more after it was last counted: its start, a renewal, or a record of the
//!    holder's own under the same token, which is committed after it was sent and so is a renewal too.
//! 4. A lease that may be aged is promised `T/2`: from when the ageing is proposed, decided or not, to when the record
//!    that un-ages it is applied. Any other is promised `T`.
//! 5. One such record is under way at a time, and a leader that loses the leadership forgets what it counted.
//!
//! *The same leader* ends the lease no earlier than it promised. *A later leader* that starts it with `T` ends it at `f + T` or
//! later, which is past `s + T`. A later leader that starts it with `T/2` has the ageing in its log. There are two cases.
//! Either the ageing was proposed before `c`; then `p` was `T/2` by rule 4, and `f + T/2` is past `s + p`. (An un-ageing that
//! this leader had applied is in every later log, and an ageing that it never knew of is in none.) Or it was proposed after
//! `c`, by this leader, which counts from `c`, or by a later one, which counts from its own start or a renewal, all later than
//! `s`. By rule 3 the ageing was proposed at `s + T/2` or later, the term began after that, and `f + T/2` is past `s + T`.
//!
//! *Without rule 4:* the lease is aged, a renewal is promised `T`, the leader dies before the un-ageing is committed, and
//! the next one ends the lease after `T/2`.
//!
//! A holder may agree to less: it names a *tie* with its renewals, the number of one of its connections. The node that serves
//! that connection reports when it has closed ([`CountedLease::untie`], P45). A holder that goes on without the connection
//! first names a greater number, or none, and from then on the old one ends nothing. A later leader knows of no tie until the
//! holder's next renewal. A late renewal may arrive before that one. So at a later leader an older tie ends nothing until
//! everything is over that an earlier leader may have promised under the newer tie.
//!
//! The log needs one more rule: a record may lengthen the ttl of a token, never shorten it. Otherwise the next leader
//! gives less than was promised. A holder that wants less asks for less with each renewal, which needs no record. The argument
//! also needs majorities: in available mode the two sides of a split count each for itself.

use crate::protocol::mutant::{self, Mutant};
use crate::types::{Lease, Span, Time};

/// A change that a record can make to a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    End,
    /// The record says that the lease was not renewed for half its ttl.
    Age,
    /// The record says that the lease was renewed after all.
    Refresh,
}

#[derive(Clone, Debug)]
pub(super) struct CountedLease {
    pub lease: Lease,
    pub end: Time,
    /// The time when it was last counted: its start, or its newest renewal.
    counted: Time,
    /// The time of its first renewal after it was aged.
    renewed: Option<Time>,
    /// The change that the record under way would make to it.
    pub proposed: Option<Act>,
    /// The number of further promises since this leader granted it, without those whose answer reached no caller. `None` for an
    /// inherited lease: other leaders may have made promises.
    promises: Option<u64>,
    /// The answer with the grant reached no caller.
    unheard: bool,
    /// The newest connection that its holder named, if the lease is to end with that connection.
    tie: Option<u64>,
    /// The greatest number that was named under this token.
    named: Option<u64>,
    /// A promise up to this time stands, even if a tie is named and its connection closes.
    untied_until: Time,
    /// Other numbers may have been named under this token: by its holder to earlier leaders, or by an earlier process under the holder's
    /// name.
    may_be_older: bool,
}

impl CountedLease {
    /// A lease that is inherited by a leader whose term begins now.
    pub fn anew(now: Time, lease: Lease) -> CountedLease {
        let end = now + if lease.aged { half(lease.ttl) } else { lease.ttl };
        CountedLease {
            lease,
            end,
            counted: now,
            renewed: None,
            proposed: None,
            promises: None,
            unheard: false,
            tie: None,
            named: None,
            untied_until: end,
            may_be_older: true,
        }
    }

    /// A lease that was granted just now.
    pub fn granted(now: Time, lease: Lease) -> CountedLease {
        CountedLease {
            // No promise was made under this token before, so the first tie that it names may end it at once.
            promises: Some(0),
            untied_until: now,
            may_be_older: false,
            ..CountedLease::anew(now, lease)
        }
    }

    /// The waiting caller did not get the answer with the grant, so the lease is over. It is not over if the same holder has asked in
    /// another call since, and has the answer that it holds the lease. A caller that asks from now on keeps the lease, or waits for the
    /// record that ends it.
    pub fn give_up(&mut self, now: Time) {
        self.unheard = true;
        self.end_unheard_grants(now);
    }

    /// The other call of the same holder did not get its answer, either.
    pub fn take_back(&mut self, now: Time) {
        self.promises = self.promises.map(|promises| promises.saturating_sub(1));
        self.end_unheard_grants(now);
    }

    fn end_unheard_grants(&mut self, now: Time) {
        let heard = self.promises != Some(0) && !mutant::is_on(Mutant::GiveUpWhatWasTold);
        if self.unheard && !heard {
            self.end = now;
        }
    }

    /// Notes the tie of a renewal. `None` is for a holder that relies on no connection, or no longer does. Numbers only rise, also past a
    /// renewal that names none, so a renewal that comes late takes nothing back.
    pub fn name_tie(&mut self, tie: Option<u64>) {
        let known = if mutant::is_on(Mutant::TieNamedAgain) { self.tie } else { self.named };
        if tie.is_none() && !mutant::is_on(Mutant::PlainRenewalStaysTied) {
            self.tie = None;
            if self.may_be_older {
                self.untied_until = self.end;
            }
        } else if tie > known || tie.is_some() && mutant::is_on(Mutant::TieTakenBack) {
            (self.tie, self.named) = (tie, tie);
        }
    }

    /// The holder has asked for the lease again. It may be another process under the same name, which has named nothing yet: its promise
    /// stands, even if a late renewal of the earlier process names a connection. Or it is the same process, which goes on under the
    /// number that it has.
    pub fn forget_tie(&mut self) {
        if !mutant::is_on(Mutant::AcquireStaysTied) {
            (self.tie, self.named, self.untied_until) = (None, None, self.end);
            self.may_be_older |= !mutant::is_on(Mutant::SuccessorIsUntied);
        }
    }

    /// That connection has closed, and its holder is gone with it. The lease is over, except for promises without a tie and promises of
    /// earlier leaders, which may have another number of this holder. Returns false if the holder relies on another connection by now.
    /// This and `end_unheard_grants` are the only places where an end moves to an earlier time.
    pub fn untie(&mut self, now: Time, tie: u64) -> bool {
        let tied = self.tie == Some(tie) || self.tie.is_some() && mutant::is_on(Mutant::UntieAnyNumber);
        if tied {
            let stands = if mutant::is_on(Mutant::UntieAtOnce) { now } else { self.untied_until };
            self.end = now.max(stands);
        }
        tied
    }

    /// Starts the lease again, with no earlier end than before: this leader's own promises hold, and its record is still under way.
    pub fn restarted(now: Time, lease: Lease, before: &CountedLease) -> CountedLease {
        let fresh = CountedLease::anew(now, lease);
        if before.lease.token != lease.token {
            return fresh;
        }
        let renewed = before.renewed.filter(|_| lease.aged);
        let CountedLease { proposed, tie, named, untied_until, may_be_older, .. } = *before;
        let end = fresh.end.max(before.end);
        CountedLease { end, renewed, proposed, tie, named, untied_until, may_be_older, ..fresh }
    }

    /// A record changed what the log says of this same lease. A record that neither ages nor un-ages it is the holder's own, which
    /// changes the holder's description: it counts as a renewal. It does not count if the lease is about to end: then the lease ends,
    /// whatever the holder says.
    pub fn changed(&mut self, now: Time, lease: Lease) {
        let decided =
            matches!((self.proposed, lease.aged), (Some(Act::Age), true) | (Some(Act::Refresh), false));
        self.lease = lease;
        if decided {
            self.proposed = None;
        }
        if !self.may_be_aged() {
            self.renewed = None;
        }
        if !lease.aged && !decided && self.proposed != Some(Act::End) {
            self.count(now, self.promise());
            self.forget_tie();
        }
    }

    /// Counts a renewal. Returns how long the holder may believe in the lease, from the moment when it sent the renewal.
    pub fn renew(&mut self, now: Time, asked: Option<Span>) -> Span {
        let promise = asked.map_or(self.promise(), |asked| asked.min(self.promise()));
        self.count(now, promise);
        promise
    }

    /// An earlier promise is never taken back, because the answer with this one may not reach the holder.
    fn count(&mut self, now: Time, promise: Span) {
        self.counted = now;
        self.promises = self.promises.map(|promises| promises + 1);
        let least = if mutant::is_on(Mutant::PromiseTakenBack) { now } else { self.end };
        self.end = least.max(now + promise);
        if self.may_be_aged() {
            self.renewed.get_or_insert(now);
        }
    }

    pub fn propose(&mut self, act: Act) {
        self.proposed = Some(act);
        if act == Act::Age {
            self.renewed = None;
        }
    }

    /// The record is decided, and has not changed this lease.
    pub fn unpropose(&mut self) {
        self.proposed = None;
        if !self.lease.aged {
            self.renewed = None;
        }
    }

    /// The time when this change is due, if it is due at all.
    pub fn due(&self, act: Act) -> Option<Time> {
        match act {
            Act::End => (self.proposed != Some(Act::End)).then_some(self.end),
            _ if self.proposed.is_some() => None,
            Act::Age if mutant::is_on(Mutant::LeaseNeverAges) => None,
            // The odd microsecond goes before the ageing, so that the time left after it is never too short.
            Act::Age => {
                (!self.lease.aged).then_some(self.counted + Span(self.lease.ttl.0 - half(self.lease.ttl).0))
            }
            Act::Refresh => self.renewed.filter(|_| self.lease.aged),
        }
    }

    /// Whether it may be aged in this leader's state, or in the state of the next leader.
    fn may_be_aged(&self) -> bool {
        self.lease.aged || self.proposed == Some(Act::Age)
    }

    /// The time that the next leader will give at least.
    fn promise(&self) -> Span {
        let halved = self.may_be_aged() && !mutant::is_on(Mutant::AgedPromisedInFull);
        if halved { half(self.lease.ttl) } else { self.lease.ttl }
    }
}

fn half(ttl: Span) -> Span {
    Span(ttl.0 / 2)
}

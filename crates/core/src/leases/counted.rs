//! One lease as the leader counts it, and what a holder may be promised (C14, P40, I13).
//!
//! A holder that sent its renewal at `s` and is promised `p` believes in its lease until `s + p`, even if the leader changes.
//! So a leader that ends the lease must do it at `s + p` or later. With `T` the ttl, these rules guarantee that:
//!
//! 1. A renewal counts from the time `c` at which it is carried out, after a round that started after the renewal arrived. So
//!    `c` is later than `s`. The beginning `f` of every later leader's term is later than `s`, too, because the round
//!    confirmed this leader after `s`.
//! 2. A leader starts each lease with `T` at `f`, an aged one with `T/2`. It begins to count once it has applied everything
//!    that its log held when its term opened, and counts all leases that it has applied.
//! 3. Ageing is proposed `T/2` or more after the lease was last counted: at its start, at a renewal, or at the holder's own
//!    record under the same token. Such a record is committed after it was sent, so it is a renewal, too.
//! 4. The promise is `T/2` for a lease that may be aged: from the time when the ageing is proposed, decided or not, until the
//!    record that refreshes the lease is applied. For any other lease it is `T`.
//! 5. One record about leases is under way at a time, and a leader that loses the leadership forgets what it counted.
//!
//! *The same leader* ends the lease no earlier than it promised. *A later leader* that starts it with `T` ends it at `f + T` or
//! later, which is past `s + T`. A later leader that starts it with `T/2` has the ageing in its log. There are two cases:
//! - The ageing was proposed before `c`. Then `p` was `T/2` by rule 4, and `f + T/2` is past `s + p`. (A refresh that this
//!   leader had applied is in every later log, and an ageing that it never knew of is in none.)
//! - It was proposed after `c`: by this leader, which counts from `c`, or by a later leader, which counts from its own start
//!   or from a renewal. All of these are later than `s`. So by rule 3 the ageing was proposed at `s + T/2` or later, the term
//!   began after that, and `f + T/2` is past `s + T`.
//!
//! *Without rule 4:* the lease is aged, a renewal is promised `T`, the leader dies before the refresh is committed, and the
//! next one ends the lease after `T/2`.
//!
//! A holder may agree to less: it names a *tie* with its renewals, the number of one of its connections. The node that serves
//! that connection reports when it has closed ([`CountedLease::untie`], P45). A holder that goes on without the connection
//! first names a greater number, or none, and from then on the old one ends nothing. A later leader knows of no tie until the
//! holder's next renewal. A late renewal may arrive before that one. So at a later leader an older tie ends nothing until
//! every promise is over that an earlier leader may have made under the newer tie.
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
    /// The number of further promises since this leader granted it, except those whose answer reached no caller. `None` for
    /// an inherited lease: other leaders may have made promises.
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

    /// The waiting caller did not get the answer with the grant, so the lease is over, unless another call of the same holder
    /// has since been answered that it holds the lease. A holder that asks from now on keeps the lease, or waits for the
    /// record that ends it.
    pub fn give_up(&mut self, now: Time) {
        self.unheard = true;
        self.end_unheard_grants(now);
    }

    /// Another call of the same holder did not get its answer, so the promise in that answer does not count.
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

    /// Notes the tie of a renewal. `None` is for a holder that relies on no connection, or no longer does. Numbers only rise,
    /// and a renewal without a number does not reset them. So a renewal that comes late with an old number changes nothing.
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
    /// stands, even if a late renewal of the earlier process names a connection. Or it is the same process, which may name
    /// the same number again.
    pub fn forget_tie(&mut self) {
        if !mutant::is_on(Mutant::AcquireStaysTied) {
            (self.tie, self.named, self.untied_until) = (None, None, self.end);
            self.may_be_older |= !mutant::is_on(Mutant::SuccessorIsUntied);
        }
    }

    pub fn tie(&self) -> Option<u64> {
        self.tie
    }

    /// The connection with this number has closed, and the holder is gone with it. The lease ends, but not before the end of
    /// promises that were made without a tie or by earlier leaders: to those the holder may have named another number.
    /// Returns false if the holder relies on another connection by now. This and `end_unheard_grants` are the only places
    /// where an end moves to an earlier time.
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

    /// A record changed what the log says of this same lease. A record that neither ages nor refreshes it is the holder's
    /// own, with a new description, and counts as a renewal. If an end is under way, it does not count: the lease ends all
    /// the same.
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

    /// An earlier promise is never taken back, because the answer with the new promise may not reach the holder.
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
            // Half of an odd ttl is rounded down. The other microsecond goes before the ageing, so that both halves make up
            // the ttl.
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

    /// The least time that the next leader will give.
    fn promise(&self) -> Span {
        let halved = self.may_be_aged() && !mutant::is_on(Mutant::AgedPromisedInFull);
        if halved { half(self.lease.ttl) } else { self.lease.ttl }
    }
}

fn half(ttl: Span) -> Span {
    Span(ttl.0 / 2)
}

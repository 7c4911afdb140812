//! Decides how long a holder may believe that it holds a role, and when it renews. Every holder counts by
//! these rules: elections and locks in this crate, the commands `role hold` and `exec`, and a node that
//! renews on behalf of an open stream.
//!
//! The cluster counts a lease from when it received the request. The holder counts from when it *sent* the request,
//! so its time ends first, however long the answer took. Both count with their own clock ([`Clock::Boottime`]: a
//! suspension must not prolong a lease). The margin covers the drift between the two clocks.

use std::time::Duration;

use tokio::sync::watch;

use super::clock::{Clock, Moment};

/// The margin for drift, in percent of the lease. Clocks that drift apart by more are broken.
const DRIFT_PERCENT: u32 = 1;

/// The margin for the rounding of clocks.
const DRIFT_LEAST: Duration = Duration::from_millis(10);

/// A lease is renewed after its span divided by this number. The rest of the span is for retries.
pub const RENEWALS: u32 = 3;

/// A lease, as its last proof states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The fencing token: it rises with every grant of the role.
    pub token: u64,
    /// When the request was sent whose answer proved the lease.
    pub sent: Moment,
    /// When the holder renews, unless something makes it renew earlier.
    pub renew_at: Moment,
    /// The holder must not believe in the lease from this moment on.
    pub until: Moment,
}

impl Term {
    /// `ttl` is the requested span, and `expires_in` the rest that the cluster reported: the shorter one counts.
    pub fn new(token: u64, sent: Moment, ttl: Duration, expires_in: Duration) -> Term {
        let span = ttl.min(expires_in);
        let margin = span * DRIFT_PERCENT / 100 + DRIFT_LEAST;
        let until = sent.plus(span.saturating_sub(margin));
        Term { token, sent, renew_at: sent.plus(span / RENEWALS), until }
    }

    /// Whether the holder must not believe in the lease any more at this moment.
    pub fn is_over(&self, now: Moment) -> bool {
        now >= self.until
    }
}

/// The belief of a holder. Each query reads the clock, so the belief ends without any timer.
#[derive(Debug)]
pub struct Belief {
    clock: Clock,
    term: watch::Sender<Option<Term>>,
}

impl Belief {
    /// The belief of an instance that does not hold the role.
    pub fn none(clock: Clock) -> Belief {
        Belief { clock, term: watch::Sender::new(None) }
    }

    /// The belief of a holder in this term.
    pub fn in_term(clock: Clock, term: Term) -> Belief {
        Belief { clock, term: watch::Sender::new(Some(term)) }
    }

    /// The current term. Returns `None` once its time is over.
    pub fn term(&self) -> Option<Term> {
        let term = *self.term.borrow();
        term.filter(|term| !term.is_over(self.clock.now()))
    }

    /// The token of the current term. Returns `None` once its time is over.
    pub fn token(&self) -> Option<u64> {
        self.term().map(|term| term.token)
    }

    /// Whether the role is believed to be held at this moment.
    pub fn is_held(&self) -> bool {
        self.term().is_some()
    }

    /// Begins a new term, which replaces any earlier belief.
    pub fn begin(&self, term: Term) {
        self.term.send_replace(Some(term));
    }

    /// Takes a new proof of the same grant. A proof that is older than the known one changes nothing.
    pub fn prove(&self, proof: Term) {
        self.term.send_if_modified(|term| match term {
            Some(known) if known.token == proof.token && known.sent < proof.sent => {
                *known = proof;
                true
            }
            _ => false,
        });
    }

    /// From now on only the answer to a later request counts as a proof. Until it comes, the belief lasts for
    /// `span` at most.
    pub fn doubt(&self, now: Moment, span: Duration) {
        self.term.send_if_modified(|term| match term {
            Some(known) if !known.is_over(now) => {
                *known = Term { sent: now, renew_at: now, until: known.until.min(now.plus(span)), ..*known };
                true
            }
            _ => false,
        });
    }

    /// Ends the belief.
    pub fn end(&self) {
        self.term.send_replace(None);
    }

    /// A receiver that sees each new proof, and the end.
    pub fn watch(&self) -> watch::Receiver<Option<Term>> {
        self.term.subscribe()
    }

    /// Returns once the belief is over.
    pub async fn lost(&self) {
        let mut watch = self.watch();
        while let Some(term) = self.term() {
            tokio::select! {
                () = self.clock.sleep_until(term.until) => {}
                // This struct owns the sender, so `changed` cannot fail.
                _ = watch.changed() => {}
            }
        }
    }
}

/// A span in milliseconds, as calls write it.
pub fn millis(span: Duration) -> u64 {
    span.as_millis().min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_term_ends_before_the_lease() {
        let sent = Moment::default().plus(S);
        let term = Term::new(7, sent, 30 * S, 30 * S);
        assert_eq!(term.until.since(sent), Duration::from_millis(30_000 - 300 - 10));
        assert_eq!(term.renew_at.since(sent), 10 * S);
        // The reported rest of the lease counts, and not the requested ttl.
        let short = Term::new(7, sent, 30 * S, S);
        assert_eq!(short.until.since(sent), Duration::from_millis(1_000 - 10 - 10));
        assert_eq!(short.renew_at.since(sent), S / 3);
        let nothing = Term::new(7, sent, 30 * S, Duration::ZERO);
        assert_eq!(nothing.until, sent);
        assert!(nothing.is_over(sent));
    }

    #[test]
    fn a_term_is_over_at_its_end_and_not_before() {
        let sent = Moment::default().plus(S);
        let term = Term::new(7, sent, 10 * S, 10 * S);
        let end = sent.plus(Duration::from_millis(10_000 - 100 - 10));
        assert!(!term.is_over(sent) && term.is_over(end));
        assert!(!term.is_over(sent.plus(end.since(sent) - Duration::from_nanos(1))));
    }

    /// These numbers come from outside.
    #[test]
    fn a_promise_without_end_is_no_panic() {
        let term = Term::new(7, Moment::default().plus(S), Duration::MAX, Duration::from_millis(u64::MAX));
        assert!(term.renew_at < term.until);
        assert!(!Term::new(7, Moment::default(), Duration::MAX, Duration::MAX).is_over(Moment::default()));
    }

    #[tokio::test(start_paused = true)]
    async fn belief_ends_by_the_clock_alone() {
        let clock = Clock::runtime();
        let belief = Belief::in_term(clock, Term::new(7, clock.now(), 10 * S, 10 * S));
        tokio::time::advance(Duration::from_millis(9_889)).await;
        assert_eq!(belief.token(), Some(7));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!belief.is_held());
        belief.lost().await;
    }

    #[tokio::test(start_paused = true)]
    async fn doubt_shortens_a_belief_until_a_later_proof() {
        let clock = Clock::runtime();
        let begun = clock.now();
        let belief = Belief::in_term(clock, Term::new(7, begun, 10 * S, 10 * S));
        tokio::time::advance(S).await;
        belief.doubt(clock.now(), S);
        assert_eq!(belief.term().map(|term| term.until), Some(begun.plus(2 * S)));
        assert_eq!(belief.term().map(|term| term.renew_at), Some(clock.now()), "it asks for a proof at once");
        belief.prove(Term::new(7, begun.plus(S / 2), 10 * S, 10 * S));
        assert_eq!(belief.term().map(|term| term.until), Some(begun.plus(2 * S)), "it was sent before");
        tokio::time::advance(S / 10).await;
        belief.doubt(clock.now(), 99 * S);
        assert_eq!(belief.term().map(|term| term.until), Some(begun.plus(2 * S)), "doubt adds nothing");
        tokio::time::advance(S / 10).await;
        let proof = Term::new(7, clock.now(), 10 * S, 10 * S);
        belief.prove(proof);
        assert_eq!(belief.term(), Some(proof));
    }

    #[tokio::test(start_paused = true)]
    async fn a_proof_carries_on_only_its_own_grant() {
        let clock = Clock::runtime();
        let at = |seconds: u32| clock.now().plus(S * seconds);
        let belief = Belief::in_term(clock, Term::new(7, at(1), 10 * S, 10 * S));
        belief.prove(Term::new(8, at(2), 10 * S, 10 * S));
        belief.prove(Term::new(7, at(0), 99 * S, 99 * S));
        assert_eq!(belief.term(), Some(Term::new(7, at(1), 10 * S, 10 * S)));
        belief.prove(Term::new(7, at(3), 10 * S, 10 * S));
        assert_eq!(belief.term().map(|term| term.sent), Some(at(3)));
        belief.end();
        belief.prove(Term::new(7, at(4), 10 * S, 10 * S));
        assert!(!belief.is_held(), "a proof that comes late revives nothing");
    }
}

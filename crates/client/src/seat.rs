//! One contender for one role, and the renewals that keep the role. Elections, locks and brokers all use this.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::backend::{Acquire, Backend, Grant, Hold};
use super::error::Error;
use super::lease::{Belief, Term};
use super::pauses::Pauses;
use super::problem::Tried;
use super::ties::{HeldBy, Ties, Tying, grace};

/// The bounds of a ttl that the cluster accepts.
const TTL_LEAST: Duration = Duration::from_secs(1);
const TTL_MOST: Duration = Duration::from_secs(3_600);

/// The bound for releasing a role or unregistering a process. Both calls are optional: role and process lapse by
/// themselves.
pub const LEAVE_MOST: Duration = Duration::from_secs(1);

/// The time that a stop waits for the answer to a call that asks for the role.
pub const ANSWER_MOST: Duration = Duration::from_millis(500);

/// The error if the role was possibly not released within [`LEAVE_MOST`].
pub fn not_left() -> Error {
    not_in_time("cannot release the role")
}

/// The error if no answer came within [`LEAVE_MOST`]. `what` says what may not have been done: the outcome is
/// unknown.
pub fn not_in_time(what: &str) -> Error {
    let why = format!("{what} within {} s", LEAVE_MOST.as_secs());
    Error::Indeterminate { tried: vec![Tried { url: "any node".to_string(), why }] }
}

/// A contender for a role, with its options.
#[derive(Clone, Debug)]
pub struct Seat<B> {
    pub backend: B,
    pub role: String,
    pub instance_id: String,
    pub ttl: Duration,
    pub renew_every: Duration,
    pub priority: i64,
    pub address: Option<String>,
    pub held_by: HeldBy,
}

impl<B: Backend> Seat<B> {
    /// Refuses options that cannot keep a role, before any call is sent.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |name, why| Err(Error::BadOption { name, why });
        if self.ttl < TTL_LEAST || self.ttl > TTL_MOST {
            return bad("ttl", "must be 1 s to 1 h");
        }
        if self.renew_every.is_zero() || self.renew_every * 2 > self.ttl {
            return bad("renew_every", "must be at most half of the ttl, to leave time for a second try");
        }
        if self.role.is_empty() || self.instance_id.is_empty() {
            return bad("role and instance_id", "must not be empty");
        }
        Ok(())
    }

    /// The request for the role, with this wait and metadata.
    pub fn ask(&self, wait: Duration, metadata: Option<Value>) -> Acquire {
        Acquire {
            role: self.role.clone(),
            instance_id: self.instance_id.clone(),
            ttl: self.ttl,
            priority: self.priority,
            address: self.address.clone(),
            metadata,
            wait,
        }
    }

    /// The claim to hold the role under this token.
    pub fn hold(&self, token: u64) -> Hold {
        let (role, instance_id) = (self.role.clone(), self.instance_id.clone());
        Hold { role, instance_id, token, ttl: self.ttl, tie: None }
    }

    /// Returns the term of a grant. A grant that was waited for may be old when its answer arrives, so it is renewed
    /// before it is used.
    pub async fn proved(&self, grant: &Grant, waited: bool) -> Result<Term, Error> {
        if !waited {
            return Ok(grant.term);
        }
        let token = grant.term.token;
        let renewal = self.backend.renew(&self.hold(token)).await?;
        Ok(Term::new(token, renewal.sent, self.ttl, renewal.expires_in))
    }

    /// Renews the lease for as long as the role is believed to be held. Ends the belief, and returns why it ended.
    ///
    /// A renewal that fails is passed to `note`, and retried until the time of the belief is over.
    pub async fn keep(&self, belief: &Belief, mut note: impl FnMut(Error)) -> Error {
        let clock = self.backend.clock();
        let mut ties = belief.token().map(|token| Ties::begin(&self.backend, self.hold(token), self.held_by));
        let mut at_once = false;
        let why = loop {
            let (Some(term), Some(ties)) = (belief.term(), &mut ties) else {
                break self.lost();
            };
            let renew_at = if at_once { term.sent } else { term.sent.plus(self.renew_every) };
            let hold = Hold { tie: ties.number(), ..self.hold(term.token) };
            let renewed = async {
                clock.sleep_until(term.until.min(renew_at)).await;
                clock.before(term.until, self.proof(&hold, &mut note)).await
            };
            // A renewal that is under way when a connection breaks is dropped: it names the old number.
            tokio::select! {
                biased;
                news = ties.next() => match news {
                    Tying::Proved(proof) => belief.prove(proof),
                    Tying::Renew => at_once = true,
                    Tying::Broken => {
                        belief.doubt(clock.now(), grace(self.ttl) / 2);
                        at_once = true;
                    }
                },
                renewed = renewed => match renewed {
                    Some(Ok(proof)) => {
                        belief.prove(proof);
                        ties.proved(hold.tie);
                        at_once = false;
                    }
                    Some(Err(why)) => break why,
                    None => break self.lost(),
                },
            }
        };
        belief.end();
        why
    }

    /// Retries until the cluster has renewed the lease, or says that it is lost.
    async fn proof(&self, hold: &Hold, note: &mut impl FnMut(Error)) -> Result<Term, Error> {
        let mut pauses = Pauses::new();
        loop {
            match self.backend.renew(hold).await {
                Ok(renewal) => return Ok(Term::new(hold.token, renewal.sent, self.ttl, renewal.expires_in)),
                Err(error) if error.is_lease_lost() => return Err(error),
                Err(error) => note(error),
            }
            sleep(pauses.next()).await;
        }
    }

    /// The lease is lost because its time ran out without an answer of the cluster.
    fn lost(&self) -> Error {
        Error::LeaseLost { role: self.role.clone(), leader: None, token: None }
    }

    /// Releases the role if this instance holds it: a call whose answer was not awaited may have acquired it.
    pub async fn leave(&self) -> Result<(), Error> {
        let state = self.backend.holder(&self.role).await?;
        match (state.leader, state.token) {
            (Some(leader), Some(token)) if leader.instance_id == self.instance_id => {
                self.backend.release(&self.hold(token)).await
            }
            _ => Ok(()),
        }
    }
}

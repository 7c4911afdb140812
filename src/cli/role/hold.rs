//! `eldest role hold`: holds a role as any program does. It renews at whichever node answers, believes no longer than
//! any holder may ([`Term`]), and releases the role when it is asked to end.

use std::time::Duration;

use serde_json::Value;

use super::ask::{Tenure, Wish, granted};
use super::look;
use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::out::{note, print};
use crate::cli::signals::Signals;
use crate::client::{CallError, Clock, Moment, Term, random_id};

/// The clock that counts the lease.
const CLOCK: Clock = Clock::Boottime;

/// The pause after a renewal that failed. Most of the lease is left then.
const AGAIN: Duration = Duration::from_millis(250);

/// A node that takes longer may be gone, so another one is asked.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The time limit of the release. After it the role lapses.
const FAREWELL: Duration = Duration::from_secs(5);

struct Holding {
    tenure: Tenure,
    target: Target,
    ttl_ms: Option<u64>,
    term: Term,
    renew_at: Moment,
}

/// The outcome of a try to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Renewed,
    Again,
    Lost,
}

pub async fn run(wish: &Wish, target: &Target) -> Result<(), Failure> {
    let mut signals = Signals::listen().map_err(Failure::NoRuntime)?;
    let mut wish = wish.clone();
    wish.secret.get_or_insert_with(random_id);
    let (call, sent) = (wish.call(), CLOCK.now());
    let taken = tokio::select! {
        answer = target.call(&call) => granted(answer?)?,
        _ = signals.next() => return Ok(()),
    };
    // A grant that was waited for came at an unknown moment of the wait. Only the age of a renewal is known.
    let asked = if wish.waits() { CLOCK.now() } else { sent };
    let mut holding = Holding::new(&wish, target, asked, &taken);
    if wish.waits() {
        holding.begin().await?;
    }
    print(&format!("held: {} with token {}", holding.tenure.role, holding.tenure.fencing_token))?;
    tokio::select! {
        ended = holding.keep() => return ended,
        _ = signals.next() => {}
    }
    holding.give_back().await
}

impl Holding {
    fn new(wish: &Wish, target: &Target, asked: Moment, taken: &Value) -> Holding {
        let (tenure, ttl_ms) = (wish.tenure(taken), wish.ttl.millis());
        let term = term(&tenure, ttl_ms, asked, taken);
        Holding { tenure, target: target.clone(), ttl_ms, term, renew_at: term.renew_at }
    }

    /// Makes the first renewal. Before it the role is not believed to be held.
    async fn begin(&mut self) -> Result<(), Failure> {
        loop {
            match self.renew().await? {
                Step::Renewed => return Ok(()),
                Step::Again => CLOCK.sleep_until(self.renew_at).await,
                Step::Lost => return Err(self.lost()),
            }
        }
    }

    /// Renews until the lease is lost.
    async fn keep(&mut self) -> Result<(), Failure> {
        loop {
            CLOCK.sleep_until(self.renew_at.min(self.term.until)).await;
            if self.renew().await? == Step::Lost {
                return Err(self.lost());
            }
        }
    }

    fn lost(&self) -> Failure {
        look::lost(format!("{} is lost", self.tenure.role))
    }

    async fn renew(&mut self) -> Result<Step, Failure> {
        let sent = CLOCK.now();
        let call = self.tenure.call("renew", self.ttl_ms).within(ANSWER_MAX);
        let Some(answered) = CLOCK.before(self.term.until, self.target.call(&call)).await else {
            return Ok(Step::Lost);
        };
        match answered.and_then(granted) {
            Ok(said) => {
                self.term = term(&self.tenure, self.ttl_ms, sent, &said);
                self.renew_at = self.term.renew_at;
                Ok(Step::Renewed)
            }
            Err(Failure::Call(CallError::Refused(problem))) if problem.status == 410 => Ok(Step::Lost),
            Err(failure) if may_pass(&failure) => {
                self.try_another(&failure);
                Ok(Step::Again)
            }
            Err(failure) => Err(failure),
        }
    }

    fn try_another(&mut self, failure: &Failure) {
        note(&format!("{failure}; trying again"));
        self.target.url.rotate_left(1);
        self.renew_at = CLOCK.now().plus(AGAIN);
    }

    async fn give_back(mut self) -> Result<(), Failure> {
        let until = self.term.until.min(CLOCK.now().plus(FAREWELL));
        let call = self.tenure.call("release", None).within(ANSWER_MAX);
        while CLOCK.now() < until {
            match self.target.call(&call).await.and_then(granted) {
                // A release that was repeated may have succeeded the first time.
                Ok(_) => return print(&format!("{} is free", self.tenure.role)),
                Err(Failure::Call(CallError::Refused(problem))) if problem.status == 410 => {
                    return print(&format!("{} is held by another instance, or free", self.tenure.role));
                }
                Err(failure) if may_pass(&failure) => self.try_another(&failure),
                Err(failure) => return Err(failure),
            }
            CLOCK.sleep_until(self.renew_at).await;
        }
        note(&format!("{} could not be released; it expires with its ttl", self.tenure.role));
        Ok(())
    }
}

/// The term that the cluster promised to a request that was sent at `sent`.
fn term(tenure: &Tenure, ttl_ms: Option<u64>, sent: Moment, said: &Value) -> Term {
    let promise = Duration::from_millis(said["expires_in_ms"].as_u64().unwrap_or_default());
    let ttl = ttl_ms.map_or(promise, Duration::from_millis);
    Term::new(tenure.fencing_token, sent, ttl, promise)
}

/// Whether another try, perhaps at another node, may succeed. The requests here may be repeated.
fn may_pass(failure: &Failure) -> bool {
    match failure {
        Failure::Call(CallError::NotReached { .. } | CallError::NoAnswer { .. }) => true,
        Failure::Call(CallError::Refused(problem)) => matches!(problem.status, 421 | 429 | 503 | 504),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_smaller_of_ttl_and_promise_counts() {
        let tenure = Tenure { role: "r".into(), instance: "i".into(), fencing_token: 7, secret: None };
        let sent = CLOCK.now();
        for (ttl_ms, promise, counts) in
            [(Some(6000), 3000, 3000), (Some(6000), 60_000, 6000), (None, 60_000, 60_000)]
        {
            let counts = Duration::from_millis(counts);
            let term = term(&tenure, ttl_ms, sent, &json!({ "expires_in_ms": promise }));
            assert_eq!(term, Term::new(7, sent, counts, counts));
        }
        let nothing = term(&tenure, None, sent, &Value::Null);
        assert!(nothing.is_over(sent), "what is not said is not promised");
    }
}

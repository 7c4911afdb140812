//! `eldest role hold`: a holder like any program that is one. It renews, at whichever node answers; believes no longer than
//! it was promised; and gives the role back when it is asked to end.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Tenure, Wish, granted, look};
use crate::cli::client::{Call, Target};
use crate::cli::exit::Failure;
use crate::cli::out::{note, print};
use crate::cli::signals::Signals;

/// Renewed three times within its ttl: two may fail.
const RENEWALS: u32 = 3;

/// After a renewal that failed. Most of the lease is left then.
const AGAIN: Duration = Duration::from_millis(250);

/// A node that takes longer may be gone, and another one is asked.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// What a holder stops short of the end of its lease: clocks run apart, by 1% at most.
const DRIFT_PERCENT: u32 = 1;
const DRIFT: Duration = Duration::from_millis(10);

/// How long giving it back may take. Beyond that it lapses.
const FAREWELL: Duration = Duration::from_secs(5);

struct Holding {
    tenure: Tenure,
    target: Target,
    ttl_ms: Option<u64>,
    renew_at: Instant,
    believe_until: Instant,
}

/// What a try to renew came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Renewed,
    Again,
    Lost,
}

pub async fn run(wish: &Wish, target: &Target) -> Result<(), Failure> {
    let mut signals = Signals::listen().map_err(Failure::NoRuntime)?;
    let (call, sent) = (wish.call(), Instant::now());
    let taken = tokio::select! {
        answer = target.call(&call) => granted(answer?)?,
        _ = signals.next() => return Ok(()),
    };
    let mut holding = Holding::new(wish, target, &taken);
    holding.promised(sent, &taken);
    if wish.waits() {
        // It was granted at some moment of the wait: only a renewal's age is known.
        holding.believe_until = Instant::now() + Duration::from_millis(said_ms(&taken));
        holding.begin().await?;
    }
    print(&format!("held: {} with the token {}", holding.tenure.role, holding.tenure.fencing_token))?;
    tokio::select! {
        ended = holding.keep() => return ended,
        _ = signals.next() => {}
    }
    holding.give_back().await
}

fn said_ms(said: &Value) -> u64 {
    said["expires_in_ms"].as_u64().unwrap_or_default()
}

/// How long a holder may believe that was promised so much.
fn believed(promise: Duration) -> Duration {
    promise.saturating_sub(promise / 100 * DRIFT_PERCENT + DRIFT)
}

impl Holding {
    fn new(wish: &Wish, target: &Target, taken: &Value) -> Holding {
        let (now, tenure) = (Instant::now(), wish.tenure(taken));
        Holding { tenure, target: target.clone(), ttl_ms: wish.ttl_ms, renew_at: now, believe_until: now }
    }

    /// Counts from when it was asked for.
    fn promised(&mut self, sent: Instant, said: &Value) {
        let mut promise = Duration::from_millis(said_ms(said));
        if let Some(ttl_ms) = self.ttl_ms {
            promise = promise.min(Duration::from_millis(ttl_ms));
        }
        self.believe_until = sent + believed(promise);
        self.renew_at = sent + promise / RENEWALS;
    }

    /// The first renewal, without which nothing is believed.
    async fn begin(&mut self) -> Result<(), Failure> {
        loop {
            match self.renew().await? {
                Step::Renewed => return Ok(()),
                Step::Again => sleep_until(self.renew_at).await,
                Step::Lost => return Err(self.lost()),
            }
        }
    }

    /// Renews until the lease is lost.
    async fn keep(&mut self) -> Result<(), Failure> {
        loop {
            sleep_until(self.renew_at.min(self.believe_until)).await;
            if self.renew().await? == Step::Lost {
                return Err(self.lost());
            }
        }
    }

    fn lost(&self) -> Failure {
        look::lost(format!("{} is lost", self.tenure.role))
    }

    async fn renew(&mut self) -> Result<Step, Failure> {
        let sent = Instant::now();
        if sent >= self.believe_until {
            return Ok(Step::Lost);
        }
        let call = Call { within: ANSWER_MAX, ..self.tenure.call("renew", self.ttl_ms) };
        let Ok(answered) = timeout_at(self.believe_until, self.target.call(&call)).await else {
            return Ok(Step::Lost);
        };
        match answered.and_then(granted) {
            Ok(said) => {
                self.promised(sent, &said);
                Ok(Step::Renewed)
            }
            Err(Failure::Refused(problem)) if problem.status == 410 => Ok(Step::Lost),
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
        self.renew_at = Instant::now() + AGAIN;
    }

    async fn give_back(mut self) -> Result<(), Failure> {
        let until = self.believe_until.min(Instant::now() + FAREWELL);
        let call = Call { within: ANSWER_MAX, ..self.tenure.call("release", None) };
        while Instant::now() < until {
            match self.target.call(&call).await.and_then(granted) {
                // One that was repeated may have succeeded the first time.
                Ok(_) => return print(&format!("{} is free", self.tenure.role)),
                Err(Failure::Refused(problem)) if problem.status == 410 => {
                    return print(&format!("{} is another one's, or free", self.tenure.role));
                }
                Err(failure) if may_pass(&failure) => self.try_another(&failure),
                Err(failure) => return Err(failure),
            }
            sleep_until(self.renew_at).await;
        }
        note(&format!("nobody took {} back; it ends with its ttl", self.tenure.role));
        Ok(())
    }
}

/// Whether another try, perhaps at another node, may succeed: what is asked here may be repeated.
fn may_pass(failure: &Failure) -> bool {
    match failure {
        Failure::NotReachable(_) | Failure::NoAnswer { .. } => true,
        Failure::Refused(problem) => matches!(problem.status, 421 | 429 | 503 | 504),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_believed_beyond_the_promise() {
        assert_eq!(believed(Duration::from_secs(10)), Duration::from_millis(9890));
        assert_eq!(believed(Duration::from_millis(5)), Duration::ZERO);
    }

    #[tokio::test]
    async fn the_smaller_of_ttl_and_promise_counts() {
        let wish = Wish {
            role: "r".into(),
            instance: "i".into(),
            ttl_ms: Some(6000),
            wait: None,
            priority: None,
            address: None,
            metadata: None,
        };
        let target = Target { url: vec![String::new()], token: None, token_file: None };
        let mut holding = Holding::new(&wish, &target, &Value::Null);
        for (promise, counts) in [(3000, 3000), (60_000, 6000)] {
            let sent = Instant::now();
            holding.promised(sent, &json!({ "expires_in_ms": promise }));
            assert_eq!(holding.believe_until - sent, believed(Duration::from_millis(counts)));
            assert_eq!(holding.renew_at - sent, Duration::from_millis(counts) / RENEWALS);
        }
    }
}

//! One call, with as many attempts as its time allows.
//!
//! | an attempt ends with | the call was applied | next step |
//! |---|---|---|
//! | an answer | as the answer says | done |
//! | 421 | no | the leader that the answer names, else the next node |
//! | 429, 503, no connection | no | the next node |
//! | 504, a broken connection, silence | unknown | retry under the same key |
//!
//! Silence means that no answer comes in time, or that the node does not answer a probe.
//!
//! Doubt stays: an attempt that was certainly not applied says nothing about an earlier one.

use tokio::time::{Instant, sleep_until};

use super::answer::Answer;
use super::attempt::{Attempt, attempt};
use super::call::{Call, Repeat};
use super::exchange::falls_silent;
use super::pool::Http;
use crate::error::Error;
use crate::pauses::Pauses;
use crate::problem::Tried;

/// The number of attempts in an error: the newest ones.
const TRIED_MAX: usize = 6;

/// The attempts so far, for the error when the time runs out.
#[derive(Debug, Default)]
struct History {
    tried: Vec<Tried>,
    doubt: bool,
}

impl History {
    fn note(&mut self, url: String, why: String) {
        if self.tried.len() == TRIED_MAX {
            self.tried.remove(0);
        }
        self.tried.push(Tried { url, why });
    }

    fn error(self) -> Error {
        let History { tried, doubt } = self;
        if doubt { Error::Indeterminate { tried } } else { Error::Unavailable { tried } }
    }
}

/// The final answer, with any status.
pub async fn send(http: &Http, call: &Call) -> Result<Answer, Error> {
    let deadline = Instant::now() + http.deadline + call.wait;
    let limit = call.attempt.unwrap_or(http.attempt) + call.wait;
    let (mut history, mut pauses) = (History::default(), Pauses::new());
    loop {
        let url = http.nodes.current();
        let left = deadline.saturating_duration_since(Instant::now());
        let credential = http.credential.as_deref();
        let tried = tokio::select! {
            biased;
            tried = attempt(&http.client, &http.clock, credential, &url, call, limit.min(left)) => tried,
            () = falls_silent(&http.client, &url), if may_be_given_up(http, call) => {
                Attempt::Doubtful { why: "it does not answer /livez".to_string() }
            }
        };
        let mut at_once = false;
        match tried {
            Attempt::Answered(answer) => return Ok(Answer { after_doubt: history.doubt, ..answer }),
            Attempt::Elsewhere { leader, why } => {
                http.nodes.failed(&url);
                if let Some(leader) = leader {
                    http.nodes.leads(&leader);
                    // A call follows a redirect at once only before its first pause: if two nodes name each other
                    // as the leader, they must not be called as fast as they answer.
                    at_once = pauses.is_fresh();
                }
                history.note(url.to_string(), why);
            }
            Attempt::NotDone { why } => {
                http.nodes.failed(&url);
                history.note(url.to_string(), why);
            }
            Attempt::Doubtful { why } => {
                http.nodes.failed(&url);
                history.note(url.to_string(), why);
                history.doubt |= call.writes();
                if call.repeat == Repeat::Never {
                    return Err(history.error());
                }
            }
        }
        let pause = if at_once { pauses.none() } else { pauses.next() };
        let next = Instant::now() + pause;
        if next >= deadline {
            return Err(history.error());
        }
        sleep_until(next).await;
    }
}

/// Whether a silent node may be given up for another one. A call that asks the cluster to wait may take long, and
/// a call that must not be sent twice cannot go to another node.
fn may_be_given_up(http: &Http, call: &Call) -> bool {
    http.nodes.count() > 1 && call.wait.is_zero() && call.repeat != Repeat::Never
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_stays() {
        let mut history = History { doubt: true, ..History::default() };
        for place in 0..20 {
            history.note(format!("n{place}"), "refused".into());
        }
        let error = history.error();
        assert!(matches!(&error, Error::Indeterminate { tried } if tried.len() == TRIED_MAX), "{error}");
        assert!(error.to_string().ends_with("n19 (refused)"), "{error}");
    }
}

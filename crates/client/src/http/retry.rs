//! One call, as many attempts as its time allows.
//!
//! | an attempt ends with | it has happened | and then |
//! |---|---|---|
//! | an answer | as that says | done |
//! | 421 | no | the leader that it names, else the next node |
//! | 429, 503, no connection | no | the next node |
//! | 504, a broken connection, silence | perhaps | again, under the same key |
//!
//! Silence is to have no answer in time, or none to the question whether the node lives.
//!
//! Doubt stays: a later attempt that surely did nothing says nothing of an earlier one.

use tokio::time::{Instant, sleep_until};

use super::answer::Answer;
use super::attempt::{Attempt, attempt};
use super::call::{Call, Repeat};
use super::exchange::falls_silent;
use super::pool::Http;
use crate::error::Error;
use crate::pauses::Pauses;
use crate::problem::Tried;

/// Attempts that an error tells of: the newest.
const TRIED_MAX: usize = 6;

/// What is told when the time runs out.
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

/// The answer of any status that is final.
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
                Attempt::Doubtful { why: "it does not even say that it lives".to_string() }
            }
        };
        let mut at_once = false;
        match tried {
            Attempt::Answered(answer) => return Ok(Answer { after_doubt: history.doubt, ..answer }),
            Attempt::Elsewhere { leader, why } => {
                http.nodes.failed(&url);
                if let Some(leader) = leader {
                    http.nodes.leads(&leader);
                    // Once: two nodes that point to each other must not be called as fast as they answer.
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

/// For another node. Whoever asks to wait has time; and what must not be sent twice is waited for.
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

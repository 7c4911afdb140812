//! Decides a chunk of a stream in the same way as a single write: at this node or at the leader, after a wait if there is no
//! leader.
//!
//! The lines of a chunk are decided in their order, as one round. If leadership changes meanwhile, some lines at the end may have been
//! refused, and are surely not applied. They are judged again after the lines before them, and a line that was sent is never sent again
//! (C7, P15).
//!
//! ```text
//!   verdicts      ok   ok   refused  unknown │ no leader  no leader
//!                 └── decided: each is said ─┘ └ surely in no log: judged again, in order, by the next leader
//! ```
//!
//! The loop judges the lines of a chunk in order. So once a line has a verdict other than "no leader",
//! judging an earlier line again would put it after that line; it keeps its refusal instead.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value};
use tokio::time::{Duration, Instant, timeout_at};

use super::leader::{Settled, settle};
use crate::driver::Verdicts;
use crate::driver::handle::{Denied, Written};
use crate::http::answer::{CallFailure, Code, NOT_TAKEN, Problem, outcome_unknown, push_command};
use crate::http::request::{
    CallKind, Chunk, ClientHead, ClientRequest, Context, FIRST_LINE, FORWARDED, KeyOwner, line, read_body,
};
use crate::store::Command;

/// The maximum size of another node's answer to a chunk: the results of its lines, or problems that name their fields.
/// A longer answer is not read, and the outcome of all lines is unknown then.
const ANSWER_MOST: usize = 16 << 20;

/// The time for asking the loop whether earlier attempts of lines have happened, for all lines of a chunk. Without an answer the outcome
/// is unknown.
const DOUBT_MOST: Duration = Duration::from_secs(1);

pub type LineVerdict = Result<Written, CallFailure>;

/// The results of a chunk.
#[derive(Debug, Default)]
pub struct Decided {
    /// One result line for each line of the chunk, in their order.
    pub text: String,
    /// For a chunk from another node: the number of lines at its end that were not taken, and why.
    pub not_taken: Option<(usize, Problem)>,
}

/// Decides a chunk. This always ends: all attempts together have the time limit of one call. A chunk that another node forwards
/// is never forwarded again; what it could not decide goes back as not taken, and that node decides about it.
pub async fn decide(context: &Context, head: &ClientHead, no_forward: bool, mut chunk: Chunk) -> Decided {
    let mut decided = Decided::default();
    let deadline = Instant::now() + context.limits.request_timeout;
    let passed_on = head.parts.headers.contains_key(FORWARDED);
    while !chunk.is_empty() {
        let request = request(context, head, &chunk, deadline);
        let here = async || judge(context, head, &chunk).await;
        let said = match settle(context, &request, CallKind::Write, no_forward, here).await {
            Ok(Settled::Here(verdicts)) => {
                let count = verdicts.len();
                decided.say_all(context, head, &chunk, verdicts).await;
                count
            }
            Ok(Settled::Elsewhere(response)) => repeat(context, head, &chunk, response, &mut decided).await,
            Err(problem) if passed_on && problem.code() == Code::NotLeader => {
                decided.not_taken = Some((chunk.len(), problem));
                return decided;
            }
            Err(problem) => {
                let until = Instant::now() + DOUBT_MOST;
                for (number, text) in chunk.lines() {
                    let problem = doubted(context, head, text, problem.clone(), until).await;
                    decided.say_problem(context, head, problem, number);
                }
                chunk.len()
            }
        };
        chunk = chunk.after(said);
    }
    decided
}

/// Turns the chunk into a separate call, for the node that decides it. The lines keep their numbers in the stream of the client,
/// so problems name the right line.
fn request(context: &Context, head: &ClientHead, chunk: &Chunk, deadline: Instant) -> ClientRequest {
    let mut head = head.clone();
    head.parts.headers.insert(FIRST_LINE, HeaderValue::from(chunk.first()));
    let mode = context.setup.settings.mode;
    ClientRequest::of_node(head, chunk.text().clone(), deadline, mode)
}

/// Returns verdicts for the lines decided so far. If this node no longer leads, and no line of the chunk has reached a log, it returns
/// that failure.
async fn judge(context: &Context, head: &ClientHead, chunk: &Chunk) -> Result<Vec<LineVerdict>, CallFailure> {
    let mut verdicts = Proposed::new(context, head, chunk).await.verdicts().await;
    let Some(first_open) = verdicts.iter().position(is_open) else {
        return Ok(verdicts);
    };
    match decided(&verdicts) {
        0 => Err(verdicts.swap_remove(first_open).err().unwrap_or(CallFailure::Denied(Denied::Unknown))),
        decided => {
            verdicts.truncate(decided);
            Ok(verdicts)
        }
    }
}

/// A chunk that was given to this node's loop.
#[derive(Debug)]
pub struct Proposed {
    count: usize,
    /// The lines that are refused here and never reach the loop, by place. Their problems are put between the verdicts.
    wrong: Vec<(usize, Problem)>,
    /// The verdicts of the other lines.
    verdicts: Verdicts,
}

impl Proposed {
    /// Proposes the chunk, before any command that is proposed after this returns.
    pub async fn new(context: &Context, head: &ClientHead, chunk: &Chunk) -> Proposed {
        let (owner, principal) = (KeyOwner::of(&head.asker), &head.asker.principal);
        let room = context.handle.room().await;
        // After the wait for room, which may be long: the token may have been revoked meanwhile (P56).
        let still_let_in = context.is_still_let_in(principal);
        let (mut writes, mut wrong) = (Vec::with_capacity(chunk.len()), Vec::new());
        for (place, (_, text)) in chunk.lines().enumerate() {
            let line = line(text, &owner);
            let may =
                |command: &Command| still_let_in.clone().and_then(|()| principal.check_command(command));
            match line.and_then(|write| may(&write.0).map(|()| write)) {
                Ok(write) => writes.push(write),
                Err(problem) => wrong.push((place, problem)),
            }
        }
        let verdicts = match writes.is_empty() {
            true => Verdicts::none(),
            false => context.handle.propose(writes, room),
        };
        Proposed { count: chunk.len(), wrong, verdicts }
    }

    /// Returns one verdict for each line. It must not be called again once it has returned; a cancelled wait may be repeated.
    pub async fn verdicts(&mut self) -> Vec<LineVerdict> {
        let mut answers = self.verdicts.wait().await.into_iter();
        let mut wrong = std::mem::take(&mut self.wrong).into_iter().peekable();
        let verdict = |place| match wrong.next_if(|(at, _)| *at == place) {
            Some((_, problem)) => Some(Err(problem.into())),
            None => Some(answers.next()?.map_err(CallFailure::from)),
        };
        (0..self.count).map_while(verdict).collect()
    }
}

/// Returns whether the line may be judged again.
pub fn is_open(verdict: &LineVerdict) -> bool {
    matches!(verdict, Err(CallFailure::Denied(denied)) if is_of_leadership(denied))
}

/// Returns the number of lines up to the last decided one: no line after it has reached a log.
/// A line that is not a command does not count: it never reached the loop, so it does not show how far the
/// loop has come.
pub fn decided(verdicts: &[LineVerdict]) -> usize {
    let is_wrong = |verdict: &LineVerdict| matches!(verdict, Err(CallFailure::Problem(_)));
    let last = verdicts.iter().rposition(|verdict| !is_open(verdict) && !is_wrong(verdict));
    last.map_or(0, |last| last + 1)
}

/// Returns whether the refusal has to do with leadership, so that the call is judged again.
fn is_of_leadership(denied: &Denied) -> bool {
    matches!(denied, Denied::NotLeader { .. } | Denied::NoLeader | Denied::NoQuorum | Denied::HandingOver)
}

/// A refusal means that the call was surely not applied. For a line with a key this is false if an earlier attempt may still be applied
/// (P15).
async fn doubted(
    context: &Context,
    head: &ClientHead,
    text: &[u8],
    problem: Problem,
    until: Instant,
) -> Problem {
    if !matches!(problem.code().status().as_u16(), 429 | 503) {
        return problem;
    }
    let Ok((_, Some(call))) = line(text, &KeyOwner::of(&head.asker)) else { return problem };
    match timeout_at(until, context.handle.may_have_been(call)).await.unwrap_or(true) {
        true => outcome_unknown("an earlier attempt of this line has reached a log"),
        false => problem,
    }
}

/// Repeats the leader's results, for the lines that it has taken.
/// A result is believed only if there is one for each line that was taken. Otherwise it is not known which
/// line a result belongs to, and all of them are unknown.
async fn repeat(
    context: &Context,
    head: &ClientHead,
    chunk: &Chunk,
    response: Response<Body>,
    decided: &mut Decided,
) -> usize {
    let (parts, body) = response.into_parts();
    let body = read_body(body, ANSWER_MOST, Instant::now() + context.limits.request_timeout).await;
    let text = body.ok().and_then(|body| String::from_utf8(body.into()).ok()).unwrap_or_default();
    let not_taken = parts.headers.get(NOT_TAKEN).and_then(|value| value.to_str().ok()?.parse().ok());
    let taken = chunk.len().saturating_sub(not_taken.unwrap_or(0));
    if parts.status == StatusCode::OK && taken > 0 && text.lines().count() == taken {
        decided.text.push_str(&text);
        return taken;
    }
    // The whole chunk was refused: each line gets that problem, with its number.
    let refusal: Option<Map<String, Value>> = match parts.status {
        StatusCode::OK => None,
        _ => serde_json::from_str(&text).ok(),
    };
    let unknown = outcome_unknown("the leader accepted the line, and its answer is unreadable");
    for (number, _) in chunk.lines() {
        match refusal.clone() {
            Some(mut problem) => {
                problem.insert("line".to_string(), number.into());
                decided.say(&Value::Object(problem).to_string());
            }
            None => decided.say_problem(context, head, unknown.clone(), number),
        }
    }
    chunk.len()
}

impl Decided {
    /// Writes the problem of one line, on one line.
    pub fn say_problem(&mut self, context: &Context, head: &ClientHead, problem: Problem, number: u64) {
        let text = context.explain(&problem.at_line(number), head.asker.id(), |problem, around| {
            serde_json::to_string(&problem.document(around)).unwrap_or_default()
        });
        self.say(&text);
    }

    /// Writes the results of the first lines of a chunk.
    pub async fn say_all(
        &mut self,
        context: &Context,
        head: &ClientHead,
        chunk: &Chunk,
        verdicts: Vec<LineVerdict>,
    ) {
        let until = Instant::now() + DOUBT_MOST;
        for (verdict, (number, text)) in verdicts.into_iter().zip(chunk.lines()) {
            match verdict {
                Ok(written) => self.say_written(&written),
                Err(failure) => {
                    let problem = doubted(context, head, text, failure.into(), until).await;
                    self.say_problem(context, head, problem, number);
                }
            }
        }
    }

    fn say_written(&mut self, written: &Written) {
        push_command(&mut self.text, written);
        self.text.push('\n');
    }

    fn say(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of decided lines. In `words`, `x` is unknown, `r` refused for a bound, `n` no leader, `b` not a command.
    fn count(words: &str) -> usize {
        let verdict = |word| match word {
            'x' => Err(Denied::Unknown.into()),
            'r' => Err(Denied::DiskFull.into()),
            'n' => Err(Denied::NoLeader.into()),
            _ => Err(Problem::new(Code::BadJson, "bad").into()),
        };
        decided(&words.chars().map(verdict).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_end_of_a_chunk_is_judged_anew() {
        for (words, wanted) in
            [("xxr", 3), ("xxnn", 2), ("nnx", 3), ("nxnbn", 2), ("xb", 1), ("bb", 0), ("nn", 0), ("bnb", 0)]
        {
            assert_eq!(count(words), wanted, "{words}");
        }
    }
}

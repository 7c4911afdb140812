//! Many commands in one request: each line is a separate call with its own key.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::error::Error;
use super::http::{Call, Client};
use super::pauses::Pauses;
use super::problem::{Problem, Tried};
use super::random;

/// The number of commands that a node decides at once. The rest of a larger request would only wait at the node, and
/// all of it would be sent again if the answer is lost.
const LINES_MAX: usize = 1024;
const BYTES_MAX: usize = 1 << 20;

/// The result of one command.
#[derive(Clone, Debug, Deserialize)]
pub struct Applied {
    /// The index of the command in the log.
    pub index: u64,
    pub epoch: String,
    /// For a batch: a list with one result for each of its commands.
    #[serde(alias = "results")]
    pub result: Value,
}

/// A line that waits for its final answer.
struct Line {
    /// The index among all commands.
    place: usize,
    text: String,
    doubt: bool,
    why: Option<Tried>,
}

impl Client {
    /// Runs commands, each a `storage_cmd` with its `payload`, in their order. Returns the result of each command, in
    /// the same order. The commands are not a transaction: a refused command does not stop those after it. A command
    /// that must be retried may be applied after some of those that follow it; a client that must exclude this waits
    /// for each command.
    ///
    /// A request carries up to 1,024 commands and about 1 MiB, and each such group has the time of one call. Once
    /// that time has run out or a request has failed, the next groups are not sent.
    pub async fn bulk(&self, commands: &[(&str, Value)]) -> Vec<Result<Applied, Error>> {
        let mut told: Vec<Result<Applied, Error>> = Vec::with_capacity(commands.len());
        told.resize_with(commands.len(), || Err(Error::Unavailable { tried: Vec::new() }));
        let mut lines =
            commands.iter().enumerate().map(|(place, command)| Line::new(place, command)).peekable();
        loop {
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            while let Some(line) = lines.next_if(|line| {
                chunk.is_empty() || chunk.len() < LINES_MAX && bytes + line.text.len() <= BYTES_MAX
            }) {
                bytes += line.text.len();
                chunk.push(line);
            }
            if chunk.is_empty() || !self.run(chunk, &mut told).await {
                return told;
            }
        }
    }

    /// Sends the lines until each has its final answer. Returns `false` if the time runs out before, or if a request
    /// fails as a whole.
    async fn run(&self, mut lines: Vec<Line>, told: &mut [Result<Applied, Error>]) -> bool {
        let (deadline, mut pauses) = (Instant::now() + self.http().deadline, Pauses::new());
        loop {
            lines = match self.send_lines(lines, told).await {
                Ok(left) => left,
                Err((left, error)) => {
                    left.iter().for_each(|line| told[line.place] = Err(line.ended(Some(&error))));
                    return false;
                }
            };
            if lines.is_empty() {
                return true;
            }
            let next = Instant::now() + pauses.next();
            if next >= deadline {
                lines.iter().for_each(|line| told[line.place] = Err(line.ended(None)));
                return false;
            }
            sleep_until(next).await;
        }
    }

    /// Sends the lines once, and returns those that must be retried.
    async fn send_lines(
        &self,
        mut lines: Vec<Line>,
        told: &mut [Result<Applied, Error>],
    ) -> Result<Vec<Line>, (Vec<Line>, Error)> {
        let body: String = lines.iter().map(|line| line.text.as_str()).collect();
        // Each line has its own key, so sending it twice has the same effect as once.
        let answer = match self.send(&Call::lines("/v1/commands", body)).await {
            Ok(answer) => answer,
            Err(error) => return Err((lines, error)),
        };
        let mut answers = answer.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.retain_mut(|line| match answers.next().map(Said::read) {
            Some(Said::Applied(applied)) => {
                told[line.place] = Ok(applied);
                false
            }
            Some(Said::Refused(problem)) => {
                told[line.place] = Err(Error::from(*problem));
                false
            }
            Some(Said::Again(problem)) => {
                line.note(&answer.url, problem.to_string(), problem.status == 504);
                true
            }
            Some(Said::Strange) | None => {
                line.note(&answer.url, "no answer to this line".to_string(), true);
                true
            }
        });
        Ok(lines)
    }
}

/// A node's answer to a line.
enum Said {
    Applied(Applied),
    Refused(Box<Problem>),
    Again(Box<Problem>),
    Strange,
}

impl Said {
    fn read(line: &[u8]) -> Said {
        if let Ok(applied) = serde_json::from_slice(line) {
            return Said::Applied(applied);
        }
        match serde_json::from_slice::<Problem>(line) {
            Ok(problem) if problem.code.is_empty() => Said::Strange,
            Ok(problem) if matches!(problem.status, 408 | 421 | 429 | 503 | 504) => {
                Said::Again(problem.into())
            }
            Ok(problem) => Said::Refused(problem.into()),
            Err(_) => Said::Strange,
        }
    }
}

impl Line {
    fn new(place: usize, (storage_cmd, payload): &(&str, Value)) -> Line {
        let line = json!({"storage_cmd": storage_cmd, "payload": payload, "idempotency_key": random::id()});
        Line { place, text: format!("{line}\n"), doubt: false, why: None }
    }

    fn note(&mut self, url: &str, why: String, doubt: bool) {
        self.doubt |= doubt;
        self.why = Some(Tried { url: url.to_string(), why });
    }

    /// The error of a line that has no final answer.
    fn ended(&self, last: Option<&Error>) -> Error {
        let tried = self.why.iter().cloned().collect();
        // A later refusal of the whole request says nothing about an attempt whose answer did not come.
        match last {
            _ if self.doubt => Error::Indeterminate { tried },
            Some(error) => error.clone(),
            None => Error::Unavailable { tried },
        }
    }
}

//! Messages of senders that wait for each answer, and listeners that open one stream after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{PAUSE, Round};
use crate::check::channels::{Sent, Stream, check};
use crate::check::{Outcome, Verdict};
use crate::harness::{Answer, Call, Rng, Silence, Told};

const SENDERS: u64 = 2;
const LISTENERS: u64 = 3;
/// The pause between two messages of a sender.
const BETWEEN: Duration = Duration::from_millis(20);
/// Longer than any silence of a live stream: its node breaks the silence every five seconds.
const QUIET: Duration = Duration::from_secs(8);
/// A sender or a listener goes to another node after this many seconds, at most.
const STAYS: u64 = 20;

#[derive(Debug)]
pub struct History {
    sent: Vec<Sent>,
    streams: Vec<Stream>,
}

pub async fn run(round: Arc<Round>, mut rng: Rng) -> History {
    const PANICS: &str = "a client does not panic";
    let listeners: Vec<_> =
        (0..LISTENERS).map(|_| tokio::spawn(listener(round.clone(), Rng::new(rng.next())))).collect();
    let senders: Vec<_> =
        (0..SENDERS).map(|_| tokio::spawn(send(round.clone(), Rng::new(rng.next())))).collect();
    let mut history = History { sent: Vec::new(), streams: Vec::new() };
    for sender in senders {
        history.sent.extend(sender.await.expect(PANICS));
    }
    for listener in listeners {
        history.streams.extend(listener.await.expect(PANICS));
    }
    history
}

fn path(round: &Round) -> String {
    format!("/v1/channels/{}-channel", round.number)
}

/// One sender after the other, each of which stays with one node: no order is promised across nodes.
async fn send(round: Arc<Round>, mut rng: Rng) -> Vec<Sent> {
    let mut sent = Vec::new();
    while round.goes_on() {
        let (node, stays) = (round.node(&mut rng), stay(&mut rng));
        let sender = round.value();
        let until = Instant::now() + stays;
        for number in 1.. {
            if !round.goes_on() || Instant::now() >= until {
                break;
            }
            let message = Call::post(path(&round)).json(&json!({"sender": sender, "number": number}));
            let answer = round.ask_at(node, message).await;
            // A message is in no log: without a good answer, some listeners may have heard it.
            let outcome = match &answer {
                Ok(answer) if answer.ok() => Outcome::Done,
                Err(Silence::NotSent) => Outcome::Refused,
                _ => Outcome::Unknown,
            };
            round.count("channels", outcome);
            let taken_by = answer.ok().filter(Answer::ok).map(|answer| process(&answer));
            sent.push(Sent { sender, number, taken_by });
            tokio::time::sleep(BETWEEN).await;
        }
    }
    sent
}

/// The request ids of a process begin with a number that identifies the process.
fn process(answer: &Answer) -> String {
    let id = answer.header("x-request-id").and_then(|id| id.split_once('-'));
    let (process, _) = id.expect("each answer has the id of its request");
    process.to_string()
}

fn stay(rng: &mut Rng) -> Duration {
    Duration::from_secs(1 + rng.below(STAYS))
}

async fn listener(round: Arc<Round>, mut rng: Rng) -> Vec<Stream> {
    let mut streams = Vec::new();
    while round.goes_on() {
        let (node, stays) = (round.node(&mut rng), stay(&mut rng));
        let mut stream = Stream::new();
        // Messages that were heard before the time is over count.
        let _ = tokio::time::timeout(stays, listen(&round, node, &mut stream)).await;
        streams.push(stream);
    }
    streams
}

/// Listens until the stream ends.
async fn listen(round: &Round, node: u32, heard: &mut Stream) {
    let Ok(mut events) = round.arena.cluster.events(node, &path(round)).await else {
        return tokio::time::sleep(PAUSE).await;
    };
    while round.goes_on() {
        let Ok(Told::Event(message)) = tokio::time::timeout(QUIET, events.next()).await else { return };
        // The last one may be an error of the stream.
        if let (Some(sender), Some(number)) = (message["sender"].as_u64(), message["number"].as_u64()) {
            heard.push((sender, number));
        }
    }
}

impl History {
    pub fn judge(self) -> Verdict {
        check(&self.sent, &self.streams)
    }
}

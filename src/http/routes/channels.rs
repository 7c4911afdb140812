//! Channels: a message goes to the current listeners at every node, at most once, and is not stored.
//!
//! The node that takes a message delivers it to its own listeners and forwards it to every other node, in one hop. A node that does not
//! answer in time is left out: its listeners are not counted. They may have the message already, or get it before the next one.
//!
//! ```text
//!   client ─► this node ─┬─► its own listeners
//!                        ├─► n2, with a stamp ─► its listeners ─► how many
//!                        └─► n3, with a stamp ─► …                    │
//!   client ◄─ the sum of those that have answered in time ◄───────────┘
//! ```
//!
//! Each message to another node carries the highest earlier number that this node has given up on there. Messages up to that
//! number are dropped if they arrive later. So once a publisher has its answer, no listener gets its message after a newer one
//! from the same node (`driver::channels`).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Method};
use bytes::Bytes;
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::driver::channels::{ChannelOver, Channels, Closed, Listener};
use crate::driver::handle::Denied;
use crate::http::admission::Place;
use crate::http::answer::stream::{self, Format};
use crate::http::answer::{self, Answer, Problem};
use crate::http::dispatch::{Question, Said, ask_others};
use crate::http::request::{ClientRequest, Context, raw, say_stamp, stamp};
use crate::http::url::name_after;
use crate::protocol::Timing;
use crate::store::{self, BadCommand, BadField, NAME_MOST};
use crate::types::NodeId;

const PREFIX: &str = "/v1/channels/";

/// The shortest time limit for another node: on a busy machine a call on the loopback can take as long.
const PEER_TIMEOUT_LEAST: Duration = Duration::from_millis(50);

/// The answer of another node is a number in a short text.
const ANSWER_BYTES_MOST: usize = 1 << 10;

pub async fn publish(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    let name = name(&request)?;
    request.check_media_type()?;
    let message = message(&request.body)?;
    let channels = context.handle.channels();
    let certified = request.head.asker.certified();
    // A message from another node is delivered here only: each node sends to all others itself, so there is
    // one hop.
    let delivered = match stamp(&request.head.parts.headers, &context.setup, certified) {
        Some((member, stamp)) => channels.publish_of(member, stamp, &name, &message),
        None if request.was_forwarded() => channels.publish(&name, &message),
        None => channels.publish(&name, &message) + publish_elsewhere(&context, &request, &message).await,
    };
    Ok(answer::data(&json!({ "delivered": delivered })))
}

pub async fn listen(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let query = request.query(&["format"])?;
    let format = query.format.as_deref().map_or(Ok(Format::Sse), Format::parse)?;
    let name = name(&request)?;
    let place = context.listeners.take(request.sharers())?;
    let listener = context.handle.channels().listen(&name)?;
    let silence = stream::silence(&context.limits);
    let begin = Some(Listening { listener, format, silence, announced: false, _place: place });
    Ok(stream::response(format, unfold(begin, next)))
}

fn name(request: &ClientRequest) -> Result<String, Problem> {
    let name = name_after(request.path(), PREFIX, "name")?;
    match name.len() <= NAME_MOST {
        true => Ok(name.into_owned()),
        false => Err(Problem::field("name", format!("a channel name must have at most {NAME_MOST} bytes"))),
    }
}

/// Returns the JSON on one line, as both forms of a stream need it.
/// A line break in a message would end the event in one form and the line in the other.
fn message(body: &[u8]) -> Result<Bytes, Problem> {
    let body = raw(body)?;
    let compact = store::check_readable(body).and_then(|()| store::compact(body));
    let wrong = |problem| Problem::from(BadCommand::Field(BadField { path: "message".to_string(), problem }));
    Ok(compact.map_err(wrong)?.into_owned().into())
}

async fn publish_elsewhere(context: &Context, request: &ClientRequest, message: &Bytes) -> usize {
    #[derive(Deserialize)]
    struct Answer {
        delivered: usize,
    }
    let question = Question {
        method: Method::POST,
        target: request.path(),
        shown: &request.head.parts.headers,
        origin: request.origin(),
        body: Some(message.clone()),
        within: timeout_of_peer(&context.setup.settings.timing),
        unheard: &[],
        bytes_most: ANSWER_BYTES_MOST,
    };
    let mut open = Open::to_all(context);
    let stamped = |to, headers: &mut HeaderMap| {
        let stamp = open.channels.sent().stamp(open.number, to);
        say_stamp(headers, &context.setup, to, stamp);
    };
    let said = ask_others(context, &question, stamped).await;
    let mut delivered = 0;
    for Said { member, answer, .. } in said {
        match answer {
            Ok(said) => {
                let answer = serde_json::from_slice(&said);
                delivered += answer.map_or(0, |Answer { delivered }| delivered);
                open.nodes.remove(&member.id);
            }
            // A node that has joined in this moment was not in the set.
            Err(silence) if silence.is_open => drop(open.nodes.insert(member.id)),
            Err(_) => drop(open.nodes.remove(&member.id)),
        }
    }
    delivered
}

/// A message that these nodes have not answered yet. Dropping this gives the message up there, which also happens when the caller
/// disconnects.
/// It begins with all other nodes, and a node is removed when its answer has come. So a call that is dropped
/// at any point gives up exactly the nodes that have not answered.
struct Open {
    channels: Channels,
    number: u64,
    nodes: BTreeSet<NodeId>,
}

impl Open {
    fn to_all(context: &Context) -> Open {
        let channels = context.handle.channels().clone();
        let number = channels.sent().number();
        let nodes = context.setup.others().into_iter().map(|member| member.id).collect();
        Open { channels, number, nodes }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut sent = self.channels.sent();
        self.nodes.iter().for_each(|node| sent.give_up(self.number, *node));
    }
}

/// Two heartbeats: a node that is silent for longer may be dead.
fn timeout_of_peer(timing: &Timing) -> Duration {
    Duration::from_micros(timing.fresh().0).max(PEER_TIMEOUT_LEAST)
}

impl From<Closed> for Problem {
    fn from(Closed: Closed) -> Problem {
        Denied::Stopping.into()
    }
}

struct Listening {
    listener: Listener,
    format: Format,
    silence: Duration,
    /// Whether the caller has been told that it listens.
    announced: bool,
    _place: Place,
}

async fn next(listening: Option<Listening>) -> Option<(Result<Bytes, Infallible>, Option<Listening>)> {
    let mut listening = listening?;
    let format = listening.format;
    // The first bytes come at once: a client that waits for them knows that every later message is for it as
    // well.
    if !std::mem::replace(&mut listening.announced, true) {
        return Some((Ok(format.sign_of_life()), Some(listening)));
    }
    let piece = match timeout(listening.silence, listening.listener.next()).await {
        Err(_) => format.sign_of_life(),
        Ok(Ok(message)) => written(format, &message),
        Ok(Err(over)) => return Some((Ok(end(format, over)), None)),
    };
    Some((Ok(piece), Some(listening)))
}

fn written(format: Format, message: &Bytes) -> Bytes {
    let (before, after): (&[u8], &[u8]) = match format {
        Format::Sse => (b"event: message\ndata: ", b"\n\n"),
        Format::Ndjson => (b"", b"\n"),
    };
    [before, message, after].concat().into()
}

fn end(format: Format, over: ChannelOver) -> Bytes {
    match over {
        ChannelOver::TooSlow => format.end("too_slow", "messages were read more slowly than they arrived"),
        ChannelOver::Stopping => format.end("stopping", "this node is stopping; subscribe at another one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::answer::Code;

    #[test]
    fn a_message_is_one_line_of_json() {
        let line =
            |text: &str| message(text.as_bytes()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(
            line(" {\n \"a\" : [1.50,\r\n\"x y\"] } \n").ok().as_deref(),
            Some("{\"a\":[1.50,\"x y\"]}")
        );
        assert_eq!(line("").err().map(|problem| problem.code()), Some(Code::BadJson));
        let large = format!("\"{}\"", "x".repeat(1 << 20));
        assert_eq!(line(&large).err().map(|problem| problem.code()), Some(Code::BodyTooLarge));
        assert!(written(Format::Sse, &Bytes::from_static(b"1")).ends_with(b"data: 1\n\n"));
    }
}

//! A stream of commands: one on each line, each answered by one line, in their order.
//!
//! ```text
//!   body ─► Commands: the next chunk ─► Pipeline: open chunks ─► answers ─► the client
//! ```
//!
//! If a client reads no answers, the queue fills up, and then no further command is decided or read from the body.
//!
//! The task outlives the response: chunks that have reached the loop are decided, and their permits given
//! back, even if the client is gone. The three bounds are the open chunks of the stream, the chunks of all
//! streams at the loop, and the answers in the queue; each stops the reading of the body when it is reached.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::EXPECT;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::driver::handle::Denied;
use crate::http::answer::stream::{self, Format};
use crate::http::answer::{self, Answer, Code, NOT_TAKEN, Problem};
use crate::http::dispatch::{Decided, Pipeline, decide};
use crate::http::request::{
    CHUNK_LINES, Chunk, ClientCall, ClientHead, Commands, Context, FIRST_LINE, FORWARDED, IDEMPOTENCY_KEY,
};
use crate::http::url::Query;

/// The number of answers to chunks that wait for the reader, not counting those that are being written to the socket.
/// More would let a slow client use memory for answers instead of being slowed down.
const ANSWERS_MOST: usize = 1;

pub async fn run(context: Arc<Context>, call: ClientCall) -> Answer {
    let parts = &call.head.parts;
    if parts.headers.contains_key(IDEMPOTENCY_KEY) {
        let detail = "each line has its own key: its member idempotency_key";
        return Err(Problem::field("Idempotency-Key", detail));
    }
    if parts.headers.contains_key(FORWARDED) {
        return passed_on(&context, call).await;
    }
    let no_forward = Query::parse(parts.uri.query(), &["forward"])?.no_forward;
    if let Some(leader) = context.other_leader().filter(|_| no_forward) {
        return Err(Denied::NotLeader { leader }.into());
    }
    let ClientCall { head, body } = call;
    let place = context.streams.take(head.asker.sharers())?;
    let mut commands = Commands::new(body, context.limits.body_bytes, context.limits.body_timeout);
    // hyper sends `100 Continue` when the body is first read. If the head of the response left before that,
    // the client would take it as the final answer and send no body.
    if head.parts.headers.contains_key(EXPECT) {
        commands.read().await?;
    }
    let (tell, answers) = mpsc::channel(ANSWERS_MOST);
    // The request continues after the head of its response, so that further bytes are not taken for the head of the next request.
    let busy = head.asker.timeouts().map(|timeouts| timeouts.begin(head.parts.version));
    tokio::spawn(serve(context, head, no_forward, commands, tell, (place, busy)));
    let answers = unfold(answers, |mut answers| async move { Some((answers.recv().await?, answers)) });
    Ok(stream::response(Format::Ndjson, answers))
}

/// The next event of a stream.
enum Next {
    Piece(Result<(), Problem>),
    Verdicts,
    /// The client no longer takes answers.
    Gone,
    /// The node stops. This is checked only while no chunk is open: the end of the loop gives open chunks their verdicts.
    Ended,
}

/// Runs until the body has ended or the client has disconnected: chunks that have reached the loop by then are decided without the client.
async fn serve(
    context: Arc<Context>,
    head: Box<ClientHead>,
    no_forward: bool,
    mut commands: Commands,
    tell: mpsc::Sender<Result<Bytes, Infallible>>,
    _held: impl Send,
) {
    let mut pipeline = Pipeline::new(&context, &head, no_forward);
    let mut end = None;
    while !(pipeline.is_empty() && (end.is_some() || commands.is_full() && commands.count() == 0)) {
        let next = tokio::select! {
            read = commands.read(), if end.is_none() && !commands.is_full() => Next::Piece(read),
            () = pipeline.ready(), if !pipeline.is_empty() => Next::Verdicts,
            () = tell.closed() => Next::Gone,
            () = context.handle.ended(), if pipeline.is_empty() => Next::Ended,
        };
        let text = match next {
            Next::Gone => return,
            Next::Ended => {
                end = Some(Denied::Stopping.into());
                continue;
            }
            Next::Piece(Err(problem)) => {
                end = Some(problem);
                String::new()
            }
            Next::Piece(Ok(())) => String::new(),
            Next::Verdicts => pipeline.next().await,
        };
        let has_news = !text.is_empty();
        if !say(&context, &tell, text).await {
            return;
        }
        // The node was busy with the client's own lines, and did not read: that is no silence of the client.
        if has_news {
            commands.restart_silence();
        }
        while pipeline.wants(commands.count(), commands.is_full()) {
            let Some(chunk) = commands.take() else { break };
            let text = pipeline.add(chunk).await;
            if !say(&context, &tell, text).await {
                return;
            }
        }
    }
    // The last line says where the stream ended: the client knows from its number which lines were not
    // judged.
    if let Some(problem) = end.or(commands.overlong()) {
        let mut last = Decided::default();
        last.say_problem(&context, &head, problem, commands.number());
        say(&context, &tell, last.text).await;
    }
}

/// Returns whether the client takes the text. A client that takes nothing for the idle time-out is treated as gone.
async fn say(context: &Context, tell: &mpsc::Sender<Result<Bytes, Infallible>>, text: String) -> bool {
    if text.is_empty() {
        return true;
    }
    let telling = tell.send(Ok(text.into()));
    timeout(context.limits.idle_timeout, telling).await.is_ok_and(|told| told.is_ok())
}

/// A chunk that another node forwards for its client: a whole body, with one response.
/// The other node keeps the stream with the client. This node sees one chunk, decides it without forwarding
/// it again, and says how many lines at its end it has not taken.
async fn passed_on(context: &Context, call: ClientCall) -> Answer {
    let request = call.whole(context).await?;
    let head = &request.head;
    let Some(chunk) = Chunk::whole(request.body.clone(), first_line(&head.parts.headers)) else {
        let detail = format!("a forwarded chunk has at most {CHUNK_LINES} lines");
        return Err(Problem::new(Code::BodyTooLarge, detail).with("most", CHUNK_LINES));
    };
    let (count, decided) = (chunk.len(), decide(context, head, false, chunk).await);
    let not_taken = match decided.not_taken {
        Some((left, problem)) if left == count => return Err(problem),
        Some((left, _)) => left,
        None => 0,
    };
    let kind = HeaderValue::from_static("application/x-ndjson");
    let mut response: Response<Body> = answer::typed(StatusCode::OK, kind, decided.text);
    response.headers_mut().insert(NOT_TAKEN, HeaderValue::from(not_taken));
    Ok(response)
}

/// The sender may state any number: no line of a stream has a number beyond this.
const NUMBER_MOST: u64 = 1 << 53;

fn first_line(headers: &HeaderMap) -> u64 {
    let number = headers.get(FIRST_LINE).and_then(|value| value.to_str().ok()?.parse().ok());
    number.filter(|number| *number <= NUMBER_MOST).unwrap_or(1)
}

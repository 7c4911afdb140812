//! The log from a boundary on, with the whole data where the log does not reach back so far. That is as much as there is, so
//! it is an order, one at a time, and written no further ahead than it is taken.

use std::fmt::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, header::CONTENT_TYPE};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::driver::api::CatchUp;
use crate::http::answer::{Answer, Code, JSON, Problem};
use crate::http::request::{ClientRequest, ConnectionTimeouts, Context};
use crate::storage::line;
use crate::store::Command;
use crate::types::{Entry, Payload};

const PIECE: usize = 64 << 10;
/// Pieces that wait for the reader; the writer waits in turn.
const AHEAD: usize = 4;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Boundary {
    snapshot_id: Option<u64>,
}

/// Not passed on: who reads logs says whose.
pub async fn catch_up(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let boundary = request.object::<Boundary>()?.snapshot_id;
    let boundary = boundary.ok_or_else(|| Problem::field("snapshot_id", "snapshot_id is missing"))?;
    let Ok(permit) = context.catch_ups.clone().try_acquire_owned() else {
        let problem = Problem::new(Code::TooManyRequests, "somebody else is catching up");
        return Err(problem.with("bound", "calls of /catch_up at a time"));
    };
    let found = request.in_time(context.handle.catch_up(boundary)).await??;
    let timeouts = request.parts.extensions.get::<Arc<ConnectionTimeouts>>();
    Ok(streamed(found, permit, timeouts))
}

fn streamed(
    found: CatchUp,
    permit: OwnedSemaphorePermit,
    timeouts: Option<&Arc<ConnectionTimeouts>>,
) -> Response<Body> {
    let (pieces, ready) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut out = Pieces { pieces, gathered: String::with_capacity(PIECE) };
        // It fails when nobody reads any more.
        let _ = write(found, &mut out).and_then(|()| out.give());
        drop(permit);
    });
    let untaken = timeouts.map(ConnectionTimeouts::answer);
    let pieces = stream::unfold((ready, untaken), |(mut ready, untaken)| async move {
        let piece: Bytes = ready.recv().await?;
        if let Some(untaken) = &untaken {
            untaken.goes_on();
        }
        Some((Ok::<_, std::convert::Infallible>(piece), (ready, untaken)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn write(found: CatchUp, out: &mut Pieces) -> fmt::Result {
    out.write_char('{')?;
    if let Some((id, store)) = found.snapshot {
        write!(out, "\"snapshot_id\":{id},\"snapshot\":")?;
        store.to_document(out)?;
        out.write_char(',')?;
    }
    out.write_str("\"logs\":[")?;
    for (number, record) in found.records.iter().enumerate() {
        if number > 0 {
            out.write_char(',')?;
        }
        let line = line::seed_text(&shown(&record.entry));
        out.write_str(&serde_json::to_string(&line).map_err(|_| fmt::Error)?)?;
    }
    out.write_str("]}")
}

/// What a record tells whoever reads the log: nothing that a holder shows.
fn shown(entry: &Entry) -> Entry {
    match entry {
        Entry::Client(payload) => Entry::Client(Payload { text: Command::shown(payload), ..payload.clone() }),
        entry => entry.clone(),
    }
}

/// Where it is written to.
struct Pieces {
    pieces: mpsc::Sender<Bytes>,
    gathered: String,
}

impl Pieces {
    fn give(&mut self) -> fmt::Result {
        let piece = std::mem::replace(&mut self.gathered, String::with_capacity(PIECE));
        self.pieces.blocking_send(piece.into()).map_err(|_| fmt::Error)
    }
}

impl Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.gathered.push_str(text);
        if self.gathered.len() >= PIECE { self.give() } else { Ok(()) }
    }
}

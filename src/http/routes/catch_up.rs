//! Serves the log from a boundary on, or all data if the log does not reach back so far. The response can be as large as the state, so the
//! call is an order, one at a time, and its response is streamed with backpressure.

use std::fmt::{self, Write};
use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;

use super::pieces::{Pieces, streamed};
use crate::driver::handle::{CatchUp, Whole};
use crate::http::answer::{Answer, JSON, Problem};
use crate::http::request::{ClientRequest, Context};
use crate::storage::line;
use crate::store::Command;
use crate::types::{Entry, Payload};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Boundary {
    snapshot_id: Option<u64>,
}

/// The call is not forwarded: an operator who reads a log chooses the node.
/// The records and the state come from one call to the loop, so no record is missing between them (P47).
pub async fn catch_up(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let boundary = request.object::<Boundary>()?.snapshot_id;
    let boundary = boundary.ok_or_else(|| Problem::field("snapshot_id", "snapshot_id is missing"))?;
    let place = context.catch_ups.take(request.sharers())?;
    let found = request.in_time(context.handle.catch_up(boundary)).await??;
    let timeouts = request.head.asker.timeouts();
    let all = move |out: &mut Pieces| write(found, out).map_err(std::io::Error::other);
    Ok(streamed(JSON, place, timeouts, all))
}

fn write(found: CatchUp, out: &mut Pieces) -> fmt::Result {
    out.write_char('{')?;
    if let Some(Whole { snapshot_id, store, skip }) = found.whole {
        write!(out, "\"snapshot_id\":{snapshot_id},\"skip\":{skip},\"snapshot\":")?;
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

/// Returns the record without the secrets of holders.
/// Records have hashes of secrets and of tokens, which no reader may see (P53, P56).
fn shown(entry: &Entry) -> Entry {
    match entry {
        Entry::Client(payload) => Entry::Client(Payload { text: Command::shown(payload), ..payload.clone() }),
        entry => entry.clone(),
    }
}

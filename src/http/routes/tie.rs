//! A lease that ends with a connection: the holder renews it as any holder does, and also keeps this stream open. When the holder's
//! process dies, its kernel closes the connection, and this node reports this to the leader (P45).
//!
//! ```text
//!  the connection is closed by the holder's side ── grace ──▶ `untie`: the lease ends, unless the holder has named another tie
//!  it breaks off otherwise, or this node stops    ─────────▶ nothing: the lease continues, and lapses if the holder does not renew it
//! ```
//!
//! The grace is for a live holder that has lost this connection to a device in between: in this time it can name another tie, at any node,
//! and it stops relying on the lease before the time is over.
//!
//! The node that serves the connection only reports; the leader decides. It ends the lease only if the
//! reported number is still the newest that the holder has named, so a late report about an old connection
//! ends nothing.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::role_calls::{AGAIN, Calls, UNHEARD_MOST, head, may_pass};
use crate::driver::handle::Leadership;
use crate::http::admission::{ConnectionTimeouts, Place};
use crate::http::answer::Problem;
use crate::http::answer::stream::{self, Format};
use crate::http::request::{ClientRequest, Context, HolderHere, HoldingStream};
use crate::http::url::Query;
use crate::store::Tenure;
use crate::types::{Span, Text};

/// The parameters: the body of `renew`, which a stream does not take, and the grace.
const PARAMETERS: [&str; 6] = ["instance_id", "token", "tie", "ttl_ms", "grace_ms", "format"];

/// A live holder needs this time to notice the loss and to renew under another number. Without an answer to that renewal it
/// relies on the lease for half of the grace (P45).
const GRACE: Duration = Duration::from_secs(1);
/// A grace longer than the longest lease would have no effect.
const GRACE_MOST_MS: u64 = 60_000;

/// The time for reporting to the leader. If an election takes longer, the lease lapses.
const TELL_MOST: Duration = Duration::from_secs(30);

/// An open stream.
struct Tied {
    calls: Arc<Calls>,
    tenure: Tenure,
    grace: Duration,
    first: Option<Bytes>,
    format: Format,
    silence: Duration,
    ended: bool,
    /// Notifies of new leaders; closed when the node stops.
    leadership: watch::Receiver<Leadership>,
    connection: Option<Arc<ConnectionTimeouts>>,
    /// Kept until this node has finished its report: pending reports are bounded like the streams.
    place: Arc<Place>,
    _here: HolderHere,
}

pub async fn tie(
    context: Arc<Context>,
    asked: &ClientRequest,
    role: Text,
) -> Result<Response<Body>, Problem> {
    let query = asked.query(&PARAMETERS)?;
    let format = query.format.as_deref().map_or(Ok(Format::Sse), Format::parse)?;
    let tenure = Tenure { secret: asked.secret()?, ..tenure(&query)? };
    let grace_ms = number(&query, "grace_ms")?.unwrap_or(GRACE.as_millis() as u64);
    if grace_ms > GRACE_MOST_MS {
        return Err(Problem::field("grace_ms", format!("must be from 0 to {GRACE_MOST_MS}")));
    }
    let place = context.holds.take(asked.sharers())?;
    let connection = asked.head.asker.timeouts().cloned();
    if let Some(connection) = &connection {
        connection.end_unheard(UNHEARD_MOST);
    }
    // Before the renewal: a leader that is elected while the renewal is under way does not know the tie, and must be noticed.
    let mut leadership = context.handle.leadership();
    leadership.mark_unchanged();
    let calls = Arc::new(Calls { context, head: head(asked), mode: asked.mode, role });
    // The stream begins only if the lease stands and the leader has heard this number. Otherwise the client
    // would rely on a tie that no leader has.
    let renewed = match calls.renew(&tenure).await {
        Ok(renewed) => renewed,
        Err(refused) => return Ok(refused.response),
    };
    let members = json!({
        "role": calls.role, "instance_id": *tenure.instance, "token": tenure.token, "tie": tenure.tie,
        "expires_in_ms": renewed.expires_in().as_millis() as u64,
    });
    let tied = Tied {
        silence: stream::silence(&calls.context.limits),
        _here: calls
            .context
            .holders
            .enter(calls.role.clone(), HoldingStream { token: tenure.token, tie: tenure.tie }),
        calls,
        tenure,
        grace: Duration::from_millis(grace_ms),
        first: Some(format.event("tied", None, members)),
        format,
        ended: false,
        leadership,
        connection,
        place: place.into(),
    };
    Ok(stream::response(format, unfold(tied, next)))
}

fn tenure(query: &Query) -> Result<Tenure, Problem> {
    let needed = |name: &'static str| -> Result<u64, Problem> {
        number(query, name)?.ok_or_else(|| Problem::field(name, format!("{name} is missing")))
    };
    let instance = query.more("instance_id").filter(|id| !id.is_empty());
    let instance = instance.ok_or_else(|| Problem::field("instance_id", "instance_id is missing"))?;
    Ok(Tenure {
        instance: instance.into(),
        token: needed("token")?,
        ttl: number(query, "ttl_ms")?.map(Span::millis),
        tie: Some(needed("tie")?),
        secret: None,
    })
}

fn number(query: &Query, name: &'static str) -> Result<Option<u64>, Problem> {
    /// Some JSON parsers cannot read greater numbers exactly.
    const MOST: u64 = 1 << 53;
    let Some(text) = query.more(name) else {
        return Ok(None);
    };
    match text.parse::<u64>() {
        Ok(number) if number < MOST => Ok(Some(number)),
        _ => Err(Problem::field(name, "must be an integer")),
    }
}

async fn next(mut tied: Tied) -> Option<(Result<Bytes, Infallible>, Tied)> {
    if let Some(first) = tied.first.take() {
        return Some((Ok(first), tied));
    }
    if tied.ended {
        return None;
    }
    let piece = tied.go_on().await;
    Some((Ok(piece), tied))
}

impl Tied {
    /// Returns the next message.
    async fn go_on(&mut self) -> Bytes {
        let speak_at = Instant::now() + self.silence;
        loop {
            let left = speak_at.saturating_duration_since(Instant::now());
            match timeout(left, self.leadership.changed()).await {
                Err(_) => return self.format.sign_of_life(),
                Ok(Err(_)) => {
                    self.ended = true;
                    let detail = "this node is stopping; the lease continues: tie it at another node";
                    return self.format.end("stopping", detail);
                }
                // A new leader does not know the tie yet: the holder's next renewal names it.
                Ok(Ok(())) if self.leadership.borrow_and_update().leader.is_some() => {
                    return self.format.event("renew", None, json!({"role": self.calls.role}));
                }
                Ok(Ok(())) => {}
            }
        }
    }

    /// The grace is waited for here and not at the leader: the leader needs no timer for each connection, and
    /// a leader that changes meanwhile loses none.
    fn untie(&self) -> impl Future<Output = ()> + Send + use<> {
        let (calls, tenure, grace) = (self.calls.clone(), self.tenure.clone(), self.grace);
        let place = self.place.clone();
        async move {
            sleep(grace).await;
            let until = Instant::now() + TELL_MOST;
            while Instant::now() < until {
                match calls.untie(&tenure).await {
                    Err(refused) if may_pass(refused.status) => sleep(AGAIN).await,
                    Ok(()) | Err(_) => break,
                }
            }
            drop(place);
        }
    }
}

/// The stream ends in many ways, and only one of them is the holder's: its side has closed the connection in
/// order. A reset, a time-out or the end of this node says nothing about the holder (P45).
impl Drop for Tied {
    fn drop(&mut self) {
        let closed = self.connection.as_ref().is_some_and(|connection| connection.was_closed_by_peer());
        if closed && !self.ended {
            tokio::spawn(self.untie());
        }
    }
}

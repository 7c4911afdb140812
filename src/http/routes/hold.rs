//! Holds a role for as long as a connection is open: `curl -N` is enough.
//!
//! The node that serves the stream acquires, renews and releases the role: it calls its own loop, or forwards the call to the leader, as
//! it does for any client. It measures the lease by the rule for every holder ([`Term`]). If the node or the client's host dies, the lease
//! is no longer renewed and lapses.
//!
//! ```text
//!   acquire ── at once ──────────────────────────────────┐
//!      └── after a wait ─► prove: renew until clear ─────┴─► held: renew … ─┬─► lost       410, or its own time is over
//!                               └ not in time: 504                          ├─► stopping   the node ends: say so, give back
//!                                                                           └─► dropped    the client is gone: give back
//! ```
//!
//! The client does not count time: the end of the stream, for any reason, is the end of its role. The stream
//! says `lost` as soon as the lease may be over by this node's clock, which is before another instance can be
//! granted the role (I13).

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_util::stream::unfold;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep, timeout};

use super::role_calls::{AGAIN, Calls, UNHEARD_MOST, head, may_pass};
use crate::client::{Clock, Moment, Term};
use crate::driver::handle::{Denied, Leadership};
use crate::http::admission::Place;
use crate::http::answer::Problem;
use crate::http::answer::stream::{self, Format};
use crate::http::request::{ClientRequest, Context, FAREWELL, HolderHere, HoldingStream};
use crate::http::url::Query;
use crate::store::{ROLE_TTL, Tenure};
use crate::types::Text;

/// The parameters of the query: they are the body of `acquire`, for a tool that sends no body.
const PARAMETERS: [&str; 6] = ["instance_id", "ttl_ms", "wait_ms", "priority", "address", "format"];

/// The clock for leases.
const CLOCK: Clock = Clock::Boottime;

/// Timers stop while the machine is suspended. With this interval a stream notices a suspension soon after; a shorter one would be
/// expensive with thousands of streams.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A role held here for a client.
struct Holding {
    calls: Arc<Calls>,
    tenure: Tenure,
    ttl: Duration,
    term: Term,
    renew_at: Moment,
    /// The first message; taken when it is sent.
    first: Option<Bytes>,
    format: Format,
    silence: Duration,
    end: Option<End>,
    /// Closed when the node stops.
    life: watch::Receiver<Leadership>,
    /// A stopping node waits for a moment while this exists.
    farewell: watch::Receiver<()>,
    _place: Place,
    _here: HolderHere,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Renewed {
    Proved,
    /// The renewal must be tried again.
    Unclear,
    /// The lease is no longer certain.
    Lost,
}

/// The progress of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client learns that the lease is lost; there is nothing to give back.
    Lost,
    /// The client learns that the node stops; the role is given back after that.
    Stopping,
    /// A task gives the role back.
    GivenBack,
}

pub async fn hold(
    context: Arc<Context>,
    asked: &ClientRequest,
    role: Text,
) -> Result<Response<Body>, Problem> {
    let query = asked.query(&PARAMETERS)?;
    let format = query.format.as_deref().map_or(Ok(Format::Sse), Format::parse)?;
    let (claim, secret) = (claim(&query)?, asked.secret()?);
    let place = context.holds.take(asked.sharers())?;
    if let Some(life) = asked.head.asker.timeouts() {
        life.end_unheard(UNHEARD_MOST);
    }
    let instance = query.more("instance_id").unwrap_or_default();
    // Before the call is made: the lease counts from the moment when the request was sent, not from the
    // answer (P39).
    let sent = CLOCK.now();
    let waited = claim.contains_key("wait_ms");
    let ttl_ms = claim.get("ttl_ms").and_then(Value::as_u64).unwrap_or(ROLE_TTL.0 / 1000);
    let calls = Arc::new(Calls { context, head: head(asked), mode: asked.mode, role });
    let granted = match calls.acquire(Value::Object(claim)).await {
        Ok(granted) => granted,
        Err(refused) => return Ok(refused.response),
    };
    let (token, ttl) = (granted.token, Duration::from_millis(ttl_ms));
    let members = json!({"role": calls.role, "instance_id": instance, "token": token, "ttl_ms": ttl_ms});
    // After a wait the grant is younger than the request, and how much younger is not known. This first term
    // only bounds the time for `prove`; the client hears nothing before a renewal has given the true one.
    let term = Term::new(token, if waited { CLOCK.now() } else { sent }, ttl, granted.expires_in());
    let mut holding = Holding {
        tenure: Tenure { instance: instance.into(), token, ttl: None, tie: None, secret },
        ttl,
        renew_at: term.renew_at,
        term,
        first: Some(format.event("held", None, members)),
        format,
        silence: stream::silence(&calls.context.limits),
        end: None,
        life: calls.context.handle.leadership(),
        farewell: calls.context.farewells.subscribe(),
        _here: calls.context.holders.enter(calls.role.clone(), HoldingStream { token, tie: None }),
        calls,
        _place: place,
    };
    // Dropping `holding` gives the role back, since it is not proved and may still be held.
    if waited && !holding.prove().await {
        return Err(Denied::Unknown.into());
    }
    Ok(stream::response(format, unfold(holding, next)))
}

/// Builds the body of `acquire` from the query.
fn claim(query: &Query) -> Result<Map<String, Value>, Problem> {
    let mut claim = Map::new();
    for name in ["instance_id", "address"] {
        claim.extend(query.more(name).map(|text| (name.to_string(), Value::from(text))));
    }
    for name in ["ttl_ms", "wait_ms", "priority"] {
        if let Some(text) = query.more(name) {
            let number: i64 = text.parse().map_err(|_| Problem::field(name, "must be an integer"))?;
            claim.insert(name.to_string(), number.into());
        }
    }
    Ok(claim)
}

async fn next(mut holding: Holding) -> Option<(Result<Bytes, Infallible>, Holding)> {
    if let Some(first) = holding.first.take() {
        return Some((Ok(first), holding));
    }
    match holding.end {
        None => {
            let piece = holding.go_on().await;
            Some((Ok(piece), holding))
        }
        Some(End::Stopping) => {
            // The client may close now, and the stream is dropped while it waits here: the task continues.
            let _ = holding.give_back().await;
            None
        }
        Some(End::Lost | End::GivenBack) => None,
    }
}

impl Holding {
    /// Returns the next message.
    /// Renewals and signs of life share the time: the client hears something at least every `silence`, unless
    /// a renewal takes longer to be answered.
    async fn go_on(&mut self) -> Bytes {
        let speak_at = CLOCK.now().plus(self.silence);
        while self.renew_at <= speak_at {
            if !self.rest(self.renew_at).await {
                return self.stop();
            }
            if self.renew().await == Renewed::Lost {
                self.end = Some(End::Lost);
                let members = json!({"role": self.calls.role, "token": self.term.token});
                return self.format.event("lost", None, members);
            }
        }
        if self.rest(speak_at).await { self.format.sign_of_life() } else { self.stop() }
    }

    /// Waits. Returns false if the node stops meanwhile. A watch without a sender shows that the node stops. The wait is cut into
    /// short steps, because the runtime's timers stand still while the machine is suspended, and the lease does not.
    async fn rest(&mut self, until: Moment) -> bool {
        let node_ends = async { while self.life.changed().await.is_ok() {} };
        let mut node_ends = std::pin::pin!(node_ends);
        loop {
            let left = until.since(CLOCK.now());
            if timeout(left.min(LOOK_EVERY), &mut node_ends).await.is_ok() {
                return false;
            }
            if left <= LOOK_EVERY {
                return true;
            }
        }
    }

    fn stop(&mut self) -> Bytes {
        self.end = Some(End::Stopping);
        self.format.end("stopping", "this node is stopping and releases the role; hold it at another one")
    }

    /// Gives the role back in a separate task, which continues even if the stream is dropped. The stream may be dropped at any
    /// point, and a dropped future cannot wait for an answer. So a task makes the call. A stopping node waits for the receiver
    /// `farewell`, which the task drops at its end.
    fn give_back(&mut self) -> JoinHandle<()> {
        // A stopping node gives up after this time, and the role lapses.
        let most = if self.end == Some(End::Stopping) { FAREWELL } else { Duration::MAX };
        self.end = Some(End::GivenBack);
        let (release, farewell) = (self.release(), self.farewell.clone());
        tokio::spawn(async move {
            let _ = timeout(most, release).await;
            drop(farewell);
        })
    }

    /// It tries until the lease is over by this node's own clock. Afterwards the role lapses by itself, and a
    /// late release would name a token that has ended.
    fn release(&self) -> impl Future<Output = ()> + Send + use<> {
        let (calls, tenure, term) = (self.calls.clone(), self.tenure.clone(), self.term);
        async move {
            while !term.is_over(CLOCK.now()) {
                match calls.release(&tenure).await {
                    Err(refused) if may_pass(refused.status) => sleep(AGAIN).await,
                    Ok(()) | Err(_) => break,
                }
            }
        }
    }

    /// A role that was waited for was granted at an unknown moment of the wait. Before the client learns of it, a renewal must have shown
    /// how much of the lease is left (P39).
    async fn prove(&mut self) -> bool {
        loop {
            match self.renew().await {
                Renewed::Proved => return true,
                Renewed::Unclear if self.rest(self.renew_at).await => {}
                Renewed::Unclear | Renewed::Lost => return false,
            }
        }
    }

    async fn renew(&mut self) -> Renewed {
        let sent = CLOCK.now();
        // A renewal that is not answered before the term is over proves nothing any more.
        match CLOCK.before(self.term.until, self.calls.renew(&self.tenure)).await {
            Some(Ok(granted)) => {
                self.term = Term::new(self.term.token, sent, self.ttl, granted.expires_in());
                self.renew_at = self.term.renew_at;
                Renewed::Proved
            }
            Some(Err(refused)) if refused.status == StatusCode::GONE => Renewed::Lost,
            Some(Err(_)) => {
                self.renew_at = CLOCK.now().plus(AGAIN);
                if self.term.is_over(self.renew_at) { Renewed::Lost } else { Renewed::Unclear }
            }
            None => Renewed::Lost,
        }
    }
}

/// The client has disconnected, perhaps as soon as it was told that the node stops.
impl Drop for Holding {
    fn drop(&mut self) {
        if matches!(self.end, None | Some(End::Stopping)) {
            self.give_back();
        }
    }
}

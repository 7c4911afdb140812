//! Reports a client's call to the audit log, the counters, the log, and the collector of spans.
//!
//! A caller may disconnect at any time. Its call is then dropped at the point where it waits, although its command may already be
//! in the log. So a call reports its end when it is answered or when it is dropped.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::header::HeaderValue;
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode, Uri};

use crate::http::admission::Counted;
use crate::http::answer::{INDEX, Problem};
use crate::http::request::{AuditEntry, Context, Stage};
use crate::http::spans::{Span, TRACEPARENT, TraceContext};

/// The status in counters, the log and spans of a call whose connection ended before the response. nginx uses the same one.
const CALLER_GONE: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => panic!("499 is a status"),
};

/// It is made before the call is judged, and consumed by `answered`. If it is dropped instead, the caller has
/// disconnected: no path forgets to report the end.
pub struct Call {
    context: Arc<Context>,
    pub id: HeaderValue,
    method: Method,
    uri: Uri,
    counted: Counted,
    /// Set if the node keeps an audit log.
    pub entry: Option<Arc<AuditEntry>>,
    /// Set if there is a collector, unless the caller wants no trace.
    traced: Option<(TraceContext, SystemTime)>,
    is_answered: bool,
}

impl Call {
    pub fn begin(request: &mut Parts, context: &Arc<Context>, id: &HeaderValue) -> Call {
        Call {
            context: context.clone(),
            id: id.clone(),
            method: request.method.clone(),
            uri: request.uri.clone(),
            counted: Counted::begin(request.uri.path()),
            entry: context.audit.entry(context.me(), id, request),
            traced: traced(request, context),
            is_answered: false,
        }
    }

    pub fn refused(&self, status: StatusCode, problem: &Problem) {
        let at = self.context.handle.wall();
        self.context.refusals.add(self.id(), at, &self.method, self.uri.path(), status, problem);
    }

    /// The response has begun; streams go on after this, and their later bytes are not reported.
    pub fn answered(mut self, response: &Response<Body>, code: Option<&'static str>) {
        self.is_answered = true;
        self.context.traffic.answered(&self.counted, response.status().as_u16());
        let (status, index) = (response.status(), response.headers().get(INDEX));
        self.tell(status, Stage::Answered { status, code, index });
    }

    fn tell(&self, status: StatusCode, stage: Stage) {
        let Call { context, method, counted, .. } = self;
        let path = self.uri.path();
        if let Some(entry) = &self.entry {
            context.audit.tell(context.handle.wall(), entry, stage);
        }
        let took_us = counted.took().as_micros() as u64;
        tracing::debug!(%method, path, status = status.as_u16(), took_us, request_id = self.id(), "call");
        if let Some((of, began)) = self.traced {
            context.spans.add(Span {
                context: of,
                method: method.to_string(),
                route: counted.route(),
                path: path.to_string(),
                status: status.as_u16(),
                request_id: self.id().to_string(),
                began,
                took: counted.took(),
            });
        }
    }

    fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_answered {
            // The duration says nothing about how fast this node answers.
            self.context.traffic.count(&self.counted, CALLER_GONE.as_u16());
            self.tell(CALLER_GONE, Stage::CallerGone);
        }
    }
}

/// Adds the span's header to this call, and so to its calls to other nodes.
/// A caller that sends `traceparent` without the sampled flag wants no trace. Its context still travels on,
/// so that the nodes behind this one do not begin a trace by themselves.
fn traced(request: &mut Parts, context: &Context) -> Option<(TraceContext, SystemTime)> {
    if !context.spans.are_wanted() {
        return None;
    }
    let traced = TraceContext::begin(&request.headers);
    request.headers.insert(TRACEPARENT, traced.header());
    traced.sampled.then(|| (traced, SystemTime::now()))
}

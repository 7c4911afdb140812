//! What is told of a client's call: in the audit log, the counters, the log, and the collector of spans.
//!
//! A caller may hang up at any time, and its call is then dropped wherever it waits. What it has asked for may have happened by then.
//! So the end of a call is told of by whatever ends it, an answer or the drop.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::HeaderValue;
use axum::http::{Method, Response, StatusCode, Uri};

use crate::http::answer::{INDEX, Problem};
use crate::http::request::{Context, Counted, Entry, Stage};
use crate::http::spans::{Span, TRACEPARENT, TraceContext};

/// What counters, the log and spans have for the status of a call whose caller has hung up, as nginx has it.
const CALLER_GONE: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => panic!("499 is a status"),
};

pub struct Call {
    context: Arc<Context>,
    id: HeaderValue,
    method: Method,
    uri: Uri,
    counted: Counted,
    /// Where an audit log is kept.
    entry: Option<Arc<Entry>>,
    /// Where a collector wants a span and the caller does not say no.
    traced: Option<(TraceContext, SystemTime)>,
    is_answered: bool,
}

impl Call {
    /// The guard of the route finds the call's entry of the audit log in the request.
    pub fn begin(request: &mut Request, context: &Arc<Context>, id: &HeaderValue) -> Call {
        let entry = context.audit.entry(context.me(), id, request);
        if let Some(entry) = &entry {
            request.extensions_mut().insert(entry.clone());
        }
        Call {
            context: context.clone(),
            id: id.clone(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            counted: Counted::begin(request.uri().path()),
            entry,
            traced: traced(request, context),
            is_answered: false,
        }
    }

    pub fn refused(&self, status: StatusCode, problem: &Problem) {
        let at = self.context.handle.wall();
        self.context.refusals.add(self.id(), at, &self.method, self.uri.path(), status, problem);
    }

    pub fn answered(mut self, response: &Response<Body>, code: Option<&'static str>) {
        self.is_answered = true;
        let (status, index) = (response.status(), response.headers().get(INDEX));
        self.tell(status, Stage::Answered { status, code, index });
    }

    fn tell(&self, status: StatusCode, stage: Stage) {
        let Call { context, method, counted, .. } = self;
        let path = self.uri.path();
        if let Some(entry) = &self.entry {
            context.audit.tell(context.handle.wall(), entry, stage);
        }
        context.traffic.answered(counted, status.as_u16());
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
            self.tell(CALLER_GONE, Stage::CallerGone);
        }
    }
}

/// What is called for this call, is called under this span.
fn traced(request: &mut Request, context: &Context) -> Option<(TraceContext, SystemTime)> {
    if !context.spans.are_wanted() {
        return None;
    }
    let traced = TraceContext::begin(request.headers());
    request.headers_mut().insert(TRACEPARENT, traced.header());
    traced.sampled.then(|| (traced, SystemTime::now()))
}

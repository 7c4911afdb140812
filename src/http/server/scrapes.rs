//! A listener that only serves `/metrics`, for a network that must not reach any other route.
//!
//! It serves one call for each connection, and few connections, of which one address has three quarters: scrapers have intervals of
//! seconds.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::refusal::{Refusals, full};
use crate::http::admission::{Origin, Places, Sharers, Shares};
use crate::http::request::Context;
use crate::http::routes::metrics::text;
use crate::metrics::CONTENT_TYPE as PAGE;

/// Room for some scrapers, each with a call or two. Further connections get a refusal, and are closed: in a queue, one address would keep
/// all others waiting.
const CONNECTIONS_MOST: usize = 16;

/// Without free file descriptors every accept fails at once; some descriptors become free during the pause.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The time limit of a call and its response, since an idle client would otherwise block others.
const CALL_MOST: Duration = Duration::from_secs(10);

/// Serves until the task is dropped.
pub async fn serve_metrics(listener: TcpListener, context: Arc<Context>) {
    let places = Places::new("connections for metrics", CONNECTIONS_MOST, Shares::default());
    let refusals = Refusals::new();
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (context, sharers) = (context.clone(), Sharers::at(Origin::of(from.ip())));
                let Ok(place) = places.take(sharers) else {
                    refusals.tell(stream, sharers, full(None));
                    continue;
                };
                tokio::spawn(async move {
                    let _ = timeout(CALL_MOST, answer_one(stream, context)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Without keep-alive a scraper gives its place back after each call, and a few places are enough.
async fn answer_one(stream: TcpStream, context: Arc<Context>) {
    let service = service_fn(|request| {
        let context = context.clone();
        async move { Ok::<_, Infallible>(answer(&request, &context).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CALL_MOST)
        .max_buf_size(context.limits.head_bytes.max(8 << 10))
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection for metrics ended early");
    }
}

async fn answer(request: &Request<Incoming>, context: &Context) -> Response<Body> {
    let (status, why) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match text(context).await {
            Some(page) => return of_type(PAGE, page),
            None => (StatusCode::SERVICE_UNAVAILABLE, "this node is stopping\n"),
        },
        (_, "/metrics") => (StatusCode::METHOD_NOT_ALLOWED, "use GET\n"),
        _ => (StatusCode::NOT_FOUND, "only /metrics is served here\n"),
    };
    let mut response = of_type("text/plain; charset=utf-8", why.to_string());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

fn of_type(media_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

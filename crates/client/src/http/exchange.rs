//! One request, and its whole answer.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, Url};
use tokio::time::{sleep, timeout};

use crate::call_error::CallError;
use crate::clock::Clock;
use crate::http::answer::{Answer, Whole};
use crate::http::pool::explain;
use crate::problem::Tried;

/// The bound of an answer. The largest page is a quarter of this, but a server that is not a node may send anything.
const BODY_BYTES_MAX: usize = 16 << 20;

const LATE: &str = "no answer in time";

/// Builds a request. A body is sent as JSON unless the headers name another type.
pub fn prepared(
    http: &Client,
    credential: Option<&str>,
    method: &Method,
    address: Url,
    headers: &[(&'static str, String)],
    body: &Option<Vec<u8>>,
) -> RequestBuilder {
    let mut request = http.request(method.clone(), address);
    if let Some(credential) = credential {
        request = request.bearer_auth(credential);
    }
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let is_named = headers.iter().any(|(name, _)| *name == "content-type");
    match body {
        Some(body) if is_named => request.body(body.clone()),
        Some(body) => request.header("content-type", "application/json").body(body.clone()),
        None => request,
    }
}

/// Why there is no whole answer.
#[derive(Debug)]
pub enum Broken {
    NotSent {
        why: String,
    },
    NoAnswer {
        why: String,
    },
    /// The answer is larger than any answer of a node.
    TooLarge {
        why: String,
    },
}

impl Broken {
    /// The meaning of a failure of the HTTP client: the request was not sent, or no whole answer came.
    pub fn of(error: &reqwest::Error) -> Broken {
        let why = if error.is_timeout() { LATE.to_string() } else { root_of(error) };
        if error.is_connect() || error.is_builder() {
            Broken::NotSent { why }
        } else {
            Broken::NoAnswer { why }
        }
    }

    /// The error of a single call at this node.
    pub fn at(self, url: &str, method: &Method) -> CallError {
        let url = url.to_string();
        match self {
            Broken::NotSent { why } => CallError::NotReached { tried: vec![Tried { url, why }] },
            Broken::NoAnswer { why } => CallError::NoAnswer { url, why, is_open: !method.is_safe() },
            Broken::TooLarge { why } => CallError::Strange { url, why },
        }
    }
}

/// Sends the request, and reads the whole answer.
pub async fn exchange(
    request: RequestBuilder,
    clock: &Clock,
    url: &str,
    limit: Duration,
) -> Result<Answer, Broken> {
    let sent = clock.now();
    let read = async { whole(request.send().await.map_err(|error| Broken::of(&error))?).await };
    match timeout(limit, read).await {
        Ok(read) => Ok(Answer::of(url, read?, sent)),
        Err(_) => Err(Broken::NoAnswer { why: LATE.to_string() }),
    }
}

/// Reads an answer to its end. Fails if the answer breaks off or is larger than `BODY_BYTES_MAX`.
pub async fn whole(mut response: Response) -> Result<Whole, Broken> {
    let (status, headers, mut body) = (response.status(), response.headers().clone(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| Broken::of(&error))? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(Broken::TooLarge { why: format!("more than {BODY_BYTES_MAX} bytes") });
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, headers, body))
}

/// The innermost cause of an error: this is what a person can act on.
pub fn root_of(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(why) = explain(error) {
        return why;
    }
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

// The functions below find out whether a node that owes an answer is still alive. A node whose machine is frozen
// takes calls and answers none. Without the probe a call would wait for it as long as an attempt may take, while the
// cluster already has another leader.

/// The pause before each probe: longer than a write usually takes, and about as long as the other nodes take to elect
/// a leader.
const PATIENCE: Duration = Duration::from_millis(500);

/// The limit of a probe. A live node answers it at once, however busy it is: connections and threads are reserved for
/// it.
const PROBE_MAX: Duration = Duration::from_millis(500);

/// Returns once the node does not answer a probe.
pub async fn falls_silent(http: &Client, url: &Url) {
    let Ok(probe) = url.join("/livez") else { return std::future::pending().await };
    loop {
        sleep(PATIENCE).await;
        if !matches!(timeout(PROBE_MAX, http.get(probe.clone()).send()).await, Ok(Ok(_))) {
            return;
        }
    }
}

//! One request on its way, and the whole of its answer.

use std::time::Duration;

use crate::call_error::CallError;
use crate::clock::Clock;
use crate::http::answer::{Answer, Whole};
use crate::http::pool::explain;
use crate::problem::Tried;
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use tokio::time::{sleep, timeout};

/// The largest page is a quarter of this; what is no node may send anything.
const BODY_BYTES_MAX: usize = 16 << 20;

const LATE: &str = "no answer in time";

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
    /// More than any node says.
    TooLarge {
        why: String,
    },
}

impl Broken {
    pub fn of(error: &reqwest::Error) -> Broken {
        let why = if error.is_timeout() { LATE.to_string() } else { root_of(error) };
        if error.is_connect() || error.is_builder() {
            Broken::NotSent { why }
        } else {
            Broken::NoAnswer { why }
        }
    }

    /// What a single call at this node ends with.
    pub fn at(self, url: &str) -> CallError {
        let url = url.to_string();
        match self {
            Broken::NotSent { why } => CallError::NotReached { tried: vec![Tried { url, why }] },
            Broken::NoAnswer { why } => CallError::NoAnswer { url, why },
            Broken::TooLarge { why } => CallError::Strange { url, why },
        }
    }
}

/// Sends it, and reads the answer.
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

/// The innermost cause: what a person can act on.
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

// Whether a node that owes an answer still lives: one whose machine stands still takes calls and answers none, and would be waited for as
// long as an attempt may take, while the cluster has long had another leader.

/// Longer than a write takes on a good day, and about as long as the others take to elect another leader.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether it lives it says at once, however much it has to do: places and threads are kept for that.
const PROBE_MAX: Duration = Duration::from_millis(500);

/// Ends once it does not even say that it lives.
pub async fn falls_silent(http: &Client, url: &Url) {
    let Ok(probe) = url.join("/livez") else { return std::future::pending().await };
    loop {
        sleep(PATIENCE).await;
        if !matches!(timeout(PROBE_MAX, http.get(probe.clone()).send()).await, Ok(Ok(_))) {
            return;
        }
    }
}

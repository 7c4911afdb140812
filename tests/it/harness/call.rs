//! One HTTP call and its outcome.

use std::time::Duration;

use eldest_tls::ClientFiles;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// Longer than a node waits before it answers (`limits.request_timeout_ms`).
const TIMEOUT: Duration = Duration::from_secs(15);

/// The port of a dead process refuses at once; only a node that is cut off takes longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Shorter than the time for which a node keeps an idle connection, so that no call races with its end.
const POOL_IDLE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    path: String,
    body: Vec<u8>,
    headers: Vec<(String, String)>,
    timeout: Duration,
}

/// The reasons why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// There was no connection: the call was never sent.
    NotSent,
    /// The call was sent, or part of it.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Call {
    fn new(method: Method, path: impl Into<String>) -> Call {
        Call { method, path: path.into(), body: Vec::new(), headers: Vec::new(), timeout: TIMEOUT }
    }

    pub fn get(path: impl Into<String>) -> Call {
        Call::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>) -> Call {
        Call::new(Method::POST, path)
    }

    pub fn put(path: impl Into<String>) -> Call {
        Call::new(Method::PUT, path)
    }

    pub fn delete(path: impl Into<String>) -> Call {
        Call::new(Method::DELETE, path)
    }

    /// A command of the typed log.
    pub fn command(storage_cmd: &str, payload: Value) -> Call {
        let body = serde_json::json!({"storage_cmd": storage_cmd, "payload": payload});
        Call::post("/v1/commands").json(&body)
    }

    pub fn json(self, body: &Value) -> Call {
        self.raw_json(&body.to_string())
    }

    /// A body that claims to be JSON.
    pub fn raw_json(self, body: &str) -> Call {
        self.header("content-type", "application/json").body(body)
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Call {
        self.body = body.as_ref().to_vec();
        self
    }

    pub fn header(mut self, name: &str, value: impl ToString) -> Call {
        self.headers.push((name.to_string(), value.to_string()));
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Call {
        self.timeout = timeout;
        self
    }

    pub async fn send(&self, client: &reqwest::Client, base: &str) -> Result<Answer, Silence> {
        let mut request =
            client.request(self.method.clone(), format!("{base}{}", self.path)).timeout(self.timeout);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = request.body(self.body.clone()).send().await.map_err(silence)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.map_err(|_| Silence::Unknown)?.to_vec();
        Ok(Answer { status, headers, body })
    }
}

fn silence(error: reqwest::Error) -> Silence {
    if error.is_connect() { Silence::NotSent } else { Silence::Unknown }
}

/// A client with no proxy, no redirects and nothing else between a test and its nodes.
pub fn client() -> reqwest::Client {
    client_with(&ClientFiles::default())
}

/// The same for nodes that speak TLS.
pub fn client_with(files: &ClientFiles) -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .tls_backend_preconfigured(files.config().expect("files in order"))
        .build()
        .expect("a client needs nothing from the machine")
}

/// Percent-encodes text for a path or a query.
pub fn query(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.show()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The same answer, if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status, status, "{}", self.show());
        self
    }

    pub fn show(&self) -> String {
        format!("{} {:?}\n{}", self.status, self.headers, self.text())
    }
}

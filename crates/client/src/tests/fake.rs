//! A small HTTP server that answers, breaks connections or stays silent, as the test says.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub head: String,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

#[derive(Clone, Debug)]
pub enum Reply {
    Json(u16, Value),
    /// An answer with an `ETag`.
    Tagged(u16, Value, &'static str),
    /// These bytes, unchanged.
    Raw(String),
    /// The connection is closed without an answer.
    Cut,
    /// No answer ever comes.
    Silence,
    /// These lines, and then the end of the stream.
    Lines(Vec<Value>),
}

pub type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Reply> + Send + Sync>;

#[derive(Debug)]
pub struct Fake {
    pub url: String,
    pub seen: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl Fake {
    /// Answers with these replies in turn, and then with the last one again and again.
    pub async fn script(replies: Vec<Reply>) -> Fake {
        let replies = Mutex::new(replies);
        Fake::start(Arc::new(move |_| {
            let mut replies = replies.lock().expect("no panic");
            let reply = if replies.len() > 1 { replies.remove(0) } else { replies[0].clone() };
            Box::pin(async move { reply })
        }))
        .await
    }

    pub async fn start(handler: Handler) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, handler.clone(), log.clone()));
            }
        });
        Fake { url, seen, task }
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("no panic").clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, handler: Handler, log: Arc<Mutex<Vec<Request>>>) {
    let Some(request) = request(&mut stream).await else {
        return;
    };
    log.lock().expect("no panic").push(request.clone());
    let text = match handler(request).await {
        Reply::Cut => return,
        Reply::Silence => std::future::pending().await,
        Reply::Raw(text) => text,
        Reply::Json(status, body) => with_body(status, "", &body.to_string()),
        Reply::Tagged(status, body, tag) => {
            with_body(status, &format!("etag: \"{tag}\"\r\n"), &body.to_string())
        }
        Reply::Lines(lines) => {
            let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
        }
    };
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn with_body(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

/// Returns `None` if the request does not arrive as a whole.
async fn request(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let path = text.split_whitespace().nth(1)?.to_string();
    let mut request = Request { path, head: text.clone(), body: Value::Null };
    let length: usize = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while bytes.len() < head + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    request.body = serde_json::from_slice(&bytes[head + 4..]).unwrap_or_default();
    Some(request)
}

/// A refusal, as a node sends it.
pub fn problem(status: u16, code: &str, mut members: Value) -> Reply {
    members["status"] = json!(status);
    members["code"] = json!(code);
    members["retryable"] = json!(matches!(status, 421 | 429 | 503 | 504));
    Reply::Json(status, members)
}

/// A URL where no server listens.
pub async fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

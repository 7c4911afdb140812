//! A server for tests. It sends the given answers, and keeps the requests.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// One request, as text.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and path.
    pub line: String,
    pub head: String,
    pub body: String,
    /// The number of the request, counted over all connections.
    pub number: usize,
    /// The number of the request on its connection, counted from zero.
    pub on_connection: usize,
}

#[derive(Clone, Debug)]
pub enum Reply {
    Json(u16, String),
    /// These bytes, unchanged.
    Raw(Vec<u8>),
    /// Answers, announces the end of the connection, and closes it.
    Close(u16),
    /// Closes the connection without an answer.
    Drop,
    /// Answers properly, and then closes the connection without announcing it.
    DropAfter(u16),
    Never,
}

type Handler = dyn Fn(&Asked) -> Reply + Send + Sync;

#[derive(Debug)]
pub struct Server {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(handler: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (handler, record): (Arc<Handler>, _) = (Arc::new(handler), asked.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, handler.clone(), record.clone()));
            }
        });
        Server { url, asked, task }
    }

    /// A URL where no server listens as long as the socket lives: the socket occupies the port.
    pub fn nobody() -> (String, TcpSocket) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        (format!("http://{}", socket.local_addr().unwrap()), socket)
    }

    pub fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap()
    }

    /// The number of requests whose line begins with this text.
    pub fn count(&self, line: &str) -> usize {
        self.asked().iter().filter(|asked| asked.line.starts_with(line)).count()
    }

    /// Waits for this number of such requests.
    pub async fn until(&self, line: &str, count: usize) {
        wait_until(|| self.count(line) >= count).await;
    }
}

/// Waits until the condition holds. The bound is long enough for a busy machine; only a hang reaches it.
pub async fn wait_until(so: impl Fn() -> bool) {
    let looking = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.expect("it comes about");
}

/// The status of a leader at this URL.
pub fn status(url: &str) -> Reply {
    let body = format!(
        r#"{{"cluster":"c","epoch":"3.1","commit_index":7,"leader":{{"id":1,"url":"{url}"}},"members":[{{}},{{}},{{}}]}}"#
    );
    Reply::Json(200, body)
}

/// The status of a leader at the URL that was asked.
pub fn own_status(asked: &Asked) -> Reply {
    let host = asked.head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap();
    status(&format!("http://{host}"))
}

pub fn problem(status: u16, code: &str) -> Reply {
    Reply::Json(status, format!(r#"{{"title":"t","status":{status},"code":"{code}","retryable":true}}"#))
}

async fn serve(mut stream: TcpStream, handler: Arc<Handler>, record: Arc<Mutex<Vec<Asked>>>) {
    let mut received = Vec::new();
    for on_connection in 0.. {
        let Some((head, body)) = receive(&mut stream, &mut received).await else { return };
        let line = head.split(" HTTP/").next().unwrap().to_string();
        let asked = {
            let mut record = record.lock().unwrap();
            let asked = Asked { line, head, body, number: record.len(), on_connection };
            record.push(asked.clone());
            asked
        };
        if !reply(&mut stream, handler(&asked)).await {
            return;
        }
    }
}

/// Sends a reply. Returns whether the connection goes on.
async fn reply(stream: &mut TcpStream, reply: Reply) -> bool {
    let (bytes, goes_on) = match reply {
        Reply::Json(status, body) => (answer(status, "", &body), true),
        Reply::Raw(bytes) => (bytes, true),
        Reply::Close(status) => (answer(status, "Connection: close\r\n", "{}"), false),
        Reply::Drop => (Vec::new(), false),
        Reply::DropAfter(status) => (answer(status, "", "{}"), false),
        Reply::Never => std::future::pending().await,
    };
    stream.write_all(&bytes).await.is_ok() && goes_on
}

fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Text\r\nEldest-Epoch: 3.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .into()
}

async fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(received).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            if rest.len() >= length {
                received.drain(..head.len() + 4 + length);
                return Some((head.to_string(), rest[..length].to_string()));
            }
        }
        if stream.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}

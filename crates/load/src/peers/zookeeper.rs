//! ZooKeeper: its binary protocol with one request at a time, and the lock recipe.
//!
//! Each connection is a separate session: a client that reconnects loses the locks of the old session, after
//! the timeout of that session.

use std::net::SocketAddr;

use super::super::http::Failure;
use super::super::session::{Fate, Trouble};
use super::jute::{self, Fields};
use super::op::Op;
use super::stream::PeerStream;

/// The server accepts at most 20 of its ticks of two seconds.
const SESSION_MS: i32 = 30_000;

const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

/// The number of an event, which no request asked for.
const EVENT: i32 = -1;

const ROOT: &str = "/bench";

#[derive(Debug, Default)]
pub struct ZooKeeper {
    stream: Option<PeerStream>,
    out: Vec<u8>,
    /// The number of the last request.
    xid: i32,
    /// The client's own node of the lock that it holds or waits for.
    ticket: String,
    /// The last answer, without its head.
    answer: Vec<u8>,
}

/// A server's error code (zero means none), or the trouble.
type Done = Result<i32, Trouble>;

impl ZooKeeper {
    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    pub async fn perform(&mut self, address: SocketAddr, op: &Op<'_>) -> Result<(), Trouble> {
        if self.stream.is_none() {
            self.connect(address).await.map_err(Trouble::of_failure)?;
        }
        match op {
            Op::Write { key, value } => self.write(&format!("{ROOT}/{key}"), value).await,
            Op::ReadLinear { key } => {
                let path = format!("{ROOT}/{key}");
                let sync = self.push(|out| jute::sync(out, &path));
                let read = self.push(|out| jute::get_data(out, &path, false));
                self.flush().await?;
                self.answer_to(sync).await.and_then(fine)?;
                self.answer_to(read).await.and_then(found)
            }
            Op::ReadLocal { key } => {
                let path = format!("{ROOT}/{key}");
                self.call(|out| jute::get_data(out, &path, false)).await.and_then(found)
            }
            Op::Acquire { lock } => self.acquire(lock).await,
            Op::Release { .. } => {
                let ticket = std::mem::take(&mut self.ticket);
                self.call(|out| jute::delete(out, &ticket)).await.and_then(fine)
            }
        }
    }

    /// Sets the value of an existing key, which is the usual case. Otherwise it creates the key, and its folder.
    async fn write(&mut self, path: &str, value: &[u8]) -> Result<(), Trouble> {
        for _ in 0..3 {
            match self.call(|out| jute::set_data(out, path, value)).await? {
                NO_NODE => {}
                done => return fine(done),
            }
            match self.call(|out| jute::create(out, path, value, jute::PERSISTENT)).await? {
                NODE_EXISTS => {}
                NO_NODE => self.create_folder(ROOT).await?,
                done => return fine(done),
            }
        }
        Err(trouble(NO_NODE))
    }

    async fn create_folder(&mut self, path: &str) -> Result<(), Trouble> {
        match self.call(|out| jute::create(out, path, b"", jute::PERSISTENT)).await? {
            NODE_EXISTS => Ok(()),
            done => fine(done),
        }
    }

    /// The recipe: each client creates an ephemeral node with a number. The client with the lowest number has the
    /// lock, and each of the others watches the node before its own.
    async fn acquire(&mut self, lock: &str) -> Result<(), Trouble> {
        let folder = format!("/{lock}");
        let ticket = format!("{folder}/n-");
        let create = |out: &mut Vec<u8>| jute::create(out, &ticket, b"", jute::EPHEMERAL_SEQUENTIAL);
        let mut done = self.call(create).await?;
        if done == NO_NODE {
            self.create_folder(&folder).await?;
            done = self.call(create).await?;
        }
        fine(done)?;
        self.ticket = Fields(&self.answer).text().ok_or_else(malformed)?.to_string();
        loop {
            self.call(|out| jute::get_children(out, &folder)).await.and_then(fine)?;
            let own = self.ticket.rsplit('/').next().unwrap_or_default();
            let children = Fields(&self.answer).texts().ok_or_else(malformed)?;
            let before = children.into_iter().filter(|child| *child < own).max();
            let Some(before) = before.map(|before| format!("{folder}/{before}")) else { return Ok(()) };
            if self.call(|out| jute::exists(out, &before, true)).await? != NO_NODE {
                self.event().await?;
            }
        }
    }

    async fn connect(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let mut stream = PeerStream::connect(address).await?;
        self.out.clear();
        jute::connect(&mut self.out, SESSION_MS);
        stream.send(&self.out).await?;
        let length = length(&mut stream).await?;
        stream.take(length).await?;
        self.out.clear();
        self.stream = Some(stream);
        Ok(())
    }

    async fn call(&mut self, request: impl FnOnce(&mut Vec<u8>)) -> Done {
        let xid = self.push(request);
        self.flush().await?;
        self.answer_to(xid).await
    }

    /// Appends a request to the output, and returns its number.
    fn push(&mut self, request: impl FnOnce(&mut Vec<u8>)) -> i32 {
        self.xid = self.xid.wrapping_add(1).max(1);
        let xid = self.xid;
        jute::framed(&mut self.out, |out| {
            jute::int(out, xid);
            request(out);
        });
        xid
    }

    async fn flush(&mut self) -> Result<(), Trouble> {
        let stream = self.stream.as_mut().ok_or_else(lost)?;
        let sent = stream.send(&self.out).await;
        self.out.clear();
        sent.map_err(Trouble::of_failure)
    }

    async fn answer_to(&mut self, xid: i32) -> Done {
        loop {
            let (other, error) = self.receive().await?;
            if other == xid {
                return Ok(error);
            }
        }
    }

    async fn event(&mut self) -> Result<(), Trouble> {
        while self.receive().await?.0 != EVENT {}
        Ok(())
    }

    /// The number and the error of the next answer.
    async fn receive(&mut self) -> Result<(i32, i32), Trouble> {
        let stream = self.stream.as_mut().ok_or_else(lost)?;
        let length = length(stream).await.map_err(Trouble::of_failure)?;
        let frame = stream.take(length).await.map_err(Trouble::of_failure)?;
        let mut fields = Fields(frame);
        let head = (fields.int(), fields.long(), fields.int());
        let (Some(xid), Some(_), Some(error)) = head else { return Err(malformed()) };
        self.answer.clear();
        self.answer.extend_from_slice(fields.0);
        Ok((xid, error))
    }
}

/// The text in which a server describes itself.
pub async fn srvr(address: SocketAddr) -> Result<String, Failure> {
    let mut stream = PeerStream::connect(address).await?;
    stream.send(b"srvr").await?;
    stream.take_all().await.map(|told| String::from_utf8_lossy(told).into_owned())
}

async fn length(stream: &mut PeerStream) -> Result<usize, Failure> {
    let length = Fields(stream.take(4).await?).int().unwrap_or(-1);
    usize::try_from(length).map_err(|_| Failure::Lost(std::io::ErrorKind::InvalidData))
}

fn fine(error: i32) -> Result<(), Trouble> {
    if error == 0 { Ok(()) } else { Err(trouble(error)) }
}

/// A read of a key that was never written counts as answered.
fn found(error: i32) -> Result<(), Trouble> {
    if error == NO_NODE { Ok(()) } else { fine(error) }
}

fn trouble(error: i32) -> Trouble {
    Trouble { fate: Fate::Unknown, code: format!("zookeeper_{}", error.abs()).into(), status: None }
}

fn malformed() -> Trouble {
    Trouble { fate: Fate::Unknown, code: "malformed_answer".into(), status: None }
}

fn lost() -> Trouble {
    Trouble::of_failure(Failure::Lost(std::io::ErrorKind::NotConnected))
}

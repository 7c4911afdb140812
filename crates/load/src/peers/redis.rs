//! Redis: RESP. A write counts only after a replica has received it.

use std::io::Write;
use std::net::SocketAddr;

use super::super::http::Failure;
use super::super::session::{Fate, Trouble};
use super::op::{Op, unsupported};
use super::stream::PeerStream;

/// The ttl of a lock that is never released.
const LOCK_MS: &[u8] = b"30000";

/// Releases a lock, unless another client holds it by now.
const RELEASE: &[u8] =
    b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

#[derive(Debug, Default)]
pub struct Redis {
    stream: Option<PeerStream>,
    out: Vec<u8>,
    /// The name of the client that holds the locks.
    name: String,
}

/// The part of a reply that is of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Text,
    Number(i64),
    Bulk,
    Nil,
    Error(String),
}

impl Redis {
    pub fn new(client: usize) -> Redis {
        Redis { name: format!("client-{client}"), ..Redis::default() }
    }

    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    pub async fn perform(&mut self, address: SocketAddr, op: &Op<'_>) -> Result<(), Trouble> {
        self.out.clear();
        match op {
            Op::Write { key, value } => {
                push(&mut self.out, &[b"SET", format!("bench/{key}").as_bytes(), value]);
                self.call_and_wait(address, &Reply::Text).await
            }
            Op::ReadLocal { key } => {
                push(&mut self.out, &[b"GET", format!("bench/{key}").as_bytes()]);
                self.send(address).await.map_err(Trouble::of_failure)?;
                self.reply().await.map(|_| ())
            }
            Op::ReadLinear { .. } => Err(unsupported()),
            Op::Acquire { lock } => {
                let name = self.name.clone();
                push(&mut self.out, &[b"SET", lock.as_bytes(), name.as_bytes(), b"NX", b"PX", LOCK_MS]);
                self.call_and_wait(address, &Reply::Text).await
            }
            Op::Release { lock } => {
                let name = self.name.clone();
                push(&mut self.out, &[b"EVAL", RELEASE, b"1", lock.as_bytes(), name.as_bytes()]);
                self.call_and_wait(address, &Reply::Number(1)).await
            }
        }
    }

    /// Sends the prepared command, together with the question whether a replica has it.
    async fn call_and_wait(&mut self, address: SocketAddr, expected: &Reply) -> Result<(), Trouble> {
        push(&mut self.out, &[b"WAIT", b"1", b"0"]);
        self.send(address).await.map_err(Trouble::of_failure)?;
        let done = self.reply().await;
        let waited = self.reply().await;
        match (done?, waited?) {
            (done, Reply::Number(1..)) if done == *expected => Ok(()),
            (Reply::Nil, _) => Err(trouble(Fate::Rejected, "held")),
            _ => Err(trouble(Fate::Unknown, "no_replica")),
        }
    }

    async fn send(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(PeerStream::connect(address).await?),
        };
        stream.send(&self.out).await
    }

    async fn reply(&mut self) -> Result<Reply, Trouble> {
        let stream = self.stream.as_mut().ok_or_else(|| trouble(Fate::NotApplied, "not_connected"))?;
        let line = stream.take_line().await.map_err(Trouble::of_failure)?;
        let reply = parse(line).ok_or_else(|| trouble(Fate::Unknown, "malformed_answer"))?;
        if let (Reply::Bulk, length) = reply {
            stream.take(length + 2).await.map_err(Trouble::of_failure)?;
        }
        match reply.0 {
            Reply::Error(code) => Err(Trouble { fate: Fate::NotApplied, code: code.into(), status: None }),
            reply => Ok(reply),
        }
    }
}

fn trouble(fate: Fate, code: &'static str) -> Trouble {
    Trouble { fate, code: code.into(), status: None }
}

/// Appends a command, as an array of texts.
fn push(out: &mut Vec<u8>, words: &[&[u8]]) {
    // Writing into memory never fails.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Parses the first line of a reply. Also returns how many bytes follow it.
fn parse(line: &[u8]) -> Option<(Reply, usize)> {
    let (kind, rest) = line.split_first()?;
    let text = std::str::from_utf8(rest).ok()?;
    Some(match kind {
        b'+' => (Reply::Text, 0),
        b':' => (Reply::Number(text.parse().ok()?), 0),
        b'-' => (Reply::Error(text.split(' ').next()?.to_lowercase()), 0),
        b'$' if text == "-1" => (Reply::Nil, 0),
        b'$' => (Reply::Bulk, text.parse().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_texts() {
        let mut out = Vec::new();
        push(&mut out, &[b"SET", b"bench/7", b"\"v\""]);
        push(&mut out, &[b"WAIT", b"1", b"0"]);
        let expected =
            b"*3\r\n$3\r\nSET\r\n$7\r\nbench/7\r\n$3\r\n\"v\"\r\n*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n";
        assert_eq!(out, expected);
    }

    #[test]
    fn replies_are_told_by_their_first_byte() {
        assert_eq!(parse(b"+OK"), Some((Reply::Text, 0)));
        assert_eq!(parse(b":2"), Some((Reply::Number(2), 0)));
        assert_eq!(parse(b"$256"), Some((Reply::Bulk, 256)));
        assert_eq!(parse(b"$-1"), Some((Reply::Nil, 0)));
        assert_eq!(parse(b"-READONLY You can't"), Some((Reply::Error("readonly".into()), 0)));
        for line in [&b""[..], b"?", b":x", b"$-2", b"$x", b"+\xff"] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }
}

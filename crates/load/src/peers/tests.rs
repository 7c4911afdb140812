//! Each client against a server that sends fixed bytes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::session::{Fate, Trouble};
use super::client::{Client, System, target};
use super::op::Op;

const PATIENCE: Duration = Duration::from_secs(60);

const WRITE: Op<'_> = Op::Write { key: 7, value: b"\"v\"" };

/// Answers each piece that arrives with the next of these answers. Then it closes the connection.
async fn server(answers: &[&[u8]]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answers: Vec<Vec<u8>> = answers.iter().map(|answer| answer.to_vec()).collect();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for answer in answers {
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(&answer).await.unwrap();
        }
        // The rest of the client's bytes is read: otherwise closing would discard what was sent.
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    address
}

async fn perform(system: System, answers: &[&[u8]], op: &Op<'_>) -> Result<(), Trouble> {
    let address = server(answers).await;
    Client::new(system, 0, [target(address)].into(), 0, PATIENCE).perform(op).await
}

fn code(done: Result<(), Trouble>) -> String {
    done.unwrap_err().code.into_owned()
}

#[tokio::test]
async fn redis_wants_a_replica() {
    let write = async |answer: &[u8]| perform(System::Redis, &[answer], &WRITE).await;
    assert_eq!(write(b"+OK\r\n:1\r\n").await, Ok(()));
    assert_eq!(code(write(b"+OK\r\n:0\r\n").await), "no_replica");
    assert_eq!(code(write(b"-READONLY no\r\n:0\r\n").await), "readonly");
    assert_eq!(code(write(b"HTTP/1.1 400 Bad\r\n\r\n").await), "malformed_answer");
    assert_eq!(code(write(b"+OK\r\n").await), "connection_lost");
    let read = Op::ReadLocal { key: 7 };
    assert_eq!(perform(System::Redis, &[b"$3\r\n\"v\"\r\n"], &read).await, Ok(()));
    assert_eq!(perform(System::Redis, &[b"$-1\r\n"], &read).await, Ok(()));
    let held = perform(System::Redis, &[b"$-1\r\n:1\r\n"], &Op::Acquire { lock: "l" }).await;
    assert_eq!(held.unwrap_err().fate, Fate::Rejected);
}

#[tokio::test]
async fn zookeeper_answers_after_its_session() {
    let session = [&[0, 0, 0, 37][..], &[0; 37]].concat();
    let answer = |xid: u8, error: i32| {
        [&[0, 0, 0, 16, 0, 0, 0, xid, 0, 0, 0, 0, 0, 0, 0, 9][..], &error.to_be_bytes()].concat()
    };
    let write = async |answers: &[&[u8]]| perform(System::Zookeeper, answers, &WRITE).await;
    assert_eq!(write(&[&session, &answer(1, 0)]).await, Ok(()));
    assert_eq!(code(write(&[&session, &answer(1, -112)]).await), "zookeeper_112");
    // The key does not exist, and is created.
    assert_eq!(write(&[&session, &answer(1, -101), &answer(2, 0)]).await, Ok(()));
    // An event and another answer come in between.
    let mixed = [answer(0xff, 0), answer(1, 0)].concat();
    assert_eq!(write(&[&session, &mixed]).await, Ok(()));
    assert_eq!(code(write(&[&session, &[0xff; 4]]).await), "connection_lost");
}

#[tokio::test]
async fn etcd_succeeds_with_a_message_alone() {
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    const HEADERS: &[u8] = &[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
    const MESSAGE: &[u8] = &[0, 0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    const TRAILERS: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
    const RESET: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8];
    let write = async |frames: &[&[u8]]| perform(System::Etcd, &[&frames.concat()], &WRITE).await;
    assert_eq!(write(&[SETTINGS, PING, HEADERS, MESSAGE, TRAILERS]).await, Ok(()));
    assert_eq!(code(write(&[SETTINGS, TRAILERS]).await), "grpc_error");
    assert_eq!(code(write(&[SETTINGS, HEADERS, RESET]).await), "connection_lost");
    assert_eq!(code(write(&[SETTINGS, HEADERS, MESSAGE]).await), "connection_lost");
}

#[tokio::test]
async fn http_is_told_by_its_status() {
    let fine = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    let busy = b"HTTP/1.1 503 No\r\nContent-Length: 20\r\n\r\n{\"code\":\"no_leader\"}";
    for system in [System::Eldest, System::EtcdJson] {
        assert_eq!(perform(system, &[fine], &WRITE).await, Ok(()));
        assert_eq!(code(perform(system, &[busy], &WRITE).await), "no_leader");
    }
}

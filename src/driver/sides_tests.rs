//! Two states that have parted, from the loop of one node over a socket to the loop and the disk of the other.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::api::Brought;
use super::clock;
use super::engine::Engine;
use super::handed::{Handed, Receiving};
use super::setup::{Member, Setup};
use super::start::{assemble, load_newest};
use super::{End, Sources};
use crate::protocol::{Fault, Mode, Seq, Settings, SnapshotMeta, Term, Vote, Write};
use crate::storage::{self, Boundary, Options};
use crate::store::{Command, Store};
use crate::types::{Boot, ClaimId, Entry, Epoch, NodeId, Position, Record, Stamp, Vector};
use crate::wire::{Attachment, ClusterHead, attachment};

const EVERY: u64 = 10;

/// A node whose core is asked nothing: what it would say is said by the test.
struct Side {
    me: NodeId,
    dir: PathBuf,
    listener: TcpListener,
    engine: Engine,
    sources: Sources,
    seq: u64,
}

fn temp_dir() -> PathBuf {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("eldest-sides-{}-{number}", std::process::id()))
}

async fn pair() -> (Side, Side) {
    let listeners = [0, 1].map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    let ports = listeners.each_ref().map(|listener| listener.local_addr().expect("it is bound").port());
    let mut sides = listeners.into_iter().zip([1, 2]).map(|(listener, me)| {
        listener.set_nonblocking(true).expect("sockets can do that");
        let listener = TcpListener::from_std(listener).expect("a runtime is here");
        let (me, dir) = (NodeId(me), temp_dir());
        let (mut engine, sources) = assemble(setup(me, ports), &dir).expect("a new directory opens");
        engine.meta.vector = Some(Vector::default());
        Side { me, dir, listener, engine, sources, seq: 0 }
    });
    (sides.next().expect("there are two"), sides.next().expect("there are two"))
}

fn setup(me: NodeId, ports: [u16; 2]) -> Setup {
    let member = |(id, port)| Member {
        id: NodeId(id),
        name: format!("node-{id}"),
        host: "127.0.0.1".to_string(),
        port,
    };
    let members: Vec<Member> = (1..).zip(ports).map(member).collect();
    let mut settings = Settings::lan(me, members.iter().map(|member| member.id).collect());
    settings.mode = Mode::Available;
    let cluster = ClusterHead { name: "test".to_string(), mode: "available".to_string(), settings: 1 };
    Setup { settings, cluster, members, snapshot_every: EVERY, secret: None, wall: Default::default() }
}

fn at(counter: u64, leader: NodeId, index: u64) -> Position {
    Position::new(Epoch::new(counter, leader), index)
}

fn put(position: Position, key: &str) -> Record {
    let payload = RawValue::from_string(format!("{{\"key\":{key:?},\"value\":1}}")).expect("it is JSON");
    let command = Command::parse("PutDoc", &payload).expect("it is a command");
    Record { position, stamp: Stamp::default(), entry: Entry::Client(command.to_payload(None)) }
}

impl Side {
    fn write(&mut self, write: Write) {
        self.seq += 1;
        self.engine.write(Seq(self.seq), write);
    }

    /// Some committed records of an epoch of its own.
    fn live(&mut self, counter: u64, count: u64) {
        let (me, from) = (self.me, self.engine.meta.index());
        let term = Term { epoch: Epoch::new(counter, me), claim: ClaimId(1) };
        self.write(Write::Vote(Vote { promise: term, formed: true, admitted: true }));
        let key = |index| format!("{me}-{index}");
        let records: Vec<Record> =
            (from + 1..=from + count).map(|index| put(at(counter, me, index), &key(index))).collect();
        self.write(Write::Append(records.clone().into()));
        self.engine.apply(&records);
    }

    /// Until all that was written is on disk and what waited for it has left.
    async fn settle(&mut self) {
        self.engine.flush();
        while self.engine.durable.0 < self.seq {
            self.sources.disk.changed().await.expect("the writer lives");
            let state = self.sources.disk.borrow_and_update().clone();
            assert!(state.failed.is_none(), "{state:?}");
            self.engine.durable = state.durable;
        }
        self.engine.release_held();
    }

    /// A snapshot of the newest boundary, if one is due.
    async fn take_snapshot(&mut self) -> u64 {
        let mut now = clock::now().mono;
        now.0 += 1 << 30;
        self.engine.taker.settle(now);
        let taken = self.sources.taken.recv().await.expect("the thread lives");
        self.engine.taker.ended(&taken);
        taken.expect("there is room")
    }

    /// The stream that the other one sends. Its idle connection says nothing, and is left alone.
    async fn receive(&mut self, name: &str) -> Handed {
        let (tell, mut calls) = mpsc::channel(1);
        let (head, body) = loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.expect("it listens");
                    let tell = tell.clone();
                    tokio::spawn(async move { tell.send(call(stream).await).await });
                }
                Some(call) = calls.recv() => match call {
                    Some(call) => break call,
                    None => continue,
                },
            }
        };
        let message = head.lines().find_map(|line| line.strip_prefix("eldest-message: "));
        let message = message.expect("it has an envelope");
        assert!(message.starts_with(name), "{message}");
        assert_eq!(attachment(message), Ok(Attachment::Difference));
        let mut receiving = Receiving::default();
        receiving.take(&body).expect("it is a difference");
        receiving.finish().expect("it is whole")
    }

    fn vector(&self) -> Vector {
        self.engine.meta.vector.clone().expect("sides have vectors")
    }

    fn state(&self) -> &Store {
        self.engine.states.committed()
    }

    /// What another start makes of the directory.
    fn reopen(self) -> (Boundary, SnapshotMeta, Store) {
        let Side { me, dir, engine, sources, .. } = self;
        drop((engine, sources));
        let options = Options::new(&dir, "test", me, Boot(9));
        let opened = storage::open(&options).expect("nobody else has it");
        assert_eq!(opened.findings, []);
        let (boundary, store) = load_newest(&opened.snapshots, Mode::Available).expect("it can be read");
        let base = opened.recovered.base;
        drop((opened.disk, opened.lines, opened.snapshots));
        remove(&dir);
        (boundary, base, store)
    }
}

fn remove(dir: &Path) {
    std::fs::remove_dir_all(dir).expect("it is there");
}

/// Head and body of a call with a chunked body; none if the connection ends before.
async fn call(mut stream: TcpStream) -> Option<(String, Vec<u8>)> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n0\r\n\r\n") {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).await.ok().filter(|count| *count > 0)?;
        text.extend_from_slice(&some[..count]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("it waits");
    let split = text.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends");
    let head = String::from_utf8(text[..split].to_vec()).expect("heads are text");
    Some((head, dechunk(&text[split + 4..])))
}

fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\r').expect("a chunk has a length");
        let digits = std::str::from_utf8(&rest[..end]).expect("digits");
        let length = usize::from_str_radix(digits, 16).expect("digits");
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
}

fn merged_meta(winner: &Side, other: &SnapshotMeta, counter: u64) -> SnapshotMeta {
    let mut meta = winner.engine.meta.clone();
    let mut vector = winner.vector();
    vector.join(other.vector.as_ref().expect("sides have vectors"));
    meta.at = at(counter, winner.me, 1 + vector.highest());
    vector.note(meta.at);
    meta.vector = Some(vector);
    meta
}

#[tokio::test]
async fn two_sides_become_one_state_on_both_disks() {
    let (mut elder, mut younger) = pair().await;
    elder.live(3, 4);
    // Some of it is in a snapshot already, some is not.
    younger.live(4, 12);
    younger.settle().await;
    assert_eq!(younger.take_snapshot().await, 10);
    elder.settle().await;

    younger.live(5, 1);
    let epoch = younger.engine.meta.at.epoch;
    younger.engine.send_merge(NodeId(1), Vector::default(), Seq(younger.seq));
    let (handed, ()) = tokio::join!(elder.receive("merge "), younger.settle());
    assert_eq!((handed.boundary.meta.at, handed.digest), (at(5, NodeId(2), 13), younger.state().digest()));
    assert_eq!(handed.boundary.meta.at.epoch, epoch);

    let (own, meta) = (elder.vector(), merged_meta(&elder, &handed.boundary.meta, 6));
    elder.engine.brought = Some(Brought::Difference(Box::new(handed)));
    elder.engine.merge(&own, &younger.vector(), meta.clone());
    elder.write(Write::Rebase(meta.clone()));
    elder.settle().await;
    assert!(elder.engine.end.is_none(), "{:?}", elder.engine.end);
    assert_eq!((elder.engine.origin, elder.engine.snapshot_index), (14, 14));
    for key in ["n1-1", "n1-4", "n2-1", "n2-13"] {
        assert!(elder.state().doc(key).is_some(), "{key}");
    }
    assert!(matches!(elder.engine.boundary, Some((0, 14, _))));

    // One more record, so that the override is not at the boundary.
    elder.live(6, 1);
    let term = Term { epoch: Epoch::new(6, NodeId(1)), claim: ClaimId(1) };
    elder.engine.send_override(NodeId(2), term, younger.vector(), Seq(elder.seq));
    let (handed, ()) = tokio::join!(younger.receive("override "), elder.settle());
    let sent = handed.boundary.clone();
    assert_eq!((sent.meta.at, sent.origin), (at(6, NodeId(1), 15), 14));
    younger.live(7, 0);
    younger.engine.brought = Some(Brought::Difference(Box::new(handed)));
    younger.engine.be_overridden(sent.meta.clone());
    younger.write(Write::Rebase(sent.meta.clone()));
    younger.settle().await;
    assert!(younger.engine.end.is_none(), "{:?}", younger.engine.end);
    assert_eq!(younger.state().digest(), elder.state().digest());
    assert_eq!(younger.state().len(), elder.state().len());

    let digest = elder.state().digest();
    let (boundary, base, store) = younger.reopen();
    assert_eq!((boundary, base, store.digest()), (sent.clone(), sent.meta, digest));
    let (boundary, base, _) = elder.reopen();
    assert_eq!((boundary.chain, boundary.origin), (0, 14));
    assert_eq!((&boundary.meta, &base), (&meta, &meta));
}

#[tokio::test]
async fn snapshots_go_on_after_a_merge() {
    let (mut elder, mut younger) = pair().await;
    elder.live(3, 4);
    younger.live(4, 2);
    younger.engine.send_merge(NodeId(1), Vector::default(), Seq(younger.seq));
    let (handed, ()) = tokio::join!(elder.receive("merge "), younger.settle());
    let (own, meta) = (elder.vector(), merged_meta(&elder, &handed.boundary.meta, 6));
    elder.engine.brought = Some(Brought::Difference(Box::new(handed)));
    elder.engine.merge(&own, &younger.vector(), meta.clone());
    elder.write(Write::Rebase(meta.clone()));
    elder.live(6, EVERY + 3);
    elder.settle().await;
    // Counted from the merge on.
    assert_eq!(elder.take_snapshot().await, meta.index() + EVERY);
    let export = elder.engine.snapshots.lock().expect("nobody panics").export().expect("it can be read");
    assert_eq!(export.expect("there is one").boundary().origin, meta.index());
    let last = elder.engine.meta.at;
    let (boundary, base, store) = elder.reopen();
    assert_eq!((boundary.index(), base.at), (meta.index() + EVERY, meta.at));
    assert!(store.applied().index < last.index);
    remove(&younger.dir);
}

#[tokio::test]
async fn a_state_that_is_not_what_it_should_be_is_odd() {
    let (elder, mut younger) = pair().await;
    younger.live(4, 2);
    younger.settle().await;
    let mut boundary = Boundary::default();
    boundary.meta.at = at(5, NodeId(1), 9);
    let difference = younger.state().whole();
    let digest = younger.state().digest() ^ 1;
    younger.engine.brought =
        Some(Brought::Difference(Box::new(Handed { boundary: boundary.clone(), digest, difference })));
    younger.engine.be_overridden(boundary.meta.clone());
    younger.write(Write::Rebase(boundary.meta));
    assert!(matches!(younger.engine.end, Some(End::Fault(Fault::Odd))), "{:?}", younger.engine.end);
    assert_eq!(younger.state().applied().index, 2);
    remove(&elder.dir);
    remove(&younger.dir);
}

//! The setup of a test's node.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::driver::handle::{Desk, Handle, channel};
use crate::driver::{Directory, Member, Setup};
use crate::protocol::Settings;
use crate::storage::files::Simulated;
use crate::storage::snapshot::Snapshots;
use crate::types::{NodeId, Span};
use crate::wire::ClusterHead;

/// The time that a call waits for a hand-over: longer than a busy machine delays a test.
const PATIENCE: Span = Span::millis(60_000);

pub fn desk() -> (Handle, Desk) {
    let files = Simulated::new(1).files();
    let (snapshots, _) = Snapshots::open(&files, Path::new("/snapshots")).expect("a folder can be made");
    // The handle requires a folder for snapshots; no test writes into it.
    channel(64, Arc::new(Mutex::new(snapshots)))
}

pub fn setup(me: NodeId, addresses: &[SocketAddr], elsewhere: Option<&str>) -> Setup {
    let member = |(id, address): (u32, &SocketAddr)| {
        let host = elsewhere.filter(|_| NodeId(id) != me);
        let host = host.map_or_else(|| address.ip().to_string(), str::to_string);
        Member { id: NodeId(id), name: format!("node-{id}"), host, port: address.port(), votes: true }
    };
    let members: Vec<_> = (1..).zip(addresses).map(member).collect();
    let ids = members.iter().map(|member| member.id).collect();
    let cluster = ClusterHead {
        name: "test".to_string(),
        mode: "safe".to_string(),
        settings: 1,
        ids: Some(1),
        at: String::new(),
    };
    let mut settings = Settings::lan(me, ids);
    settings.timing.window = PATIENCE;
    let directory = Directory::new(members);
    Setup {
        settings,
        cluster,
        directory,
        snapshot_every: 10,
        secret: None,
        tls: None,
        notices: Default::default(),
        wall: Default::default(),
    }
}

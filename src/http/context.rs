//! What all handlers share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::HeaderValue;
use tokio::sync::Semaphore;

use super::admin::Admin;
use super::admission::Admission;
use super::forward;
use super::peer::Door;
use crate::config::HttpLimits;
use crate::driver::{Handle, Setup};
use crate::types::NodeId;

/// Calls that wait for leadership to settle. Beyond it they are refused at once: waiting calls hold their bodies.
const HELD_MOST: usize = 1024;

/// Streams that hold roles: as many as there may be readers of the feed, each a connection and a renewal now and then.
const HOLDS_MOST: usize = 12_000;

/// How long a call waits while nobody leads. A failover takes some milliseconds, or the time until death is certain; a
/// client is told no rather than kept waiting for longer than it would wait before it tries again.
const LEADERLESS_MOST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Context {
    pub handle: Handle,
    pub setup: Arc<Setup>,
    pub limits: HttpLimits,
    pub admin: Admin,
    pub admission: Admission,
    pub held: Admission,
    /// Whole-data documents: one at a time, each is held in memory.
    pub restores: Admission,
    /// Roles that are held by open streams.
    pub holds: Arc<Semaphore>,
    /// For calls of peers.
    pub door: Door,
    /// For calls that another node answers.
    pub client: reqwest::Client,
    urls: BTreeMap<NodeId, String>,
    node: HeaderValue,
    /// Tells the request ids of this process from those of any other.
    tag: u32,
    made: AtomicU64,
}

impl Context {
    /// `listen` is the address that the listener is bound to: it says who can call at all.
    pub fn new(
        handle: Handle,
        setup: Arc<Setup>,
        limits: HttpLimits,
        admin_token: Option<&str>,
        listen: SocketAddr,
    ) -> Result<Context, reqwest::Error> {
        let mut own = [0; 32];
        getrandom::fill(&mut own).expect("the node has drawn its boot from the same source");
        let urls = setup.members.iter().map(|member| (member.id, member.url())).collect();
        Ok(Context {
            client: forward::client(&setup.settings.timing, &limits)?,
            admin: Admin::new(admin_token, listen.ip().to_canonical().is_loopback()),
            admission: Admission::new(limits.requests),
            held: Admission::new(HELD_MOST),
            restores: Admission::new(1),
            holds: Arc::new(Semaphore::new(HOLDS_MOST)),
            door: Door::new(handle.clone(), &setup, own),
            urls,
            node: HeaderValue::from(setup.settings.me.0),
            tag: getrandom::u32().unwrap_or_else(|_| std::process::id()),
            made: AtomicU64::new(0),
            handle,
            setup,
            limits,
        })
    }

    pub fn me(&self) -> NodeId {
        self.setup.settings.me
    }

    pub fn url(&self, node: NodeId) -> Option<&str> {
        self.urls.get(&node).map(String::as_str)
    }

    pub fn node_value(&self) -> HeaderValue {
        self.node.clone()
    }

    /// The leader, if it is another node.
    pub fn elsewhere(&self) -> Option<NodeId> {
        self.handle.pulse().leader().filter(|leader| *leader != self.me())
    }

    /// A number that no other process draws.
    pub fn draw(&self) -> u64 {
        u64::from(self.tag) << 20 | self.made.fetch_add(1, Ordering::Relaxed) & 0xf_ffff
    }

    pub fn request_id(&self) -> String {
        format!("{:08x}-{:x}", self.tag, self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// How long a call may wait for a planned hand-over to end one way or the other (P18).
    pub fn hand_over_patience(&self) -> Duration {
        Duration::from_micros(self.setup.settings.timing.window.0)
    }

    pub fn leaderless_patience(&self) -> Duration {
        self.hand_over_patience().min(LEADERLESS_MOST)
    }
}

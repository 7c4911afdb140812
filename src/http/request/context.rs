//! The context that all handlers share: the node's handle, its setup and limits, and the counters of open calls.
//!
//! It is made once for the process and never changes; what changes in it is behind atomics, locks and
//! watches. The places for everything that callers keep for long are fields here, with their figures above.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use eldest_tls::trusting_no_certificate;
use tokio::sync::watch;

use super::audit::Audit;
use super::holders::HoldersHere;
use super::refusals::RecentRefusals;
use super::web::Web;
use crate::config::HttpLimits;
use crate::driver::{Handle, Setup};
use crate::http::access::{Guard, Principal, Shown};
use crate::http::admission::{
    Callers, FailedHandshakes, LongReads, Places, PlacesByName, Refused, Seats, Shares, Traffic,
};
use crate::http::answer::{Code, Problem, Surroundings, unauthorized};
use crate::http::spans::Spans;
use crate::protocol::Timing;
use crate::types::{NodeId, WAITERS_PER_ROLE_MOST};

/// Idle connections kept to one node: a follower that serves many clients has as many open calls.
const IDLE_MOST: usize = 256;

/// The shortest time limit of a dial: on a busy machine even the loopback is not faster.
const DIAL_LEAST: Duration = Duration::from_millis(100);

/// The maximum number of calls that wait for leadership to settle. Beyond it calls are refused at once: waiting calls hold their bodies.
const WAITING_MOST: usize = 1024;

/// The maximum number of readers of the feed. All connections but a few may be readers; all readers of three nodes may be on the last
/// node.
const READERS_MOST: usize = 12_000;

/// The maximum number of channel listeners: as many as readers of the feed, for the same reason.
const LISTENERS_MOST: usize = 12_000;

/// The maximum number of streams that hold roles: as many again, each a connection and a renewal from time to time.
const HOLDS_MOST: usize = 12_000;

/// The maximum number of command streams. Each holds the memory of one long line and of some chunks of lines. All of them share
/// one loop, so more of them would not be faster. The leader decides eight chunks at a time, of all streams together
/// (`driver::replies`).
const STREAMS_MOST: usize = 64;

/// The maximum number of examinations at a time. Each makes two calls to each other node, and takes some seconds.
const EXAMINATIONS_MOST: usize = 16;

/// The time that a call waits without a leader. A failover takes some milliseconds, or the time until a death is certain. A client is
/// refused rather than kept waiting longer than its own pause before a retry.
/// A planned hand-over may be waited for longer: it ends within a window, one way or the other (P18).
const LEADERLESS_MOST: Duration = Duration::from_secs(1);

/// The time that a stopping node waits until its streams have given back their roles: roles lapse by themselves, and if the whole cluster
/// stops there is no node left to give them to.
pub const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Context {
    pub handle: Handle,
    pub setup: Arc<Setup>,
    pub limits: HttpLimits,
    pub guard: Guard,
    /// Credentials that are invalid, revoked or expired.
    pub refused: Refused,
    /// Calls with a known credential that has no grant for them.
    pub denied: Refused,
    /// Calls that were answered by a problem.
    pub refusals: RecentRefusals,
    pub audit: Audit,
    /// The calls that web pages may make a browser send.
    pub web: Web,
    /// The connections and the memory of each address.
    pub callers: Callers,
    /// The seats of open calls.
    pub seats: Arc<Seats>,
    pub long_reads: LongReads,
    /// Calls that wait for a change of leadership.
    pub waiting: Arc<Places>,
    /// Calls that wait for each role.
    /// The queue itself is in the replica, which bounds it for all callers together. These places share it
    /// out by address and principal.
    pub lines: PlacesByName,
    /// Restores of whole documents: one at a time, because each is held in memory.
    pub restores: Arc<Places>,
    /// Transfers of whole logs and states to an operator: one at a time.
    pub catch_ups: Arc<Places>,
    /// Backups that are sent to an operator: one at a time, so that a slow reader keeps only one old state in memory.
    pub backups: Arc<Places>,
    /// Roles that are held by open streams.
    pub holds: Arc<Places>,
    /// Those streams and ties, by role.
    pub holders: Arc<HoldersHere>,
    /// Each stream that has a role to give back keeps a receiver until that is done.
    pub farewells: watch::Sender<()>,
    /// Command streams that clients have open.
    pub streams: Arc<Places>,
    /// Examinations of the whole cluster.
    pub examinations: Arc<Places>,
    pub readers: Arc<Places>,
    pub listeners: Arc<Places>,
    /// The client for calls that another node answers.
    pub client: reqwest::Client,
    pub traffic: Traffic,
    pub spans: Spans,
    /// Handshakes of callers that wanted to use TLS.
    pub handshakes: FailedHandshakes,
    node: HeaderValue,
    /// Distinguishes the request ids of this process from those of any other.
    tag: u32,
    made: AtomicU64,
}

impl Context {
    pub fn new(
        handle: Handle,
        setup: Arc<Setup>,
        limits: HttpLimits,
        guard: Guard,
        web: Web,
    ) -> Result<Context, reqwest::Error> {
        let shares =
            Shares { address_percent: limits.address_percent, no_token_is_one: guard.knows_an_admin_token() };
        let places = |bound, most| Places::new(bound, most, shares);
        Ok(Context {
            client: client(&setup, &limits)?,
            guard,
            refused: Refused::default(),
            denied: Refused::default(),
            refusals: RecentRefusals::default(),
            audit: Audit::default(),
            web,
            callers: Callers::new(&limits),
            seats: Seats::new(limits.requests, shares).into(),
            long_reads: LongReads::new(),
            waiting: places("calls that wait for the leader", WAITING_MOST),
            lines: PlacesByName::new("calls that wait for this role", WAITERS_PER_ROLE_MOST, shares),
            restores: places("documents at a time", 1),
            catch_ups: places("calls of /catch_up at a time", 1),
            backups: places("calls of /v1/backup at a time", 1),
            holds: places("roles held by streams of this node", HOLDS_MOST),
            holders: Arc::default(),
            farewells: watch::Sender::new(()),
            streams: places("streams of commands at this node", STREAMS_MOST),
            examinations: places("examinations of the cluster at this node", EXAMINATIONS_MOST),
            readers: places("readers of the feed of this node", READERS_MOST),
            listeners: places("listeners of the channels of this node", LISTENERS_MOST),
            traffic: Traffic::default(),
            spans: Spans::default(),
            handshakes: FailedHandshakes::default(),
            node: HeaderValue::from(setup.settings.me.0),
            tag: getrandom::u32().unwrap_or_else(|_| std::process::id()),
            made: AtomicU64::new(0),
            handle,
            setup,
            limits,
        })
    }

    pub fn with_spans(self, spans: Spans) -> Context {
        Context { spans, ..self }
    }

    pub fn with_audit(self, audit: Audit) -> Context {
        Context { audit, ..self }
    }

    /// Checks the credential of a call, as far as this node knows.
    /// A token that is unknown here may be new: only the guard asks the leader for it, because that takes
    /// time.
    pub fn look(&self, headers: &HeaderMap) -> Shown {
        if !headers.contains_key(AUTHORIZATION) {
            return Shown::Nothing;
        }
        self.guard.look(headers, &self.handle.tokens(), self.handle.wall())
    }

    /// Judges a caller again before its call takes effect: a body may arrive slowly, and a token may be revoked meanwhile (P56).
    pub fn is_still_let_in(&self, principal: &Principal) -> Result<(), Problem> {
        let Some(id) = principal.token() else { return Ok(()) };
        self.handle.tokens().judge(id, self.handle.wall()).map_err(unauthorized)
    }

    pub fn me(&self) -> NodeId {
        self.setup.settings.me
    }

    pub fn url(&self, node: NodeId) -> Option<String> {
        self.setup.known().member(node).map(|member| self.setup.url(member))
    }

    pub fn node_value(&self) -> HeaderValue {
        self.node.clone()
    }

    /// Returns whether the topology or the log has a node or a host of this name, which is in lower case.
    pub fn is_member_name(&self, name: &str) -> bool {
        let own = self.setup.cluster.at.rsplit_once(':').map(|(host, _)| host);
        let known = self.setup.known();
        let mut names = known.members.iter().flat_map(|member| [&member.name[..], &member.host]).chain(own);
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns whether this is the origin of a page that a member serves. It is in lower case.
    pub fn is_member_origin(&self, origin: &str) -> bool {
        self.member_urls().iter().any(|url| url.eq_ignore_ascii_case(origin))
    }

    pub fn member_urls(&self) -> Vec<String> {
        self.setup.known().members.iter().map(|member| self.setup.url(member)).collect()
    }

    /// Returns the leader, if it is another node.
    pub fn other_leader(&self) -> Option<NodeId> {
        self.handle.pulse().leader().filter(|leader| *leader != self.me())
    }

    /// Adds to a problem which node leads, or what an operator should do if no node can lead. A leader that the call itself has
    /// named is newer than the one that this node sees.
    pub fn explain<T>(
        &self,
        problem: &Problem,
        request_id: &str,
        write: impl FnOnce(&Problem, Surroundings) -> T,
    ) -> T {
        let pulse = self.handle.pulse();
        let leader = problem.named_leader().or_else(|| pulse.leader());
        let leader = leader.and_then(|leader| Some((leader, self.url(leader)?)));
        let leader = leader.as_ref().map(|(leader, url)| (*leader, url.as_str()));
        // This includes a node whose disk waits to be admitted: it may be that no node is left that can admit it. A problem with further
        // members has another reason, which it tells.
        let asks_who_leads = matches!(problem.code(), Code::NoLeader | Code::NoQuorum | Code::CatchingUp);
        let unexplained = asks_who_leads && !problem.has_members() && pulse.leader().is_none();
        let advice = if unexplained { pulse.advice() } else { None };
        let advised = advice.map(|advice| problem.clone().detail(advice));
        write(advised.as_ref().unwrap_or(problem), Surroundings { request_id, leader })
    }

    /// Returns a number that no other process draws.
    /// It has 52 bits: 32 that are drawn at the start, and 20 that count.
    pub fn unique_number(&self) -> u64 {
        u64::from(self.tag) << 20 | self.made.fetch_add(1, Ordering::Relaxed) & 0xf_ffff
    }

    pub fn request_id(&self) -> String {
        format!("{:08x}-{:x}", self.tag, self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns how long a call may wait for a planned hand-over to end one way or the other (P18).
    /// A leader gives a hand-over up after one window, so a longer wait would not help.
    pub fn hand_over_patience(&self) -> Duration {
        Duration::from_micros(self.setup.settings.timing.window.0)
    }

    pub fn leaderless_patience(&self) -> Duration {
        self.hand_over_patience().min(LEADERLESS_MOST)
    }

    /// Returns the time limit for connecting to another node.
    pub fn dial_timeout(&self) -> Duration {
        dial(&self.setup.settings.timing)
    }
}

/// Idle connections are closed well before a server closes them, since a write could otherwise race with the closing; all nodes have the
/// same time-outs.
/// A client library that repeats a call, or follows a redirect, could apply a write twice (C7): this node
/// alone decides whether a call is sent again. No proxy of the environment comes between nodes.
fn client(setup: &Setup, limits: &HttpLimits) -> Result<reqwest::Client, reqwest::Error> {
    let tls =
        setup.dialling().map_or_else(trusting_no_certificate, |certificates| certificates.dialling(None));
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .tls_backend_preconfigured(tls)
        .connect_timeout(dial(&setup.settings.timing))
        .pool_idle_timeout(limits.idle_timeout / 2)
        .pool_max_idle_per_host(IDLE_MOST)
        .tcp_nodelay(true)
        .http1_only()
        .build()
}

/// A longer limit would use up the time of a call at a node that is down.
fn dial(timing: &Timing) -> Duration {
    Duration::from_micros(timing.heartbeat.times(2).0).max(DIAL_LEAST)
}

//! The context that all handlers share: the node's handle, its setup and limits, and the counters of what is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use eldest_tls::trusting_nobody;
use tokio::sync::watch;

use super::audit::Audit;
use super::auth::{Guard, Principal, Shown};
use super::callers::Callers;
use super::handshakes::FailedHandshakes;
use super::places::{Places, PlacesByName, Shares};
use super::refusals::RecentRefusals;
use super::refused::Refused;
use super::seats::LongReads;
use super::seats::Seats;
use super::traffic::Traffic;
use super::web::Web;
use crate::config::HttpLimits;
use crate::driver::{Handle, Setup};
use crate::http::answer::{Code, Problem, Surroundings, unauthorized};
use crate::http::spans::Spans;
use crate::protocol::Timing;
use crate::types::{NodeId, WAITERS_PER_ROLE_MOST};

/// Idle connections kept to one node: a follower that serves many clients has as many calls under way.
const IDLE_MOST: usize = 256;

/// The least that a dial may take: on a busy machine even the loopback is not faster.
const DIAL_LEAST: Duration = Duration::from_millis(100);

/// Calls that wait for leadership to settle. Beyond it they are refused at once: waiting calls hold their bodies.
const WAITING_MOST: usize = 1024;

/// Readers of the feed. Every connection may be one but for a few; all readers of three nodes may be on the last one.
const READERS_MOST: usize = 12_000;

/// Listeners of channels: as many as the feed may have readers, for the same reason.
const LISTENERS_MOST: usize = 12_000;

/// Streams that hold roles: as many again, each a connection and a renewal now and then.
const HOLDS_MOST: usize = 12_000;

/// Streams of commands, each of which holds a body's worth of a line and some chunks of lines. All of them together take turns with the
/// loop, so that more of them are no faster.
const STREAMS_MOST: usize = 64;

/// How long a call waits while nobody leads. A failover takes some milliseconds, or the time until death is certain; a
/// client is told no rather than kept waiting for longer than it would wait before it tries again.
const LEADERLESS_MOST: Duration = Duration::from_secs(1);

/// How long a node that ends waits for what its streams give back: roles lapse by themselves, and a cluster that ends as a whole has
/// nobody left to give them to.
pub const FAREWELL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Context {
    pub handle: Handle,
    pub setup: Arc<Setup>,
    pub limits: HttpLimits,
    pub guard: Guard,
    /// Credentials that nobody knows.
    pub refused: Refused,
    /// Of those that are known, what they had no grant for.
    pub denied: Refused,
    /// Calls that got a problem for an answer.
    pub refusals: RecentRefusals,
    pub audit: Audit,
    /// What browsers may be made to do here.
    pub web: Web,
    /// What each address has of connections and of memory.
    pub callers: Callers,
    /// Of calls under way.
    pub seats: Arc<Seats>,
    pub long_reads: LongReads,
    /// Calls that wait for a change of leadership.
    pub waiting: Arc<Places>,
    /// Calls that wait for each role.
    pub lines: PlacesByName,
    /// Whole-data documents: one at a time, each is held in memory.
    pub restores: Arc<Places>,
    /// Whole logs and states on their way to an operator: one at a time.
    pub catch_ups: Arc<Places>,
    /// Backups on their way to an operator: one at a time, so that one reader's slowness holds one old state.
    pub backups: Arc<Places>,
    /// Roles that are held by open streams.
    pub holds: Arc<Places>,
    /// Each stream that has something to give back has a receiver, until that is done.
    pub farewells: watch::Sender<()>,
    /// Streams of commands that clients have open.
    pub streams: Arc<Places>,
    pub readers: Arc<Places>,
    pub listeners: Arc<Places>,
    /// For calls that another node answers.
    pub client: reqwest::Client,
    pub traffic: Traffic,
    pub spans: Spans,
    /// Of who wanted to speak TLS.
    pub handshakes: FailedHandshakes,
    node: HeaderValue,
    /// Tells the request ids of this process from those of any other.
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
            farewells: watch::Sender::new(()),
            streams: places("streams of commands at this node", STREAMS_MOST),
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

    /// What a call shows, as far as this node knows.
    pub fn look(&self, headers: &HeaderMap) -> Shown {
        if !headers.contains_key(AUTHORIZATION) {
            return Shown::Nothing;
        }
        self.guard.look(headers, &self.handle.tokens(), self.handle.wall())
    }

    /// Judges a caller again, where its call is about to take effect: a body may come slowly, and a token may be revoked meanwhile (P56).
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

    /// Whether the topology, or the log, knows a node or its host by this name, which is in lower case.
    pub fn is_member_name(&self, name: &str) -> bool {
        let own = self.setup.cluster.at.rsplit_once(':').map(|(host, _)| host);
        let known = self.setup.known();
        let mut names = known.members.iter().flat_map(|member| [&member.name[..], &member.host]).chain(own);
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The leader, if it is another node.
    pub fn other_leader(&self) -> Option<NodeId> {
        self.handle.pulse().leader().filter(|leader| *leader != self.me())
    }

    /// A problem with what is known around it: who leads, and what an operator should do where nobody can.
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
        // Also to a node whose disk waits to be let in: it may be that nobody is left who could.
        let asks_who_leads = matches!(problem.code(), Code::NoLeader | Code::NoQuorum | Code::CatchingUp);
        let advice = if asks_who_leads { pulse.advice() } else { None };
        let advised = advice.map(|advice| problem.clone().detail(advice));
        write(advised.as_ref().unwrap_or(problem), Surroundings { request_id, leader })
    }

    /// A number that no other process draws.
    pub fn unique_number(&self) -> u64 {
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

    /// What connecting to another node may take.
    pub fn dial_timeout(&self) -> Duration {
        dial(&self.setup.settings.timing)
    }
}

/// Idle connections are given up well before a server closes them, or a write could race with the closing; every node
/// has the same time-outs.
fn client(setup: &Setup, limits: &HttpLimits) -> Result<reqwest::Client, reqwest::Error> {
    let tls = setup.dialling().map_or_else(trusting_nobody, |certificates| certificates.dialling(None));
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

fn dial(timing: &Timing) -> Duration {
    Duration::from_micros(timing.heartbeat.times(2).0).max(DIAL_LEAST)
}

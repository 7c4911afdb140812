//! One call to one peer: headers, proof, time limit, and the message that its response may bring.
//!
//! ```text
//!   try_post ── 401 with a challenge ──► a session ──► try_post once more
//!      └── 200 ──► is it proved? ──► is it that node? ──► the message, if there is one
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::iter::successors;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use blake3::Hasher;
use bytes::Bytes;
use eldest_tls::rustls::ClientConfig;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Body, Client, StatusCode, Url};

use crate::driver::answers;
use crate::driver::handle::PeerCall;
use crate::driver::setup::{Member, Setup};
use crate::protocol::{Settings, Timing};
use crate::types::NodeId;
use crate::wire::{CallProof, Challenge, Hello, Packet, Route, Sender, Session, header};

/// Idle connections kept to one peer: as many as there are calls at once.
const IDLE_MOST: usize = 8;
/// The time an idle connection is kept: shorter than a server keeps it, because a call would otherwise race with the server's
/// close.
const IDLE_FOR: Duration = Duration::from_secs(30);
/// The maximum body of a response: lines that a candidate pulled, at least one record of the largest kind.
const RESPONSE_BYTES_MOST: usize = 16 << 20;
/// The number of characters shown of a refusal: any server at that address may have written it.
const SAID_MOST: usize = 512;
/// Shown if the answer does not come from a node.
pub const NO_REASON: &str = "unreadable reason";
/// The extra time a call gets for each byte: 10 MB/s.
const NANOS_PER_BYTE: u64 = 100;
/// The shortest time limit of a call: on a busy machine a loopback call can take this long.
const PATIENCE_LEAST: Duration = Duration::from_millis(50);

/// Why a call had no result.
#[derive(Debug)]
pub enum Fault {
    /// The peer cannot be reached, or did not answer in time.
    Unreachable(reqwest::Error),
    /// A simulated wall stands between the nodes.
    Swallowed,
    /// The peer answered with a refusal: status and its own words.
    Refused(StatusCode, String),
    /// Its response has no valid proof, or cannot be read.
    Unreadable(&'static str),
}

/// A connection attempt may take as long as a peer may be silent; then it is repeated (C30). There is no proxy and no redirect,
/// because a call is for this very node. The library repeats nothing: it would send a proof again whose counter the server takes
/// once.
pub fn client(timing: &Timing, tls: ClientConfig) -> Result<Client, reqwest::Error> {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .tls_backend_preconfigured(tls)
        .connect_timeout(Duration::from_micros(timing.dead_after.0).max(PATIENCE_LEAST))
        .pool_max_idle_per_host(IDLE_MOST)
        .pool_idle_timeout(IDLE_FOR)
        .tcp_nodelay(true)
        .build()
}

/// Two heartbeats, plus three round trips for a distant peer: one each for a connection, a call and a lost packet. A call that
/// times out closes its connection, so with less time the next call would get no further.
fn patience(timing: &Timing, round_trip: Duration) -> Duration {
    Duration::from_micros(timing.fresh().0).max(PATIENCE_LEAST) + round_trip * 3
}

/// The HTTP clients for one peer, each with its connections.
#[derive(Clone, Debug)]
pub struct Clients {
    messages: Client,
    /// For states. The peer chooses by the first call of a connection where it serves it (`http/server/sort.rs`), so a state never
    /// takes a connection for messages.
    states: Client,
}

impl Clients {
    /// The clients for peers that do not use TLS.
    pub fn plain(messages: Client, states: Client) -> Clients {
        Clients { messages, states }
    }

    /// One client for both. A peer serves all TLS connections in the same place.
    pub fn single(client: Client) -> Clients {
        Clients { states: client.clone(), messages: client }
    }
}

#[derive(Debug)]
pub struct Poster {
    setup: Arc<Setup>,
    clients: Clients,
    to: NodeId,
    urls: [Url; Route::ALL.len()],
    cluster: String,
    session: Mutex<Option<Arc<Session>>>,
}

impl Poster {
    pub fn new(setup: Arc<Setup>, member: &Member, clients: Clients) -> Poster {
        let base = setup.url(member);
        let url = |route: Route| {
            Url::parse(&format!("{base}{}", route.path())).expect("the configuration checked the address")
        };
        let cluster = setup.cluster.encode();
        let urls = Route::ALL.map(url);
        Poster { setup, clients, to: member.id, urls, cluster, session: Mutex::default() }
    }

    /// Sends a packet and returns the message in the response.
    pub async fn post(&self, packet: &Packet, round_trip: Duration) -> Result<Option<PeerCall>, Fault> {
        let patience = self.patience(packet, round_trip);
        let posted = self.setup.wall.pass(self.to, patience, self.prove_and_post(packet, patience));
        posted.await.unwrap_or(Err(Fault::Swallowed))
    }

    fn patience(&self, packet: &Packet, round_trip: Duration) -> Duration {
        let extra = Duration::from_nanos(packet.body.len() as u64 * NANOS_PER_BYTE);
        patience(&self.setup.settings.timing, round_trip) + extra
    }

    /// Sends a packet with a proof, if the peer asks for one. A second refusal is final: a wrong secret must not cause endless
    /// repetition.
    pub async fn prove_and_post(
        &self,
        packet: &Packet,
        patience: Duration,
    ) -> Result<Option<PeerCall>, Fault> {
        match self.try_post(packet, patience).await {
            // A new process there does not know this session. Its challenge has been taken over, so the call is repeated once.
            Err(Fault::Refused(StatusCode::UNAUTHORIZED, _)) if self.has_session() => {
                self.try_post(packet, patience).await
            }
            other => other,
        }
    }

    async fn try_post(&self, packet: &Packet, patience: Duration) -> Result<Option<PeerCall>, Fault> {
        let from = packet.sender.encode();
        let hello = Hello {
            path: packet.route.path(),
            cluster: &self.cluster,
            from: &from,
            message: &packet.message,
            body: &packet.body,
        };
        let proved = self.session().map(|session| (session.prove(&hello), session));
        let headers = self.headers(&from, &packet.message, proved.as_ref().map(|(proof, _)| proof))?;
        let response = self
            .clients
            .messages
            .post(self.urls[packet.route as usize].clone())
            .headers(headers)
            .body(Body::from(packet.body.clone()))
            .timeout(patience)
            .send()
            .await
            .map_err(Fault::Unreachable)?;
        let proved = proved.map(|(proof, session)| (session, proof.counter));
        self.read(packet.route, response, proved).await
    }

    /// Builds the headers of a stream, and the hasher for the proof of its body. The head is proved with an empty body, because
    /// the body is not known yet: its last bytes prove it.
    pub fn prove_stream(&self, packet: &Packet) -> Result<(HeaderMap, Option<Hasher>), Fault> {
        let from = packet.sender.encode();
        let (path, message) = (packet.route.path(), packet.message.as_str());
        let hello = Hello { path, cluster: &self.cluster, from: &from, message, body: &[] };
        let proved = self.session().map(|session| (session.prove(&hello), session));
        let headers = self.headers(&from, message, proved.as_ref().map(|(proof, _)| proof))?;
        Ok((headers, proved.map(|(proof, session)| session.stream_mac(proof.counter))))
    }

    /// Sends a stream with a proof in its last bytes. A wall that rises while the stream runs cuts it short.
    pub async fn stream(
        &self,
        route: Route,
        headers: HeaderMap,
        body: Body,
        most: Duration,
    ) -> Result<(), Fault> {
        let wall = &self.setup.wall;
        let cut_short = async {
            tokio::select! {
                sent = self.stream_whole(route, headers, body, most) => sent,
                () = wall.rises(self.to) => Err(Fault::Swallowed),
            }
        };
        let sent = wall.pass(self.to, patience(&self.setup.settings.timing, Duration::ZERO), cut_short);
        sent.await.unwrap_or(Err(Fault::Swallowed))
    }

    async fn stream_whole(
        &self,
        route: Route,
        headers: HeaderMap,
        body: Body,
        most: Duration,
    ) -> Result<(), Fault> {
        let url = self.urls[route as usize].clone();
        let call = self.clients.states.post(url).headers(headers).body(body).timeout(most);
        let response = call.send().await.map_err(Fault::Unreachable)?;
        match response.status() {
            StatusCode::OK => Ok(()),
            status => Err(self.refused(status, response).await),
        }
    }

    fn headers(&self, from: &str, message: &str, proof: Option<&CallProof>) -> Result<HeaderMap, Fault> {
        let value =
            |text: &str| HeaderValue::from_str(text).map_err(|_| Fault::Unreadable("a header of ours"));
        let mut headers = HeaderMap::with_capacity(5);
        headers.insert(header::CLUSTER, value(&self.cluster)?);
        headers.insert(header::FROM, value(from)?);
        headers.insert(header::MESSAGE, value(message)?);
        if let Some(proof) = proof {
            headers.insert(header::PROOF, value(&proof.proof)?);
            headers.insert(header::HEAD_PROOF, value(&proof.head)?);
        }
        Ok(headers)
    }

    async fn read(
        &self,
        route: Route,
        response: reqwest::Response,
        proved: Option<(Arc<Session>, u64)>,
    ) -> Result<Option<PeerCall>, Fault> {
        let status = response.status();
        if status != StatusCode::OK {
            return Err(self.refused(status, response).await);
        }
        let headers = response.headers().clone();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if text(header::MESSAGE).is_empty() && self.setup.secret.is_none() {
            return Ok(None);
        }
        let body = read_body(response).await?;
        // The proof is checked before anything in the response is decoded.
        if let Some((session, counter)) = proved {
            let (cluster, from, message) = (text(header::CLUSTER), text(header::FROM), text(header::MESSAGE));
            let hello = Hello { path: route.path(), cluster, from, message, body: &body };
            if !session.checks(counter, &hello, text(header::PROOF)) {
                return Err(Fault::Unreadable("the response does not prove that it knows the secret"));
            }
        } else if self.setup.secret.is_some() {
            return Err(Fault::Unreadable("the peer does not ask for a proof: it has no secret"));
        }
        if text(header::MESSAGE).is_empty() {
            return Ok(None);
        }
        let sender = Sender::decode(text(header::FROM)).map_err(|_| Fault::Unreadable("the sender"))?;
        // The address may belong to another node by now.
        if sender.from != self.to {
            return Err(Fault::Unreadable("another node answers at this address"));
        }
        let call = answers::decode(sender, text(header::MESSAGE), body);
        call.map(Some).map_err(|_| Fault::Unreadable("the message"))
    }

    /// Takes over the challenge in a refusal that asks for a proof.
    async fn refused(&self, status: StatusCode, response: reqwest::Response) -> Fault {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let challenge = text(header::CHALLENGE).and_then(Challenge::decode);
        if let (StatusCode::UNAUTHORIZED, Some(secret), Some(challenge)) =
            (status, &self.setup.secret, challenge)
        {
            let me = self.setup.settings.me;
            let session = nonce().map(|nonce| Session::new(&secret.first(), me, self.to, challenge, nonce));
            *self.slot() = session.map(Arc::new);
        }
        let body = read_body(response).await.unwrap_or_default();
        Fault::Refused(status, what_it_says(&body, &self.setup.settings))
    }

    pub fn peer(&self) -> NodeId {
        self.to
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.slot().clone()
    }

    /// Returns whether the peer has asked for a proof.
    pub fn has_session(&self) -> bool {
        self.slot().is_some()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The body is counted as it arrives, because any server at that address may send more than it has announced.
async fn read_body(mut response: reqwest::Response) -> Result<Bytes, Fault> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Fault::Unreachable)? {
        if body.len() + chunk.len() > RESPONSE_BYTES_MOST {
            return Err(Fault::Unreadable("a response larger than any node sends"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Bytes::from(body))
}

/// Returns the problem's code and detail, or `NO_REASON` if the body cannot be read. `own` are the settings of this node.
fn what_it_says(body: &[u8], own: &Settings) -> String {
    #[derive(serde::Deserialize)]
    struct Problem {
        code: String,
        detail: Option<String>,
        #[serde(flatten)]
        settings: TheirSettings,
    }
    let Ok(Problem { code, detail, settings }) = serde_json::from_slice(body) else {
        return NO_REASON.to_string();
    };
    let said = match settings.differ(own).or(detail) {
        Some(detail) => format!("{code}: {detail}"),
        None => code,
    };
    // The text is shown in terminals and logs.
    said.chars()
        .take(SAID_MOST)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// The settings of a node that refuses calls because they differ from this node's (`http/peer`). Times are in microseconds.
#[derive(Debug, Default, serde::Deserialize)]
struct TheirSettings {
    mode: Option<String>,
    timing: Option<BTreeMap<String, u64>>,
}

impl TheirSettings {
    /// Names each setting that differs, under its name in the configuration, with both values. Returns None if there is none that this
    /// version knows.
    fn differ(&self, own: &Settings) -> Option<String> {
        let mode = self.mode.as_ref().filter(|there| *there != own.mode.name());
        let mode = mode.map(|there| format!("mode is {there} there and {} here", own.mode.name()));
        // No node polls in safe mode.
        let counts = |name: &str| own.is_available() || name != "poll";
        let timings = own.timing.named().into_iter().filter(|(name, _)| counts(name));
        let timings = timings.filter_map(|(name, here)| {
            let there = *self.timing.as_ref()?.get(name).filter(|there| **there != here)?;
            Some(match name {
                "drift_percent" => format!("timing.{name} is {there} there and {here} here"),
                _ => format!("timing.{name}_ms is {} there and {} here", in_ms(there), in_ms(here)),
            })
        });
        let all: Vec<String> = mode.into_iter().chain(timings).collect();
        (!all.is_empty()).then(|| format!("all nodes need the same settings: {}", all.join(", ")))
    }
}

fn in_ms(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// Returns the root cause of a failed call.
pub fn cause(error: &reqwest::Error) -> String {
    let root = successors(error.source(), |error| Error::source(*error)).last();
    eldest_tls::explain(error).or(root.map(ToString::to_string)).unwrap_or_else(|| error.to_string())
}

fn nonce() -> Option<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(u128::from_le_bytes(bytes))
}

// The messages of the network to the loop.

#[derive(Debug)]
pub enum Arrived {
    /// A message in a response.
    Call(Box<PeerCall>),
    /// The difference to merge is larger than that peer accepts.
    TooLarge { to: NodeId, bytes: u64 },
    /// The peer's port refuses: its process is dead.
    Refused(NodeId),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Settings {
        Settings::lan(NodeId(1), Vec::new())
    }

    #[test]
    fn whoever_answers_at_an_address_is_not_heard_for_long() {
        let own = own();
        let said = |code: &str, detail: &str| {
            what_it_says(format!("{{\"code\":\"{code}\",\"detail\":\"{detail}\"}}").as_bytes(), &own)
        };
        assert_eq!(said("a", "b"), "a: b");
        assert_eq!(said("a", "b\\n\\u001b[2J"), "a: b\u{fffd}\u{fffd}[2J");
        let long = "ä".repeat(1 << 20);
        assert_eq!(said("a", &long).chars().count(), SAID_MOST);
        assert_eq!(said(&long, "b").chars().count(), SAID_MOST);
        assert_eq!(what_it_says(b"It works!", &own), NO_REASON);
    }

    #[test]
    fn other_settings_are_named_with_both_values() {
        let own = own();
        let mut timing: BTreeMap<String, u64> =
            own.timing.named().into_iter().map(|(name, number)| (name.to_string(), number)).collect();
        let said = |mode: &str, timing: &BTreeMap<String, u64>| {
            TheirSettings { mode: Some(mode.to_string()), timing: Some(timing.clone()) }.differ(&own)
        };
        timing.insert("of_another_version".to_string(), 1);
        timing.insert("poll".to_string(), 1);
        assert_eq!(said("safe", &timing), None);
        timing.insert("lease".to_string(), 250_500);
        let all = "all nodes need the same settings: ";
        let lease = "timing.lease_ms is 250.5 there and 300 here";
        assert_eq!(said("safe", &timing), Some(format!("{all}{lease}")));
        timing.insert("drift_percent".to_string(), 2);
        let drift = "timing.drift_percent is 2 there and 1 here";
        assert_eq!(said("safe", &timing), Some(format!("{all}{lease}, {drift}")));
        timing.clear();
        let mode = "mode is available there and safe here";
        assert_eq!(said("available", &timing), Some(format!("{all}{mode}")));
    }
}

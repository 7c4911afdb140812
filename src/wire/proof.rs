//! A peer proves that it knows the cluster's secret. The proof uses no clock, and cannot be replayed.
//!
//! A call without proof is answered with a challenge that only the server's process can have made. The caller adds its own nonce;
//! both derive a session key from secret, challenge and nonce. From then on every call carries the session, a counter and a keyed
//! hash over counter, path, headers and body; the response carries one over the same counter. The server takes each counter once.
//!
//! ```text
//! → POST /heartbeat, no proof                        ← 401, Eldest-Challenge: 17.<mac>
//! → Eldest-Proof: 17.<mac>.<nonce> 1 <hash>          ← 200, Eldest-Proof: 1 <hash>
//!   Eldest-Head-Proof: <hash over the head and that proof>
//! ```
//!
//! The second hash is checked before the body is read: so a caller without the secret cannot make a node read a body. The first
//! hash, which the second one covers, is checked once the body is there. Nodes of earlier versions send only the first, and
//! ignore the second; their calls are checked with the body, and only a few such bodies are read at a time.
//!
//! The head of a stream is proved with an empty body. The last 32 bytes of the stream prove the bytes before them as the body of
//! this very call.
//!
//! The server stores nothing for a challenge until a proof over it checks, so a caller without the secret cannot fill its tables.
//! Sessions are numbered: once a session was dropped, neither it nor one with a lower number is accepted again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::types::NodeId;

/// The maximum number of sessions stored for each peer: one for each of its processes and connections in the recent past. Beyond
/// it the oldest is dropped. If it was in use, its next call is refused with a challenge, and repeated in a new session.
const SESSIONS_MOST: usize = 8;
/// The distance by which a call may arrive behind the newest counter: more than a peer has open calls at once. A call that is
/// later than this is refused as a repetition. `ReplayWindow` has one bit for each, so 64 is also the most.
const WINDOW: u64 = 64;

type Key = [u8; 32];

/// The cluster's secret, as the key that everything is derived from. Never printed.
#[derive(Clone)]
pub struct ProofSecret(Key);

impl fmt::Debug for ProofSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProofSecret(…)")
    }
}

impl ProofSecret {
    pub fn new(text: &str) -> ProofSecret {
        ProofSecret(blake3::derive_key("eldest 2026 cluster secret", text.as_bytes()))
    }

    /// Returns a proof by which one node vouches to another for a statement that no client can make itself.
    pub fn vouch(&self, from: NodeId, to: NodeId, about: &str) -> String {
        self.voucher(from, to, about).to_hex().to_string()
    }

    pub fn vouches(&self, from: NodeId, to: NodeId, about: &str, proof: &str) -> bool {
        blake3::Hash::from_hex(proof).is_ok_and(|given| given == self.voucher(from, to, about))
    }

    fn voucher(&self, from: NodeId, to: NodeId, about: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"vouch");
        hasher.update(&from.0.to_le_bytes()).update(&to.0.to_le_bytes()).update(about.as_bytes());
        hasher.finalize()
    }

    /// Both ids are in the key, so a proof for one node is not valid at another, and a node cannot return a proof to its maker.
    fn session(&self, from: NodeId, to: NodeId, challenge: &Challenge, nonce: u128) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"session");
        hasher.update(&from.0.to_le_bytes()).update(&to.0.to_le_bytes());
        hasher.update(&challenge.number.to_le_bytes()).update(&challenge.mac.to_le_bytes());
        hasher.update(&nonce.to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// The current secrets: proofs are made with the first one and accepted with any. There are two while the secret is being changed, so that
/// nodes with the new one and nodes without it understand each other.
#[derive(Debug)]
pub struct Secrets(RwLock<Arc<[ProofSecret]>>);

impl Secrets {
    pub fn new(first: ProofSecret, other: Option<ProofSecret>) -> Secrets {
        Secrets(RwLock::new(list(first, other)))
    }

    /// Takes effect from the next call on. A session under a removed secret must be proved again.
    pub fn replace(&self, first: ProofSecret, other: Option<ProofSecret>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = list(first, other);
    }

    /// Vouches with the first secret, and accepts any: see [`ProofSecret::vouch`].
    pub fn vouch(&self, from: NodeId, to: NodeId, about: &str) -> String {
        self.all()[0].vouch(from, to, about)
    }

    pub fn vouches(&self, from: NodeId, to: NodeId, about: &str, proof: &str) -> bool {
        self.all().iter().any(|secret| secret.vouches(from, to, about, proof))
    }

    /// The secret for making proofs.
    pub fn first(&self) -> ProofSecret {
        self.all()[0].clone()
    }

    fn all(&self) -> Arc<[ProofSecret]> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The list is never empty.
fn list(first: ProofSecret, other: Option<ProofSecret>) -> Arc<[ProofSecret]> {
    std::iter::once(first).chain(other).collect()
}

/// The challenge that a server gives to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    number: u64,
    mac: u128,
}

impl Challenge {
    pub fn encode(&self) -> String {
        format!("{}.{:032x}", self.number, self.mac)
    }

    pub fn decode(text: &str) -> Option<Challenge> {
        let (number, mac) = text.split_once('.')?;
        Some(Challenge { number: number.parse().ok()?, mac: u128::from_str_radix(mac, 16).ok()? })
    }
}

/// The proved text: a call or its response. Every part is hashed with its length, so that none runs into the next.
#[derive(Clone, Copy, Debug)]
pub struct Hello<'a> {
    pub path: &'a str,
    pub cluster: &'a str,
    pub from: &'a str,
    pub message: &'a str,
    /// Empty for a body whose own last bytes prove it (`body_mac`).
    pub body: &'a [u8],
}

/// `side` says whether it is a call, its head or its answer, so that one is never taken for another.
fn hash(key: &Key, side: &[u8], counter: u64, hello: &Hello<'_>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(side).update(&counter.to_le_bytes());
    let Hello { path, cluster, from, message, body } = hello;
    for part in [path.as_bytes(), cluster.as_bytes(), from.as_bytes(), message.as_bytes(), body] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize()
}

/// Returns the hash of a head whose call, including its body, is proved by `proof`.
fn head_hash(key: &Key, counter: u64, hello: &Hello<'_>, proof: &str) -> blake3::Hash {
    hash(key, b"head", counter, &Hello { body: proof.as_bytes(), ..*hello })
}

/// The hasher for a streamed body: its last 32 bytes prove the ones before, and that they belong to this call. The counter ties
/// it to the call whose head was proved before the body was read.
fn body_mac(key: &Key, call: u64) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"stream").update(&call.to_le_bytes());
    hasher
}

/// A caller's side of a session.
#[derive(Debug)]
pub struct Session {
    key: Key,
    name: String,
    counter: AtomicU64,
}

/// The proof of a call.
#[derive(Debug)]
pub struct CallProof {
    /// The values of its headers.
    pub proof: String,
    pub head: String,
    /// The counter that the response must name.
    pub counter: u64,
}

impl Session {
    pub fn new(secret: &ProofSecret, from: NodeId, to: NodeId, challenge: Challenge, nonce: u128) -> Session {
        let key = secret.session(from, to, &challenge, nonce);
        let name = format!("{}.{nonce:032x}", challenge.encode());
        Session { key, name, counter: AtomicU64::new(0) }
    }

    /// Each call has its own counter, repeated calls too: the server takes a counter once.
    pub fn prove(&self, hello: &Hello<'_>) -> CallProof {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let hash = hash(&self.key, b"call", counter, hello);
        let proof = format!("{} {counter} {}", self.name, hash.to_hex());
        let head = head_hash(&self.key, counter, hello, &proof).to_hex().to_string();
        CallProof { proof, head, counter }
    }

    /// The hasher for the body of a stream whose head is proved with this counter.
    pub fn stream_mac(&self, counter: u64) -> blake3::Hasher {
        body_mac(&self.key, counter)
    }

    /// Returns whether a response comes from a holder of the secret, and answers this very call. The counter is compared as well,
    /// so an earlier answer of the same session does not pass for the answer to this call.
    pub fn checks(&self, counter: u64, hello: &Hello<'_>, proof: &str) -> bool {
        let Some((number, hex)) = proof.split_once(' ') else {
            return false;
        };
        let right = hash(&self.key, b"answer", counter, hello);
        number.parse() == Ok(counter) && blake3::Hash::from_hex(hex).is_ok_and(|given| given == right)
    }
}

/// A checked proof of a call, with which its response is proved.
#[derive(Clone, Debug)]
pub struct Proof {
    key: Key,
    counter: u64,
}

impl Proof {
    pub fn answer(&self, hello: &Hello<'_>) -> String {
        format!("{} {}", self.counter, hash(&self.key, b"answer", self.counter, hello).to_hex())
    }

    /// The hasher for the body of a stream.
    pub fn stream_mac(&self) -> blake3::Hasher {
        body_mac(&self.key, self.counter)
    }
}

/// A call whose head is proved, and whose body is still to be read.
#[derive(Debug)]
pub struct HeadProof {
    proof: Proof,
    /// The hash of head and body.
    given: blake3::Hash,
}

impl HeadProof {
    /// Returns None if the body differs from the one that was sent.
    pub fn check_body(self, hello: &Hello<'_>) -> Option<Proof> {
        let HeadProof { proof, given } = self;
        (hash(&proof.key, b"call", proof.counter, hello) == given).then_some(proof)
    }
}

/// A server's side: it makes challenges, and accepts each counter of each session once.
#[derive(Debug)]
pub struct ProofVerifier {
    secrets: Arc<Secrets>,
    me: NodeId,
    /// The key of this process only: challenges of an earlier process mean nothing. So no session outlives the process that
    /// counts its calls, and no counter is taken a second time after a restart.
    process_key: Key,
    issued: AtomicU64,
    peers: Mutex<BTreeMap<NodeId, PeerSessions>>,
}

/// A proof as it was sent.
struct Shown {
    session: u64,
    proof: Proof,
    given: blake3::Hash,
}

#[derive(Debug, Default)]
struct PeerSessions {
    sessions: BTreeMap<u64, ReplayWindow>,
    /// Sessions up to this number are never accepted again.
    floor: u64,
}

/// The counters of a session that have been taken: the newest, and a bit for each of those just below.
#[derive(Debug, Default)]
struct ReplayWindow {
    newest: u64,
    taken: u64,
}

impl ReplayWindow {
    /// Returns whether the counter is new. Two calls that overtake each other are both taken; a counter that is too old to
    /// remember counts as taken.
    fn accept(&mut self, counter: u64) -> bool {
        if counter > self.newest {
            let shift = counter - self.newest;
            self.taken = if shift < WINDOW { self.taken << shift } else { 0 } | 1;
            self.newest = counter;
            return true;
        }
        let behind = self.newest - counter;
        let bit = 1_u64.checked_shl(behind as u32).filter(|_| behind < WINDOW).unwrap_or(0);
        let fresh = bit != 0 && self.taken & bit == 0;
        self.taken |= bit;
        fresh
    }
}

impl ProofVerifier {
    /// `process_key` is drawn at random at each start.
    pub fn new(secrets: Arc<Secrets>, me: NodeId, process_key: Key) -> ProofVerifier {
        ProofVerifier { secrets, me, process_key, issued: AtomicU64::new(0), peers: Mutex::default() }
    }

    pub fn challenge(&self, from: NodeId) -> Challenge {
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        Challenge { number, mac: self.mac(from, number) }
    }

    /// The peer's id is part of the MAC: a challenge for one node is not valid for another. Nothing needs to be stored to
    /// recognize a challenge.
    fn mac(&self, from: NodeId, number: u64) -> u128 {
        let mut hasher = blake3::Hasher::new_keyed(&self.process_key);
        hasher.update(&from.0.to_le_bytes()).update(&number.to_le_bytes());
        let bytes = hasher.finalize();
        u128::from_le_bytes(bytes.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))
    }

    /// Checks the proof of a call with its body. On None answer with a challenge, and do nothing else.
    pub fn check(&self, from: NodeId, hello: &Hello<'_>, proof: &str) -> Option<Proof> {
        let proves =
            |proof: &Proof, given: &blake3::Hash| *given == hash(&proof.key, b"call", proof.counter, hello);
        let Shown { session, proof, .. } = self.read(from, proof, proves)?;
        self.accept(from, session, proof.counter).then_some(proof)
    }

    /// Checks the proof of a call's head, without regard to the body in `hello`. On None answer with a challenge, and do not read
    /// the body. The counter is used up here, before the body has come: a copy of the call that arrives meanwhile is refused.
    pub fn check_head(&self, from: NodeId, hello: &Hello<'_>, text: &str, head: &str) -> Option<HeadProof> {
        let head = blake3::Hash::from_hex(head).ok()?;
        let proves =
            |proof: &Proof, _: &blake3::Hash| head == head_hash(&proof.key, proof.counter, hello, text);
        let Shown { session, proof, given } = self.read(from, text, proves)?;
        self.accept(from, session, proof.counter).then_some(HeadProof { proof, given })
    }

    /// Parses a proof whose challenge this process has made, with the secret for which `proves` holds. Session and counter are not checked
    /// here.
    fn read(
        &self,
        from: NodeId,
        proof: &str,
        proves: impl Fn(&Proof, &blake3::Hash) -> bool,
    ) -> Option<Shown> {
        let (name, rest) = proof.split_once(' ')?;
        let (counter, hex) = rest.split_once(' ')?;
        let (challenge, nonce) = name.rsplit_once('.')?;
        let challenge = Challenge::decode(challenge)?;
        let counter: u64 = counter.parse().ok()?;
        let nonce = u128::from_str_radix(nonce, 16).ok()?;
        if challenge.mac != self.mac(from, challenge.number) {
            return None;
        }
        let given = blake3::Hash::from_hex(hex).ok()?;
        let secrets = self.secrets.all();
        let keys = secrets.iter().map(|secret| secret.session(from, self.me, &challenge, nonce));
        let mut proofs = keys.map(|key| Proof { key, counter });
        let proof = proofs.find(|proof| proves(proof, &given))?;
        Some(Shown { session: challenge.number, proof, given })
    }

    /// Called only for a proof that is right. Otherwise a caller without the secret could use up the counters of a peer, or push
    /// its sessions out of the table.
    fn accept(&self, from: NodeId, session: u64, counter: u64) -> bool {
        let mut peers = self.peers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kept = peers.entry(from).or_default();
        if session <= kept.floor {
            return false;
        }
        let fresh = kept.sessions.entry(session).or_default().accept(counter);
        while kept.sessions.len() > SESSIONS_MOST {
            if let Some((oldest, _)) = kept.sessions.pop_first() {
                // Its counters are forgotten, so none of its calls may be taken again.
                kept.floor = oldest;
            }
        }
        fresh
    }
}

#[cfg(test)]
mod tests;

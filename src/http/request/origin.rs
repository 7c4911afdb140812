//! A node that forwards a call states where the call came from, and proves with the cluster's secret that a node says so. Without
//! a secret its certificate proves it, and without TLS it is believed without proof.
//!
//! A node also gives back roles that one of its clients held by a stream, even if the client's token may have been revoked. This
//! is only believed with a proof or a certificate. A node also states the number of each channel message that it forwards.
//!
//! ```text
//!   header             proved text                        believed without a secret
//!   eldest-origin      the address                        from the node's certificate, or from any caller without TLS
//!   eldest-stamp       "message", run and numbers         the same, of a member
//!   eldest-gives-back  path, token and tie                from the node's certificate alone
//! ```
//!
//! The texts differ in form, so the proof of one is never the proof of another. Sender and receiver are part
//! of each proof (`wire::ProofSecret::vouch`): what one node was told cannot be passed on to another. The
//! proofs have no counter, so a statement that was overheard can be repeated, but not changed.

use std::fmt;
use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use eldest_tls::Caller as Certified;

use crate::driver::Setup;
use crate::driver::channels::Stamp;
use crate::http::admission::Origin;
use crate::http::url::decode;
use crate::types::NodeId;

/// The node that forwarded a client's call; the call is never forwarded again.
pub const FORWARDED: HeaderName = HeaderName::from_static("eldest-forwarded");

/// `10.0.0.7 <proof>`, or `10.0.0.7` without a secret: a blank at the end of a header would be lost.
const ORIGIN: HeaderName = HeaderName::from_static("eldest-origin");

/// `17 - <proof>`: the role's token, and the tie that its holder relied on, if that has closed.
const GIVES_BACK: HeaderName = HeaderName::from_static("eldest-gives-back");

/// `7f03 12 9 <proof>`: the run, the number, and the number that was given up.
const STAMP: HeaderName = HeaderName::from_static("eldest-stamp");

/// This node, or another one, gives back the role that a client's stream has held under this token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivesBack {
    pub token: u64,
    pub tie: Option<u64>,
}

impl GivesBack {
    /// Adds the header to such a call to another node.
    pub fn say(self, headers: &mut HeaderMap, setup: &Setup, to: NodeId, path: &str) {
        vouch(headers, GIVES_BACK, setup, to, &self.to_string(), &self.about(path));
    }

    /// Returns whether a node has proved that it gives back a role.
    pub fn heard(
        headers: &HeaderMap,
        setup: &Setup,
        certified: Option<Certified>,
        path: &str,
    ) -> Option<GivesBack> {
        let from = from(headers)?;
        let told = headers.get(GIVES_BACK)?.to_str().ok()?;
        let mut parts = told.split(' ');
        let (token, tie) = (parts.next()?.parse().ok()?, parts.next()?);
        let tie = if tie == "-" { None } else { Some(tie.parse().ok()?) };
        let (word, proof) = (GivesBack { token, tie }, parts.next().unwrap_or_default());
        let proved = match &setup.secret {
            Some(secret) => secret.vouches(from, setup.settings.me, &word.about(path), proof),
            None => certified.is_some_and(|certified| certified.node == Some(from.0)),
        };
        proved.then_some(word)
    }

    /// The text that is proved. The path may be encoded differently where it arrives.
    /// The tie is part of it. Otherwise a proof that was overheard could end a lease that has been tied again
    /// since (P45).
    fn about(self, path: &str) -> String {
        format!("{} {self}", decode(path).unwrap_or(path.into()))
    }
}

impl fmt::Display for GivesBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tie {
            Some(tie) => write!(f, "{} {tie}", self.token),
            None => write!(f, "{} -", self.token),
        }
    }
}

/// Adds a header, with the proof that a node says it.
fn vouch(headers: &mut HeaderMap, name: HeaderName, setup: &Setup, to: NodeId, told: &str, about: &str) {
    let me = setup.settings.me;
    let proof = setup.secret.as_ref().map(|secret| secret.vouch(me, to, about)).unwrap_or_default();
    if let Ok(value) = HeaderValue::from_str(format!("{told} {proof}").trim_end()) {
        headers.insert(name, value);
    }
}

/// Checks that the node `from` says it: without a secret and a certificate every caller is believed.
fn vouches(setup: &Setup, certified: Option<Certified>, from: NodeId, about: &str, proof: &str) -> bool {
    match &setup.secret {
        Some(secret) => secret.vouches(from, setup.settings.me, about, proof),
        None => certified.is_none_or(|certified| certified.node == Some(from.0)),
    }
}

/// Returns the node that has forwarded a call, by its own statement.
/// It is only a claim, until a proof or a certificate confirms it.
fn from(headers: &HeaderMap) -> Option<NodeId> {
    Some(NodeId(headers.get(FORWARDED)?.to_str().ok()?.parse().ok()?))
}

/// Adds the header to a call that is forwarded to this node.
pub fn say_origin(headers: &mut HeaderMap, setup: &Setup, to: NodeId, origin: Origin) {
    let address = origin.address().to_string();
    vouch(headers, ORIGIN, setup, to, &address, &address);
}

/// Adds the header to a message that is forwarded to this node.
pub fn say_stamp(headers: &mut HeaderMap, setup: &Setup, to: NodeId, stamp: Stamp) {
    vouch(headers, STAMP, setup, to, &stamp.to_string(), &about_message(stamp));
}

/// Returns the member that has forwarded a message, and the message's stamp. An older version sends no stamp.
/// Only a member's stamp counts: the numbers of each sender are remembered, and strangers could fill that
/// memory.
pub fn stamp(headers: &HeaderMap, setup: &Setup, certified: Option<Certified>) -> Option<(NodeId, Stamp)> {
    let from = from(headers).filter(|from| setup.member(*from).is_some())?;
    let told = headers.get(STAMP)?.to_str().ok()?;
    let mut parts = told.split(' ');
    let run = u64::from_str_radix(parts.next()?, 16).ok()?;
    let (number, given_up) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let stamp = Stamp { run, number, given_up };
    let proof = parts.next().unwrap_or_default();
    vouches(setup, certified, from, &about_message(stamp), proof).then_some((from, stamp))
}

/// Begins with a word, so that the proof of an address is never the proof of a stamp.
fn about_message(stamp: Stamp) -> String {
    format!("message {stamp}")
}

/// Returns the origin of a call: by a node's statement, or by the address of its connection. `certified` is the owner of the connection's
/// certificate.
/// A statement that is not proved is ignored, not refused: the call counts for the address of its connection.
pub fn origin(
    headers: &HeaderMap,
    setup: &Setup,
    certified: Option<Certified>,
    caller: Option<Origin>,
) -> Option<Origin> {
    passed_on(headers, setup, certified).map(Origin::of).or(caller)
}

fn passed_on(headers: &HeaderMap, setup: &Setup, certified: Option<Certified>) -> Option<IpAddr> {
    let from = from(headers)?;
    let told = headers.get(ORIGIN)?.to_str().ok()?;
    let (address, proof) = told.split_once(' ').unwrap_or((told, ""));
    let said = vouches(setup, certified, from, address, proof);
    address.parse().ok().filter(|_| said)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::http::tests::setups::setup;
    use crate::wire::{ProofSecret, Secrets};

    const CLIENT: &str = "10.0.0.7";

    fn node(id: u32, secret: Option<&str>) -> Arc<Setup> {
        let anywhere = [std::net::SocketAddr::from(([127, 0, 0, 1], 9000)); 3];
        let secret = secret.map(|secret| Arc::new(Secrets::new(ProofSecret::new(secret), None)));
        Setup { secret, ..setup(NodeId(id), &anywhere, None) }.into()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// The origin as node 1 reads it from node 2, which has another address.
    fn heard(
        speaker: Option<&str>,
        from: u32,
        hearer: Option<&str>,
        shown: Option<Certified>,
    ) -> Option<Origin> {
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED, HeaderValue::from(from));
        say_origin(&mut headers, &node(2, speaker), NodeId(1), Origin::of(address(CLIENT)));
        origin(&headers, &node(1, hearer), shown, Some(Origin::of(address("10.0.0.2"))))
    }

    #[test]
    fn only_a_proof_gives_back_what_a_client_held() {
        const PATH: &str = "/v1/roles/a%20b/release";
        const WORD: GivesBack = GivesBack { token: 7, tie: Some(9) };
        let right = Some("right");
        let heard = |speaker, hearer, shown, path: &str, wrong: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED, HeaderValue::from(2));
            WORD.say(&mut headers, &node(2, speaker), NodeId(1), PATH);
            if let Some(begins) = wrong {
                let told = headers[GIVES_BACK].to_str().expect("a text").replacen("7 9", begins, 1);
                headers.insert(GIVES_BACK, told.parse().expect("a header"));
            }
            GivesBack::heard(&headers, &node(1, hearer), shown, path)
        };
        let certified = |node| Some(Certified { node });
        assert_eq!(heard(right, right, None, PATH, None), Some(WORD));
        assert_eq!(heard(right, right, None, "/v1/roles/a%20%62/release", None), Some(WORD));
        assert_eq!(heard(None, None, certified(Some(2)), PATH, None), Some(WORD));
        for (what, said) in [
            ("another role", heard(right, right, None, "/v1/roles/b/release", None)),
            ("another order", heard(right, right, None, "/v1/roles/a%20b/renew", None)),
            ("another token", heard(right, right, None, PATH, Some("8 9"))),
            ("another tie", heard(right, right, None, PATH, Some("7 8"))),
            ("no tie", heard(right, right, None, PATH, Some("7 -"))),
            ("nothing", heard(right, right, None, PATH, Some(""))),
            ("another secret", heard(Some("wrong"), right, None, PATH, None)),
            ("no secret", heard(None, right, certified(Some(2)), PATH, None)),
            ("nothing to prove it by", heard(None, None, None, PATH, None)),
            ("no certificate", heard(None, None, certified(None), PATH, None)),
            ("another's certificate", heard(None, None, certified(Some(3)), PATH, None)),
        ] {
            assert_eq!(said, None, "{what}");
        }
    }

    #[test]
    fn only_a_member_says_where_its_messages_stand() {
        const STAMPED: Stamp = Stamp { run: 0x7f03, number: 12, given_up: 9 };
        let right = Some("right");
        let heard = |speaker, from, hearer, shown, wrong: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(FORWARDED, HeaderValue::from(from));
            say_stamp(&mut headers, &node(2, speaker), NodeId(1), STAMPED);
            if let Some(begins) = wrong {
                let told = headers[STAMP].to_str().expect("a text").replacen("7f03 12 9", begins, 1);
                headers.insert(STAMP, told.parse().expect("a header"));
            }
            stamp(&headers, &node(1, hearer), shown)
        };
        let said = Some((NodeId(2), STAMPED));
        assert_eq!(heard(right, 2, right, None, None), said);
        assert_eq!(heard(None, 2, None, None, None), said);
        assert_eq!(heard(None, 2, None, Some(Certified { node: Some(2) }), None), said);
        for (what, heard) in [
            ("another node", heard(right, 3, right, None, None)),
            ("no member", heard(None, 4, None, None, None)),
            ("another run", heard(right, 2, right, None, Some("7f04 12 9"))),
            ("another number", heard(right, 2, right, None, Some("7f03 13 9"))),
            ("more given up", heard(right, 2, right, None, Some("7f03 12 11"))),
            ("nothing", heard(None, 2, None, None, Some(""))),
            ("another secret", heard(Some("wrong"), 2, right, None, None)),
            ("another's certificate", heard(None, 2, None, Some(Certified { node: Some(3) }), None)),
        ] {
            assert_eq!(heard, None, "{what}");
        }
    }

    #[test]
    fn a_node_is_believed_where_a_call_comes_from_and_nobody_else() {
        let (client, connection) = (Origin::of(address(CLIENT)), Origin::of(address("10.0.0.2")));
        let right = Some("right");
        assert_eq!(heard(right, 2, right, None), Some(client));
        for (secret, from) in [(Some("wrong"), 2), (right, 3), (None, 2)] {
            for shown in [None, Some(Certified { node: Some(from) })] {
                assert_eq!(heard(secret, from, right, shown), Some(connection), "{secret:?} {from}");
            }
        }
        let certified = |node| Some(Certified { node });
        for shown in [None, certified(Some(2))] {
            assert_eq!(heard(None, 2, None, shown), Some(client), "there is no secret, and {shown:?}");
        }
        for shown in [certified(None), certified(Some(3))] {
            assert_eq!(heard(None, 2, None, shown), Some(connection), "there is no secret, and {shown:?}");
        }
    }
}

//! Checks which node answers at an address, before that address goes into the log (P43).
//!
//! A member that calls do not reach never catches up and never votes. So the leader first sends a message that no node knows,
//! with all headers of a call. A node checks cluster, certificate, id, mode and proof before it reads the message, and refuses
//! each with its own words. The refusal of the message itself says that all these checks have passed. The message never reaches
//! that node's loop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eldest_tls::trusting_no_certificate;
use reqwest::StatusCode;

use super::post::{self, Clients, Fault, Poster};
use crate::driver::setup::Member;
use crate::driver::setup::Setup;
use crate::types::{Boot, FORMAT, Incarnation};
use crate::wire::{Packet, Route, Sender};

/// Enough for a dial, a handshake and two calls, on a machine that is busy starting the node that is called.
const MOST: Duration = Duration::from_secs(3);

/// No node knows this message. A node that has checked the caller and its proof answers that it cannot read the message, and
/// does nothing else.
const GREETING: &str = "greeting";
const NOT_READ: &str = "bad_field";

/// Why the server at the address is not accepted as that node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stranger {
    NotReached(String),
    NoNode,
    /// A node answers, and says this.
    Another(String),
}

/// Returns whether that node of this cluster answers at the address.
pub async fn greet(setup: &Arc<Setup>, member: &Member) -> Result<(), Stranger> {
    match tokio::time::timeout(MOST, call(setup, member)).await {
        Ok(answered) => answered,
        Err(_) => Err(Stranger::NotReached(format!("no answer within {} s", MOST.as_secs()))),
    }
}

async fn call(setup: &Arc<Setup>, member: &Member) -> Result<(), Stranger> {
    let by_tls = setup.dialling().map(|certificates| certificates.dialling(Some(member.id.0)));
    let tls = by_tls.unwrap_or_else(trusting_no_certificate);
    let client = post::client(&setup.settings.timing, tls)
        .map_err(|error| Stranger::NotReached(post::cause(&error)))?;
    let sender = Sender {
        from: setup.settings.me,
        to: member.id,
        boot: Boot(0),
        incarnation: Incarnation(0),
        admitted: false,
        cluster: setup.known().cluster,
        format: FORMAT,
    };
    let (route, body) = (Route::Heartbeat, Bytes::new());
    let greeting = Packet { route, sender, message: GREETING.to_string(), body };
    let poster = Poster::new(setup.clone(), member, Clients::single(client));
    let answered = poster.prove_and_post(&greeting, MOST).await.map(drop);
    judge(answered, setup.secret.is_none() || poster.has_session())
}

/// `proves`: the called node has asked for a proof, or this node has no secret. A node without a secret refuses the greeting in
/// the same words. In a cluster that has one, the other nodes would not believe its answers, so it would never catch up.
fn judge(answered: Result<(), Fault>, proves: bool) -> Result<(), Stranger> {
    match answered {
        Err(Fault::Refused(StatusCode::BAD_REQUEST, said)) if said.starts_with(NOT_READ) => match proves {
            true => Ok(()),
            false => Err(Stranger::Another("it does not ask for a proof: it has no secret".to_string())),
        },
        Err(Fault::Refused(_, said)) if said == post::NO_REASON => Err(Stranger::NoNode),
        Err(Fault::Refused(_, said)) => Err(Stranger::Another(said)),
        Err(Fault::Unreachable(error)) => Err(Stranger::NotReached(post::cause(&error))),
        // A node refuses this message, even from a caller that it accepts.
        Ok(()) | Err(Fault::Unreadable(_) | Fault::Swallowed) => Err(Stranger::NoNode),
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stranger::NotReached(why) => write!(f, "no answer: {why}"),
            Stranger::NoNode => f.write_str("the server there is not an Eldest node"),
            Stranger::Another(said) => {
                write!(f, "the server there is not that node of this cluster: {said}")
            }
        }
    }
}

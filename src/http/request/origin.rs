//! A node that passes a call on says where it came from, and proves by the cluster's secret that it is a node who says so. Without a
//! secret it is believed, as every node is there.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::headers::FORWARDED;
use super::places::Origin;
use crate::driver::Setup;
use crate::types::NodeId;

/// `10.0.0.7 <proof>`
const ORIGIN: HeaderName = HeaderName::from_static("eldest-origin");

/// What goes along with a call that is passed on to this node.
pub fn say_origin(headers: &mut HeaderMap, setup: &Setup, to: NodeId, origin: Origin) {
    let address = origin.address().to_string();
    let me = setup.settings.me;
    let proof = setup.secret.as_ref().map(|secret| secret.vouch(me, to, &address)).unwrap_or_default();
    if let Ok(value) = HeaderValue::from_str(&format!("{address} {proof}")) {
        headers.insert(ORIGIN, value);
    }
}

/// Where a call came from: by a node's word, or by the address of its connection.
pub fn origin(headers: &HeaderMap, setup: &Setup, caller: Option<Origin>) -> Option<Origin> {
    passed_on(headers, setup).map(Origin::of).or(caller)
}

fn passed_on(headers: &HeaderMap, setup: &Setup) -> Option<IpAddr> {
    let from = NodeId(headers.get(FORWARDED)?.to_str().ok()?.parse().ok()?);
    let (address, proof) = headers.get(ORIGIN)?.to_str().ok()?.split_once(' ')?;
    let said = match &setup.secret {
        Some(secret) => secret.vouches(from, setup.settings.me, address, proof),
        None => true,
    };
    address.parse().ok().filter(|_| said)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::http::tests::setups::setup;
    use crate::wire::{Secret, Secrets};

    const CLIENT: &str = "10.0.0.7";

    fn node(id: u32, secret: Option<&str>) -> Arc<Setup> {
        let anywhere = [std::net::SocketAddr::from(([127, 0, 0, 1], 9000)); 3];
        let secret = secret.map(|secret| Arc::new(Secrets::new(Secret::new(secret), None)));
        Setup { secret, ..setup(NodeId(id), &anywhere, None) }.into()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// As node 1 takes it in that hears it from node 2, whose own address is another one.
    fn heard(speaker: Option<&str>, from: u32) -> Option<Origin> {
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED, HeaderValue::from(from));
        say_origin(&mut headers, &node(2, speaker), NodeId(1), Origin::of(address(CLIENT)));
        origin(&headers, &node(1, Some("right")), Some(Origin::of(address("10.0.0.2"))))
    }

    #[test]
    fn a_node_is_believed_where_a_call_comes_from_and_nobody_else() {
        let (client, connection) = (Origin::of(address(CLIENT)), Origin::of(address("10.0.0.2")));
        assert_eq!(heard(Some("right"), 2), Some(client));
        for (secret, from) in [(Some("wrong"), 2), (Some("right"), 3), (None, 2)] {
            assert_eq!(heard(secret, from), Some(connection), "{secret:?} {from}");
        }
    }
}

//! The addresses that a node listens on and sends to, and whether they are safe: beyond loopback a node needs a
//! cluster secret.

use super::layers::Merged;
use super::mistakes::Findings;
use super::topology::Topology;
use super::wrong::quoted;
use super::{Address, ConfigRemark, SettingPlace, WrongAccess, WrongValue};

/// The port at which exporters of this kind are expected.
const METRICS_PORT: u16 = 9464;

/// The address to listen on. Returns `None` after a mistake, here or in the topology.
pub fn listen(
    settings: &Merged,
    topology: Option<&Topology>,
    findings: &mut Findings,
) -> Option<(Address, SettingPlace)> {
    let place = settings.place("listen");
    let text = &settings.raw.listen;
    let own = topology.map(|topology| (topology.own_address(), topology.own_place.clone()));
    if text.is_empty() {
        return own;
    }
    // The setting is checked even without a topology, whose mistakes are reported as well.
    let port = own.map_or(super::address::DEFAULT_PORT, |(own, _)| own.port);
    match Address::parse_listen(text, port) {
        Ok(address) => Some((address, place)),
        Err(hint) => {
            findings.spoil(place, WrongValue::NotAnAddress { found: quoted(text), hint });
            None
        }
    }
}

/// The address for metrics. Returns `None` if none is set, and after a mistake.
pub fn metrics_listen(settings: &Merged, findings: &mut Findings) -> Option<Address> {
    let text = &settings.raw.metrics_listen;
    if text.is_empty() {
        return None;
    }
    Address::parse_listen(text, METRICS_PORT)
        .map_err(|hint| {
            let found = quoted(text);
            findings.spoil(settings.place("metrics_listen"), WrongValue::NotAnAddress { found, hint });
        })
        .ok()
}

/// The URL of a collector. Returns `None` if none is set, and after a mistake.
pub fn otlp_url(settings: &Merged, findings: &mut Findings) -> Option<String> {
    const HINT: &str = "write http://, an address and a port, such as http://127.0.0.1:4318";
    let text = &settings.raw.otlp_url;
    if text.is_empty() {
        return None;
    }
    let called = text.strip_prefix("http://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
    match called.map(Address::parse_called) {
        Some(Ok(address)) => Some(address.url()),
        _ => {
            let found = quoted(text);
            findings.spoil(settings.place("otlp_url"), WrongValue::NotAnAddress { found, hint: HINT });
            None
        }
    }
}

/// Requires a proof of peers on an exposed address: without one, any caller that reaches the node can act as its
/// peer.
pub fn check(
    listen: &Address,
    place: SettingPlace,
    proves: bool,
    settings: &Merged,
    findings: &mut Findings,
) {
    let keys = [
        "listen",
        "cluster_secret",
        "cluster_secret_file",
        "insecure",
        "tls.mode",
        "tls.cert_file",
        "tls.key_file",
        "tls.ca_file",
    ];
    let is_known = keys.iter().all(|key| settings.is_trusted(key, findings));
    if !is_known || listen.host.is_loopback() || proves {
        return;
    }
    let listen = listen.clone();
    if settings.raw.insecure {
        findings.remark(ConfigRemark::Insecure { listen });
    } else {
        findings.mistake(place, WrongAccess::Exposed { listen });
    }
}

//! Makes the configuration from the raw settings and the topology, with all rules applied.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::layers::Merged;
use super::layers::choice;
use super::mistakes::Findings;
use super::topology::Topology;
use super::{
    Config, ConfigRemark, Log, LogFormat, LogLevel, WrongTopology, WrongValue, anonymous, areas, exposure,
    ranges, relations, secrets, tls, web,
};
use crate::protocol::{Ack, Limits, Mode, Takeover};
use crate::store::TOKEN_REMAINDERS;

const MODES: [(&str, Mode); 2] = [("safe", Mode::Safe), ("available", Mode::Available)];
const ACKS: [(&str, Ack); 2] = [("majority", Ack::Majority), ("all", Ack::All)];
const TAKEOVERS: [(&str, Takeover); 2] = [("never", Takeover::Never), ("when_stable", Takeover::WhenStable)];
const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];
const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

/// In available mode two sides never grant the same fencing token, because each leader has its own remainder (P42).
fn check_remainders(topology: &Topology, findings: &mut Findings) {
    let mut seen = BTreeMap::new();
    for member in &topology.members {
        let id = member.id.0;
        if let Some(other) = seen.insert(u64::from(id) % TOKEN_REMAINDERS, id) {
            let wrong = WrongTopology::SameRemainder { id, other, of: TOKEN_REMAINDERS };
            findings.mistake(topology.list_place.clone(), wrong);
        }
    }
}

/// Returns `None` only after a mistake.
pub fn settle(settings: Merged, topology: Option<Topology>, findings: &mut Findings) -> Option<Config> {
    let raw = &settings.raw;
    let mode = choice("mode", &raw.mode, &MODES, &settings, findings);
    let ack = choice("ack", &raw.ack, &ACKS, &settings, findings);
    let takeover = choice("takeover", &raw.takeover, &TAKEOVERS, &settings, findings);
    let level = choice("log.level", &raw.log.level, &LEVELS, &settings, findings);
    let format = choice("log.format", &raw.log.format, &FORMATS, &settings, findings);
    if raw.data.is_empty() {
        findings.spoil(settings.place("data"), WrongValue::Empty);
    }
    ranges::check(&settings, findings);
    relations::check(mode, &settings, findings);
    let area_bytes = areas::read(&settings, findings);
    let secret = secrets::cluster(&settings, findings);
    let admin_token = secrets::admin_token(&settings, findings);
    let tls = tls::check(topology.as_ref(), &settings, findings);
    let (allowed_hosts, allowed_origins) =
        (web::hosts(&settings, findings), web::origins(&settings, findings));
    let listen = exposure::listen(&settings, topology.as_ref(), findings);
    if let Some((listen, place)) = &listen {
        // A node that takes no call without a certificate knows its peers by their certificates.
        let proves = secret.is_some() || tls.as_ref().is_some_and(|tls| !tls.takes_plain);
        exposure::check(listen, place.clone(), proves, &settings, findings);
    }
    let metrics_listen = exposure::metrics_listen(&settings, findings);
    let otlp_url = exposure::otlp_url(&settings, findings);
    let anonymous = anonymous::read(listen.as_ref().map(|(listen, _)| listen), &settings, findings);
    if let Some((anonymous, (listen, _))) = anonymous.as_ref().zip(listen.as_ref()) {
        anonymous::check(anonymous, admin_token.is_some(), listen, findings);
    }
    let topology = topology?;
    if mode == Some(Mode::Available) {
        check_remainders(&topology, findings);
    }
    let nodes = topology.members.len();
    if mode == Some(Mode::Safe) && nodes.is_multiple_of(2) {
        findings.remark(ConfigRemark::EvenCluster { nodes });
    }
    Some(Config {
        cluster_name: topology.cluster,
        me: topology.me,
        members: topology.members,
        mode: mode?,
        ack: ack?,
        takeover: takeover?,
        timing: raw.timing.timing(),
        limits: Limits { area_bytes: area_bytes?, ..raw.limits.limits() },
        http: raw.limits.http(),
        snapshot_every: raw.snapshot_every,
        data: PathBuf::from(&raw.data),
        listen: listen?.0,
        metrics_listen,
        otlp_url,
        secret,
        secret_file: Some(&raw.cluster_secret_file).filter(|file| !file.is_empty()).map(PathBuf::from),
        tls,
        backup: raw.backup.settled(),
        admin_token,
        insecure: raw.insecure,
        anonymous: anonymous?,
        audit: Some(&raw.audit.file).filter(|file| !file.is_empty()).map(PathBuf::from),
        allowed_hosts,
        allowed_origins,
        log: Log { level: level?, format: format? },
    })
}

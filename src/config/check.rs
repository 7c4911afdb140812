//! From raw settings and a topology to the configuration, every rule applied.

use std::path::PathBuf;

use super::layers::Merged;
use super::mistakes::Findings;
use super::topology::Topology;
use super::wrong::quoted;
use super::{Config, Log, LogFormat, LogLevel, Remark, WrongValue, exposure, ranges, relations, secrets};
use crate::protocol::{Ack, Mode, Takeover};

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

/// None only after a mistake.
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
    let (value, file) = (&raw.cluster_secret, &raw.cluster_secret_file);
    let secret = secrets::find(&secrets::CLUSTER, value, file, &settings, findings);
    let (value, file) = (&raw.admin_token, &raw.admin_token_file);
    let admin_token = secrets::find(&secrets::ADMIN, value, file, &settings, findings);
    let listen = exposure::listen(&settings, topology.as_ref(), findings);
    if let Some((listen, place)) = &listen {
        exposure::check(listen, place.clone(), secret.as_ref(), &settings, findings);
    }
    let topology = topology?;
    let nodes = topology.members.len();
    if mode == Some(Mode::Safe) && nodes.is_multiple_of(2) {
        findings.remark(Remark::EvenCluster { nodes });
    }
    Some(Config {
        cluster_name: topology.cluster,
        me: topology.me,
        members: topology.members,
        mode: mode?,
        ack: ack?,
        takeover: takeover?,
        timing: raw.timing.timing(),
        limits: raw.limits.limits(),
        http: raw.limits.http(),
        snapshot_every: raw.snapshot_every,
        data: PathBuf::from(&raw.data),
        listen: listen?.0,
        secret,
        admin_token,
        insecure: raw.insecure,
        log: Log { level: level?, format: format? },
    })
}

fn choice<T: Copy>(
    path: &str,
    found: &str,
    choices: &[(&'static str, T)],
    settings: &Merged,
    findings: &mut Findings,
) -> Option<T> {
    let chosen = choices.iter().find(|(name, _)| *name == found).map(|(_, chosen)| *chosen);
    if chosen.is_none() {
        let choices = choices.iter().map(|(name, _)| *name).collect();
        findings.spoil(settings.place(path), WrongValue::NotOneOf { found: quoted(found), choices });
    }
    chosen
}

//! Defaults, file, environment, flags: the later source overrules the earlier one, key by key.

use super::Start;
use crate::config::{Flags, LogFlags, LogLevel};
use crate::protocol::Ack;
use crate::types::{NodeId, Span};

const FILE: &str = "data = 'file'\n[log]\nlevel = 'warn'\n[timing]\nheartbeat_ms = 110\nlease_ms = 310\n";

fn env() -> Vec<(String, String)> {
    let pairs = [("ELDEST_DATA", "env"), ("ELDEST_LOG__LEVEL", "debug"), ("ELDEST_TIMING__LEASE_MS", "320")];
    pairs.map(|(name, text)| (name.to_string(), text.to_string())).to_vec()
}

fn flags() -> Flags {
    let log = LogFlags { level: Some("error".to_string()), ..LogFlags::default() };
    Flags { data: Some("flag".to_string()), log, ..Flags::default() }
}

#[test]
fn each_layer_overrules_the_ones_below() {
    let seen = |start: Start| {
        let config = start.good();
        let timing = config.timing;
        let ms = [timing.heartbeat, timing.lease, timing.dead_after].map(|span| span.0 / 1000);
        (config.data.display().to_string(), config.log.level, ms)
    };
    let file = Start::config(FILE);
    let with_env = Start { env: env(), ..file.clone() };
    let with_flags = Start { flags: flags(), ..with_env.clone() };
    assert_eq!(seen(Start::default()), ("data".to_string(), LogLevel::Info, [100, 300, 500]));
    assert_eq!(seen(file), ("file".to_string(), LogLevel::Warn, [110, 310, 500]));
    assert_eq!(seen(with_env), ("env".to_string(), LogLevel::Debug, [110, 320, 500]));
    assert_eq!(seen(with_flags), ("flag".to_string(), LogLevel::Error, [110, 320, 500]));
}

#[test]
fn the_order_of_the_environment_does_not_matter() {
    let backwards = Start { env: env().into_iter().rev().collect(), ..Start::default() };
    assert_eq!(backwards.good().timing.lease, Span::millis(320));
}

#[test]
fn a_mistake_is_found_even_where_it_is_overruled() {
    let start = Start { env: env(), ..Start::config("data = 5\n[timing]\nlease_ms = 'soon'\n") };
    let expected = [
        "config.toml: data: 5 has the wrong type: write a string in quotes",
        "config.toml: timing.lease_ms: \"soon\" has the wrong type: write an integer without quotes, sign or unit",
    ];
    assert_eq!(start.bad(), expected);
}

#[test]
fn what_is_wrong_is_named_after_the_layer_that_said_it() {
    let mut flags = flags();
    flags.log.level = Some("loud".to_string());
    let start = Start { flags, ..Start::env(&[("ELDEST_LIMITS__BATCH", "0"), ("ELDEST_ACK", "most")]) };
    let expected = [
        "ELDEST_ACK: \"most\" is not a known value: write \"majority\" or \"all\"",
        "ELDEST_LIMITS__BATCH: 0 is out of range: write an integer from 1 to 100000000",
        "--log-level: \"loud\" is not a known value: write \"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
    ];
    assert_eq!(start.bad(), expected);
}

#[test]
fn variables_are_read_as_their_keys_want() {
    let secret = "00112233445566778899";
    let pairs =
        [("ELDEST_CLUSTER_SECRET", secret), ("ELDEST_INSECURE", "true"), ("Eldest_Ack", "all"), ("PATH", "")];
    let config = Start::env(&pairs).good();
    assert_eq!(config.secret.unwrap().first.expose(), secret);
    assert!(config.insecure && config.ack == Ack::All);
    let found = Start::env(&[("ELDEST_INSECURE", "yes"), ("ELDEST_LIMITS__BATCH", "ten")]).bad();
    let expected = [
        "ELDEST_INSECURE: \"yes\" has the wrong type: write true or false",
        "ELDEST_LIMITS__BATCH: \"ten\" has the wrong type: write an integer without quotes, sign or unit",
    ];
    assert_eq!(found, expected);
}

#[test]
fn misspelt_variables_are_mistakes() {
    let pairs = [
        ("ELDEST_TIMNG__LEASE_MS", "1"),
        ("ELDEST_TIMING_HEARTBEAT_MS", "1"),
        ("ELDEST_Data", "a"),
        ("ELDEST_DATA", "b"),
    ];
    let expected = [
        "ELDEST_DATA: is given twice: keep one",
        "ELDEST_TIMING_HEARTBEAT_MS: unknown key: did you mean ELDEST_TIMING__HEARTBEAT_MS?",
        "ELDEST_TIMNG__LEASE_MS: unknown key: did you mean ELDEST_TIMING__LEASE_MS?",
    ];
    assert_eq!(Start::env(&pairs).bad(), expected);
}

#[test]
fn variables_of_orchestrators_are_ignored_with_a_remark() {
    let pairs = [
        ("ELDEST_SERVICE_HOST", "10.0.0.1"),
        ("ELDEST_SERVICE_PORT", "9000"),
        ("ELDEST_SERVICE_PORT_HTTP", "9000"),
        ("ELDEST_PORT", "tcp://10.0.0.1:9000"),
        ("ELDEST_PORT_9000_TCP", "tcp://10.0.0.1:9000"),
        ("ELDEST_PORT_9000_TCP_PROTO", "tcp"),
        ("ELDEST_PORT_9000_TCP_PORT", "9000"),
        ("ELDEST_PORT_9000_TCP_ADDR", "10.0.0.1"),
        ("ELDEST_CONFIG", "for the command line"),
        ("ELDEST_TOPOLOGY", "for the command line"),
    ];
    let remarks = Start::env(&pairs).remarks();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].starts_with("not settings, ignored: ELDEST_PORT, ") && !remarks[0].contains("CONFIG"));
}

#[test]
fn the_node_is_chosen_by_flag_then_environment_then_topology() {
    let file = Start::default();
    let with_env = Start::env(&[("ELDEST_NODE", "2")]);
    let with_flag = Start { flags: Flags { node: Some(3), ..Flags::default() }, ..with_env.clone() };
    assert_eq!([file, with_env, with_flag].map(|start| start.good().me), [NodeId(1), NodeId(2), NodeId(3)]);
    let wrong = Start::env(&[("ELDEST_NODE", "two")]).bad();
    assert_eq!(
        wrong,
        ["ELDEST_NODE: \"two\" has the wrong type: write an integer without quotes, sign or unit"]
    );
    let unknown = Start { flags: Flags { node: Some(4), ..Flags::default() }, ..Start::default() };
    assert_eq!(unknown.bad(), ["--node: no node in clusters has id 4: use one of 1, 2, 3"]);
}

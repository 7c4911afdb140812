//! Each rule about settings by itself.

use super::{LOCAL, Start};
use crate::config::Flags;
use crate::protocol::{Ack, Mode, Takeover};
use crate::types::Span;

/// The same three nodes with addresses that other machines can reach.
fn exposed() -> String {
    LOCAL.replace("127.0.0", "10.0.0")
}

fn timing(keys: &str) -> Vec<String> {
    Start::config(&format!("[timing]\n{keys}")).bad()
}

#[test]
fn choices() {
    let config = Start::config("mode = 'safe'\nack = 'all'\ntakeover = 'when_stable'").good();
    assert_eq!((config.ack, config.takeover), (Ack::All, Takeover::WhenStable));
    let settings = config.settings();
    assert_eq!((settings.ack, settings.takeover), (Ack::All, Takeover::WhenStable));
    let found =
        Start::config("mode = ''\nack = ''\ntakeover = 'always'\nlog.format = 'xml'\ndata = ''").bad();
    let expected = [
        "config.toml: ack: \"\" is not a known value: write \"majority\" or \"all\"",
        "config.toml: data: is empty: write at least one character",
        "config.toml: log.format: \"xml\" is not a known value: write \"text\" or \"json\"",
        "config.toml: mode: \"\" is not a known value: write \"safe\" or \"available\"",
        "config.toml: takeover: \"always\" is not a known value: write \"never\" or \"when_stable\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn modes() {
    for (text, mode, name) in [("safe", Mode::Safe, "safe"), ("available", Mode::Available, "available")] {
        let config = Start::config(&format!("mode = '{text}'")).good();
        assert_eq!((config.mode, config.settings().mode, config.mode.name()), (mode, mode, name));
    }
    assert_eq!(Start::env(&[("ELDEST_MODE", "available")]).good().mode, Mode::Available);
    assert_eq!(Start::default().good().mode, Mode::Safe);
}

#[test]
fn in_available_mode_an_even_number_is_as_good_as_an_odd_one() {
    let topology =
        LOCAL.replace("\"id\": 3}", "\"id\": 3},\n {\"name\": \"n4\", \"ip\": \"127.0.0.4\", \"id\": 4}");
    let remark = "a cluster of 4 tolerates no more failures than one of 3 (1): use an odd number of nodes";
    assert_eq!(Start::topology(&topology).remarks(), [remark]);
    let available = Start { topology, ..Start::config("mode = 'available'") };
    assert_eq!(available.remarks(), [""; 0]);
}

#[test]
fn leaders_are_asked_no_more_often_than_followers_are_told() {
    let found = Start::config("mode = 'available'\ntiming.poll_ms = 99").bad();
    let line = "config.toml: timing.poll_ms: poll_ms must not be below heartbeat_ms, or leaders ask each other \
        more often than they contact their followers; here poll_ms = 99, heartbeat_ms = 100";
    assert_eq!(found, [line]);
    // No node polls in safe mode.
    assert_eq!(Start::config("timing.poll_ms = 99").good().timing.poll, Span::millis(99));
    assert_eq!(timing("poll = 5"), ["config.toml: timing.poll: unknown key: did you mean poll_ms?"]);
}

#[test]
fn numbers_have_ranges() {
    for (text, line) in [
        ("snapshot_every = 0", "snapshot_every: 0 is out of range: write an integer from 1 to 100000000"),
        (
            "timing.hold_most_ms = 99999999999",
            "timing.hold_most_ms: 99999999999 is out of range: write an integer from 0 to 86400000",
        ),
        ("timing.poll_ms = 0", "timing.poll_ms: 0 is out of range: write an integer from 1 to 86400000"),
        (
            "limits.body_bytes = 1048576",
            "limits.body_bytes: 1048576 is out of range: write an integer from 1114112 to 1073741824",
        ),
        (
            "limits.batch = -1",
            "limits.batch: -1 has the wrong type: write an integer without quotes, sign or unit",
        ),
        (
            "limits.batch = 1.5",
            "limits.batch: 1.5 has the wrong type: write an integer without quotes, sign or unit",
        ),
    ] {
        assert_eq!(Start::config(text).bad(), [format!("config.toml: {line}")]);
    }
}

#[test]
fn timings_do_not_contradict_each_other() {
    let patience = "config.toml: timing.lease_ms: lease_ms must not outlast dead_after_ms: a silent leader is suspected by \
                    then (P11); here lease_ms = 1500, dead_after_ms = 500";
    assert_eq!(timing("lease_ms = 1500"), [patience]);
    // The mistake is reported at the one of the two keys that is set.
    let lost_beat = "config.toml: timing.heartbeat_ms: dead_after_ms must cover two beats, or one lost beat would count as a death \
                     (P3); here dead_after_ms = 500, heartbeat_ms = 300";
    assert_eq!(timing("heartbeat_ms = 300\nlease_ms = 400"), [lost_beat]);
    let hold = "config.toml: timing.hold_most_ms: hold_ms must not be above hold_most_ms, the limit of its doubling; here \
                hold_ms = 10000, hold_most_ms = 9";
    assert_eq!(timing("hold_most_ms = 9"), [hold]);
}

#[test]
fn a_mistaken_number_contradicts_nothing() {
    // With the default in place of the misspelt, shortened or mistyped value, each of these would contradict a lease
    // of 2 s.
    for keys in ["dead_after_mss = 5000", "dead_after = 5000", "dead_after_ms = '5s'", "dead_after_ms = 0"] {
        assert_eq!(timing(&format!("lease_ms = 2000\n{keys}")).len(), 1, "{keys}");
    }
    assert_eq!(Start::config("timing = 5\nlimits = []").bad().len(), 2);
    // A value that a higher layer corrects is judged.
    let corrected = Start {
        config: Some("timing.lease_ms = ''".to_string()),
        ..Start::env(&[("ELDEST_TIMING__LEASE_MS", "5000")])
    };
    assert_eq!(corrected.bad().len(), 2);
}

#[test]
fn the_largest_body_can_be_written() {
    let found = Start::config("limits.uncommitted_bytes = 4000000").bad();
    let line = "config.toml: limits.uncommitted_bytes: body_bytes must be below uncommitted_bytes, or the largest body is \
                always refused; here body_bytes = 4259840, uncommitted_bytes = 4000000";
    assert_eq!(found, [line]);
}

#[test]
fn beyond_loopback_a_secret_is_wanted() {
    let both_ways_out = "10.0.0.1:9000 can be reached from other machines, and there is no cluster secret: set \
        cluster_secret_file to a file with the same secret on every node, or set insecure = true to trust \
        anyone who reaches it";
    let found = Start::topology(&exposed()).bad();
    assert_eq!(found, [format!("topology.json: clusters[0].ip: {both_ways_out} (line 4, column 26)")]);
    let listening = Start { config: Some("listen = '0.0.0.0:80'".to_string()), ..Start::default() }.bad();
    assert!(listening[0].starts_with("config.toml: listen: 0.0.0.0:80 can be reached"), "{listening:?}");

    let secret = "cluster_secret = '0123456789abcdef'\n";
    let with = |more: &str| Start { topology: exposed(), ..Start::config(&format!("{secret}{more}")) };
    let nobody = "clients are refused at 10.0.0.1:9000: calls without a token are granted nothing (anonymous), \
        and without an admin token no token can be created (admin_token_file)";
    assert_eq!(with("").remarks(), [nobody]);
    assert_eq!(with("admin_token = '0123456789abcdef'").remarks(), [""; 0]);
    assert_eq!(with("anonymous = 'read docs/public/'").remarks(), [""; 0]);
    let behind = Start { topology: exposed(), ..Start::config("listen = '127.0.0.1'") }.good();
    assert_eq!(behind.listen.to_string(), "127.0.0.1:9000");
    let insecure =
        Start { flags: Flags { insecure: Some(true), ..Flags::default() }, ..Start::topology(&exposed()) };
    let remark = "insecure: anyone who reaches 10.0.0.1:9000 can act as a node of the cluster";
    assert_eq!(insecure.remarks(), [remark]);
    assert_eq!(Start::config("insecure = true").remarks(), [""; 0]);
}

#[test]
fn what_a_call_without_a_token_may_do() {
    let said = |start: Start| start.good().anonymous.said();
    let all = "read,write,watch *";
    assert_eq!(said(Start::default()), all, "on loopback");
    assert_eq!(said(Start::config("anonymous = 'none'")), "none");
    assert_eq!(
        said(Start::config("anonymous = 'watch *; write,read docs/p/'")),
        "watch *; read,write docs/p/"
    );
    let beyond = "cluster_secret = '0123456789abcdef'\nadmin_token = '0123456789abcdef'";
    assert_eq!(said(Start { topology: exposed(), ..Start::config(beyond) }), "none");
    assert_eq!(said(Start { topology: exposed(), ..Start::config("insecure = true") }), all);
    for (text, why) in [
        ("reed docs", "\"reed docs\" has an unknown verb: use read, write, watch or order"),
        ("read *; order", "\"order\" cannot be granted to anonymous callers: set an admin token"),
    ] {
        let found = Start::config(&format!("anonymous = '{text}'")).bad();
        assert_eq!(found, [format!("config.toml: anonymous: {why}")]);
    }
}

#[test]
fn listening_wants_an_address() {
    let found = Start::config("listen = 'n1:port'").bad();
    let line = "config.toml: listen: \"n1:port\" is not an address: write an address with or without a port, such as \
                0.0.0.0:9000";
    assert_eq!(found, [line]);
}

#[test]
fn secrets_are_long_enough_and_given_once() {
    for (text, line) in [
        (
            "cluster_secret = ' 123456789012345 '",
            "cluster_secret: has only 15 bytes and can be guessed: write at least 16 random bytes",
        ),
        (
            "admin_token = 'one two three four'",
            "admin_token: cannot be sent in a header: use printable ASCII characters without spaces",
        ),
        (
            "cluster_secret = 'a'\ncluster_secret_file = 'b'",
            "cluster_secret: conflicts with cluster_secret_file: keep one of the two",
        ),
        (
            "cluster_secret_file = 'no/such'",
            "cluster_secret_file: the file \"no/such\" cannot be read: No such file or directory (os error 2)",
        ),
        (
            "cluster_secret_file = 'Cargo.lock'",
            "cluster_secret_file: the file \"Cargo.lock\" is longer than 4096 bytes: use another file",
        ),
        (
            "cluster_secret = \"0123456789abcdef\\nfedcba9876543210\\n\\nand a third of them\"",
            "cluster_secret: has 3 lines: write the secret on the first line and, while it is being changed, a \
                second accepted secret on the next",
        ),
        (
            "cluster_secret = \"0123456789abcdef\\nshort\"",
            "cluster_secret: has only 5 bytes and can be guessed: write at least 16 random bytes",
        ),
        (
            "cluster_secret = 1234567890123456",
            "cluster_secret: this value has the wrong type: write a string in quotes",
        ),
    ] {
        // If a secret is given and bad, the message that a secret is needed does not appear as well.
        let start = Start { topology: exposed(), ..Start::config(text) };
        let start =
            if text.contains("admin") { Start { topology: LOCAL.to_string(), ..start } } else { start };
        assert_eq!(start.bad(), [format!("config.toml: {line}")]);
    }
}

/// P51: if the secret or certificates prove the caller's identity, another node's word counts.
#[test]
fn who_speaks_is_proved_by_a_secret_or_by_certificates() {
    let config = Start::default().good();
    assert!(!config.settings().peers_prove);
    let tls = |takes_plain| {
        let files =
            eldest_tls::NodeFiles { cert: "c".into(), key: "k".into(), ca: "a".into(), client_ca: None };
        let tls =
            crate::config::TlsSettings { files, dials: true, takes_plain, client_certs_required: false };
        crate::config::Config { tls: Some(tls), ..config.clone() }
    };
    assert!(tls(false).settings().peers_prove);
    assert!(!tls(true).settings().peers_prove, "anybody may call it without one");
}

#[test]
fn tls_wants_its_files() {
    let missing = |key: &str| {
        format!(
            "config.toml: tls.{key}: the file \"no/such\" cannot be read: No such file or directory (os error 2)"
        )
    };
    let files =
        "cert_file = 'no/such'\nkey_file = 'no/such'\nca_file = 'no/such'\nclient_ca_file = 'no/such'";
    let keys = ["ca_file", "cert_file", "client_ca_file", "key_file"];
    let bad = Start::config(&format!("[tls]\nmode = 'accept'\n{files}")).bad();
    assert_eq!(bad, keys.map(missing), "every file at once");
    let given = "is missing, and tls.mode needs it: give a PEM file (`eldest cert init` creates one)";
    let bad = Start::config("[tls]\nmode = 'prefer'\nclient_certs = 'maybe'").bad();
    let keys = ["tls.ca_file", "tls.cert_file"];
    assert_eq!(&bad[..2], keys.map(|key| format!("default: {key}: {given}")));
    assert_eq!(
        bad[3],
        "config.toml: tls.client_certs: \"maybe\" is not a known value: write \"optional\" or \"required\""
    );
    let off = Start::config(&format!("[tls]\n{files}"));
    assert_eq!(off.remarks(), ["the certificates in [tls] are not used: tls.mode is \"off\""]);
    assert!(Start::default().good().tls.is_none());
}

#[test]
fn secrets_are_trimmed_and_never_shown() {
    let config =
        Start::config("cluster_secret = '  top-secret-top-secret\n'\nadmin_token = 'secret-of-the-admin'")
            .bad();
    assert!(!config.concat().contains("top-secret"), "a syntax error shows no line: {config:?}");
    let config =
        Start::config("cluster_secret = ' top-secret-top-secret '\nadmin_token = 'secret-of-the-admin'")
            .good();
    assert!(!format!("{config:?}").contains("secret-"), "{config:?}");
    assert_eq!(config.secret.unwrap().first.expose(), "top-secret-top-secret");
    assert_eq!(config.admin_token.unwrap().expose(), "secret-of-the-admin");
}

#[test]
fn the_digests_are_of_ids_and_of_mode_and_timings() {
    let digest = |start: Start| start.good().digest();
    let plain = digest(Start::default());
    assert_eq!(plain, 1_422_484_213_839_122_969, "a new value here keeps old and new nodes apart");
    let moved = LOCAL.replace("127.0.0.3", "127.0.0.9").replace("\"n3\"", "\"n9\"");
    assert_eq!(digest(Start::topology(&moved)), plain);
    assert_eq!(
        digest(Start::env(&[("ELDEST_NODE", "2"), ("ELDEST_ACK", "all"), ("ELDEST_LIMITS__BATCH", "5")])),
        plain
    );
    let renumbered = LOCAL.replace("\"id\": 3", "\"id\": 4");
    assert_eq!(digest(Start::topology(&renumbered)), plain);
    let ids = |text: &str| Start::topology(text).good().ids_digest();
    assert_eq!(ids(&moved), ids(LOCAL));
    assert_ne!(ids(&renumbered), ids(LOCAL));
    for key in ["heartbeat_ms = 101", "drift_percent = 2", "hold_most_ms = 600001", "stagger_ms = 0"] {
        assert_ne!(digest(Start::config(&format!("timing.{key}"))), plain, "{key}");
    }
    // No node polls in safe mode.
    assert_eq!(digest(Start::config("timing.poll_ms = 999")), plain);
    let available = digest(Start::config("mode = 'available'"));
    assert_ne!(available, plain);
    assert_ne!(digest(Start::config("mode = 'available'\ntiming.poll_ms = 999")), available);
}

//! Everything is wrong at once, and one answer reports every mistake.

use super::Start;
use crate::config::Flags;

const CONFIG: &str = r#"
mode = "avialable"
ack = "quorum"
snapshots = 5
listen = "everywhere:80:80"
cluster_secret = "hunter2"
heartbeat_ms = 5

[log]
level = 3
formt = "json"

[timing]
dead_after_ms = "1s"
lease_ms = 50
window_ms = 10
drift_percent = 30
hold = 7

[limits]
batch = 0
body_bytes = 99999999999
idle_timeout = 75

[tls]
certificate = "a.pem"
"#;

const TOPOLOGY: &str = r#"{
  /* Two
     lines. */
  "node": {"name": "zed", "id": 1, "role": "leader"},
  "cluster": "My Cluster",
  "clusters": [
    {"name": "n1", "ip": "192.168.1.10", "id": 1},
    {"name": "n1", "ip": "10.0.0", "id": 0}, // "id": 1
    {"name": "", "ip": "192.168.1.10", "id": 1, "prot": 9001},
    {"name": "n4", "id": "4", "port": 99999},
    "n5"
  ]
}
"#;

const ALL: [&str; 34] = [
    "33 mistakes in the configuration:",
    "config.toml: ack: \"quorum\" is not a known value: write \"majority\" or \"all\"",
    "config.toml: cluster_secret: has only 7 bytes and can be guessed: write at least 16 random bytes",
    "config.toml: heartbeat_ms: unknown key: did you mean timing.heartbeat_ms?",
    "config.toml: limits.batch: 0 is out of range: write an integer from 1 to 100000000",
    "config.toml: limits.body_bytes: 99999999999 is out of range: write an integer from 1114112 to 1073741824",
    "config.toml: limits.idle_timeout: unknown key: did you mean idle_timeout_ms?",
    "config.toml: listen: \"everywhere:80:80\" is not an address: write an address with or without a \
     port, such as 0.0.0.0:9000",
    "config.toml: log.formt: unknown key: did you mean format?",
    "config.toml: log.level: 3 has the wrong type: write a string in quotes",
    "config.toml: mode: \"avialable\" is not a known value: write \"safe\" or \"available\"",
    "config.toml: snapshots: unknown key: use one of ack, admin_token, admin_token_file, \
     allowed_hosts, allowed_origins, anonymous, audit, backup, cluster_secret, cluster_secret_file, data, insecure, limits, listen, log, metrics_listen, mode, \
     otlp_url, snapshot_every, takeover, timing, tls",
    "config.toml: timing.dead_after_ms: \"1s\" has the wrong type: write an integer without quotes, sign or unit",
    "config.toml: timing.drift_percent: drift_percent must be below 25: the leader counts a lease \
     shortened by twice that (P11); here drift_percent = 30",
    "config.toml: timing.hold: unknown key: did you mean hold_ms?",
    "config.toml: tls.certificate: unknown key: use one of ca_file, cert_file, client_ca_file, \
     client_certs, key_file, mode",
    "topology.json: node.name: \"zed\" is \"n1\" in clusters[0]: use the same name in both (line 4, \
     column 20)",
    "topology.json: node.role: unknown key: use one of name, id (line 4, column 44)",
    "topology.json: cluster: \"My Cluster\" is not a valid name: use 1 to 64 characters of a to z, 0 to 9 and - \
     (line 5, column 14)",
    "topology.json: clusters[1].name: \"n1\" is already used by clusters[0]: use another (line 8, column 14)",
    "topology.json: clusters[1].ip: \"10.0.0\" is not an address: an IPv4 address has four numbers from \
     0 to 255, such as 192.168.1.10 (line 8, column 26)",
    "topology.json: clusters[1].id: 0 is out of range: write an integer from 1 to 2147483648 (line \
     8, column 42)",
    "topology.json: clusters[2].name: \"\" is not a valid name: use 1 to 128 characters, no control characters \
        (line 9, column 14)",
    "topology.json: clusters[2].ip: 192.168.1.10:9000 is already used by clusters[0]: use another (line 9, \
     column 24)",
    "topology.json: clusters[2].id: 1 is already used by clusters[0]: use another (line 9, column 46)",
    "topology.json: clusters[2].prot: unknown key: did you mean port? (line 9, column 57)",
    "topology.json: clusters[3].ip: is missing: write a string in quotes (line 10, column 5)",
    "topology.json: clusters[3].id: \"4\" has the wrong type: write an integer without quotes, sign or unit \
        (line 10, column 26)",
    "topology.json: clusters[3].port: 99999 is out of range: write an integer from 1 to 65535 (line \
     10, column 39)",
    "topology.json: clusters[4]: \"n5\" has the wrong type: write an object, {…} (line 11, column 5)",
    "ELDEST_LIMITS__READS: \"many\" has the wrong type: write an integer without quotes, sign or unit",
    "ELDEST_TIMING__WINDOW: unknown key: did you mean ELDEST_TIMING__WINDOW_MS?",
    "--admin-token-file: the file \"no/such\" cannot be read: No such file or directory (os error 2)",
    "--data: is empty: write at least one character",
];

#[test]
fn all_mistakes_are_reported_at_once() {
    let env = [("ELDEST_LIMITS__READS", "many"), ("ELDEST_TIMING__WINDOW", "5"), ("ELDEST_SERVICE_HOST", "")];
    let env = env.map(|(name, text)| (name.to_string(), text.to_string())).to_vec();
    let flags = Flags {
        data: Some(String::new()),
        admin_token_file: Some("no/such".to_string()),
        ..Flags::default()
    };
    let start = Start { config: Some(CONFIG.to_string()), topology: TOPOLOGY.to_string(), env, flags };
    let found = start.run().unwrap_err().to_string();
    assert_eq!(found, ALL.join("\n  "), "\n{found}\n");
}

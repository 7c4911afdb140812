//! A cluster that uses TLS: authentication, renewal while it runs, and the change to TLS and back.

#[path = "tls/clients.rs"]
mod clients;
#[path = "tls/renewal.rs"]
mod renewal;
#[path = "tls/rolling.rs"]
mod rolling;

use std::sync::Arc;
use std::time::Duration;

use eldest_tls::rustls::pki_types::ServerName;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType,
};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::{
    Call, Certs, Cluster, Plan, Raw, Silence, client_with, eldest, peer_problem, wait_for, watch_for,
};

const REQUIRE: &str = "mode = \"require\"";

/// It only makes a test fail.
const PATIENCE: Duration = Duration::from_secs(60);

/// A separate connection to this node, with the cluster's CA.
async fn connect(cluster: &Cluster, id: u32) -> TlsStream<TcpStream> {
    let ip = cluster.node(id).ip;
    let config = cluster.certs().files(None).config().expect("files in order");
    let name = ServerName::from(std::net::IpAddr::from(ip));
    let connecting = async {
        let stream = TcpStream::connect((ip, 9000)).await.expect("it listens");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
    };
    tokio::time::timeout(PATIENCE, connecting).await.expect("a handshake has its end")
}

#[tokio::test]
async fn three_nodes_form_a_cluster_and_replace_their_leader() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    cluster.write_doc("k", 1).await;
    let leader = cluster.leader().await;
    let url = cluster.status_of(leader, "leader").await["url"].clone();
    assert_eq!(url, cluster.node(leader).url(), "clients are sent to where TLS is spoken");
    cluster.kill9(leader);
    cluster.write_doc("k", 2).await;
    cluster.start(leader);
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(cluster.read_doc(leader, "k", "linear").await, Some(2));
}

/// A beat that says it comes from node 3. The sender is checked before the contents.
fn beat_of_3() -> Call {
    Call::post("/heartbeat")
        .header("eldest-cluster", "it mode=safe settings=00000000000000aa")
        .header("eldest-from", "3 to=1 boot=9f incarnation=4c admitted=yes format=1")
        .header("eldest-message", "heartbeat term=9999.3/1 round=1 lease=0 commit=0 heir=0 boundary=0")
}

/// A certificate of the cluster's own CA for node 3 that ended years ago.
fn expired(certs: &Certs) -> String {
    let read = |name| std::fs::read_to_string(certs.path(name)).expect("a file of the CA");
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, "Eldest CA of it");
    let mut ca = CertificateParams::default();
    ca.distinguished_name = called;
    let issuer = Issuer::new(ca, KeyPair::from_pem(&read("ca.key")).expect("a key"));
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI("eldest://it/node/3".try_into().expect("a name"))];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    std::fs::write(certs.path("expired.crt"), certificate.pem()).expect("a file");
    std::fs::write(certs.path("expired.key"), key.serialize_pem()).expect("a file");
    "expired".to_string()
}

#[tokio::test]
async fn a_peer_is_who_its_certificate_says() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    let (certs, epoch) = (cluster.certs(), cluster.status_of(1, "epoch").await);
    let say = async |shown: Option<&str>| {
        beat_of_3().send(&client_with(&certs.files(shown)), &cluster.node(1).url()).await
    };
    let somebody = certs.client("somebody");
    for shown in [None, Some("node-2"), Some(somebody.as_str())] {
        let answer = say(shown).await.expect("an answer");
        let body = peer_problem(&answer, 403, "forbidden");
        assert!(body["detail"].as_str().expect("text").contains("node 3"), "{shown:?}: {body}");
    }
    // The sender is believed, and then the contents are judged, which are wrong.
    peer_problem(&say(Some("node-3")).await.expect("an answer"), 409, "mode_mismatch");
    let expired = expired(certs);
    let silent = say(Some(&expired)).await;
    assert!(silent.is_err(), "expired, and answered: {silent:?}");
    let other = Certs::init(&cluster.node(1).topology_path(), cluster.folder().join("other"));
    let files = eldest_tls::ClientFiles { ca: certs.files(None).ca, ..other.files(Some("node-3")) };
    let silent = beat_of_3().send(&client_with(&files), &cluster.node(1).url()).await;
    assert!(silent.is_err(), "of another CA, and answered: {silent:?}");
    let untrusted = Call::get("/livez").send(&client_with(&other.files(None)), &cluster.node(1).url()).await;
    assert!(matches!(untrusted, Err(Silence::NotSent)), "a client believes nodes of its own CA only");
    cluster.write_doc("k", 1).await;
    assert_eq!(cluster.status_of(1, "epoch").await, epoch, "somebody was unseated");
}

/// The node is not admitted, and both the leader's status and the node's own log say why.
#[tokio::test]
async fn a_node_of_another_ca_does_not_count() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    let other = Certs::init(&cluster.node(1).topology_path(), cluster.folder().join("other"));
    cluster.kill9(3);
    cluster.configure(3, &other.table(3, REQUIRE));
    cluster.start(3);
    // Before it listens again, the trouble is that nothing listens.
    watch_for("the leader tells what is wrong with n3", async || {
        let members = cluster.status_of(cluster.leader_among(&[1, 2]).await, "members").await;
        let trouble = members[2]["trouble"].to_string();
        if trouble.contains("CA") { Ok(()) } else { Err(trouble) }
    })
    .await;
    watch_for("n3 tells it in its own log", async || {
        let log = cluster.node(3).log_tail();
        if log.contains("CA") { Ok(()) } else { Err(log) }
    })
    .await;
    cluster.write_doc("k", 1).await;
    cluster.kill9(3);
    cluster.configure(3, &cluster.certs().table(3, REQUIRE));
    cluster.start(3);
    cluster.ready().await;
    cluster.equal_states(&[1, 2, 3]).await;
}

/// Better now than after the start, when all others refuse it.
#[tokio::test]
async fn with_another_nodes_certificate_a_node_does_not_start() {
    let cluster = Plan::new(1).tls(REQUIRE).prepare();
    let certs = cluster.certs();
    let right = certs.table(1, REQUIRE);
    for (wrong, says) in [
        (right.replace("node-1.key", "ca.key"), "tls.key_file: the file"),
        (right.replace("node-1", "ca"), "eldest://it/node/1"),
        (right.replace("node-1.crt", "none.crt"), "tls.cert_file: the file"),
        ("[tls]\nmode = 'require'\n".to_string(), "tls.ca_file: is missing"),
        ("[tls]\nmode = 'on'\n".to_string(), "tls.mode: \"on\" is not a known value"),
    ] {
        cluster.configure(1, &wrong);
        cluster.start(1);
        let ended = wait_for("the process ends", async || cluster.node(1).ended()).await;
        let log = std::fs::read_to_string(cluster.node(1).stderr_path()).expect("a log");
        assert_eq!(ended.code(), Some(2), "{log}");
        assert!(log.contains(says), "{says}: {log}");
    }
}

async fn failed_handshakes(cluster: &Cluster) -> Option<u64> {
    let page = cluster.ask(1, &Call::get("/metrics")).await.ok()?.text();
    page.lines().find_map(|line| line.strip_prefix("eldest_tls_handshakes_failed_total "))?.parse().ok()
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_so() {
    let cluster = Plan::new(1).tls(REQUIRE).start().await;
    for request in
        [&b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00\x01"]
    {
        let mut raw = Raw::connect(cluster.node(1)).await;
        raw.send(request).await;
        raw.finish_sending().await;
        let answer = String::from_utf8_lossy(&raw.read_to_end().await).into_owned();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("\"tls_required\"") && answer.contains("https://"), "{answer}");
    }
    let before = failed_handshakes(&cluster).await.expect("a running node tells its numbers");
    // A broken handshake ends, and a client that only checks whether the port is open does no harm.
    let mut raw = Raw::connect(cluster.node(1)).await;
    raw.send(b"\x16\x03\x01\x00\x05hello").await;
    raw.read_to_end().await;
    wait_for("it is counted", async || (failed_handshakes(&cluster).await? > before).then_some(())).await;
    drop(Raw::connect(cluster.node(1)).await);
    cluster.write_doc("k", 1).await;
}

#[tokio::test]
async fn tls_to_a_port_that_speaks_none_is_told() {
    let cluster = Plan::new(1).start().await;
    let certs = Certs::init(&cluster.node(1).topology_path(), cluster.folder().join("certs"));
    let ca = certs.path("ca.crt").display().to_string();
    let url = cluster.node(1).url().replace("http://", "https://");
    let output = eldest(&["status", "--url", &url, "--ca", &ca]);
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{says}");
    assert!(says.contains("it does not speak TLS: call it by http://"), "{says}");
    cluster.write_doc("k", 1).await;
}

#[tokio::test]
async fn clients_show_certificates_where_they_are_wanted() {
    let cluster = Plan::new(3).tls("mode = \"require\"\nclient_certs = \"required\"").prepare();
    let certs = cluster.certs();
    let reader = certs.client("reader");
    cluster.ids().for_each(|id| cluster.start(id));
    let client = client_with(&certs.files(Some(&reader)));
    wait_for("a write is taken", async || {
        let answer = Call::put("/v1/docs/k").raw_json("1").send(&client, &cluster.node(2).url()).await;
        answer.ok().filter(crate::harness::Answer::ok)
    })
    .await;
    let nobody = Call::get("/livez").send(cluster.client(), &cluster.node(2).url()).await;
    assert!(nobody.is_err(), "no certificate, and answered: {nobody:?}");
}

#[test]
fn what_is_there_is_never_overwritten() {
    let cluster = Plan::new(2).tls("").prepare();
    let certs = cluster.certs();
    let read = |name: &str| std::fs::read(certs.path(name)).expect("a file");
    let before = read("ca.key");
    let output = certs.cert(&["init"], true);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read("ca.key"), before);
    for name in ["ca.key", "ca.crt", "node-1.key", "node-2.crt"] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(certs.path(name)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // Any user who can read it could act as this node. The rule is that of ssh: the file is refused, unless
    // user and owner are root.
    let key = certs.path("node-1.key");
    let config = cluster.folder().join("open.toml");
    std::fs::write(&config, certs.table(1, REQUIRE)).expect("a file");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("it is our own");
    let topology = cluster.node(1).topology_path().display().to_string();
    let checked =
        eldest(&["check", "--topology", &topology, "--node", "1", "--config", &config.display().to_string()]);
    let says = [checked.stdout, checked.stderr].concat();
    let says = String::from_utf8_lossy(&says);
    assert!(says.contains("tls.key_file: other users can access"), "{says}");
    assert_eq!(checked.status.success(), rustix::process::geteuid().is_root(), "{says}");
    let first = read("node-2.crt");
    assert!(certs.cert(&["node", "2", "--name", "n2.example"], true).status.success());
    assert_eq!(read("node-2.crt"), first);
    let shown = eldest(&["cert", "show", &certs.path("node-2-2.crt").display().to_string()]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for word in ["eldest://it/node/2", "n2.example", "Eldest CA of it", "days left"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert_eq!(certs.cert(&["node", "3"], true).status.code(), Some(2), "the topology has two");
    assert_eq!(certs.cert(&["client", "../x"], false).status.code(), Some(1));
}

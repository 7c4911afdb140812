//! Certificates and secrets are renewed while the cluster runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use eldest_tls::Facts;
use rustix::process::Signal;

use super::{REQUIRE, connect};
use crate::harness::{Cluster, Plan, wait_for};
use crate::load::Load;

/// The serial number of the certificate that this node shows on a new connection.
async fn serial(cluster: &Cluster, id: u32) -> String {
    let stream = connect(cluster, id).await;
    let shown = stream.get_ref().1.peer_certificates().expect("a certificate");
    Facts::read(&shown[0]).expect("a certificate").serial
}

async fn remark(cluster: &Cluster, id: u32) -> Option<String> {
    Some(cluster.status(id).await?["remark"].as_str().unwrap_or_default().to_string())
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_what_is_open_stays_open() {
    let cluster = Plan::new(3).tls(REQUIRE).start().await;
    let mut feed = cluster.events(1, "/v1/feed?kinds=change&format=ndjson").await.expect("it tells");
    let before = serial(&cluster, 1).await;
    cluster.certs().renew(1);
    cluster.node(1).signal(Signal::HUP);
    wait_for("the new certificate is shown", async || {
        Some(serial(&cluster, 1).await).filter(|now| *now != before)
    })
    .await;
    cluster.write_doc("k", 1).await;
    assert_eq!(feed.news().await["key"], "k", "the old connection goes on");

    // Half a file, as an editor leaves it: nothing changes, and the status says so.
    let (path, renewed) = (cluster.certs().path("node-1.crt"), serial(&cluster, 1).await);
    let good = fs::read(&path).expect("a file");
    fs::write(&path, &good[..good.len() / 2]).expect("a file");
    cluster.node(1).signal(Signal::HUP);
    wait_for("it is told", async || remark(&cluster, 1).await.filter(|text| text.contains("node-1.crt")))
        .await;
    assert_eq!(serial(&cluster, 1).await, renewed);
    fs::write(&path, &good).expect("a file");
    cluster.node(1).signal(Signal::HUP);
    wait_for("it is well again", async || remark(&cluster, 1).await.filter(String::is_empty)).await;

    // Nodes that connect to it again accept the new certificate, and it shows the new one when it connects.
    cluster.kill9(2);
    cluster.start(2);
    cluster.ready().await;
    cluster.write_doc("k", 2).await;
    assert_eq!(feed.news().await["key"], "k");
    cluster.equal_states(&[1, 2, 3]).await;
}

const OLD: &str = "the old secret of these tests";
const NEW: &str = "the new secret of these tests";

fn write_secret(path: &Path, lines: &[&str]) {
    fs::write(path, lines.join("\n")).expect("the secret's file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is our own");
}

/// The number of times that a node has read a changed secret.
fn times_read(cluster: &Cluster, id: u32) -> usize {
    let log = fs::read_to_string(cluster.node(id).stderr_path()).unwrap_or_default();
    log.matches("cluster secret reloaded").count()
}

async fn give(cluster: &Cluster, lines: &[&str]) {
    for id in cluster.ids() {
        let before = times_read(cluster, id);
        write_secret(&cluster.folder().join(format!("n{id}/secret")), lines);
        cluster.node(id).signal(Signal::HUP);
        wait_for("the new secret is read", async || (times_read(cluster, id) > before).then_some(())).await;
        // One node has it and the others do not: they still work together.
        cluster.write_doc(&format!("after/{id}"), lines.len() as u64).await;
    }
}

/// Three steps, node by node: both secrets with the old one first, both with the new one
/// first, the new one alone.
#[tokio::test]
async fn a_secret_is_changed_under_writes() {
    let cluster = Plan::new(3).prepare();
    for id in cluster.ids() {
        let path = cluster.folder().join(format!("n{id}/secret"));
        write_secret(&path, &[OLD]);
        cluster.configure(id, &format!("cluster_secret_file = {:?}", path.display().to_string()));
        cluster.start(id);
    }
    cluster.ready().await;
    let cluster = Arc::new(cluster);
    let epoch = cluster.status_of(1, "epoch").await;
    let load = Load::start(&cluster, "load");
    for lines in [&[OLD, NEW][..], &[NEW, OLD], &[NEW]] {
        give(&cluster, lines).await;
    }
    let tally = load.end().await;
    assert_eq!(cluster.status_of(1, "epoch").await, epoch, "nobody was given up meanwhile");
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;

    // The old secret is not accepted any more; text that is not a secret changes nothing.
    cluster.kill9(3);
    write_secret(&cluster.folder().join("n3/secret"), &[OLD]);
    cluster.start(3);
    wait_for("it is refused", async || {
        let members = cluster.status_of(cluster.leader_among(&[1, 2]).await, "members").await;
        members[2]["trouble"].as_str()?.contains("unauthorized").then_some(())
    })
    .await;
    write_secret(&cluster.folder().join("n3/secret"), &[NEW]);
    cluster.is_ready(3).await;
    cluster.equal_states(&[1, 2, 3]).await;
    write_secret(&cluster.folder().join("n3/secret"), &["short"]);
    wait_for("it is told", async || remark(&cluster, 3).await.filter(|text| text.contains("5 bytes"))).await;
    cluster.write_doc("k", 1).await;
    cluster.equal_states(&[1, 2, 3]).await;
}

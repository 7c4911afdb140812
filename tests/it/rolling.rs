//! A rolling restart, as an upgrade does it: SIGTERM, wait, start, wait, the next one.

use std::sync::Arc;

use crate::harness::Cluster;
use crate::load::Load;

#[tokio::test]
async fn a_rolling_restart_loses_nothing_and_only_asks_to_try_again() {
    let cluster = Arc::new(Cluster::of(3).await);
    let load = Load::start(&cluster, "load");
    for id in [1, 2, 3, 1] {
        cluster.term(id).await;
        // The two others still accept writes.
        cluster.write_doc(&format!("without-{id}"), id.into()).await;
        cluster.start(id);
        cluster.is_ready(id).await;
    }
    let tally = load.end().await;
    println!("{}", tally.show());
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
    let commit = cluster.status_of(1, "commit_index").await.as_u64().expect("an index");
    cluster.equal_logs(&[1, 2, 3], commit);
}

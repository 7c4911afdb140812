//! A cluster that runs without TLS changes to TLS node by node, and its clients lose nothing.

use std::sync::Arc;

use crate::harness::Plan;
use crate::load::Load;

const SECRET: &str = "cluster_secret = \"the secret of these tests, long enough to pass\"\n";

#[tokio::test]
async fn from_plain_to_tls_without_a_pause() {
    let cluster = Plan::new(3).config(SECRET).tls("mode = \"off\"").prepare();
    cluster.ids().for_each(|id| cluster.node(id).speaks_tls(false));
    cluster.ids().for_each(|id| cluster.start(id));
    cluster.ready().await;
    let cluster = Arc::new(cluster);
    let load = Load::start(&cluster, "load");
    for mode in ["accept", "prefer"] {
        for id in cluster.ids() {
            cluster.term(id).await;
            cluster.configure(
                id,
                &(SECRET.to_string() + &cluster.certs().table(id, &format!("mode = {mode:?}"))),
            );
            cluster.start(id);
            cluster.is_ready(id).await;
        }
    }
    // Clients change over while both are answered.
    cluster.ids().for_each(|id| cluster.node(id).speaks_tls(true));
    for id in cluster.ids() {
        cluster.term(id).await;
        cluster.configure(id, &(SECRET.to_string() + &cluster.certs().table(id, "mode = \"require\"")));
        cluster.start(id);
        cluster.is_ready(id).await;
    }
    let tally = load.end().await;
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

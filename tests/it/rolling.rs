//! A rolling upgrade, and the way back: SIGTERM, wait, start the other program, wait, the next one. `scripts/upgrade` names
//! the program of the release before; otherwise it is a rolling restart of this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::harness::{Call, Cluster, Plan, wait_for};
use crate::load::Load;

/// Puts a program in the place of this node's.
async fn replace(cluster: &Cluster, id: u32, program: &Path) {
    cluster.term(id).await;
    // The two others still accept writes.
    cluster.write_doc(&format!("without-{id}"), id.into()).await;
    cluster.node(id).runs_program(program);
    cluster.start(id);
    cluster.is_ready(id).await;
    let runs = std::fs::read_link(format!("/proc/{}/exe", cluster.node(id).pid().expect("it runs")));
    assert_eq!(runs.expect("a process"), std::fs::canonicalize(program).expect("a program"));
}

#[tokio::test]
async fn a_rolling_upgrade_and_the_way_back_lose_nothing() {
    let now = Path::new(env!("CARGO_BIN_EXE_eldest"));
    let before = std::env::var_os("ELDEST_BEFORE").map_or(now.to_path_buf(), PathBuf::from);
    let cluster = Plan::new(3).prepare();
    for id in cluster.ids() {
        cluster.node(id).runs_program(&before);
        cluster.start(id);
    }
    cluster.ready().await;
    let cluster = Arc::new(cluster);
    let load = Load::start(&cluster, "load");
    let lease = Call::post("/v1/roles/r/acquire").raw_json("{\"instance_id\":\"i\",\"ttl_ms\":3600000}");
    let token = cluster.answer(1, lease).await.expect(200).json()["token"].clone();
    // The leader comes last, then first, then in between.
    for (program, order) in [(now, [3, 2, 1]), (&before, [1, 3, 2]), (now, [2, 1, 3])] {
        for id in order {
            replace(&cluster, id, program).await;
        }
        wait_for("the role is still held", async || {
            let shown = cluster.answer(2, Call::get("/v1/roles/r")).await;
            (shown.ok() && shown.json()["token"] == token).then_some(())
        })
        .await;
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

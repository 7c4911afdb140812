//! A disk without room: acknowledged writes stay, no more are accepted, and all is well
//! again once there is room.

use std::sync::Arc;

use crate::harness::{Call, Cluster, Plan, SmallDisk, wait_for};
use crate::load::{Load, Tally};

/// Room for the files that a node creates at its start, and for some more segments.
const MEBIBYTES: u64 = 96;

/// Large enough that a segment is soon full.
const VALUE_BYTES: usize = 200_000;

/// A cluster whose nodes have their own small disks; the disks are unmounted after the cluster has ended.
async fn on_small_disks() -> Option<(Vec<SmallDisk>, Arc<Cluster>)> {
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("small-{}-{:?}", std::process::id(), std::thread::current().id());
    let mut plan = Plan::new(3);
    let mut disks = Vec::new();
    for id in 1..=3 {
        let disk = SmallDisk::mount(&place.join(format!("{name}-{id}")), MEBIBYTES)?;
        plan = plan.data(id, disk.path().join("data"));
        disks.push(disk);
    }
    Some((disks, Arc::new(plan.start().await)))
}

fn big(key: &str) -> Call {
    Call::put(format!("/v1/docs/{key}")).raw_json(&format!("\"{}\"", "x".repeat(VALUE_BYTES)))
}

async fn disk_full(cluster: &Cluster, id: u32) -> bool {
    cluster.status(id).await.is_some_and(|status| status["disk_full"] == true)
}

#[tokio::test]
async fn the_leader_with_a_full_disk_hands_over() {
    let Some((disks, cluster)) = on_small_disks().await else { return };
    let load = Load::start(&cluster, "load");
    let old = cluster.leader().await;
    disks[old as usize - 1].fill();
    // There is room until its segment is full.
    wait_for("the leader notices", async || {
        let _ = cluster.ask(old, &big("fill")).await;
        let noticed = disk_full(&cluster, old).await && !cluster.says_it_leads(old).await;
        noticed.then_some(())
    })
    .await;
    let new = cluster.leader_among(&cluster.others(old)).await;
    cluster.answer(new, Call::put("/v1/docs/after").raw_json("1")).await.expect(201);
    assert_eq!(
        cluster.read_doc(old, "after", "linear").await,
        Some(1),
        "it still answers, through the leader"
    );

    disks[old as usize - 1].make_room();
    wait_for("there is room again", async || (!disk_full(&cluster, old).await).then_some(())).await;
    let tally = load.end().await;
    println!("{}", tally.show());
    cluster.ready().await;
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn where_no_disk_has_room_writes_are_refused_and_local_reads_go_on() {
    let Some((disks, cluster)) = on_small_disks().await else { return };
    cluster.write_doc("before", 1).await;
    // Two disks are enough for an acknowledgement, and the local reads below ask the third node as well.
    cluster.equal_states(&[1, 2, 3]).await;
    disks.iter().for_each(SmallDisk::fill);
    wait_for("writes are refused", async || {
        let answer = cluster.ask(1, &big("fill")).await.ok()?;
        // A leader with a record that no disk has room for steps down, and no node can follow it.
        (answer.status == 503).then_some(())
    })
    .await;
    let mut tally = Tally::new("load");
    for number in 0..20 {
        tally.write(&cluster, number % 3 + 1, format!("load/{number}"), number.into()).await;
    }
    for id in cluster.ids() {
        assert_eq!(cluster.read_doc(id, "before", "local").await, Some(1));
    }
    disks.iter().for_each(SmallDisk::make_room);
    let mut attempts = 0;
    wait_for("writes are taken again", async || {
        attempts += 1;
        let status = tally.write(&cluster, 1, format!("load/after-{attempts}"), 7).await;
        (status == Some(201)).then_some(())
    })
    .await;
    for id in cluster.ids() {
        tally.verify(&cluster, id).await;
    }
    cluster.equal_states(&[1, 2, 3]).await;
}

#[tokio::test]
async fn a_follower_with_a_full_disk_holds_nobody_up_and_restarts() {
    let Some((disks, cluster)) = on_small_disks().await else { return };
    let leader = cluster.leader().await;
    let full = cluster.others(leader)[1];
    disks[full as usize - 1].fill();
    wait_for("the follower notices", async || {
        let answer = cluster.ask(leader, &big("fill")).await.ok()?;
        assert!(answer.ok(), "{}", answer.show());
        disk_full(&cluster, full).await.then_some(())
    })
    .await;
    cluster.write_doc("during", 1).await;
    let remark = async |id| cluster.status_of(id, "remark").await.as_str().unwrap_or_default().to_string();
    let advice = "you may remove old copies in backup.dir";
    assert!(remark(full).await.contains(advice), "it says what may go");
    assert!(!remark(leader).await.contains(advice), "nobody else does");
    cluster.kill9(full);
    cluster.start(full);
    wait_for("it starts on a full disk", async || cluster.status(full).await).await;
    disks[full as usize - 1].make_room();
    cluster.is_ready(full).await;
    cluster.equal_states(&[1, 2, 3]).await;
    assert_eq!(cluster.read_doc(full, "during", "local").await, Some(1));
}

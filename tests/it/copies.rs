//! The copies of its state that a node keeps by itself: written when something has changed, thinned out, and
//! never in the way of other work.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::harness::{Call, Cluster, Folder, Plan, SmallDisk, eldest, wait_for};

fn copies(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|kind| kind == "backup")).collect()
}

async fn metric(cluster: &Cluster, name: &str) -> f64 {
    let page = cluster.answer(1, Call::get("/metrics")).await.expect(200).text();
    let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn a_node_keeps_copies_by_itself() {
    let folder = Folder::new();
    let dir = folder.path().join("copies");
    let foreign = dir.join("eldest-other-1.backup");
    fs::create_dir_all(&dir).expect("a folder");
    fs::write(&foreign, "not yours").expect("a file");
    let config =
        format!("backup.dir = {:?}\nbackup.every_ms = 100\nbackup.keep = 3\n", dir.display().to_string());
    let cluster = Plan::new(1).config(&config).start().await;
    let mut seen = BTreeSet::new();
    for number in 0..6 {
        cluster.write_doc("k", number).await;
        let newest = wait_for("a copy has it", async || {
            let all = copies(&dir);
            let has = |path: &PathBuf| {
                let text = fs::read_to_string(path).ok()?;
                text.contains(&format!("\"value\":{number}}}")).then(|| path.clone())
            };
            all.iter().find_map(has)
        })
        .await;
        let mode = fs::metadata(&newest).expect("a copy").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let checked = eldest(&["backup", "check", &newest.display().to_string()]);
        assert!(checked.status.success(), "{checked:?}");
        seen.insert(newest);
    }
    assert_eq!(seen.len(), 6, "each change has one");
    wait_for("old ones go", async || (copies(&dir).len() == 4).then_some(())).await;
    assert!(foreign.exists() && copies(&dir).iter().filter(|path| seen.contains(*path)).count() == 3);
    // If there is no change, there is no new copy, and that counts as a success.
    let (before, last) =
        (copies(&dir), metric(&cluster, "eldest_backup_last_success_timestamp_seconds").await);
    wait_for("it looks again", async || {
        (metric(&cluster, "eldest_backup_last_success_timestamp_seconds").await > last).then_some(())
    })
    .await;
    assert_eq!(copies(&dir), before);
    // The folder disappears, and comes back.
    fs::rename(&dir, folder.path().join("away")).expect("a rename");
    wait_for("the status says so", async || {
        let remark = cluster.status_of(1, "remark").await;
        remark.as_str()?.contains("cannot save a copy of the state").then_some(())
    })
    .await;
    wait_for("the failure is counted", async || {
        (metric(&cluster, "eldest_backup_failures_total").await > 0.0).then_some(())
    })
    .await;
    cluster.write_doc("k", 7).await;
    fs::rename(folder.path().join("away"), &dir).expect("a rename");
    wait_for("it is well again", async || {
        let remark = cluster.status_of(1, "remark").await;
        (!remark.as_str().unwrap_or_default().contains("cannot save a copy")).then_some(())
    })
    .await;
    wait_for("a copy has what was written meanwhile", async || {
        let has = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("\"value\":7}"));
        copies(&dir).iter().any(has).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_of_copies_stops_no_write() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("copies-{}", std::process::id()));
    let Some(disk) = SmallDisk::mount(&place, 8) else { return };
    let dir = disk.path().display().to_string();
    let cluster =
        Plan::new(1).config(&format!("backup.dir = {dir:?}\nbackup.every_ms = 100\n")).start().await;
    disk.fill();
    let value = "v".repeat(512 << 10);
    cluster.answer(1, Call::put("/v1/docs/k").raw_json(&format!("\"{value}\""))).await.expect(201);
    wait_for("the status says so", async || {
        let remark = cluster.status_of(1, "remark").await;
        remark.as_str()?.contains("cannot save a copy of the state").then_some(())
    })
    .await;
    cluster.write_doc("more", 1).await;
    disk.make_room();
    wait_for("a copy is kept", async || {
        let has = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("\"more\""));
        copies(&place).iter().any(has).then_some(())
    })
    .await;
    let entries = fs::read_dir(&place).expect("a folder").flatten();
    assert!(entries.into_iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(".draft")));
    drop(cluster);
}

//! Orders given in the dashboard by clicks: their effect on the cluster, the questions before them, and the callers to whom they are not
//! offered.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ADMIN, SUBMIT, browser, closed, is_content, no_browser, sign_in};
use crate::harness::{Browser, Call, Cluster, Plan, wait_for};

async fn look(browser: &Browser, cluster: &Cluster, node: u32, view: &str) {
    browser.open(&format!("{}/#{view}", cluster.node(node).url())).await;
}

/// Clicks the first button with this text.
async fn press(browser: &Browser, text: &str) {
    let script = "const found = [...document.querySelectorAll('button')].find((one) => one.textContent === arguments[0] && !one.disabled \
        && one.offsetParent); found?.click(); return Boolean(found)";
    wait_for(&format!("the button {text:?} is there"), async || {
        (browser.run(script, json!([text])).await == true).then_some(())
    })
    .await;
}

/// The confirmation is not accepted before this word is typed.
async fn confirm(browser: &Browser, word: &str) {
    browser.element(&format!("{SUBMIT}[disabled]")).await;
    browser.write("dialog input[name=typed]", &format!("{word}?")).await;
    browser.element(&format!("{SUBMIT}[disabled]")).await;
    browser.write("dialog input[name=typed]", word).await;
    browser.click(SUBMIT).await;
}

/// Repeats the order in the dialog, which stays open when it is refused, until it is carried out.
async fn accepted(browser: &Browser) {
    wait_for("the order is carried out", async || {
        let open = browser.run("return document.getElementById('dialog').open", json!([])).await == true;
        if open {
            let again = "const go = document.querySelector('dialog button[type=submit]'); if (!go.disabled) go.click();";
            browser.run(again, json!([])).await;
        }
        (!open).then_some(())
    })
    .await;
}

async fn role(cluster: &Cluster, name: &str) -> Value {
    cluster.answer(1, Call::get(format!("/v1/roles/{name}"))).await.expect(200).json()
}

#[tokio::test]
async fn a_token_is_made_shown_once_and_revoked() {
    if no_browser() {
        return;
    }
    let cluster = closed(3).start().await;
    let browser = browser(&cluster).await;
    look(&browser, &cluster, 2, "members").await;
    sign_in(&browser, ADMIN).await;
    press(&browser, "Make a token").await;
    browser.write("dialog input[name=name]", "web").await;
    browser.write("dialog fieldset input[name=prefix]", "web/").await;
    browser.click("dialog input[name=write]").await;
    press(&browser, "Another grant").await;
    browser.click("dialog fieldset:last-of-type select option[value=status]").await;
    browser.shows("It may: read,write docs/web/, read status").await;
    browser.click(SUBMIT).await;
    browser.shows("It is shown this once").await;
    let value = "return document.querySelector('dialog input[name=secret]').value";
    let token = browser.run(value, json!([])).await.as_str().expect("a token").to_string();
    let id = browser.run("return document.querySelector('dialog code').textContent", json!([])).await;

    let by = |call: Call| call.header("authorization", format!("Bearer {token}"));
    for node in cluster.ids() {
        let put = by(Call::put("/v1/docs/web/title").raw_json("1"));
        wait_for("it may write", async || cluster.answer(node, put.clone()).await.ok().then_some(())).await;
        let other = by(Call::put("/v1/docs/other").raw_json("1"));
        cluster.answer(node, other).await.expect(403);
    }
    press(&browser, "I have stored it").await;
    browser.shows("The token web is made.").await;
    let kept = "return document.documentElement.outerHTML.includes(arguments[0]) || JSON.stringify([{...sessionStorage}, {...localStorage}])\
        .includes(arguments[0])";
    assert_eq!(browser.run(kept, json!([token])).await, false, "the page has forgotten it");

    browser.click("button[aria-label='Revoke web']").await;
    confirm(&browser, "web").await;
    browser.shows("The token web is revoked.").await;
    for node in cluster.ids() {
        let get = by(Call::get("/v1/docs/web/title"));
        wait_for("it is refused", async || {
            (cluster.answer(node, get.clone()).await.status == 401).then_some(())
        })
        .await;
    }
    let admin = |call: Call| call.header("authorization", format!("Bearer {ADMIN}"));
    let listed = cluster.answer(1, admin(Call::get("/v1/tokens"))).await.expect(200).json();
    assert!(!listed.to_string().contains(id.as_str().expect("an id")), "{listed}");
    is_content(&browser).await;
}

#[tokio::test]
async fn a_role_gets_another_holder_and_a_lease_is_ended() {
    if no_browser() {
        return;
    }
    let cluster = Arc::new(Cluster::of(3).await);
    let held = json!({"instance_id": "ann", "ttl_ms": 3_600_000, "address": "10.0.0.7:80"});
    let first = cluster.answer(2, Call::post("/v1/roles/jobs/acquire").json(&held)).await.expect(200).json();
    let waits = json!({"instance_id": "bob", "ttl_ms": 3_600_000, "wait_ms": 60_000});
    let (cluster_of_call, wait) = (cluster.clone(), Call::post("/v1/roles/jobs/acquire").json(&waits));
    tokio::spawn(async move { cluster_of_call.answer(3, wait.timeout(Duration::from_secs(75))).await });
    let browser = browser(&cluster).await;
    look(&browser, &cluster, 1, "roles").await;
    browser.shows("10.0.0.7:80").await;
    browser.click("button[aria-label='Details of jobs']").await;
    browser.shows("ann acquired it with token").await;
    browser.shows("by renewals; if they stop").await;
    // He waits.
    browser.element("main section ol:not(.steps) li").await;
    browser.shows("bob").await;

    press(&browser, "Name another holder").await;
    browser.shows("is no longer the newest").await;
    browser.write("dialog input[name=instance_id]", "cid").await;
    confirm(&browser, "jobs").await;
    browser.shows("cid holds jobs with token").await;
    let now = role(&cluster, "jobs").await;
    assert_eq!(now["leader"]["instance_id"], "cid");
    assert!(now["token"].as_u64() > first["token"].as_u64());
    browser.shows("ann was replaced by an operator").await;

    press(&browser, "End the lease").await;
    confirm(&browser, "jobs").await;
    browser.shows("The lease of cid has ended.").await;
    wait_for("the one who waits has it", async || {
        (role(&cluster, "jobs").await["leader"]["instance_id"] == "bob").then_some(())
    })
    .await;
    browser.shows("bob acquired it with token").await;
    press(&browser, "All roles").await;
    browser.element("button[aria-label='Details of jobs']").await;
    is_content(&browser).await;
}

#[tokio::test]
async fn a_process_is_removed_and_writes_are_stopped_and_resumed() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(3).await;
    let process = json!({"identifier": "renderer", "ttl_ms": 3_600_000, "capabilities": ["scan"], "secret": "only I know"});
    cluster.answer(2, Call::put("/v1/processes/w7").json(&process)).await.expect(201);
    let browser = browser(&cluster).await;
    look(&browser, &cluster, 1, "processes").await;
    browser.click("button[aria-label='Remove w7']").await;
    confirm(&browser, "w7").await;
    browser.shows("w7 is removed.").await;
    cluster.answer(3, Call::get("/v1/processes/w7")).await.expect(404);

    browser.click("a[href='#members']").await;
    let name = cluster.status_of(1, "cluster").await;
    press(&browser, "Stop client writes").await;
    browser.write("dialog input[name=reason]", "an upgrade").await;
    confirm(&browser, name.as_str().expect("a name")).await;
    browser.shows("Client writes are stopped for 5 min.").await;
    let refused = cluster.answer(3, Call::put("/v1/docs/a").raw_json("1")).await.expect(503).json();
    assert_eq!(refused["code"], "service_down");
    assert!(refused["detail"].as_str().expect("a text").contains("an upgrade"), "{refused}");
    press(&browser, "Resume client writes").await;
    browser.click(SUBMIT).await;
    browser.shows("Clients may write again.").await;
    cluster.write_doc("a", 1).await;
    is_content(&browser).await;
}

#[tokio::test]
async fn without_the_grant_no_order_is_offered() {
    if no_browser() {
        return;
    }
    let cluster = closed(3).start().await;
    let admin = |call: Call| call.header("authorization", format!("Bearer {ADMIN}"));
    let held = json!({"instance_id": "ann", "ttl_ms": 3_600_000});
    cluster.answer(2, admin(Call::post("/v1/roles/r/acquire").json(&held))).await.expect(200);
    let process = json!({"identifier": "renderer", "ttl_ms": 3_600_000});
    cluster.answer(2, admin(Call::put("/v1/processes/w7").json(&process))).await.expect(201);
    let reads = json!({"name": "looks", "grants": ["read,watch *"]});
    let made = cluster.answer(2, admin(Call::post("/v1/tokens").json(&reads))).await.expect(201).json();
    let browser = browser(&cluster).await;
    look(&browser, &cluster, 2, "members").await;
    sign_in(&browser, made["token"].as_str().expect("a token")).await;
    // Each view shows its content, one sentence, and no order.
    let orders = [
        "Hand over",
        "Move",
        "Remove",
        "Add a node",
        "Make a token",
        "Revoke",
        "Stop client writes",
        "Name another holder",
        "End the lease",
        "Download a backup",
    ];
    let offered = "return [...document.querySelectorAll('main button')].filter((one) => one.offsetParent).map((one) => one.textContent)\
        .filter((text) => arguments[0].includes(text))";
    for (view, content, sentence) in [
        ("members", "node-3", "To change the members you need the grant order"),
        ("members", "Client writes", "To see, make or revoke tokens you need the grant order"),
        ("processes", "renderer", "To remove a process you need the grant order"),
        ("backups", "no schedule", "To take a backup you need the grant order"),
        ("roles", "ann", ""),
    ] {
        browser.click(&format!("a[href='#{view}']")).await;
        browser.shows(content).await;
        browser.shows(sentence).await;
        assert_eq!(browser.run(offered, json!([orders])).await, json!([]), "{view}");
    }
    browser.click("button[aria-label='Details of r']").await;
    browser.shows("To name the holder of a role you need the grant order").await;
    browser.shows("To end this lease you need the grant write roles/r").await;
    assert_eq!(browser.run(offered, json!([orders])).await, json!([]));
    is_content(&browser).await;
}

#[tokio::test]
async fn leadership_is_handed_over_and_a_node_comes_and_goes() {
    if no_browser() {
        return;
    }
    let cluster = Plan::new(4).prepare();
    for id in 1..=3 {
        cluster.place(id, &cluster.topology().first(3));
        cluster.start(id);
    }
    let leader = cluster.leader_among(&[1, 2, 3]).await;
    let next = if leader == 2 { 3 } else { 2 };
    cluster.start(4);
    wait_for("node 4 answers", async || cluster.ask(4, &Call::get("/livez")).await.ok()).await;
    let browser = browser(&cluster).await;
    look(&browser, &cluster, 1, "members").await;
    browser.click(&format!("button[aria-label='Hand over to node-{next}']")).await;
    browser.click(SUBMIT).await;
    browser.shows(&format!("node-{next} leads.")).await;
    assert_eq!(cluster.leader_among(&[1, 2, 3]).await, next);

    // A refusal is shown in the dialog, which stays open.
    press(&browser, "Add a node").await;
    browser.write("dialog input[name=address]", "127.0.0.1:1").await;
    browser.click(SUBMIT).await;
    browser.shows("node 4 was not found at 127.0.0.1:1").await;
    browser.write("dialog input[name=address]", &cluster.node(4).url().replace("http://", "")).await;
    browser.write("dialog input[name=name]", "node-4").await;
    // The change is refused for as long as the hand-over is fresh.
    accepted(&browser).await;
    browser.shows("Node 4 is added.").await;
    cluster.counts(4).await;

    browser.click("button[aria-label='Remove node-4']").await;
    browser.element(&format!("{SUBMIT}[disabled]")).await;
    browser.write("dialog input[name=typed]", "node-4").await;
    browser.click(SUBMIT).await;
    browser.shows("node-4 is removed.").await;
    let ended = wait_for("it ends", async || cluster.node(4).ended()).await;
    assert_eq!(ended.code(), Some(70));
    is_content(&browser).await;
}

/// A node comes back on another machine, and the others call it there.
#[tokio::test]
async fn a_node_is_moved_to_another_address() {
    if no_browser() {
        return;
    }
    let mut plan = Plan::new(4);
    let spare = plan.take_last();
    let cluster = plan.start().await;
    let moved = cluster.others(cluster.leader().await)[0];
    let stays = cluster.others(moved);
    let before = cluster.node(moved).url();
    let browser = browser(&cluster).await;
    look(&browser, &cluster, stays[0], "members").await;
    cluster.kill9(moved);
    browser.click(&format!("button[aria-label='Move node-{moved}']")).await;
    browser.shows(&format!("All nodes call it at {before} now.")).await;
    browser.write("dialog input[name=address]", &format!("{spare}:9000")).await;
    browser.element(&format!("{SUBMIT}[disabled]")).await;
    browser.write("dialog input[name=typed]", &format!("node-{moved}")).await;
    accepted(&browser).await;
    browser.shows(&format!("The nodes call node-{moved} at its new address.")).await;
    let cluster = cluster.with_address(moved, spare);
    let wanted = json!(cluster.node(moved).url());
    for node in stays {
        wait_for("a node calls it there", async || {
            let listed = cluster.answer(node, Call::get("/v1/members")).await.expect(200).json();
            let is_there = |member: &Value| member["id"] == moved && member["url"] == wanted;
            listed["members"].as_array()?.iter().any(is_there).then_some(())
        })
        .await;
    }
    // The policy of the page has the addresses from when it was loaded.
    browser.shows(&format!("Reload the page so that it can also call node-{moved}.")).await;

    cluster.place(moved, &cluster.topology());
    cluster.start(moved);
    let row = format!("node-{moved}\t{moved}\t{}\tyes\tfollower", cluster.node(moved).url());
    browser.shows(&row).await;
    is_content(&browser).await;
}

/// The question before a removal counts the nodes that are down, and the only voter cannot be removed.
#[tokio::test]
async fn a_removal_says_what_may_fail_afterwards() {
    if no_browser() {
        return;
    }
    let (alone, cluster) = (Cluster::of(1).await, Cluster::of(3).await);
    let leader = cluster.leader().await;
    let followers: Vec<u32> = cluster.ids().filter(|id| *id != leader).collect();
    let (dead, follower) = (followers[0], followers[1]);
    let browser = browser(&cluster).await;
    look(&browser, &cluster, leader, "members").await;
    browser.click(&format!("button[aria-label='Remove node-{dead}']")).await;
    browser.shows("2 nodes vote afterwards, and none of them may fail.").await;
    press(&browser, "Cancel").await;
    cluster.kill9(dead);
    wait_for("it counts as down", async || {
        let reaches = cluster.status_of(leader, "members").await;
        reaches.as_array()?.iter().any(|member| member["reachable"] == false).then_some(())
    })
    .await;
    let stops =
        "2 nodes vote afterwards. Only one of them answers, and a majority is 2: the cluster would stop.";
    wait_for("the page knows it", async || {
        browser.click(&format!("button[aria-label='Remove node-{follower}']")).await;
        let said = browser.text().await.contains(stops);
        press(&browser, "Cancel").await;
        said.then_some(())
    })
    .await;
    browser.click(&format!("button[aria-label='Remove node-{dead}']")).await;
    browser.shows("2 nodes vote afterwards, and none of them may fail.").await;

    look(&browser, &alone, 1, "members").await;
    browser.element("button[aria-label='Move node-1']").await;
    assert!(!browser.has("button[aria-label='Remove node-1']").await, "it is the only voter");
    is_content(&browser).await;
}

#[tokio::test]
async fn a_backup_is_downloaded_whole() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(1).await;
    cluster.write_doc("a", 1).await;
    let browser = browser(&cluster).await;
    look(&browser, &cluster, 1, "backups").await;
    browser.shows("No node keeps copies by schedule.").await;
    browser.shows("eldest restore FILE --yes").await;
    press(&browser, "Download a backup").await;
    browser.shows("The backup is complete").await;
    is_content(&browser).await;
}

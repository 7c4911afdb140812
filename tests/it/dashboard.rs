//! The page at `/`, in a real browser: used as people use it, and checked by what it shows
//! and what the cluster has.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::harness::{Browser, Call, Cluster, Plan, left_out, wait_for, watch_for};

mod data;
mod orders;
mod views;

const ADMIN: &str = "admin-token-of-the-tests-0123456789";
const AXE: &str = "target/axe/axe_playwright_python/axe.min.js";
const SUBMIT: &str = "dialog button[type=submit]";
const VIEWS: [&str; 10] = [
    "overview",
    "timeline",
    "roles",
    "processes",
    "documents",
    "elections",
    "conflicts",
    "feed",
    "members",
    "backups",
];

async fn browser(cluster: &Cluster) -> Browser {
    Browser::start(cluster.folder().join("profile")).await
}

/// A cluster in which a caller without a token may do nothing.
fn closed(nodes: u32) -> Plan {
    Plan::new(nodes).config(&format!("admin_token = \"{ADMIN}\"\nanonymous = \"none\""))
}

async fn sign_in(browser: &Browser, token: &str) {
    browser.write("dialog input[name=token]", token).await;
    browser.click(SUBMIT).await;
}

fn no_browser() -> bool {
    left_out("ELDEST_SKIP_BROWSER", "the dashboard in a browser")
}

/// The Content Security Policy has blocked nothing, and no script has failed.
async fn is_content(browser: &Browser) {
    let complaints = browser.complaints().await;
    let serious = |line: &&String| line.contains("Content Security Policy") || line.contains("Uncaught");
    assert_eq!(complaints.iter().find(serious), None, "{complaints:?}");
}

async fn crown(browser: &Browser) -> Value {
    browser.run("return document.querySelector('[data-crown]')?.dataset.crown", json!([])).await
}

async fn crowned(browser: &Browser, name: &str) {
    wait_for("the crown is there", async || (crown(browser).await == name).then_some(())).await;
}

#[tokio::test]
async fn the_crown_moves_by_itself_and_documents_are_edited() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(3).await;
    let markup = "<img src=x onerror=\"document.title='owned'\">";
    let put = Call::put("/v1/docs/app%2Fa").json(&json!({"text": markup}));
    cluster.answer(2, put).await.expect(201);
    let role = json!({"instance_id": markup, "ttl_ms": 3_600_000});
    cluster.answer(2, Call::post("/v1/roles/r/acquire").json(&role)).await.expect(200);
    let browser = browser(&cluster).await;
    let first = cluster.leader().await;
    let [heir, other] = cluster.others(first)[..] else { panic!("three nodes") };
    browser.open(&cluster.node(other).url()).await;
    crowned(&browser, &format!("node-{first}")).await;
    browser.shows(&format!("If node-{first} died, node-{heir} would lead.")).await;
    browser.shows("All 3 nodes answer. The cluster goes on if any one of them fails.").await;
    browser.shows("Nothing is wrong.").await;
    browser.run("window.same = true", json!([])).await;

    cluster.kill9(first);
    // It is the heir, unless the heir had no processor when its turn came.
    let second = cluster.leader().await;
    let third = if second == heir { other } else { heir };
    crowned(&browser, &format!("node-{second}")).await;
    browser.shows(&format!("Because node-{second} gave up node-{first}")).await;
    browser.shows("2 of 3 nodes answer. If one more fails, the cluster stops.").await;
    browser.shows(&format!("node-{first}: does not answer: cannot connect to it")).await;
    browser.shows("look at the node's log and start it").await;
    assert_eq!(browser.run("return window.same", json!([])).await, true, "it was not loaded anew");
    browser.click("a[href='#timeline']").await;
    browser.shows(&format!("node-{second} leads, in epoch")).await;
    browser.shows(&format!("gave up node-{first}")).await;
    // The clicked element has the focus from then on, and the view is still updated.
    browser.click("details summary").await;
    cluster.answer(other, Call::post("/elect").json(&json!({"node_idx": third}))).await.expect(200);
    browser.shows(&format!("node-{third} leads, in epoch")).await;
    browser.shows(&format!("handed over to node-{third}")).await;

    browser.click("a[href='#roles']").await;
    browser.shows(markup).await;
    browser.click("a[href='#documents']").await;
    browser.click("button[aria-label='Edit app/a']").await;
    browser.write("[data-editor] textarea", "{\"n\": 1, \"long\": 12345678901234567890.50}").await;
    browser.click("[data-editor] button[type=submit]").await;
    browser.shows("Saved app/a.").await;
    cluster.answer(other, Call::put("/v1/docs/app%2Fb").raw_json("9007199254740993")).await.expect(201);
    browser.click("a[href='#elections']").await;
    browser.click("a[href='#documents']").await;
    browser.shows("9007199254740993").await;
    browser.click("button[aria-label='Edit app/a']").await;
    let read = async || cluster.answer(other, Call::get("/v1/docs/app%2Fa")).await.expect(200).json();
    assert_eq!(read().await["n"], 1);
    let text = cluster.answer(other, Call::get("/v1/docs/app%2Fa")).await.expect(200).text();
    assert!(text.contains("12345678901234567890.50"), "all its digits are there: {text}");

    // Another client writes first.
    cluster.answer(other, Call::put("/v1/docs/app%2Fa").json(&json!({"n": 2}))).await.expect(200);
    browser.write("[data-editor] textarea", "{\"n\": 3}").await;
    browser.click("[data-editor] button[type=submit]").await;
    browser.shows("Nothing was written").await;
    let present = browser.run("return document.querySelector('[data-present]').textContent", json!([])).await;
    assert_eq!(present, "{\"n\":2}");
    assert_eq!(read().await, json!({"n": 2}));
    let title = browser.run("return document.title", json!([])).await;
    assert_ne!(title, "owned");
    is_content(&browser).await;
    calls_only(&browser, &cluster).await;
}

/// Every file and every answer came from a node of the cluster.
async fn calls_only(browser: &Browser, cluster: &Cluster) {
    let script = "return performance.getEntriesByType('resource').map((one) => one.name)";
    let called = browser.run(script, json!([])).await;
    let urls = cluster.urls();
    let elsewhere = |name: &&Value| {
        let name = name.as_str().unwrap_or_default();
        !urls.iter().any(|url| name.starts_with(&format!("{url}/")))
    };
    let called = called.as_array().expect("a list");
    assert!(!called.is_empty());
    assert_eq!(called.iter().find(elsewhere), None, "{called:?}");
}

/// The node that the page asks, by what it shows.
async fn shown_by(browser: &Browser) -> String {
    let text = browser.text().await;
    let name = text.split_once("Shown by ").and_then(|(_, rest)| rest.split_once('.'));
    name.map(|(name, _)| name.to_string()).unwrap_or_default()
}

async fn is_shown_by_another(browser: &Browser, not: &[u32]) -> u32 {
    wait_for("another node shows the page", async || {
        let id: u32 = shown_by(browser).await.strip_prefix("node-")?.parse().ok()?;
        (!not.contains(&id)).then_some(id)
    })
    .await
}

#[tokio::test]
async fn a_page_goes_on_with_another_node() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(3).await;
    let browser = browser(&cluster).await;
    let leader = cluster.leader().await;
    let served = cluster.others(leader)[1];
    browser.open(&format!("{}/#documents", cluster.node(served).url())).await;
    browser.shows("Live").await;
    browser.run("window.same = true", json!([])).await;

    // The node that served the page stands still: its connections stay open.
    cluster.stop(served);
    let second = is_shown_by_another(&browser, &[served]).await;
    browser
        .shows(&format!("{}, which served this page, did not answer at", cluster.node(served).url()))
        .await;
    cluster.answer(second, Call::put("/v1/docs/seen").json(&json!("after the freeze"))).await.expect(201);
    browser.shows("after the freeze").await;
    cluster.node(served).cont();

    // The next one dies.
    cluster.kill9(second);
    let third = is_shown_by_another(&browser, &[second]).await;
    let put = Call::put("/v1/docs/seen-too").json(&json!("after the crash"));
    wait_for("it is written", async || cluster.answer(third, put.clone()).await.ok().then_some(())).await;
    browser.shows("after the crash").await;

    // No node is left. What the page shows is marked as old, and it goes on as soon as a node answers.
    cluster.others(second).into_iter().for_each(|id| cluster.kill9(id));
    browser.shows("Disconnected since").await;
    browser.shows("What is shown below is from before.").await;
    [1, 2, 3].into_iter().for_each(|id| cluster.start(id));
    browser.shows("Live").await;
    let put = Call::put("/v1/docs/seen-again").json(&json!("after all that"));
    cluster.leader().await;
    wait_for("it is written", async || cluster.answer(1, put.clone()).await.ok().then_some(())).await;
    browser.shows("after all that").await;
    assert_eq!(browser.run("return window.same", json!([])).await, true, "it was not loaded anew");
    is_content(&browser).await;
    calls_only(&browser, &cluster).await;
}

/// Longer than the test.
const LONG_MS: u64 = 3_600_000;

/// The time without a call after which the page counts as silent. A page that is seen asks for the status every second.
const SILENCE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_hidden_page_asks_nothing_and_then_shows_the_present_leader() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(3).await;
    let first = cluster.leader().await;
    let [asked, next] = cluster.others(first)[..] else { panic!("three nodes") };
    let browser = browser(&cluster).await;
    browser.open(&cluster.node(asked).url()).await;
    browser.shows("Live").await;
    crowned(&browser, &format!("node-{first}")).await;
    let counts = "const real = window.fetch; window.calls = 0; \
                  window.fetch = (...call) => { window.calls += 1; return real(...call); };";
    browser.run(counts, json!([])).await;
    let calls = async || browser.run("return window.calls", json!([])).await;
    wait_for("it asks while it is seen", async || (calls().await != 0).then_some(())).await;

    browser.hide().await;
    assert_eq!(browser.run("return document.hidden", json!([])).await, true);
    // Answers to calls from before may lead to a few more.
    wait_for("it asks nothing any more", async || {
        let before = calls().await;
        sleep(SILENCE).await;
        (calls().await == before).then_some(())
    })
    .await;
    let before = calls().await;
    cluster.hand_to(next).await;
    sleep(SILENCE).await;
    assert_eq!(calls().await, before, "it asks nothing about the new leader");
    assert_eq!(crown(&browser).await, format!("node-{first}"));

    browser.size(1200, 900).await;
    crowned(&browser, &format!("node-{next}")).await;
    browser.shows("Live").await;
    browser.shows(&format!("handed over to node-{next}")).await;
    is_content(&browser).await;
}

/// Waits until the page shows this finding with what to type, and returns its place in the list.
async fn finding(browser: &Browser, text: &str, next: &str) -> usize {
    watch_for(&format!("the finding {text:?} is shown"), async || {
        let found = findings(browser).await;
        let place = found.as_array().and_then(|all| all.iter().position(|one| *one == json!([text, next])));
        place.ok_or_else(|| found.to_string())
    })
    .await
}

async fn findings(browser: &Browser) -> Value {
    let script = "return [...document.querySelectorAll('section[aria-label=Health] li')]\
                  .map((one) => [one.querySelector('span').textContent, one.querySelector('code')?.textContent])";
    browser.run(script, json!([])).await
}

#[tokio::test]
async fn the_overview_says_what_is_wrong_and_what_to_type() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(2).await;
    let browser = browser(&cluster).await;
    browser.open(&cluster.node(2).url()).await;
    let even =
        ("2 nodes survive no failure, the same as 1: use an odd number.", "eldest members add ID ADDRESS");
    let stopped = ("client writes are stopped by an operator.", "eldest service up");
    finding(&browser, even.0, even.1).await;
    assert!(!findings(&browser).await.to_string().contains(stopped.0));
    cluster.answer(1, Call::post("/service_down").json(&json!({"ttl_ms": LONG_MS}))).await.expect(200);
    let warning = finding(&browser, stopped.0, stopped.1).await;
    assert!(warning < finding(&browser, even.0, even.1).await, "a warning comes before a note");

    cluster.answer(2, Call::post("/service_up")).await.expect(200);
    wait_for("the finding goes", async || {
        (!findings(&browser).await.to_string().contains(stopped.0)).then_some(())
    })
    .await;
    finding(&browser, even.0, even.1).await;
    is_content(&browser).await;
}

#[tokio::test]
async fn a_page_without_one_of_its_files_is_loaded_again() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(1).await;
    let browser = browser(&cluster).await;
    browser.lose(&["*/ui/timeline.js"]).await;
    browser.open(&cluster.node(1).url()).await;
    browser.shows("Some files of this page did not arrive.").await;
    browser.lose(&[]).await;
    browser.shows("node-1 leads, in epoch").await;
}

#[tokio::test]
async fn who_signs_in_may_do_what_the_token_grants() {
    if no_browser() {
        return;
    }
    let cluster = closed(3).start().await;
    let admin = format!("Bearer {ADMIN}");
    let grants = json!({"name": "looks", "grants": ["read status", "read docs/app/"]});
    let made = Call::post("/v1/tokens").json(&grants).header("authorization", &admin);
    let token =
        cluster.answer(1, made).await.expect(201).json()["token"].as_str().expect("a token").to_string();
    wait_for("node 2 knows the token", async || {
        let call = Call::get("/v1/status").header("authorization", format!("Bearer {token}"));
        cluster.answer(2, call).await.ok().then_some(())
    })
    .await;
    let (leader, next) = crown_and_heir(&cluster, &admin).await;
    let browser = browser(&cluster).await;
    browser.open(&cluster.node(2).url()).await;
    browser.shows("Enter the admin token or your own token.").await;
    sign_in(&browser, "a guess").await;
    browser.shows("The token is not accepted").await;
    sign_in(&browser, &token).await;
    crowned(&browser, &format!("node-{leader}")).await;
    browser.shows("Signed in as looks.").await;
    browser.click("a[href='#members']").await;
    browser.shows("order").await;
    let hand_over = format!("button[aria-label='Hand over to node-{next}']");
    assert!(!browser.has(&hand_over).await);

    browser.click("#sign").await;
    sign_in(&browser, ADMIN).await;
    browser.shows("Signed in as admin.").await;
    browser.click(&hand_over).await;
    browser.click(SUBMIT).await;
    wait_for("the next one leads", async || (crown_of(&cluster, &admin).await == next).then_some(())).await;
    is_content(&browser).await;
}

#[tokio::test]
async fn a_caller_without_rights_is_told_when_the_node_is_gone() {
    if no_browser() {
        return;
    }
    let cluster = closed(3).start().await;
    let admin = format!("Bearer {ADMIN}");
    let (leader, _) = crown_and_heir(&cluster, &admin).await;
    let served = cluster.others(u32::try_from(leader).expect("an id"))[0];
    let authorized = |call: Call| call.header("authorization", &admin);
    let put = authorized(Call::put("/v1/docs/app%2Fa").json(&json!(1)));
    cluster.answer(served, put).await.expect(201);
    let make = async |grants: Value| {
        let new = json!({"name": "test", "grants": grants});
        let made = cluster.answer(served, authorized(Call::post("/v1/tokens").json(&new))).await.expect(201);
        let text = |name: &str| made.json()[name].as_str().expect("a text").to_string();
        (text("id"), text("token"))
    };
    let (_, narrow) = make(json!(["read docs/app/"])).await;
    let (id, wide) = make(json!(["read *"])).await;
    let browser = browser(&cluster).await;
    browser.open(&format!("{}/#documents", cluster.node(served).url())).await;
    sign_in(&browser, &narrow).await;
    browser.shows("This token may not see the status").await;
    browser.shows("app/a").await;
    cluster.stop(served);
    browser.shows("Disconnected since").await;
    cluster.node(served).cont();
    browser.shows("This token may not see the status").await;

    browser.click("#sign").await;
    sign_in(&browser, &wide).await;
    browser.shows("Signed in as test.").await;
    browser.shows("leads, in epoch").await;
    // The node that is asked next is the first that tells of the revocation.
    cluster.stop(served);
    let other = cluster.others(served)[0];
    let revoke = authorized(Call::delete(format!("/v1/tokens/{id}")));
    cluster.answer(other, revoke).await.expect(200);
    browser.shows("The token is not accepted").await;
    cluster.node(served).cont();
    is_content(&browser).await;
}

/// The node that leads, and another one that can.
async fn crown_and_heir(cluster: &Cluster, admin: &str) -> (u64, u64) {
    let leader = wait_for("a leader", async || crown_of(cluster, admin).await.as_u64()).await;
    (leader, if leader == 2 { 1 } else { 2 })
}

async fn crown_of(cluster: &Cluster, admin: &str) -> Value {
    let call = Call::get("/v1/status").header("authorization", admin);
    cluster.answer(3, call).await.expect(200).json()["leader"]["id"].clone()
}

#[tokio::test]
async fn everybody_can_read_it() {
    if no_browser() || left_out("ELDEST_SKIP_AXE", "axe") {
        return;
    }
    let axe = std::fs::read_to_string(AXE).unwrap_or_else(|error| {
        panic!("{AXE}: {error}; python3 -m pip install --no-deps --target target/axe axe-playwright-python==0.1.8, or set ELDEST_SKIP_AXE=1")
    });
    let cluster = Cluster::of(3).await;
    cluster.write_doc("a", 1).await;
    cluster.answer(1, Call::command("CreateUser", json!({"name": "ann"}))).await.expect(200);
    let election = json!({"name": "lunch", "choices": ["soup"]});
    cluster.answer(1, Call::command("CreateElection", election)).await.expect(200);
    let role = json!({"instance_id": "me", "ttl_ms": 3_600_000});
    cluster.answer(1, Call::post("/v1/roles/r/acquire").json(&role)).await.expect(200);
    let browser = browser(&cluster).await;
    for (scheme, width) in [("light", 1200), ("dark", 360)] {
        browser.size(width, 900).await;
        browser.scheme(scheme).await;
        for view in VIEWS {
            browser.open(&format!("{}/#{view}", cluster.node(1).url())).await;
            browser.shows("leads, in epoch").await;
            browser.element("main h2").await;
            is_content(&browser).await;
            browser.run(&axe, json!([])).await;
            let found = browser
                .run_async(
                    "const done = arguments[arguments.length - 1]; axe.run({preload: false}).then((said) => done(said.violations\
                     .map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(' ')}`)), (error) => done([String(error)]));",
                )
                .await;
            assert_eq!(found, json!([]), "{view}, {scheme}, {width}");
            let wider = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
            assert_eq!(browser.run(wider, json!([])).await, false, "{view} is wider than {width}");
        }
    }
}

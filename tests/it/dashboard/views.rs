//! Views of the dashboard: filters, leases that an edit keeps, and sentences for when another operator or a restart was faster.

use serde_json::{Value, json};

use super::data::{contains, count_of, put};
use super::{LONG_MS, SUBMIT, browser, is_content, no_browser};
use crate::harness::{Browser, Call, Cluster, Network, Plan, wait_for, watch_for};
use crate::sides;

/// The node takes a snapshot after this many records, and after a restart its feed begins there.
const SNAPSHOT_EVERY: u32 = 10;

/// The names of the keys in WebDriver.
const LEFT: &str = "\u{e012}";
const RIGHT: &str = "\u{e014}";

/// The timeline must be this long before it is zoomed: a zoom shows one second at least.
const ENOUGH_MS: f64 = 6000.0;

/// Times that differ by less are equal.
const ROUNDING_MS: f64 = 1.0;

#[tokio::test]
async fn the_feed_says_that_events_were_missed_and_goes_on() {
    if no_browser() {
        return;
    }
    let cluster = Plan::new(1).config(&format!("snapshot_every = {SNAPSHOT_EVERY}")).start().await;
    let browser = browser(&cluster).await;
    browser.open(&format!("{}/#feed", cluster.node(1).url())).await;
    browser.shows("Reading since").await;
    put(&cluster, "seen", &json!(1)).await;
    browser.shows("doc seen").await;

    // The page does not listen while it is hidden, and the node keeps fewer events than come meanwhile.
    browser.hide().await;
    let before = cluster.status_of(1, "snapshot_id").await.as_u64();
    for number in 0..4 * SNAPSHOT_EVERY {
        put(&cluster, "missed", &json!(number)).await;
    }
    watch_for("a later snapshot", async || {
        let snapshot = cluster.status_of(1, "snapshot_id").await;
        if snapshot.as_u64() > before.map(|id| id + 1) { Ok(()) } else { Err(snapshot.to_string()) }
    })
    .await;
    cluster.term(1).await;
    cluster.start(1);
    cluster.ready().await;
    browser.size(1200, 900).await;
    contains(&browser, "[data-event=missed]", "Events were missed here").await;
    browser.shows("doc seen").await;
    browser.shows("Reading since").await;
    put(&cluster, "new", &json!(1)).await;
    browser.shows("doc new").await;
    assert_eq!(count_of(&browser, "[data-event=missed]").await, 1, "it is said once");
    is_content(&browser).await;
}

/// The first column of the list.
async fn names(browser: &Browser) -> Value {
    let names = "return [...document.querySelectorAll('[data-list] tbody th, [data-list] tbody td[colspan]')].map((one) => one.textContent)";
    browser.run(names, json!([])).await
}

async fn lists(browser: &Browser, wanted: Value) {
    watch_for(&format!("the list is {wanted}"), async || {
        let seen = names(browser).await;
        if seen == wanted { Ok(()) } else { Err(seen.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn processes_are_filtered_by_role_and_capability() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(1).await;
    let register = async |id: &str, role: &str, capabilities: Value| {
        let about =
            json!({"identifier": "worker", "ttl_ms": LONG_MS, "role": role, "capabilities": capabilities});
        cluster.answer(1, Call::put(format!("/v1/processes/{id}")).json(&about)).await.expect(201);
    };
    register("a", "slave", json!(["scan", "print"])).await;
    register("b", "slave", json!(["print"])).await;
    register("c", "master", json!({"scan": true})).await;
    let browser = browser(&cluster).await;
    browser.open(&format!("{}/#processes", cluster.node(1).url())).await;
    lists(&browser, json!(["a", "b", "c"])).await;
    let filter = async |role: &str, capability: &str| {
        browser.write("main input[name=role]", role).await;
        browser.write("main input[name=capability]", capability).await;
        browser.click("main form button[type=submit]").await;
    };
    filter("slave", "").await;
    lists(&browser, json!(["a", "b"])).await;
    filter("", "scan").await;
    lists(&browser, json!(["a", "c"])).await;
    filter("slave", "scan").await;
    lists(&browser, json!(["a"])).await;
    // The filter applies to what comes later, too.
    register("d", "master", json!(["scan"])).await;
    register("e", "slave", json!(["scan"])).await;
    lists(&browser, json!(["a", "e"])).await;
    filter("none", "").await;
    lists(
        &browser,
        json!(["No process matches. A process registers with: eldest proc register ID IDENTIFIER"]),
    )
    .await;
    filter("", "").await;
    lists(&browser, json!(["a", "b", "c", "d", "e"])).await;
    is_content(&browser).await;
}

/// Two documents that end with a role's lease are edited: one stays bound, and the other one is kept on purpose.
#[tokio::test]
async fn an_edited_document_stays_bound_to_its_lease() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(1).await;
    let acquire =
        Call::post("/v1/roles/jobs/acquire").json(&json!({"instance_id": "ann", "ttl_ms": LONG_MS}));
    let token = cluster.answer(1, acquire).await.expect(200).json()["token"].clone();
    for key in ["bound", "freed"] {
        let path = format!("/v1/docs/{key}?with=role/jobs&token={token}");
        cluster.answer(1, Call::put(path).raw_json("1")).await.expect(201);
    }
    let browser = browser(&cluster).await;
    browser.open(&format!("{}/#documents", cluster.node(1).url())).await;
    browser.click("button[aria-label='Edit freed']").await;
    contains(&browser, "[data-about]", "ends with role/jobs").await;
    browser.click("[data-editor] input[name=keeps]").await;
    save(&browser, "freed").await;
    contains(&browser, "[data-about]", "stays until it is deleted").await;
    assert!(!browser.text().await.contains("Let it end as before"), "it has no end any more");
    browser.click("a[href='#overview']").await;
    browser.click("a[href='#documents']").await;
    browser.click("button[aria-label='Edit bound']").await;
    browser.shows("Let it end as before (with role/jobs)").await;
    save(&browser, "bound").await;
    contains(&browser, "[data-about]", "ends with role/jobs").await;
    let listed = cluster.answer(1, Call::get("/v1/docs")).await.expect(200).json();
    let withs: Vec<_> =
        listed["items"].as_array().into_iter().flatten().map(|doc| (&doc["value"], &doc["with"])).collect();
    assert_eq!(withs, [(&json!(2), &json!("role/jobs")), (&json!(2), &Value::Null)], "{listed}");

    let release = json!({"instance_id": "ann", "token": token});
    cluster.answer(1, Call::post("/v1/roles/jobs/release").json(&release)).await.expect(200);
    browser.shows("This document has been deleted meanwhile.").await;
    cluster.answer(1, Call::get("/v1/docs/bound")).await.expect(404);
    cluster.answer(1, Call::get("/v1/docs/freed")).await.expect(200);
    is_content(&browser).await;
}

/// Another client gives the document a ttl while it is open on the page.
#[tokio::test]
async fn a_document_that_changed_meanwhile_ends_as_its_newest_version() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(1).await;
    let browser = browser(&cluster).await;
    let ttl = async |key: &str| {
        let listed = cluster.answer(1, Call::get(format!("/v1/docs?prefix={key}"))).await.expect(200).json();
        (listed["items"][0]["value"].clone(), listed["items"][0]["ttl_ms"].clone())
    };
    for key in ["overwritten", "taken"] {
        put(&cluster, key, &json!(1)).await;
        browser.open(&format!("{}/#documents", cluster.node(1).url())).await;
        browser.run("location.reload()", json!([])).await;
        browser.click(&format!("button[aria-label='Edit {key}']")).await;
        contains(&browser, "[data-about]", "stays until it is deleted").await;
        put(&cluster, &format!("{key}?ttl_ms={LONG_MS}"), &json!(3)).await;
        browser.write("[data-editor] textarea", "2").await;
        browser.click("[data-editor] button[type=submit]").await;
        browser.shows("Nothing was written").await;
        if key == "overwritten" {
            browser.click("[data-overwrite]").await;
            browser.shows("Saved overwritten.").await;
        } else {
            // The page has no time to look at the document before it is saved.
            let at_once = "document.querySelector('[data-take]').click(); \
                           document.querySelector('[data-editor] textarea').value = '2'; \
                           document.querySelector('[data-editor] button[type=submit]').click();";
            browser.run(at_once, json!([])).await;
            browser.shows("Saved taken.").await;
        }
        assert_eq!(ttl(key).await, (json!(2), json!(LONG_MS)), "{key}");
        contains(&browser, "[data-about]", "ends in").await;
    }
    is_content(&browser).await;
}

async fn save(browser: &Browser, key: &str) {
    browser.write("[data-editor] textarea", "2").await;
    browser.click("[data-editor] button[type=submit]").await;
    browser.shows(&format!("Saved {key}.")).await;
}

#[tokio::test]
async fn a_conflict_that_another_operator_settled_is_no_longer_there() {
    if no_browser() {
        return;
    }
    let Some(network) = Network::new(3) else { return };
    let cluster = sides::cluster_on(&network).await;
    sides::split_in_two(&network, &cluster).await;
    for key in ["one", "two"] {
        sides::put(&cluster, 1, key, 1).await;
        sides::put(&cluster, 2, key, 2).await;
    }
    network.heal();
    sides::one_again(&cluster).await;
    let browser = browser(&cluster).await;
    browser.open(&format!("{}/#conflicts", cluster.node(3).url())).await;
    let settle = async |key: &str, word: &str| {
        let all = sides::conflicts(&cluster, 1).await;
        let id = all.iter().find(|one| one["key"] == key).expect("the conflict")["id"].clone();
        let path = format!("/v1/conflicts/{}/{word}", id.as_str().expect("an id"));
        assert!(cluster.eventually_at(1, &Call::post(path)).await.ok());
    };

    browser.click("button[aria-label^='Compare doc:one:']").await;
    browser.element("[data-apply]").await;
    settle("one", "drop").await;
    browser.click("[data-apply]").await;
    browser.click(SUBMIT).await;
    let settled = |key| {
        format!(
            "The conflict about the document {key} is settled: by an earlier attempt, or by another operator."
        )
    };
    browser.shows(&settled("one")).await;
    lists(&browser, json!(["document two"])).await;
    assert_eq!(cluster.read_doc(1, "one", "linear").await, Some(1), "the dropped value is not restored");

    browser.click("button[aria-label^='Compare doc:two:']").await;
    browser.element("[data-drop]").await;
    settle("two", "apply").await;
    browser.click("[data-drop]").await;
    browser.click(SUBMIT).await;
    browser.shows(&settled("two")).await;
    browser.shows("There are no conflicts.").await;
    assert_eq!(cluster.read_doc(1, "two", "linear").await, Some(2), "the restored value stays");
    is_content(&browser).await;
}

/// The times that the timeline shows, from one to the other.
async fn range(browser: &Browser) -> Option<(f64, f64)> {
    let script = "const {from, to} = document.querySelector('main svg.reigns')?.dataset ?? {}; return [Number(from), Number(to)]";
    let shown = browser.run(script, json!([])).await;
    Some((shown[0].as_f64()?, shown[1].as_f64()?))
}

fn span((from, to): (f64, f64)) -> f64 {
    to - from
}

fn is_near(seen: f64, wanted: f64) -> bool {
    (seen - wanted).abs() < ROUNDING_MS
}

#[tokio::test]
async fn keys_zoom_and_move_the_timeline() {
    if no_browser() {
        return;
    }
    let cluster = Cluster::of(1).await;
    let browser = browser(&cluster).await;
    browser.open(&format!("{}/#timeline", cluster.node(1).url())).await;
    browser.shows("node-1 leads, in epoch").await;
    let all = wait_for("there is enough to see", async || {
        range(&browser).await.filter(|shown| span(*shown) > ENOUGH_MS)
    })
    .await;
    let press = async |key: &str| {
        browser.press("main [role=group][tabindex]", key).await;
        range(&browser).await.expect("a timeline")
    };
    let zoomed = press("+").await;
    assert!(span(zoomed) < span(all), "{all:?} {zoomed:?}");
    assert!(zoomed.0 > all.0, "its middle is shown: {all:?} {zoomed:?}");
    let left = press(LEFT).await;
    let quarter = span(zoomed) / 4.0;
    assert!(
        is_near(left.0, zoomed.0 - quarter) && is_near(left.1, zoomed.1 - quarter),
        "{zoomed:?} {left:?}"
    );
    let right = press(RIGHT).await;
    assert!(is_near(right.0, zoomed.0) && is_near(right.1, zoomed.1), "{zoomed:?} {right:?}");
    let closer = press("+").await;
    assert!(is_near(span(closer), span(zoomed) / 2.0), "{zoomed:?} {closer:?}");
    let wider = press("-").await;
    assert!(is_near(span(wider), span(zoomed)), "{zoomed:?} {wider:?}");
    let begin = press(&LEFT.repeat(9)).await;
    let is_first = begin.0 <= all.0 + ROUNDING_MS && is_near(span(begin), span(zoomed));
    assert!(is_first, "it ends where the changes begin: {begin:?}");

    let whole = press("0").await;
    assert!(whole.0 <= all.0 + ROUNDING_MS && span(whole) > span(all), "{all:?} {whole:?}");
    wait_for("it follows the clock again", async || {
        range(&browser).await.filter(|shown| shown.1 > whole.1).map(drop)
    })
    .await;
    is_content(&browser).await;
}

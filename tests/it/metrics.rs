//! A node's counters match what happened, and a real Prometheus reads them: every expression of the alerts
//! and of the dashboard names metrics that are served.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Call, Cluster, Folder, Plan, left_out, wait_for, watch_for};

/// The samples of a scrape: name with labels, and value.
type Samples = BTreeMap<String, f64>;

async fn scrape(cluster: &Cluster, id: u32) -> Option<(String, Samples)> {
    let answer = cluster.ask(id, &Call::get("/metrics")).await.ok().filter(|answer| answer.ok())?;
    let text = answer.text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        (name.to_string(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
    });
    Some((text.clone(), samples.collect()))
}

async fn sample(cluster: &Cluster, id: u32, name: &str) -> f64 {
    let (_, samples) = scrape(cluster, id).await.expect("a running node is scraped");
    *samples.get(name).unwrap_or_else(|| panic!("n{id} serves no {name}: {samples:#?}"))
}

fn sum(samples: &Samples, family: &str) -> f64 {
    samples.iter().filter(|(name, _)| name.split('{').next() == Some(family)).map(|(_, value)| value).sum()
}

/// Waits until this node serves this value.
async fn counts(cluster: &Cluster, id: u32, name: &str, wanted: f64) {
    watch_for(&format!("n{id} serves {name} {wanted}"), async || {
        let seen = scrape(cluster, id).await.and_then(|(_, samples)| samples.get(name).copied());
        if seen == Some(wanted) { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
}

/// Each of the writes was on two of three disks before it was acknowledged, and the next one was
/// sent after that: so neither of these two syncs covers the next write as well. The leader's
/// disk need not be among them.
async fn each_write_was_synced_twice(cluster: &Cluster, writes: f64) {
    watch_for("the syncs are counted", async || {
        let mut syncs = 0.0;
        for id in cluster.ids() {
            syncs += sample(cluster, id, "eldest_sync_duration_seconds_count").await;
        }
        if syncs >= 2.0 * writes { Ok(()) } else { Err(syncs.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn what_is_counted_is_what_happened() {
    let cluster = Cluster::of(3).await;
    for k in 0..5 {
        cluster.write_doc(&format!("k{k}"), k).await;
    }
    let leader = cluster.leader().await;
    let follower = cluster.others(leader)[0];
    let refused = cluster.answer(follower, Call::put("/v1/docs/k").raw_json("{")).await;
    assert_eq!(refused.status, 400);

    for id in cluster.ids() {
        counts(&cluster, id, "eldest_is_leader", f64::from(u8::from(id == leader))).await;
        counts(&cluster, id, "eldest_leader_node", f64::from(leader)).await;
    }
    let (_, samples) = scrape(&cluster, leader).await.expect("the leader runs");
    assert_eq!(samples["eldest_rows{table=\"docs\"}"], 5.0);
    assert_eq!(samples["eldest_commit_duration_seconds_count"], 5.0);
    each_write_was_synced_twice(&cluster, 5.0).await;
    counts(&cluster, leader, &format!("eldest_peer_reachable{{peer=\"{follower}\"}}"), 1.0).await;
    assert!(sample(&cluster, follower, "eldest_peer_calls_total").await > 0.0);
    // The follower has passed the call on: it counts the answer, and the leader counts the problem.
    counts(&cluster, leader, "eldest_http_problems_total{code=\"bad_json\"}", 1.0).await;
    counts(&cluster, follower, "eldest_http_requests_total{route=\"docs\",status=\"400\"}", 1.0).await;

    // The scrape itself is a read, over a connection.
    assert!(samples["eldest_http_calls{class=\"reads\"}"] >= 1.0);
    assert_eq!(samples["eldest_http_calls{class=\"renewals\"}"], 0.0);
    assert!(samples["eldest_http_connections"] >= 1.0);
    for family in ["http_connections", "http_body_bytes", "http_leaderless_calls"] {
        assert!(
            samples[&format!("eldest_{family}")] < samples[&format!("eldest_{family}_limit")],
            "{family}"
        );
    }

    let (_, before) = scrape(&cluster, follower).await.expect("it runs");
    cluster.kill9(leader);
    wait_for("the change of leadership is counted, with its time", async || {
        let (_, after) = scrape(&cluster, follower).await?;
        let more = |family| sum(&after, family) > sum(&before, family);
        (more("eldest_leader_changes_total") && more("eldest_leaderless_seconds_total")).then_some(())
    })
    .await;
}

/// Every family is listed once, with its help and its kind, and its name has its unit.
#[tokio::test]
async fn the_page_keeps_the_conventions() {
    let cluster = Cluster::of(1).await;
    cluster.write_doc("k", 1).await;
    let (text, samples) = scrape(&cluster, 1).await.expect("it runs");
    let mut families = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("name and kind");
        assert!(families.insert(name.to_string()), "{name} is there twice");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        assert!(kind != "histogram" || name.ends_with("_seconds"), "{name} has no unit");
    }
    for name in samples.keys().map(|name| name.split('{').next().unwrap_or(name)) {
        let family =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(families.contains(family) || families.contains(name), "{name} is of no family");
    }
    let documented = include_str!("../../docs/metrics.md");
    for family in families {
        assert!(documented.contains(&format!("`{family}`")), "docs/metrics.md does not know {family}");
    }
}

/// A separate port that serves metrics, and nothing else.
#[tokio::test]
async fn metrics_have_an_address_of_their_own() {
    let mut plan = Plan::new(2);
    let address = format!("{}:9464", plan.take_last());
    let cluster = plan.config(&format!("metrics_listen = \"{address}\"")).start().await;
    let ask = async |call: Call| {
        call.timeout(Duration::from_secs(60))
            .send(cluster.client(), &format!("http://{address}"))
            .await
            .unwrap_or_else(|silence| panic!("no answer: {silence:?}"))
    };
    let page = ask(Call::get("/metrics")).await.expect(200);
    assert!(page.text().contains("\neldest_is_leader "), "{}", page.text());
    assert!(page.header("content-type").is_some_and(|media| media.starts_with("text/plain; version=")));
    // The lease of a leader may lapse for a moment.
    wait_for("the page says that the node leads", async || {
        ask(Call::get("/metrics")).await.expect(200).text().contains("\neldest_is_leader 1\n").then_some(())
    })
    .await;
    for path in ["/v1/status", "/v1/docs", "/livez", "/metrics/more"] {
        ask(Call::get(path)).await.expect(404);
    }
    ask(Call::post("/service_down")).await.expect(404);
    let refused = ask(Call::post("/metrics")).await.expect(405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
}

/// It only makes a test fail: the bound for one answer of a Prometheus.
const ANSWER_MOST: Duration = Duration::from_secs(60);

/// The test's own Prometheus; it ends with the test.
struct Prometheus {
    process: Child,
    url: String,
    http: reqwest::Client,
    _folder: Folder,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    fn start(ip: Ipv4Addr, cluster: &Cluster) -> Prometheus {
        let folder = Folder::new();
        let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus/eldest.rules.yml");
        let targets: Vec<String> = cluster.ids().map(|id| format!("{}:9000", cluster.node(id).ip)).collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": "eldest", "static_configs": [{"targets": targets}]}],
        });
        let file = folder.path().join("prometheus.yml");
        // JSON is YAML.
        std::fs::write(&file, config.to_string()).expect("its configuration");
        let log = std::fs::File::create(folder.path().join("log")).expect("its log");
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={ip}:9000"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect(
                "prometheus is installed (`apt-get install prometheus`), or ELDEST_SKIP_PROMETHEUS is set",
            );
        let plain = eldest_tls::trusting_no_certificate();
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER_MOST);
        let http = http.tls_backend_preconfigured(plain).build();
        let http = http.expect("a client");
        Prometheus { process, url: format!("http://{ip}:9000/api/v1"), http, _folder: folder }
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let answer = self.http.get(format!("{}/{path}?{}", self.url, query.join("&"))).send().await.ok()?;
        serde_json::from_slice(&answer.bytes().await.ok()?).ok()
    }

    /// The current result of an expression, or its error.
    async fn ask(&self, expression: &str) -> Result<Vec<Value>, String> {
        let answer = self.get("query", &[("query", expression)]).await.ok_or("no answer")?;
        match answer["data"]["result"].as_array() {
            Some(found) if answer["status"] == "success" => Ok(found.clone()),
            _ => Err(answer.to_string()),
        }
    }

    async fn finds(&self, expression: &str) {
        watch_for(expression, async || match self.ask(expression).await {
            Ok(found) if !found.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The names of the metrics in an expression.
fn names(expression: &str) -> BTreeSet<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("eldest_") || word.starts_with("process_")).collect()
}

#[tokio::test]
async fn a_prometheus_finds_what_alerts_and_dashboard_ask_for() {
    if left_out("ELDEST_SKIP_PROMETHEUS", "a Prometheus") {
        return;
    }
    let mut plan = Plan::new(4);
    let place = plan.take_last();
    let cluster = plan.start().await;
    let prometheus = Prometheus::start(place, &cluster);
    cluster.write_doc("k", 1).await;
    cluster.answer(1, Call::get("/v1/docs/none")).await;
    watch_for("all nodes are scraped", async || {
        let up = prometheus.ask("up{job=\"eldest\"} == 1").await?;
        if up.len() == 3 { Ok(()) } else { Err(format!("{up:?}")) }
    })
    .await;

    let rules = include_str!("../../deploy/prometheus/eldest.rules.yml");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in &alerts {
        prometheus.ask(alert).await.unwrap_or_else(|error| panic!("{alert}: {error}"));
        for name in names(alert) {
            // Some are served by the leader only, but a healthy cluster has them all.
            prometheus.finds(name).await;
        }
    }
    let dashboard: Value =
        serde_json::from_str(include_str!("../../deploy/grafana/eldest.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    assert!(panels.len() > 10);
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets")) {
        prometheus.finds(target["expr"].as_str().expect("an expression")).await;
    }

    let follower = cluster.others(cluster.leader().await)[0];
    cluster.kill9(follower);
    watch_for("the alerts of a dead node", async || {
        let alerts = prometheus.get("alerts", &[]).await.ok_or("no answer")?;
        let mut named: Vec<&str> = Vec::new();
        named.extend(
            alerts["data"]["alerts"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|alert| alert["labels"]["alertname"].as_str()),
        );
        let wanted = ["EldestNodeDown", "EldestPeerUnreachable", "EldestOneFailureFromStopping"];
        if wanted.iter().all(|wanted| named.contains(wanted)) { Ok(()) } else { Err(format!("{named:?}")) }
    })
    .await;
}

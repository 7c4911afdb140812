//! The benchmarks from end to end, against servers that refuse, hang, and break connections.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{CommandFactory, Parser};
use serde_json::Value;

use super::http::{Connection, Failure, Request};
use super::server::{Asked, Reply, Server, own_status, problem, status, wait_until};
use super::target::Target;
use super::{Bench, BenchError, Tool};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    bench: Bench,
}

/// The output of a benchmark until it ends or is stopped, as one JSON value for each line.
async fn bench(arguments: &str, stop: impl Future<Output = ()>) -> (Vec<Value>, Result<(), BenchError>) {
    let words = ["bench"].into_iter().chain(arguments.split_whitespace());
    let bench = Command::try_parse_from(words).unwrap().bench;
    let mut out = Vec::new();
    let result = bench.run(stop, &mut out).await;
    (parsed(out), result)
}

/// The output of a generator of the tool.
async fn generate(arguments: &str, stop: impl Future<Output = ()>) -> (Vec<Value>, Result<(), BenchError>) {
    let words = ["eldest-load"].into_iter().chain(arguments.split_whitespace());
    let tool = Tool::try_parse_from(words).unwrap();
    let mut out = Vec::new();
    let result = tool.run(stop, &mut out).await;
    (parsed(out), result)
}

fn parsed(out: Vec<u8>) -> Vec<Value> {
    let lines = String::from_utf8(out).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_arguments_are_consistent() {
    Command::command().debug_assert();
    Tool::command().debug_assert();
}

/// Every example must be a command that can be typed.
#[test]
fn every_example_of_the_tool_is_understood() {
    let whole = Tool::command();
    let helps =
        [&whole].into_iter().chain(whole.get_subcommands()).filter_map(|command| command.get_after_help());
    let helps: Vec<String> = helps.map(ToString::to_string).collect();
    let lines: Vec<&str> = helps.iter().flat_map(|help| help.lines()).collect();
    let examples: Vec<_> = lines.iter().filter(|line| line.starts_with("  eldest-load ")).collect();
    assert_eq!(examples.len(), 8, "{lines:?}");
    for line in examples {
        assert!(Tool::try_parse_from(line.split_whitespace()).is_ok(), "{line}");
    }
}

async fn load(urls: &str, more: &str, stop: impl Future<Output = ()>) -> Value {
    let shape = "--json --connections 4 --size 32 --keys 5 --warmup 0s --duration 1h";
    let (lines, result) = bench(&format!("{shape} --url {urls} {more}"), stop).await;
    assert!(result.is_ok(), "{result:?}");
    lines[0].clone()
}

/// A leader that accepts everything.
fn willing(asked: &Asked) -> Reply {
    match asked.line.as_str() {
        "GET /v1/status" => own_status(asked),
        _ => Reply::Json(200, r#"{"key":"bench/1","rev":7}"#.into()),
    }
}

async fn target(server: &Server) -> Target {
    Target::resolve(&server.url.parse().unwrap(), &Arc::new(eldest_tls::trusting_no_certificate()))
        .await
        .unwrap()
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::start(willing).await;
    let target = target(&server).await;
    let mut connection = Connection::new(Duration::from_secs(5));
    for _ in 0..10 {
        assert_eq!(connection.exchange(&target, &Request::get("/x", b"")).await, Ok(200));
    }
    assert_eq!(server.asked().last().unwrap().on_connection, 9);
    assert_eq!(connection.answer().header("eldest-epoch"), Some("3.1"));
}

#[tokio::test]
async fn a_connection_that_the_server_ends_is_made_anew() {
    let server = Server::start(|asked| match asked.number {
        0 => Reply::Close(200),
        1 => Reply::Drop,
        2 => Reply::Raw(b"HTTP/1.1 nonsense\r\n\r\n".to_vec()),
        _ => Reply::Json(200, "{}".into()),
    });
    let server = server.await;
    let target = target(&server).await;
    let mut connection = Connection::new(Duration::from_secs(5));
    let request = Request::get("/x", b"");
    assert_eq!(connection.exchange(&target, &request).await, Ok(200));
    let lost = connection.exchange(&target, &request).await;
    assert!(matches!(lost, Err(Failure::Lost(_))), "{lost:?}");
    let malformed = connection.exchange(&target, &request).await;
    assert!(matches!(malformed, Err(Failure::Malformed(_))), "{malformed:?}");
    assert_eq!(connection.exchange(&target, &request).await, Ok(200));
    assert!(server.asked().iter().all(|asked| asked.on_connection == 0));
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let server = Server::start(|_| Reply::Never).await;
    let mut connection = Connection::new(Duration::from_millis(20));
    let result = connection.exchange(&target(&server).await, &Request::get("/x", b"")).await;
    assert_eq!(result, Err(Failure::Timeout));
}

#[tokio::test]
async fn a_load_is_measured() {
    let server = Server::start(willing).await;
    let both = async {
        server.until("PUT", 50).await;
        server.until("GET /v1/docs", 50).await;
    };
    let report = load(&server.url, "--read 50 --idempotent", both).await;
    let of = |kind: &str, name: &str| report[kind][name].as_f64().unwrap();
    for kind in ["writes", "reads"] {
        assert!(of(kind, "count") >= 46.0 && of(kind, "per_s") > 0.0, "{report}");
        assert!(
            of(kind, "p50_ms") <= of(kind, "p99_ms") && of(kind, "p99_ms") <= of(kind, "max_ms"),
            "{report}"
        );
    }
    assert_eq!((&report["errors"], &report["unknown_writes"]), (&serde_json::json!({}), &0.into()));
    assert_eq!((&report["before"]["members"], &report["after"]["epoch"]), (&3.into(), &"3.1".into()));
    let asked = server.asked();
    let writes: Vec<_> = asked.iter().filter(|asked| asked.line.starts_with("PUT")).collect();
    assert!(writes.iter().all(|asked| asked.line.ends_with("?forward=no") && asked.body.len() == 32));
    let mut keys: Vec<_> = writes.iter().map(|asked| asked.head.split("Idempotency-Key: ").nth(1)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), writes.len());
}

#[tokio::test]
async fn refusals_are_counted_and_retried_elsewhere() {
    let leader = Server::start(willing).await;
    let url = leader.url.clone();
    let follower = Server::start(move |asked| match asked.line.as_str() {
        "GET /v1/status" => status(&url),
        _ => problem(503, "catching_up"),
    });
    let (follower, (nobody, _socket)) = (follower.await, Server::nobody());
    let urls = format!("{nobody},{},{}", follower.url, leader.url);
    let all_at_the_leader = async {
        let is_last = |asked: &&Asked| asked.line.starts_with("PUT") && asked.on_connection == 9;
        wait_until(|| leader.asked().iter().filter(is_last).count() >= 4).await;
    };
    let report = load(&urls, "--spread", all_at_the_leader).await;
    // Two connections begin at an address without a server, and go on to the follower, where another connection
    // begins.
    assert_eq!(report["errors"], serde_json::json!({ "connect_refused": 2, "catching_up": 3 }));
    assert_eq!((follower.count("PUT"), &report["retried"]), (3, &5.into()));
    assert!(report["writes"]["count"].as_u64() >= Some(36), "{report}");
    assert_eq!(report["unknown_writes"], 0);
}

#[tokio::test]
async fn the_leader_alone_is_asked() {
    let leader = Server::start(willing).await;
    let url = leader.url.clone();
    let follower = Server::start(move |_| status(&url)).await;
    let report = load(&follower.url, "", leader.until("PUT", 50)).await;
    assert_eq!((follower.count("PUT"), &report["target"]), (0, &"leader".into()));
    assert_eq!(report["urls"], serde_json::json!([leader.url, follower.url]));
}

#[tokio::test]
async fn outcomes_that_are_unknown_are_counted_and_retried_only_under_a_key() {
    let forgetful = |asked: &Asked| match asked.number % 3 {
        _ if asked.line.starts_with("GET /v1/status") => own_status(asked),
        0 => problem(504, "outcome_unknown"),
        1 => Reply::Drop,
        _ => Reply::Json(200, "{}".into()),
    };
    for (more, retries) in [("", false), ("--idempotent", true)] {
        let server = Server::start(forgetful).await;
        let report = load(&server.url, more, server.until("PUT", 100)).await;
        let unknown = report["unknown_writes"].as_u64().unwrap();
        let errors = &report["errors"];
        assert!(errors["outcome_unknown"].as_u64() > Some(0) && errors["connection_lost"].as_u64() > Some(0));
        assert_eq!(report["retried"], if retries { unknown } else { 0 });
    }
}

#[tokio::test]
async fn a_run_without_success_is_an_error() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/status" => own_status(asked),
        _ => problem(401, "unauthorized"),
    });
    let server = server.await;
    let arguments = format!("--json --warmup 0s --duration 1h --connections 4 --url {}", server.url);
    let (lines, result) = bench(&arguments, server.until("PUT", 50)).await;
    assert!(
        matches!(&result, Err(BenchError::NothingSucceeded { code }) if code.as_deref() == Some("unauthorized"))
    );
    assert_eq!(lines[0]["writes"]["count"], 0);
    let (nobody, _socket) = Server::nobody();
    let (_, result) = bench(&format!("--url {nobody}"), pending()).await;
    assert!(matches!(&result, Err(BenchError::NoLeader { said }) if said[0].0 == nobody), "{result:?}");
}

#[tokio::test]
async fn reads_of_nothing_are_reads() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/status" => own_status(asked),
        _ => problem(404, "not_found"),
    });
    let server = server.await;
    let stop = server.until("GET /v1/docs", 50);
    let report = load(&server.url, "--read 100 --level local", stop).await;
    assert!(report["missing_reads"].as_u64() > Some(0));
    assert_eq!(
        (&report["missing_reads"], &report["errors"]),
        (&report["reads"]["count"], &serde_json::json!({}))
    );
}

#[tokio::test]
async fn fill_puts_every_document_once_more_or_less() {
    let server = Server::start(|asked| match asked.number % 4 {
        _ if asked.line.starts_with("GET") => own_status(asked),
        1 => problem(503, "no_quorum"),
        2 => Reply::DropAfter(200),
        _ => Reply::Json(200, "{}".into()),
    });
    let server = server.await;
    let arguments = format!("fill --json --docs 1234 --batch 100 --size 50 --url {}", server.url);
    let (lines, result) = bench(&arguments, pending()).await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!((&lines[0]["docs"], &lines[0]["batches"]["count"]), (&1234.into(), &13.into()));
    let mut keys = std::collections::BTreeSet::new();
    for asked in server.asked().iter().filter(|asked| asked.line.starts_with("POST /v1/commands")) {
        let batch: Vec<Value> = serde_json::from_str(&asked.body).unwrap();
        assert!(batch.len() <= 100);
        for command in batch {
            assert_eq!(command["storage_cmd"], "PutDoc");
            assert_eq!(command["payload"]["value"].as_str().unwrap().len(), 48);
            keys.insert(command["payload"]["key"].as_str().unwrap().to_string());
        }
    }
    assert_eq!(keys.len(), 1234);
    assert!(keys.contains("bench/0") && keys.contains("bench/1233"));
}

#[tokio::test]
async fn fill_ends_when_it_is_rejected() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/status" => own_status(asked),
        _ => problem(413, "body_too_large"),
    });
    let server = server.await;
    let (_, result) = bench(&format!("fill --url {}", server.url), pending()).await;
    assert!(
        matches!(&result, Err(BenchError::Rejected { code, .. }) if code == "body_too_large"),
        "{result:?}"
    );
}

#[tokio::test]
async fn gaps_are_told_with_both_their_ends() {
    // The first node takes three writes and then hangs. The second node leads after it has refused ten times since
    // then. It takes ten writes and refuses again.
    let first = Server::start(|asked| match asked.number {
        _ if asked.line.starts_with("GET") => own_status(asked),
        0..4 => Reply::Json(200, "{}".into()),
        _ => Reply::Never,
    });
    let first = Arc::new(first.await);
    let (other, asked) = (first.clone(), Arc::new(AtomicUsize::new(0)));
    let since = asked.clone();
    let second = Server::start(move |_| {
        match since.fetch_add(usize::from(other.count("PUT") > 3), Ordering::SeqCst) {
            0..10 => problem(421, "not_leader"),
            10..20 => Reply::Json(200, "{}".into()),
            _ => problem(503, "no_quorum"),
        }
    });
    let second = second.await;
    let arguments = format!("gap --json --over 20ms --duration 1h --url {},{}", first.url, second.url);
    let refused_again = async {
        wait_until(|| asked.load(Ordering::SeqCst) >= 35).await;
    };
    let (lines, result) = generate(&arguments, refused_again).await;
    assert!(result.is_ok(), "{result:?}");
    let (began, end) = (&lines[0], lines.last().unwrap());
    assert_eq!((&began["event"], &began["by"]["url"]), (&"began".into(), &first.url.clone().into()));
    let gaps = &lines[1..lines.len() - 1];
    let moved: Vec<_> =
        gaps.iter().filter(|gap| gap["from"]["url"] != gap["to"]["url"] && gap["open"] == false).collect();
    assert_eq!(moved.len(), 1, "{lines:?}");
    assert_eq!(
        (&moved[0]["to"]["url"], &moved[0]["to"]["epoch"]),
        (&second.url.clone().into(), &"3.1".into())
    );
    assert!(moved[0]["length_ms"].as_f64() > Some(20.0));
    assert_eq!((&gaps.last().unwrap()["open"], &gaps.last().unwrap()["to"]), (&true.into(), &Value::Null));
    assert_eq!((&end["acknowledged"], &end["gaps"]), (&13.into(), &gaps.len().into()));
    assert!(end["errors"]["not_leader"].as_u64() >= Some(10), "{end}");
}

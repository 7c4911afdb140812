//! Pages in a real browser: the effect on a node of a page from another origin, and of a page from an origin
//! that the node allows. The tests check the node's state.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::harness::{Call, Cluster, Plan, left_out, wait_for};

const BROWSER: &str = "chromium";

/// It only makes a test fail: a browser takes its time to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Every call leaves a line in the log.
const LOG: &str = "log.level = \"debug\"";

/// Writes as any page can without a preflight, then as only an allowed one can, and reads. Then it reports to
/// its own server what it has read, and submits a form.
const PAGE: &str = r#"<!doctype html><title>page</title>
<iframe name="sink"></iframe>
<form id="form" method="post" target="sink" action="NODE/service_down"></form>
<script>
const plain = {"content-type": "application/x-www-form-urlencoded"}, json = {"content-type": "application/json"};
const body = JSON.stringify({storage_cmd: "PutDoc", payload: {key: "plain", value: 1}});
(async () => {
  await fetch("NODE/v1/commands", {method: "POST", mode: "no-cors", headers: plain, body}).catch(() => {});
  await fetch("NODE/v1/docs/put", {method: "PUT", headers: json, body: "1"}).catch(() => {});
  let read = "nothing";
  try { read = (await fetch("NODE/v1/docs/before")).headers.get("eldest-node"); } catch { }
  document.getElementById("form").submit();
  await fetch("/done?read=" + read);
})();
</script>"#;

/// Serves the page, and returns its report.
async fn shown(server: &TcpListener, page: &str) -> String {
    loop {
        let (mut stream, _) = server.accept().await.expect("a connection");
        let mut head = Vec::new();
        let mut piece = [0; 4096];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut piece).await {
                Ok(count @ 1..) => head.extend_from_slice(&piece[..count]),
                _ => break,
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let body = if head.starts_with("GET / ") { page } else { "" };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes()).await;
        if let Some(said) = head.strip_prefix("GET /done?read=") {
            return said.split(' ').next().unwrap_or_default().to_string();
        }
    }
}

/// A browser that ends with the test, however the test ends.
struct Opened(Child);

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens the page in a separate browser, and waits until the page has reported that it is done, and its form
/// has had an answer with this status.
async fn visit(cluster: &Cluster, server: &TcpListener, number: u32, form: u16) -> String {
    let own = server.local_addr().expect("it is bound");
    let page = PAGE.replace("NODE", &cluster.node(1).url());
    let profile = cluster.node(1).data.with_file_name(format!("profile-{number}"));
    let browser = Command::new(BROWSER)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--disable-features=LocalNetworkAccessChecks"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("http://{own}/"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the browser starts");
    let browser = Opened(browser);
    let said = tokio::time::timeout(PATIENCE, shown(server, &page)).await;
    let line = format!("path=\"/service_down\" status={form} ");
    wait_for("the form is answered", async || {
        let log = std::fs::read_to_string(cluster.node(1).stderr_path()).expect("a log");
        log.contains(&line).then_some(())
    })
    .await;
    drop(browser);
    said.expect("the page is shown")
}

async fn keys(cluster: &Cluster) -> Vec<String> {
    let docs = cluster.answer(1, Call::get("/v1/docs")).await.expect(200).json();
    let keys = docs["items"].as_array().expect("a list").iter();
    keys.map(|doc| doc["key"].as_str().expect("a key").to_string()).collect()
}

fn has_browser() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|path: PathBuf| path.join(BROWSER)).any(|path| path.exists())
}

#[tokio::test]
async fn a_page_in_a_browser_changes_nothing_unless_its_origin_is_allowed() {
    if left_out("ELDEST_SKIP_BROWSER", "a page in a browser") {
        return;
    }
    assert!(has_browser(), "install {BROWSER}, or set ELDEST_SKIP_BROWSER=1");
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", server.local_addr().expect("it is bound"));
    let cluster = Plan::new(1).config(LOG).start().await;
    cluster.write_doc("before", 1).await;
    assert_eq!(visit(&cluster, &server, 1, 403).await, "nothing");
    assert_eq!(keys(&cluster).await, ["before"]);
    assert_eq!(cluster.status_of(1, "service_down").await, false);

    cluster.kill9(1);
    cluster.configure(1, &format!("allowed_origins = \"{origin}\"\n{LOG}"));
    cluster.start(1);
    cluster.is_ready(1).await;
    assert_eq!(visit(&cluster, &server, 2, 200).await, "1");
    assert_eq!(keys(&cluster).await, ["before", "plain", "put"]);
    assert_eq!(cluster.status_of(1, "service_down").await, true);
}

//! A real browser, driven as a person would drive it: WebDriver, spoken by hand.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::call::client;
use super::wait::watch_for;

const DRIVER: &str = "chromedriver";

/// The bound for one command; a page may take its time on a busy machine.
const COMMAND_MOST: Duration = Duration::from_secs(60);

/// The name that WebDriver gives to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

#[derive(Debug)]
pub struct Browser {
    driver: Driver,
    session: String,
    client: reqwest::Client,
}

impl Browser {
    /// The browser keeps its files in the folder `profile`.
    pub async fn start(profile: PathBuf) -> Browser {
        let driver =
            Command::new(DRIVER).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = driver.map(|driver| Driver { driver, browser: None }).unwrap_or_else(|error| {
            panic!("{DRIVER}: {error}; install chromium-driver, or set ELDEST_SKIP_BROWSER=1")
        });
        let stdout = BufReader::new(driver.driver.stdout.take().expect("it is piped"));
        // A driver that is killed closes its output, which ends the thread that reads it.
        let port = timeout(COMMAND_MOST, spawn_blocking(move || port_in(stdout))).await;
        let port = port.expect("the driver says its port in time").expect("its output is read");
        let client = client();
        let mut browser = Browser { driver, session: format!("http://127.0.0.1:{port}/session"), client };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-features=LocalNetworkAccessChecks",
            &format!("--user-data-dir={}", profile.display()),
        ];
        let options = json!({"args": arguments});
        let wanted = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let made = browser.post("", json!({"capabilities": {"alwaysMatch": wanted}})).await;
        let id = made["capabilities"]["goog:processID"].as_i64().and_then(|id| i32::try_from(id).ok());
        browser.driver.browser = id.and_then(Pid::from_raw);
        assert!(browser.driver.browser.is_some(), "the driver says which process the browser is: {made}");
        browser.session = format!("{}/{}", browser.session, made["sessionId"].as_str().expect("a session"));
        browser
    }

    pub async fn open(&self, url: &str) {
        self.post("/url", json!({"url": url})).await;
    }

    pub async fn size(&self, width: u32, height: u32) {
        self.post("/window/rect", json!({"width": width, "height": height})).await;
    }

    /// Minimises the window, so that its page is hidden until `size` shows it again.
    pub async fn hide(&self) {
        self.post("/window/minimize", json!({})).await;
    }

    /// Light or dark, as the user has set it.
    pub async fn scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.develop("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// From now on these files do not arrive. `*` stands for any text.
    pub async fn lose(&self, urls: &[&str]) {
        self.develop("Network.enable", json!({})).await;
        self.develop("Network.setBlockedURLs", json!({"urls": urls})).await;
    }

    /// Sends a command of the browser's own protocol for developers.
    async fn develop(&self, command: &str, parameters: Value) {
        self.post("/goog/cdp/execute", json!({"cmd": command, "params": parameters})).await;
    }

    /// Returns the script's result; its arguments are `arguments[0]` and so on.
    pub async fn run(&self, script: &str, arguments: Value) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": arguments})).await
    }

    /// The same for a script that calls its last argument when it is done.
    pub async fn run_async(&self, script: &str) -> Value {
        self.post("/execute/async", json!({"script": script, "args": []})).await
    }

    /// The text of the whole page. A page that is being loaded again may have none.
    pub async fn text(&self) -> String {
        let script = json!({"script": "return document.body.innerText", "args": []});
        let said = self.try_post("/execute/sync", &script).await;
        said.map_or_else(|why| why, |text| text.as_str().unwrap_or_default().to_string())
    }

    /// Waits until the page contains this text.
    pub async fn shows(&self, wanted: &str) {
        watch_for(&format!("the page shows {wanted:?}"), async || {
            let text = self.text().await;
            if text.contains(wanted) { Ok(()) } else { Err(text) }
        })
        .await;
    }

    /// Whether there is such an element now.
    pub async fn has(&self, css: &str) -> bool {
        self.find(css).await.is_some()
    }

    /// Waits for an element.
    pub async fn element(&self, css: &str) -> String {
        watch_for(&format!("there is {css}"), async || match self.find(css).await {
            Some(element) => Ok(element),
            None => Err(self.text().await),
        })
        .await
    }

    async fn find(&self, css: &str) -> Option<String> {
        let found = self.try_post("/elements", &json!({"using": "css selector", "value": css})).await.ok()?;
        Some(found[0][ELEMENT].as_str()?.to_string())
    }

    /// Clicks again, if the page has replaced the element in between.
    pub async fn click(&self, css: &str) {
        watch_for(&format!("{css} is clicked"), async || {
            let Some(element) = self.find(css).await else {
                return Err(format!("it is not there: {}", self.text().await));
            };
            self.try_post(&format!("/element/{element}/click"), &json!({})).await.map(drop)
        })
        .await;
    }

    /// Replaces the text of an element.
    pub async fn write(&self, css: &str, text: &str) {
        let element = self.element(css).await;
        self.post(&format!("/element/{element}/clear"), json!({})).await;
        self.post(&format!("/element/{element}/value"), json!({"text": text})).await;
    }

    /// Presses these keys while the element has the focus.
    pub async fn press(&self, css: &str, keys: &str) {
        let element = self.element(css).await;
        self.post(&format!("/element/{element}/value"), json!({"text": keys})).await;
    }

    /// The messages that pages have logged since the last look.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({"type": "browser"})).await;
        let messages = log.as_array().into_iter().flatten();
        messages.filter_map(|line| line["message"].as_str().map(str::to_string)).collect()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.try_post(path, &body).await.unwrap_or_else(|why| panic!("{path} {body}: {why}"))
    }

    async fn try_post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let sending = self
            .client
            .post(format!("{}{path}", self.session))
            .body(body.to_string())
            .timeout(COMMAND_MOST)
            .send();
        let said = sending.await.map_err(|error| error.to_string())?;
        let ok = said.status().is_success();
        let text = said.bytes().await.map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        if ok { Ok(value["value"].clone()) } else { Err(value["value"]["message"].to_string()) }
    }
}

/// The driver prints its port when it listens.
fn port_in(mut lines: impl BufRead) -> u16 {
    let mut line = String::new();
    loop {
        line.clear();
        let read = lines.read_line(&mut line).expect("it says something");
        assert!(read > 0, "{DRIVER} has ended");
        if let Some(port) = line.trim().trim_end_matches('.').rsplit_once("successfully on port ") {
            return port.1.parse().expect("a port");
        }
    }
}

/// The driver and its browser end with the test, however the test ends. A driver leaves its
/// browsers running when it ends.
#[derive(Debug)]
struct Driver {
    driver: Child,
    browser: Option<Pid>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(browser) = self.browser {
            let _ = kill_process(browser, Signal::TERM);
        }
        let _ = kill_process(Pid::from_child(&self.driver), Signal::TERM);
        let _ = self.driver.wait();
    }
}

//! The cluster that a document starts with `eldest dev`, and the lines that are typed into it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::is_line;

/// It only makes sure that a document that is wrong ends at some point.
const PATIENCE: Duration = Duration::from_secs(120);

/// The documents show the output of a healthy cluster. These timings make a busy machine print the same:
/// silence of less than ten seconds changes no leader, node 1 is waited for at the start, and a lease
/// outlasts a pause. A killed node is still missed at once, because its port refuses connections.
const CALM: &str = "\
timing.dead_after_ms = 10000
timing.window_ms = 10000
timing.lease_ms = 2000
timing.stagger_ms = 500
";

pub struct Cluster {
    dev: Child,
    typed: ChildStdin,
    printed: Receiver<String>,
}

impl Cluster {
    /// Starts at the addresses that the docs name, and waits until it prints what to try.
    pub fn start<'a>(folder: &Path, asked: impl Iterator<Item = &'a str>) -> Result<Cluster, String> {
        let config = folder.join("calm.toml");
        std::fs::write(&config, CALM).map_err(|error| format!("{}: {error}", config.display()))?;
        let mut dev = Command::new(env!("CARGO_BIN_EXE_eldest"))
            .arg("dev")
            .args(asked)
            .arg("--config")
            .arg(config)
            .env("TMPDIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("eldest dev: {error}"))?;
        let typed = dev.stdin.take().ok_or("no way to type")?;
        let (tell, printed) = channel();
        for output in [dev.stdout.take().map(boxed), dev.stderr.take().map(boxed)].into_iter().flatten() {
            let tell = tell.clone();
            std::thread::spawn(move || {
                // The receiver is gone once the document has ended.
                BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
            });
        }
        let cluster = Cluster { dev, typed, printed };
        cluster.wait_for(&["…Try in another terminal:".to_string()])?;
        Ok(cluster)
    }

    /// Types a line and waits for each line that the document shows.
    pub fn type_line(&mut self, line: &str, shown: &[String]) -> Result<(), String> {
        // A line that was printed before does not answer this one.
        while self.printed.try_recv().is_ok() {}
        writeln!(self.typed, "{line}").map_err(|error| format!("typing {line:?}: {error}"))?;
        self.wait_for(shown)
    }

    /// The lines may come in any order: nodes that print at the same time have none.
    fn wait_for(&self, shown: &[String]) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let mut missing: Vec<&String> = shown.iter().filter(|line| *line != "…").collect();
        let mut seen = Vec::new();
        while !missing.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.printed.recv_timeout(left) else {
                return Err(format!("eldest dev did not print {missing:?} but\n{}", seen.join("\n")));
            };
            match missing.iter().position(|shown| is_line(shown, &line)) {
                Some(found) => drop(missing.remove(found)),
                None => seen.push(line),
            }
        }
        Ok(())
    }
}

fn boxed(output: impl std::io::Read + Send + 'static) -> Box<dyn std::io::Read + Send> {
    Box::new(output)
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It ends by itself when asked; the processes that it started end with it in either case.
        let asked = writeln!(self.typed, "quit").is_ok();
        let until = Instant::now() + PATIENCE;
        // Its output ends with it.
        while asked && self.printed.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        let _ = self.dev.kill();
        let _ = self.dev.wait();
    }
}

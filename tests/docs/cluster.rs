//! The cluster that a document starts with `eldest dev`, and what is typed into it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::is_line;

/// Only so that a document that is wrong ends some time.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Cluster {
    dev: Child,
    typed: ChildStdin,
    printed: Receiver<String>,
}

impl Cluster {
    /// At the addresses that the docs name. Waits until it says what to try.
    pub fn start<'a>(asked: impl Iterator<Item = &'a str>) -> Result<Cluster, String> {
        let mut dev = Command::new(env!("CARGO_BIN_EXE_eldest"))
            .arg("dev")
            .args(asked)
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
                // Nobody listens any more once the document has ended.
                BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
            });
        }
        let mut cluster = Cluster { dev, typed, printed };
        cluster.wait_for("…Try in another terminal:")?;
        Ok(cluster)
    }

    /// Types a line and waits for each line that the document shows.
    pub fn type_line(&mut self, line: &str, shown: &[String]) -> Result<(), String> {
        writeln!(self.typed, "{line}").map_err(|error| format!("typing {line:?}: {error}"))?;
        shown.iter().filter(|line| *line != "…").try_for_each(|line| self.wait_for(line))
    }

    fn wait_for(&mut self, shown: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            match self.printed.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if is_line(shown, &line) => return Ok(()),
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(format!("eldest dev did not print {shown:?} but\n{}", seen.join("\n")));
                }
            }
        }
    }
}

fn boxed(output: impl std::io::Read + Send + 'static) -> Box<dyn std::io::Read + Send> {
    Box::new(output)
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It ends by itself when told so; what it has started ends with it either way.
        let asked = writeln!(self.typed, "quit");
        if asked.is_err() {
            let _ = self.dev.kill();
        }
        let _ = self.dev.wait();
    }
}

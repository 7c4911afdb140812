//! The process of one node. It runs in its own process group, is controlled by signals, and ends when this
//! process ends.
//!
//! A child of `eldest dev` holds the reading end of a pipe as its stdin, and ends when that pipe closes. The kernel
//! closes it even if `eldest dev` is killed with -9, so no node is ever left behind. `eldest dev` writes orders into
//! the pipe (`cli/serve`).

use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::error::DevError;
use super::place::name_of;
use super::terminal::copy_lines;

/// Orders that wait for a child: a person sends one at a time.
const ORDERS_MAX: usize = 8;

/// The end of a child, and its exit status.
#[derive(Debug)]
pub struct Ended {
    pub id: u32,
    pub status: Option<ExitStatus>,
}

#[derive(Debug)]
enum Order {
    Signal(Signal),
    Line(String),
}

/// A running child. Dropping it closes the pipe, which ends the process.
#[derive(Debug)]
pub struct Running {
    orders: mpsc::Sender<Order>,
    pub pid: u32,
}

impl Running {
    pub fn start(
        id: u32,
        mut command: Command,
        quiet: bool,
        ended: mpsc::Sender<Ended>,
    ) -> Result<Running, DevError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The child has its own process group, because Ctrl-C is for `eldest dev`, which then stops the nodes
        // in order.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| DevError::NoChild { name: name_of(id), error })?;
        let pid = child.id().unwrap_or_default();
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(copy_lines(id, stdout, quiet));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(copy_lines(id, stderr, quiet));
        }
        let (orders, received) = mpsc::channel(ORDERS_MAX);
        tokio::spawn(keep(id, child, received, ended));
        Ok(Running { orders, pid })
    }

    /// Best effort: the process may be ending at this moment.
    pub fn signal(&self, signal: Signal) {
        let _ = self.orders.try_send(Order::Signal(signal));
    }

    /// Best effort, too. A frozen process reads the line once it goes on.
    pub fn tell(&self, line: String) {
        let _ = self.orders.try_send(Order::Line(line));
    }
}

/// No code but the owner of the child signals it, so that a process number is never used after the kernel has
/// given it to
/// another process.
async fn keep(id: u32, mut child: Child, mut orders: mpsc::Receiver<Order>, ended: mpsc::Sender<Ended>) {
    let mut pipe = child.stdin.take();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status.ok(),
            order = orders.recv(), if pipe.is_some() => match order {
                Some(Order::Signal(signal)) => send(&child, signal),
                Some(Order::Line(line)) => write(&mut pipe, line).await,
                None => pipe = None,
            },
        }
    };
    let _ = ended.send(Ended { id, status }).await;
}

/// Writes a line. The pipe holds more lines than a person types, whether or not the child reads them.
async fn write(pipe: &mut Option<ChildStdin>, mut line: String) {
    line.push('\n');
    if let Some(pipe) = pipe {
        // The end of a child is reported elsewhere.
        let _ = pipe.write_all(line.as_bytes()).await;
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the end of a process as text: "signal 9", "code 1".
pub fn how(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("code {code}"),
        Some((None, Some(signal))) => format!("signal {signal}"),
        _ => "unknown reason".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn a_child_ends_when_its_pipe_closes() {
        let (send, mut ended) = mpsc::channel(1);
        let running = Running::start(1, shell("cat; exit 7"), true, send).expect("started");
        drop(running);
        assert_eq!(how(ended.recv().await.expect("ended").status), "code 7");
    }

    #[tokio::test]
    async fn a_child_is_told_lines() {
        let (send, mut ended) = mpsc::channel(1);
        let running = Running::start(1, shell("read a b; read c; exit $((a + b + c))"), true, send);
        let running = running.expect("started");
        running.tell("1 2".to_string());
        running.tell("4".to_string());
        assert_eq!(how(ended.recv().await.expect("ended").status), "code 7");
    }

    #[tokio::test]
    async fn a_killed_child_is_reported() {
        let (send, mut ended) = mpsc::channel(1);
        let running = Running::start(2, shell("exec cat"), true, send).expect("started");
        running.signal(Signal::STOP);
        running.signal(Signal::KILL);
        let ended = ended.recv().await.expect("ended");
        assert_eq!((ended.id, how(ended.status)), (2, "signal 9".to_string()));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there() {
        let (send, _ended) = mpsc::channel(1);
        let failed = Running::start(1, Command::new("/no/such/program"), true, send);
        assert!(matches!(failed, Err(DevError::NoChild { .. })));
    }
}

//! The commands that a person can type while a development cluster runs.

use std::fs;
use std::io::{IsTerminal, stdin};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;

use super::split::Split;

pub const HELP: &str = "status, kill N, start N, stop N (freezes), cont N, split 1 | 2 3, heal, quit";

/// A person types more slowly than this queue is emptied.
const WAITING_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Status,
    /// Sends SIGKILL: the demonstration of a crash.
    Kill(u32),
    Start(u32),
    /// Sends SIGSTOP: the process lives for the kernel, and is dead for the cluster.
    Stop(u32),
    Cont(u32),
    /// Cuts the parts off from each other: the demonstration of a partition.
    Split(Split),
    Heal,
    Quit,
    Help,
}

impl Typed {
    /// Returns `None` for an empty line.
    pub fn parse(line: &str, nodes: u32) -> Option<Typed> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let node = |text: &str| text.parse().ok().filter(|id| (1..=nodes).contains(id));
        Some(match words.as_slice() {
            [] => return None,
            ["status"] => Typed::Status,
            ["quit" | "exit"] => Typed::Quit,
            ["heal"] => Typed::Heal,
            ["split", ..] => {
                let parts = line.trim_start().trim_start_matches("split");
                Split::parse(parts, nodes).map_or(Typed::Help, Typed::Split)
            }
            [verb, id] => match (*verb, node(id)) {
                ("kill", Some(id)) => Typed::Kill(id),
                ("start", Some(id)) => Typed::Start(id),
                ("stop", Some(id)) => Typed::Stop(id),
                ("cont", Some(id)) => Typed::Cont(id),
                _ => Typed::Help,
            },
            _ => Typed::Help,
        })
    }
}

/// The commands as they are typed. The channel closes when no further command can come.
pub fn listen(nodes: u32) -> mpsc::Receiver<Typed> {
    let (send, receive) = mpsc::channel(WAITING_MAX);
    if in_background() {
        // Reading the terminal now would stop this process.
        return receive;
    }
    tokio::spawn(async move {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let Some(typed) = Typed::parse(&line, nodes) else { continue };
            if send.send(typed).await.is_err() {
                return;
            }
        }
    });
    receive
}

/// Whether the terminal belongs to another job, as after `eldest dev &`.
fn in_background() -> bool {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    stdin().is_terminal() && foreground(&stat) == Some(false)
}

/// Whether the process is in the foreground, from the text `pid (name) state ppid pgrp session tty_nr tpgid …`.
fn foreground(stat: &str) -> Option<bool> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    Some(fields.get(2)? == fields.get(5)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed() {
        let parse = |line| Typed::parse(line, 3);
        assert_eq!(parse("  kill  2 "), Some(Typed::Kill(2)));
        assert_eq!(parse("start 1"), Some(Typed::Start(1)));
        assert_eq!(parse("stop 3"), Some(Typed::Stop(3)));
        assert_eq!(parse("cont 3"), Some(Typed::Cont(3)));
        assert_eq!(parse("heal"), Some(Typed::Heal));
        assert_eq!(parse(" split 1|2 3"), Split::parse("1 | 2 3", 3).map(Typed::Split));
        assert!(matches!(parse("split 1"), Some(Typed::Split(_))));
        assert_eq!(parse("status"), Some(Typed::Status));
        assert_eq!(parse("quit"), Some(Typed::Quit));
        assert_eq!(parse(""), None);
        for unknown in [
            "heal 1",
            "split",
            "split 1 2 3",
            "splits 1",
            "kill",
            "kill 4",
            "kill 0",
            "kill one",
            "restart 1",
            "kill 1 2",
        ] {
            assert_eq!(parse(unknown), Some(Typed::Help), "{unknown}");
        }
    }

    #[test]
    fn whose_terminal_it_is() {
        assert_eq!(foreground("7 (a b) c) S 1 7 7 34816 7 4194304"), Some(true));
        assert_eq!(foreground("7 (eldest) S 1 7 5 34816 5 4194304"), Some(false));
        assert_eq!(foreground(""), None);
    }
}

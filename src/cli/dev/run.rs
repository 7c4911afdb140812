//! The life of a development cluster: start, wait for a leader, obey commands, stop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::child::{Ended, Running, how};
use super::error::DevError;
use super::place::{DevPlace, NODES_MAX, name_of};
use super::split::Split;
use super::terminal::hints;
use super::terminal::say;
use super::typed::{self, HELP, Typed};
use crate::cli::signals::Signals;
use crate::cli::status;
use crate::client::{Caller, Request};

/// Ended children that wait to be reported: every node may end at once.
const ENDED_MAX: usize = NODES_MAX as usize;

/// The longest wait for a leader. An election takes milliseconds with the timings of a local network, but a whole log
/// may have to be read first.
const LEADER_WITHIN: Duration = Duration::from_secs(60);

/// The interval at which a leader is looked for at the start.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A node hands over and closes its streams well within this time.
const STOP_WITHIN: Duration = Duration::from_secs(20);

/// The options of the command line for all nodes.
#[derive(Debug)]
pub struct Wishes {
    pub config: Option<PathBuf>,
    pub mode: Option<&'static str>,
    /// Do not show the logs of the nodes.
    pub quiet: bool,
}

#[derive(Debug)]
pub struct Run<'a> {
    place: &'a DevPlace,
    wishes: Wishes,
    children: BTreeMap<u32, Running>,
    split: Option<Split>,
    signals: Signals,
    ended: mpsc::Receiver<Ended>,
    ended_sender: mpsc::Sender<Ended>,
}

impl<'a> Run<'a> {
    pub fn new(place: &'a DevPlace, wishes: Wishes) -> Result<Run<'a>, DevError> {
        let signals = Signals::listen().map_err(DevError::NoSignals)?;
        let (ended_sender, ended) = mpsc::channel(ENDED_MAX);
        Ok(Run { place, wishes, children: BTreeMap::new(), split: None, signals, ended, ended_sender })
    }

    pub async fn go(mut self) -> Result<(), DevError> {
        let nodes = self.place.addresses.len() as u32;
        for id in 1..=nodes {
            self.start(id)?;
        }
        say(&format!("eldest dev: starting {nodes} nodes in {}", self.place.folder.display()));
        let mut typed = typed::listen(nodes);
        let mut leader = std::pin::pin!(timeout(LEADER_WITHIN, first_leader(self.place.urls())));
        let mut looking = true;
        loop {
            tokio::select! {
                found = &mut leader, if looking => {
                    looking = false;
                    self.welcome(found.is_ok());
                }
                Some(ended) = self.ended.recv() => self.report(ended),
                _ = self.signals.next() => break,
                Some(typed) = typed.recv() => {
                    if typed == Typed::Quit {
                        break;
                    }
                    self.obey(typed);
                }
            }
        }
        self.stop().await;
        Ok(())
    }

    fn start(&mut self, id: u32) -> Result<(), DevError> {
        let no_child = |error| DevError::NoChild { name: name_of(id), error };
        let mut command = Command::new(std::env::current_exe().map_err(no_child)?);
        command.arg("serve").arg("--exit-with-stdin").args(["--node", &id.to_string()]);
        command.arg("--topology").arg(self.place.topology());
        command.arg("--data").arg(self.place.data_of(id));
        command.arg("--listen").arg(self.place.addresses[id as usize - 1].to_string());
        if let Some(config) = &self.wishes.config {
            command.arg("--config").arg(config);
        }
        if let Some(mode) = self.wishes.mode {
            // The environment overrules the file.
            command.env("ELDEST_MODE", mode);
        }
        let running = Running::start(id, command, self.wishes.quiet, self.ended_sender.clone())?;
        self.children.insert(id, running);
        // A partition is not healed by a restart of the process.
        if self.split.is_some() {
            self.wall_off(id);
        }
        Ok(())
    }

    fn welcome(&self, leads: bool) {
        match leads {
            true => say(&hints(self.place, &std::env::args().next().unwrap_or_default())),
            false => say(&format!(
                "no leader after {} s; see the nodes' log lines for the reason",
                LEADER_WITHIN.as_secs()
            )),
        }
    }

    fn report(&mut self, ended: Ended) {
        self.children.remove(&ended.id);
        let (name, how, id) = (name_of(ended.id), how(ended.status), ended.id);
        say(&format!("{name} exited ({how}); type `start {id}` and Enter to restart it"));
    }

    fn obey(&mut self, typed: Typed) {
        match typed {
            // The status runs in a separate task: a frozen node delays it, and must not delay a signal.
            Typed::Status => drop(tokio::spawn(show_status(self.place.urls()))),
            Typed::Kill(id) => self.signal(id, Signal::KILL, "killed"),
            Typed::Stop(id) => self.signal(id, Signal::STOP, "frozen; type `cont` to resume it"),
            Typed::Cont(id) => self.signal(id, Signal::CONT, "resumed"),
            Typed::Split(split) => {
                let told = format!("the network is split: {split}; type `heal` to mend it");
                self.set_split(Some(split));
                say(&told);
            }
            Typed::Heal => {
                self.set_split(None);
                say("the network is healed");
            }
            Typed::Start(id) if self.children.contains_key(&id) => {
                say(&format!("{} is already running", name_of(id)))
            }
            Typed::Start(id) => match self.start(id) {
                Ok(()) => say(&format!("{} starts", name_of(id))),
                Err(error) => say(&error.to_string()),
            },
            Typed::Help | Typed::Quit => say(&format!("type one of: {HELP}")),
        }
    }

    fn set_split(&mut self, split: Option<Split>) {
        self.split = split;
        self.children.keys().for_each(|id| self.wall_off(*id));
    }

    /// Tells a node from which nodes it is cut off, as `cli/serve` reads it.
    fn wall_off(&self, id: u32) {
        let hidden = self.split.iter().flat_map(|split| split.hidden_from(id));
        let words: Vec<String> =
            std::iter::once("wall".to_string()).chain(hidden.map(|id| id.to_string())).collect();
        if let Some(child) = self.children.get(&id) {
            child.tell(words.join(" "));
        }
    }

    fn signal(&self, id: u32, signal: Signal, what: &str) {
        match self.children.get(&id) {
            Some(child) => {
                child.signal(signal);
                say(&format!("{} (pid {}) {what}", name_of(id), child.pid));
            }
            None => say(&format!("{} is not running", name_of(id))),
        }
    }

    /// Stops the nodes in order. A second signal, or too long a wait, kills them.
    async fn stop(&mut self) {
        say("stopping; press Ctrl-C again to kill");
        for child in self.children.values() {
            child.signal(Signal::TERM);
            // A frozen node would never receive the request to stop.
            child.signal(Signal::CONT);
        }
        let deadline = Instant::now() + STOP_WITHIN;
        let mut killed = false;
        while !self.children.is_empty() {
            tokio::select! {
                Some(ended) = self.ended.recv() => { self.children.remove(&ended.id); }
                _ = self.signals.next() => killed = true,
                () = sleep_until(deadline), if !killed => killed = true,
            }
            if killed {
                self.children.values().for_each(|child| child.signal(Signal::KILL));
            }
        }
    }
}

async fn show_status(urls: Vec<String>) {
    match status::table(urls).await {
        Ok(table) => say(&table),
        Err(failure) => say(&failure.to_string()),
    }
}

/// Returns when a node can serve a linear read.
async fn first_leader(urls: Vec<String>) {
    let Ok(caller) = Caller::new(None) else { return std::future::pending().await };
    let call = Request::get("/readyz");
    loop {
        for url in &urls {
            if caller.at(url, &call).await.is_ok_and(|answer| answer.status.is_success()) {
                return;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

//! Takes the leader away and brings it back: by a command, by an order to the cluster, or by hand.

use std::io::stderr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::cli::client::Target;
use crate::cli::drill::args::BreakKind;
use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::cli::status::Cluster;
use crate::client::{Request, alike};

#[derive(Debug)]
pub struct Order<'a> {
    pub kind: BreakKind,
    pub target: &'a Target,
    pub place: &'a DrillPlace,
    pub within: Duration,
}

impl Order<'_> {
    /// Takes the leader away, and returns a text about what was done.
    pub async fn take_away(&self, command: Option<&str>) -> Result<String, Failure> {
        let (name, (by_hand, _)) = (&self.place.name, self.kind.by_hand());
        match (self.kind, command) {
            (BreakKind::Handover, _) => {
                self.target.ask(&Request::post("/handoff", &json!({}))).await?;
                Ok(format!("{name} has handed over"))
            }
            (_, Some(command)) => self.run(command).await,
            (_, None) => {
                note(&format!("{name} leads: {by_hand}"));
                Ok(format!("asked the operator to take {name} away"))
            }
        }
    }

    pub async fn bring_back(&self, command: Option<&str>) -> Result<String, Failure> {
        let (name, (_, by_hand)) = (&self.place.name, self.kind.by_hand());
        if let Some(command) = command {
            return self.run(command).await;
        }
        note(&format!("{name}: {by_hand}"));
        Ok(format!("asked the operator to bring {name} back"))
    }

    /// The output of the command goes to stderr, because stdout belongs to the report.
    async fn run(&self, command: &str) -> Result<String, Failure> {
        let DrillPlace { id, name, url, .. } = self.place;
        // The name is passed in the environment only: a shell must not interpret a node's name.
        let command = command.replace("{id}", &id.to_string());
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&command).stdin(Stdio::null()).stdout(stderr());
        shell.env("ELDEST_NODE_ID", id.to_string()).env("ELDEST_NODE_NAME", name).env("ELDEST_NODE_URL", url);
        let failed = |why: String| Failure::Command { command: command.clone(), why };
        let status = match timeout(self.within, shell.kill_on_drop(true).status()).await {
            Ok(status) => status.map_err(|error| failed(error.to_string()))?,
            Err(_) => {
                return Err(failed(
                    "it did not exit in time; end a command that keeps running with &".to_string(),
                ));
            }
        };
        if !status.success() {
            return Err(failed(status.to_string()));
        }
        Ok(command)
    }
}

// The cluster before a drill.

#[derive(Debug, Default)]
pub struct DrillPlace {
    pub cluster: String,
    pub mode: String,
    /// The leader, which is to be taken away.
    pub id: u32,
    pub name: String,
    pub url: String,
    pub epoch: String,
    /// Every member that answers, with the address at which it does.
    pub urls: Vec<String>,
}

impl DrillPlace {
    pub fn of(cluster: &Cluster, target: &Target) -> Result<DrillPlace, Failure> {
        let view = &cluster.view;
        let first = target.url.first().map_or("", String::as_str);
        let leads = view.role == "leader";
        let Some(leader) = view.members.iter().find(|member| leads && member.id == view.node.id) else {
            let what = "there is no leader to take away; see `eldest why`".to_string();
            return Err(Failure::NotNow { what });
        };
        let answers = |id: &u32| matches!(cluster.nodes.get(id), Some(Ok(_)));
        let left = view.members.iter().filter(|member| answers(&member.id) && member.id != leader.id).count();
        let needed = view.members.len() / 2 + 1;
        if left < needed && !view.is_available() {
            let what = format!(
                "without {} only {left} of {} nodes would answer, and {needed} are needed; see `eldest doctor`",
                leader.name,
                view.members.len()
            );
            return Err(Failure::NotNow { what });
        }
        let reached = view.members.iter().filter(|member| answers(&member.id));
        Ok(DrillPlace {
            cluster: view.cluster.clone(),
            mode: view.mode.clone(),
            id: leader.id,
            name: leader.name.clone(),
            url: alike(&leader.url, first),
            epoch: view.epoch.clone(),
            urls: reached.map(|member| alike(&member.url, first)).collect(),
        })
    }
}

//! The arguments of a drill, and the ways in which it takes a leader away.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::cli::client::Target;
use crate::cli::output::Output;
use crate::cli::span::span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakKind {
    /// The leader hands over, as before maintenance of its machine
    Handover,
    /// The leader's process or machine dies
    Failover,
    /// The leader freezes and resumes later, like a suspended machine
    Freeze,
    /// The leader runs but cannot reach the other nodes
    Partition,
    /// A backup is restored on a scratch node on this machine, and compared
    Restore,
}

impl BreakKind {
    pub fn name(self) -> &'static str {
        match self {
            BreakKind::Handover => "handover",
            BreakKind::Failover => "failover",
            BreakKind::Freeze => "freeze",
            BreakKind::Partition => "partition",
            BreakKind::Restore => "restore",
        }
    }

    pub fn has_to_be_mended(self) -> bool {
        !matches!(self, BreakKind::Handover | BreakKind::Restore)
    }

    /// The action for a person to do, and to undo, if no command does it.
    pub fn by_hand(self) -> (&'static str, &'static str) {
        match self {
            BreakKind::Handover | BreakKind::Restore => ("", ""),
            BreakKind::Failover => {
                ("end it now (kill -9, docker kill, systemctl kill -s KILL)", "start it again")
            }
            BreakKind::Freeze => {
                ("freeze it now (kill -STOP, docker pause)", "resume it (kill -CONT, docker unpause)")
            }
            BreakKind::Partition => ("cut it off from the other nodes now", "reconnect it"),
        }
    }
}

// The options of a drill.

#[derive(Debug, Parser)]
#[command(after_help = "\
handover, failover, freeze and partition take the leader away while clients write, and report how long no write was
acknowledged and whether an acknowledged write is lost. restore leaves the cluster as it is: it restores a backup on a
scratch node on this machine, and compares the two row by row.

Example:
  eldest drill handover --yes
  eldest drill failover --yes --break 'docker kill eldest-{id}' --mend 'docker start eldest-{id}'
  eldest drill freeze --yes --break 'docker pause eldest-{id}' --mend 'docker unpause eldest-{id}'
  eldest drill restore --yes --report restore.json
  eldest drill partition --yes --break 'docker network disconnect eldest_peers eldest-{id}' --mend ./reconnect

{id} is the leader's id. The commands have ELDEST_NODE_ID, ELDEST_NODE_NAME and ELDEST_NODE_URL in their environment.
Without --break, the drill says what to take away and waits until another node leads. Without --mend, it waits until the
node is back.

When a drill ends or is interrupted, it undoes what it did. A second signal ends it at once; a restore
removes the copy of the data first.

Exits with 0 if all is well. Exits with 12 if an acknowledged write is lost, if the cluster or the role had two leaders at
once, if no other node led in time, if the first one did not come back, if the backup cannot be restored or differs after
the restore, or if a copy of the data is left here. Exits with 9 if the cluster cannot lose its leader now, or has none.")]
pub struct DrillArgs {
    /// Kind of drill
    #[arg(value_enum)]
    pub kind: BreakKind,
    /// A command that takes the leader away
    #[arg(long = "break", value_name = "CMD")]
    pub break_by: Option<String>,
    /// A command that brings that node back
    #[arg(long = "mend", value_name = "CMD")]
    pub mend_by: Option<String>,
    /// Timeout of each step: a command ends, another node leads, the first one is back, the scratch node is ready
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "60s")]
    pub within: Duration,
    /// Time for which clients write before the leader is taken away, and again after each later step; not for restore
    #[arg(long, value_name = "SPAN", value_parser = span, default_value = "3s")]
    pub settle: Duration,
    /// Number of clients that write at the same time, each 10 ms after its last answer; not for restore
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub writers: u16,
    /// Do it without a question; without --yes, a person types the name of the cluster, and a script is refused
    #[arg(long)]
    pub yes: bool,
    /// Also write the report to this new file, as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub target: Target,
}

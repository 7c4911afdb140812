//! The ways in which a leader goes away.

use clap::ValueEnum;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It hands over, as before work on its machine
    Handover,
    /// It ends, or its machine does
    Failover,
    /// It stands still and goes on later, as a machine does that is suspended
    Freeze,
    /// It lives, and reaches nobody
    Partition,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Handover => "handover",
            Kind::Failover => "failover",
            Kind::Freeze => "freeze",
            Kind::Partition => "partition",
        }
    }

    pub fn has_to_be_mended(self) -> bool {
        self != Kind::Handover
    }

    /// What somebody has to do, and to undo, if no command does.
    pub fn by_hand(self) -> (&'static str, &'static str) {
        match self {
            Kind::Handover => ("", ""),
            Kind::Failover => ("end it now (kill -9, docker kill, systemctl kill -s KILL)", "start it again"),
            Kind::Freeze => {
                ("freeze it now (kill -STOP, docker pause)", "let it go on (kill -CONT, docker unpause)")
            }
            Kind::Partition => ("cut it off from the other nodes now", "let it reach them again"),
        }
    }
}

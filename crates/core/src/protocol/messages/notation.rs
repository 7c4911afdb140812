//! One notation for messages, in logs, scripts and traces: `n1 → n2 claim 7.1 last 6.2@120`.

use super::message::{Claim, Envelope, Message, Standing};
use std::fmt;

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Heartbeat { term, round, commit, heir, .. } => {
                write!(f, "heartbeat {} round {round} commit {commit}", term.epoch)?;
                heir.map_or(Ok(()), |heir| write!(f, " heir {heir}"))
            }
            Message::HeartbeatReply { epoch, round, matched, last, .. } => {
                write!(f, "heard {epoch} round {round} matched {matched} last {last}")
            }
            Message::Append { term, prev, records, commit } => {
                let count = records.len();
                write!(f, "append {} after {prev} +{count} commit {commit}", term.epoch)
            }
            Message::Appended { epoch, matched } => write!(f, "appended {epoch} matched {matched}"),
            Message::Gap { epoch, prev, hint } => write!(f, "gap {epoch} at {prev} hint {hint}"),
            Message::Snapshot { term, meta } => write!(f, "snapshot {} at {}", term.epoch, meta.at),
            Message::Stale { promise } => write!(f, "stale promise {}", promise.epoch),
            Message::NotMember { as_of, .. } => write!(f, "no member as of {as_of}"),
            Message::Resigned { epoch } => write!(f, "resigned {epoch}"),
            Message::Willing { standing, .. } => write!(f, "willing {standing}"),
            Message::Opinion { yes, standing, .. } => {
                write!(f, "opinion {} {standing}", if *yes { "yes" } else { "no" })
            }
            Message::Claim(claim) => write!(f, "{claim}"),
            Message::Approve { term, last, lease_left } => {
                write!(f, "approve {} last {last} lease_left {lease_left}", term.epoch)
            }
            Message::Refuse { term, promise } => {
                write!(f, "refuse {} promise {promise}", term.epoch)
            }
            Message::Pull { term, after } => write!(f, "pull {} after {after}", term.epoch),
            Message::Pulled { term, prev, records } => {
                write!(f, "pulled {} after {prev} +{}", term.epoch, records.len())
            }
            Message::HandOver(c) => write!(f, "hand-over {} to {} at {}", c.epoch, c.heir, c.last),
            Message::Poll { term, vector } => write!(f, "poll {} has {vector}", term.epoch),
            Message::Side { epoch, leader, vector } => {
                write!(f, "side {epoch} led by {} has {vector}", leader.unwrap_or_default())
            }
            Message::Meet { term, vector } => write!(f, "meet {} has {vector}", term.epoch),
            Message::Merge { epoch, base, meta } => write!(f, "merge {epoch} at {} beyond {base}", meta.at),
            Message::Override { term, base, meta } => {
                write!(f, "override {} at {} beyond {base}", term.epoch, meta.at)
            }
            Message::Odd { epoch, .. } => write!(f, "odd {epoch}"),
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "last {} promise {} {:?}", self.last, self.promise, self.condition)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {} last {}", self.term.epoch, self.last)?;
        match self.certificate {
            Some(certificate) => write!(f, " after {}", certificate.epoch),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} {}", self.from, self.to, self.message)
    }
}

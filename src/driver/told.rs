//! What people read in the log of a node at three in the morning.

use super::end::End;
use super::setup::Setup;
use crate::chronicle::{Entry, sentence};
use crate::protocol::{Cause, Event, Impasse};
use crate::types::{NodeId, WallTime};

pub fn event(setup: &Setup, event: Event) {
    let name = |node| setup.member(node).map_or("?".to_string(), |member| member.name);
    match event {
        Event::Suspected { leader, cause } if leader.0 == 0 => tracing::info!(?cause, "looking for a leader"),
        Event::Suspected { leader, cause } => {
            tracing::warn!(leader = leader.0, name = name(leader), ?cause, "the leader is given up");
        }
        Event::Claimed { epoch } => tracing::info!(%epoch, "claiming to lead"),
        Event::Opened { epoch } => tracing::info!(%epoch, "this node leads"),
        Event::Following { epoch } => {
            tracing::info!(%epoch, leader = epoch.leader.0, name = name(epoch.leader), "following");
        }
        // It goes on in the merge's own epoch.
        Event::SteppedDown { cause: Cause::Merged, .. } => {}
        Event::SteppedDown { epoch, cause } => tracing::warn!(%epoch, ?cause, "this node leads no more"),
        Event::Admitted { incarnation } => tracing::info!(%incarnation, "this node's disk counts"),
        Event::Replaced { by } => tracing::error!(
            %by,
            "another disk counts under this node's id: this node neither votes nor leads any more. If two machines run under \
             one id, stop one of them; to use this one again, start it with an empty data directory"
        ),
        Event::Met { other } => {
            tracing::warn!(other = other.0, name = name(other), "two leaders have met: the sides are merged");
        }
        Event::Merged { with, index } => {
            tracing::warn!(with = with.0, name = name(with), index, "two sides are one");
        }
        Event::Impasse { other, why } => {
            let (name, why) = (name(other), in_words(&why));
            tracing::error!(other = other.0, name, "two sides do not become one: {why}");
        }
        Event::Overridden { index } => tracing::warn!(index, "the state is brought up to the merged one"),
        Event::Accused { fault } => {
            tracing::error!(
                "a message that nobody has signed says what would end this node, and by itself does not end it: {}. If it is true, this \
                 node cannot go on until that is mended; with cluster_secret_file nobody can make it up",
                End::Fault(fault)
            );
        }
        Event::Forgot { node, kept, end } => tracing::error!(
            node = node.0,
            name = name(node),
            acknowledged = kept,
            ends_at = end,
            "that node's disk has forgotten what it acknowledged, as if an older copy of its data directory had been put back: it does \
             not count any more, is set aside, and is let in again as a new one"
        ),
        Event::Diverged { index } => {
            tracing::error!(index, "states differ between nodes, and no majority says which is right");
        }
        // `eldest why` tells of these; while nobody leads they come many times a second.
        Event::Declined { .. }
        | Event::Approved { .. }
        | Event::Deferred { .. }
        | Event::Refused { .. }
        | Event::Backed { .. }
        | Event::TurnedDown { .. } => {
            if let Some(entry) = Entry::of(WallTime::default(), &event) {
                tracing::debug!("{}", sentence(&entry, |id| name(NodeId(id))));
            }
        }
    }
}

/// Why two sides do not become one, and what to do about it.
pub fn in_words(why: &Impasse) -> String {
    match why {
        Impasse::NothingComes => {
            "what the other one has did not arrive, or was no longer what this one had asked for: look at the link \
             between the two, and at the other one's log. Both serve their clients, and try again"
                .to_string()
        }
        Impasse::TooLarge { bytes, most } => format!(
            "it would have to hand in {bytes} bytes, and a node takes {most}: raise limits.merge_bytes on all nodes and \
             restart them. Both serve their clients until then"
        ),
        Impasse::JournalFull { entries, bytes } => format!(
            "the journal of conflicts would have {entries} entries and {bytes} bytes: settle those that it has (`eldest \
             conflicts`), or raise limits.conflicts and limits.conflict_bytes on all nodes and restart them. Both sides \
             serve their clients until then"
        ),
    }
}

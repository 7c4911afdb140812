//! I9: a promise or an acknowledgement is never sent before it is durable. I11: no log on a disk holds
//! a record above that disk's promise.

use eldest::protocol::{BeatReply, Envelope, Message};

use super::{Check, ensure};
use crate::disk::Durable;

const NAME: &str = "I9 durable before sent";

/// Looks at a message at the moment it leaves.
pub fn sent(envelope: &Envelope, disk: &Durable) -> Check {
    let promise = disk.vote.promise.epoch;
    let binds = matches!(
        envelope.message,
        Message::Approve { .. }
            | Message::Appended { .. }
            | Message::HeartbeatReply { .. }
            | Message::Append { .. }
            | Message::Heartbeat { .. }
    );
    if let Some(epoch) = envelope.message.epoch().filter(|_| binds) {
        ensure(promise >= epoch, NAME, || format!("{envelope} with promise {promise} on disk"))?;
    }
    if let Message::Approve { term, last, .. } = &envelope.message {
        // The leader of that time may have cut what this names, because it did not need it.
        let there = disk.last() >= last.index || disk.newest().epoch >= term.epoch;
        ensure(there, NAME, || format!("{envelope} with {} on disk", disk.last()))?;
    }
    if let Message::Appended { epoch, matched } | Message::HeartbeatReply(BeatReply { epoch, matched, .. }) =
        &envelope.message
    {
        // A later promise may have cut what this acknowledges; then the acknowledgement no longer counts.
        let there = disk.last() >= *matched || promise > *epoch;
        ensure(there, NAME, || format!("{envelope} with {} on disk", disk.last()))?;
    }
    Ok(())
}

pub fn stored(disk: &Durable) -> Check {
    let promise = disk.vote.promise.epoch;
    let newest = disk.newest();
    ensure(newest.epoch <= promise, "I11 no record above the promise", || {
        format!("{newest} on a disk that promised {promise}")
    })
}

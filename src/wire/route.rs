//! Each message takes one of the seed's routes; some messages return in a response.

use bytes::Bytes;

use super::head::Sender;
use crate::protocol::{Beat, BeatReply, Envelope, Message};

/// The number of writes from one snapshot to the next in the seed.
const SEED_BOUNDARY: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    Heartbeat,
    WriteSync,
    DeclareCapability,
    RecvElect,
    CatchUp,
    IsLeader,
    ServiceDown,
    MergeConflict,
    OverrideAllData,
}

/// One message in its HTTP form: the headers and body of a call or of a response.
#[derive(Clone, Debug)]
pub struct Packet {
    pub route: Route,
    pub sender: Sender,
    pub message: String,
    pub body: Bytes,
}

impl Route {
    pub const ALL: [Route; 9] = [
        Route::Heartbeat,
        Route::WriteSync,
        Route::DeclareCapability,
        Route::RecvElect,
        Route::CatchUp,
        Route::IsLeader,
        Route::ServiceDown,
        Route::MergeConflict,
        Route::OverrideAllData,
    ];

    pub fn path(self) -> &'static str {
        match self {
            Route::Heartbeat => "/heartbeat",
            Route::WriteSync => "/writesync",
            Route::DeclareCapability => "/declare_capability",
            Route::RecvElect => "/recv_elect",
            Route::CatchUp => "/catch_up",
            Route::IsLeader => "/is_leader",
            Route::ServiceDown => "/service_down",
            Route::MergeConflict => "/merge_conflict",
            Route::OverrideAllData => "/override_all_data",
        }
    }

    /// Returns the route of a call that carries this message.
    pub fn of(message: &Message) -> Route {
        match message {
            Message::Append { .. } => Route::WriteSync,
            Message::Willing { .. } | Message::Claim(_) => Route::DeclareCapability,
            Message::Approve { .. }
            | Message::Refuse { .. }
            | Message::NotMember { .. }
            | Message::HandOver(_) => Route::RecvElect,
            Message::Pull { .. } | Message::Pulled { .. } | Message::Snapshot { .. } => Route::CatchUp,
            Message::Poll { .. } => Route::IsLeader,
            Message::Meet { .. } => Route::ServiceDown,
            Message::Merge { .. } => Route::MergeConflict,
            Message::Override { .. } => Route::OverrideAllData,
            Message::Heartbeat(_)
            | Message::HeartbeatReply(_)
            | Message::Appended { .. }
            | Message::Gap { .. }
            | Message::Stale { .. }
            | Message::Resigned { .. }
            | Message::Opinion { .. }
            | Message::Side { .. }
            | Message::Odd { .. } => Route::Heartbeat,
        }
    }

    /// Returns whether the response to a call with this message may carry an answer. The response to any other call is empty and
    /// is sent at once.
    pub fn expects_answer(message: &Message) -> bool {
        matches!(
            message,
            Message::Heartbeat(_)
                | Message::Append { .. }
                | Message::Willing { .. }
                | Message::Pull { .. }
                | Message::Poll { .. }
        )
    }

    /// Returns the number that a call and its answer have in common. Even where peers prove nothing, an answer that names the
    /// number was made by a process that got the call (P51).
    pub fn number(message: &Message) -> Option<u64> {
        match message {
            Message::Heartbeat(Beat { round, .. }) | Message::HeartbeatReply(BeatReply { round, .. }) => {
                Some(*round)
            }
            Message::Willing { ask, .. } | Message::Opinion { ask, .. } | Message::NotMember { ask, .. } => {
                Some(*ask)
            }
            _ => None,
        }
    }

    /// Returns the route of the call whose response may carry this message. An approval is never in a response: it is sent only through
    /// `/recv_elect`.
    pub fn answered_by(message: &Message) -> Option<Route> {
        match message {
            Message::HeartbeatReply(_) => Some(Route::Heartbeat),
            Message::Appended { .. } | Message::Gap { .. } => Some(Route::WriteSync),
            Message::Opinion { .. } | Message::NotMember { .. } => Some(Route::DeclareCapability),
            Message::Pulled { .. } => Some(Route::CatchUp),
            Message::Side { .. } => Some(Route::IsLeader),
            _ => None,
        }
    }
}

impl Packet {
    /// `lines` are the lines of the message's records, if there are any, and `chain` is the checksum that they continue from.
    pub fn new(envelope: &Envelope, lines: Bytes, chain: u32) -> Packet {
        let message = &envelope.message;
        let body = match message {
            Message::Append { .. } | Message::Pulled { .. } => lines,
            message => Bytes::from(seed_body(envelope, message)),
        };
        Packet {
            route: Route::of(message),
            sender: Sender::of(envelope),
            message: super::encode(message, chain),
            body,
        }
    }
}

/// Returns the body in the seed's own form, which a reader of the traffic expects. No node reads it: everything that counts is in
/// the envelope.
fn seed_body(envelope: &Envelope, message: &Message) -> String {
    match message {
        Message::Willing { .. } | Message::Claim(_) => format!("{{\"node_idx\": {}}}", envelope.from.0),
        Message::Approve { .. } | Message::HandOver(_) => "{\"approved\": true}".to_string(),
        Message::Refuse { .. } => "{\"approved\": false}".to_string(),
        Message::Opinion { yes, .. } => {
            let reason = if *yes { "would approve" } else { "would not approve" };
            format!("{{\"approved\": {yes}, \"reason\": \"{reason}\"}}")
        }
        // The body says whether the sender leads; the envelope has the leader that it follows.
        Message::Side { leader, .. } => (*leader == Some(envelope.from)).to_string(),
        Message::Meet { .. } => "{\"reason\": \"two leaders have met\"}".to_string(),
        // The position is in the envelope; the body has the boundary below it, as the seed counts them.
        Message::Pull { after, .. } => format!("{{\"snapshot_id\": {}}}", after.index / SEED_BOUNDARY),
        _ => String::new(),
    }
}

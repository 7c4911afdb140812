//! Encodes a message as one header line, and decodes it. Records and snapshots travel in the body: as the log's own lines, and as the
//! snapshot's own files.
//!
//! A message has a name and its own fields. `attachment` tells from the line alone what the body is, before the body is read;
//! `decode` then takes the line together with the body.
//!
//! ```text
//!   append term=7.1/5e02 prev=6.2@11 chain=9a3f01bc count=3 commit=10        body: three lines of the log
//!   heartbeat term=7.1/5e02 round=88 lease=1500000 commit=13 heir=2 boundary=10
//! ```

use super::fields::WireError;
use super::fields::{FieldWriter, Fields};
use crate::protocol::{
    Beat, BeatReply, Certificate, Checkpoint, Claim, Condition, Message, Records, SnapshotMeta, Standing,
    Term,
};
use crate::types::{Digest, Epoch, Incarnation, Index, NodeId, Position};

/// The part of a message that is in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    Nothing,
    /// Lines of the log; the checksum of the first line is chained to this.
    Lines {
        chain: u32,
        count: usize,
    },
    Snapshot,
    /// The difference between two states: streamed like a snapshot.
    Difference,
}

/// The decoded body.
#[derive(Debug)]
pub enum Attached {
    Nothing,
    Lines(Records),
    Snapshot(SnapshotMeta),
    /// The position of the sender's state.
    Difference(SnapshotMeta),
}

/// Returns the header line. `chain` is the checksum of the line before the first one in the body. A node that is not there (an
/// heir, a leader) is written as 0. A field that has no value is left out.
pub fn encode(message: &Message, chain: u32) -> String {
    match message {
        Message::Heartbeat(Beat { term, round, lease, commit, heir, boundary, vector }) => {
            FieldWriter::new("heartbeat")
                .term(*term)
                .put("round", round)
                .put("lease", lease.0)
                .put("commit", commit)
                .put("heir", heir.unwrap_or_default().0)
                .put("boundary", boundary)
                .vector(vector)
        }
        Message::HeartbeatReply(BeatReply { epoch, round, matched, last, full, digest, vector }) => {
            let writer = FieldWriter::new("heard").put("epoch", epoch).put("round", round);
            let writer = writer.put("matched", matched).put("last", last).flag("full", *full);
            let writer = writer.vector(vector);
            match digest {
                Some(checkpoint) => checked(writer, *checkpoint),
                None => writer,
            }
        }
        Message::Append { term, prev, records, commit } => {
            return encode_append(*term, *prev, chain, records.len(), *commit);
        }
        Message::Appended { epoch, matched } => {
            FieldWriter::new("appended").put("epoch", epoch).put("matched", matched)
        }
        Message::Gap { epoch, prev, hint } => {
            FieldWriter::new("gap").put("epoch", epoch).put("prev", prev).put("hint", hint)
        }
        Message::Snapshot { term, .. } => FieldWriter::new("snapshot").term(*term),
        Message::Stale { promise } => FieldWriter::new("stale").term(*promise),
        Message::NotMember { ask, as_of, last } => {
            FieldWriter::new("notmember").put("ask", ask).put("as_of", as_of).put("last", last)
        }
        Message::Resigned { epoch } => FieldWriter::new("resigned").put("epoch", epoch),
        Message::Willing { ask, standing } => {
            standing_of(FieldWriter::new("willing").put("ask", ask), standing)
        }
        Message::Opinion { ask, yes, held, standing } => {
            let writer = FieldWriter::new("opinion").put("ask", ask).flag("yes", *yes).flag("held", *held);
            standing_of(writer, standing)
        }
        Message::Claim(claim) => {
            let writer = FieldWriter::new("claim").term(claim.term).put("last", claim.last);
            let writer = writer.put("condition", condition_name(claim.condition)).vector(&claim.vector);
            match claim.certificate {
                Some(certificate) => certified(writer, certificate),
                None => writer,
            }
        }
        Message::Approve { term, last, lease_left } => {
            FieldWriter::new("approve").term(*term).put("last", last).put("lease_left", lease_left.0)
        }
        Message::Refuse { term, promise } => FieldWriter::new("refuse").term(*term).put("promise", promise),
        Message::Pull { term, after } => FieldWriter::new("pull").term(*term).put("after", after),
        Message::Pulled { term, prev, records } => {
            lines(FieldWriter::new("pulled").term(*term), *prev, chain, records.len())
        }
        Message::HandOver(certificate) => certified(FieldWriter::new("handover"), *certificate),
        Message::Poll { term, vector } => FieldWriter::new("poll").term(*term).put("has", vector),
        Message::Side { epoch, leader, vector } => FieldWriter::new("side")
            .put("epoch", epoch)
            .put("leader", leader.unwrap_or_default().0)
            .put("has", vector),
        Message::Meet { term, vector } => FieldWriter::new("meet").term(*term).put("has", vector),
        Message::Merge { epoch, base, .. } => FieldWriter::new("merge").put("epoch", epoch).put("base", base),
        Message::Override { term, base, .. } => FieldWriter::new("override").term(*term).put("base", base),
        Message::Odd { epoch, incarnation, forgot, ask } => odd(*epoch, *incarnation, *forgot, *ask),
    }
    .done()
}

/// Encodes an append whose encoded lines are available, but not its records.
pub fn encode_append(term: Term, prev: Position, chain: u32, count: usize, commit: Index) -> String {
    lines(FieldWriter::new("append").term(term), prev, chain, count).put("commit", commit).done()
}

/// `chain` lets the receiver check the lines before it has compared `prev` with its own log: damaged lines do not reach the loop.
fn lines(writer: FieldWriter, prev: Position, chain: u32, count: usize) -> FieldWriter {
    writer.put("prev", prev).put("chain", format_args!("{chain:08x}")).put("count", count)
}

fn odd(epoch: Epoch, incarnation: Incarnation, forgot: bool, ask: Option<u64>) -> FieldWriter {
    let writer = FieldWriter::new("odd").put("epoch", epoch);
    let writer = writer.put("incarnation", format_args!("{:x}", incarnation.0));
    // Builds that do not know the flag handle it like a diverged state.
    let writer = if forgot { writer.flag("forgot", true) } else { writer };
    match ask {
        Some(ask) => writer.put("ask", ask),
        None => writer,
    }
}

/// A build that knows only one version ignores a digest of another one (P25). It looks for `at`, and finds no such field.
fn checked(writer: FieldWriter, Checkpoint { index, digest }: Checkpoint) -> FieldWriter {
    let Digest { version, value } = digest;
    let value = format_args!("{value:x}");
    match version {
        1 => writer.put("at", index).put("digest", value),
        _ => writer.put("other_at", index).put("digest", value).put("version", version),
    }
}

fn certified(writer: FieldWriter, certificate: Certificate) -> FieldWriter {
    let Certificate { epoch, heir, last } = certificate;
    writer.put("ended", epoch).put("heir", heir.0).put("ended_at", last)
}

fn standing_of(writer: FieldWriter, standing: &Standing) -> FieldWriter {
    let Standing { promise, seen, last, hears, seeking, condition, vector } = standing;
    writer
        .put("promise", promise)
        .put("seen", seen)
        .put("last", last)
        .nodes("hears", hears)
        .put("seeking", seeking.0)
        .put("condition", condition_name(*condition))
        .vector(vector)
}

/// Returns what must be read from the body before the message can be decoded. A name that is unknown has no body here, and
/// `decode` refuses it.
pub fn attachment(text: &str) -> Result<Attachment, WireError> {
    let fields = Fields::parse(text);
    match fields.name {
        "append" | "pulled" => {
            let chain = fields.get("chain")?;
            let chain = u32::from_str_radix(chain, 16).map_err(|_| super::fields::bad("chain", chain))?;
            Ok(Attachment::Lines { chain, count: fields.number("count")? })
        }
        "snapshot" => Ok(Attachment::Snapshot),
        "merge" | "override" => Ok(Attachment::Difference),
        _ => Ok(Attachment::Nothing),
    }
}

/// Returns whether only nodes whose histories may part send this message: in safe mode no node sends it. The caller checks this
/// before it reads the body.
pub fn needs_available_mode(text: &str) -> bool {
    matches!(Fields::parse(text).name, "poll" | "side" | "meet" | "merge" | "override")
}

pub fn decode(text: &str, attached: Attached) -> Result<Message, WireError> {
    let fields = Fields::parse(text);
    match fields.name {
        "append" | "pulled" => decode_lines(&fields, attached),
        "snapshot" => match attached {
            Attached::Snapshot(meta) => Ok(Message::Snapshot { term: fields.term()?, meta }),
            _ => Err(WireError::WrongBody { expected: "a snapshot" }),
        },
        "merge" | "override" => match attached {
            Attached::Difference(meta) => decode_difference(&fields, meta),
            _ => Err(WireError::WrongBody { expected: "a difference of states" }),
        },
        "heartbeat" | "heard" | "appended" | "gap" => decode_following(&fields),
        "poll" | "side" | "meet" => decode_meeting(&fields),
        _ => decode_electing(&fields),
    }
}

fn decode_lines(fields: &Fields<'_>, attached: Attached) -> Result<Message, WireError> {
    let Attached::Lines(records) = attached else {
        return Err(WireError::WrongBody { expected: "lines of the log" });
    };
    let (term, prev) = (fields.term()?, fields.position("prev")?);
    // The core relies on records that follow each other (P50), and a peer may send anything.
    let contiguous = records.iter().zip(prev.index + 1..).all(|(record, index)| record.index() == index);
    if !contiguous || records.len() != fields.number::<usize>("count")? {
        return Err(WireError::WrongBody {
            expected: "the number of records given in the message, without a gap",
        });
    }
    match fields.name {
        "append" => Ok(Message::Append { term, prev, records, commit: fields.number("commit")? }),
        _ => Ok(Message::Pulled { term, prev, records }),
    }
}

fn decode_difference(fields: &Fields<'_>, meta: SnapshotMeta) -> Result<Message, WireError> {
    let base = fields.vector_in("base")?;
    match fields.name {
        "merge" => Ok(Message::Merge { epoch: fields.epoch("epoch")?, base, meta }),
        _ => Ok(Message::Override { term: fields.term()?, base, meta }),
    }
}

fn decode_meeting(fields: &Fields<'_>) -> Result<Message, WireError> {
    let vector = fields.vector_in("has")?;
    Ok(match fields.name {
        "poll" => Message::Poll { term: fields.term()?, vector },
        "meet" => Message::Meet { term: fields.term()?, vector },
        _ => Message::Side {
            epoch: fields.epoch("epoch")?,
            leader: Some(NodeId(fields.number("leader")?)).filter(|leader| *leader != NodeId::NONE),
            vector,
        },
    })
}

fn decode_following(fields: &Fields<'_>) -> Result<Message, WireError> {
    Ok(match fields.name {
        "heartbeat" => Message::Heartbeat(Beat {
            term: fields.term()?,
            round: fields.number("round")?,
            lease: fields.span("lease")?,
            commit: fields.number("commit")?,
            heir: Some(NodeId(fields.number("heir")?)).filter(|heir| *heir != NodeId::NONE),
            boundary: fields.number("boundary")?,
            vector: fields.vector()?,
        }),
        "heard" => Message::HeartbeatReply(BeatReply {
            epoch: fields.epoch("epoch")?,
            round: fields.number("round")?,
            matched: fields.number("matched")?,
            last: fields.position("last")?,
            full: fields.flag("full")?,
            digest: checkpoint(fields)?,
            vector: fields.vector()?,
        }),
        "appended" => Message::Appended { epoch: fields.epoch("epoch")?, matched: fields.number("matched")? },
        _ => Message::Gap {
            epoch: fields.epoch("epoch")?,
            prev: fields.position("prev")?,
            hint: fields.position("hint")?,
        },
    })
}

fn decode_electing(fields: &Fields<'_>) -> Result<Message, WireError> {
    Ok(match fields.name {
        "stale" => Message::Stale { promise: fields.term()? },
        "notmember" => Message::NotMember {
            ask: fields.number("ask")?,
            as_of: fields.number("as_of")?,
            last: fields.position("last")?,
        },
        "resigned" => Message::Resigned { epoch: fields.epoch("epoch")? },
        "willing" => Message::Willing { ask: fields.number("ask")?, standing: standing(fields)? },
        "opinion" => Message::Opinion {
            ask: fields.number("ask")?,
            yes: fields.flag("yes")?,
            held: fields.flag("held")?,
            standing: standing(fields)?,
        },
        "claim" => Message::Claim(Claim {
            term: fields.term()?,
            last: fields.position("last")?,
            condition: condition(fields)?,
            certificate: fields.find("ended").map(|_| certificate(fields)).transpose()?,
            vector: fields.vector()?,
        }),
        "approve" => Message::Approve {
            term: fields.term()?,
            last: fields.position("last")?,
            lease_left: fields.span("lease_left")?,
        },
        "refuse" => Message::Refuse { term: fields.term()?, promise: fields.epoch("promise")? },
        "pull" => Message::Pull { term: fields.term()?, after: fields.position("after")? },
        "handover" => Message::HandOver(certificate(fields)?),
        "odd" => Message::Odd {
            epoch: fields.epoch("epoch")?,
            incarnation: Incarnation(fields.hex("incarnation")?),
            forgot: fields.find("forgot").map(|_| fields.flag("forgot")).transpose()?.unwrap_or_default(),
            ask: fields.find("ask").map(|_| fields.number("ask")).transpose()?,
        },
        // The name goes into the answer and into logs, so little of it is kept.
        other => return Err(WireError::UnknownMessage(other.chars().take(32).collect())),
    })
}

/// If there is neither field, the sender has no digest at that boundary. `version` is missing for the first computation.
fn checkpoint(fields: &Fields<'_>) -> Result<Option<Checkpoint>, WireError> {
    let (at, version) = match (fields.find("at"), fields.find("other_at")) {
        (Some(_), _) => ("at", 1),
        (None, Some(_)) => ("other_at", fields.number("version")?),
        (None, None) => return Ok(None),
    };
    let digest = Digest { version, value: fields.hex("digest")? };
    Ok(Some(Checkpoint { index: fields.number(at)?, digest }))
}

fn certificate(fields: &Fields<'_>) -> Result<Certificate, WireError> {
    Ok(Certificate {
        epoch: fields.epoch("ended")?,
        heir: NodeId(fields.number("heir")?),
        last: fields.position("ended_at")?,
    })
}

fn standing(fields: &Fields<'_>) -> Result<Standing, WireError> {
    Ok(Standing {
        promise: fields.epoch("promise")?,
        seen: fields.epoch("seen")?,
        last: fields.position("last")?,
        hears: fields.nodes("hears")?,
        seeking: fields.span("seeking")?,
        condition: condition(fields)?,
        vector: fields.vector()?,
    })
}

fn condition(fields: &Fields<'_>) -> Result<Condition, WireError> {
    match fields.get("condition")? {
        "blank" => Ok(Condition::Blank),
        "ordered" => Ok(Condition::Ordered),
        "recovering" => Ok(Condition::Recovering),
        "held" => Ok(Condition::Held),
        "fit" => Ok(Condition::Fit),
        other => Err(super::fields::bad("condition", other)),
    }
}

fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::Blank => "blank",
        Condition::Ordered => "ordered",
        Condition::Recovering => "recovering",
        Condition::Held => "held",
        Condition::Fit => "fit",
    }
}

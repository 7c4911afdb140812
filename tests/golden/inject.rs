//! Messages written by hand: ones that a process of an earlier life, or a broken one, might still send.

use std::collections::BTreeSet;

use eldest::protocol::{
    Beat, BeatReply, Certificate, Claim, Condition, Envelope, Message, Records, SnapshotMeta, Standing, Term,
};
use eldest::types::{ClaimId, Entry, Epoch, Incarnation, NodeId, Position, Record, Span, Stamp};

use crate::commands::{node, parse};
use crate::host::user;
use crate::stage::Stage;

/// The contents of a hand-written message, for the kinds that have such a field.
struct Fields {
    term: Term,
    prev: Position,
    last: Position,
    records: Records,
    heir: NodeId,
    /// The disk that it is meant for.
    addressee: Incarnation,
    certificate: Option<Certificate>,
}

/// `append 1.1 prev 1.1@2 with x`: kind, epoch, then fields. The claim is the one that the epoch belongs to,
/// unless the script says `claim other`.
pub fn envelope(stage: &Stage, from: NodeId, to: NodeId, words: &[&str]) -> Result<Envelope, String> {
    let [kind, epoch, rest @ ..] = words else {
        return Err("a message has a kind and an epoch".into());
    };
    let epoch = self::epoch(epoch)?;
    let claim = stage.claims.get(&epoch).copied().unwrap_or_default();
    let mut fields = Fields {
        term: Term { epoch, claim },
        prev: Position::ZERO,
        last: Position::ZERO,
        records: Records::from([]),
        heir: to,
        addressee: stage.hosts[&to].disk.incarnation,
        certificate: None,
    };
    for pair in rest.chunks(2) {
        let [name, value] = pair else {
            return Err("a field has a name and a value".into());
        };
        fields.set(name, value)?;
    }
    Ok(stage.hosts[&from].envelope(to, fields.message(kind)?))
}

impl Fields {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "claim" if value == "other" => self.term.claim = ClaimId(9999),
            "prev" => self.prev = position(value)?,
            "last" => self.last = position(value)?,
            "heir" => self.heir = node(value)?,
            "with" => {
                let entry = Entry::Client(user(value));
                let position = Position::new(self.term.epoch, self.prev.index + 1);
                let stamp = Stamp::default();
                self.records = Records::from([Record { position, stamp, entry }]);
            }
            "after" => {
                self.certificate =
                    Some(Certificate { epoch: epoch(value)?, heir: self.term.epoch.leader, last: self.last });
            }
            _ => return Err(format!("no such field: {name}")),
        }
        Ok(())
    }

    fn message(self, kind: &str) -> Result<Message, String> {
        let (term, epoch, last) = (self.term, self.term.epoch, self.last);
        Ok(match kind {
            "heard" | "appended" | "gap" | "refuse" | "approve" | "opinion" => self.answer(kind),
            "stale" => Message::Stale { promise: term },
            "resigned" => Message::Resigned { epoch },
            "willing" => Message::Willing { ask: 1, standing: standing(epoch, last) },
            "claim" => Message::Claim(Claim {
                term,
                last,
                condition: Condition::Fit,
                certificate: self.certificate,
                vector: None,
            }),
            "pull" => Message::Pull { term, after: last },
            "pulled" => Message::Pulled { term, prev: self.prev, records: self.records },
            "hand-over" => Message::HandOver(Certificate { epoch, heir: self.heir, last }),
            "odd" => Message::Odd { epoch, incarnation: self.addressee, forgot: false, ask: None },
            _ => self.order(kind)?,
        })
    }

    /// A message that a leader sends to its followers.
    fn order(self, kind: &str) -> Result<Message, String> {
        let (term, commit) = (self.term, self.last.index);
        Ok(match kind {
            "heartbeat" => Message::Heartbeat(Beat {
                term,
                round: 1,
                lease: Span::millis(300),
                commit,
                heir: None,
                boundary: 0,
                vector: None,
            }),
            "append" => Message::Append { term, prev: self.prev, records: self.records, commit },
            "snapshot" => {
                let meta = SnapshotMeta { at: self.last, ..Default::default() };
                Message::Snapshot { term, meta }
            }
            _ => return Err(format!("no such kind of message: {kind}")),
        })
    }

    fn answer(&self, kind: &str) -> Message {
        let (term, epoch, last) = (self.term, self.term.epoch, self.last);
        match kind {
            "heard" => Message::HeartbeatReply(BeatReply {
                epoch,
                round: 1,
                matched: last.index,
                last,
                full: false,
                digest: None,
                vector: None,
            }),
            "appended" => Message::Appended { epoch, matched: last.index },
            "gap" => Message::Gap { epoch, prev: self.prev, hint: last },
            "refuse" => Message::Refuse { term, promise: epoch },
            "approve" => Message::Approve { term, last, lease_left: Span::ZERO },
            _ => Message::Opinion { ask: 1, yes: true, held: false, standing: standing(epoch, last) },
        }
    }
}

fn standing(promise: Epoch, last: Position) -> Standing {
    Standing {
        promise,
        seen: promise,
        last,
        hears: BTreeSet::new(),
        seeking: Span::ZERO,
        condition: Condition::Fit,
        vector: None,
    }
}

fn position(word: &str) -> Result<Position, String> {
    let (epoch, index) = word.split_once('@').ok_or("a position is 1.1@2")?;
    Ok(Position::new(self::epoch(epoch)?, parse(index)?))
}

fn epoch(word: &str) -> Result<Epoch, String> {
    let (counter, leader) = word.split_once('.').ok_or("an epoch is 1.1")?;
    Ok(Epoch::new(parse(counter)?, NodeId(parse(leader)?)))
}

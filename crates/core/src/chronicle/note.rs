//! One entry: what a node has seen at a moment, as a line of JSON. Unknown fields of a newer version are dropped.
//!
//! The words for events and causes are in files that outlive the process, and nodes of other versions may read them. So a word
//! keeps its meaning, and `words.rs` shows an unknown one as it is. The reasons for which a leader is given up have the same
//! words in the metrics.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::protocol::{Cause, Event, Impasse, Objection};
use crate::types::{Epoch, Position, Span, WallTime};

type Word = Cow<'static, str>;

/// The words of another node are kept up to this length, in characters: a setting and both values.
const DETAIL_MOST: usize = 200;

const JOURNAL_LOST: &str = "journal_lost";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The time by the node's own clock. Clocks of nodes may differ, so times of two nodes say little about which step came
    /// first.
    #[serde(with = "moment")]
    pub at: WallTime,
    pub event: Word,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// The other node that the entry is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Word>,
    /// With a cause: the node that is followed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<u32>,
    /// With a cause: how many come before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// With an answer to a candidate: the greatest epoch that this node has promised with it, and the last position of its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// With a leader that was given up: the time for which it was silent, and the time for which this node waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// The length of a pause, of a wait for the disk, or of a hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// The time by which the wall clock was set forward, or back if it is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift_ms: Option<i64>,
    /// With a hand-over: who ordered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why calls to another node fail although a server answers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The time for which this node had known no leader until now, by its monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_ms: Option<u64>,
    /// The time since the machine started. It orders the entries of one machine, whatever its wall clock shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_us: Option<u64>,
}

impl Note {
    /// Returns None for an event that does not concern leadership.
    pub fn of(at: WallTime, event: &Event) -> Option<Note> {
        let entry = |word| Note { at, event: Cow::Borrowed(word), ..Note::default() };
        Some(match event {
            Event::Suspected { leader, cause: cause @ Cause::Silence, silent, patience } => Note {
                silent_ms: Some(silent.0 / 1000),
                patience_ms: Some(patience.0 / 1000),
                ..entry("suspected").about(leader.0).because(*cause)
            },
            Event::Suspected { leader, cause, .. } => entry("suspected").about(leader.0).because(*cause),
            Event::HandsOver { heir, reason } => {
                let by = reason.by().map(str::to_string);
                let cause = Some(Cow::Borrowed(reason.word()));
                Note { by, cause, ..entry("hands_over").about(heir.0) }
            }
            Event::HandedOver { leader, heir } => {
                Note { instead: Some(heir.0), ..entry("handed_over").about(leader.0) }
            }
            Event::StandsBack { time } => Note { for_ms: Some(time.0 / 1000), ..entry("stands_back") },
            Event::Slept { late } => Note { for_ms: Some(late.0 / 1000), ..entry("slept") },
            Event::WallClockSet { micros } => Note { shift_ms: Some(micros / 1000), ..entry("clock_set") },
            Event::Held { node, time } => Note { for_ms: Some(time.0 / 1000), ..entry("held").about(node.0) },
            Event::Claimed { epoch } => entry("claimed").in_epoch(*epoch),
            Event::Opened { epoch } => entry("opened").in_epoch(*epoch),
            Event::Following { epoch } => entry("following").in_epoch(*epoch).about(epoch.leader.0),
            Event::SteppedDown { epoch, cause } => entry("stepped_down").in_epoch(*epoch).because(*cause),
            Event::Admitted { .. } => entry("admitted"),
            Event::Replaced { .. } => entry("replaced"),
            Event::Met { other } => entry("met").about(other.0),
            Event::Merged { with, .. } => entry("merged").about(with.0),
            Event::Impasse { other, why } => {
                Note { cause: Some(impasse(why)), ..entry("impasse").about(other.0) }
            }
            Event::Overridden { .. } => entry("overridden"),
            Event::Diverged { .. } => entry("diverged"),
            Event::Declined { candidate, why } => entry("declined").about(candidate.0).objecting(*why),
            Event::Approved { epoch } => entry("approved").in_epoch(*epoch).about(epoch.leader.0),
            Event::Deferred { epoch, why } => {
                entry("deferred").in_epoch(*epoch).about(epoch.leader.0).objecting(*why)
            }
            Event::Refused { epoch, why } => {
                entry("refused").in_epoch(*epoch).about(epoch.leader.0).objecting(*why)
            }
            Event::Backed { epoch, by } => entry("backed").in_epoch(*epoch).about(by.0),
            Event::TurnedDown { epoch, by } => entry("turned_down").in_epoch(*epoch).about(by.0),
            // These concern a disk, not leadership. Both are in the log for operators.
            Event::Accused { .. } | Event::Forgot { .. } => return None,
        })
    }

    /// The process has started. `lost`: there should be entries of earlier processes, and there are none.
    pub fn started(at: WallTime, lost: bool) -> Note {
        let cause = lost.then_some(Cow::Borrowed(JOURNAL_LOST));
        Note { at, event: Cow::Borrowed("started"), cause, ..Note::default() }
    }

    /// The disk has not stored what this node gave it that long ago.
    pub fn disk_waits(at: WallTime, waited: Span) -> Note {
        Note { at, event: Cow::Borrowed("disk_waits"), for_ms: Some(waited.0 / 1000), ..Note::default() }
    }

    /// The disk has stored what it was given that long ago.
    pub fn disk_answers(at: WallTime, waited: Span) -> Note {
        Note { event: Cow::Borrowed("disk_answers"), ..Note::disk_waits(at, waited) }
    }

    /// Calls to that node fail although a server answers them.
    pub fn barred(at: WallTime, node: u32, detail: &str) -> Note {
        let detail = detail.chars().take(DETAIL_MOST).collect();
        Note { at, event: Cow::Borrowed("barred"), node: Some(node), detail: Some(detail), ..Note::default() }
    }

    /// Adds the standing of the node that answers a candidate.
    pub fn with_standing(self, last: Position, promised: Epoch) -> Note {
        match self.event.as_ref() {
            "declined" | "approved" | "deferred" | "refused" => {
                let promised = self.promised.clone().unwrap_or_else(|| promised.to_string());
                Note { last: Some(last.to_string()), promised: Some(promised), ..self }
            }
            _ => self,
        }
    }

    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns None if the line is not an entry. The file may have been cut short by a power failure, and a
    /// newer version may have written it.
    pub fn parse(line: &str) -> Option<Note> {
        serde_json::from_str(line).ok()
    }

    /// The entry may explain a change of leader, but is no step towards one.
    pub fn is_observation(&self) -> bool {
        matches!(
            self.event.as_ref(),
            "slept" | "clock_set" | "held" | "stands_back" | "disk_waits" | "disk_answers" | "barred"
        )
    }

    /// A step towards a leader, or towards one side, that may fail many times.
    pub fn is_an_attempt(&self) -> bool {
        match self.event.as_ref() {
            "claimed" | "approved" | "backed" | "turned_down" | "met" | "impasse" => true,
            "suspected" => self.cause.as_deref() == Some(Cause::NoDecision.word()),
            _ => false,
        }
    }

    /// A leader is lost with this entry, or another one begins.
    pub fn is_decisive(&self) -> bool {
        matches!(
            self.event.as_ref(),
            "started" | "suspected" | "stepped_down" | "hands_over" | "handed_over" | "claimed" | "merged"
        )
    }

    /// Returns whether the node knows a leader from this entry on.
    pub fn begins_to_follow(&self) -> bool {
        matches!(self.event.as_ref(), "opened" | "following")
    }

    /// The node began without the entries of earlier processes.
    pub fn tells_of_a_loss(&self) -> bool {
        self.cause.as_deref() == Some(JOURNAL_LOST)
    }

    fn in_epoch(self, epoch: Epoch) -> Note {
        Note { epoch: Some(epoch.to_string()), ..self }
    }

    fn about(self, node: u32) -> Note {
        Note { node: Some(node), ..self }
    }

    fn because(self, cause: Cause) -> Note {
        Note { cause: Some(Cow::Borrowed(cause.word())), ..self }
    }

    fn objecting(self, why: Objection) -> Note {
        let word = |word| Some(Cow::Borrowed(word));
        match why {
            Objection::MayNotVote => Note { cause: word("may_not_vote"), ..self },
            Objection::MayNotFound => Note { cause: word("may_not_found"), ..self },
            Objection::OtherHistory => Note { cause: word("other_history"), ..self },
            Objection::Leads => Note { cause: word("leads"), ..self },
            Objection::Follows { leader } => Note { cause: word("follows"), instead: Some(leader.0), ..self },
            Objection::Awaits { candidate } => {
                Note { cause: word("awaits"), instead: Some(candidate.0), ..self }
            }
            Objection::ClaimsItself => Note { cause: word("claims_itself"), ..self },
            Objection::Quiet => Note { cause: word("quiet"), ..self },
            Objection::NotItsTurn { before } => {
                Note { cause: word("not_its_turn"), before: Some(before), ..self }
            }
            Objection::Promised { epoch } => {
                Note { cause: word("promised"), promised: Some(epoch.to_string()), ..self }
            }
        }
    }
}

fn impasse(why: &Impasse) -> Word {
    Cow::Borrowed(match why {
        Impasse::NothingComes => "nothing_comes",
        Impasse::TooLarge { .. } => "too_large",
        Impasse::JournalFull { .. } => "journal_full",
    })
}

mod moment {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::store::{date_micros, date_text};
    use crate::types::WallTime;

    pub fn serialize<S: Serializer>(at: &WallTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&date_text(*at))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<WallTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        let micros = date_micros(&text).and_then(|micros| u64::try_from(micros).ok());
        micros.map(WallTime).ok_or_else(|| D::Error::custom("not a date and time of RFC 3339"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::HandOverReason;
    use crate::types::NodeId;

    const AT: WallTime = WallTime(1_700_000_000_250_000);

    #[test]
    fn a_line_reads_as_it_was_written() {
        let epoch = Epoch { counter: 7, leader: NodeId(2) };
        let events = [
            Event::Suspected {
                leader: NodeId(1),
                cause: Cause::Silence,
                silent: Span::millis(512),
                patience: Span::millis(500),
            },
            Event::HandsOver { heir: NodeId(2), reason: HandOverReason::Ordered { by: "admin".into() } },
            Event::WallClockSet { micros: -3_600_000_000 },
            Event::Declined { candidate: NodeId(3), why: Objection::Follows { leader: NodeId(1) } },
            Event::Deferred { epoch, why: Objection::NotItsTurn { before: 2 } },
            Event::Refused { epoch, why: Objection::Promised { epoch } },
            Event::Backed { epoch, by: NodeId(3) },
        ];
        for event in &events {
            let position = Position { epoch, index: 41 };
            let entry = Note::of(AT, event).expect("it is about who leads").with_standing(position, epoch);
            assert_eq!(Note::parse(&entry.line()), Some(entry.clone()), "{}", entry.line());
        }
        let line = Note::of(AT, &events[0]).expect("an entry").line();
        assert_eq!(
            line,
            r#"{"at":"2023-11-14T22:13:20.25Z","event":"suspected","node":1,"cause":"silence","silent_ms":512,"patience_ms":500}"#
        );
    }

    #[test]
    fn what_is_no_entry_is_left_out_and_what_is_newer_is_read_as_far_as_it_goes() {
        for line in ["", "{", "7", r#"{"event":"opened"}"#, r#"{"at":"yesterday","event":"opened"}"#] {
            assert_eq!(Note::parse(line), None, "{line}");
        }
        let newer = r#"{"at":"2023-11-14T22:13:20Z","event":"danced","partner":7,"node":4}"#;
        let entry = Note::parse(newer).expect("an event of a newer version");
        assert_eq!((entry.event.as_ref(), entry.node), ("danced", Some(4)));
    }
}

//! One entry: what a node has seen at a moment, as a line of JSON. Unknown fields of a newer version are dropped.
//!
//! The words for events and causes are in files that outlive the process, and nodes of other versions may read them. So a word
//! keeps its meaning, and `words.rs` shows an unknown one as it is. The reasons for which a leader is given up have the same
//! words in the metrics.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::protocol::{Cause, Event, Impasse, Objection};
use crate::types::{Epoch, WallTime};

type Word = Cow<'static, str>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
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
    /// With a cause: the epoch that is already promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<String>,
    /// The time for which this node had known no leader until now, by its monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaderless_ms: Option<u64>,
}

impl Entry {
    /// Returns None for an event that does not concern leadership.
    pub fn of(at: WallTime, event: &Event) -> Option<Entry> {
        let entry = |word| Entry { at, event: Cow::Borrowed(word), ..Entry::default() };
        Some(match event {
            Event::Suspected { leader, cause } if leader.0 == 0 => entry("seeks").because(*cause),
            Event::Suspected { leader, cause } => entry("suspected").about(leader.0).because(*cause),
            Event::Claimed { epoch } => entry("claimed").in_epoch(*epoch),
            Event::Opened { epoch } => entry("opened").in_epoch(*epoch),
            Event::Following { epoch } => entry("following").in_epoch(*epoch).about(epoch.leader.0),
            Event::SteppedDown { epoch, cause } => entry("stepped_down").in_epoch(*epoch).because(*cause),
            Event::Admitted { .. } => entry("admitted"),
            Event::Replaced { .. } => entry("replaced"),
            Event::Met { other } => entry("met").about(other.0),
            Event::Merged { with, .. } => entry("merged").about(with.0),
            Event::Impasse { other, why } => {
                Entry { cause: Some(impasse(why)), ..entry("impasse").about(other.0) }
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

    /// The process has started.
    pub fn started(at: WallTime) -> Entry {
        Entry { at, event: Cow::Borrowed("started"), ..Entry::default() }
    }

    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns None if the line is not an entry. The file may have been cut short by a power failure, and a
    /// newer version may have written it.
    pub fn parse(line: &str) -> Option<Entry> {
        serde_json::from_str(line).ok()
    }

    /// Returns whether the node knows a leader from this entry on.
    pub fn begins_to_follow(&self) -> bool {
        matches!(self.event.as_ref(), "opened" | "following")
    }

    fn in_epoch(self, epoch: Epoch) -> Entry {
        Entry { epoch: Some(epoch.to_string()), ..self }
    }

    fn about(self, node: u32) -> Entry {
        Entry { node: Some(node), ..self }
    }

    fn because(self, cause: Cause) -> Entry {
        Entry { cause: Some(Cow::Borrowed(cause.word())), ..self }
    }

    fn objecting(self, why: Objection) -> Entry {
        let word = |word| Some(Cow::Borrowed(word));
        match why {
            Objection::MayNotVote => Entry { cause: word("may_not_vote"), ..self },
            Objection::MayNotFound => Entry { cause: word("may_not_found"), ..self },
            Objection::OtherHistory => Entry { cause: word("other_history"), ..self },
            Objection::Leads => Entry { cause: word("leads"), ..self },
            Objection::Follows { leader } => {
                Entry { cause: word("follows"), instead: Some(leader.0), ..self }
            }
            Objection::Awaits { candidate } => {
                Entry { cause: word("awaits"), instead: Some(candidate.0), ..self }
            }
            Objection::ClaimsItself => Entry { cause: word("claims_itself"), ..self },
            Objection::Quiet => Entry { cause: word("quiet"), ..self },
            Objection::NotItsTurn { before } => {
                Entry { cause: word("not_its_turn"), before: Some(before), ..self }
            }
            Objection::Promised { epoch } => {
                Entry { cause: word("promised"), promised: Some(epoch.to_string()), ..self }
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
    use crate::types::NodeId;

    const AT: WallTime = WallTime(1_700_000_000_250_000);

    #[test]
    fn a_line_reads_as_it_was_written() {
        let epoch = Epoch { counter: 7, leader: NodeId(2) };
        let events = [
            Event::Suspected { leader: NodeId(1), cause: Cause::Silence },
            Event::Declined { candidate: NodeId(3), why: Objection::Follows { leader: NodeId(1) } },
            Event::Deferred { epoch, why: Objection::NotItsTurn { before: 2 } },
            Event::Refused { epoch, why: Objection::Promised { epoch } },
            Event::Backed { epoch, by: NodeId(3) },
        ];
        for event in events {
            let entry = Entry::of(AT, &event).expect("it is about who leads");
            assert_eq!(Entry::parse(&entry.line()), Some(entry.clone()), "{}", entry.line());
        }
        let line = Entry::of(AT, &events[0]).expect("an entry").line();
        assert_eq!(
            line,
            r#"{"at":"2023-11-14T22:13:20.25Z","event":"suspected","node":1,"cause":"silence"}"#
        );
    }

    #[test]
    fn what_is_no_entry_is_left_out_and_what_is_newer_is_read_as_far_as_it_goes() {
        for line in ["", "{", "7", r#"{"event":"opened"}"#, r#"{"at":"yesterday","event":"opened"}"#] {
            assert_eq!(Entry::parse(line), None, "{line}");
        }
        let newer = r#"{"at":"2023-11-14T22:13:20Z","event":"danced","partner":7,"node":4}"#;
        let entry = Entry::parse(newer).expect("an event of a newer version");
        assert_eq!((entry.event.as_ref(), entry.node), ("danced", Some(4)));
    }
}

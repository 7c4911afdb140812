//! The recent events of roles: which process got a role, and why it lost it.
//!
//! A node notes the events of the records that it applies. Those that came to it within a snapshot or another state are missing.
//! After a start records are applied again, and must not be noted twice.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::store::date_text;
use crate::types::{Index, Position, WallTime};

/// The maximum number of events of all roles: a minute of many roles that change each second, or months of a few roles. Beyond it
/// the oldest event of all is dropped.
pub const TURNS_MOST: usize = 4096;

#[derive(Debug, Default)]
pub struct RoleTurns {
    /// The newest is last.
    turns: VecDeque<Turn>,
    /// Records up to here were noted before, so a start that reads the log again does not note them twice. It stays the same
    /// while the node runs, because a running node applies each record once (I7).
    known: Index,
}

#[derive(Debug)]
struct Turn {
    role: String,
    line: String,
}

impl RoleTurns {
    /// `lines` are those of earlier processes, and `last` is the last index of the log. A line that claims a later record is damaged, or
    /// belongs to records that were cut off, and must not keep later records from being noted.
    pub fn open<'a>(lines: impl IntoIterator<Item = &'a str>, last: Index) -> RoleTurns {
        let mut roles = RoleTurns::default();
        for line in lines {
            let value: Value = serde_json::from_str(line).unwrap_or_default();
            let index = value["index"].as_u64().filter(|index| *index <= last);
            if let (Some(role), Some(index)) = (value["role"].as_str(), index) {
                roles.known = roles.known.max(index);
                roles.keep(Turn { role: role.to_string(), line: line.to_string() });
            }
        }
        roles
    }

    /// Notes an event. `members` are the JSON members of the feed's event, each with a comma before it. Returns the line to be written, if
    /// it is new.
    pub fn note(
        &mut self,
        at: WallTime,
        by: Position,
        event: &str,
        role: &str,
        members: &str,
    ) -> Option<String> {
        if by.index <= self.known {
            return None;
        }
        let line =
            format!("{{\"at\":\"{}\",\"index\":{},\"event\":\"{event}\"{members}}}", date_text(at), by.index);
        self.keep(Turn { role: role.to_string(), line: line.clone() });
        Some(line)
    }

    /// Returns the newest lines of a role, at most `most`, oldest first.
    pub fn of(&self, role: &str, most: usize) -> Vec<String> {
        let own = self.turns.iter().rev().filter(|turn| turn.role == role).take(most);
        let mut turns: Vec<String> = own.map(|turn| turn.line.clone()).collect();
        turns.reverse();
        turns
    }

    fn keep(&mut self, turn: Turn) {
        if self.turns.len() >= TURNS_MOST {
            self.turns.pop_front();
        }
        self.turns.push_back(turn);
    }
}

/// Returns a line for display: with its sentence for people.
pub fn turn_shown(line: &str) -> Value {
    let mut turn: Value = serde_json::from_str(line).unwrap_or_default();
    turn["says"] = said(&turn).into();
    turn
}

fn said(turn: &Value) -> String {
    let who = turn["instance_id"].as_str().unwrap_or("somebody");
    let token = &turn["token"];
    if turn["event"] == json!("acquired") {
        return format!("{who} acquired it with token {token}");
    }
    let why = match turn["reason"].as_str().unwrap_or_default() {
        "released" => "released it",
        "removed" => "was removed, by itself or by an operator",
        "expired" => "did not renew it in time",
        "replaced" => "was replaced by an operator",
        "merged" => "lost it to the other side's holder when two sides merged",
        // A newer version may have other reasons.
        _ => "no longer held it",
    };
    format!("{who} {why} (token {token})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: &str = r#","role":"x","instance_id":"a","token":7,"reason":"expired""#;

    #[test]
    fn a_role_is_told_of_by_its_newest_turns() {
        let mut roles = RoleTurns::default();
        let at = Position { index: 4, ..Position::ZERO };
        let line = roles.note(WallTime(0), at, "lost", "x", LOST).expect("it is new");
        assert_eq!(
            line,
            r#"{"at":"1970-01-01T00:00:00Z","index":4,"event":"lost","role":"x","instance_id":"a","token":7,"reason":"expired"}"#
        );
        roles.note(WallTime(0), at, "acquired", "y", r#","role":"y","instance_id":"b","token":8"#);
        let turns = roles.of("x", 9);
        assert_eq!(turns.len(), 1);
        assert_eq!(turn_shown(&turns[0])["says"], "a did not renew it in time (token 7)");
        assert_eq!(turn_shown(&roles.of("y", 9)[0])["says"], "b acquired it with token 8");
        let beyond = line.replace("\"index\":4", "\"index\":5");
        let mut again = RoleTurns::open([line.as_str(), "{", "7", &beyond], 4);
        assert_eq!(again.of("x", 9), turns);
        assert_eq!(again.note(WallTime(1), at, "lost", "x", LOST), None, "a start reads it again");
    }

    #[test]
    fn they_are_bounded() {
        let mut roles = RoleTurns::default();
        for _ in 0..TURNS_MOST + 5 {
            roles.note(WallTime(0), Position { index: 1, ..Position::ZERO }, "lost", "x", LOST);
        }
        assert_eq!(roles.turns.len(), TURNS_MOST);
        assert_eq!(roles.of("x", 3).len(), 3);
    }
}

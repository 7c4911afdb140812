//! Puts an entry into a sentence for people.
//!
//! Most sentences continue the name of the node that noted the entry: `node-2` gave up node-1. A word that this version does not
//! know is shown as it is, and a missing field by a general word, because entries of other versions and damaged ones come here as
//! well.

use super::note::Note;

/// `name` returns the name of the node with that number.
pub fn sentence(entry: &Note, name: impl Fn(u32) -> String) -> String {
    let other = entry.node.map_or("another node".to_string(), &name);
    let epoch = entry.epoch.as_deref().unwrap_or("?");
    let cause = cause(entry, &name);
    let because = if cause.is_empty() { String::new() } else { format!(": {cause}") };
    let said = match entry.event.as_ref() {
        "started" => format!("started{because}"),
        "suspected" => format!("gave up {other}{because}{}", silence(entry)),
        // Earlier versions noted it.
        "seeks" => format!("is looking for a leader{because}"),
        "handed_over" => {
            let heir = entry.instead.map_or("another node".to_string(), &name);
            format!("heard that {other} handed over to {heir}")
        }
        "hands_over" => format!("handed over to {other}{because}"),
        "claimed" => format!("claimed epoch {epoch}"),
        "opened" => format!("leads in epoch {epoch}"),
        "following" => format!("follows {other} in epoch {epoch}"),
        "stepped_down" => format!("stopped leading epoch {epoch}{because}"),
        "admitted" => "votes again".to_string(),
        "replaced" => "neither votes nor leads: another disk has replaced its own".to_string(),
        "met" => format!("met {other}, which also leads: the sides are being merged"),
        "merged" => format!("merged with the side of {other}"),
        "impasse" => format!("could not merge with the side of {other}{because}"),
        "overridden" => "was updated to the merged state".to_string(),
        "diverged" => "has another state than other nodes, and no majority tells which is right".to_string(),
        "declined" => format!("would not approve {other}{because}"),
        "approved" => format!("approved {other} for epoch {epoch}"),
        "deferred" => format!("made {other} wait with epoch {epoch}{because}"),
        "refused" => format!("refused epoch {epoch} to {other}{because}"),
        "backed" => format!("was approved by {other} for epoch {epoch}"),
        "turned_down" => format!("was refused epoch {epoch} by {other}"),
        "slept" => format!("stood still for {}", ms(entry)),
        "clock_set" => match entry.shift_ms.unwrap_or_default() {
            back if back < 0 => format!("had its wall clock set back by {} ms", back.unsigned_abs()),
            forward => format!("had its wall clock set forward by {forward} ms"),
        },
        "held" => format!("put {other} on hold for {}: it failed more than once", ms(entry)),
        "disk_waits" => format!("has been waiting for its disk for {}", ms(entry)),
        "disk_answers" => format!("waited for its disk for {}", ms(entry)),
        "stands_back" => format!("leaves the lead to others for {}: it could not lead", ms(entry)),
        "barred" => format!("could not talk to {other}: {}", entry.detail.as_deref().unwrap_or("?")),
        unknown => format!("{unknown}{because}"),
    };
    match entry.leaderless_ms {
        Some(ms) => format!("{said}, after {ms} ms without a leader"),
        None => said,
    }
}

fn ms(entry: &Note) -> String {
    entry.for_ms.map_or("some time".to_string(), |ms| format!("{ms} ms"))
}

/// The silence of a leader, and the time for which the node would have waited.
fn silence(entry: &Note) -> String {
    match (entry.silent_ms, entry.patience_ms) {
        (Some(silent), Some(patience)) => format!(" ({silent} ms of silence, {patience} ms of patience)"),
        _ => String::new(),
    }
}

fn cause(entry: &Note, name: impl Fn(u32) -> String) -> String {
    let Some(word) = entry.cause.as_deref() else { return String::new() };
    let instead = entry.instead.map_or("another node".to_string(), &name);
    match word {
        "started" => "it has just started".to_string(),
        "silence" => "it stopped answering".to_string(),
        "refused" => "its port refuses connections, so its process is dead".to_string(),
        "new_process" => "it restarted".to_string(),
        "resigned" => "it said that its epoch is over".to_string(),
        "no_majority" => "it no longer reached a majority".to_string(),
        "stuck" => "it could not commit".to_string(),
        "handed_over" => "it handed over".to_string(),
        "ordered" => format!("{} ordered it", entry.by.as_deref().unwrap_or("somebody")),
        "removed" if entry.event == "hands_over" => {
            format!("{} removes it from the members", entry.by.as_deref().unwrap_or("somebody"))
        }
        "stopping" => "its process was to end".to_string(),
        "disk_full" => "its disk was full".to_string(),
        "elder" => match entry.node {
            Some(node) => format!("{} precedes it and was up again", name(node)),
            None => "a node that precedes it was up again".to_string(),
        },
        "journal_lost" => "its journal of earlier events was lost".to_string(),
        "greater_epoch" => "another node claimed a greater epoch".to_string(),
        "no_decision" => "it did not become leader in time".to_string(),
        "merged" => "two sides merged".to_string(),
        "odd" => "its state differed from the majority's".to_string(),
        "replaced" => "another disk has replaced its own".to_string(),
        "may_not_vote" => "its own disk does not vote yet".to_string(),
        "may_not_found" => "it will not form a new cluster with it now".to_string(),
        "other_history" => "its log does not match this node's history".to_string(),
        "leads" => "it leads itself".to_string(),
        "follows" => format!("it still heard {instead}"),
        "awaits" => format!("it had approved {instead} and was waiting for it"),
        "claims_itself" => "it was claiming leadership itself and has precedence".to_string(),
        "quiet" => "it had just failed or handed over and was waiting".to_string(),
        "not_its_turn" => match entry.before {
            Some(1) => "one node had precedence".to_string(),
            Some(before) => format!("{before} nodes had precedence"),
            None => "other nodes had precedence".to_string(),
        },
        "promised" => format!("it had promised epoch {}", entry.promised.as_deref().unwrap_or("?")),
        "nothing_comes" => "the other side's state transfer could not be used".to_string(),
        "too_large" => "the state transfer would be larger than limits.merge_bytes".to_string(),
        "journal_full" => "the journal of conflicts is full".to_string(),
        unknown => unknown.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Cause, Event, HandOverReason, Impasse, Objection};
    use crate::store::Ended;
    use crate::types::{Epoch, NodeId, Position, Span, WallTime};

    fn said(event: Event) -> String {
        let entry = Note::of(WallTime(0), &event).expect("it is about who leads");
        sentence(&entry, |id| format!("node-{id}"))
    }

    fn suspected(cause: Cause) -> Event {
        let (silent, patience) = (Span::millis(512), Span::millis(500));
        Event::Suspected { leader: NodeId(1), cause, silent, patience }
    }

    #[test]
    fn entries_read_as_sentences() {
        let epoch = Epoch { counter: 7, leader: NodeId(2) };
        assert_eq!(
            said(suspected(Cause::Silence)),
            "gave up node-1: it stopped answering (512 ms of silence, 500 ms of patience)"
        );
        assert_eq!(
            said(Event::Declined { candidate: NodeId(3), why: Objection::Follows { leader: NodeId(1) } }),
            "would not approve node-3: it still heard node-1"
        );
        assert_eq!(
            said(Event::Deferred { epoch, why: Objection::NotItsTurn { before: 1 } }),
            "made node-2 wait with epoch 7.2: one node had precedence"
        );
        let led = Note {
            leaderless_ms: Some(412),
            ..Note::of(WallTime(0), &Event::Opened { epoch }).expect("one")
        };
        assert_eq!(sentence(&led, |_| String::new()), "leads in epoch 7.2, after 412 ms without a leader");
        let newer = Note { event: "danced".into(), cause: Some("music".into()), ..Note::default() };
        assert_eq!(sentence(&newer, |_| String::new()), "danced: music");
    }

    /// The rows of a table in `docs/causes.md`, each with the word and the sentence.
    fn rows(title: &str) -> Vec<(String, String)> {
        let page = include_str!("../../../../docs/causes.md");
        let (_, table) = page.split_once(&format!("## {title}\n")).expect(title);
        let table = table.split("\n## ").next().expect("a part");
        let row = |line: &str| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let word = cells.next()?.trim_end_matches('`').to_string();
            Some((word, cells.next()?.trim_end_matches(" |").to_string()))
        };
        table.lines().filter_map(row).collect()
    }

    fn row(event: Event) -> (String, String) {
        let promised = Epoch { counter: 7, leader: NodeId(1) };
        let entry = Note::of(WallTime(0), &event).expect("it is about who leads");
        let entry = entry.with_standing(Position::default(), promised);
        let why = cause(&entry, |id| format!("node-{id}"));
        (entry.cause.expect("it has a cause").into_owned(), why)
    }

    #[test]
    fn the_page_of_causes_has_each_with_its_sentence() {
        let leader = NodeId(1);
        let given_up = Cause::ALL.map(|cause| row(suspected(cause)));
        assert_eq!(rows("Why a leader was given up"), given_up);
        let reasons = [
            HandOverReason::Ordered { by: "admin".into() },
            HandOverReason::Removed { by: "admin".into() },
            HandOverReason::Stopping,
            HandOverReason::DiskFull,
            HandOverReason::Elder,
        ];
        let handed_over = reasons.map(|reason| row(Event::HandsOver { heir: leader, reason }));
        assert_eq!(rows("Why a leader handed over"), handed_over);
        let objections = [
            Objection::MayNotVote,
            Objection::MayNotFound,
            Objection::OtherHistory,
            Objection::Leads,
            Objection::Follows { leader },
            Objection::Awaits { candidate: leader },
            Objection::ClaimsItself,
            Objection::Quiet,
            Objection::NotItsTurn { before: 1 },
            Objection::Promised { epoch: Epoch { counter: 7, leader } },
        ];
        let declined = objections.map(|why| row(Event::Declined { candidate: NodeId(3), why }));
        assert_eq!(rows("Why a candidate was not approved"), declined);
        let impasses = [
            Impasse::NothingComes,
            Impasse::TooLarge { bytes: 2, most: 1 },
            Impasse::JournalFull { entries: 1, bytes: 1 },
        ];
        let called_off = impasses.map(|why| row(Event::Impasse { other: leader, why }));
        assert_eq!(rows("Why two sides could not merge"), called_off);
        let ended = [Ended::Released, Ended::Removed, Ended::Expired, Ended::Replaced, Ended::Merged];
        let words: Vec<String> =
            rows("Why a role or a process ended").into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ended.map(Ended::name));
    }
}

//! Rules about several numbers together. The protocol itself states the relations that it relies on, with its own
//! names of the timings ([`Timing::contradictions`]). This file replaces these names by the keys that an operator can
//! find.

use super::layers::Merged;
use super::mistakes::Findings;
use super::{Source, WrongValue, keys};
use crate::protocol::Mode;

/// The timings by the protocol's names, with their keys.
const TIMINGS: [(&str, &str); 11] = [
    ("heartbeat", "heartbeat_ms"),
    ("dead_after", "dead_after_ms"),
    ("declare", "declare_ms"),
    ("stagger", "stagger_ms"),
    ("lease", "lease_ms"),
    ("drift_percent", "drift_percent"),
    ("window", "window_ms"),
    ("stable_for", "stable_for_ms"),
    ("hold", "hold_ms"),
    ("hold_most", "hold_most_ms"),
    ("poll", "poll_ms"),
];

/// Further words for a timing in the text of a contradiction.
const OTHER_WORDS: [(&str, &str); 2] = [("beats", "heartbeat"), ("declaration", "declare")];

/// `mode` is `None` if it is mistaken itself.
pub fn check(mode: Option<Mode>, settings: &Merged, findings: &mut Findings) {
    for contradiction in settings.raw.timing.timing().contradictions() {
        let (why, keys) = in_keys(contradiction);
        report(&keys, why, settings, findings);
    }
    let (timing, limits) = (&settings.raw.timing, &settings.raw.limits);
    if timing.hold_ms > timing.hold_most_ms {
        let keys = ["timing.hold_ms", "timing.hold_most_ms"].map(str::to_string);
        report(
            &keys,
            "hold_ms must not be above hold_most_ms, the limit of its doubling".to_string(),
            settings,
            findings,
        );
    }
    if mode == Some(Mode::Available) && timing.poll_ms < timing.heartbeat_ms {
        let keys = ["timing.poll_ms", "timing.heartbeat_ms"].map(str::to_string);
        let why = "poll_ms must not be below heartbeat_ms, or leaders ask each other more often than they \
            contact their followers";
        report(&keys, why.to_string(), settings, findings);
    }
    if limits.body_bytes >= limits.uncommitted_bytes {
        let keys = ["limits.body_bytes", "limits.uncommitted_bytes"].map(str::to_string);
        let why =
            "body_bytes must be below uncommitted_bytes, or the largest body is always refused".to_string();
        report(&keys, why, settings, findings);
    }
    let each = match limits.bodies_bytes_each {
        0 => limits.bodies_bytes / 2,
        each => each.min(limits.bodies_bytes),
    };
    if 2 * limits.body_bytes > each {
        let keys =
            ["limits.body_bytes", "limits.bodies_bytes_each", "limits.bodies_bytes"].map(str::to_string);
        let why = "the share of bodies of one address (bodies_bytes_each, or half of bodies_bytes) must be at \
            least twice body_bytes, or the largest body is always refused";
        report(&keys, why.to_string(), settings, findings);
    }
}

/// A contradiction with the names of keys, and the keys that it is about. The reason after the colon stays as it is.
fn in_keys(contradiction: &str) -> (String, Vec<String>) {
    let (claim, reason) = contradiction.split_at(contradiction.find(':').unwrap_or(contradiction.len()));
    let mut keys = Vec::new();
    let words = claim.split(' ').map(|word| {
        let name = word.trim_end_matches(',');
        let other = OTHER_WORDS.iter().find(|(other, _)| *other == name).map(|(_, meant)| *meant);
        match TIMINGS.iter().find(|(timing, _)| *timing == other.unwrap_or(name)) {
            None => word.to_string(),
            Some((_, key)) => {
                let path = format!("timing.{key}");
                if !keys.contains(&path) {
                    keys.push(path);
                }
                if other.is_some() { word.to_string() } else { word.replace(name, key) }
            }
        }
    });
    let claim: Vec<String> = words.collect();
    (claim.join(" ") + reason, keys)
}

/// Reports a mistake at the first of the keys that is set. Reports nothing if one of the keys is already known to be
/// mistaken.
fn report(paths: &[String], why: String, settings: &Merged, findings: &mut Findings) {
    if !paths.iter().all(|path| settings.is_trusted(path, findings)) {
        return;
    }
    let is_set = |path: &&String| settings.source(path) != Source::Defaults;
    let Some(path) = paths.iter().find(is_set).or(paths.first()) else {
        return;
    };
    let table = settings.raw.table();
    let here = |path: &String| {
        let key = path.rsplit('.').next().unwrap_or(path);
        keys::at(&table, path).map(|value| format!("{key} = {value}"))
    };
    let here: Vec<String> = paths.iter().filter_map(here).collect();
    let why = format!("{why}; here {}", here.join(", "));
    findings.mistake(settings.place(path), WrongValue::Contradiction { why });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Timing;
    use crate::types::Span;

    /// Every contradiction that the protocol knows, each from a timing that has it.
    fn contradictions() -> Vec<&'static str> {
        let mut all = Vec::new();
        for ms in [0, 150, 5_000, 90_000] {
            for field in 0..4 {
                let mut timing = Timing::lan();
                let span = Span::millis(ms);
                match field {
                    0 => timing.heartbeat = span,
                    1 => timing.declare = span,
                    2 => timing.lease = span,
                    _ => timing.dead_after = span,
                }
                timing.drift_percent = 30;
                all.extend(timing.contradictions());
            }
        }
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn contradictions_speak_of_keys() {
        let all = contradictions();
        assert_eq!(all.len(), 8, "{all:?}");
        for contradiction in all {
            let (why, keys) = in_keys(contradiction);
            let claim = why.split([':', ',']).next().unwrap_or_default();
            assert!(claim.contains("_ms") || claim.contains("drift_percent"), "{why}");
            let one = ["zero", "25", "minute"].iter().any(|word| contradiction.contains(word));
            assert_eq!(keys.len(), if one { 1 } else { 2 }, "{why}");
        }
    }
}

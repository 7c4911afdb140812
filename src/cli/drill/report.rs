//! The results of a drill, for people and for scripts.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::args::BreakKind;
use super::course::{Event, Outcome};
use super::order::DrillPlace;
use super::tally::Tally;
use super::writers::{AllKept, Kept};
use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::out::clean;
use crate::cli::span::millis;
use crate::cli::status::epoch_order;
use crate::client::Request;

/// A change of leader, as the cluster has recorded it.
#[derive(Clone, Debug, Serialize)]
pub struct LeaderChange {
    epoch: String,
    leader: String,
    because: Value,
    /// Measured by the new leader's clock. `None` if the leader does not know it.
    leaderless_ms: Option<u64>,
}

/// The changes after this epoch, oldest first. If the cluster cannot be asked, there are none, and nothing is missed:
/// the drill has its own figures.
pub async fn told(target: &Target, after: &str) -> Vec<LeaderChange> {
    let told = target.ask(&Request::get("/v1/explain/leader?limit=20")).await.unwrap_or_default();
    let changes = told["changes"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_string);
    let change = |change: &Value| {
        let epoch = text(&change["epoch"]).filter(|epoch| epoch_order(epoch) > epoch_order(after))?;
        let leader = text(&change["leader"]["name"]).unwrap_or_else(|| change["leader"].to_string());
        let (because, leaderless_ms) = (change["because"].clone(), change["leaderless_ms"].as_u64());
        Some(LeaderChange { epoch, leader, because, leaderless_ms })
    };
    changes.iter().rev().filter_map(change).collect()
}

#[derive(Debug, Serialize)]
struct Role {
    longest_without_holder_ms: u64,
    held_by_several_ms: u64,
    changed_hands: u64,
}

#[derive(Debug, Serialize)]
pub struct DrillReport {
    drill: BreakKind,
    cluster: String,
    mode: String,
    node: Value,
    epoch_before: String,
    wrong: Vec<String>,
    no_write_acknowledged_ms: u64,
    longest_write_ms: u64,
    writes: Kept,
    writes_at_the_node: Kept,
    role: Role,
    /// Null if it was not checked.
    led_at_once: Option<u64>,
    changes: Vec<LeaderChange>,
    events: Vec<Event>,
}

impl DrillReport {
    pub fn new(
        kind: BreakKind,
        place: &DrillPlace,
        outcome: Outcome,
        tally: &Tally,
        kept: AllKept,
        changes: Vec<LeaderChange>,
    ) -> DrillReport {
        let role = Role {
            longest_without_holder_ms: millis(tally.held_by_nobody),
            held_by_several_ms: millis(tally.held_by_several),
            changed_hands: tally.hands,
        };
        DrillReport {
            drill: kind,
            cluster: place.cluster.clone(),
            mode: place.mode.clone(),
            node: json!({ "id": place.id, "name": place.name, "url": place.url }),
            epoch_before: place.epoch.clone(),
            wrong: wrong(place, &outcome, tally, &kept),
            no_write_acknowledged_ms: millis(tally.silence),
            longest_write_ms: millis(tally.longest_write),
            writes: kept.anywhere,
            writes_at_the_node: kept.there,
            role,
            led_at_once: outcome.led_at_once,
            changes,
            events: outcome.events,
        }
    }

    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }

    pub fn json(&self) -> Value {
        json!(self)
    }

    pub fn text(&self) -> String {
        let name = self.node["name"].as_str().unwrap_or_default();
        let mut lines = vec![format!(
            "drill {}: cluster {} ({}), {name} led",
            self.drill.name(),
            self.cluster,
            self.mode
        )];
        for Event { at_ms, says } in &self.events {
            lines.push(format!("{:>9.3} s  {says}", *at_ms as f64 / 1000.0));
        }
        for change in &self.changes {
            let span = change.leaderless_ms.map_or("an unknown time".to_string(), |ms| format!("{ms} ms"));
            lines.push(format!(
                "leader     {} in epoch {}, after {span} without a leader",
                change.leader, change.epoch
            ));
        }
        lines.push(format!(
            "silence    no write was acknowledged for {} ms; the slowest write took {} ms",
            self.no_write_acknowledged_ms, self.longest_write_ms
        ));
        lines.push(format!("writes     {}", said(&self.writes)));
        lines.push(format!("           via {name}: {}", said(&self.writes_at_the_node)));
        let Role { longest_without_holder_ms, held_by_several_ms, changed_hands } = self.role;
        lines.push(format!(
            "role       held by several for {held_by_several_ms} ms; longest time without a holder \
                {longest_without_holder_ms} ms; changed hands {changed_hands} times"
        ));
        lines.push(match self.led_at_once {
            Some(count) => format!("leases     {count} answers of a former leader that it still leads"),
            None => "leases     not checked: no node answered at /leader".to_string(),
        });
        match self.wrong.as_slice() {
            [] => lines.push(format!("ok         no acknowledged write was lost, {}", self.well_led())),
            wrong => lines.extend(wrong.iter().map(|wrong| format!("wrong      {wrong}"))),
        }
        clean(&lines.join("\n"))
    }
}

impl DrillReport {
    /// The statement about leaders in a report without a wrong result.
    fn well_led(&self) -> &'static str {
        match self.led_at_once {
            _ if self.mode == "available" => {
                "and the role had one holder at a time; in available mode each side of a partition has a leader"
            }
            None => "and the role had one holder at a time; whether two nodes led at once was not checked",
            Some(_) => "and neither the cluster nor the role was seen with two leaders at once",
        }
    }
}

/// The file that keeps a report. It is made before the drill does anything, so that a wrong path costs no drill; it
/// never replaces anything; and it is removed if there is no report.
#[derive(Debug)]
pub struct ReportFile {
    path: PathBuf,
    file: File,
    is_written: bool,
}

impl ReportFile {
    pub fn create(path: &Path) -> Result<ReportFile, Failure> {
        let file = File::create_new(path).map_err(Failure::file(path))?;
        Ok(ReportFile { path: path.to_path_buf(), file, is_written: false })
    }

    pub fn write(mut self, report: &Value) -> Result<(), Failure> {
        let written =
            self.file.write_all(format!("{report}\n").as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(Failure::file(&self.path))?;
        self.is_written = true;
        Ok(())
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        if !self.is_written {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn said(kept: &Kept) -> String {
    let Kept { acknowledged, lost, refused, doubtful, took_effect, unread } = kept;
    let unread = if *unread > 0 { format!(", {unread} documents could not be read") } else { String::new() };
    format!(
        "{acknowledged} acknowledged, {lost} of them lost; {refused} refused, {doubtful} with unknown outcome \
            ({took_effect} carried out){unread}"
    )
}

/// The results that are wrong after any failure.
fn wrong(place: &DrillPlace, outcome: &Outcome, tally: &Tally, kept: &AllKept) -> Vec<String> {
    let lost = kept.anywhere.lost + kept.there.lost;
    let unread = kept.anywhere.unread + kept.there.unread;
    let all = [
        (lost > 0, format!("{lost} acknowledged writes were lost")),
        (unread > 0, format!("{unread} documents could not be read at the end, so their content is unknown")),
        (!tally.held_by_several.is_zero(), "a role had several holders at the same time".to_string()),
        // In available mode each side of a partition has a leader.
        (
            outcome.led_at_once > Some(0) && place.mode != "available",
            "two nodes led at the same time".to_string(),
        ),
        (!outcome.another_led, "no other node led and accepted writes in time".to_string()),
        (outcome.is_back == Some(false), "the node did not come back in time".to_string()),
    ];
    all.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn place(mode: &str) -> DrillPlace {
        DrillPlace { mode: mode.to_string(), ..DrillPlace::default() }
    }

    fn outcome() -> Outcome {
        Outcome { another_led: true, is_back: Some(true), ..Outcome::default() }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let (tally, kept) = (Tally::new(), AllKept::default());
        assert_eq!(wrong(&place("safe"), &outcome(), &tally, &kept), Vec::<String>::new());
        let lost = AllKept { there: Kept { lost: 2, ..Kept::default() }, ..kept };
        assert_eq!(wrong(&place("safe"), &outcome(), &tally, &lost), ["2 acknowledged writes were lost"]);
        let mut several = Tally::new();
        several.sampled(Duration::from_millis(1), &[0, 1]);
        assert_eq!(
            wrong(&place("safe"), &outcome(), &several, &kept),
            ["a role had several holders at the same time"]
        );
        let alone = Outcome { another_led: false, is_back: Some(false), ..Outcome::default() };
        assert_eq!(wrong(&place("safe"), &alone, &tally, &kept).len(), 2);
        let two = Outcome { led_at_once: Some(1), ..outcome() };
        assert_eq!(wrong(&place("safe"), &two, &tally, &kept), ["two nodes led at the same time"]);
        assert_eq!(wrong(&place("available"), &two, &tally, &kept), Vec::<String>::new());
    }

    fn report(mode: &str, outcome: Outcome) -> DrillReport {
        let (tally, kept) = (Tally::new(), AllKept::default());
        DrillReport::new(BreakKind::Freeze, &place(mode), outcome, &tally, kept, Vec::new())
    }

    #[test]
    fn the_last_line_says_what_was_checked() {
        let checked = Outcome { led_at_once: Some(0), ..outcome() };
        for (mode, outcome, expected) in [
            (
                "safe",
                checked,
                "ok         no acknowledged write was lost, and neither the cluster nor the role",
            ),
            ("safe", outcome(), "whether two nodes led at once was not checked"),
            ("available", outcome(), "in available mode each side of a partition has a leader"),
            (
                "safe",
                Outcome { led_at_once: Some(1), ..outcome() },
                "wrong      two nodes led at the same time",
            ),
        ] {
            let text = report(mode, outcome).text();
            assert!(text.lines().last().is_some_and(|line| line.contains(expected)), "{text}");
        }
        let text = report("safe", outcome()).text();
        assert!(text.contains("\nleases     not checked: no node answered at /leader\n"), "{text}");
    }

    #[test]
    fn a_report_replaces_no_file_and_leaves_none_without_a_report() {
        let path = std::env::temp_dir().join(format!("eldest-report-{}", std::process::id()));
        drop(ReportFile::create(&path).expect("a new file"));
        assert!(!path.exists(), "no report");
        ReportFile::create(&path).expect("a new file").write(&json!({"a": 1})).expect("written");
        assert_eq!(fs::read_to_string(&path).expect("text"), "{\"a\":1}\n");
        assert!(ReportFile::create(&path).is_err(), "it exists");
        assert!(path.exists());
        fs::remove_file(&path).expect("removed");
    }
}

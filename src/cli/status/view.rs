//! The gathered answers as a table for people and as JSON for scripts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::gather::{Cluster, ListedMember, NodeReport};
use crate::cli::local_time::local;
use crate::cli::table::Table;

const NONE: &str = "-";

pub fn table(cluster: &Cluster) -> String {
    let view = &cluster.view;
    let mut table =
        Table::new(["", "ID", "NAME", "ROLE", "EPOCH", "COMMIT", "APPLIED", "LAG", "HEARD", "TROUBLE"]);
    for member in &view.members {
        table.row(row(cluster, member));
    }
    let mut text = format!("{}{}\n{}{table}", headline(view), split(cluster), since(cluster));
    for remark in remarks(cluster) {
        text.push_str(&format!("{remark}\n"));
    }
    let answered = cluster.nodes.values().filter(|answer| answer.is_ok()).count();
    if answered < cluster.nodes.len() {
        text.push_str(&format!("{answered} of {} nodes answered\n", cluster.nodes.len()));
    }
    text
}

/// The remarks that nodes make for their operator, each with the name of the node.
fn remarks(cluster: &Cluster) -> Vec<String> {
    let said =
        cluster.nodes.iter().filter_map(|(id, answer)| Some((id, answer.as_ref().ok()?.remark.as_ref()?)));
    said.map(|(id, remark)| format!("{}: {remark}", name_of(&cluster.view, *id))).collect()
}

fn name_of(view: &NodeReport, id: u32) -> String {
    let member = view.members.iter().find(|member| member.id == id);
    member.map_or_else(|| format!("node {id}"), |member| member.name.clone())
}

fn headline(view: &NodeReport) -> String {
    let leader = match &view.leader {
        Some(leader) => format!("{} leads in epoch {}", name_of(view, leader.id), view.epoch),
        None => "no leader".to_string(),
    };
    let heir = view.heir.map(|id| format!(", then {}", name_of(view, id))).unwrap_or_default();
    let held = if view.service_down { "; client writes are refused" } else { "" };
    format!("cluster {} ({}): {leader}{heir}{held}", view.cluster, view.mode)
}

/// Since when the leader leads, and why the one before does not.
fn since(cluster: &Cluster) -> String {
    let (Some(leader), Some(change)) = (&cluster.view.leader, &cluster.change) else { return String::new() };
    let Some(at) = &change.at else { return String::new() };
    let led = format!("{} has led since {}", name_of(&cluster.view, leader.id), local(at));
    match (&change.because, change.leaderless_ms) {
        (Some(because), Some(ms)) => format!("{led}, because {because}; {ms} ms without a leader\n"),
        (Some(because), None) => format!("{led}, because {because}\n"),
        (None, _) => format!("{led}\n"),
    }
}

/// In available mode: a text that there are several sides, each with its own leader.
fn split(cluster: &Cluster) -> String {
    let sides = sides(cluster);
    if sides.len() < 2 {
        return String::new();
    }
    let leaders: Vec<String> = sides.keys().map(|leader| name_of(&cluster.view, *leader)).collect();
    format!(
        "\n{} sides, led by {}; they merge when their leaders can reach each other",
        sides.len(),
        leaders.join(", ")
    )
}

/// Every leader with the nodes that say that they follow it, itself included; in available mode only. A node whose
/// own answer differs from its leader's is between two sides.
fn sides(cluster: &Cluster) -> BTreeMap<u32, Vec<u32>> {
    let mut sides: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let answered = cluster.nodes.iter().filter_map(|(id, answer)| Some((*id, answer.as_ref().ok()?)));
    for (id, report) in answered.filter(|(_, report)| report.is_available()) {
        if let Some(leader) = report.side() {
            sides.entry(leader).or_default().push(id);
        }
    }
    sides
}

fn row(cluster: &Cluster, member: &ListedMember) -> [String; 10] {
    let view = &cluster.view;
    let leads = view.leader.as_ref().is_some_and(|leader| leader.id == member.id);
    let own = cluster.nodes.get(&member.id);
    let leads_a_side =
        own.and_then(|own| own.as_ref().ok()).is_some_and(|own| own.is_available() && own.role == "leader");
    let mark = match () {
        () if leads || leads_a_side => "*",
        () if view.heir == Some(member.id) => "+",
        () => "",
    };
    let (id, name) = (member.id.to_string(), member.name.clone());
    // A leader does not lag behind itself.
    let lag = member.lag.filter(|_| !leads).map_or(NONE.to_string(), |lag| lag.to_string());
    let heard = member.last_heard_ms.filter(|_| !leads).map_or(NONE.to_string(), span);
    let (role, epoch, commit, applied, own_trouble) = match own {
        Some(Ok(own)) => {
            let numbers = (own.commit_index.to_string(), own.applied_index.to_string());
            (own.role.clone(), own.epoch.clone(), numbers.0, numbers.1, troubles(own, view, member))
        }
        Some(Err(why)) => (NONE.into(), NONE.into(), NONE.into(), NONE.into(), vec![why.clone()]),
        None => (NONE.into(), NONE.into(), NONE.into(), NONE.into(), Vec::new()),
    };
    let learns = (member.votes == Some(false)).then(|| "learner, does not vote yet".to_string());
    let trouble: Vec<String> = own_trouble.into_iter().chain(learns).chain(member.trouble.clone()).collect();
    [mark.into(), id, name, role, epoch, commit, applied, lag, heard, trouble.join(", ")]
}

/// The problems that a node reports about itself.
fn troubles(own: &NodeReport, view: &NodeReport, member: &ListedMember) -> Vec<String> {
    let mut troubles = Vec::new();
    if let Some(side) = own.side().filter(|side| own.is_available() && view.side() != Some(*side)) {
        troubles.push(format!("side of {}", name_of(view, side)));
    }
    if own.replaced {
        troubles.push("replaced by another disk".to_string());
    } else if own.admitted == Some(false) && member.votes != Some(false) {
        troubles.push("waiting to be admitted".to_string());
    }
    if own.disk_full {
        troubles.push("disk full".to_string());
    }
    troubles
}

fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

/// Every member's own answer under its id. A member without an answer has null and a reason.
pub fn json(cluster: &Cluster) -> Value {
    let view = &cluster.view;
    let nodes: Vec<_> = view
        .members
        .iter()
        .map(|member| {
            let (own, error) = match cluster.nodes.get(&member.id) {
                Some(Ok(own)) => (Some(own), None),
                Some(Err(why)) => (None, Some(why.as_str())),
                None => (None, Some("not asked")),
            };
            json!({ "id": member.id, "name": member.name, "url": member.url, "lag": member.lag,
                "last_heard_ms": member.last_heard_ms, "trouble": member.trouble, "error": error, "status": own })
        })
        .collect();
    let sides: Vec<_> = sides(cluster)
        .into_iter()
        .map(|(leader, nodes)| json!({ "leader": leader, "nodes": nodes }))
        .collect();
    json!({ "cluster": view.cluster, "mode": view.mode, "leader": view.leader, "heir": view.heir,
        "epoch": view.epoch, "leadership": cluster.change, "commit_index": view.commit_index, "service_down": view.service_down,
        "sides": sides, "nodes": nodes })
}

#[cfg(test)]
mod tests {
    use super::super::gather::{Located, Named, NewestChange};
    use super::*;

    fn report(id: u32, role: &str) -> NodeReport {
        let member = |id: u32, lag, last_heard_ms, trouble: Option<&str>| ListedMember {
            silent: false,
            id,
            name: format!("node-{id}"),
            votes: None,
            url: format!("http://n{id}:9000"),
            lag,
            last_heard_ms,
            trouble: trouble.map(str::to_string),
        };
        NodeReport {
            cluster: "shop".into(),
            mode: "safe".into(),
            node: Named { id, name: format!("node-{id}") },
            role: role.into(),
            leader: Some(Located { id: 1, url: "http://n1:9000".into() }),
            epoch: "7.1".into(),
            commit_index: 120,
            applied_index: 119,
            heir: Some(2),
            members: vec![
                member(1, Some(0), Some(0), None),
                member(2, Some(0), Some(12), None),
                member(3, Some(40), Some(61_200), Some("other timings")),
            ],
            ..NodeReport::default()
        }
    }

    fn cluster() -> Cluster {
        let mut second = report(2, "follower");
        second.admitted = Some(false);
        let nodes = BTreeMap::from([
            (1, Ok(report(1, "leader"))),
            (2, Ok(second)),
            (3, Err("Connection refused (os error 111)".to_string())),
        ]);
        Cluster { view: report(1, "leader"), nodes, change: None }
    }

    #[test]
    fn the_table() {
        let expected = "\
cluster shop (safe): node-1 leads in epoch 7.1, then node-2
   ID  NAME    ROLE      EPOCH  COMMIT  APPLIED  LAG  HEARD  TROUBLE
*  1   node-1  leader    7.1    120     119      -    -
+  2   node-2  follower  7.1    120     119      0    12 ms  waiting to be admitted
   3   node-3  -         -      -       -        40   1 min  Connection refused (os error 111), other timings
2 of 3 nodes answered
";
        assert_eq!(table(&cluster()), expected);
    }

    #[test]
    fn the_leader_s_own_line() {
        let mut cluster = cluster();
        let at = Some("2026-11-28T14:03:07Z".to_string());
        cluster.change = Some(NewestChange { at, ..NewestChange::default() });
        let at = local("2026-11-28T14:03:07Z");
        assert_eq!(since(&cluster), format!("node-1 has led since {at}\n"));
        let why = Some("node-1 gave up node-2: it stopped answering".to_string());
        cluster.change =
            cluster.change.map(|change| NewestChange { because: why, leaderless_ms: Some(11), ..change });
        let told = since(&cluster);
        let because = "because node-1 gave up node-2: it stopped answering; 11 ms without a leader";
        assert_eq!(told, format!("node-1 has led since {at}, {because}\n"));
        cluster.view.leader = None;
        assert_eq!(since(&cluster), "");
    }

    #[test]
    fn who_learns_has_been_let_in() {
        let mut cluster = cluster();
        cluster.view.members[1].votes = Some(false);
        let text = table(&cluster);
        assert!(text.contains("  learner, does not vote yet\n") && !text.contains("let in"), "{text}");
    }

    #[test]
    fn nobody_leads() {
        let mut cluster = cluster();
        (cluster.view.leader, cluster.view.heir, cluster.view.service_down) = (None, None, true);
        let text = table(&cluster);
        assert!(text.starts_with("cluster shop (safe): no leader; client writes are refused\n"), "{text}");
        assert!(!text.contains('*') && !text.contains('+'), "{text}");
    }

    #[test]
    fn sides_are_told_apart() {
        let available = |id: u32, role: &str, leader: u32, epoch: &str| {
            let leader = Some(Located { id: leader, url: format!("http://n{leader}:9000") });
            let heir = None;
            NodeReport { mode: "available".into(), epoch: epoch.into(), leader, heir, ..report(id, role) }
        };
        let nodes = BTreeMap::from([
            (1, Ok(available(1, "leader", 1, "7.1"))),
            (2, Ok(available(2, "leader", 2, "8.2"))),
            (3, Ok(available(3, "follower", 2, "8.2"))),
        ]);
        let mut cluster = Cluster { view: available(1, "leader", 1, "7.1"), nodes, change: None };
        cluster.view.members[2].trouble = None;
        let expected = "\
cluster shop (available): node-1 leads in epoch 7.1
2 sides, led by node-1, node-2; they merge when their leaders can reach each other
   ID  NAME    ROLE      EPOCH  COMMIT  APPLIED  LAG  HEARD  TROUBLE
*  1   node-1  leader    7.1    120     119      -    -
*  2   node-2  leader    8.2    120     119      0    12 ms  side of node-2
   3   node-3  follower  8.2    120     119      40   1 min  side of node-2
";
        assert_eq!(table(&cluster), expected);
        let value = json(&cluster);
        assert_eq!(value["sides"], json!([{"leader": 1, "nodes": [1]}, {"leader": 2, "nodes": [2, 3]}]));
        // In safe mode a node that has not heard of a new leader yet is not a side.
        cluster.nodes.values_mut().flatten().for_each(|report| report.mode = "safe".into());
        assert!(!table(&cluster).contains("side"), "{}", table(&cluster));
    }

    #[test]
    fn json_says_who_gave_no_answer() {
        let value = json(&cluster());
        assert_eq!(value["nodes"][0]["status"]["role"], "leader");
        assert_eq!(value["nodes"][2]["status"], serde_json::Value::Null);
        assert_eq!(value["nodes"][2]["error"], "Connection refused (os error 111)");
    }

    #[test]
    fn spans() {
        assert_eq!(
            [span(0), span(999), span(1_250), span(59_999), span(60_000)].join("|"),
            "0 ms|999 ms|1.2 s|59.9 s|1 min"
        );
    }
}

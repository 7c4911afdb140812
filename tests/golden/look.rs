//! The parts of a stage that a script may look at: roles, logs, and the conditions that it expects.

use eldest::protocol::{Node, RoleName};
use eldest::types::{NodeId, Record};

use crate::commands::node;
use crate::documents;
use crate::stage::Stage;

/// A command that only looks, or fails.
pub fn show(stage: &mut Stage, words: &[&str]) -> Result<Option<Vec<String>>, String> {
    match words {
        ["show", "heartbeats"] => stage.trace.heartbeats = true,
        ["hide", "heartbeats"] => stage.trace.heartbeats = false,
        ["show", "disk"] => stage.trace.disk = true,
        ["status"] => {
            let lines = stage.ids().into_iter().map(|one| status(stage, one));
            return Ok(Some(lines.collect()));
        }
        ["state", one] => return Ok(Some(documents::state(stage, node(one)?))),
        ["log", one] => return Ok(Some(log(stage, node(one)?))),
        ["expect", "leader", one] => expect(stage.leader() == Some(node(one)?))?,
        ["expect", "no", "leader"] => expect(stage.leader().is_none())?,
        ["expect", "equal", "logs"] => {
            let mut logs = stage.hosts.values().filter_map(|host| host.core());
            let first = logs.next().map(|node| node.log().last());
            expect(logs.all(|node| Some(node.log().last()) == first))?;
        }
        _ => return Ok(None),
    }
    Ok(Some(Vec::new()))
}

pub fn expect(holds: bool) -> Result<(), String> {
    holds.then_some(()).ok_or("it is not so".into())
}

fn status(stage: &Stage, one: NodeId) -> String {
    let Some(node) = core(stage, one) else {
        return format!("        {one} down");
    };
    let role = match (node.role_name(), node.leader()) {
        (RoleName::Leader, None) => "leads, not open".to_string(),
        (RoleName::Leader, Some(_)) => "leads".to_string(),
        (RoleName::Follower, Some(leader)) => format!("follows {leader}"),
        (RoleName::Follower, None) => "has promised".to_string(),
        (RoleName::Candidate, _) => "is leaderless".to_string(),
        (RoleName::Stopped, _) => "has stopped".to_string(),
    };
    let (promise, last, commit) = (node.vote().promise.epoch, node.last(), node.commit_index());
    let admitted = if node.vote().admitted { "" } else { ", not admitted" };
    let down = if node.service_is_down() { ", service down" } else { "" };
    format!("        {one} {role}: promise {promise} last {last} commit {commit}{admitted}{down}")
}

fn log(stage: &Stage, one: NodeId) -> Vec<String> {
    let Some(node) = core(stage, one) else {
        return vec![format!("        {one} down")];
    };
    let (base, commit) = (node.log().base(), node.commit_index());
    let records = node.log().range(base.index, node.last().index);
    let below = (base.index > 0).then(|| format!("        {base} snapshot"));
    let lines = records.iter().map(|record| match record.index() <= commit {
        true => format!("        {}", told(record)),
        false => format!("        {} (not committed)", told(record)),
    });
    below.into_iter().chain(lines).collect()
}

/// A user is shown by name: the JSON around it adds nothing.
fn told(record: &Record) -> String {
    let told = record.to_string();
    let name =
        told.split_once("{\"name\":\"").and_then(|(kind, rest)| Some((kind, rest.strip_suffix("\"}")?)));
    name.map_or(told.clone(), |(kind, name)| format!("{kind}{name}"))
}

pub fn core(stage: &Stage, one: NodeId) -> Option<&Node> {
    stage.hosts.get(&one)?.core()
}

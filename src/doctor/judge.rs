//! Derives the findings from the answers. This is a pure function.

use std::collections::{BTreeMap, BTreeSet};

use super::clocks;
use super::finding::{Finding, sorted};
use super::node;
use super::seen::{Sample, Seen, SeenEnding, SeenMember};

/// Tokens that live for less time are replaced all the time.
const LONG_LIVED_US: u64 = 7 * DAY_US;

/// A token is reported when a tenth of its life is left, or a week if that is less.
const ENDING_SHARE: u64 = 10;

const DAY_US: u64 = 86_400 * 1_000_000;

pub fn judge(seen: &Seen) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(leadership(seen));
    all.extend(differences(seen));
    all.extend(even_size(seen));
    all.extend(seen.nodes.iter().flat_map(|node| node::judge(seen, node)));
    all.extend(clocks::judge(seen));
    all.extend(whole_cluster(seen));
    all.extend(seen.tokens.iter().filter_map(|token| ending(token, clocks::wall_us(seen)?)));
    sorted(all)
}

fn leadership(seen: &Seen) -> Option<Finding> {
    const WHY: &str = "no_leader";
    let leaders = seen.leaders();
    let said_why = seen.answered().any(|(_, said)| said.remarks.iter().any(|remark| remark.about == WHY));
    let answers = |id: u32| seen.answered().any(|(node, _)| node.id == id);
    // The finding about that node says why it does not answer.
    let leader_is_silent = seen
        .answered()
        .any(|(_, said)| said.status.leader.as_ref().is_some_and(|leader| !answers(leader.id)));
    if leaders.is_empty() && !said_why && !leader_is_silent {
        let text = "there is no leader, and no node knows why yet: an election may be in progress";
        return Some(Finding::error(WHY, text, "eldest doctor, again in a few seconds"));
    }
    if leaders.len() > 1 && seen.is_available() {
        let names: Vec<&str> = leaders.iter().map(|node| node.name.as_str()).collect();
        let text = format!("the cluster is split into {} sides, led by {}", names.len(), names.join(" and "));
        let next = "repair the network between them; they then merge automatically: eldest status";
        return Some(Finding::warning("split", text, next));
    }
    None
}

/// An even number of nodes survives no more failures than the odd number below it. While a node is away, does not vote
/// or knows other members, the size may be about to change.
fn even_size(seen: &Seen) -> Option<Finding> {
    let voters = seen.nodes.len();
    let is_settled = seen.nodes.iter().all(|node| node.votes && node.now().is_some_and(votes_among_voters));
    let agree = differ(seen, "members", |said| Some(members(&said.status.members))).is_none();
    if voters == 0 || !voters.is_multiple_of(2) || !is_settled || !agree || seen.is_available() {
        return None;
    }
    let survives = |nodes: usize| match (nodes - 1) / 2 {
        0 => "no failure".to_string(),
        1 => "one failure".to_string(),
        several => format!("{several} failures"),
    };
    let text =
        format!("{voters} nodes survive {}, the same as {}: use an odd number", survives(voters), voters - 1);
    // One node alone survives no failure either, and one disk has all the data.
    let next = match voters {
        2 => "eldest members add ID ADDRESS",
        _ => "eldest members add ID ADDRESS, or eldest members remove ID",
    };
    Some(Finding::note("even_size", text, next))
}

/// Whether the node votes, and all members that it knows do.
fn votes_among_voters(said: &Sample) -> bool {
    let status = &said.status;
    status.admitted && !status.replaced && status.members.iter().all(|member| member.votes)
}

/// Reports values that must be the same on all nodes and are not.
fn differences(seen: &Seen) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(text) = differ(seen, "cluster", |said| said.status.cluster_id.clone()) {
        let next = "eldest status --url … for each of them; correct the topology of those that belong to \
            another cluster";
        found.push(Finding::error("other_cluster", text, next));
    }
    if let Some(text) = differ(seen, "settings", |said| Some(said.settings.clone())) {
        let next = "eldest check --topology FILE --config FILE on each of them: mode, timings and ids must be the same";
        found.push(Finding::error("settings_differ", text, next));
    }
    if let Some(text) = differ(seen, "version", |said| Some(said.version.clone())) {
        let next = "install the newest version on all nodes, one after the other, the leader last";
        found.push(Finding::warning("versions_differ", text, next));
    }
    if let Some(text) = differ(seen, "members", |said| Some(members(&said.status.members))) {
        let next = "eldest members list --url … for each of them; a node that lags learns of the change when it \
            catches up";
        found.push(Finding::warning("members_differ", text, next));
    }
    found
}

fn members(members: &[SeenMember]) -> String {
    let each: BTreeSet<String> =
        members.iter().map(|member| format!("{}={}", member.id, authority(&member.url))).collect();
    each.into_iter().collect::<Vec<_>>().join(" ")
}

/// The URL without its scheme: some nodes may call each other by http while others already use https.
fn authority(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, authority)| authority)
}

/// Lists the nodes that report each value, if the values differ.
fn differ(seen: &Seen, what: &str, of: impl Fn(&Sample) -> Option<String>) -> Option<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (node, said) in seen.answered() {
        if let Some(value) = of(said) {
            groups.entry(value).or_default().push(&node.name);
        }
    }
    let said: Vec<String> =
        groups.iter().map(|(value, names)| format!("{value} ({})", names.join(", "))).collect();
    (groups.len() > 1).then(|| format!("nodes differ in their {what}: {}", said.join(" against ")))
}

/// Findings that are the same at every node. They come from the last answer of the leader, or of any node.
fn whole_cluster(seen: &Seen) -> Vec<Finding> {
    let leader = seen.leaders().into_iter().find_map(|node| node.now());
    let Some(said) = leader.or_else(|| seen.answered().next().map(|(_, said)| said)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if said.status.service_down {
        let text = "client writes are stopped by an operator";
        found.push(Finding::warning("service_down", text, "eldest service up"));
    }
    if said.conflicts > 0 {
        let text = format!("{} values that merges overrode are waiting for review", said.conflicts);
        found.push(Finding::note("conflicts", text, "eldest conflicts list"));
    }
    found
}

fn ending(token: &SeenEnding, now_us: u64) -> Option<Finding> {
    let life = token.ends_us.saturating_sub(token.made_us);
    let left = token.ends_us.checked_sub(now_us)?;
    if life < LONG_LIVED_US || left > (life / ENDING_SHARE).min(LONG_LIVED_US) {
        return None;
    }
    let text = format!("the token {} ({}) expires in {} hours", token.name, token.id, left / (DAY_US / 24));
    let next = "eldest token create NAME --grant … --ttl 90d, and give the new token to the clients that use this one";
    Some(Finding::warning("token_ends", text, next))
}

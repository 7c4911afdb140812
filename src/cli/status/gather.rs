//! Asks the cluster: first any node that answers, then every member that this node names.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::client::{Answer, CallError, Caller, LOOK_MAX, Request, alike};

/// The part of `GET /v1/status` that is shown here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    pub cluster: String,
    pub mode: String,
    pub node: Named,
    pub role: String,
    pub leader: Option<Located>,
    pub epoch: String,
    pub commit_index: u64,
    pub applied_index: u64,
    pub last_index: u64,
    pub snapshot_id: u64,
    pub digest: String,
    #[serde(default)]
    pub admitted: Option<bool>,
    #[serde(default)]
    pub replaced: bool,
    #[serde(default)]
    pub heir: Option<u32>,
    #[serde(default)]
    pub service_down: bool,
    #[serde(default)]
    pub disk_full: bool,
    #[serde(default)]
    pub remark: Option<String>,
    pub members: Vec<ListedMember>,
}

impl NodeReport {
    pub fn is_available(&self) -> bool {
        self.mode == "available"
    }

    /// The side of a partition that the node is on, by its own answer.
    pub fn side(&self) -> Option<u32> {
        self.leader.as_ref().map(|leader| leader.id)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    pub id: u32,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located {
    pub id: u32,
    pub url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMember {
    pub id: u32,
    pub name: String,
    pub url: String,
    #[serde(default)]
    pub votes: Option<bool>,
    #[serde(default)]
    pub lag: Option<u64>,
    #[serde(default)]
    pub last_heard_ms: Option<u64>,
    #[serde(default)]
    pub silent: bool,
    #[serde(default)]
    pub trouble: Option<String>,
}

/// The answer of each member, or why there is none.
#[derive(Debug)]
pub struct Cluster {
    /// The leader's own view, if it answered. If there are several leaders in available mode, the view of the eldest
    /// one.
    pub view: NodeReport,
    pub nodes: BTreeMap<u32, Result<NodeReport, String>>,
    /// The change by which the leader of `view` began to lead. `None` if no node that answered has it in its chronicle.
    pub change: Option<NewestChange>,
}

/// The time for the answer of a node that the leader has given up.
pub const SILENT_MOST: Duration = Duration::from_millis(200);

/// The time for the answer of the leader, when all others have answered. They take about as long to notice that it is dead.
const LEADER_MOST: Duration = Duration::from_secs(1);

/// The leader asks the other nodes, and waits a second for each.
const EXPLAINS_MOST: Duration = Duration::from_secs(2);

/// The part of a change in `GET /v1/explain/leader` that is shown here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestChange {
    pub epoch: Option<String>,
    pub at: Option<String>,
    /// Why the leader before was given up. Missing in the first epoch.
    pub because: Option<String>,
    pub leaderless_ms: Option<u64>,
}

/// Asks the leader, which asks the other nodes, how it became the leader.
async fn newest_change(caller: Caller, leader: String) -> Option<NewestChange> {
    #[derive(Deserialize)]
    struct Explained {
        changes: Vec<NewestChange>,
    }
    let call = Request::get("/v1/explain/leader?limit=1").within(EXPLAINS_MOST);
    let answer = caller.at(&leader, &call).await.and_then(Answer::taken).ok()?;
    answer.read::<Explained>().ok()?.changes.into_iter().next()
}

pub async fn gather(target: &Target) -> Result<Cluster, Failure> {
    gather_within(target, LOOK_MAX).await
}

/// Also asks how the leader became the leader, while other nodes are waited for.
pub async fn gather_with_change(target: &Target) -> Result<Cluster, Failure> {
    let mut explains = JoinSet::new();
    let mut cluster = gather_and(target, LOOK_MAX, |caller, leader| {
        explains.spawn(newest_change(caller.clone(), leader.to_string()));
    })
    .await?;
    while let Some(change) = explains.join_next().await {
        let newest = change.ok().flatten();
        cluster.change =
            newest.filter(|change| change.epoch.as_ref() == Some(&cluster.view.epoch)).or(cluster.change);
    }
    Ok(cluster)
}

/// Asks with a time limit for each answer: a node that is frozen costs no more than this.
pub async fn gather_within(target: &Target, within: Duration) -> Result<Cluster, Failure> {
    gather_and(target, within, |_, _| ()).await
}

/// `leads` gets each node that says that it leads, with its address.
async fn gather_and(
    target: &Target,
    within: Duration,
    mut leads: impl FnMut(&Caller, &str),
) -> Result<Cluster, Failure> {
    let caller = target.caller()?;
    let call = Request::get("/v1/status").within(within);
    let answer = caller.first(&target.url, &call).await?;
    let first_url = answer.url.clone();
    let first = read(Ok(answer))?;
    let mut asked = JoinSet::new();
    for member in &first.members {
        let (id, caller, call, url) =
            (member.id, caller.clone(), call.clone(), alike(&member.url, &first_url));
        asked.spawn(async move { (id, read(caller.at(&url, &call).await), url) });
    }
    let mut nodes = BTreeMap::new();
    let began = Instant::now();
    loop {
        let most = match left(&first, &nodes) {
            Left::Some => None,
            Left::OnlySilent => Some(SILENT_MOST),
            Left::OnlyTheLeader => Some(LEADER_MOST),
        };
        let answered = match most {
            Some(most) => timeout_at(began + most, asked.join_next()).await.unwrap_or_default(),
            None => asked.join_next().await,
        };
        match answered {
            Some(Ok((id, answer, url))) => {
                if answer.as_ref().is_ok_and(|report| report.role == "leader") {
                    leads(&caller, &url);
                }
                nodes.insert(id, answer.map_err(|error| why(&error)));
            }
            // A task that panicked has no answer either.
            Some(Err(_)) => {}
            None => break,
        }
    }
    let waited = began.elapsed();
    let unheard = if leading(&nodes).is_some() { ", and the leader does not hear from it" } else { "" };
    let silence = format!("no answer within {} ms{unheard}", waited.as_millis());
    for member in &first.members {
        nodes.entry(member.id).or_insert_with(|| Err(silence.clone()));
    }
    // The node that was asked first may be known by another address than the one it was reached at.
    let own = nodes.entry(first.node.id).or_insert_with(|| Ok(first.clone()));
    if own.is_err() {
        *own = Ok(first.clone());
    }
    let view = leading(&nodes).or_else(|| following(&nodes)).unwrap_or(first);
    Ok(Cluster { view, nodes, change: None })
}

/// The nodes that have not answered yet.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    /// They may be slow, or all have answered.
    Some,
    /// The leader has answered, and has given all of them up. A frozen node takes the call and never answers.
    OnlySilent,
    /// It is the leader that all others name. It may be frozen, and they have not noticed yet.
    OnlyTheLeader,
}

fn left(first: &NodeReport, nodes: &BTreeMap<u32, Result<NodeReport, String>>) -> Left {
    let mut left =
        first.members.iter().map(|member| member.id).filter(|id| !nodes.contains_key(id)).peekable();
    if left.peek().is_none() {
        return Left::Some;
    }
    match leading(nodes) {
        Some(leader) => {
            let is_silent = |id: u32| leader.members.iter().any(|member| member.id == id && member.silent);
            if left.all(is_silent) { Left::OnlySilent } else { Left::Some }
        }
        None => {
            let named = following(nodes).and_then(|report| report.side());
            if left.all(|id| Some(id) == named) { Left::OnlyTheLeader } else { Left::Some }
        }
    }
}

fn read(answer: Result<Answer, CallError>) -> Result<NodeReport, CallError> {
    answer?.taken()?.read()
}

/// The reason without the address, which is in the table already.
fn why(error: &CallError) -> String {
    match error {
        CallError::NotReached { tried } => tried.iter().map(|one| one.why.clone()).collect(),
        CallError::NoAnswer { why, .. } | CallError::Strange { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

/// The leader's view. In safe mode it is the view of the leader with the greatest epoch, because a deposed leader may
/// not know yet that it is one. In available mode each side has a leader, and the other sides join the side of the
/// eldest.
fn leading(nodes: &BTreeMap<u32, Result<NodeReport, String>>) -> Option<NodeReport> {
    let leaders = || nodes.values().flatten().filter(|report| report.role == "leader");
    match leaders().all(NodeReport::is_available) {
        true => leaders().min_by_key(|report| report.node.id).cloned(),
        false => leaders().max_by_key(|report| epoch_order(&report.epoch)).cloned(),
    }
}

/// The view of a node that knows a leader, while the leader itself does not answer.
fn following(nodes: &BTreeMap<u32, Result<NodeReport, String>>) -> Option<NodeReport> {
    let followers = nodes.values().flatten().filter(|report| report.leader.is_some());
    followers.max_by_key(|report| epoch_order(&report.epoch)).cloned()
}

/// The order of epochs such as `7.1`. An epoch is greater if its counter is greater, or if the counters are equal and
/// its leader is lower.
pub fn epoch_order(text: &str) -> (u64, std::cmp::Reverse<u32>) {
    let (counter, leader) = text.split_once('.').unwrap_or((text, ""));
    (counter.parse().unwrap_or(0), std::cmp::Reverse(leader.parse().unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_leader_is_believed() {
        let leader = |epoch: &str| {
            Ok(NodeReport { role: "leader".into(), epoch: epoch.into(), ..NodeReport::default() })
        };
        let nodes = BTreeMap::from([
            (1, leader("9.1")),
            (2, leader("10.2")),
            (3, leader("10.3")),
            (4, Err("x".into())),
        ]);
        assert_eq!(leading(&nodes).map(|report| report.epoch).as_deref(), Some("10.2"));
        assert_eq!(leading(&BTreeMap::new()), None);
    }

    #[test]
    fn a_node_that_will_hardly_answer_is_given_up_soon() {
        let member = |id, silent| ListedMember { id, silent, ..ListedMember::default() };
        let report = |role: &str, third_is_silent: bool| NodeReport {
            role: role.into(),
            epoch: "7.1".into(),
            leader: Some(Located { id: 3, url: String::new() }),
            members: vec![member(1, false), member(2, false), member(3, third_is_silent)],
            ..NodeReport::default()
        };
        let first = report("follower", false);
        let answered = |role, silent| BTreeMap::from([(1, Ok(report(role, silent))), (2, Err("x".into()))]);
        assert_eq!(left(&first, &answered("leader", true)), Left::OnlySilent);
        assert_eq!(left(&first, &answered("leader", false)), Left::Some, "it may be slow");
        assert_eq!(left(&first, &answered("follower", false)), Left::OnlyTheLeader);
        let only_one = BTreeMap::from([(1, Ok(report("follower", false)))]);
        assert_eq!(left(&first, &only_one), Left::Some, "a follower may be slow");
        let mut all = answered("leader", true);
        all.insert(3, Err("x".into()));
        assert_eq!(left(&first, &all), Left::Some);
    }

    #[test]
    fn a_follower_is_believed_before_a_node_that_knows_no_leader() {
        let leader = Some(Located { id: 1, url: String::new() });
        let seeks = NodeReport { epoch: "9.3".into(), ..NodeReport::default() };
        let follows = NodeReport { epoch: "7.1".into(), leader, ..NodeReport::default() };
        let nodes = BTreeMap::from([(1, Err("x".into())), (2, Ok(follows.clone())), (3, Ok(seeks))]);
        assert_eq!((leading(&nodes), following(&nodes)), (None, Some(follows)));
    }

    #[test]
    fn of_two_sides_the_elders_is_shown() {
        let leader = |id: u32, epoch: &str| {
            let node = Named { id, name: String::new() };
            let (mode, role, epoch) = ("available".into(), "leader".into(), epoch.into());
            Ok(NodeReport { node, mode, role, epoch, ..NodeReport::default() })
        };
        let nodes = BTreeMap::from([(1, leader(1, "7.1")), (2, leader(2, "9.2"))]);
        assert_eq!(leading(&nodes).map(|report| report.node.id), Some(1));
    }
}

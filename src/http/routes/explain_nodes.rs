//! Explains the state of one node: by its own answer, and by how the other nodes see it (P58).
//!
//! Each node answers from its own memory (`level=local`). The node that gets the call also asks the others, and combines the answers.
//!
//! ```text
//!   client ─► any node ─► all others, `level=local`, within a second ─┬─ the node itself ─► `state`: its role, and the nodes that it reaches
//!                                                                     ├─ each other node ─► `as_seen`: does it reach the node
//!                                                                     └─ no answer ───────► `silent`
//! ```
//!
//! `state.sees` and `as_seen` show the two directions, so a cut in one direction is visible.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};

use super::explain::{ask, one_line};
use crate::driver::Member;
use crate::driver::handle::{Denied, Level, MemberStatus, Status};
use crate::http::answer::{self, Answer, Code, Problem};
use crate::http::request::{ClientRequest, Context};
use crate::http::url::name_after;
use crate::types::NodeId;

const NODES: &str = "/v1/explain/nodes/";

/// Also sent between nodes: a reader ignores fields that it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Explained {
    node: Subject,
    says: Vec<String>,
    /// The node's own answer. Missing if the node has not answered, or was not asked.
    state: Option<OwnState>,
    /// One entry for each other node that has answered.
    as_seen: Vec<Seen>,
    silent: Vec<Silent>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Subject {
    id: u32,
    name: String,
    url: String,
    votes: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct OwnState {
    role: String,
    leader: Option<Named>,
    epoch: String,
    admitted: bool,
    replaced: bool,
    disk_full: bool,
    remark: Option<String>,
    /// The node's view of each other node.
    sees: Vec<Seen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Named {
    id: u32,
    name: String,
}

/// One node's view of another one. In `as_seen`, id and name are of the node that sees; in `sees`, of the node that is seen.
/// The other fields are those of `/v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Seen {
    id: u32,
    name: String,
    reachable: bool,
    trouble: Option<String>,
    last_heard_ms: Option<u64>,
    lag: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Silent {
    id: u32,
    name: String,
    why: String,
}

pub async fn node(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    // A forwarded question is answered from this node's own memory, so questions do not multiply.
    let local = request.query(&["level"])?.level == Some(Level::Local) || request.was_forwarded();
    let subject = named(&context, &name_after(request.path(), NODES, "node")?)?;
    let status = request.in_time(context.handle.status()).await?.ok_or(Denied::Stopping)?;
    let mut explained = Explained::by(&status, &context, &subject);
    if !local {
        // Nodes may know a member under different names, so they are asked by id.
        let target = format!("{NODES}{}?level=local", subject.id.0);
        for (id, name, said) in ask(&context, &request, &target).await {
            match said.and_then(|told| checked(id, &name, subject.id.0, told)) {
                Ok(told) => explained.add(told),
                Err(why) => explained.silent.push(Silent { id, name, why }),
            }
        }
    }
    let dead_after_ms = context.setup.settings.timing.dead_after.0 / 1_000;
    let says = explained.sentences(&status.node.name, dead_after_ms);
    explained.says = says.iter().map(|said| one_line(said)).collect();
    Ok(answer::data(&explained))
}

/// Returns the member with this id or name. An id counts before a name.
fn named(context: &Context, wanted: &str) -> Result<Member, Problem> {
    let known = context.setup.known();
    let members = || known.members.iter();
    let by_id = members().find(|member| member.id.0.to_string() == wanted);
    let found = by_id.or_else(|| members().find(|member| member.name == wanted));
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = members().map(|member| member.name.as_str()).collect();
        let detail = format!("no node {wanted}; the cluster has {}", names.join(", "));
        Problem::new(Code::NotFound, detail).with("nodes", names)
    })
}

/// Takes what node `id` says about the subject: its state if it is the subject, and else its own view of it. Anything else is rejected:
/// while nodes change addresses, one of them may answer where another one is expected.
fn checked(id: u32, name: &str, subject: u32, mut explained: Explained) -> Result<Explained, String> {
    if explained.node.id != subject {
        return Err(format!("it answered about node {}", explained.node.id));
    }
    match (&explained.state, explained.as_seen.as_mut_slice()) {
        (Some(_), []) if id == subject => Ok(explained),
        (None, [seen]) if seen.id == id => {
            seen.name = name.to_string();
            Ok(explained)
        }
        (None, [seen]) => Err(format!("node {} answered at its address", seen.id)),
        (Some(_), _) => Err(format!("node {subject} answered at its address")),
        (None, _) => Err("it says nothing about that node".to_string()),
    }
}

impl Explained {
    /// The answer from a node's own memory.
    fn by(status: &Status, context: &Context, subject: &Member) -> Explained {
        let id = subject.id.0;
        let node =
            Subject { id, name: subject.name.clone(), url: context.setup.url(subject), votes: subject.votes };
        if status.node.id == id {
            let state = OwnState::of(status, |leader| {
                let known = context.setup.member(NodeId(leader));
                known.map_or_else(|| format!("node {leader}"), |member| member.name)
            });
            return Explained { node, state: Some(state), ..Explained::default() };
        }
        let view = status.members.iter().find(|member| member.id == id);
        let seen = view.map(|view| Seen::of(status.node.id, &status.node.name, view));
        Explained { node, as_seen: seen.into_iter().collect(), ..Explained::default() }
    }

    fn add(&mut self, told: Explained) {
        self.state = self.state.take().or(told.state);
        self.as_seen.extend(told.as_seen);
        self.as_seen.sort_by_key(|seen| seen.id);
    }

    /// The node is `it` in each sentence. `asker` is the node that has asked the others.
    fn sentences(&self, asker: &str, dead_after_ms: u64) -> Vec<String> {
        let mut says = Vec::new();
        match &self.state {
            Some(state) => says.extend(state.sentences(self.node.votes)),
            None => {
                let silence = self.silent.iter().find(|silent| silent.id == self.node.id);
                says.extend(silence.map(|silent| format!("it does not answer {asker}: {}", silent.why)));
            }
        }
        if !self.node.votes {
            says.push("it is a learner: it votes after it has caught up".to_string());
        }
        says.extend(self.behind(dead_after_ms));
        says.extend(reached_by(&self.as_seen));
        says.extend(self.state.iter().flat_map(|state| reaches(&state.sees)));
        says
    }

    /// Says how many records the node lacks, and since when the leader has not heard from it. Only a leader knows both.
    fn behind(&self, dead_after_ms: u64) -> Vec<String> {
        let own = self.state.as_ref().and_then(|state| state.leader.as_ref()).map(|leader| leader.id);
        let mut leaders = self.as_seen.iter().filter(|seen| seen.lag.is_some());
        // Two nodes may say that they lead. The node's own leader counts, if the node has named one.
        let Some(leader) = leaders.find(|seen| own.is_none_or(|own| own == seen.id)) else {
            return Vec::new();
        };
        let mut says = Vec::new();
        if let Some(lag) = leader.lag.filter(|lag| *lag > 0) {
            let records = if lag == 1 { "record" } else { "records" };
            says.push(format!("it is {lag} {records} behind the leader"));
        }
        if let Some(silence) = leader.last_heard_ms.filter(|silence| *silence > dead_after_ms) {
            says.push(format!("the leader, {}, last heard from it {silence} ms ago", leader.name));
        }
        says
    }
}

impl OwnState {
    fn of(status: &Status, name: impl Fn(u32) -> String) -> OwnState {
        let others = status.members.iter().filter(|member| member.id != status.node.id);
        OwnState {
            role: status.role.to_string(),
            leader: status.leader.as_ref().map(|leader| Named { id: leader.id, name: name(leader.id) }),
            epoch: status.epoch.clone(),
            admitted: status.admitted,
            replaced: status.replaced,
            disk_full: status.disk_full,
            remark: status.remark.clone(),
            sees: others.map(|member| Seen::of(member.id, &member.name, member)).collect(),
        }
    }

    fn sentences(&self, votes: bool) -> Vec<String> {
        let mut says = vec![match (self.role.as_str(), &self.leader) {
            ("leader", _) => format!("it leads, in epoch {}", self.epoch),
            (_, Some(leader)) => format!("it follows {}, in epoch {}", leader.name, self.epoch),
            (_, None) => "it has no leader".to_string(),
        }];
        if self.replaced {
            says.push(
                "another disk has replaced this one under its id; if two machines run under that id, stop one"
                    .to_string(),
            );
        } else if !self.admitted && votes {
            says.push(
                "its disk may have forgotten its promise: it does not vote until a leader has admitted it"
                    .to_string(),
            );
        }
        if self.disk_full {
            says.push("its disk is full".to_string());
        }
        says.extend(self.remark.clone());
        says
    }
}

impl Seen {
    fn of(id: u32, name: &str, view: &MemberStatus) -> Seen {
        Seen {
            id,
            name: name.to_string(),
            reachable: view.reachable,
            trouble: view.trouble.clone(),
            last_heard_ms: view.last_heard_ms,
            lag: view.lag,
        }
    }

    fn is_sound(&self) -> bool {
        self.reachable && self.trouble.is_none()
    }

    /// The trouble, to be appended to a sentence.
    fn because(&self) -> String {
        self.trouble.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
    }
}

/// Says which nodes reach this one, and which do not.
fn reached_by(as_seen: &[Seen]) -> Vec<String> {
    let sound = sound(as_seen);
    let reach = if sound.len() == 1 { "reaches" } else { "reach" };
    let all = (!sound.is_empty()).then(|| format!("{} {reach} it", sound.join(" and ")));
    let wrong = as_seen.iter().filter(|seen| !seen.is_sound()).map(|seen| match seen.reachable {
        true => format!("calls of {} to it fail{}", seen.name, seen.because()),
        false => format!("{} does not reach it{}", seen.name, seen.because()),
    });
    all.into_iter().chain(wrong).collect()
}

/// Says which nodes this one reaches, and which it does not.
fn reaches(sees: &[Seen]) -> Vec<String> {
    let sound = sound(sees);
    let all = (!sound.is_empty()).then(|| format!("it reaches {}", sound.join(" and ")));
    let wrong = sees.iter().filter(|seen| !seen.is_sound()).map(|seen| match seen.reachable {
        true => format!("its calls to {} fail{}", seen.name, seen.because()),
        false => format!("it does not reach {}{}", seen.name, seen.because()),
    });
    all.into_iter().chain(wrong).collect()
}

fn sound(seen: &[Seen]) -> Vec<&str> {
    seen.iter().filter(|seen| seen.is_sound()).map(|seen| seen.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: u32, reachable: bool, trouble: Option<&str>) -> Seen {
        let trouble = trouble.map(str::to_string);
        Seen { id, name: format!("n{id}"), reachable, trouble, ..Seen::default() }
    }

    fn subject() -> Subject {
        Subject { id: 2, name: "n2".to_string(), votes: true, ..Subject::default() }
    }

    fn follows(leader: u32) -> OwnState {
        OwnState {
            role: "follower".to_string(),
            leader: Some(Named { id: leader, name: format!("n{leader}") }),
            epoch: "7.1".to_string(),
            admitted: true,
            ..OwnState::default()
        }
    }

    #[test]
    fn a_cut_in_one_direction_is_said() {
        let state = OwnState { sees: vec![seen(1, false, None), seen(3, true, None)], ..follows(1) };
        let as_seen = vec![seen(1, true, None), seen(3, true, Some("409 x"))];
        let told = Explained { node: subject(), state: Some(state), as_seen, ..Explained::default() };
        let says = [
            "it follows n1, in epoch 7.1",
            "n1 reaches it",
            "calls of n3 to it fail: 409 x",
            "it reaches n3",
            "it does not reach n1",
        ];
        assert_eq!(told.sentences("n1", 1_000), says);
    }

    #[test]
    fn what_is_wrong_with_a_node_is_said() {
        let state = OwnState {
            admitted: false,
            disk_full: true,
            remark: Some("make room".to_string()),
            role: "candidate".to_string(),
            leader: None,
            ..follows(1)
        };
        let told = Explained { node: subject(), state: Some(state), ..Explained::default() };
        let says = told.sentences("n1", 1_000);
        assert_eq!((says[0].as_str(), says.len()), ("it has no leader", 4));
        assert!(says[1].contains("admitted") && says[2] == "its disk is full" && says[3] == "make room");
        let learner = Explained { node: Subject { votes: false, ..subject() }, ..told };
        let says = learner.sentences("n1", 1_000);
        assert!(!says.iter().any(|text| text.contains("admitted")), "{says:?}");
        assert!(says.iter().any(|text| text.starts_with("it is a learner")), "{says:?}");
    }

    #[test]
    fn a_silent_node_is_said_to_be_silent() {
        let silent = Silent { id: 2, name: "n2".to_string(), why: "cannot connect to it".to_string() };
        let as_seen = vec![seen(1, false, None), seen(3, false, None)];
        let told = Explained { node: subject(), as_seen, silent: vec![silent], ..Explained::default() };
        let says =
            ["it does not answer n1: cannot connect to it", "n1 does not reach it", "n3 does not reach it"];
        assert_eq!(told.sentences("n1", 1_000), says);
    }

    /// A deposed leader may not know yet that another node leads.
    #[test]
    fn lag_is_behind_the_nodes_own_leader() {
        let with =
            |id, lag, heard| Seen { lag: Some(lag), last_heard_ms: Some(heard), ..seen(id, true, None) };
        let told = |state| {
            let as_seen = vec![with(1, 90, 9), with(3, 1, 2_000)];
            Explained { node: subject(), state, as_seen, ..Explained::default() }.behind(1_000)
        };
        let says = ["it is 1 record behind the leader", "the leader, n3, last heard from it 2000 ms ago"];
        assert_eq!(told(Some(follows(3))), says);
        assert_eq!(told(None), ["it is 90 records behind the leader"]);
    }

    #[test]
    fn an_answer_of_another_node_is_refused() {
        let told = Explained { node: subject(), as_seen: vec![seen(3, true, None)], ..Explained::default() };
        assert_eq!(checked(3, "n3", 2, told.clone()).as_ref(), Ok(&told));
        assert_eq!(checked(1, "n1", 2, told.clone()), Err("node 3 answered at its address".to_string()));
        let own = Explained { state: Some(follows(1)), as_seen: Vec::new(), ..told };
        assert_eq!(checked(2, "n2", 2, own.clone()).as_ref(), Ok(&own));
        assert!(checked(1, "n1", 2, own).is_err());
    }
}

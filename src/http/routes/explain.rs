//! Explains what has happened to leadership, and why a call was refused (P58).
//!
//! Each node answers with what it has seen itself (`level=local`); the node that gets the call also asks the others, and combines the
//! answers.
//!
//! ```text
//!   client ─► any node ─► all others, `level=local`, within a second ─► their chronicles ─┐
//!                 └────────────── its own chronicle ──────────────────────────────────────┴─► changes of leader, in sentences
//! ```
//!
//! Explanations decide nothing (P58): a node that answers wrongly spoils the explanation and nothing else. A
//! node that does not answer is named with the reason, so that its silence is not taken for agreement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Method;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::chronicle::{Change, NotedStep, changes, epoch_order, sentence};
use crate::driver::handle::{Denied, Level};
use crate::driver::{Explained, HeirShown};
use crate::http::answer::{self, Answer};
use crate::http::dispatch::{Question, Said, ask_others};
use crate::http::request::{ClientRequest, Context};
use crate::http::url::name_after;
use crate::protocol::Mode;
use crate::store;
use crate::types::{NodeId, WallTime};

const CALLS: &str = "/v1/explain/calls/";

/// A node that is busy or far away answers within this time; a node that hangs is left out.
const WITHIN: Duration = Duration::from_secs(1);

/// More than a full chronicle, as JSON.
/// A node with a longer answer is left out.
const ANSWER_BYTES_MOST: usize = 2 << 20;

/// The number of changes of leader that are shown if the caller states none.
const CHANGES_DEFAULT: usize = 10;

pub async fn leader(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let query = request.query(&["level", "limit"])?;
    let most = query.limit.unwrap_or(CHANGES_DEFAULT);
    let own = request.in_time(context.handle.explain()).await?.ok_or(Denied::Stopping)?;
    // A forwarded question is answered from this node's own memory, so questions do not multiply.
    if query.level == Some(Level::Local) || request.was_forwarded() {
        return Ok(answer::data(&own));
    }
    let others = ask(&context, &request, "/v1/explain/leader?level=local").await;
    let mut told = BTreeMap::from([(own.node, own)]);
    let mut silent = Vec::new();
    for (id, name, said) in others {
        match said.and_then(|explained| checked(id, explained)) {
            Ok(explained) => drop(told.insert(id, explained)),
            Err(why) => silent.push(json!({"id": id, "name": name, "why": why})),
        }
    }
    // Thousands of entries are sorted, so this runs as a long read.
    let told = Told { context: &context, told };
    Ok(context.long_reads.run(|| answer::data(&told.document(most, silent))).await)
}

/// Explains a call, no matter which node has refused it.
pub async fn call(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let id = name_after(request.path(), CALLS, "request id")?;
    let local = request.query(&["level"])?.level == Some(Level::Local) || request.was_forwarded();
    let own = context.refusals.of(&id).into_iter();
    let mut found: Vec<Value> = own.map(|call| with_node(call, context.me().0)).collect();
    let mut silent = Vec::new();
    if !local {
        let target = format!("{}?level=local", request.path());
        for (node, name, said) in ask::<Value>(&context, &request, &target).await {
            match said {
                Ok(mut value) => {
                    let refused = value.get_mut("refused").and_then(Value::as_array_mut);
                    found.extend(refused.map(std::mem::take).unwrap_or_default());
                }
                Err(why) => silent.push(json!({"id": node, "name": name, "why": why})),
            }
        }
    }
    Ok(answer::data(&json!({"request_id": id, "refused": found, "silent": silent})))
}

fn with_node(mut call: Value, node: u32) -> Value {
    call["node"] = node.into();
    call
}

/// The words of another node must not look like further lines.
pub fn one_line(said: &str) -> String {
    said.replace(char::is_control, " ")
}

/// The nodes from which the leader hears nothing. Only the leader itself knows.
fn unheard(own: &Explained) -> Vec<NodeId> {
    let silent = own.contenders.iter().filter(|one| one.fitness == "silent");
    silent.map(|one| NodeId(one.node)).collect()
}

/// Returns the answer of each other node.
pub async fn ask<Told: DeserializeOwned>(
    context: &Context,
    request: &ClientRequest,
    target: &str,
) -> Vec<(u32, String, Result<Told, String>)> {
    let unheard = context.handle.explain().await.map(|own| unheard(&own)).unwrap_or_default();
    let question = Question { unheard: &unheard, ..question(request, target, WITHIN) };
    let said = ask_others(context, &question, |_, _| ()).await;
    let parsed = said.into_iter().map(|Said { member, answer, .. }| {
        let told = answer
            .map_err(|silence| silence.why)
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| unreadable(&error).to_string()));
        (member.id.0, member.name, told)
    });
    parsed.collect()
}

/// Asks with the credentials of the caller.
pub fn question<'a>(request: &'a ClientRequest, target: &'a str, within: Duration) -> Question<'a> {
    Question {
        method: Method::GET,
        target,
        shown: &request.head.parts.headers,
        origin: request.origin(),
        body: None,
        within,
        unheard: &[],
        bytes_most: ANSWER_BYTES_MOST,
    }
}

pub fn unreadable(error: &serde_json::Error) -> &'static str {
    match error.is_data() {
        true => "its answer is unreadable: does it run another version?",
        false => "its answer is not JSON",
    }
}

/// Rejects the answer of another node at this node's address.
/// While nodes change addresses, one of them may answer where another one is expected.
fn checked(id: u32, explained: Explained) -> Result<Explained, String> {
    match explained.node == id {
        true => Ok(explained),
        false => Err(format!("node {} answered at its address", explained.node)),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    changes: OneByOne<'a>,
    #[serde(flatten)]
    rest: Value,
}

/// A thousand changes as JSON values would take megabytes, so each one is written before the next one is made.
struct OneByOne<'a> {
    told: &'a Told<'a>,
    changes: Vec<Change>,
}

impl Serialize for OneByOne<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.changes.iter().map(|change| self.told.change(change)))
    }
}

/// The answers of all nodes that have answered.
struct Told<'a> {
    context: &'a Context,
    told: BTreeMap<u32, Explained>,
}

impl Told<'_> {
    fn document(&self, most: usize, silent: Vec<Value>) -> impl Serialize + '_ {
        let entries = self.told.iter().map(|(id, told)| (*id, told.entries.clone())).collect();
        let sides = self.context.setup.settings.mode == Mode::Available;
        let mut changes = changes(&entries, sides);
        let since = changes.pop().unwrap_or_default();
        changes.reverse();
        changes.truncate(most);
        // If two nodes say that they lead, the one with the greater epoch is right, and the other one learns of it.
        let leads = |told: &&Explained| told.leader == Some(told.node) && self.is_of_a_member(&told.epoch);
        let leader = self.told.values().filter(leads).max_by_key(|told| epoch_order(&told.epoch));
        let nobody = self.told.values().all(|told| told.leader.is_none());
        let advice = self.told.values().filter_map(|told| {
            Some(json!({"id": told.node, "name": self.name(told.node), "says": told.advice.as_ref()?}))
        });
        let rest = json!({
            "leader": leader.map(|told| json!({"id": told.node, "name": self.name(told.node), "epoch": told.epoch})),
            "needed": leader.or(self.told.values().next()).map(|told| told.needed),
            "nobody_leads_because": advice.collect::<Vec<_>>(),
            "lost_because": since.cause().filter(|_| nobody).map(|step| self.says(step)),
            "next": leader.map(|told| self.next(told)).unwrap_or_default(),
            "contenders": leader.map(|told| &told.contenders),
            "as_seen": self.as_seen(),
            "since": self.steps(&since),
            "silent": silent,
        });
        Document { changes: OneByOne { told: self, changes }, rest }
    }

    /// The leader's answer alone predicts the succession: a follower does not know which nodes are behind (P58).
    fn next(&self, leader: &Explained) -> Vec<Value> {
        let step = |heir: &HeirShown| {
            let dead: Vec<String> = heir.dead.iter().map(|id| self.name(*id)).collect();
            let died = format!("if {} died", dead.join(" and "));
            let says = match heir.next {
                Some(next) => format!("{died}, {} would lead", self.name(next)),
                None => {
                    format!(
                        "{died}, no node could be elected: {} of the {} votes needed would be left",
                        heir.votes, leader.needed
                    )
                }
            };
            let next = heir.next.map(|id| json!({"id": id, "name": self.name(id)}));
            json!({"dead": heir.dead, "next": next, "votes": heir.votes, "says": says})
        };
        leader.succession.iter().map(step).collect()
    }

    fn as_seen(&self) -> Vec<Value> {
        let seen = |told: &Explained| {
            let (id, name) = (told.node, self.name(told.node));
            let Explained { leader, epoch, heir, reaches, entries, .. } = told;
            let knows_since = entries.first().map(|entry| store::date_text(entry.at));
            json!({
                "id": id, "name": name, "leader": leader, "epoch": epoch, "heir": heir, "reaches": reaches,
                "knows_since": knows_since, "journal_lost": entries.iter().any(|entry| entry.tells_of_a_loss()),
            })
        };
        self.told.values().map(seen).collect()
    }

    fn change(&self, change: &Change) -> Value {
        let leaderless: BTreeMap<String, u64> =
            change.leaderless.iter().map(|(node, ms)| (node.to_string(), *ms)).collect();
        // The leader's own value is preferred: the others notice the leader a moment later.
        let own = change.leader.and_then(|leader| change.leaderless.get(&leader));
        let cause = change.cause();
        json!({
            "epoch": change.epoch,
            "leader": self.named(change.leader),
            "previous_leader": self.named(change.previous()),
            "at": change.led_since().map(store::date_text),
            "cause": cause.map(|step| step.entry.cause.as_ref().unwrap_or(&step.entry.event)),
            "because": cause.map(|step| self.says(step)),
            "ordered_by": cause.and_then(|step| step.entry.by.as_deref()),
            "previous_leader_says": change.testimony().into_iter().map(|step| self.says(step)).collect::<Vec<_>>(),
            "leaderless_ms": own.or(change.leaderless.values().min()),
            "leaderless_ms_by_node": leaderless,
            "steps": self.steps(change),
        })
    }

    fn named(&self, id: Option<u32>) -> Option<Value> {
        id.map(|id| json!({"id": id, "name": self.name(id)}))
    }

    fn steps(&self, change: &Change) -> Vec<Value> {
        let first = change.steps.first().map(|step| step.placed).unwrap_or_default();
        change.steps.iter().map(|step| self.step(step, first)).collect()
    }

    fn step(&self, step: &NotedStep, first: WallTime) -> Value {
        let mut value = serde_json::to_value(step).unwrap_or_default();
        value["after_us"] = step.placed.0.saturating_sub(first.0).into();
        value["says"] = self.says(step).into();
        value
    }

    fn says(&self, step: &NotedStep) -> String {
        one_line(&format!("{} {}", self.name(step.by), sentence(&step.entry, |id| self.name(id))))
    }

    /// Each leader is a member, so an epoch of any other node is ignored.
    /// Without a secret any process can answer in the place of a node, and could name an epoch above all
    /// others.
    fn is_of_a_member(&self, epoch: &str) -> bool {
        let leader = epoch.split_once('.').and_then(|(_, leader)| leader.parse().ok());
        leader.is_some_and(|leader| self.context.setup.member(NodeId(leader)).is_some())
    }

    fn name(&self, id: u32) -> String {
        let member = self.context.setup.member(NodeId(id));
        member.map_or_else(|| format!("node {id}"), |member| member.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_of_another_form_may_be_of_another_version() {
        let why = |text: &str| {
            serde_json::from_str::<Explained>(text).map_err(|error| unreadable(&error)).err().unwrap_or("")
        };
        assert!(why(r#"{"node":"one"}"#).contains("another version"));
        for text in ["", "<html>", r#"{"node":1,"#] {
            assert_eq!(why(text), "its answer is not JSON", "{text}");
        }
        assert_eq!(why(r#"{"node":1,"newer":7}"#), "", "a reader ignores what it does not know");
    }
}

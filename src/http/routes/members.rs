//! The members of the cluster: every node shows them, and the leader changes them, one change at a time (P43).
//!
//! A change is an order to the leader. This module checks that the node answers at its address; everything
//! about the cluster is judged by the protocol (`Denied::Members`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::Address;
use crate::driver::handle::Denied;
use crate::driver::{self, Member, Stranger};
use crate::http::answer::{self, Answer, CallFailure, Code, Problem};
use crate::http::dispatch;
use crate::http::request::{CallKind, ClientRequest, Context};
use crate::protocol::{HandOverReason, MemberChange, MembersRefusal};
use crate::types::{NodeId, Text};

/// The same bounds as in the topology file.
const ID_MOST: u32 = 1 << 31;
const NAME_MOST: usize = 128;

/// Exactly one of the three must be set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    add: Option<Added>,
    remove: Option<u32>,
    #[serde(rename = "move")]
    moved: Option<Moved>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    id: u32,
    name: Option<String>,
    address: String,
    /// Skips the check that the node answers at its address.
    /// For a node that is started later, or that this node cannot reach.
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    id: u32,
    address: String,
}

/// Lists the members as this node knows them.
pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    Ok(answer::data(&shown(&context)))
}

/// Answers once the change is committed. An added node votes later, when it has caught up.
pub async fn change(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let asked = request.object::<Change>()?;
    let force = asked.add.as_ref().is_some_and(|added| added.force);
    let change = asked.checked()?;
    let no_forward = request.no_forward()?;
    // The chronicle says who made a leader hand over.
    let by: Text = request.principal().who.to_string().into();
    let here = || carry_out(&context, change.clone(), force, by.clone());
    dispatch::at_leader(&context, &request, CallKind::Order, no_forward, here).await
}

async fn carry_out(
    context: &Context,
    change: MemberChange,
    force: bool,
    by: Text,
) -> Result<Response<Body>, CallFailure> {
    if !force {
        check_address(context, &change).await?;
    }
    match context.handle.change_members(change.clone()).await {
        // A leader that is to be removed hands over first; the next leader takes the call.
        // After the hand-over this node does not lead, so the second call is refused as `NotLeader`, and
        // `dispatch` finds the next leader.
        Err(Denied::Members(MembersRefusal::IsLeader)) => {
            context.handle.hand_over(None, HandOverReason::Removed { by }).await?;
            context.handle.change_members(change).await?;
        }
        other => other?,
    }
    Ok(answer::data(&shown(context)))
}

/// An added node counts for majorities once it is in the log, so a wrong address would cost a vote: the address is checked first.
/// In available mode the log names no members, and the change is refused anyway.
async fn check_address(context: &Context, change: &MemberChange) -> Result<(), Problem> {
    let MemberChange::Add { id, name, address } = change else { return Ok(()) };
    // The log knows more about an existing member.
    if context.setup.settings.is_available() || context.setup.member(*id).is_some() {
        return Ok(());
    }
    let Some(member) = Member::at(*id, name, address) else { return Ok(()) };
    driver::greet(&context.setup, &member).await.map_err(|stranger| {
        let rule = match stranger {
            Stranger::NotReached(_) => "not_reached",
            Stranger::NoNode | Stranger::Another(_) => "another_node",
        };
        let detail = format!(
            "node {} was not found at {address}: {stranger}. Start the node there first, or add it without this \
                check (\"force\": true, --force)",
            id.0
        );
        Problem::new(Code::RuleViolated, detail).with("rule", rule)
    })
}

fn shown(context: &Context) -> Value {
    let known = context.setup.known();
    let member = |member: &Member| json!({"id": member.id.0, "name": member.name, "url": context.setup.url(member), "votes": member.votes});
    let members: Vec<Value> = known.members.iter().map(member).collect();
    let cluster = known.cluster.is_known().then(|| known.cluster.to_string());
    json!({"cluster_id": cluster, "members": members})
}

impl Change {
    fn checked(self) -> Result<MemberChange, Problem> {
        match self {
            Change { add: Some(added), remove: None, moved: None } => {
                let id = node("add.id", added.id)?;
                let name = added.name.unwrap_or_else(|| format!("n{}", id.0));
                if name.is_empty() || name.len() > NAME_MOST || name.contains(char::is_control) {
                    let detail = format!("a name must have 1 to {NAME_MOST} bytes and no control characters");
                    return Err(Problem::field("add.name", detail));
                }
                let address = address("add.address", &added.address)?;
                Ok(MemberChange::Add { id, name: name.into(), address })
            }
            Change { add: None, remove: Some(id), moved: None } => {
                Ok(MemberChange::Remove(node("remove", id)?))
            }
            Change { add: None, remove: None, moved: Some(moved) } => {
                let (id, address) = (node("move.id", moved.id)?, address("move.address", &moved.address)?);
                Ok(MemberChange::Move { id, address })
            }
            _ => Err(Problem::field("add", "give exactly one of add, remove and move")),
        }
    }
}

fn node(field: &str, id: u32) -> Result<NodeId, Problem> {
    match (1..=ID_MOST).contains(&id) {
        true => Ok(NodeId(id)),
        false => Err(Problem::field(field, format!("a node's id must be an integer from 1 to {ID_MOST}"))),
    }
}

/// Returns the address in the form that the log has.
fn address(field: &str, text: &str) -> Result<Arc<str>, Problem> {
    match Address::parse_called(text) {
        Ok(address) => Ok(address.to_string().into()),
        Err(why) => Err(Problem::field(field, format!("{text:?} is not a node's address: {why}"))),
    }
}

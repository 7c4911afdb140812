//! Who belongs to the cluster: shown by any node, changed by the leader, one change at a time (P43).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::Address;
use crate::driver::api::Denied;
use crate::http::answer::{self, Answer, Failure, Problem};
use crate::http::dispatch;
use crate::http::request::{ClientRequest, Context, Kind};
use crate::protocol::{MemberChange, MembersRefusal};
use crate::types::NodeId;

/// As the topology file bounds them.
const ID_MOST: u32 = 1 << 31;
const NAME_MOST: usize = 128;

/// One of the three.
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
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    id: u32,
    address: String,
}

/// As this node knows them.
pub async fn list(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    request.query(&[])?;
    Ok(answer::data(&shown(&context)))
}

/// Answers once the change is committed. Who has been added votes later, when it has caught up.
pub async fn change(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let change = request.object::<Change>()?.checked()?;
    let no_forward = request.no_forward()?;
    let here = || carry_out(&context, change.clone());
    dispatch::at_leader(&context, &request, Kind::Order, no_forward, here).await
}

async fn carry_out(context: &Context, change: MemberChange) -> Result<Response<Body>, Failure> {
    match context.handle.change_members(change.clone()).await {
        // A leader that is to go hands over first; the next one takes the call.
        Err(Denied::Members(MembersRefusal::IsLeader)) => {
            context.handle.hand_over(None).await?;
            context.handle.change_members(change).await?;
        }
        other => other?,
    }
    Ok(answer::data(&shown(context)))
}

fn shown(context: &Context) -> Value {
    let known = context.setup.known();
    let member = |member: &crate::driver::Member| json!({"id": member.id.0, "name": member.name, "url": context.setup.url(member), "votes": member.votes});
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
                    let detail = format!("a name has 1 to {NAME_MOST} bytes, no control characters");
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
            _ => Err(Problem::field("add", "one of add, remove and move says what to change, and only one")),
        }
    }
}

fn node(field: &str, id: u32) -> Result<NodeId, Problem> {
    match (1..=ID_MOST).contains(&id) {
        true => Ok(NodeId(id)),
        false => Err(Problem::field(field, format!("a node's id is a number from 1 to {ID_MOST}"))),
    }
}

/// As it is kept in the log.
fn address(field: &str, text: &str) -> Result<Arc<str>, Problem> {
    match Address::parse_called(text) {
        Ok(address) => Ok(address.to_string().into()),
        Err(why) => Err(Problem::field(field, format!("{text:?} is no address of a node: {why}"))),
    }
}

//! One table has the permission that each route needs: the router is built from it, so that no route is without a need.
//!
//! Calls of other nodes are proved in another way, and reach none of these routes.
//!
//! ```text
//!   TABLE: method, pattern ─► Need ── with the path and query of a call ──► Asked ── covered by the grants? ──► handler
//!                                     command of a body ── each operation ──► Asked ── covered? ─► the log
//! ```
//!
//! The description of the API is made from the table as well (`openapi`), so it names the grant that is
//! really checked.

use std::borrow::Cow;
use std::fmt;

use axum::http::Uri;

use crate::http::answer::Problem;
use crate::http::url::{Query, name_after};
use crate::store::{Area, Command, LeaseOperation, Operation, Verb};
use crate::types::LeaseName;
use Area::{Channels, Docs, Elections, Processes, Roles, Status, Users};
use Verb::{Read, Watch, Write};

/// The permission that a route needs, known before the call is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Every caller is answered: a caller without a credential learns what exists, and a load balancer where to send clients.
    Nothing,
    /// No grant: every caller may know what it may do itself. An invalid credential is refused.
    OwnGrants,
    /// An order of an operator.
    Order,
    /// The verb on single items: the handler checks each item that the call is about.
    /// The guard only turns away callers that have the verb nowhere: the body says which items the call is
    /// about, and it is not read for a caller without any such grant.
    Some(Verb),
    /// The verb on all items of the area.
    All(Verb, Area),
    /// The verb on all items below the prefix that the query names.
    Below(Verb, Area),
    /// The verb on the item that the path names, before one of these operations, if there are any.
    Named(Verb, Area, &'static [&'static str]),
    /// An operation on a role: one of the operations is an order.
    OnRole,
    /// An operation on a process: one of the operations is an order.
    OnProcess,
}

/// The permission that a call needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    Nothing,
    Order,
    Some(Verb),
    Below(Verb, Area, Cow<'a, str>),
    Named(Verb, Area, Cow<'a, str>),
}

/// A method, a path in the router's syntax, and the need.
pub type Row = (&'static str, &'static str, Need);

const NAMED: &[&str] = &[];
const ELECT: &str = "/elect";
const REMOVE: &str = "/remove";

/// HEAD is answered for every GET route, and needs the same.
/// A test compares the routes with the described operations, and the router panics in a test if a row has no
/// handler.
pub const TABLE: [Row; 65] = [
    ("GET", "/", Need::Nothing),
    ("GET", "/ui/{*file}", Need::Nothing),
    ("GET", "/openapi.json", Need::Nothing),
    ("GET", "/livez", Need::Nothing),
    ("GET", "/readyz", Need::Nothing),
    ("GET", "/leader", Need::Nothing),
    ("GET", "/metrics", Need::All(Read, Status)),
    ("GET", "/v1/status", Need::All(Read, Status)),
    ("GET", "/v1/diagnostics", Need::All(Read, Status)),
    ("GET", "/v1/members", Need::All(Read, Status)),
    ("GET", "/v1/caller", Need::OwnGrants),
    ("GET", "/v1/explain/leader", Need::All(Read, Status)),
    ("GET", "/v1/explain/roles/{*role}", Need::Named(Read, Roles, NAMED)),
    ("GET", "/v1/explain/health", Need::All(Read, Status)),
    ("GET", "/v1/explain/nodes/{*node}", Need::All(Read, Status)),
    ("GET", "/v1/explain/conflicts/{*id}", Need::All(Read, Docs)),
    // It shows the calls of all clients.
    ("GET", "/v1/explain/calls/{*id}", Need::Order),
    ("POST", "/is_leader", Need::All(Read, Status)),
    ("POST", "/heartbeat", Need::All(Read, Status)),
    ("POST", "/hearbeat", Need::All(Read, Status)),
    ("POST", "/declare_capability", Need::All(Read, Status)),
    ("POST", "/v1/commands", Need::Some(Write)),
    ("POST", "/writesync", Need::Some(Write)),
    ("GET", "/v1/users", Need::Below(Read, Users)),
    ("GET", "/v1/users/{*name}", Need::Named(Read, Users, NAMED)),
    ("GET", "/v1/elections", Need::Below(Read, Elections)),
    ("GET", "/v1/elections/{*name}", Need::Named(Read, Elections, NAMED)),
    ("GET", "/v1/docs", Need::Below(Read, Docs)),
    ("GET", "/v1/docs/", Need::Named(Read, Docs, NAMED)),
    ("PUT", "/v1/docs/", Need::Named(Write, Docs, NAMED)),
    ("DELETE", "/v1/docs/", Need::Named(Write, Docs, NAMED)),
    ("POST", "/v1/docs/", Need::Named(Write, Docs, NAMED)),
    ("GET", "/v1/docs/{*key}", Need::Named(Read, Docs, NAMED)),
    ("PUT", "/v1/docs/{*key}", Need::Named(Write, Docs, NAMED)),
    ("DELETE", "/v1/docs/{*key}", Need::Named(Write, Docs, NAMED)),
    ("POST", "/v1/docs/{*key}", Need::Named(Write, Docs, NAMED)),
    // This covers documents of every kind: the lost version has no separate name.
    ("GET", "/v1/conflicts", Need::All(Read, Docs)),
    ("GET", "/v1/conflicts/{*id}", Need::All(Read, Docs)),
    ("POST", "/v1/conflicts/{*id}", Need::All(Write, Docs)),
    ("GET", "/v1/roles", Need::Below(Read, Roles)),
    ("GET", "/v1/roles/{*role}", Need::Named(Read, Roles, &["/check"])),
    ("POST", "/v1/roles/{*role}", Need::OnRole),
    // Items may be chosen by other properties than their ids.
    ("GET", "/v1/processes", Need::All(Read, Processes)),
    ("GET", "/v1/processes/{*id}", Need::Named(Read, Processes, NAMED)),
    ("PUT", "/v1/processes/{*id}", Need::Named(Write, Processes, NAMED)),
    ("DELETE", "/v1/processes/{*id}", Need::Named(Write, Processes, NAMED)),
    ("POST", "/v1/processes/{*id}", Need::OnProcess),
    ("GET", "/v1/feed", Need::Some(Watch)),
    ("GET", "/v1/channels/{*name}", Need::Named(Watch, Channels, NAMED)),
    ("POST", "/v1/channels/{*name}", Need::Named(Write, Channels, NAMED)),
    ("GET", "/v1/tokens", Need::Order),
    ("POST", "/v1/tokens", Need::Order),
    ("DELETE", "/v1/tokens/{*id}", Need::Order),
    ("POST", "/v1/members", Need::Order),
    ("POST", "/recv_elect", Need::Order),
    ("POST", "/catch_up", Need::Order),
    ("POST", "/merge_conflict", Need::Order),
    ("POST", "/override_all_data", Need::Order),
    ("GET", "/v1/backup", Need::Order),
    ("POST", "/v1/restore", Need::Order),
    ("POST", "/service_down", Need::Order),
    ("POST", "/service_up", Need::Order),
    ("POST", "/elect", Need::Order),
    ("POST", "/handoff", Need::Order),
    ("POST", "/form", Need::Order),
];

impl Need {
    /// Returns the permission that a call of this route needs. An invalid call is refused as the handler would refuse it.
    pub fn of(self, pattern: &str, uri: &Uri) -> Result<Asked<'static>, Problem> {
        let path = uri.path();
        Ok(match self {
            Need::Nothing | Need::OwnGrants => Asked::Nothing,
            Need::Order => Asked::Order,
            Need::Some(verb) => Asked::Some(verb),
            Need::All(verb, area) => Asked::Below(verb, area, Cow::Borrowed("")),
            Need::Below(verb, area) => Asked::Below(verb, area, prefix(uri)?),
            Need::Named(verb, area, operations) => {
                let end = operations.iter().find_map(|operation| path.strip_suffix(operation));
                Asked::Named(verb, area, name(pattern, end.unwrap_or(path))?)
            }
            Need::OnRole if path.ends_with(ELECT) => Asked::Order,
            Need::OnProcess if path.ends_with(REMOVE) => Asked::Order,
            Need::OnProcess => {
                let id = path.strip_suffix("/heartbeat").unwrap_or(path);
                Asked::Named(Write, Processes, name(pattern, id)?)
            }
            Need::OnRole => {
                let role = path.rsplit_once('/').map_or(path, |(role, _)| role);
                // `/v1/roles/name` without an operation is no route.
                Asked::Named(Write, Roles, name(pattern, role).unwrap_or(Cow::Borrowed("")))
            }
        })
    }
}

/// Returns the decoded name after the fixed part of the route.
fn name(pattern: &str, path: &str) -> Result<Cow<'static, str>, Problem> {
    let (fixed, what) = pattern.split_once("{*").unwrap_or((pattern, "key}"));
    let name = name_after(path, fixed, what.trim_end_matches('}'))?;
    Ok(Cow::Owned(name.into_owned()))
}

/// Finds the prefix among the other parameters, which the handler checks. The handler also refuses a second prefix.
/// Without a prefix the call asks for everything, and needs a grant for everything.
fn prefix(uri: &Uri) -> Result<Cow<'static, str>, Problem> {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let pair = pairs.find(|pair| pair.split_once('=').map_or(*pair, |(name, _)| name) == "prefix");
    let prefix = Query::parse(pair, &["prefix"])?.prefix.unwrap_or_default();
    Ok(Cow::Owned(prefix.into_owned()))
}

/// Returns the permissions that the operations of a command need.
pub fn of_command(command: &Command) -> impl Iterator<Item = Asked<'_>> {
    command.operations().iter().flat_map(of_operation)
}

/// Returns the permissions for the item that changes, the lease that a document is to end with, and the role in whose name it is written.
/// Without the last two a caller could bind documents to leases, and write in the name of roles, that it has
/// no right to (P54, P59).
fn of_operation(operation: &Operation) -> impl Iterator<Item = Asked<'_>> {
    let (ending, holder) = match operation {
        Operation::PutDoc { ending, holder, .. } => (ending.with.as_ref(), holder.as_ref()),
        Operation::DeleteDoc { holder, .. } => (None, holder.as_ref()),
        _ => (None, None),
    };
    let lease = ending.map(|tether| match &tether.lease {
        LeaseName::Role(name) => write(Roles, name),
        LeaseName::Process(id) => write(Processes, id),
        LeaseName::Doc(key) => write(Docs, key),
    });
    let role = holder.map(|holder| write(Roles, &holder.role));
    [Some(changed_by(operation)), lease, role].into_iter().flatten()
}

fn write(area: Area, name: &str) -> Asked<'_> {
    Asked::Named(Write, area, Cow::Borrowed(name))
}

/// A new operation does not compile without an arm here. A new operation of leases needs an order until it gets
/// one.
fn changed_by(operation: &Operation) -> Asked<'_> {
    match operation {
        Operation::CreateUser(user) => write(Users, &user.name),
        Operation::RemoveUser { name } => write(Users, name),
        Operation::CreateElection(election) => write(Elections, &election.name),
        Operation::VoteElection { election, .. } => write(Elections, election),
        Operation::PutDoc { key, .. } | Operation::DeleteDoc { key, .. } => write(Docs, key),
        Operation::ApplyConflict { .. } | Operation::DropConflict { .. } => {
            Asked::Below(Write, Docs, Cow::Borrowed(""))
        }
        Operation::Lease(operation) => match &**operation {
            LeaseOperation::Acquire { role, elect: false, .. } | LeaseOperation::Release { role, .. } => {
                write(Roles, role)
            }
            LeaseOperation::Register { id, .. } | LeaseOperation::Remove { id, .. } => write(Processes, id),
            // No client sends the other operations.
            _ => Asked::Order,
        },
        Operation::Token(_) => Asked::Order,
    }
}

/// Writes the permission in the syntax of a grant.
impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Nothing => f.write_str("nothing"),
            Asked::Order => f.write_str("order"),
            Asked::Some(verb) => write!(f, "{} …", verb.name()),
            Asked::Below(verb, area, name) | Asked::Named(verb, area, name) => {
                write!(f, "{} {}", verb.name(), area.name())?;
                if name.is_empty() { Ok(()) } else { write!(f, "/{name}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> String {
        let (method, target) = line.split_once(' ').expect("a method and a target");
        let uri: Uri = target.parse().expect("a target");
        let fits = |pattern: &str| match pattern.split_once("{*") {
            Some((fixed, _)) => uri.path().len() > fixed.len() && uri.path().starts_with(fixed),
            None => uri.path() == pattern,
        };
        let row = TABLE.iter().find(|(known, pattern, _)| *known == method && fits(pattern));
        let (_, pattern, need) = row.unwrap_or_else(|| panic!("no route {line}"));
        need.of(pattern, &uri)
            .map_or_else(|problem| problem.code().name().to_string(), |asked| asked.to_string())
    }

    #[test]
    fn a_call_needs_what_it_names() {
        for (line, need) in [
            ("GET /livez", "nothing"),
            ("GET /v1/docs/app/a%20b", "read docs/app/a b"),
            ("PUT /v1/docs/app%2Fa", "write docs/app/a"),
            ("POST /v1/docs/a?renew", "write docs/a"),
            ("GET /v1/docs?limit=3&prefix=app%2F&after=x", "read docs/app/"),
            ("GET /v1/docs", "read docs"),
            ("GET /v1/docs?prefix", "read docs"),
            ("GET /v1/docs?prefix=%ff", "bad_field"),
            ("GET /v1/docs/%ff", "bad_field"),
            ("GET /v1/roles/a/check?token=1", "read roles/a"),
            ("GET /v1/roles/a/b", "read roles/a/b"),
            ("POST /v1/roles/a/b/acquire", "write roles/a/b"),
            ("POST /v1/roles/a/hold?instance_id=x", "write roles/a"),
            ("POST /v1/roles/a/elect", "order"),
            ("POST /v1/roles/a", "write roles"),
            ("POST /v1/processes/p/heartbeat", "write processes/p"),
            ("PUT /v1/processes/p/heartbeat", "write processes/p/heartbeat"),
            ("GET /v1/processes?role=a", "read processes"),
            ("GET /v1/feed?prefix=a", "watch …"),
            ("GET /v1/channels/c", "watch channels/c"),
            ("POST /v1/conflicts/doc:a/apply", "write docs"),
            ("DELETE /v1/tokens/0123456789abcdef", "order"),
        ] {
            assert_eq!(asked(line), need, "{line}");
        }
    }

    #[test]
    fn each_route_stands_there_once() {
        for (number, (method, path, _)) in TABLE.iter().enumerate() {
            let same = |(other, same, _): &Row| other == method && same == path;
            assert_eq!(TABLE.iter().position(same), Some(number), "{method} {path}");
        }
    }
}

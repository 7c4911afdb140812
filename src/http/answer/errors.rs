//! Turns what the node and the store refuse, and what cannot be parsed, into the problem that a client receives.
//!
//! ```text
//!   Denied       by the node: not leading, no majority, too much …   421, 429, 503: surely not applied; 504: unknown
//!                about roles, tokens and members                     401, 409, 410: by the state, like a rejection
//!   Rejection    by the store: exists, precondition …                4xx, 507
//!   BadCommand   by the parser                                       400, 413
//! ```
//!
//! Each enumeration is matched without a wildcard, so a new refusal cannot be forgotten here.

use std::borrow::Cow;

use axum::http::header::{HeaderValue, WWW_AUTHENTICATE};
use serde_json::Value;

use super::lease::{holder, millis};
use super::problem::{Code, Problem};
use crate::driver::HeldBy;
use crate::driver::handle::Denied;
use crate::protocol::MembersRefusal;
use crate::store::{self, BadCommand, BadField, Reason, Rejection};

/// Why a call was not answered here: refused by the node, which may be worth another try, or failed for good.
/// The difference matters to `dispatch`: only a `Denied` about leadership leads to another attempt.
#[derive(Debug)]
pub enum CallFailure {
    Denied(Denied),
    Problem(Problem),
}

impl From<Denied> for CallFailure {
    fn from(denied: Denied) -> CallFailure {
        CallFailure::Denied(denied)
    }
}

impl From<Problem> for CallFailure {
    fn from(problem: Problem) -> CallFailure {
        CallFailure::Problem(problem)
    }
}

impl From<BadCommand> for CallFailure {
    fn from(bad: BadCommand) -> CallFailure {
        CallFailure::Problem(bad.into())
    }
}

impl From<CallFailure> for Problem {
    fn from(failure: CallFailure) -> Problem {
        match failure {
            CallFailure::Denied(denied) => denied.into(),
            CallFailure::Problem(problem) => problem,
        }
    }
}

/// Maps the node's own refusals.
impl From<Denied> for Problem {
    fn from(denied: Denied) -> Problem {
        match denied {
            Denied::NotLeader { leader } => {
                Problem::new(Code::NotLeader, format!("node {} leads; call it there", leader.0))
                    .leader(leader)
            }
            Denied::NoLeader => {
                Problem::new(Code::NoLeader, "there is no leader now; an election may be in progress")
            }
            Denied::NoQuorum => {
                Problem::new(Code::NoQuorum, "this node cannot reach a majority of the cluster")
            }
            Denied::CatchingUp => Problem::new(
                Code::CatchingUp,
                "this node has not caught up yet, or has not been admitted yet",
            ),
            Denied::HandingOver => Problem::new(
                Code::NoLeader,
                "leadership is being handed over, which is taking longer than usual",
            ),
            Denied::ServiceDown { reason } => service_down(&reason),
            Denied::DiskFull => Problem::new(Code::DiskFull, "the leader's disk is full"),
            Denied::TooMany { bound } => {
                Problem::new(Code::TooManyRequests, format!("limit reached: {bound}")).with("bound", bound)
            }
            Denied::FormatNotShared => Problem::new(
                Code::CatchingUp,
                "a member has not shown yet that it can read records of this type: start the members that are \
                    down, or remove them",
            ),
            Denied::NotAnHeir => Problem::new(
                Code::RuleViolated,
                "that node cannot lead now: it is down, behind, or not admitted",
            )
            .with("rule", "not_an_heir"),
            Denied::AlreadyFormed => Problem::new(
                Code::RuleViolated,
                "the cluster has already been formed, which happens only once",
            )
            .with("rule", "already_formed"),
            Denied::Members(refusal) => members(refusal),
            Denied::TokenEnded => unauthorized("the token was revoked or has expired"),
            Denied::RoleHeld(held) => {
                let outcome = if held.conflict { "conflict" } else { "other_leader" };
                let detail = format!("another instance holds the role {:?}", held.role);
                with_holder(Problem::new(Code::RoleHeld, detail).with("outcome", outcome), &held)
            }
            Denied::LeaseLost(held) => {
                let detail = format!("this token of the role {:?} is no longer valid", held.role);
                with_holder(Problem::new(Code::LeaseLost, detail), &held)
            }
            Denied::GivenUp { why } => given_up(why),
            Denied::Rejected(rejection) => rejection.into(),
            Denied::Stopping => Problem::new(Code::NoLeader, "this node is stopping; call another one"),
            Denied::Unknown => outcome_unknown("the node lost track of the call"),
        }
    }
}

fn members(refusal: MembersRefusal) -> Problem {
    let broken = |rule: &'static str, detail: &'static str| {
        Problem::new(Code::RuleViolated, detail).with("rule", rule)
    };
    match refusal {
        MembersRefusal::ByFile => {
            let detail = "in available mode the topology files define the members of the cluster: stop all \
                nodes and change the files";
            Problem::new(Code::ModeMismatch, detail)
        }
        MembersRefusal::UnderWay => {
            let detail =
                "one change at a time: the previous one is not committed yet, or leadership has just changed";
            Problem::new(Code::MembersChanging, detail)
        }
        MembersRefusal::NotMember => Problem::new(Code::NotFound, "the cluster has no node with that id"),
        MembersRefusal::IsMember => broken("is_member", "the cluster already has a node with that id"),
        MembersRefusal::NameTaken => broken("name_taken", "another node has that name"),
        MembersRefusal::AddressTaken => broken("address_taken", "another node has that address"),
        MembersRefusal::TooMany => broken("too_many_members", "a cluster has at most 101 nodes"),
        MembersRefusal::IsLeader => broken(
            "is_leader",
            "it is the leader, and no other node can take over now: start one, or wait until one has caught up",
        ),
        MembersRefusal::WouldStall => broken(
            "would_stall",
            "no majority of the remaining nodes answers: first start nodes that are down, or remove one of those",
        ),
    }
}

/// Adds the holder of a role to a problem, with the same members as in the answer to a holder.
/// A caller that is refused learns who holds the role, and can decide whether to wait without another call.
fn with_holder(problem: Problem, held: &HeldBy) -> Problem {
    let leader = held.by.as_ref().and_then(|role| serde_json::to_value(holder(role)).ok());
    problem
        .with("role", &*held.role)
        .with("leader", leader.unwrap_or(Value::Null))
        .with("token", held.by.as_ref().map(|role| role.token))
        .with("expires_in_ms", held.by.as_ref().and(held.expires_in).map(millis))
}

fn given_up(why: &str) -> Problem {
    Problem::new(Code::RestoreGivenUp, format!("the document was rejected, and nothing has changed: {why}"))
}

fn service_down(reason: &str) -> Problem {
    let detail = match reason {
        "" => "client writes are refused until /service_up, or until the hold expires".to_string(),
        reason => format!("client writes are refused until /service_up, or until the hold expires: {reason}"),
    };
    Problem::new(Code::ServiceDown, detail)
}

fn key_reused() -> Problem {
    Problem::new(Code::IdempotencyKeyReused, "this Idempotency-Key was used with another call before")
}

/// The write was sent, and its outcome is unknown: the client repeats it with the same key, or reads.
pub fn outcome_unknown(what: &str) -> Problem {
    let advice =
        "it may or may not have happened; retry with the same Idempotency-Key, or read before you retry";
    Problem::new(Code::OutcomeUnknown, format!("{what}: {advice}"))
}

/// Maps rejections by the store.
impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Problem {
        let detail = rejection.to_string();
        let problem = match rejection.reason {
            Reason::Exists { .. } => Problem::new(Code::Exists, detail),
            Reason::NotFound { .. } => Problem::new(Code::NotFound, detail),
            Reason::RuleViolated(rule) => Problem::new(Code::RuleViolated, detail).with("rule", rule.name()),
            Reason::PreconditionFailed { current, .. } => {
                Problem::new(Code::PreconditionFailed, detail).with("current_rev", current)
            }
            Reason::RoleHeld { role } => Problem::new(Code::RoleHeld, detail).with("role", &*role),
            Reason::LeaseLost { role } => Problem::new(Code::LeaseLost, detail).with("role", &*role),
            Reason::WrongSecret => Problem::new(Code::Forbidden, detail),
            Reason::LeaseNotHeld { lease, field } => Problem::new(Code::LeaseNotHeld, detail)
                .with("field", field)
                .with("with", store::lease_path(&lease)),
            Reason::RoleNotHeld { role } => Problem::new(Code::RoleNotHeld, detail).with("role", &*role),
            Reason::TooManyTethered { .. } => {
                Problem::new(Code::RuleViolated, detail).with("rule", "too_many_with_lease")
            }
            Reason::NoTtl { .. } => Problem::new(Code::RuleViolated, detail).with("rule", "no_ttl"),
            Reason::StateFull { area, used, most } => {
                let problem = Problem::new(Code::StateFull, detail).with("used", used).with("most", most);
                area.iter().fold(problem, |problem, area| problem.with("prefix", &**area))
            }
            // The caller already has the requested state.
            Reason::Unchanged => Problem::new(Code::Exists, detail),
            Reason::KeyReused => key_reused(),
            Reason::NotStaged => given_up("some of its parts are missing"),
        };
        match rejection.operation {
            Some(number) => problem.with("operation", number),
            None => problem,
        }
    }
}

/// Maps invalid commands.
impl From<BadCommand> for Problem {
    fn from(bad: BadCommand) -> Problem {
        let detail = bad.to_string();
        match bad {
            BadCommand::Unknown { path, .. } => {
                Problem::new(Code::UnknownCommand, detail).with("field", path)
            }
            BadCommand::Field(BadField { path, problem: store::Problem::TooLarge { .. } }) => {
                Problem::new(Code::BodyTooLarge, detail).with("field", path)
            }
            BadCommand::Field(BadField { path, .. }) => Problem::field(&path, detail),
        }
    }
}

/// Maps text that is not valid JSON.
impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Problem {
        let detail = error.to_string();
        Problem::new(Code::BadJson, detail).with("line", error.line()).with("column", error.column())
    }
}

/// A credential is missing where one is needed, or it is invalid, revoked or expired.
pub fn unauthorized(detail: impl Into<Cow<'static, str>>) -> Problem {
    let challenge = HeaderValue::from_static("Bearer realm=\"eldest\"");
    Problem::new(Code::Unauthorized, detail).header(WWW_AUTHENTICATE, challenge)
}

/// The path is the caller's text, so it is shortened before it is repeated.
pub fn unknown_route(path: &str) -> Problem {
    const SHOWN: usize = 100;
    let shown: String = path.chars().take(SHOWN).collect();
    Problem::new(Code::NotFound, format!("no route {shown}; GET / lists them"))
}

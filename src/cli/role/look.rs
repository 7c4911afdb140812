//! The output about roles.

use serde_json::Value;

use super::ask::path_of;
use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::output::Output;
use crate::cli::pages::{Listing, Reading, all, cell, with_query};
use crate::cli::table::Table;
use crate::client::{CallError, Problem, Request};

pub fn grant(said: &Value) -> String {
    let holder = cell(&said["leader"]["instance_id"]);
    let (outcome, role) = (cell(&said["outcome"]), cell(&said["role"]));
    format!("{outcome}: {holder} holds {role} with token {} for {} ms", said["token"], said["expires_in_ms"])
}

pub async fn check(
    role: &str,
    token: u64,
    reading: &Reading,
    output: &Output,
    target: &Target,
) -> Result<(), Failure> {
    let path = format!("{}/check?token={token}", path_of(role));
    let said = target.ask(&Request::get(with_query(&path, &[reading.parameter()]))).await?;
    if said["valid"] == true {
        return output.done(&said, || "valid".to_string());
    }
    let newest = match said["token"].as_u64() {
        Some(newest) => format!("the role's token is {newest}"),
        None => "the role has no holder".to_string(),
    };
    Err(lost(format!("{token} is not valid: {newest}")))
}

/// The error of a lost lease, as the cluster would write it.
pub fn lost(detail: String) -> Failure {
    let problem = Problem { status: 410, code: "lease_lost".to_string(), detail, ..Problem::default() };
    CallError::Refused(Box::new(problem)).into()
}

pub async fn list(
    prefix: Option<&str>,
    listing: &Listing,
    output: &Output,
    target: &Target,
) -> Result<(), Failure> {
    output.list(all(target, "/v1/roles", &[("prefix", prefix)], listing).await?, table)
}

/// Prints a role. The cluster knows every name, but a script wants to know whether the role is held.
pub fn show(role: &Value, output: &Output) -> Result<(), Failure> {
    output.show(role, whole)?;
    match role["leader"].is_null() {
        true => Err(Failure::NotHeld { role: cell(&role["role"]) }),
        false => Ok(()),
    }
}

fn whole(role: &Value) -> String {
    let leader = &role["leader"];
    let mut table = Table::default();
    table.row(["role".to_string(), cell(&role["role"])]);
    let holder = if leader.is_null() { "nobody".to_string() } else { cell(&leader["instance_id"]) };
    table.row(["holder".to_string(), holder]);
    let of_holder = ["address", "metadata"].map(|name| (name, &leader[name]));
    let of_role =
        ["token", "acquired_at", "ttl_ms", "expires_in_ms", "waiting"].map(|name| (name, &role[name]));
    for (name, value) in of_holder.into_iter().chain(of_role).filter(|(_, value)| !value.is_null()) {
        table.row([name.to_string(), cell(value)]);
    }
    table.to_string()
}

fn table(items: &[Value]) -> String {
    if items.is_empty() {
        return "no roles".to_string();
    }
    let mut table = Table::new(["ROLE", "HOLDER", "ADDRESS", "TOKEN", "EXPIRES IN MS", "WAITING"]);
    for item in items {
        let leader = &item["leader"];
        let holder = [&item["role"], &leader["instance_id"], &leader["address"]];
        let rest = [&item["token"], &item["expires_in_ms"], &item["waiting"]];
        let [a, b, c] = holder.map(cell);
        let [d, e, f] = rest.map(cell);
        table.row([a, b, c, d, e, f]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_a_row_for_each() {
        assert_eq!(table(&[]), "no roles");
        let leader = json!({"instance_id": "a", "address": null, "metadata": 1});
        let items = [json!({"role": "r", "leader": leader, "token": 7, "expires_in_ms": 9, "waiting": 0})];
        let expected = "\
ROLE  HOLDER  ADDRESS  TOKEN  EXPIRES IN MS  WAITING
r     a                7      9              0
";
        assert_eq!(table(&items), expected);
    }

    #[test]
    fn a_free_role_is_nobodys() {
        let shown = whole(&json!({"role": "r", "leader": null, "waiting": 2}));
        assert!(shown.contains("holder   nobody\n") && shown.contains("waiting  2\n"), "{shown}");
    }

    #[test]
    fn what_is_lost_ends_like_a_refusal() {
        let failure = lost("7 is not valid: the role has no holder".to_string());
        assert_eq!(failure.code(), 7);
        assert_eq!(failure.to_string(), "refused: 7 is not valid: the role has no holder (lease_lost, 410)");
    }
}

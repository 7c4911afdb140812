//! `eldest proc`: the processes that are registered, as long as they send heartbeats.

use clap::{Parser, Subcommand};
use serde_json::{Map, Value, json};

use super::client::{Target, json_text};
use super::exit::Failure;
use super::out::columns;
use super::output::Output;
use super::pages::{Listing, Reading, all, cell};
use super::span::Ttl;
use super::table::Table;
use crate::client::{Method, Request, encoded};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest proc register w7 renderer --role slave --capabilities '[\"render\"]'
  eldest proc heartbeat w7
  eldest proc list --role slave --capability render
  eldest proc show w7 --json
  eldest proc remove w7

A process that sends no heartbeat for its ttl is removed.")]
pub struct ProcArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Register a process
    #[command(
        after_help = "Example:\n  eldest proc register w7 renderer --role slave --capabilities '[\"render\"]' --ttl 10s"
    )]
    Register {
        /// Id of this run of the process
        id: String,
        /// Its own name
        identifier: String,
        /// Its role
        #[arg(long)]
        role: Option<String>,
        /// Its capabilities, as JSON
        #[arg(long, value_parser = json_text)]
        capabilities: Option<Value>,
        /// Metadata for others, as JSON
        #[arg(long, value_parser = json_text)]
        metadata: Option<Value>,
        #[command(flatten)]
        ttl: Ttl,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Send a heartbeat
    #[command(after_help = "Example:\n  eldest proc heartbeat w7")]
    Heartbeat {
        id: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// List registered processes, ordered by id
    #[command(after_help = "Example:\n  eldest proc list --role slave --capability render")]
    #[command(alias = "ls")]
    List {
        #[arg(long)]
        role: Option<String>,
        /// Show only processes with this string in their list of capabilities, or with this member
        #[arg(long)]
        capability: Option<String>,
        #[arg(long)]
        identifier: Option<String>,
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one process in full
    #[command(after_help = "Example:\n  eldest proc show w7 --json")]
    Show {
        id: String,
        #[command(flatten)]
        reading: Reading,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Remove a process
    #[command(after_help = "Example:\n  eldest proc remove w7")]
    #[command(aliases = ["rm", "delete"])]
    Remove {
        id: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
}

pub async fn run(args: &ProcArgs) -> Result<(), Failure> {
    match &args.order {
        Order::Register { id, identifier, role, capabilities, metadata, ttl, output, target } => {
            let given = [
                ("role", role.as_ref().map(|role| json!(role))),
                ("capabilities", capabilities.clone()),
                ("metadata", metadata.clone()),
                ("ttl_ms", ttl.millis().map(Value::from)),
            ];
            let request = Request::new(Method::PUT, path_of(id)).body(body(identifier, given));
            output.show(&target.ask(&request).await?, whole)
        }
        Order::Heartbeat { id, output, target } => {
            let said = target.ask(&Request::post(format!("{}/heartbeat", path_of(id)), &json!({}))).await?;
            let left = &said["expires_in_ms"];
            output.done(&said, || {
                format!("{id} is registered; it is removed after {left} ms without another heartbeat")
            })
        }
        Order::List { role, capability, identifier, listing, output, target } => {
            let chosen = [
                ("role", role.as_deref()),
                ("capability", capability.as_deref()),
                ("identifier", identifier.as_deref()),
            ];
            let items = all(target, "/v1/processes", &chosen, listing).await?;
            output.list(items, |items| table(items, columns()))
        }
        Order::Show { id, reading, output, target } => {
            output.show(&target.ask(&Request::get(reading.of(&path_of(id)))).await?, whole)
        }
        Order::Remove { id, output, target } => {
            let said = target.ask(&Request::new(Method::DELETE, path_of(id))).await?;
            output.done(&said, || format!("{id} is removed"))
        }
    }
}

fn path_of(id: &str) -> String {
    format!("/v1/processes/{}", encoded(id))
}

fn body<const N: usize>(identifier: &str, given: [(&str, Option<Value>); N]) -> String {
    let mut body = Map::from_iter([("identifier".to_string(), json!(identifier))]);
    body.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
    Value::Object(body).to_string()
}

fn whole(process: &Value) -> String {
    let mut table = Table::default();
    for name in [
        "id",
        "identifier",
        "role",
        "capabilities",
        "metadata",
        "channel",
        "registered_at",
        "last_seen",
        "ttl_ms",
        "expires_in_ms",
    ] {
        table.row([name.to_string(), cell(&process[name])]);
    }
    table.to_string()
}

fn table(items: &[Value], columns: Option<usize>) -> String {
    if items.is_empty() {
        return "no processes".to_string();
    }
    let headers = ["ID", "IDENTIFIER", "ROLE", "CAPABILITIES", "LAST SEEN", "EXPIRES IN MS"];
    let mut table = Table::new(headers).long(["CAPABILITIES"]);
    for item in items {
        let names = ["id", "identifier", "role", "capabilities", "last_seen", "expires_in_ms"];
        table.row(names.map(|name| cell(&item[name])));
    }
    table.fitted(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_sent() {
        assert_eq!(body("w", [("role", None)]), r#"{"identifier":"w"}"#);
        let said = body("w", [("role", Some(json!("slave"))), ("capabilities", Some(json!(["a"])))]);
        assert_eq!(said, r#"{"capabilities":["a"],"identifier":"w","role":"slave"}"#);
    }

    #[test]
    fn a_table_has_a_row_for_each() {
        assert_eq!(table(&[], None), "no processes");
        let items = [json!({"id": "a", "identifier": "w", "role": null, "capabilities": ["x"]})];
        let expected = "\
ID  IDENTIFIER  ROLE  CAPABILITIES  LAST SEEN  EXPIRES IN MS
a   w                 [\"x\"]
";
        assert_eq!(table(&items, None), expected);
    }
}

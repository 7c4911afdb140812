//! `eldest token`: creates tokens that let clients in, lists them, and revokes them.

use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
use super::out::{columns, note};
use super::output::Output;
use super::pages::{Listing, all, cell};
use super::span::span;
use super::table::Table;
use crate::client::{Method, Request};

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest token create web --grant 'read docs/web/' --grant 'watch docs/web/'
  eldest token create ci --grant 'read,write docs/ci/' --ttl 12h
  eldest token list
  eldest token revoke 00f3a2c41b7d9e58

A grant is a list of verbs (read, write, watch), an area (docs, roles, processes, channels, users, elections, status, or *
for all) and, after a slash, a prefix of names. \"order\" alone allows operator commands, such as these. The token is printed
once: a client sends it with --token-file, ELDEST_TOKEN_FILE or `Authorization: Bearer`.")]
pub struct TokenArgs {
    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Create a token and print it
    #[command(after_help = "\
Examples:
  eldest token create web --grant 'read docs/web/' --grant 'watch docs/web/'
  eldest token create ci --grant 'read,write docs/ci/' --ttl 12h")]
    Create {
        /// Display name
        name: String,
        /// A grant of the token; may be repeated
        #[arg(long = "grant", value_name = "GRANT", required = true)]
        grants: Vec<String>,
        /// Lifetime, such as 90s, 15m, 12h or 30d; without it, until it is revoked
        #[arg(long, value_parser = span)]
        ttl: Option<Duration>,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// List tokens
    #[command(after_help = "Example:\n  eldest token list")]
    #[command(alias = "ls")]
    List {
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Revoke a token, immediately and permanently
    #[command(after_help = "Example:\n  eldest token revoke 00f3a2c41b7d9e58")]
    #[command(aliases = ["rm", "remove", "delete"])]
    Revoke {
        /// Token id, as shown by `list`
        #[arg(value_parser = id)]
        id: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
}

pub async fn run(args: &TokenArgs) -> Result<(), Failure> {
    match &args.change {
        Change::Create { name, grants, ttl, output, target } => {
            let mut body = json!({"name": name, "grants": grants});
            if let Some(ttl) = ttl {
                body["ttl_ms"] = json!(ttl.as_millis() as u64);
            }
            let made = target.ask(&Request::post("/v1/tokens", &body)).await?;
            note(&format!("created token {}; it is shown only once:", cell(&made["id"])));
            output.done(&made, || cell(&made["token"]))
        }
        Change::List { listing, output, target } => {
            let items = all(target, "/v1/tokens", &[], listing).await?;
            output.list(items, |items| table(items, columns()))
        }
        Change::Revoke { id, output, target } => {
            let request = Request::new(Method::DELETE, format!("/v1/tokens/{id}"));
            let said = target.ask(&request).await?;
            output.done(&said, || format!("token {id} is revoked"))
        }
    }
}

fn table(items: &[Value], columns: Option<usize>) -> String {
    let mut table = Table::new(["ID", "NAME", "MADE", "ENDS", "GRANTS"]).long(["GRANTS"]);
    for item in items {
        let ends = if item["ends_at"].is_null() { "-".to_string() } else { cell(&item["ends_at"]) };
        let grants: Vec<String> = item["grants"].as_array().into_iter().flatten().map(cell).collect();
        table.row([cell(&item["id"]), cell(&item["name"]), cell(&item["made_at"]), ends, grants.join("; ")]);
    }
    table.fitted(columns)
}

/// Parses an id. A text that is no id could address another route.
fn id(text: &str) -> Result<String, &'static str> {
    let is_id = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Ok(text.to_string()) } else { Err("an id has 16 hexadecimal digits: see `eldest token list`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_no_other_route() {
        assert!(id("00f3a2c41b7d9e58").is_ok());
        assert!(id("../members").is_err() && id("00f3a2c41b7d9e5").is_err());
    }
}

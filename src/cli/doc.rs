//! `eldest doc`: documents, which are JSON values under keys. A write can require that the document is still as the writer has seen it.

use std::time::Duration;

use clap::{Parser, Subcommand};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
use super::out::columns;
use super::output::Output;
use super::pages::{Listing, Reading, all, cell, with_query};
use super::span::span;
use super::table::Table;
use super::value::ValueArgs;
use crate::client::{DocumentRow, Method, Page, Request, encoded};

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest doc put app/config '{\"replicas\": 3}' --if-absent
  eldest doc get app/config
  eldest doc get app/config --rev | jq -r .rev
  eldest doc put app/config '{\"replicas\": 5}' --if-rev 12
  eldest doc put app/config @config.json
  eldest doc put app/motd --text 'Back at 5.'
  eldest doc put sessions/7 '\"ann\"' --ttl 30s
  eldest doc renew sessions/7
  eldest doc put queue '[]' --if-role broker --role-token 1767323045000000
  eldest doc list --prefix app/
  eldest doc delete app/config

With --if-role, a writer that lost its role (for example while it was suspended) changes nothing.")]
pub struct DocArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Print a document
    #[command(
        after_help = "Examples:\n  eldest doc get app/config\n  eldest doc get app/config --rev --level local"
    )]
    Get {
        key: String,
        /// Also print its key and revision
        #[arg(long)]
        rev: bool,
        #[command(flatten)]
        reading: Reading,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Write a document, and print its revision
    #[command(after_help = "\
Examples:
  eldest doc put app/config '{\"replicas\": 3}' --if-absent
  eldest doc put app/config @config.json
  eldest doc put sessions/7 ann --text --ttl 30s")]
    #[command(alias = "set")]
    Put {
        key: String,
        #[command(flatten)]
        value: ValueArgs,
        /// Require that the document has this revision
        #[arg(long, conflicts_with = "if_absent")]
        if_rev: Option<String>,
        /// Require that the document does not exist
        #[arg(long)]
        if_absent: bool,
        #[command(flatten)]
        holder: Holder,
        #[command(flatten)]
        ends: Ends,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Renew a document with a ttl
    #[command(after_help = "Example:\n  eldest doc renew sessions/7")]
    Renew {
        key: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Delete a document
    #[command(after_help = "Example:\n  eldest doc delete app/config")]
    #[command(aliases = ["rm", "remove"])]
    Delete {
        key: String,
        /// Require that the document has this revision
        #[arg(long)]
        if_rev: Option<String>,
        #[command(flatten)]
        holder: Holder,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// List documents, ordered by key
    #[command(
        after_help = "Examples:\n  eldest doc list --prefix app/\n  eldest doc list --limit 100 --output jsonl"
    )]
    #[command(alias = "ls")]
    List {
        /// Show only keys with this prefix
        #[arg(long)]
        prefix: Option<String>,
        #[command(flatten)]
        listing: Listing,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
}

/// The role that a write depends on.
#[derive(Debug, Default, clap::Args)]
struct Holder {
    /// Require that this role is held under the given token
    #[arg(long, value_name = "ROLE", requires = "role_token")]
    if_role: Option<String>,
    /// The token that `role acquire` printed
    #[arg(long, value_name = "TOKEN", requires = "if_role")]
    role_token: Option<u64>,
}

impl Holder {
    /// The options as members of a payload, each with a comma before it.
    fn members(&self) -> String {
        let mut out = String::new();
        out.extend(self.if_role.as_ref().map(|role| format!(",\"if_role\":{}", json!(role))));
        out.extend(self.role_token.map(|token| format!(",\"role_token\":{token}")));
        out
    }
}

/// When a document expires.
#[derive(Debug, Default, clap::Args)]
struct Ends {
    /// Expire when not written or renewed for this long, such as 30s
    #[arg(long, value_name = "SPAN", value_parser = span)]
    ttl: Option<Duration>,
    /// Expire with this lease: role/NAME or process/ID
    #[arg(long, value_name = "LEASE")]
    with: Option<String>,
    /// The token of that lease; required for a role
    #[arg(long, requires = "with")]
    lease_token: Option<u64>,
    /// The secret of that lease, if it has one; prefer the environment variable, which `ps` does not show
    #[arg(long, env = "ELDEST_LEASE_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

impl Ends {
    /// The options as members of a payload, each with a comma before it.
    fn members(&self) -> String {
        let mut out = String::new();
        out.extend(self.ttl.map(|ttl| format!(",\"ttl_ms\":{}", ttl.as_millis())));
        out.extend(self.with.as_ref().map(|with| format!(",\"with\":{}", json!(with))));
        out.extend(self.lease_token.map(|token| format!(",\"token\":{token}")));
        // The environment may have a secret that is meant for other documents.
        let secret = self.secret.as_ref().filter(|_| self.with.is_some());
        out.extend(secret.map(|secret| format!(",\"secret\":{}", json!(secret))));
        out
    }
}

pub async fn run(args: &DocArgs) -> Result<(), Failure> {
    match &args.order {
        Order::Get { key, rev, reading, output, target } => {
            let shown =
                if *rev { with_rev(target, key, reading).await } else { value(target, key, reading).await };
            output.text(&shown?)
        }
        Order::Put { key, value, if_rev, if_absent, holder, ends, output, target } => {
            let value = value.read()?;
            let members = holder.members() + &ends.members();
            let done = put(target, key, &value, if_rev.as_deref(), *if_absent, &members).await?;
            output.show(&done, Value::to_string)
        }
        Order::Renew { key, output, target } => {
            let path = format!("/v1/docs/{}?renew", encoded(key));
            output.show(&target.ask(&Request::new(Method::POST, path)).await?, Value::to_string)
        }
        Order::Delete { key, if_rev, holder, output, target } => {
            let body = delete_body(key, if_rev.as_deref(), holder);
            let request = Request::new(Method::POST, "/v1/commands").body(body);
            output.show(&target.ask(&request).await?["result"], Value::to_string)
        }
        Order::List { prefix, listing, output, target } => {
            let items = all(target, "/v1/docs", &[("prefix", prefix.as_deref())], listing).await?;
            output.texts(&items, |items| table(items, columns()))
        }
    }
}

/// The value as it is stored, to the last digit.
async fn value(target: &Target, key: &str, reading: &Reading) -> Result<Box<RawValue>, Failure> {
    let request = Request::get(reading.of(&format!("/v1/docs/{}", encoded(key))));
    Ok(target.call(&request).await?.taken()?.read()?)
}

/// The document with its revision. The nodes are asked for a list that begins with this key, which has the document first
/// if it exists. If it does not, the document itself is asked for, to get the refusal.
async fn with_rev(target: &Target, key: &str, reading: &Reading) -> Result<Box<RawValue>, Failure> {
    let path = with_query("/v1/docs?limit=1", &[("prefix", Some(key)), reading.parameter()]);
    let page: Page<Box<RawValue>> = target.call(&Request::get(path)).await?.taken()?.read()?;
    match page.items.into_iter().next().filter(|item| row(item).is_some_and(|row| row.key == key)) {
        Some(item) => Ok(item),
        None => value(target, key, reading).await,
    }
}

/// The value is sent as it was typed: numbers keep all their digits.
async fn put(
    target: &Target,
    key: &str,
    value: &str,
    if_rev: Option<&str>,
    if_absent: bool,
    members: &str,
) -> Result<Value, Failure> {
    let body = put_body(key, value, if_rev, if_absent, members);
    let request = Request::new(Method::POST, "/v1/commands").body(body);
    Ok(target.ask(&request).await?["result"].take())
}

fn put_body(key: &str, value: &str, if_rev: Option<&str>, if_absent: bool, members: &str) -> String {
    let mut condition = String::new();
    condition.extend(if_rev.map(|rev| format!(",\"if_rev\":{}", json!(rev))));
    condition.push_str(if if_absent { ",\"if_absent\":true" } else { "" });
    let payload = format!("{{\"key\":{},\"value\":{value}{condition}{members}}}", json!(key));
    format!("{{\"storage_cmd\":\"PutDoc\",\"payload\":{payload}}}")
}

fn delete_body(key: &str, if_rev: Option<&str>, holder: &Holder) -> String {
    let condition = if_rev.map(|rev| format!(",\"if_rev\":{}", json!(rev))).unwrap_or_default();
    let payload = format!("{{\"key\":{}{condition}{}}}", json!(key), holder.members());
    format!("{{\"storage_cmd\":\"DeleteDoc\",\"payload\":{payload}}}")
}

fn row(item: &RawValue) -> Option<DocumentRow> {
    serde_json::from_str(item.get()).ok()
}

fn table(items: &[Box<RawValue>], columns: Option<usize>) -> String {
    if items.is_empty() {
        return "no documents".to_string();
    }
    let mut table = Table::new(["KEY", "REV", "VALUE"]).long(["VALUE"]);
    for DocumentRow { key, rev, value } in items.iter().filter_map(|item| row(item)) {
        table.row([key, cell(&rev), value.get().to_string()]);
    }
    table.fitted(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_sent_as_it_was_typed() {
        let sent = put_body("a\"b", "1.50", None, false, "");
        assert_eq!(sent, r#"{"storage_cmd":"PutDoc","payload":{"key":"a\"b","value":1.50}}"#);
        assert!(put_body("k", "1", Some("7.1@12"), false, "").ends_with(",\"if_rev\":\"7.1@12\"}}"));
        assert!(
            put_body("k", "1", None, true, ",\"ttl_ms\":1").ends_with(",\"if_absent\":true,\"ttl_ms\":1}}")
        );
        let mut ends = Ends {
            ttl: Some(Duration::from_secs(30)),
            with: Some("role/x".into()),
            lease_token: Some(7),
            secret: Some("s\"".into()),
        };
        let all = ",\"ttl_ms\":30000,\"with\":\"role/x\",\"token\":7,\"secret\":\"s\\\"\"";
        assert_eq!(ends.members(), all);
        (ends.with, ends.lease_token) = (None, None);
        assert_eq!(ends.members(), ",\"ttl_ms\":30000");
        let holder = Holder { if_role: Some("a\"b".into()), role_token: Some(7) };
        let sent = delete_body("k", Some("12"), &holder);
        let payload = r#"{"key":"k","if_rev":"12","if_role":"a\"b","role_token":7}"#;
        assert_eq!(sent, format!("{{\"storage_cmd\":\"DeleteDoc\",\"payload\":{payload}}}"));
    }

    #[test]
    fn a_table_is_as_wide_as_a_terminal() {
        assert_eq!(table(&[], None), "no documents");
        let row = |row: Value| RawValue::from_string(row.to_string()).expect("JSON");
        let items = [row(json!({"key": "k", "rev": "12", "value": "é".repeat(100)}))];
        assert!(table(&items, None).ends_with(&format!("\"{}\"\n", "é".repeat(100))));
        let shown = table(&items, Some(80));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.starts_with("KEY  REV  VALUE\nk    12   \"éé") && shown.ends_with("é…\n"), "{shown}");
    }
}

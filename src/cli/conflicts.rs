//! `eldest conflicts`: the values that merges overrode. A person looks at them one by one, and restores or drops each.

mod list;
mod view;

use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
use super::output::Output;
use crate::client::{Request, encoded};
use view::Conflict;

/// A batch takes 1,024 commands and 4 MiB. An id has at most 2 KiB.
const AT_ONCE: usize = 1000;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest conflicts list --kind doc --prefix app/
  eldest conflicts show doc:app/config:8.2@41
  eldest conflicts apply doc:app/config:8.2@41
  eldest conflicts drop doc:app/config:8.2@41
  eldest conflicts drop --all --kind doc --prefix app/

In available mode, two sides of a split may change the same key. When they merge, one of the two values is kept, and the
other stays in this list until it is applied or dropped.")]
pub struct ConflictsArgs {
    #[command(subcommand)]
    order: Order,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// List conflicts, ordered by id
    #[command(after_help = "Example:\n  eldest conflicts list --kind doc --prefix app/")]
    #[command(alias = "ls")]
    List(list::ConflictListArgs),
    /// Show one conflict in full
    #[command(after_help = "Example:\n  eldest conflicts show doc:app/config:8.2@41")]
    Show {
        /// Conflict id, as shown by `list`
        id: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Restore the value that lost, in place of the current one
    #[command(after_help = "Example:\n  eldest conflicts apply doc:app/config:8.2@41")]
    Apply {
        /// Conflict id, as shown by `list`
        id: String,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Delete one or more values that lost
    #[command(
        after_help = "Examples:\n  eldest conflicts drop doc:app/config:8.2@41\n  eldest conflicts drop --all --kind doc --prefix app/"
    )]
    Drop {
        /// Conflict id, as shown by `list`
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Drop all conflicts; the current values stay
        #[arg(long)]
        all: bool,
        /// With --all, only this kind: doc, user, election or vote
        #[arg(long, requires = "all")]
        kind: Option<String>,
        /// With --kind, only keys and names with this prefix
        #[arg(long, requires = "kind")]
        prefix: Option<String>,
        #[command(flatten)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
}

pub async fn run(args: &ConflictsArgs) -> Result<(), Failure> {
    match &args.order {
        Order::List(args) => list::run(args).await,
        Order::Show { id, output, target } => {
            let conflict = target.ask(&Request::get(path_of(id))).await?;
            output.show(&conflict, |conflict| Conflict::read(conflict).whole())
        }
        Order::Apply { id, output, target } => {
            let said = order(id, "apply", target).await?;
            output.done(&said, || "the value is restored, and the conflict is removed".to_string())
        }
        Order::Drop { id: Some(id), output, target, .. } => {
            let said = order(id, "drop", target).await?;
            output.done(&said, || "the conflict is removed; the current value stays".to_string())
        }
        Order::Drop { kind, prefix, output, target, .. } => {
            let gone = drop_all(kind.as_deref(), prefix.as_deref(), target).await?;
            let said = json!({ "dropped": gone });
            output.done(&said, || format!("{gone} conflicts are removed; the current values stay"))
        }
    }
}

async fn order(id: &str, what: &str, target: &Target) -> Result<Value, Failure> {
    target.ask(&Request::post(format!("{}/{what}", path_of(id)), &json!({}))).await
}

fn path_of(id: &str) -> String {
    format!("/v1/conflicts/{}", encoded(id))
}

/// Drops page after page, each as one batch, until there are no more. Returns how many conflicts were dropped.
async fn drop_all(kind: Option<&str>, prefix: Option<&str>, target: &Target) -> Result<usize, Failure> {
    let mut gone = 0;
    loop {
        let page = target.ask(&Request::get(page_path(kind, prefix))).await?;
        let batch = batch(&page);
        if batch.is_empty() {
            return Ok(gone);
        }
        target.ask(&Request::post("/v1/commands".to_string(), &json!(batch))).await?;
        gone += batch.len();
    }
}

fn page_path(kind: Option<&str>, prefix: Option<&str>) -> String {
    let mut path = format!("/v1/conflicts?limit={AT_ONCE}");
    for (name, value) in [("kind", kind), ("prefix", prefix)] {
        path.extend(value.map(|value| format!("&{name}={}", encoded(value))));
    }
    path
}

fn batch(page: &Value) -> Vec<Value> {
    let ids = page["items"].as_array().into_iter().flatten().map(|item| &item["id"]);
    ids.map(|id| json!({"storage_cmd": "DropConflict", "payload": {"id": id}})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_segment_of_the_path() {
        assert_eq!(path_of("doc a/b é@1"), "/v1/conflicts/doc%20a%2Fb%20%C3%A9%401");
        assert_eq!(path_of("a/../b?x#y%z"), "/v1/conflicts/a%2F..%2Fb%3Fx%23y%25z");
    }

    #[test]
    fn a_page_is_dropped_as_one_batch() {
        let page =
            json!({"items": [{"id": "doc:a:1.1@2", "kind": "doc"}, {"id": "doc:b:1.1@3"}], "next": null});
        let drop = |id: &str| json!({"storage_cmd": "DropConflict", "payload": {"id": id}});
        assert_eq!(batch(&page), [drop("doc:a:1.1@2"), drop("doc:b:1.1@3")]);
        assert_eq!(batch(&json!({"items": []})), [] as [Value; 0]);
        assert_eq!(page_path(Some("doc"), Some("a/")), "/v1/conflicts?limit=1000&kind=doc&prefix=a%2F");
    }
}

//! `eldest conflicts list`: reads page after page, until there are no more.

use clap::Parser;
use serde_json::Value;

use super::view::Conflict;
use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::client::{Request, encoded};

/// The largest page that a node returns.
const PAGE: usize = 1000;

#[derive(Debug, Parser)]
pub struct ConflictListArgs {
    /// Show only this kind: doc, user, election or vote
    #[arg(long)]
    kind: Option<String>,
    /// Show only keys and names with this prefix; for votes, the name of the election
    #[arg(long, requires = "kind")]
    prefix: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &ConflictListArgs) -> Result<(), Failure> {
    args.output.list(gather(args).await?, table)
}

async fn gather(args: &ConflictListArgs) -> Result<Vec<Value>, Failure> {
    let mut items = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = args.target.ask(&Request::get(path(args, after.as_deref()))).await?;
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        let next = page["next"].as_str().map(str::to_string);
        // A node that returns the same position twice would make this loop endless.
        if next.is_none() || next == after {
            return Ok(items);
        }
        after = next;
    }
}

fn path(args: &ConflictListArgs, after: Option<&str>) -> String {
    let mut path = format!("/v1/conflicts?limit={PAGE}");
    let given = [("kind", args.kind.as_deref()), ("prefix", args.prefix.as_deref()), ("after", after)];
    for (name, value) in given {
        path.extend(value.map(|value| format!("&{name}={}", encoded(value))));
    }
    path
}

fn table(items: &[Value]) -> String {
    if items.is_empty() {
        return "no conflicts".to_string();
    }
    let mut table = Table::new(["KIND", "KEY", "LOST", "KEPT", "SIDES", "WHEN", "ID"]);
    items.iter().for_each(|item| table.row(Conflict::read(item).row()));
    let plural = if items.len() == 1 { "" } else { "s" };
    format!("{table}{} conflict{plural}\n", items.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: ConflictListArgs,
    }

    fn typed(line: &str) -> ConflictListArgs {
        Typed::try_parse_from(line.split(' ')).expect("understood").args
    }

    #[test]
    fn what_is_asked_for() {
        assert_eq!(path(&typed("list"), None), "/v1/conflicts?limit=1000");
        let args = typed("list --kind doc --prefix a/&b");
        assert_eq!(path(&args, Some("x y")), "/v1/conflicts?limit=1000&kind=doc&prefix=a%2F%26b&after=x%20y");
    }

    #[test]
    fn a_table_says_how_many() {
        assert_eq!(table(&[]), "no conflicts");
        let one = json!({ "id": "i", "kind": "user", "key": "ann", "lost": { "value": 1 }, "kept": { "value": 2 } });
        let expected = "\
KIND  KEY  LOST  KEPT  SIDES  WHEN  ID
user  ann  1     2                  i
1 conflict
";
        assert_eq!(table(&[one]), expected);
    }
}

//! `eldest conflicts list`.

use clap::Parser;
use serde_json::Value;

use super::view::Conflict;
use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::cli::out::columns;
use crate::cli::output::Output;
use crate::cli::pages::{Listing, all};
use crate::cli::table::Table;

#[derive(Debug, Parser)]
pub struct ConflictListArgs {
    /// Show only this kind: doc, user, election or vote
    #[arg(long)]
    kind: Option<String>,
    /// Show only keys and names with this prefix; for votes, the name of the election
    #[arg(long, requires = "kind")]
    prefix: Option<String>,
    #[command(flatten)]
    listing: Listing,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

pub async fn run(args: &ConflictListArgs) -> Result<(), Failure> {
    let chosen = [("kind", args.kind.as_deref()), ("prefix", args.prefix.as_deref())];
    let items = all(&args.target, "/v1/conflicts", &chosen, &args.listing).await?;
    args.output.list(items, |items| table(items, columns()))
}

fn table(items: &[Value], columns: Option<usize>) -> String {
    if items.is_empty() {
        return "no conflicts".to_string();
    }
    let headers = ["KIND", "KEY", "LOST", "KEPT", "SIDES", "WHEN", "ID"];
    let mut table = Table::new(headers).long(["LOST", "KEPT"]);
    items.iter().for_each(|item| table.row(Conflict::read(item).row()));
    let plural = if items.len() == 1 { "" } else { "s" };
    format!("{}{} conflict{plural}\n", table.fitted(columns), items.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_says_how_many() {
        assert_eq!(table(&[], None), "no conflicts");
        let one = json!({ "id": "i", "kind": "user", "key": "ann", "lost": { "value": 1 }, "kept": { "value": 2 } });
        let expected = "\
KIND  KEY  LOST  KEPT  SIDES  WHEN  ID
user  ann  1     2                  i
1 conflict
";
        assert_eq!(table(&[one], None), expected);
    }
}

//! Printing the records.

use clap::Parser;

use super::Directory;
use super::line::{long_form, seed_form};
use crate::cli::exit::Failure;
use crate::cli::out::{Out, note};
use crate::storage::{LogItem, read_dir};
use crate::types::Index;

pub const EXAMPLE: &str = "\
Example:
  eldest log cat /var/lib/eldest | grep '^4|'

With --long each line is: position (epoch@index), time, idempotency key as a hash or -, and type|JSON.";

#[derive(Debug, Parser)]
pub struct Args {
    #[command(flatten)]
    directory: Directory,
    /// The first index to print
    #[arg(long, default_value_t = 0)]
    from: Index,
    /// The last index to print
    #[arg(long, default_value_t = Index::MAX)]
    to: Index,
    /// Print position, time and key too
    #[arg(long)]
    long: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut out = Out::new();
    let mut outcome = Ok(());
    let read = read_dir(args.directory.existing()?, |item| match item {
        // After a failure the rest is only read past.
        LogItem::Record { record, line }
            if outcome.is_ok() && (args.from..=args.to).contains(&record.index()) =>
        {
            outcome = match args.long {
                true => out.line(long_form(&record, line)),
                false => out.line(seed_form(line)),
            };
        }
        LogItem::Bad(bad) => {
            note(&format!("not readable: {bad}; `eldest log verify` says whether that is damage"))
        }
        _ => {}
    });
    outcome?;
    read?;
    out.end()
}

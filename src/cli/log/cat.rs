//! Prints the records of a log.

use clap::Parser;

use super::line::LogDirectory;
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
pub struct LogCatArgs {
    #[command(flatten)]
    directory: LogDirectory,
    /// The first index to print
    #[arg(long, default_value_t = 0)]
    from: Index,
    /// The last index to print
    #[arg(long, default_value_t = Index::MAX)]
    to: Index,
    /// Also print position, time and key
    #[arg(long)]
    long: bool,
}

pub fn run(args: &LogCatArgs) -> Result<(), Failure> {
    let directory = args.directory.existing()?;
    let mut out = Out::new();
    let (mut outcome, mut found) = (Ok(()), false);
    let read = read_dir(directory, |item| match item {
        LogItem::Start { .. } | LogItem::Segment { .. } => found = true,
        // After a failure the rest is read without printing it.
        LogItem::Record { record, line }
            if outcome.is_ok() && (args.from..=args.to).contains(&record.index()) =>
        {
            outcome = match args.long {
                true => out.line(long_form(&record, line)),
                false => out.line(seed_form(line)),
            };
        }
        LogItem::Bad(bad) => {
            found = true;
            note(&format!("unreadable: {bad}; `eldest log verify` tells whether it is damage"))
        }
        _ => {}
    });
    outcome?;
    read?;
    out.end()?;
    if found { Ok(()) } else { Err(Failure::NothingThere { path: directory.to_path_buf(), what: "log" }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_log_is_not_an_empty_log() {
        let directory = std::env::temp_dir().join(format!("eldest-no-log-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a folder");
        let args = LogCatArgs::try_parse_from(["cat".as_ref(), directory.as_os_str()]).expect("understood");
        let failure = run(&args).expect_err("nothing there");
        assert_eq!(failure.to_string(), format!("{} holds no log", directory.display()));
        std::fs::remove_dir(&directory).expect("removed");
        assert_eq!(run(&args).map_err(|failure| failure.code()), Err(1));
    }
}

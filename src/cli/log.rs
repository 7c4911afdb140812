//! `eldest log`: a node's log for people and scripts, also while the node runs.

mod cat;
mod line;
mod verify;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use super::exit::Failure;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest log cat /var/lib/eldest | grep '^1|'
  eldest log cat /var/lib/eldest --from 100 --to 120 --long
  eldest log verify /var/lib/eldest")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the records, `type|JSON` each
    #[command(after_help = cat::EXAMPLE)]
    Cat(cat::Args),
    /// Check every line of every segment; ends with 5 if something is damaged
    #[command(after_help = verify::EXAMPLE)]
    Verify(verify::Args),
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Cat(args) => cat::run(args),
        Action::Verify(args) => verify::run(args),
    }
}

#[derive(Clone, Debug, clap::Args)]
struct Directory {
    /// The node's data directory, or the log directory in it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Directory {
    /// A directory that is not there holds no log, which is not the same as an empty one.
    fn existing(&self) -> Result<&Path, Failure> {
        match std::fs::metadata(&self.directory) {
            Ok(found) if found.is_dir() => Ok(&self.directory),
            Ok(_) => Err(Failure::file(&self.directory)(std::io::ErrorKind::NotADirectory.into())),
            Err(error) => Err(Failure::file(&self.directory)(error)),
        }
    }
}

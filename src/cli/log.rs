//! `eldest log`: a node's log for people and scripts, also while the node runs.

mod cat;
mod line;
mod verify;

use clap::{Parser, Subcommand};

use super::exit::Failure;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest log cat /var/lib/eldest | grep '^1|'
  eldest log cat /var/lib/eldest --from 100 --to 120 --long
  eldest log verify /var/lib/eldest")]
pub struct LogArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the records, `type|JSON` each
    #[command(after_help = cat::EXAMPLE)]
    Cat(cat::LogCatArgs),
    /// Check every line of every segment; exits with 5 if something is damaged
    #[command(after_help = verify::EXAMPLE)]
    Verify(verify::LogVerifyArgs),
}

pub fn run(args: &LogArgs) -> Result<(), Failure> {
    match &args.action {
        Action::Cat(args) => cat::run(args),
        Action::Verify(args) => verify::run(args),
    }
}

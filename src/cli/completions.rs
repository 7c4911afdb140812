//! `eldest completions`: prints the completion script of a shell.

use clap::{Command, Parser};
use clap_complete::{Shell, generate};

use super::exit::Failure;
use super::out::print;

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest completions bash
  eldest completions zsh
  eldest completions fish")]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, "eldest", &mut text);
    print(&String::from_utf8_lossy(&text))
}

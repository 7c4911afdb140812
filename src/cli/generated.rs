//! `eldest completions` and `eldest man`: what is made from the definitions of the commands, for shells and for readers.

use std::fs;
use std::path::PathBuf;

use clap::{Command, Parser};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

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

pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, "eldest", &mut text);
    print(&String::from_utf8_lossy(&text))
}

#[derive(Debug, Parser)]
#[command(after_help = "\
Example:
  eldest man /usr/local/share/man/man1")]
pub struct ManArgs {
    /// The folder to write to; it is created if it does not exist
    dir: PathBuf,
}

pub fn man(args: &ManArgs, mut command: Command) -> Result<(), Failure> {
    command.build();
    fs::create_dir_all(&args.dir).map_err(Failure::file(&args.dir))?;
    let mut written = 0;
    for page in std::iter::once(&command).chain(command.get_subcommands()) {
        if page.get_name() == "help" {
            continue;
        }
        let name = match page.get_name() {
            "eldest" => "eldest".to_string(),
            name => format!("eldest-{name}"),
        };
        let path = args.dir.join(format!("{name}.1"));
        let mut text = Vec::new();
        let page = page.clone().display_name(name);
        Man::new(page).render(&mut text).map_err(Failure::file(&path))?;
        fs::write(&path, text).map_err(Failure::file(&path))?;
        written += 1;
    }
    print(&format!("{written} pages in {}", args.dir.display()))
}

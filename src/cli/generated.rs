//! `eldest completions` and `eldest man`: what is made from the definitions of the commands, for shells and for readers.

use std::fs;
use std::path::PathBuf;

use clap::{Command, Parser};
use clap_complete::{Shell, generate};
use serde_json::json;

use super::exit::Failure;
use super::manual::pages;
use super::out::print;
use super::output::Output;

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
  eldest man /usr/local/share/man/man1
  eldest man ./man && man -l ./man/eldest-doc-put.1

Each command has a page, at any depth: eldest-doc.1, eldest-doc-put.1. Pages of an earlier version stay in the folder.")]
pub struct ManArgs {
    /// The folder to write to; it is created if it does not exist
    dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let ManArgs { dir, output } = args;
    let pages = pages(command).map_err(Failure::file(dir))?;
    fs::create_dir_all(dir).map_err(Failure::file(dir))?;
    for page in &pages {
        let path = dir.join(format!("{}.1", page.name));
        fs::write(&path, &page.text).map_err(Failure::file(&path))?;
    }
    let done = json!({"pages": pages.len(), "folder": dir.display().to_string()});
    output.done(&done, || format!("{} pages in {}", pages.len(), dir.display()))
}

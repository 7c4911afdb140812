//! A script on paper: the claim, then commands with the lines that each of them must show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::commands::Play;

enum Item {
    /// A comment or an empty line.
    Prose(String),
    Command {
        line: usize,
        text: String,
        expected: Vec<String>,
    },
}

/// A script as it ran, and the places where the run differs from the file.
pub struct Played {
    text: String,
    wrong: Vec<String>,
}

/// Plays a script and compares it, or with `UPDATE_GOLDEN=1` writes down what it shows.
pub fn check(name: &str) {
    let Played { text, wrong } = play(name);
    match std::env::var_os("UPDATE_GOLDEN") {
        Some(_) => std::fs::write(path(name), text).expect("a script to write"),
        None => assert!(wrong.is_empty(), "\n{}", wrong.join("\n")),
    }
}

/// Plays a script to its end; panics where it cannot continue or an `expect` does not hold.
pub fn play(name: &str) -> Played {
    let text = std::fs::read_to_string(path(name)).expect("a script");
    let mut played = Played { text: String::new(), wrong: Vec::new() };
    let mut play = Play::default();
    for item in parse(&text) {
        match item {
            Item::Prose(line) => add(&mut played.text, &line),
            Item::Command { line, text, expected } => {
                add(&mut played.text, &format!("> {text}"));
                let shown =
                    play.command(&text).unwrap_or_else(|error| panic!("{name}.txt:{line}: {text}: {error}"));
                shown.iter().for_each(|line| add(&mut played.text, line));
                if shown != expected {
                    let told = difference(name, line, &text, &expected, &shown);
                    played.wrong.push(told);
                }
            }
        }
    }
    played
}

fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.txt"))
}

/// The names of all scripts.
pub fn names() -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).expect("the folder of scripts");
    let paths = files.map(|file| file.expect("a file").path());
    let stems = paths.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    stems.collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/scripts")
}

/// Prints the line as well, so that a script that breaks off shows how far it came.
fn add(text: &mut String, line: &str) {
    println!("{line}");
    text.push_str(line);
    text.push('\n');
}

/// The first line is the claim and must be there; `>` begins a command, `#` a comment. The lines after a
/// command, up to an empty line, a comment or the next command, are what it must show.
fn parse(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match line.strip_prefix("> ") {
            Some(command) => {
                items.push(Item::Command { line: number, text: command.to_string(), expected: Vec::new() })
            }
            None if line.is_empty() || line.starts_with('#') => {
                items.push(Item::Prose(line.to_string()));
            }
            None => match items.last_mut() {
                Some(Item::Command { expected, .. }) => expected.push(line.to_string()),
                _ => panic!("line {number} is neither command nor comment nor expected: {line}"),
            },
        }
    }
    let claim = matches!(items.first(), Some(Item::Prose(line)) if line.starts_with("# "));
    assert!(claim, "the first line of a script is its claim");
    items
}

fn difference(name: &str, line: usize, text: &str, expected: &[String], shown: &[String]) -> String {
    let mut told = format!("{name}.txt:{line}: > {text}\n");
    for line in expected.iter().filter(|line| !shown.contains(line)) {
        told += &format!("  expected {line}\n");
    }
    for line in shown.iter().filter(|line| !expected.contains(line)) {
        told += &format!("  but saw  {line}\n");
    }
    told
}

//! Every command in the README and the docs is run, and what is printed there is compared.
//!
//! A block fenced as `console` holds commands, each behind `$ `, and under each what it prints. A line that
//! is only `…` stands for any number of lines, one that ends in it for its beginning. `scripts/check` is left out: it is
//! what runs this.

use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Default, PartialEq, Eq)]
struct Example {
    command: String,
    output: Vec<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => {
                    examples.push(Example { command: command.to_string(), output: Vec::new() })
                }
                (None, Some(example)) => example.output.push(line.to_string()),
                (None, None) => {}
            },
            _ => {}
        }
    }
    examples
}

/// Whether `printed` is what `shown` says, with `…` for any number of lines.
fn agrees(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => (0..=printed.len()).any(|skip| agrees(rest, &printed[skip..])),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| is_line(line, first) && agrees(rest, others))
        }
    }
}

fn is_line(shown: &str, printed: &str) -> bool {
    match shown.strip_suffix('…') {
        Some(beginning) => printed.starts_with(beginning),
        None => printed.trim_end() == shown,
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn run(example: &Example) -> Result<(), String> {
    let output = Command::new("bash")
        .args(["-c", &example.command])
        .current_dir(root())
        .output()
        .map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    match output.status.success() && agrees(&example.output, &lines) {
        true => Ok(()),
        false => Err(format!(
            "$ {}\n{}\nit printed:\n{printed}{}",
            example.command,
            example.output.join("\n"),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    let docs = std::fs::read_dir(root().join("docs")).into_iter().flatten().flatten();
    let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    documents.extend(docs.map(|entry| entry.path()).filter(is_text));
    documents
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_command_does_what_the_docs_say() {
    let mut failures = Vec::new();
    let mut count = 0;
    for document in documents() {
        for example in examples(&read(&document)) {
            if example.command == "scripts/check" {
                continue;
            }
            count += 1;
            if let Err(failure) = run(&example) {
                failures.push(format!("{}: {failure}", document.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(count > 0, "the docs show no command");
}

#[test]
fn an_ellipsis_stands_for_any_lines() {
    let shown: Vec<String> = ["a", "…", "z"].map(String::from).to_vec();
    assert!(agrees(&shown, &["a", "b", "c", "z"]));
    assert!(agrees(&shown, &["a", "z"]));
    assert!(!agrees(&shown, &["a", "b"]));
    assert!(!agrees(&shown, &["b", "z"]));
    assert!(is_line("took …", "took 3 s") && !is_line("took …", "gave 3 s"));
}

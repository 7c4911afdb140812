//! Every command in the README and the docs is run, and what is printed there is compared.
//!
//! A block fenced as `console` holds commands, each behind `$ `, and under each what it prints. As in a shell, a command
//! with an open quote goes on behind `> `. A line that is only `…` stands for any number of lines; within a line it stands
//! for anything. `scripts/check` is left out: it is what runs this, `scripts/image` needs a container engine:
//! `tests/compose` runs it, and `scripts/bench-peers` takes an hour and other systems' programs.
//!
//! `… -- dev` starts a cluster that lives until the document ends or starts another one: what it types into it is
//! written `# type: kill 1`. `eldest` is the binary under test.

mod cluster;

use std::path::{Path, PathBuf};
use std::process::Command;

use cluster::Cluster;

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
                (None, Some(example)) => example.go_on(line),
                (None, None) => {}
            },
            _ => {}
        }
    }
    examples
}

impl Example {
    fn go_on(&mut self, line: &str) {
        let quote_is_open = self.command.matches('\'').count() % 2 == 1;
        match line.strip_prefix("> ").filter(|_| quote_is_open) {
            Some(more) => self.command.extend(["\n", more]),
            None => self.output.push(line.to_string()),
        }
    }

    /// What is asked of the cluster that it starts, if it starts one.
    fn cluster(&self) -> Option<std::str::SplitWhitespace<'_>> {
        let (_, asked) = self.command.split_once(" -- dev")?;
        Some(asked.split_whitespace())
    }
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

/// Each `…` in what is shown stands for any text.
fn is_line(shown: &str, printed: &str) -> bool {
    let printed = printed.trim_end();
    match shown.split_once('…') {
        None => printed == shown,
        Some((beginning, rest)) => printed.strip_prefix(beginning).is_some_and(|tail| {
            let mut cuts = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            cuts.any(|at| is_line(rest, &tail[at..]))
        }),
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What a reader has in the path after `cargo install`.
fn path() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_eldest"));
    let folder = binary.parent().unwrap_or(binary).display();
    format!("{folder}:{}", std::env::var("PATH").unwrap_or_default())
}

fn run(example: &Example) -> Result<(), String> {
    let output = Command::new("bash")
        .args(["-c", &example.command])
        .env("PATH", path())
        .current_dir(root())
        .output()
        .map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    // What fails on purpose says so with `||`.
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

/// Runs a document's commands in order, beside the cluster that one of them may start.
fn run_document(document: &Path) -> (usize, Vec<String>) {
    let mut cluster = None;
    let mut failures = Vec::new();
    let mut count = 0;
    for example in examples(&read(document)) {
        let script = example.command.split(' ').find(|word| word.starts_with("scripts/"));
        if matches!(script, Some("scripts/check" | "scripts/image" | "scripts/bench-peers")) {
            continue;
        }
        count += 1;
        let done = match (example.cluster(), example.command.strip_prefix("# type: "), &mut cluster) {
            (Some(asked), ..) => {
                // At the same addresses.
                drop(cluster.take());
                Cluster::start(asked).map(|started| cluster = Some(started))
            }
            (None, Some(line), Some(cluster)) => cluster.type_line(line, &example.output),
            _ => run(&example),
        };
        failures.extend(done.err().map(|failure| format!("{}: {failure}", document.display())));
    }
    (count, failures)
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
    let (counts, failures): (Vec<usize>, Vec<Vec<String>>) =
        documents().iter().map(|document| run_document(document)).unzip();
    let failures = failures.concat();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(counts.iter().sum::<usize>() > 0, "the docs show no command");
}

#[test]
fn an_open_quote_goes_on() {
    let text = "```console\n$ put '[\n>   1,\n> 2]'\n> shown\n$ x -- dev --a b\n```\n";
    let examples = examples(text);
    assert_eq!(examples[0].command, "put '[\n  1,\n2]'");
    assert_eq!(examples[0].output, ["> shown"]);
    assert!(examples[0].cluster().is_none());
    assert_eq!(examples[1].cluster().map(|asked| asked.collect()), Some(vec!["--a", "b"]));
}

#[test]
fn an_ellipsis_stands_for_any_lines() {
    let shown: Vec<String> = ["a", "…", "z"].map(String::from).to_vec();
    assert!(agrees(&shown, &["a", "b", "c", "z"]));
    assert!(agrees(&shown, &["a", "z"]));
    assert!(!agrees(&shown, &["a", "b"]));
    assert!(!agrees(&shown, &["b", "z"]));
    assert!(is_line("took …", "took 3 s") && !is_line("took …", "gave 3 s"));
    assert!(is_line("a … c … e", "a b c d e") && !is_line("a … c … e", "a b c d"));
    assert!(is_line("{\"rev\":\"…\"}", "{\"rev\":\"12\"}"));
}

//! Every command in the README and the docs is run, and its output is compared.
//!
//! A block fenced as `console` holds commands, each after `$ `, and under each its output. As in a shell, a
//! command with an open quote continues after `> `. A line that is only `…` stands for any number of lines;
//! within a line it stands for any text. Three scripts are left out: `scripts/check` runs this test,
//! `scripts/image` needs a container engine (`tests/compose` runs it), and `scripts/bench-peers` takes an
//! hour and needs other systems' programs.
//!
//! `… -- dev` starts a cluster that lives until the document ends or starts another one. A line that
//! the document types into it is written `# type: kill 1`. `eldest` is the binary under test. `/tmp` is
//! the document's own folder.
//!
//! Each document is a test, so that one can be run alone: `cargo test --test docs -- tutorial`.

mod cluster;
mod shell;
mod turn;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cluster::Cluster;
use shell::Shell;

/// A test for each document that shows commands.
macro_rules! documents {
    ($($name:ident: $path:literal,)+) => {
        const LISTED: &[&str] = &[$($path),+];
        $(
            #[test]
            fn $name() {
                run_document(stringify!($name), $path);
            }
        )+
    };
}

documents! {
    backup: "docs/backup.md",
    clients: "docs/clients.md",
    drills: "docs/drills.md",
    http_api: "docs/http-api.md",
    metrics: "docs/metrics.md",
    readme: "README.md",
    troubleshooting: "docs/troubleshooting.md",
    tutorial: "docs/tutorial.md",
}

/// These commands print one moment of nodes that have not come equally far: a follower learns with the next
/// beat how far the leader has committed, and one disk may get a record later than the two others. So they
/// are run until they print the lines that the document shows.
const LOOKS: [&str; 4] = ["eldest status", "eldest why", "eldest doctor", "eldest log cat"];

/// It only makes sure that a document that is wrong ends at some point.
const PATIENCE: Duration = Duration::from_secs(120);

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

    /// The options of the cluster that it starts, if it starts one.
    fn cluster(&self) -> Option<std::str::SplitWhitespace<'_>> {
        let (_, asked) = self.command.split_once(" -- dev")?;
        Some(asked.split_whitespace())
    }
}

/// True if `printed` agrees with `shown`, with `…` for any number of lines.
fn agrees(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == "…" => (0..=printed.len()).any(|skip| agrees(rest, &printed[skip..])),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| is_line(line, first) && agrees(rest, others))
        }
    }
}

/// Each `…` in `shown` stands for any text.
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

/// The path that a reader has after `cargo install`.
fn path() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_eldest"));
    let folder = binary.parent().unwrap_or(binary).display();
    format!("{folder}:{}", std::env::var("PATH").unwrap_or_default())
}

/// A document under way.
struct Page {
    shell: Shell,
    cluster: Option<Cluster>,
}

/// The kinds of disagreement between a command and its document.
enum Wrong {
    /// The commands after it can still be run.
    Differs(String),
    /// The commands after it would fail as well.
    Ends(String),
}

impl Page {
    fn run(&mut self, example: &Example) -> Result<(), Wrong> {
        if let Some(asked) = example.cluster() {
            // The old cluster goes first, because the new one has the same addresses.
            drop(self.cluster.take());
            self.cluster = Some(Cluster::start(&self.shell.folder, asked).map_err(Wrong::Ends)?);
            return Ok(());
        }
        match (example.command.strip_prefix("# type: "), &mut self.cluster) {
            (Some(line), Some(cluster)) => cluster.type_line(line, &example.output).map_err(Wrong::Ends),
            (Some(line), None) => Err(Wrong::Ends(format!("there is no cluster to type {line:?} into"))),
            (None, _) => self.compare(example),
        }
    }

    fn compare(&self, example: &Example) -> Result<(), Wrong> {
        let until = Instant::now() + PATIENCE;
        let is_look = LOOKS.iter().any(|look| example.command.starts_with(look));
        loop {
            let printed = self.shell.run(&root(), &example.command).map_err(Wrong::Ends)?;
            let lines: Vec<&str> = printed.out.lines().collect();
            // A command that fails on purpose says so with `||`.
            if printed.succeeded && agrees(&example.output, &lines) {
                return Ok(());
            }
            if !is_look || Instant::now() > until {
                let (command, shown) = (&example.command, example.output.join("\n"));
                let told = format!("$ {command}\n{shown}\nit printed:\n{}{}", printed.out, printed.err);
                return Err(Wrong::Differs(told));
            }
        }
    }
}

/// The examples that are run.
fn examples_of(path: &Path) -> Vec<Example> {
    let mut examples = examples(&read(path));
    examples.retain(|example| {
        let script = example.command.split(' ').find(|word| word.starts_with("scripts/"));
        !matches!(script, Some("scripts/check" | "scripts/image" | "scripts/bench-peers"))
    });
    examples
}

/// Runs a document's commands in order, together with the cluster that one of them may start.
fn run_document(name: &str, document: &str) {
    let _turn = turn::wait_for_turn(&std::env::temp_dir().join("eldest-docs.lock"));
    let shell = Shell::open(name, path()).expect("a shell can be opened");
    let mut page = Page { shell, cluster: None };
    let mut failures = Vec::new();
    for example in examples_of(&root().join(document)) {
        match page.run(&example) {
            Ok(()) => {}
            Err(Wrong::Differs(told)) => failures.push(told),
            Err(Wrong::Ends(told)) => {
                failures.push(told + "\nthe rest was not run");
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{document}: {}", failures.join("\n\n"));
}

fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    let docs = std::fs::read_dir(root().join("docs")).expect("the folder is there");
    let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    documents.extend(docs.map(|entry| entry.expect("it can be listed").path()).filter(is_text));
    documents
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_document_with_commands_is_listed() {
    let mut found = documents();
    found.retain(|path| !examples_of(path).is_empty());
    let mut listed: Vec<PathBuf> = LISTED.iter().map(|path| root().join(path)).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn one_turn_at_a_time() {
    let lock = std::env::temp_dir().join(format!("eldest-docs-turn-{}", std::process::id()));
    let turns = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let _turn = turn::wait_for_turn(&lock);
                assert_eq!(turns.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                // Long enough that another thread would come in if the lock let it.
                (0..1_000).for_each(|_| std::thread::yield_now());
                turns.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
    });
    std::fs::remove_file(lock).expect("it is there");
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

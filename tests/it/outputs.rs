//! Every command that has `--output`, in every form, when it succeeds, when the cluster refuses it, and when no node can be reached. The
//! commands are read from the help, so a new one is tested, or must be listed here. The commands that call no node fail over files instead.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::harness::{Cluster, Folder, Plan, bounded, eldest, wait_for};

const FORMS: [&str; 4] = ["table", "json", "jsonl", "yaml"];

const ADMIN: &str = "admin-token-of-the-tests-0123456789";

/// No service has used that port for decades.
const NOBODY: &str = "http://127.0.0.1:1";

const NOT_REACHED: i32 = 3;
const NOT_NOW: i32 = 9;

/// For each command, the words with which it succeeds, and the command before it that makes this possible. That command's `token` or `id`
/// stands in for `GOT`, and the file of a backup for `BACKUP`. Commands that stop writes come last.
const GOOD: [(&str, &str, &str); 33] = [
    ("status", "", ""),
    ("top", "--once --every 200ms", ""),
    ("why", "leader", ""),
    ("doctor", "", ""),
    ("elect", "node-1", ""),
    ("conflicts list", "", ""),
    ("conflicts drop", "--all", ""),
    ("doc put", "a 1", ""),
    ("doc get", "a", ""),
    ("doc list", "--prefix a", ""),
    ("doc renew", "s", "doc put s 1 --ttl 1h"),
    ("doc delete", "gone", "doc put gone 1"),
    ("role acquire", "r i", ""),
    ("role renew", "r i GOT", "role acquire r i"),
    ("role check", "r GOT", "role acquire r i"),
    ("role list", "", ""),
    ("role show", "r", "role acquire r i"),
    ("role elect", "r j", ""),
    ("role release", "s i GOT", "role acquire s i"),
    ("proc register", "p x", ""),
    ("proc heartbeat", "p", "proc register p x"),
    ("proc list", "", ""),
    ("proc show", "p", "proc register p x"),
    ("proc remove", "p", "proc register p x"),
    ("msg publish", "c 1", ""),
    ("members list", "", ""),
    ("token create", "t --grant order", ""),
    ("token list", "", ""),
    ("token revoke", "GOT", "token create t --grant order"),
    ("restore", "BACKUP --yes", ""),
    ("handoff", "", ""),
    ("service down", "--ttl 1h", ""),
    ("service up", "", ""),
];

/// Commands that are tested only where they fail, each with its words. To succeed they would need a conflict, another node, a cluster that
/// is not formed yet, or a leader to take away; or they have a test of their own.
const BAD: [(&str, &str); 9] = [
    ("context set", "prod"),
    ("backup", "--out /dev/null"),
    ("conflicts show", "doc:a:1.1@1"),
    ("conflicts apply", "doc:a:1.1@1"),
    ("members add", "9 127.0.0.1:1"),
    ("members remove", "9"),
    ("members move", "9 127.0.0.1:1"),
    ("form", "--without 9 --yes"),
    ("drill", "handover --yes"),
];

/// The words with which a command fails, its exit code, and the code of the problem.
type LocalFailure = (&'static str, i32, &'static str);

/// For each command that calls no node, the words with which it succeeds, and those with which it fails. The words in capitals are files, see [`Files`].
const LOCAL: [(&str, &str, &[LocalFailure]); 12] = [
    ("log verify", "DATA", &[("NOTHING", 1, "failed"), ("BROKEN", 5, "damaged")]),
    ("snapshot verify", "DATA", &[("NOTHING", 1, "failed"), ("BROKEN", 5, "damaged")]),
    ("backup check", "BACKUP", &[("NOTHING", 1, "failed"), ("CUT", 5, "damaged")]),
    ("context use", "b", &[("nope", 2, "usage")]),
    ("context list", "", &[]),
    ("context remove", "b", &[("nope", 2, "usage")]),
    (
        "check",
        "--topology TOPOLOGY --node 1 --insecure",
        &[
            ("--topology WRONG --node 1", 2, "wrong_configuration"),
            ("--topology NOTHING", 2, "wrong_configuration"),
        ],
    ),
    (
        "cert init",
        "--topology TOPOLOGY --dir FRESH",
        &[
            ("--topology WRONG --dir FRESH", 2, "wrong_configuration"),
            ("--topology TOPOLOGY --dir CERTS", 1, "failed"),
        ],
    ),
    (
        "cert node",
        "1 --topology TOPOLOGY --dir CERTS",
        &[("1 --topology TOPOLOGY --dir NOTHING", 1, "failed")],
    ),
    ("cert client", "web --dir CERTS", &[("web --dir NOTHING", 1, "failed")]),
    ("cert show", "CERTS/ca.crt", &[("NOTHING", 1, "failed"), ("WRONG", 1, "failed")]),
    ("man", "FRESH", &[("BACKUP/man", 1, "failed")]),
];

fn run(url: &str, token: &str, words: &str) -> Output {
    let words: Vec<&str> = words.split_whitespace().collect();
    eldest(&[&words, &["--url", url, "--token", token][..]].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The commands under these words that have `--output`, as the help lists them: those that call a node, or those that do not.
fn with_output(words: &str, calls: bool) -> Vec<String> {
    let help = [words.split_whitespace().collect::<Vec<_>>(), vec!["--help"]].concat();
    let help = text(&eldest(&help).stdout);
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let below = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .flat_map(|name| with_output(format!("{words} {name}").trim(), calls));
    let own =
        (help.contains("  -o, --output") && help.contains("--url <URL>") == calls).then(|| words.to_string());
    below.chain(own).collect()
}

/// Asserts that the text has the form. YAML is only told from JSON objects here: a unit test of its writer reads it.
fn has_form(form: &str, said: &str, what: &str) {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    match form {
        "json" => assert!(is_json(said), "{what}: {said}"),
        "jsonl" => assert!(said.lines().all(is_json), "{what}: {said}"),
        "yaml" => assert!(!said.trim().is_empty() && !said.starts_with(['{', '[']), "{what}: {said}"),
        _ => assert!(!said.trim().is_empty(), "{what}"),
    }
}

/// Asserts that the failure is one object on stderr, with its code, for scripts, and one message for people.
fn is_told(form: &str, output: &Output, what: &str) -> String {
    assert_eq!(text(&output.stdout), "", "{what}: nothing is printed beside a failure");
    let Some(problem) = problem(form, output, what) else { return String::new() };
    problem["code"].as_str().unwrap_or_else(|| panic!("{what}: {problem}")).to_string()
}

/// The failure as scripts get it. For people it is a message.
fn problem(form: &str, output: &Output, what: &str) -> Option<Value> {
    let told = text(&output.stderr);
    if form == "table" {
        assert!(told.starts_with("eldest: ") && told.ends_with('\n'), "{what}: {told}");
        return None;
    }
    let problem: Value =
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{what}: {error}: {told}"));
    assert_eq!(problem["exit_code"].as_i64(), output.status.code().map(i64::from), "{what}: {told}");
    Some(problem)
}

async fn cluster() -> Cluster {
    let cluster = Plan::new(3).config(&format!("admin_token = \"{ADMIN}\"")).start().await;
    cluster.leader().await;
    cluster
}

/// Writes a backup of the cluster, and returns the path of its file.
async fn backup(cluster: &Cluster) -> String {
    let file = cluster.folder().join("all.backup").display().to_string();
    let urls = cluster.urls().join(",");
    wait_for("there is a backup", async || {
        run(&urls, ADMIN, &format!("backup --out {file}")).status.success().then_some(())
    })
    .await;
    file
}

/// The files of the commands that call no node.
struct Files {
    folder: Folder,
}

impl Files {
    /// Data of a node as it was written long ago, the same damaged, a topology and a wrong one, certificates, and half of a backup.
    fn new(backup: &str) -> Files {
        let files = Files { folder: Folder::new() };
        let whole = fs::read(backup).expect("a backup");
        fs::write(files.path("BACKUP"), &whole).expect("a file");
        fs::write(files.path("CUT"), &whole[..whole.len() / 2]).expect("a file");
        let topology =
            r#"{"node": {"name": "a", "id": 1}, "clusters": [{"name": "a", "ip": "127.0.0.1", "id": 1}]}"#;
        fs::write(files.path("TOPOLOGY"), topology).expect("a file");
        fs::write(files.path("WRONG"), topology.replace("127.0.0.1", "no address")).expect("a file");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/disk-v1");
        copy(&data, Path::new(&files.path("DATA")), &|bytes| bytes);
        copy(&data, Path::new(&files.path("BROKEN")), &|mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        });
        let init = ["cert", "init", "--topology", &files.path("TOPOLOGY"), "--dir", &files.path("CERTS")];
        assert!(eldest(&init).status.success());
        files
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs a command whose words in capitals are files.
    fn run(&self, words: &str, form: &str) -> Output {
        let is_file = |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase());
        let word = |word: &str| if is_file(word) { self.path(word) } else { word.to_string() };
        let words: Vec<String> = words.split_whitespace().map(word).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).chain(["--output", form]).collect();
        let contexts =
            r#"{"current":"a","contexts":{"a":{"urls":["http://n1"]},"b":{"urls":["http://n2"]}}}"#;
        fs::write(self.path("CONTEXTS"), contexts).expect("a file");
        let mut command = bounded();
        command.args(&words).env("ELDEST_CONTEXTS", self.path("CONTEXTS")).output().expect("the binary runs")
    }
}

fn copy(from: &Path, to: &Path, change: &impl Fn(Vec<u8>) -> Vec<u8>) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        match entry.path() {
            path if path.is_dir() => copy(&path, &to, change),
            path => fs::write(to, change(fs::read(path).expect("a file"))).expect("a file"),
        }
    }
}

fn words_of(command: &str) -> String {
    let all = GOOD.iter().map(|(name, words, _)| (*name, *words)).chain(BAD);
    let words = all.into_iter().find(|(name, _)| *name == command).map(|(_, words)| words);
    words
        .unwrap_or_else(|| panic!("{command} has --output: give it words in this test"))
        .replace("GOT", "0000000000000017")
}

#[tokio::test]
async fn every_command_succeeds_in_every_form() {
    let cluster = cluster().await;
    let file = backup(&cluster).await;
    let urls = cluster.urls().join(",");
    for (command, words, before) in GOOD {
        for form in FORMS {
            let mut got = String::new();
            if !before.is_empty() {
                let output = run(&urls, ADMIN, &format!("{before} --json"));
                let said: Value = serde_json::from_slice(&output.stdout)
                    .unwrap_or_else(|error| panic!("{before}: {error}: {}", text(&output.stderr)));
                let found = if before.starts_with("token") { &said["id"] } else { &said["token"] };
                got = found.as_str().map_or_else(|| found.to_string(), str::to_string);
            }
            let line =
                format!("{command} {} --output {form}", words.replace("GOT", &got).replace("BACKUP", &file));
            // A node may not be ready to lead yet.
            let output = wait_for("it is carried out", async || {
                Some(run(&urls, ADMIN, &line)).filter(|output| output.status.code() != Some(NOT_NOW))
            })
            .await;
            // The doctor's code says what it has found on this machine.
            let is_done = output.status.success() || command == "doctor" && output.status.code() > Some(10);
            assert!(is_done, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
            has_form(form, &text(&output.stdout), &line);
        }
    }
}

#[tokio::test]
async fn every_refusal_and_every_lack_of_a_node_is_told_in_every_form() {
    let cluster = cluster().await;
    let file = backup(&cluster).await;
    let urls = cluster.urls().join(",");
    for command in with_output("", true) {
        for form in FORMS {
            let line = format!("{command} {} --output {form}", words_of(&command).replace("BACKUP", &file));
            let output = run(&urls, "no-token-of-this-cluster", &line);
            let code = is_told(form, &output, &line);
            // A node answers only some wrong tokens of one address a minute.
            assert!(["", "unauthorized", "too_many_requests"].contains(&code.as_str()), "{line}: {code}");
            let output = run(NOBODY, ADMIN, &line);
            let code = is_told(form, &output, &line);
            assert_eq!(output.status.code(), Some(NOT_REACHED), "{line}: {}", text(&output.stderr));
            assert!(["", "not_reached"].contains(&code.as_str()), "{line}: {code}");
        }
    }
}

#[tokio::test]
async fn a_command_that_calls_no_node_has_every_form_too() {
    let cluster = cluster().await;
    let files = Files::new(&backup(&cluster).await);
    let listed: Vec<&str> = LOCAL.iter().map(|(name, ..)| *name).collect();
    assert_eq!(with_output("", false), listed, "give it words in this test");
    for form in FORMS {
        for (command, good, bad) in LOCAL {
            let line = format!("{command} {good}");
            let fresh = files.path("FRESH");
            let _ = fs::remove_dir_all(&fresh);
            let output = files.run(&line, form);
            assert!(output.status.success(), "{line}: {form}: {}", text(&output.stderr));
            assert_eq!(text(&output.stderr), "", "{line}: {form}");
            has_form(form, &text(&output.stdout), &line);
            let _ = fs::remove_dir_all(&fresh);
            for (words, exit_code, code) in bad {
                let line = format!("{command} {words}");
                let output = files.run(&line, form);
                assert_eq!(
                    output.status.code(),
                    Some(*exit_code),
                    "{line}: {form}: {}",
                    text(&output.stderr)
                );
                // The summary of a damaged log is printed beside the damage.
                let summary = text(&output.stdout);
                if *code == "damaged" && command.ends_with("verify") {
                    has_form(form, &summary, &line);
                } else {
                    assert_eq!(summary, "", "{line}: {form}");
                }
                let Some(problem) = problem(form, &output, &line) else { continue };
                assert_eq!(problem["code"], *code, "{line}: {problem}");
                let list = match *code {
                    "damaged" => &problem["damage"],
                    "wrong_configuration" => &problem["mistakes"],
                    _ => continue,
                };
                assert!(list.as_array().is_some_and(|list| !list.is_empty()), "{line}: {problem}");
            }
        }
    }
}

#[tokio::test]
async fn the_summary_of_a_backup_is_where_the_backup_is_not() {
    let cluster = cluster().await;
    backup(&cluster).await;
    let urls = cluster.urls().join(",");
    let file = cluster.folder().join("two.backup").display().to_string();
    for form in FORMS {
        let output = run(&urls, ADMIN, &format!("backup --out {file} --output {form}"));
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        if form == "table" {
            assert!(said.is_empty() && told.contains(" rows of cluster it at index "), "{said}{told}");
        } else {
            assert_eq!(told, "", "{form}");
            has_form(form, &said, form);
        }
        let output = run(&urls, ADMIN, &format!("backup --output {form}"));
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        assert!(
            said.starts_with("eldest-backup 1 ") && told.contains(" rows of cluster it "),
            "{form}: {told}"
        );
    }
}

#[tokio::test]
async fn each_refresh_is_one_document() {
    let cluster = cluster().await;
    let urls = cluster.urls().join(",");
    for form in ["json", "jsonl"] {
        let output = run(&urls, ADMIN, &format!("top --count 2 --every 200ms --output {form}"));
        let said = text(&output.stdout);
        assert_eq!(said.lines().count(), 2, "{said}{}", text(&output.stderr));
        has_form("jsonl", &said, form);
    }
    let said = text(&run(&urls, ADMIN, "top --count 2 --every 200ms --output yaml").stdout);
    assert_eq!(said.lines().filter(|line| *line == "---").count(), 2, "{said}");
}

/// A path may have any bytes.
#[test]
fn words_that_are_not_text_are_refused() {
    for form in FORMS {
        let mut command = bounded();
        command.args(["doc", "put"]).arg(OsStr::from_bytes(b"caf\xe9")).args(["1", "--output", form]);
        let output = command.output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{form}: {}", text(&output.stderr));
    }
}

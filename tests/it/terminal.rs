//! The output on a terminal, which `script` of util-linux provides.

use std::process::{Command, Stdio};

use crate::harness::{Cluster, eldest};

/// What a terminal of 60 columns gets. Its line breaks have a carriage return, which is left out here.
fn on_terminal(no_color: &str, words: &str) -> String {
    let command = format!("stty cols 60 rows 24; exec {} {words}", env!("CARGO_BIN_EXE_eldest"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env("NO_COLOR", no_color);
    let output = script.stdin(Stdio::null()).output().expect("script of util-linux runs");
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

fn in_pipe(words: &str) -> String {
    let output = eldest(&words.split_whitespace().collect::<Vec<_>>());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_help_has_colours_on_a_terminal_unless_no_color_is_set() {
    for words in ["--help", "doc put --help", "nonsense"] {
        assert!(on_terminal("", words).contains('\u{1b}'), "{words}");
        assert!(!on_terminal("1", words).contains('\u{1b}'), "{words}");
        assert!(!in_pipe(words).contains('\u{1b}'), "{words}");
    }
}

#[tokio::test]
async fn a_value_is_cut_on_a_terminal_only_and_one_line_break_ends_an_output() {
    let cluster = Cluster::of(1).await;
    cluster.leader().await;
    let url = format!("--url {}", cluster.urls().join(","));
    let value = "x".repeat(500);
    in_pipe(&format!("doc put a-key {value} --text {url}"));
    let (cut, whole) = (on_terminal("", &format!("doc list {url}")), in_pipe(&format!("doc list {url}")));
    assert!(cut.contains("xx…\n") && cut.lines().all(|line| line.chars().count() <= 60), "{cut}");
    assert!(whole.contains(&format!("\"{value}\"\n")), "{whole}");
    for words in [
        "doc list",
        "doc get a-key",
        "doc get a-key -o yaml",
        "call GET /v1/docs/a-key",
        "call GET /metrics",
        "status",
        "why",
        "doctor",
        "role list",
        "top --once --every 200ms",
    ] {
        let words = format!("{words} {url}");
        for text in [on_terminal("", &words), in_pipe(&words)] {
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{words}: {text:?}");
        }
    }
}

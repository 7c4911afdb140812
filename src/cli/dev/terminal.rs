//! The output of the nodes, line by line with their names, and the output of `eldest dev` itself.

use std::io::{Write, stderr, stdout};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::cli::dev::place::{DevPlace, name_of};
use crate::cli::dev::typed::HELP;
use crate::cli::out::has_colours;

/// One colour for each node in turn: cyan, yellow, green, magenta, blue, red.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// Copies a node's lines to stderr until the node closes them. It goes on reading even if stderr has no reader,
/// because a node whose pipe is full would stand still.
pub async fn copy_lines(id: u32, from: impl AsyncRead + Unpin, quiet: bool) {
    let prefix = prefix(id, has_colours(&stderr()));
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line).await, Ok(1..)) {
        if !quiet {
            let text = String::from_utf8_lossy(&line);
            let _ = stderr().write_all(format!("{prefix}{}\n", text.trim_end()).as_bytes());
        }
        line.clear();
    }
}

fn prefix(id: u32, coloured: bool) -> String {
    let name = name_of(id);
    let colour = COLOURS[id.saturating_sub(1) as usize % COLOURS.len()];
    if coloured { format!("\u{1b}[{colour}m{name} |\u{1b}[0m ") } else { format!("{name} | ") }
}

/// Prints to stdout, so that the nodes' own lines can be redirected separately. A closed stdout does not stop the
/// cluster.
pub fn say(text: &str) {
    let _ = stdout().write_all(format!("{}\n", text.trim_end()).as_bytes());
    let _ = stdout().flush();
}

// Hints what to try next, as lines that can be pasted.

/// `program` is this program, as it was called.
pub fn hints(place: &DevPlace, program: &str) -> String {
    let urls = place.urls();
    let (first, last, all) = (&urls[0], &urls[urls.len() - 1], urls.join(","));
    let kept = if place.temporary { "removed on exit" } else { "kept" };
    let folder = place.folder.display();
    format!(
        "
  Try in another terminal:
    curl -X PUT {first}/v1/docs/greeting -d '\"hello\"'
    curl {last}/v1/docs/greeting
    curl -X POST {first}/v1/commands \\
         -d '{{\"storage_cmd\":\"CreateUser\",\"payload\":{{\"name\":\"tester\"}}}}'
    export ELDEST_URL={all}
    {program} status
    {program} log cat {folder}/node-1
  Or type here and press Enter:
    {HELP}

  Data: {folder} ({kept}). Ctrl-C stops the cluster.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(prefix(2, false), "node-2 | ");
        assert_eq!(prefix(1, true), "\u{1b}[36mnode-1 |\u{1b}[0m ");
        assert_eq!(prefix(7, true), "\u{1b}[36mnode-7 |\u{1b}[0m ");
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_do_not_end_the_copying() {
        copy_lines(1, &b"\xff\xfe\nlast without an end"[..], true).await;
    }
}

#[cfg(test)]
mod hints_tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_line_fits_a_terminal_and_names_real_addresses() {
        let addresses = ["127.0.0.1:9000", "127.0.0.2:9000"].map(|text| text.parse().expect("an address"));
        let place = DevPlace {
            folder: PathBuf::from("/tmp/eldest-dev-1-0"),
            temporary: true,
            addresses: addresses.to_vec(),
        };
        let text = hints(&place, "eldest");
        assert!(text.contains("curl http://127.0.0.2:9000/v1/docs/greeting\n"), "{text}");
        let export = "    export ELDEST_URL=http://127.0.0.1:9000,http://127.0.0.2:9000\n    eldest status\n";
        assert!(text.contains(export), "{text}");
        assert!(text.contains("Data: /tmp/eldest-dev-1-0 (removed on exit)"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}

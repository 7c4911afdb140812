//! What the nodes say, line by line under their names; and what `eldest dev` itself says.

use std::io::{IsTerminal, Write, stderr, stdout};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::place::name_of;

/// One for each node in turn: cyan, yellow, green, magenta, blue, red.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// Copies a node's lines to stderr until it closes them. It goes on reading even if nobody reads here, since a node
/// whose pipe is full would stand still.
pub async fn copy_lines(id: u32, from: impl AsyncRead + Unpin, quiet: bool) {
    let prefix = prefix(id, stderr().is_terminal());
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

/// On stdout, so that the nodes' own lines can be sent elsewhere. A reader that has gone does not stop the cluster.
pub fn say(text: &str) {
    let _ = stdout().write_all(format!("{}\n", text.trim_end()).as_bytes());
    let _ = stdout().flush();
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

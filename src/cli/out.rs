//! Writes to stdout so that `eldest … | head` ends quietly, and asks what kind of output it is.

use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write, stdout};

use rustix::termios::tcgetwinsize;

use super::exit::Failure;

/// Stdout, in large writes. Call [`Out::end`] at the end: writing the rest of the buffer may fail.
#[derive(Debug)]
pub struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    pub fn new() -> Out {
        Out(BufWriter::new(io::stdout().lock()))
    }

    pub fn line(&mut self, line: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.0.write_all(line.as_ref()).and_then(|()| self.0.write_all(b"\n")).map_err(Failure::output)
    }

    /// Shows what is in the buffer, for output that goes on.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(Failure::output)
    }

    pub fn end(mut self) -> Result<(), Failure> {
        self.0.flush().map_err(Failure::output)
    }
}

/// Prints a whole text, with one line break at its end.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = Out::new();
    out.line(text.trim_end_matches('\n'))?;
    out.end()
}

/// The columns and rows of the terminal that stdout is. `None` means that it is a pipe or a file, or that the terminal
/// does not report its size.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

/// The columns that a table may take. `None` means that nothing is cut.
pub fn columns() -> Option<usize> {
    terminal_size().map(|(columns, _)| columns)
}

/// Whether text for this stream may have colours.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    may_have_colours(stream.is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

/// See <https://no-color.org>: an empty variable means nothing.
fn may_have_colours(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Whether a character could move the cursor or change the direction of the text beside it. Names and values come
/// from other people.
pub fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with harmful characters replaced by blanks. Line breaks stay.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) && c != '\n' { ' ' } else { c }).collect()
}

/// Prints a message for people to stderr, apart from the output.
pub fn note(text: &str) {
    // If stderr is closed, the message cannot be shown.
    let _ = io::stderr().write_all(format!("eldest: {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let left = Failure::output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(left.code(), 0);
        let full = Failure::output(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.code(), 1);
    }

    #[test]
    fn colours_are_for_terminals_without_no_color() {
        let cases =
            [(true, None, true), (true, Some(""), true), (true, Some("1"), false), (false, None, false)];
        for (is_terminal, no_color, expected) in cases {
            assert_eq!(may_have_colours(is_terminal, no_color.map(OsStr::new)), expected, "{no_color:?}");
        }
    }
}

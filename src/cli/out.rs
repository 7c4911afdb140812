//! Writes to stdout so that `eldest … | head` ends quietly.

use std::io::{self, BufWriter, StdoutLock, Write};

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

/// Prints a whole text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = Out::new();
    out.line(text.strip_suffix('\n').unwrap_or(text))?;
    out.end()
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
}

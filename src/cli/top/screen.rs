//! Writes the output: a terminal is redrawn in place, any other output gets one block after the other, and a script one
//! document after the other.

use std::io::{IsTerminal, Write, stdout};

use super::frame::ScreenFrame;
use crate::cli::exit::Failure;
use crate::cli::out::terminal_size;
use crate::cli::output::Output;

/// Control sequences: switch to a separate screen without a cursor that cuts lines at its edge, and back. A character
/// may be two columns wide, so a line that was cut by characters may still be too long.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// Control sequence: clear the whole screen.
const CLEAR: &str = "\u{1b}[2J";

/// The size that is assumed if the terminal does not report one.
const USUAL_SIZE: (usize, usize) = (80, 24);

#[derive(Debug)]
pub struct Screen {
    output: Output,
    is_terminal: bool,
    /// The last one that was shown.
    frame: Option<ScreenFrame>,
    /// The lines that the terminal shows. Empty if it has to be drawn as a whole.
    shown: Vec<String>,
    size: (usize, usize),
}

impl Screen {
    pub fn open(output: &Output) -> Result<Screen, Failure> {
        let mut screen = Screen::plain(output);
        screen.is_terminal = stdout().is_terminal() && !output.is_for_scripts();
        if screen.is_terminal {
            write(ENTER)?;
        }
        Ok(screen)
    }

    /// Writes each block below the last one, even on a terminal.
    pub fn plain(output: &Output) -> Screen {
        Screen { output: output.clone(), is_terminal: false, frame: None, shown: Vec::new(), size: (0, 0) }
    }

    pub fn show(&mut self, frame: ScreenFrame) -> Result<(), Failure> {
        if !self.is_terminal {
            // A blank line is between two blocks, and not at the end of the output.
            let gap = if self.frame.is_some() {
                "
"
            } else {
                ""
            };
            let block = |_: &_| {
                format!(
                    "{gap}{}
",
                    frame.lines(usize::MAX, usize::MAX).join(
                        "
"
                    )
                )
            };
            self.output.next(&frame.json(), block)?;
            self.frame = Some(frame);
            return Ok(());
        }
        self.frame = Some(frame);
        self.draw()
    }

    /// Draws the last frame again, after the window has got another size.
    pub fn redraw(&mut self) -> Result<(), Failure> {
        if self.is_terminal { self.draw() } else { Ok(()) }
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let Some(frame) = &self.frame else { return Ok(()) };
        let size = terminal_size().unwrap_or(USUAL_SIZE);
        if size != self.size {
            (self.size, self.shown) = (size, Vec::new());
            write(CLEAR)?;
        }
        let lines = frame.lines(size.0, size.1);
        let changes = changes(&self.shown, &lines);
        self.shown = lines;
        write(&changes)
    }
}

/// The text that changes a terminal from `shown` to `lines`. Only lines that differ are sent, because the connection to
/// the terminal may be slow.
fn changes(shown: &[String], lines: &[String]) -> String {
    let line = |lines: &[String], number: usize| lines.get(number).cloned().unwrap_or_default();
    // A line is cleared before it is written: after a character in the last column, the cursor is still on it.
    (0..shown.len().max(lines.len()))
        .filter(|number| line(shown, *number) != line(lines, *number))
        .map(|number| format!("\u{1b}[{};1H\u{1b}[2K{}", number + 1, line(lines, number)))
        .collect()
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_terminal {
            let _ = write(LEAVE);
        }
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_are_sent() {
        let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
        let (before, after) = (lines("one\ntwo\nthree"), lines("one\nTWO"));
        assert_eq!(changes(&[], &before).matches("\u{1b}[2K").count(), 3);
        assert_eq!(changes(&before, &before), "");
        assert_eq!(changes(&before, &after), "\u{1b}[2;1H\u{1b}[2KTWO\u{1b}[3;1H\u{1b}[2K");
        assert_eq!(changes(&after, &[]).matches("\u{1b}[2K").count(), 2);
    }
}

//! A terminal that is drawn over, or any other output, to which one block after the other is written.

use std::io::{IsTerminal, Write, stdout};

use rustix::termios::tcgetwinsize;

use super::frame::ScreenFrame;
use crate::cli::exit::Failure;

/// Control sequences: switch to a separate screen without a cursor, and back.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// Control sequences: draw from the upper left corner, clear the rest of each line, and clear the rest of the screen
/// at the end.
const HOME: &str = "\u{1b}[H";
const REST_OF_LINE: &str = "\u{1b}[K\r\n";
const REST: &str = "\u{1b}[J";

#[derive(Debug)]
pub struct Screen {
    is_terminal: bool,
}

impl Screen {
    pub fn open() -> Result<Screen, Failure> {
        let screen = Screen { is_terminal: stdout().is_terminal() };
        if screen.is_terminal {
            write(ENTER)?;
        }
        Ok(screen)
    }

    pub fn show(&mut self, frame: &ScreenFrame) -> Result<(), Failure> {
        if !self.is_terminal {
            return write(&format!("{}\n\n", frame.lines(usize::MAX, usize::MAX).join("\n")));
        }
        // The size is read each time, because the window may have changed.
        let size = tcgetwinsize(stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        let (columns, rows) = size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()));
        let lines: usize = rows;
        let text: String = frame
            .lines(columns, lines.saturating_sub(1))
            .iter()
            .map(|line| format!("{line}{REST_OF_LINE}"))
            .collect();
        write(&format!("{HOME}{text}{REST}"))
    }
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

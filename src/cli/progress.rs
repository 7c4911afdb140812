//! The progress of a command that takes longer than a second: one line on stderr, rewritten in place and removed at the end.
//!
//! The line is shown only if stderr is a terminal, so a script never sees it.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A shorter command shows no progress: the line would only flash.
const BEGINS_AFTER: Duration = Duration::from_secs(1);

/// A faster update cannot be read, and a slow connection to the terminal would slow down the work.
pub const EVERY: Duration = Duration::from_millis(250);

/// Control sequence: go to the beginning of the line, and clear it.
const CLEAR: &str = "\r\u{1b}[2K";

/// Shows how far a command has come. The line disappears when this is dropped.
#[derive(Debug)]
pub struct Progress {
    line: ProgressLine,
    is_terminal: bool,
}

impl Progress {
    pub fn begin() -> Progress {
        Progress { line: ProgressLine::new(Instant::now()), is_terminal: io::stderr().is_terminal() }
    }

    /// Shows the bytes that are done, such as "checked 120 MiB of 800 MiB". `all` is `None` if the number is unknown.
    pub fn bytes(&mut self, done: &str, bytes: u64, all: Option<u64>) {
        self.say(|_| amount(done, bytes, all));
    }

    /// Shows what the command waits for, and how long it has run.
    pub fn waits(&mut self, what: &str) {
        self.say(|passed| format!("{what}, {} s", passed.as_secs()));
    }

    fn say(&mut self, text: impl FnOnce(Duration) -> String) {
        if self.is_terminal {
            write(&self.line.at(Instant::now(), text).unwrap_or_default());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        write(self.line.end());
    }
}

/// Does work that cannot say how far it has come, and shows how long it has taken.
pub fn timed<T: Send>(what: &str, work: impl FnOnce() -> T + Send) -> T {
    let mut progress = Progress::begin();
    if !progress.is_terminal {
        return work();
    }
    let (ends, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                progress.waits(what);
            }
        });
        let done = work();
        drop(ends);
        done
    })
}

/// The size of the files in this folder. A file that cannot be read counts nothing: the command itself will report it.
pub fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

fn write(text: &str) {
    // If stderr is closed, there is no progress to show.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The line, and when it was last written. The clock is an argument.
#[derive(Debug)]
struct ProgressLine {
    began: Instant,
    shown: Option<Instant>,
}

impl ProgressLine {
    fn new(began: Instant) -> ProgressLine {
        ProgressLine { began, shown: None }
    }

    /// The text to write now, if any. `text` gets the time since the beginning.
    fn at(&mut self, now: Instant, text: impl FnOnce(Duration) -> String) -> Option<String> {
        let due = self.shown.map_or(self.began + BEGINS_AFTER, |shown| shown + EVERY);
        if now < due {
            return None;
        }
        self.shown = Some(now);
        Some(format!("{CLEAR}eldest: {}", text(now - self.began)))
    }

    /// The text to write at the end.
    fn end(&mut self) -> &'static str {
        if self.shown.take().is_some() { CLEAR } else { "" }
    }
}

fn amount(done: &str, bytes: u64, all: Option<u64>) -> String {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    match all {
        Some(all) => format!("{done} {} of {}", mib(bytes.min(all)), mib(all)),
        None => format!("{done} {}", mib(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &mut ProgressLine, began: Instant, ms: u64) -> Option<String> {
        line.at(began + Duration::from_millis(ms), |passed| format!("{} ms", passed.as_millis()))
    }

    #[test]
    fn a_short_command_shows_nothing() {
        let began = Instant::now();
        let mut line = ProgressLine::new(began);
        assert_eq!((at(&mut line, began, 0), at(&mut line, began, 999)), (None, None));
        assert_eq!(line.end(), "", "there is nothing to clear");
    }

    #[test]
    fn a_long_one_rewrites_one_line_a_few_times_a_second() {
        let began = Instant::now();
        let mut line = ProgressLine::new(began);
        let shown: Vec<String> = (0..=2_000).filter_map(|ms| at(&mut line, began, ms)).collect();
        let expected = [1_000, 1_250, 1_500, 1_750, 2_000].map(|ms| format!("\r\u{1b}[2Keldest: {ms} ms"));
        assert_eq!(shown, expected);
        assert_eq!((line.end(), line.end()), ("\r\u{1b}[2K", ""), "it is cleared once");
    }

    #[test]
    fn amounts() {
        let mib = 1 << 20;
        assert_eq!(amount("checked", 120 * mib + 7, Some(800 * mib)), "checked 120 MiB of 800 MiB");
        assert_eq!(amount("received", 120 * mib, None), "received 120 MiB");
        assert_eq!(amount("checked", 9 * mib, Some(8 * mib)), "checked 8 MiB of 8 MiB", "the file has grown");
    }

    #[test]
    fn only_the_files_of_a_folder_count() {
        let folder = std::env::temp_dir().join(format!("eldest-bytes-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).expect("a folder");
        fs::write(folder.join("a"), "12345").expect("a file");
        fs::write(folder.join("below/b"), "1").expect("a file");
        assert_eq!(bytes_in(&folder), 5);
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(bytes_in(&folder), 0);
    }

    #[test]
    fn timed_work_gives_its_result() {
        assert_eq!(timed("checking", || 7), 7);
    }
}

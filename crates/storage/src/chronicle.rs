//! Lines that a node keeps for people: appended, bounded, and irrelevant to safety. They are not synced: they outlive the
//! process, but a power failure may lose the newest.
//!
//! Each line begins with its checksum, so that a damaged line is left out and not told as something that happened. Earlier versions wrote
//! lines of JSON without one. A line that was cut short gets its line end when the file is opened. When the file has twice as many lines
//! as are kept, it is rewritten with the newest ones, first under another name.
//!
//! ```text
//!   5f3a09c1 {"at":"2026-11-28T14:03:07.401Z","event":"suspected","node":1,…}
//!   └─ CRC-32 of what follows the space, in hexadecimal digits
//! ```
//!
//! So a line costs one small write, and the file is rewritten once in as many additions as lines are kept. The code calls
//! `std::fs` and not `Files`: nothing depends on these files, so no simulated power failure needs to reach them.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::files::FILE_MODE;

/// The most that is read of a file, because another program may have written it. If the file is larger, only its end is read.
const BYTES_MOST: u64 = 4 << 20;

#[derive(Debug)]
pub struct Chronicle {
    path: PathBuf,
    file: File,
    /// The newest lines, at most `most`.
    lines: VecDeque<String>,
    most: usize,
    /// The number of lines in the file.
    written: usize,
    /// The number of lines that were damaged when the file was opened.
    damaged: usize,
}

impl Chronicle {
    /// Opens the file, which keeps `most` lines.
    pub fn open(dir: &Path, name: &str, most: usize) -> io::Result<Chronicle> {
        let path = dir.join(name);
        let (mut file, found) = read(&path)?;
        let torn = found.last().is_some_and(|last| *last != b'\n');
        // Otherwise the next line would be joined to the torn one, and both would be lost.
        if torn {
            file.write_all(b"\n")?;
        }
        let text = String::from_utf8_lossy(&found);
        // Of a larger file only the end was read, which may begin within a line.
        let text = if found.len() as u64 == BYTES_MOST {
            text.split_once('\n').map_or("", |(_, rest)| rest)
        } else {
            &text
        };
        let mut lines: VecDeque<String> = VecDeque::new();
        let (mut written, mut damaged) = (0, 0);
        for line in text.lines() {
            written += 1;
            match content(line) {
                Some(line) => keep(&mut lines, most, line),
                None => damaged += 1,
            }
        }
        Ok(Chronicle { path, file, lines, most, written, damaged })
    }

    /// The number of lines that were damaged when the file was opened, and are left out.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub fn add(&mut self, line: &str) -> io::Result<()> {
        keep(&mut self.lines, self.most, line);
        if self.written >= 2 * self.most {
            return self.rewrite();
        }
        self.file.write_all(summed(line).as_bytes())?;
        self.written += 1;
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        // A leftover of a crash is removed, and no link is followed, even one that another program created.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(&new)?;
        let text: String = self.lines.iter().map(|line| summed(line)).collect();
        file.write_all(text.as_bytes())?;
        // The old file is complete until the new one takes its name, so a process that dies loses no line.
        fs::rename(&new, &self.path)?;
        (self.file, self.written) = (file, self.lines.len());
        Ok(())
    }
}

/// The line as it stands in the file.
fn summed(line: &str) -> String {
    format!("{:08x} {line}\n", crc32fast::hash(line.as_bytes()))
}

/// Returns the line without its checksum, or None if it is damaged.
fn content(written: &str) -> Option<&str> {
    // An earlier version has written it.
    if written.starts_with('{') && written.ends_with('}') {
        return Some(written);
    }
    let (sum, line) = written.split_once(' ')?;
    let sum = u32::from_str_radix(sum, 16).ok().filter(|_| sum.len() == 8)?;
    (crc32fast::hash(line.as_bytes()) == sum).then_some(line)
}

fn keep(lines: &mut VecDeque<String>, most: usize, line: &str) {
    while lines.len() >= most.max(1) {
        lines.pop_front();
    }
    lines.push_back(line.to_string());
}

/// The end of the file's content, and the file opened for appending.
fn read(path: &Path) -> io::Result<(File, Vec<u8>)> {
    // Opening a FIFO in its place would wait forever.
    let is_file = fs::symlink_metadata(path).map_or(true, |metadata| metadata.is_file());
    if !is_file {
        return Err(io::Error::other(format!("{} is not a file", path.display())));
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(FILE_MODE).open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(BYTES_MOST)))?;
    let mut found = Vec::new();
    Read::by_ref(&mut file).take(BYTES_MOST).read_to_end(&mut found)?;
    Ok((file, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    const NAME: &str = "chronicle";

    fn open(dir: &TempDir) -> Chronicle {
        Chronicle::open(dir.path(), NAME, 3).expect("it opens")
    }

    fn lines(chronicle: &Chronicle) -> Vec<String> {
        chronicle.lines().map(str::to_string).collect()
    }

    #[test]
    fn the_newest_lines_outlive_the_process() {
        let dir = TempDir::new();
        let mut chronicle = open(&dir);
        for number in 1..=20 {
            chronicle.add(&format!("line {number}")).expect("there is room");
            let text = fs::read_to_string(dir.path().join(NAME)).expect("a file");
            assert!(text.lines().count() <= 6, "{text}");
            assert_eq!(lines(&open(&dir)), lines(&chronicle), "after {number}");
        }
        assert_eq!(lines(&chronicle), ["line 18", "line 19", "line 20"]);
    }

    #[test]
    fn a_damaged_line_is_left_out_and_harms_no_other() {
        let dir = TempDir::new();
        let mut chronicle = open(&dir);
        chronicle.add("whole").expect("there is room");
        chronicle.add("to be damaged").expect("there is room");
        let text = fs::read(dir.path().join(NAME)).expect("a file");
        let torn = String::from_utf8_lossy(&text).replace("to be", "to bE");
        fs::write(dir.path().join(NAME), [torn.as_bytes(), b"{\"of\":\"before\"}\n0123456\xff"].concat())
            .expect("it is written");
        let mut again = open(&dir);
        assert_eq!((lines(&again), again.damaged()), (vec!["whole".into(), "{\"of\":\"before\"}".into()], 2));
        again.add("after").expect("there is room");
        assert_eq!(lines(&open(&dir)), ["whole", "{\"of\":\"before\"}", "after"]);
    }

    #[test]
    fn of_a_huge_file_the_end_is_read() {
        let dir = TempDir::new();
        let text = summed(&"x".repeat(90));
        fs::write(dir.path().join(NAME), text.repeat(60_000)).expect("it is written");
        let mut chronicle = open(&dir);
        assert_eq!(chronicle.lines().count(), 3);
        chronicle.add("new").expect("there is room");
        assert!(fs::metadata(dir.path().join(NAME)).expect("a file").len() < 1_000);
    }

    #[test]
    fn what_is_no_file_is_refused_and_a_link_beside_it_is_not_followed() {
        let dir = TempDir::new();
        fs::create_dir(dir.path().join(NAME)).expect("a folder");
        assert!(Chronicle::open(dir.path(), NAME, 3).is_err());
        let dir = TempDir::new();
        let precious = dir.path().join("precious");
        fs::write(&precious, "kept").expect("it is written");
        std::os::unix::fs::symlink(&precious, dir.path().join("chronicle.new")).expect("a link");
        let mut chronicle = open(&dir);
        (0..9).for_each(|number| chronicle.add(&number.to_string()).expect("there is room"));
        assert_eq!(fs::read_to_string(&precious).expect("a file"), "kept");
    }
}

//! The thread that writes the audit log. Lines come through a queue, so that no call waits for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use tokio::signal::unix::{SignalKind, signal};

use crate::http::{Audit, AuditMessage, audit};

const STDERR: &str = "stderr";

/// The file mode. The audit log shows which callers give orders.
const MODE: u32 = 0o600;

/// Starts the audit log. Nothing is written if no file is named.
pub fn begin(file: Option<&Path>) -> io::Result<Audit> {
    let Some(path) = file else {
        return Ok(Audit::default());
    };
    let (told, reopen, lines) = audit();
    let mut out = Out::open(path)?;
    std::thread::Builder::new().name("eldest-audit".to_string()).spawn(move || out.write_all(&lines))?;
    let mut hangups = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            // A full queue means that the writer lags. The next signal asks it again.
            let _ = reopen.try_send(AuditMessage::Reopen);
        }
    });
    Ok(told)
}

/// The output of lines. Without a file it is stderr.
struct Out {
    path: PathBuf,
    file: Option<File>,
    failed: bool,
}

impl Out {
    fn open(path: &Path) -> io::Result<Out> {
        let file = if path == Path::new(STDERR) { None } else { Some(open(path)?) };
        Ok(Out { path: path.to_path_buf(), file, failed: false })
    }

    /// Writes until all senders are gone.
    fn write_all(&mut self, lines: &Receiver<AuditMessage>) {
        while let Ok(message) = lines.recv() {
            let done = match message {
                AuditMessage::Line(line) => self.write(&line),
                AuditMessage::Reopen => self.reopen(),
            };
            self.tell(done);
        }
    }

    /// Writes the line in one piece, so that lines of several processes do not mix.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        match &mut self.file {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stderr().lock().write_all(line.as_bytes()),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            self.file = Some(open(&self.path)?);
        }
        Ok(())
    }

    /// Reports an error once, until writing succeeds again: a full disk fails at every line.
    fn tell(&mut self, done: io::Result<()>) {
        match done {
            Err(error) if !self.failed => {
                tracing::error!(%error, file = %self.path.display(), "cannot write the audit log: entries are lost");
                self.failed = true;
            }
            Err(_) => {}
            Ok(()) => self.failed = false,
        }
    }
}

/// Opens the file. FIFOs and folders are refused: opening a FIFO waits for a reader, which may never come, and the
/// system's message for a folder does not say what is wrong.
fn open(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path).map(|metadata| metadata.file_type());
    if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_char_device()) {
        return Err(io::Error::other(format!("{} is not a file", path.display())));
    }
    OpenOptions::new().create(true).append(true).mode(MODE).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("eldest-audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let fifo = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        for path in [&folder, &fifo] {
            let error = open(path).expect_err("it is no file");
            assert!(error.to_string().ends_with("is not a file"), "{error}");
        }
        assert!(open(&folder.join("file")).is_ok());
        std::fs::remove_dir_all(&folder).expect("it was made here");
    }
}

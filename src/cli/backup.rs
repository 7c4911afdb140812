//! `eldest backup`: writes the whole state to one file, which `eldest restore` reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use super::client::Target;
use super::exit::Failure;
use super::out::{clean, note};
use super::output::Output;
use super::progress::Progress;
use crate::storage::node::backup::{BackupHead, BackupReader, BadBackup, Draft};

#[derive(Debug, Parser)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  eldest backup --out prod.backup
  eldest backup --level linear --out prod.backup
  eldest backup | gzip > prod.backup.gz
  eldest backup check prod.backup

The file gets its name after the whole backup has arrived and been checked. A device or a pipe is written as data
arrives. `check` exits with 5 if a backup is damaged. With --json and --out, stdout says what the backup contains; without
--out the backup itself is on stdout, and a note on stderr says it."
)]
pub struct BackupArgs {
    #[command(subcommand)]
    order: Option<Order>,
    /// File to write; without it, or with `-`, stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// local: the state of the node that is called; linear or leader: the state of the leader
    #[arg(long, default_value = "local", value_parser = ["local", "leader", "linear"])]
    level: String,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Order {
    /// Check a backup file completely, and print what it contains
    #[command(
        after_help = "Example:\n  eldest backup check prod.backup\n\nExits with 0 if the backup is intact, with \
            5 if not."
    )]
    Check {
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

pub async fn run(args: &BackupArgs) -> Result<(), Failure> {
    if let Some(Order::Check { file, output }) = &args.order {
        let head = checked(file)?;
        return output.done(&json!(head), || format!("{} is intact: {}", file.display(), contents(&head)));
    }
    let to = args.out.as_deref().filter(|path| *path != Path::new("-"));
    let path = to.unwrap_or(Path::new("-"));
    let place = to.map_or(Ok(Place::Stdout), Place::of).map_err(Failure::file(path))?;
    let taken = match &place {
        Place::Stdout => args.take(&mut io::stdout(), Failure::output, None).await?,
        Place::File(file) => {
            let mut draft = Draft::begin(file).map_err(Failure::file(path))?;
            let taken = args.take(&mut draft, Failure::file(path), Some(Progress::begin())).await?;
            draft.keep().map_err(Failure::file(path))?;
            taken
        }
        Place::Device => {
            let mut out = OpenOptions::new().write(true).open(path).map_err(Failure::file(path))?;
            args.take(&mut out, Failure::file(path), None).await?
        }
    };
    if args.output.is_for_scripts() && !matches!(place, Place::Stdout) {
        return args.output.done(&taken.json(path), String::new);
    }
    let BackupHead { rows, cluster, index, node, .. } = taken.head;
    note(&format!("{} of cluster {cluster} at index {index}, by node {node}", counted(rows)));
    Ok(())
}

/// The number of rows, in words.
pub fn counted(rows: u64) -> String {
    if rows == 1 { "1 row".to_string() } else { format!("{rows} rows") }
}

/// What a backup contains, for people.
fn contents(head: &BackupHead) -> String {
    let BackupHead { rows, cluster, mode, index, epoch, node, time, .. } = head;
    clean(&format!(
        "{} of cluster {cluster} ({mode}) at index {index} in epoch {epoch}, by node {node} at {time}",
        counted(*rows)
    ))
}

/// A backup that has arrived as a whole.
struct Taken {
    head: BackupHead,
    bytes: u64,
}

impl Taken {
    fn json(&self, path: &Path) -> Value {
        let mut said = json!(self.head);
        said["file"] = path.display().to_string().into();
        said["bytes"] = self.bytes.into();
        said
    }
}

/// Writes a backup of the leader's state to this new file, and checks it.
pub async fn take_to(target: &Target, path: &Path) -> Result<BackupHead, Failure> {
    let (level, target, output) = ("linear".to_string(), target.clone(), Output::default());
    let args = BackupArgs { order: None, out: None, level, output, target };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(Failure::file(path))?;
    Ok(args.take(&mut file, Failure::file(path), None).await?.head)
}

impl BackupArgs {
    /// Writes the pieces as they come. Returns after all of the backup was checked.
    async fn take(
        &self,
        out: &mut impl Write,
        failed: impl Fn(io::Error) -> Failure,
        mut progress: Option<Progress>,
    ) -> Result<Taken, Failure> {
        let path = format!("/v1/backup?level={}", self.level);
        let mut answer = self.target.caller()?.download(&self.target.url, &path).await?;
        let mut reader = BackupReader::only_checking();
        let url = answer.url().to_string();
        let mut bytes = 0;
        while let Some(piece) = answer.next().await? {
            reader.take(&piece).map_err(|error| damaged(&url, &error))?;
            out.write_all(&piece).map_err(&failed)?;
            bytes += piece.len() as u64;
            if let Some(progress) = &mut progress {
                progress.bytes("received", bytes, None);
            }
        }
        out.flush().map_err(&failed)?;
        let (head, _) = reader.finish(true).map_err(|error| damaged(&url, &error))?;
        Ok(Taken { head, bytes })
    }
}

/// The kind of file that a path leads to.
enum Place {
    /// The file is this process's stdout. Opening it again would empty a file that stdout appends to.
    Stdout,
    /// A file that exists or will be created. It is replaced by a rename, and a link to it stays.
    File(PathBuf),
    /// A device or a pipe. A rename would put a file in its place, and `/dev/null` would be gone for every program.
    Device,
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        if fs::symlink_metadata(path).is_err() {
            return Ok(Place::File(path.to_path_buf()));
        }
        // A link to a file that does not exist is refused.
        let found = fs::metadata(path)?;
        let stdout = rustix::fs::fstat(io::stdout())?;
        if (found.dev(), found.ino()) == (stdout.st_dev, stdout.st_ino) {
            return Ok(Place::Stdout);
        }
        if found.is_file() { Ok(Place::File(fs::canonicalize(path)?)) } else { Ok(Place::Device) }
    }
}

/// Checks a whole backup file without holding it in memory.
pub fn checked(path: &Path) -> Result<BackupHead, Failure> {
    let file = File::open(path).map_err(Failure::file(path))?;
    let all = file.metadata().ok().filter(fs::Metadata::is_file).map(|file| file.len());
    let (mut progress, mut bytes) = (Progress::begin(), 0);
    let mut file = BufReader::with_capacity(256 << 10, file);
    let mut reader = BackupReader::only_checking();
    let name = path.display().to_string();
    loop {
        let piece = file.fill_buf().map_err(Failure::file(path))?;
        if piece.is_empty() {
            break;
        }
        reader.take(piece).map_err(|error| damaged(&name, &error))?;
        let length = piece.len();
        file.consume(length);
        bytes += length as u64;
        progress.bytes("checked", bytes, all);
    }
    reader.finish(true).map(|(head, _)| head).map_err(|error| damaged(&name, &error))
}

fn damaged(what: &str, error: &BadBackup) -> Failure {
    Failure::Damaged { what: vec![format!("{what}: {error}")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> BackupHead {
        let head = r#"eldest-backup 1 {"cluster":"prod","cluster_id":null,"mode":"safe","node":1,"index":12,
            "epoch":"7.1","time":"2026-01-01T00:00:00Z","digest":"0","rows":3}"#;
        BackupHead::read(head).expect("a head")
    }

    #[test]
    fn people_get_a_sentence() {
        let expected =
            "3 rows of cluster prod (safe) at index 12 in epoch 7.1, by node 1 at 2026-01-01T00:00:00Z";
        assert_eq!(contents(&head()), expected);
    }

    #[test]
    fn scripts_get_what_the_backup_contains() {
        let head = head();
        let expected = json!({"cluster": "prod", "cluster_id": null, "mode": "safe", "node": 1, "index": 12,
            "epoch": "7.1", "time": "2026-01-01T00:00:00Z", "digest": "0", "rows": 3});
        assert_eq!(json!(head), expected);
        let taken = Taken { head, bytes: 300 }.json(Path::new("prod.backup"));
        assert_eq!(
            (&taken["file"], &taken["bytes"], &taken["rows"]),
            (&json!("prod.backup"), &json!(300), &json!(3))
        );
    }
}

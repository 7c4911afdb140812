//! `eldest backup`: writes the whole state to one file, which `eldest restore` reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use super::client::Target;
use super::exit::Failure;
use super::out::{note, print};
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
arrives. `check` exits with 5 if a backup is damaged."
)]
pub struct BackupArgs {
    #[command(subcommand)]
    order: Option<Order>,
    /// File to write; without it, or with `-`, stdout
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// local: the state of the node that is called; linear or leader: the state of the leader
    #[arg(long, default_value = "local", value_parser = ["local", "leader", "linear"])]
    level: String,
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
    },
}

pub async fn run(args: &BackupArgs) -> Result<(), Failure> {
    if let Some(Order::Check { file }) = &args.order {
        let head = checked(file)?;
        return print(&serde_json::to_string(&head).unwrap_or_default());
    }
    let to = args.out.as_deref().filter(|path| *path != Path::new("-"));
    let path = to.unwrap_or(Path::new("-"));
    let head = match to.map_or(Ok(Place::Stdout), Place::of).map_err(Failure::file(path))? {
        Place::Stdout => args.take(&mut io::stdout(), Failure::output).await?,
        Place::File(file) => {
            let mut draft = Draft::begin(&file).map_err(Failure::file(path))?;
            let head = args.take(&mut draft, Failure::file(path)).await?;
            draft.keep().map_err(Failure::file(path))?;
            head
        }
        Place::Device => {
            let mut out = OpenOptions::new().write(true).open(path).map_err(Failure::file(path))?;
            args.take(&mut out, Failure::file(path)).await?
        }
    };
    let BackupHead { rows, cluster, index, node, .. } = head;
    note(&format!("{rows} rows of cluster {cluster} at index {index}, by node {node}"));
    Ok(())
}

/// Writes a backup of the leader's state to this new file, and checks it.
pub async fn take_to(target: &Target, path: &Path) -> Result<BackupHead, Failure> {
    let args = BackupArgs { order: None, out: None, level: "linear".to_string(), target: target.clone() };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(Failure::file(path))?;
    args.take(&mut file, Failure::file(path)).await
}

impl BackupArgs {
    /// Writes the pieces as they come. Returns the head of the backup after all of it was checked.
    async fn take(
        &self,
        out: &mut impl Write,
        failed: impl Fn(io::Error) -> Failure,
    ) -> Result<BackupHead, Failure> {
        let path = format!("/v1/backup?level={}", self.level);
        let mut answer = self.target.caller()?.download(&self.target.url, &path).await?;
        let mut reader = BackupReader::only_checking();
        let url = answer.url().to_string();
        while let Some(piece) = answer.next().await? {
            reader.take(&piece).map_err(|error| damaged(&url, &error))?;
            out.write_all(&piece).map_err(&failed)?;
        }
        out.flush().map_err(&failed)?;
        reader.finish(true).map(|(head, _)| head).map_err(|error| damaged(&url, &error))
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
    }
    reader.finish(true).map(|(head, _)| head).map_err(|error| damaged(&name, &error))
}

fn damaged(what: &str, error: &BadBackup) -> Failure {
    Failure::Damaged { what: vec![format!("{what}: {error}")] }
}

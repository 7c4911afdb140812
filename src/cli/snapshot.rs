//! `eldest snapshot`: a node's newest state on disk for people and scripts, also while the node runs.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use super::exit::Failure;
use super::out::{Out, note};
use super::output::Output;
use super::progress::{bytes_in, timed};
use super::table::Table;
use crate::storage::snapshot::{ChainFile, Inspection, SnapshotError, inspect};
use crate::types::Index;

/// The folder in a data directory.
const FOLDER: &str = "snapshots";

const CAT_EXAMPLE: &str = "Example:\n  eldest snapshot cat /var/lib/eldest | grep '^doc '";

const VERIFY_EXAMPLE: &str = "Example:\n  eldest snapshot verify /var/lib/eldest\n\nExits with 0 if everything \
    is intact, with 5 if not. With --json, stderr then has one object, which lists the damage.";

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest snapshot cat /var/lib/eldest
  eldest snapshot verify /var/lib/eldest")]
pub struct SnapshotArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the newest state, one value a line
    #[command(after_help = CAT_EXAMPLE)]
    Cat(Directory),
    /// Check every file; exits with 5 if something is damaged
    #[command(after_help = VERIFY_EXAMPLE)]
    Verify {
        #[command(flatten)]
        directory: Directory,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct Directory {
    /// The node's data directory, or the snapshot directory in it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub fn run(args: &SnapshotArgs) -> Result<(), Failure> {
    match &args.action {
        Action::Cat(Directory { directory }) => cat(directory),
        Action::Verify { directory, output } => verify(&directory.directory, output),
    }
}

/// The index that the newest good snapshot of a data directory reaches. Zero without a snapshot. Returns `None` if
/// this is no data directory.
pub fn newest_in(data: &Path) -> Result<Option<Index>, Failure> {
    let folder = data.join(FOLDER);
    if !folder.is_dir() {
        return Ok(None);
    }
    Ok(Some(inspect(&folder)?.newest().map_or(0, |newest| newest.index())))
}

fn look(directory: &Path) -> Result<Inspection, Failure> {
    std::fs::metadata(directory).map_err(Failure::file(directory))?;
    let below = directory.join(FOLDER);
    let folder = if below.is_dir() { &below } else { directory };
    let what = format!("checking {} MiB", bytes_in(folder) >> 20);
    Ok(timed(&what, || inspect(folder))?)
}

fn cat(directory: &Path) -> Result<(), Failure> {
    let found = look(directory)?;
    for flaw in found.bad() {
        note(&format!("unreadable: {flaw}"));
    }
    if found.newest().is_none() {
        return Err(Failure::NothingThere { path: directory.to_path_buf(), what: "snapshot" });
    }
    let mut out = Out::new();
    found.each_line(|line| out.line(line.trim_end_matches('\n')))?;
    out.end()
}

fn verify(directory: &Path, output: &Output) -> Result<(), Failure> {
    let found = look(directory)?;
    if found.newest().is_none() && found.bad().is_empty() && !directory.join(FOLDER).is_dir() {
        return Err(Failure::NothingThere { path: directory.to_path_buf(), what: "snapshot" });
    }
    let damage: Vec<String> = found.bad().iter().map(ToString::to_string).collect();
    output.show(&json(&found, &damage), |_| table(&found))?;
    if damage.is_empty() { Ok(()) } else { Err(Failure::Damaged { what: damage }) }
}

fn json(found: &Inspection, damage: &[String]) -> Value {
    let file = |file: ChainFile| {
        json!({
            "file": file.path.display().to_string(),
            "from": file.from,
            "to": file.boundary.index(),
            "values": file.lines,
            "bytes": file.bytes,
        })
    };
    let files: Vec<Value> = found.chain().map(file).collect();
    json!({ "newest": found.newest().map(|newest| newest.meta.at.to_string()), "files": files, "damage": damage })
}

fn table(found: &Inspection) -> String {
    let mut table = Table::new(["FROM", "TO", "VALUES", "BYTES", "FILE"]);
    for file in found.chain() {
        let path = file.path.display().to_string();
        let to = file.boundary.index().to_string();
        table.row([file.from.to_string(), to, file.lines.to_string(), file.bytes.to_string(), path]);
    }
    let newest =
        found.newest().map_or("no snapshot".to_string(), |newest| format!("newest: {}", newest.meta.at));
    format!("{table}{newest}")
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Failure {
        match error {
            SnapshotError::Bad(flaw) => Failure::Damaged { what: vec![flaw.to_string()] },
            other => Failure::Storage(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_read_a_folder_without_a_snapshot() {
        let folder = std::env::temp_dir().join(format!("eldest-no-snapshot-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let found = look(&folder).expect("it can be read");
        let expected = json!({"newest": null, "files": [], "damage": ["x"]});
        assert_eq!(json(&found, &["x".to_string()]), expected);
        assert!(table(&found).ends_with("no snapshot"));
        std::fs::remove_dir(&folder).expect("removed");
    }
}

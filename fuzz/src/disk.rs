//! Files: those that a node reads when it starts, and those that another node sends to it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use eldest_core::protocol::{Mode, Settings};
use eldest_core::replica::{In, Replica};
use eldest_core::types::{Boot, NodeId, Now, Time, WallTime};
use eldest_storage::files::{Files, Simulated};
use eldest_storage::node::{load, starting};
use eldest_storage::snapshot::Snapshots;
use eldest_storage::{Opened, Options, line, open};

use crate::sums;

const ME: NodeId = NodeId(2);

/// A line that can be read is written again as the same record.
pub fn log_line(bytes: &[u8]) {
    let text = sums::log_lines(bytes, 7);
    let mut chain = 7;
    for text in text.split_inclusive(|byte| *byte == b'\n') {
        let _ = (line::checksum_in(text), line::position_in(text));
        let Ok((record, sum)) = line::decode(text, chain) else { return };
        let mut again = Vec::new();
        let written = line::encode(&record, chain, &mut again);
        assert!(line::decode(&again, chain) == Ok((record, written)), "another record comes back");
        chain = sum;
    }
}

/// A snapshot that arrives in pieces and is read into a store.
pub fn snapshot(bytes: &[u8]) {
    let (piece, text) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let disk = Simulated::new(1);
    let files = disk.files();
    let folder = Path::new("/snapshots");
    files.make_dirs(folder).expect("an empty disk");
    let (snapshots, _) = Snapshots::open(&files, folder).expect("an empty folder");
    let mut importer = snapshots.importer().expect("room");
    for piece in sums::snapshot(text).chunks(usize::from(piece) + 1) {
        if importer.write(piece).is_err() {
            return;
        }
    }
    if let Ok(incoming) = importer.finish() {
        for mode in [Mode::Safe, Mode::Available] {
            if let Ok(store) = load(&incoming, mode) {
                let _ = (store.digest(), store.bytes());
            }
        }
    }
}

/// A directory in which one file is replaced by the input. If the directory opens, the node starts.
pub fn directory(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let disk = INTACT.fork(1);
    let paths: Vec<PathBuf> = disk.image().into_keys().filter(|path| !path.ends_with("lock")).collect();
    let path = &paths[usize::from(*choice) % paths.len()];
    let text = mended(path, text);
    disk.damage(path, |bytes| *bytes = text).expect("it is there");
    for mode in [Mode::Safe, Mode::Available] {
        start(&disk.fork(2), mode);
    }
}

fn mended(path: &Path, text: &[u8]) -> Vec<u8> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match path.extension().and_then(|end| end.to_str()) {
        Some("snap") => sums::snapshot(text),
        Some("log") => {
            let head = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
            let (head, lines) = text.split_at(head);
            [&sums::sealed(head)[..], b"\n", &sums::log_lines(lines, 0)].concat()
        }
        _ if name == "identity" => sums::identity(text),
        _ => sums::sealed(text),
    }
}

fn start(disk: &Simulated, mode: Mode) {
    let Ok(Opened { recovered, snapshots, .. }) = open(&Options { mode, ..options(disk.files()) }) else {
        return;
    };
    let settings = Settings { mode, ..Settings::lan(ME, vec![NodeId(1), ME, NodeId(3)]) };
    let Ok(start) = starting(settings, 10, recovered, &snapshots) else { return };
    let at = |us| Now { mono: Time(us), wall: WallTime(1_796_000_000_000_000 + us) };
    let mut replica = Replica::new(start, at(1));
    replica.handle(at(1_000_000), In::Tick);
}

fn options(files: Files) -> Options {
    let options = Options::new(Path::new("/node"), "fixture", ME, Boot(1));
    Options { files, adopt_copy: true, segment_bytes: 1024, ..options }
}

/// The directory that the fixture tests open, with all files in memory.
static INTACT: LazyLock<Simulated> = LazyLock::new(|| {
    let disk = Simulated::new(1);
    let files = disk.files();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/disk-v1");
    copy(&files, &source, Path::new("/node"));
    disk
});

fn copy(files: &Files, from: &Path, to: &Path) {
    files.make_dirs(to).expect("room");
    for entry in std::fs::read_dir(from).expect("the fixture") {
        let path = entry.expect("the fixture").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(files, &path, &target);
        } else {
            let file = files.create(&target).expect("room");
            file.write_at(&std::fs::read(&path).expect("the fixture"), 0).expect("room");
        }
    }
}

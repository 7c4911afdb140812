//! A folder that is removed if its test passes, and stays if it fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Named after the test: its thread carries its name.
    pub fn new() -> Folder {
        let test = std::thread::current().name().unwrap_or("cluster").replace("::", "-");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{test}-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the folder for a test's files");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // A folder that cannot be removed does no harm.
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

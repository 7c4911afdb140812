//! A small disk for one node, which can be filled.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::skip::{left_out, system};

const SKIP: &str = "ELDEST_SKIP_TMPFS";
const NEEDED: &str = "a test of full disks mounts a tmpfs; set ELDEST_SKIP_TMPFS=1 to leave it out";

#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns None if such tests are left out here.
    pub fn mount(folder: &Path, mebibytes: u64) -> Option<SmallDisk> {
        if left_out(SKIP, "a small disk of its own") {
            return None;
        }
        fs::create_dir_all(folder).expect("a place to mount at");
        let size = format!("size={mebibytes}m");
        let path = folder.to_str().expect("our own path is text");
        system(&["mount", "-t", "tmpfs", "-o", &size, "eldest-it", path], NEEDED);
        Some(SmallDisk(folder.to_path_buf()))
    }

    pub fn path(&self) -> PathBuf {
        self.0.clone()
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Takes all the room that is left.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.ballast()).expect("the ballast");
        for size in [1 << 20, 4096, 1] {
            let block = vec![0; size];
            loop {
                match file.write_all(&block) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    pub fn make_room(&self) {
        fs::remove_file(self.ballast()).expect("the ballast is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The unmount is lazy: the processes on the disk have ended, but a developer who looks at a failed
        // test may have a shell in it.
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

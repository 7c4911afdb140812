//! The files of certificates: each certificate has two files, and only the owner can read the key.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::issue::{Authority, Issued};
use crate::cli::exit::Failure;

/// The bound on certificates of one name in one folder. No certificate is renewed more often.
const RENEWALS_MOST: u32 = 10_000;

#[derive(Debug)]
pub struct Folder<'a>(&'a Path);

impl<'a> Folder<'a> {
    pub fn new(path: &'a Path) -> Folder<'a> {
        Folder(path)
    }

    fn path(&self, stem: &str, extension: &str) -> PathBuf {
        self.0.join(format!("{stem}.{extension}"))
    }

    fn is_free(&self, stem: &str) -> bool {
        !self.path(stem, "crt").exists() && !self.path(stem, "key").exists()
    }

    /// Checks that no file of these names exists, before anything is made: a folder with half of the files would be
    /// worse than none.
    pub fn must_be_free(&self, mut stems: impl Iterator<Item = String>) -> Result<(), Failure> {
        match stems.find(|stem| !self.is_free(stem)) {
            None => Ok(()),
            Some(stem) => {
                let why = "already exists and is not overwritten: use another --dir";
                Err(Failure::Certificate { why: format!("{}: {why}", self.path(&stem, "crt").display()) })
            }
        }
    }

    /// This name, or the first free name with a number behind it. Existing files stay until the new ones are in use.
    pub fn free(&self, stem: &str) -> String {
        let numbered = (2..RENEWALS_MOST).map(|number| format!("{stem}-{number}"));
        let mut names = std::iter::once(stem.to_string()).chain(numbered);
        names.find(|name| self.is_free(name)).unwrap_or_else(|| stem.to_string())
    }

    /// Returns the paths of the two files.
    pub fn write(&self, stem: &str, issued: &Issued) -> Result<Value, Failure> {
        fs::create_dir_all(self.0).map_err(Failure::file(self.0))?;
        let (key, certificate) = (self.path(stem, "key"), self.path(stem, "crt"));
        create(&key, &issued.key)?;
        create(&certificate, &issued.certificate)?;
        Ok(json!({ "certificate": certificate.display().to_string(), "key": key.display().to_string() }))
    }

    pub fn authority(&self) -> Result<Authority, Failure> {
        let read = |extension| {
            let path = self.path("ca", extension);
            fs::read_to_string(&path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => Failure::NothingThere {
                    path: self.0.to_path_buf(),
                    what: "CA: `eldest cert init` makes one",
                },
                _ => Failure::File { path, error },
            })
        };
        Authority::read(&read("crt")?, &read("key")?)
    }
}

fn create(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
    .map_err(Failure::file(path))
}

//! The files of the repository: those that git tracks and those that it would track, so that a new file is
//! checked before it is added.

use std::path::Path;
use std::process::Command;

use crate::source::Source;

#[derive(Debug)]
pub struct Repo {
    /// Path and text of every text file, in the order of their paths.
    pub texts: Vec<(String, String)>,
    others: Vec<String>,
}

impl Repo {
    pub fn read() -> Repo {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut repo = Repo { texts: Vec::new(), others: Vec::new() };
        for (path, is_text) in listing(&git_listing(root)) {
            let Ok(bytes) = std::fs::read(root.join(&path)) else {
                // The file was deleted and this is not committed yet, or it is a link to a folder:
                // there is nothing to read.
                continue;
            };
            if is_text {
                repo.texts.push((path, String::from_utf8_lossy(&bytes).into_owned()));
            } else {
                repo.others.push(path);
            }
        }
        // A listing that lost its files would pass every check.
        assert!(repo.text("Cargo.toml").is_some(), "Cargo.toml:1: git does not list it; run in a checkout");
        repo
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.iter().find(|(name, _)| name == path).map(|(_, text)| text.as_str())
    }

    pub fn paths(&self) -> Vec<String> {
        self.texts.iter().map(|(path, _)| path).chain(&self.others).cloned().collect()
    }

    /// The Rust files below `folder`.
    pub fn sources(&self, folder: &str) -> Vec<Source> {
        let wanted = |path: &str| path.starts_with(folder) && path.ends_with(".rs");
        let files: Vec<_> = self.texts.iter().filter(|(path, _)| wanted(path)).cloned().collect();
        Source::all(&files)
    }

    /// The code of the binary and of the client library.
    pub fn product(&self) -> Vec<Source> {
        [self.sources("src/"), self.sources("crates/")].concat()
    }

    pub fn code(&self) -> Vec<Source> {
        [self.product(), self.sources("tests/")].concat()
    }
}

fn git_listing(root: &Path) -> String {
    let arguments = ["ls-files", "-z", "--eol", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.expect("git must be installed: it lists the files to check");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The path, and whether git considers the file text: `-text` marks bytes, found or set by an attribute.
fn listing(output: &str) -> Vec<(String, bool)> {
    let entry = |entry: &str| {
        let (kind, path) = entry.split_once('\t')?;
        Some((path.to_string(), !kind.contains("w/-text") && !kind.contains("attr/-text")))
    };
    let mut found: Vec<_> = output.split('\0').filter_map(entry).collect();
    found.sort();
    found.dedup();
    found
}

mod tests {
    use super::*;

    #[test]
    fn git_says_what_is_text() {
        let output = "i/lf w/lf attr/ \tb c.rs\0i/ w/none attr/ \ta.md\0i/-text w/-text attr/ \td.png\0\
                      i/lf w/lf attr/-text \te.log\0";
        let expected = [("a.md", true), ("b c.rs", true), ("d.png", false), ("e.log", false)];
        assert_eq!(listing(output), expected.map(|(path, text)| (path.to_string(), text)));
    }

    #[test]
    fn this_file_is_in_the_repository() {
        let repo = Repo::read();
        assert!(repo.text("tests/tidy/tree.rs").is_some());
        assert!(repo.sources("tests/tidy/").iter().any(|source| source.path == "tests/tidy/main.rs"));
    }
}

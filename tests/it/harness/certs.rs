//! Certificates of a cluster, as `eldest cert init` makes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use eldest_tls::ClientFiles;

use super::run::eldest;

#[derive(Clone, Debug)]
pub struct Certs {
    folder: PathBuf,
    topology: PathBuf,
}

fn done(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
}

impl Certs {
    pub fn init(topology: &Path, folder: PathBuf) -> Certs {
        let certs = Certs { folder, topology: topology.to_path_buf() };
        done(&certs.cert(&["init"], true));
        certs
    }

    /// `eldest cert` with these words, for this folder.
    pub fn cert(&self, words: &[&str], of_the_topology: bool) -> Output {
        let (folder, topology) = (self.folder.to_string_lossy(), self.topology.to_string_lossy());
        let mut all = [&["cert"], words, &["--dir", &*folder]].concat();
        if of_the_topology {
            all.extend(["--topology", &*topology]);
        }
        eldest(&all)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The table of a node's configuration.
    pub fn table(&self, id: u32, more: &str) -> String {
        let path = |name: String| self.path(&name).display().to_string();
        let (ca, cert, key) =
            (path("ca.crt".into()), path(format!("node-{id}.crt")), path(format!("node-{id}.key")));
        format!("\n[tls]\nca_file = {ca:?}\ncert_file = {cert:?}\nkey_file = {key:?}\n{more}\n")
    }

    /// A certificate for a client, by its own name.
    pub fn client(&self, name: &str) -> String {
        done(&self.cert(&["client", name], false));
        format!("client-{name}")
    }

    /// Replaces a node's certificate by a new one.
    pub fn renew(&self, id: u32) {
        done(&self.cert(&["node", &id.to_string()], true));
        for extension in ["key", "crt"] {
            let new = self.path(&format!("node-{id}-2.{extension}"));
            fs::rename(new, self.path(&format!("node-{id}.{extension}"))).expect("the new file");
        }
    }

    /// The files of a client that trusts this CA and shows this certificate.
    pub fn files(&self, shown: Option<&str>) -> ClientFiles {
        let path = |extension| shown.map(|shown| self.path(&format!("{shown}.{extension}")));
        ClientFiles { ca: Some(self.path("ca.crt")), cert: path("crt"), key: path("key") }
    }
}

//! The errors that prevent the start of a development cluster.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug)]
pub enum DevError {
    File { path: PathBuf, error: io::Error },
    Taken { address: SocketAddr, error: io::Error },
    NoSuchPort { base: u16, nodes: u32 },
    OtherSize { folder: PathBuf, formed: u32 },
    ForeignFolder { path: PathBuf },
    NoChild { name: String, error: io::Error },
    NoSignals(io::Error),
}

impl DevError {
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> DevError {
        let path = path.into();
        move |error| DevError::File { path, error }
    }
}

impl fmt::Display for DevError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DevError::File { path, error } => write!(f, "{}: {error}", path.display()),
            DevError::Taken { address, error } => {
                write!(f, "cannot use {address} ({error}); choose other ports with --base-port")
            }
            DevError::NoSuchPort { base, nodes } => {
                write!(
                    f,
                    "there are fewer than {nodes} ports from {base} upwards; choose a lower --base-port"
                )
            }
            DevError::OtherSize { folder, formed } => {
                let folder = folder.display();
                write!(
                    f,
                    "{folder} contains a cluster of {formed} nodes; use --nodes {formed} or another folder"
                )
            }
            DevError::ForeignFolder { path } => {
                write!(f, "{}: not created by `eldest dev`; use another folder", path.display())
            }
            DevError::NoChild { name, error } => write!(f, "cannot start {name}: {error}"),
            DevError::NoSignals(error) => write!(f, "cannot install signal handlers: {error}"),
        }
    }
}

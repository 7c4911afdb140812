//! `eldest cert`: creates a certificate authority for clusters without one, issues certificates for nodes and
//! clients, and shows the contents of a certificate.
//!
//! Keys are made on this machine, and are written only to files that only the owner can read. No file is ever
//! overwritten.

mod files;
mod issue;
mod show;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use serde_json::{Value, json};

use super::exit::Failure;
use super::output::Output;
use crate::config::{Config, Flags, MemberSettings, Mistakes, Sources, Wrong, WrongTopology};
use files::Folder;
use issue::Authority;

/// About as long as a machine is kept, and short enough that people remember the renewal.
const NODE_DAYS: u32 = 825;

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest cert init --topology topology.json --dir certs
  eldest cert node 4 --topology topology.json --dir certs
  eldest cert client backup --dir certs
  eldest cert show certs/node-1.crt

Do not keep ca.key on a node: anyone who has it can issue certificates for new nodes.")]
pub struct CertArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a CA, and a certificate for each node of a topology
    #[command(after_help = "Example:\n  eldest cert init --topology topology.json --dir certs")]
    Init {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        into: Into,
        #[command(flatten)]
        output: Output,
    },
    /// Issue or reissue a certificate for one node
    #[command(after_help = "Example:\n  eldest cert node 4 --topology topology.json --dir certs")]
    Node {
        /// Its id in the topology
        id: u32,
        #[command(flatten)]
        of: Of,
        /// An additional address or host name of the node; may be repeated
        #[arg(long = "name", value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        into: Into,
        #[command(flatten)]
        output: Output,
    },
    /// Issue a certificate for a client
    #[command(after_help = "Example:\n  eldest cert client backup --dir certs")]
    Client {
        /// Name of the client
        name: String,
        #[command(flatten)]
        into: Into,
        #[command(flatten)]
        output: Output,
    },
    /// Print the owner, names and expiry of a certificate
    #[command(after_help = "Example:\n  eldest cert show certs/node-1.crt")]
    Show {
        /// A certificate in PEM
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The topology file: the nodes of the cluster and their addresses
    #[arg(long, env = "ELDEST_TOPOLOGY", value_name = "FILE")]
    topology: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Into {
    /// Directory of the CA, where the files are written
    #[arg(long, value_name = "DIR", default_value = "certs")]
    dir: PathBuf,
    /// Validity of the certificates in days
    #[arg(long, default_value_t = NODE_DAYS, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
}

pub fn run(args: &CertArgs) -> Result<(), Failure> {
    match &args.what {
        What::Init { of, into, output } => init(&of.topology, into, output),
        What::Node { id, of, names, into, output } => node(*id, &of.topology, names, into, output),
        What::Client { name, into, output } => client(name, into, output),
        What::Show { file, output } => show::show(file, output),
    }
}

fn init(topology: &Path, into: &Into, output: &Output) -> Result<(), Failure> {
    let config = read(topology, None)?;
    let folder = Folder::new(&into.dir);
    let stems = config.members.iter().map(stem);
    folder.must_be_free(stems.chain(["ca".to_string()]))?;
    let authority = Authority::new(&config.cluster_name)?;
    let issue = |member| authority.node(&config.cluster_name, member, &[], into.days);
    let issued: Result<Vec<_>, Failure> =
        config.members.iter().map(|member| Ok((member, issue(member)?))).collect();
    // Nothing is written before all is made.
    let issued = issued?;
    let ca = folder.write("ca", &authority.files())?;
    let mut nodes = Vec::new();
    for (member, files) in &issued {
        nodes.push(written("node", member.id.0.into(), folder.write(&stem(member), files)?));
    }
    let said = json!({ "cluster": config.cluster_name, "ca": ca, "nodes": nodes });
    output.done(&said, || next_steps(&into.dir, &config))
}

/// The paths of two files, with the node or the client that they are for.
fn written(owner: &str, name: Value, mut files: Value) -> Value {
    files[owner] = name;
    files
}

fn node(id: u32, topology: &Path, names: &[String], into: &Into, output: &Output) -> Result<(), Failure> {
    let config = read(topology, Some(u64::from(id)))?;
    let Some(member) = config.member(config.me) else {
        return Err(Failure::NothingThere { path: topology.to_path_buf(), what: "such node" });
    };
    let folder = Folder::new(&into.dir);
    let stem = folder.free(&stem(member));
    let files =
        folder.write(&stem, &folder.authority()?.node(&config.cluster_name, member, names, into.days)?)?;
    output.done(&written("node", id.into(), files), || are_in(&stem, &into.dir))
}

fn client(name: &str, into: &Into, output: &Output) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !(1..=64).contains(&name.len()) || !name.chars().all(plain) || name.starts_with('.') {
        return Err(Failure::Certificate {
            why: format!(
                "{name:?} is not a valid client name: use 1 to 64 characters of a to z, 0 to 9, '-', '_' and '.'"
            ),
        });
    }
    let folder = Folder::new(&into.dir);
    let stem = folder.free(&format!("client-{name}"));
    let files = folder.write(&stem, &folder.authority()?.client(name, into.days)?)?;
    output.done(&written("client", name.into(), files), || are_in(&stem, &into.dir))
}

fn are_in(stem: &str, dir: &Path) -> String {
    format!("{stem}.crt and {stem}.key are in {}", dir.display())
}

/// The topology alone matters here. A topology that does not name its own node is no mistake.
fn read(topology: &Path, node: Option<u64>) -> Result<Config, Failure> {
    let load = |node| {
        let flags = Flags { node, insecure: Some(true), ..Flags::default() };
        crate::config::load(Sources { topology: topology.to_path_buf(), config: None, env: [], flags })
    };
    let mut loaded = load(node);
    if node.is_none() && loaded.is_err() {
        loaded = load(Some(1));
        // The first node may have any id. The mistake lists the ids, so the first one is taken.
        let ids = loaded.as_ref().err().and_then(first_id);
        loaded = ids.map_or(loaded, |first| load(Some(first)));
    }
    loaded.map(|loaded| loaded.config).map_err(Failure::Config)
}

fn first_id(mistakes: &Mistakes) -> Option<u64> {
    mistakes.iter().find_map(|mistake| match &mistake.wrong {
        Wrong::Topology(WrongTopology::NoSuchNode { ids, .. }) => ids.first().map(|id| u64::from(*id)),
        _ => None,
    })
}

fn stem(member: &MemberSettings) -> String {
    format!("node-{}", member.id.0)
}

fn next_steps(dir: &Path, config: &Config) -> String {
    let (dir, nodes) = (dir.display(), config.members.len());
    format!(
        "created a CA and certificates for {nodes} nodes of cluster {cluster} in {dir}

Copy ca.crt, node-ID.crt and node-ID.key to each node, and add to its configuration:

  [tls]
  mode = \"require\"
  ca_file = \"{dir}/ca.crt\"
  cert_file = \"{dir}/node-ID.crt\"
  key_file = \"{dir}/node-ID.key\"

A running cluster moves from plain HTTP to TLS one node at a time, using \"accept\" and \"prefer\":
see docs/security.md.
Clients need ca.crt: eldest status --url https://{first} --ca {dir}/ca.crt
Keep ca.key safe and off the nodes: it issues certificates, and anyone who has it can add nodes.",
        cluster = config.cluster_name,
        first = config.members.first().map(|member| member.address.to_string()).unwrap_or_default(),
    )
}

impl From<rcgen::Error> for Failure {
    fn from(error: rcgen::Error) -> Failure {
        Failure::Certificate { why: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_get_the_paths_of_what_was_written() {
        let dir = std::env::temp_dir().join(format!("eldest-certs-{}", std::process::id()));
        let folder = Folder::new(&dir);
        let issued = Authority::new("shop").and_then(|authority| authority.client("web", 1)).expect("issued");
        let files = folder.write("client-web", &issued).expect("written");
        let path = |name: &str| dir.join(name).display().to_string();
        let expected =
            json!({"client": "web", "certificate": path("client-web.crt"), "key": path("client-web.key")});
        assert_eq!(written("client", "web".into(), files), expected);
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}

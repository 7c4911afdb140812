//! The arguments that say how a node is set up, for the commands `serve` and `check`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::config::{Flags, LogFlags, Sources};

/// This variable is finer than the level of the settings: it sets a level for each part of the program.
pub const FILTER_VARIABLE: &str = "ELDEST_LOG";

/// Variables that belong to the command line itself, and are no settings.
const OWN_VARIABLES: [&str; 7] = [
    "ELDEST_URL",
    "ELDEST_NODES",
    "ELDEST_TOKEN_FILE",
    "ELDEST_CA",
    "ELDEST_CERT",
    "ELDEST_KEY",
    FILTER_VARIABLE,
];

#[derive(Clone, Debug, clap::Args)]
pub struct SourceArgs {
    /// The nodes of the cluster and their addresses (JSON, comments allowed)
    #[arg(long, env = "ELDEST_TOPOLOGY", value_name = "FILE")]
    topology: PathBuf,
    /// Settings (TOML); every key is explained in config/default.toml
    #[arg(long, env = "ELDEST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Id of this node, unless the topology file says it
    #[arg(long, value_name = "ID")]
    node: Option<u64>,
    /// The data directory: log, snapshots and promise
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address to listen on, if not the one in the topology
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// A file with the secret that the nodes share
    #[arg(long, value_name = "FILE")]
    cluster_secret_file: Option<PathBuf>,
    /// A file with the admin token, which admin calls must carry
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// Listen on other than loopback addresses without a secret: anyone who reaches the port can act as a node
    #[arg(long)]
    insecure: bool,
    /// Grants of a call without a token, such as "read docs/public/; watch *", or none
    #[arg(long, value_name = "GRANTS")]
    anonymous: Option<String>,
    /// error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// One JSON object a line, for log collectors
    Json,
}

impl SourceArgs {
    /// The sources, with the process's environment as one of the layers.
    pub fn sources(&self) -> Sources<Vec<(String, String)>> {
        Sources {
            topology: self.topology.clone(),
            config: self.config.clone(),
            env: environment(),
            flags: self.flags(),
        }
    }

    fn flags(&self) -> Flags {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
        let format = |format: Format| match format {
            Format::Text => "text".to_string(),
            Format::Json => "json".to_string(),
        };
        Flags {
            node: self.node,
            data: text(&self.data),
            listen: self.listen.clone(),
            insecure: self.insecure.then_some(true),
            anonymous: self.anonymous.clone(),
            cluster_secret_file: text(&self.cluster_secret_file),
            admin_token_file: text(&self.admin_token_file),
            log: LogFlags { level: self.log_level.clone(), format: self.log_format.map(format) },
        }
    }
}

/// The environment. A variable that is not valid text cannot be a setting, so it is left out.
fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let is_setting = |(name, _): &(String, String)| !OWN_VARIABLES.contains(&name.as_str());
    std::env::vars_os().filter_map(text).filter(is_setting).collect()
}

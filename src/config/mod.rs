//! The settings and the topology that an operator writes, read in layers and checked before anything runs.
//!
//! ```text
//! defaults ─┐
//! --config ─┤ keys: unknown keys,    figment: the highest      ranges, choices, relations,
//! ELDEST_* ─┼ wrong types, each ───▶ layer that has a key ───▶ secrets, addresses ─────────┐
//! flags ────┘ layer by itself        decides ([`Raw`])                                     ├▶ [`Config`]
//! topology ── comments out, JSON with positions ───▶ members, own node ────────────────────┘
//! ```
//!
//! All mistakes are reported at once, each with its place, what is wrong and what would be right. A node that
//! reported one mistake at each start would need as many restarts as there are mistakes. A value that is already
//! reported takes no part in further rules, so that one mistake gives one line.
//!
//! The known keys are the fields of `Raw`, and their types are those of its defaults: there is no second table.
//! Nothing here opens a socket, reads the process environment or prints.
//!
//! Caveats: a syntax error hides other mistakes in the same file, so it is reported alone for that file. Relative
//! paths are relative to the working directory, not to the file that contains them.

mod address;
mod anonymous;
mod areas;
mod check;
mod environment;
mod exposure;
mod files;
mod json;
mod keys;
mod layers;
mod members;
mod mistakes;
mod place;
mod ranges;
mod raw;
mod relations;
mod remarks;
mod secret;
mod secrets;
mod settled;
mod suggest;
mod tls;
mod topology;
mod web;
mod wrong;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use address::{Address, Host};
pub use layers::{Flags, LogFlags};
pub use mistakes::{Mistake, Mistakes};
pub use place::{SettingPlace, Source, Spot};
pub use remarks::ConfigRemark;
pub use secret::{ClusterSecrets, Secret};
pub use secrets::{check_key_file, cluster_secrets};
pub use settled::{
    Anonymous, BackupSettings, Config, HttpLimits, Log, LogFormat, LogLevel, MemberSettings, TlsSettings,
};
pub use wrong::{Want, Wrong, WrongAccess, WrongFile, WrongKey, WrongTopology, WrongValue};

use environment::Environment;
use files::File;
use mistakes::Findings;

/// The inputs of a configuration. The environment is an argument, so that tests share one process.
#[derive(Clone, Debug)]
pub struct Sources<E> {
    pub topology: PathBuf,
    /// The path of the settings file, if one was named. A file that is named and missing is a mistake.
    pub config: Option<PathBuf>,
    /// All variables. Those that do not begin with `ELDEST_` are ignored.
    pub env: E,
    pub flags: Flags,
}

#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// Settings that are allowed, but worth a line in the log.
    pub remarks: Vec<ConfigRemark>,
}

pub fn load<E>(sources: Sources<E>) -> Result<Loaded, Mistakes>
where
    E: IntoIterator<Item = (String, String)>,
{
    let config = sources.config.map(|path| File::read(path, files::CONFIG_MOST));
    let topology = File::read(sources.topology, files::CONFIG_MOST);
    assemble(config, topology, sources.env, sources.flags)
}

/// Builds the configuration from files that were read already.
fn assemble<E>(config: Option<File>, topology: File, env: E, flags: Flags) -> Result<Loaded, Mistakes>
where
    E: IntoIterator<Item = (String, String)>,
{
    let mut findings = Findings::default();
    let env = Environment::read(env, &mut findings);
    let node = flags.chosen_node().or_else(|| env.chosen_node());
    let settings = layers::merge(config, env.values, &flags, &mut findings);
    let topology = topology::read(topology, node, &mut findings);
    let config = check::settle(settings, topology, &mut findings);
    let (config, remarks) = findings.into_result(config)?;
    Ok(Loaded { config, remarks })
}

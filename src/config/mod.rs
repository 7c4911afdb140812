//! What an operator decides: settings and topology, read in layers and checked before anything runs.
//!
//! ```text
//! defaults ─┐
//! --config ─┤ keys: unknown keys,    figment: the highest      ranges, choices, relations,
//! ELDEST_* ─┼ wrong types, each ───▶ layer that has a key ───▶ secrets, addresses ─────────┐
//! flags ────┘ layer by itself        decides ([`Raw`])                                     ├▶ [`Config`]
//! topology ── comments out, JSON with positions ───▶ members, own node ────────────────────┘
//! ```
//!
//! Every mistake is reported at once, each with where it stands, what is wrong and what would be right: a node
//! that names one mistake a start costs as many restarts as there are mistakes. A value that is already reported
//! takes no part in further rules, so that one mistake is one line.
//!
//! The known keys are the fields of [`Raw`], their types those of its defaults: there is no second table.
//! Nothing here opens a socket, reads the process environment or prints.
//!
//! Caveats: a syntax error hides what stands in the same file, so it is reported alone for that file. Relative
//! paths are taken from the working directory, not from the file that names them.

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

/// Where everything comes from. The environment is an argument, so that a test needs no process of its own.
#[derive(Clone, Debug)]
pub struct Sources<E> {
    pub topology: PathBuf,
    /// Named by hand: one that is missing is a mistake.
    pub config: Option<PathBuf>,
    /// All variables; those that do not begin with `ELDEST_` are passed over.
    pub env: E,
    pub flags: Flags,
}

#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// What is allowed and yet worth a line in the log.
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

/// The same with the files at hand.
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

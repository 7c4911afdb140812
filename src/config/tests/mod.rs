//! The configuration as an operator sees it: texts go in, and settings or a list of mistakes come out.

mod files;
mod mutations;
mod precedence;
mod settings;
mod topologies;
mod ugly;

use std::path::PathBuf;

use super::files::File;
use super::{Config, Flags, Loaded, Mistakes, assemble};

/// Three nodes that only this machine can reach, so that no secret is needed.
const LOCAL: &str = r#"{
  "node": {"name": "n1", "id": 1},
  "clusters": [
    {"name": "n1", "ip": "127.0.0.1", "id": 1},
    {"name": "n2", "ip": "127.0.0.2", "id": 2},
    {"name": "n3", "ip": "127.0.0.3", "id": 3}
  ]
}
"#;

/// All inputs with which a node is started.
#[derive(Clone, Debug)]
struct Start {
    config: Option<String>,
    topology: String,
    env: Vec<(String, String)>,
    flags: Flags,
}

impl Default for Start {
    fn default() -> Start {
        Start { config: None, topology: LOCAL.to_string(), env: Vec::new(), flags: Flags::default() }
    }
}

impl Start {
    fn config(text: &str) -> Start {
        Start { config: Some(text.to_string()), ..Start::default() }
    }

    fn topology(text: &str) -> Start {
        Start { topology: text.to_string(), ..Start::default() }
    }

    fn env(pairs: &[(&str, &str)]) -> Start {
        let env = pairs.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        Start { env, ..Start::default() }
    }

    fn run(self) -> Result<Loaded, Mistakes> {
        let file = |name: &str, text: String| File { path: PathBuf::from(name), text: Ok(text) };
        let config = self.config.map(|text| file("config.toml", text));
        assemble(config, file("topology.json", self.topology), self.env, self.flags)
    }

    /// The configuration of a start without mistakes.
    fn good(self) -> Config {
        self.run().unwrap_or_else(|mistakes| panic!("{mistakes}")).config
    }

    fn remarks(self) -> Vec<String> {
        let loaded = self.run().unwrap_or_else(|mistakes| panic!("{mistakes}"));
        loaded.remarks.iter().map(|remark| remark.to_string()).collect()
    }

    /// The lines of a start with mistakes.
    fn bad(self) -> Vec<String> {
        let text = format!("{self:?}");
        match self.run() {
            Ok(_) => panic!("no mistake in {text}"),
            Err(mistakes) => mistakes.iter().map(|mistake| mistake.to_string()).collect(),
        }
    }
}

//! Files that operators write.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use eldest::config::{Flags, Sources, load};

/// A configuration and, after a line of `---`, a topology. A refusal never comes without a message.
pub fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (config, topology) = text.split_once("\n---\n").unwrap_or((&text, TOPOLOGY));
    let (config_path, topology_path) = (FOLDER.join("eldest.toml"), FOLDER.join("topology.json"));
    fs::write(&config_path, config).expect("room");
    fs::write(&topology_path, topology).expect("room");
    let sources = Sources {
        topology: topology_path,
        config: Some(config_path),
        env: Vec::<(String, String)>::new(),
        flags: Flags::default(),
    };
    match load(sources) {
        Ok(loaded) => {
            assert!(loaded.config.members.iter().any(|member| member.id == loaded.config.me));
        }
        Err(mistakes) => {
            let said = mistakes.to_string();
            assert!(!said.trim().is_empty(), "a mistake without a word");
        }
    }
}

const TOPOLOGY: &str = r#"{
  "node": {"name": "n1", "id": 1},
  "clusters": [
    {"name": "n1", "ip": "127.0.0.1", "id": 1},
    {"name": "n2", "ip": "127.0.0.2", "id": 2},
    {"name": "n3", "ip": "127.0.0.3", "id": 3}
  ]
}
"#;

/// The folder is in memory, where the machine has such a file system.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = root.join(format!("eldest-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("room");
    folder
});

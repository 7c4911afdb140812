//! The files in the repository agree with the code.

use std::path::{Path, PathBuf};

use figment::providers::{Format, Toml};

use super::Start;
use crate::config::keys;
use crate::config::raw::{Raw, RawTable};
use crate::config::{Config, Flags, Sources, load};
use crate::protocol::{Settings, Timing};
use crate::types::{NodeId, Span};

const DEFAULT: &str = include_str!("../../../config/default.toml");
const SEED: &str = include_str!("../../../config/seed.toml");
const WAN: &str = include_str!("../../../config/wan.toml");
const EXAMPLE: &str = include_str!("../../../topology.example.json");

fn parse(text: &str) -> RawTable {
    Toml::from_str(text).unwrap()
}

#[test]
fn the_default_file_is_the_defaults() {
    assert_eq!(parse(DEFAULT), Raw::default().table());
}

#[test]
fn every_default_is_explained() {
    let lines: Vec<&str> = DEFAULT.lines().collect();
    for (number, line) in
        lines.iter().enumerate().filter(|(_, line)| line.contains(" = ") && !line.starts_with('#'))
    {
        // A secret and the file that holds it share one explanation.
        let above =
            if line.starts_with("cluster_secret =") || line.starts_with("admin_token =") { 2 } else { 1 };
        assert!(lines[number - above].starts_with('#'), "{line}");
    }
}

#[test]
fn the_other_files_are_their_profiles() {
    for (text, timing) in [(SEED, Timing::seed()), (WAN, Timing::wan())] {
        assert_eq!(Start::config(text).good().timing, timing);
        let (table, defaults) = (parse(text), Raw::default().table());
        for path in keys::paths(&table) {
            assert_ne!(keys::at(&table, &path), keys::at(&defaults, &path), "{path} is the default");
        }
    }
    assert_eq!(Start::default().good().timing, Timing::lan());
    assert_eq!(Start::config(DEFAULT).good().timing, Timing::lan());
}

/// The intervals of heartbeats, the time until a leader counts as dead, declarations, an election, and the search for
/// other leaders.
#[test]
fn the_numbers_of_the_original_design() {
    let config = Start::config(SEED).good();
    let timing = config.timing;
    let spans = [timing.heartbeat, timing.dead_after, timing.declare, timing.window, timing.poll];
    assert_eq!(spans, [30, 60, 5, 30, 60].map(|seconds| Span::millis(seconds * 1000)));
    assert_eq!((config.snapshot_every, config.listen.port), (10, 9000));
}

#[test]
fn without_a_word_the_protocol_has_its_own_settings() {
    let config = Start::default().good();
    let own = config.settings();
    let ids: Vec<NodeId> = own.members.iter().map(|member| member.id).collect();
    assert_eq!(ids, [NodeId(1), NodeId(2), NodeId(3)]);
    assert_eq!(&*own.members[2].address, "127.0.0.3:9000");
    assert_eq!(
        Settings { members: [].into(), peers_prove: true, ..own },
        Settings::lan(NodeId(1), Vec::new())
    );
}

#[test]
fn the_example_is_a_topology() {
    let config = Start { flags: secret_of_the_test(), ..Start::topology(EXAMPLE) }.good();
    assert_eq!((config.cluster_name.as_str(), config.me), ("eldest", NodeId(1)));
    let urls: Vec<String> = config.members.iter().map(|member| member.url()).collect();
    assert_eq!(urls, [10, 11, 12].map(|host| format!("http://192.168.1.{host}:9000")));
}

#[test]
fn files_are_read_from_the_disk() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = load_from(&root.join("topology.example.json"), Some(root.join("config/seed.toml"))).unwrap();
    assert_eq!((config.timing, config.members.len()), (Timing::seed(), 3));
}

#[test]
fn files_that_cannot_be_read_are_mistakes() {
    let missing = PathBuf::from("no/such/file");
    let found = load_from(&missing, Some(missing.clone())).unwrap_err();
    let line = "no/such/file: cannot be read: No such file or directory (os error 2)";
    assert_eq!(found, [line, line]);
    // A folder can be opened, but not read.
    let folder = load_from(Path::new("src"), None).unwrap_err();
    assert!(folder[0].starts_with("src: cannot be read: "), "{folder:?}");
}

fn load_from(topology: &Path, config: Option<PathBuf>) -> Result<Config, Vec<String>> {
    let sources = Sources { topology: topology.to_path_buf(), config, env: [], flags: secret_of_the_test() };
    let lines =
        |mistakes: crate::config::Mistakes| mistakes.iter().map(|mistake| mistake.to_string()).collect();
    load(sources).map(|loaded| loaded.config).map_err(lines)
}

/// Any file with one long line can serve as a secret.
fn secret_of_the_test() -> Flags {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tidy/sizes.txt");
    Flags { cluster_secret_file: Some(file.display().to_string()), ..Flags::default() }
}

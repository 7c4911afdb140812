//! The rooms of a module import one way as well: a file imports from its own room and from rooms
//! below, and from no room above.

use crate::paths::paths;
use crate::source::Source;
use crate::tokens::inline_depths;

/// Modules with rooms. Each line of rooms may import from the lines before it, and not from
/// its neighbours in the line.
const ROOMS: [(&str, &[&[&str]]); 4] = [
    (
        "protocol",
        &[
            &["mutant", "quorum"],
            &["settings", "meta", "durability"],
            &["log", "clock"],
            &["messages"],
            &["ballots", "epochs", "grants", "impasses", "journal", "peers", "progress", "succession"],
            &["core"],
            &["following", "seeking"],
            &["leading"],
            &["node"],
        ],
    ),
    (
        "store",
        &[
            &["encoding"],
            &["access"],
            &["command"],
            &["tables"],
            &["state"],
            &["data", "leases", "merge"],
            &["documents"],
            &["apply"],
            &["quota"],
        ],
    ),
    (
        "replica",
        &[
            &["answer", "feed"],
            &["preparation"],
            &["io"],
            &["snapshots", "versions", "wants"],
            &["pending"],
            &["desk"],
            &["restore", "roles", "state_transfer"],
            &["state"],
        ],
    ),
    (
        "http",
        &[
            &["answer"],
            &["spans", "url"],
            &["access"],
            &["admission"],
            &["request"],
            &["dispatch", "openapi", "peer"],
            &["routes"],
            &["server"],
        ],
    ),
];

pub fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| !source.only_for_tests).flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<String> {
    let of_core = source.path.strip_prefix("crates/core/src/");
    let inside = of_core.or_else(|| source.path.strip_prefix("src/")).unwrap_or_default();
    let mut steps = inside.trim_end_matches(".rs").split('/');
    let (Some(module), Some(room)) = (steps.next(), steps.next()) else {
        return Vec::new();
    };
    let Some((_, floors)) = ROOMS.iter().find(|(name, _)| *name == module).filter(|_| room != "mod") else {
        return Vec::new();
    };
    let Some(own) = floor_of(floors, room) else {
        let place = "give it a place in ROOMS in tests/tidy/rooms.rs";
        return vec![format!("{}:1: {module}/{room} is in no line of rooms; {place}", source.path)];
    };
    let in_room = steps.next().is_some();
    let depths = inline_depths(&source.tokens);
    let mut complaints = Vec::new();
    for path in paths(&source.tokens).into_iter().filter(|path| !source.is_test(path.line)) {
        let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
        let target = match segments.as_slice() {
            ["crate", other, target, ..] if *other == module => *target,
            ["super", target, ..] if !in_room && depths[path.at] == 0 => *target,
            ["super", "super", ..] if depths[path.at] == 0 => "super::super",
            _ => continue,
        };
        if target != room && floor_of(floors, target).is_none_or(|floor| floor >= own) {
            let at = format!("{}:{}", source.path, path.line);
            complaints.push(format!(
                "{at}: {module}/{room} must not import {target}; import from a room below, and name it"
            ));
        }
    }
    complaints.dedup();
    complaints
}

fn floor_of(floors: &[&[&str]], room: &str) -> Option<usize> {
    floors.iter().position(|rooms| rooms.contains(&room))
}

mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&[Source::new(&format!("crates/core/src/{path}"), text)]).len()
    }

    #[test]
    fn what_stands_below_may_be_imported() {
        let text = "use super::log::Log;\nuse crate::types::Text;\nuse crate::store::state::{Store, X};\n\
                    pub(in crate::store) fn f() {}\n#[cfg(test)]\nmod tests { use super::super::a::B; }\n";
        assert_eq!(complaints("store/merge/journal.rs", text), 0);
        assert_eq!(complaints("store/apply.rs", "use super::merge::Merged;"), 0);
        assert_eq!(complaints("store/mod.rs", "pub use apply::Applied;"), 0);
        assert_eq!(complaints("types/mod.rs", "use crate::store::Store;"), 0);
    }

    #[test]
    fn neighbours_and_what_stands_above_may_not() {
        assert_eq!(complaints("store/merge/journal.rs", "use crate::store::data::DocView;"), 1);
        assert_eq!(complaints("store/tables/key.rs", "use crate::store::{state::Store, merge::X};"), 2);
        assert_eq!(complaints("protocol/seeking/claim.rs", "fn f() -> crate::protocol::following::X {}"), 1);
        assert_eq!(complaints("protocol/quorum.rs", "use super::settings::Mode;"), 1);
    }

    #[test]
    fn names_without_a_room_fail() {
        assert_eq!(complaints("store/merge/journal.rs", "use crate::store::Store;"), 1);
        assert_eq!(complaints("store/merge/journal.rs", "use super::super::state::Store;"), 1);
    }

    #[test]
    fn a_room_outside_the_table_fails() {
        assert_eq!(complaints("store/attic/old.rs", ""), 1);
    }
}

//! Style as a test: rules that every reader relies on and the compiler does not check. Run
//! `cargo test --test tidy`.
//!
//! Each check is a pure function from named texts to complaints, so that each has its own tests, which show
//! that it fails on a bad sample. The tests in this file apply the checks to the repository, and print every
//! complaint as `file:line: what is wrong; what to do`.
//!
//! Caveats: this is a tokenizer and not a compiler. A macro that pastes names together, an alias of `crate` or a
//! `#[path]` attribute is beyond it.

mod circles;
mod coming;
mod crates;
mod glossary;
mod imports;
mod licences;
mod map;
mod markers;
mod methods;
mod mutants;
mod names;
mod paths;
mod prose;
mod purity;
mod rooms;
mod rules;
mod sizes;
mod source;
mod strip;
mod text;
mod tokens;
mod tree;

use tree::Repo;

#[test]
fn imports_run_one_way() {
    expect_none(imports::check(&Repo::read().product()));
}

#[test]
fn rooms_import_one_way() {
    expect_none(rooms::check(&Repo::read().product()));
}

#[test]
fn methods_stand_in_their_rooms() {
    expect_none(methods::check(&Repo::read().product()));
}

#[test]
fn files_import_in_no_circle() {
    expect_none(circles::check(&Repo::read().product()));
}

#[test]
fn crates_are_built_with_little() {
    let repo = Repo::read();
    let lock = crates::check_lock(repo.text("Cargo.lock"));
    expect_none([crates::check(&repo.texts), lock].concat());
}

#[test]
fn dependencies_may_be_passed_on() {
    let list = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--quiet"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo has built this test");
    let errors = String::from_utf8_lossy(&list.stderr);
    assert!(list.status.success(), "{errors}");
    let metadata = serde_json::from_slice(&list.stdout).expect("cargo writes JSON");
    let repo = Repo::read();
    let deny = repo.text("deny.toml").unwrap_or_default();
    expect_none([licences::check(deny, &metadata), licences::check_copies(&repo)].concat());
}

#[test]
fn one_name_stands_for_one_thing() {
    expect_none(names::check(&Repo::read().product()));
}

#[test]
fn the_core_is_pure() {
    expect_none(purity::check(&Repo::read().product()));
}

#[test]
fn sizes_only_go_down() {
    let repo = Repo::read();
    let ratchet = repo.text(sizes::RATCHET).unwrap_or_default();
    expect_none(sizes::check(&repo.code(), ratchet));
}

#[test]
fn rule_numbers_resolve_both_ways() {
    let repo = Repo::read();
    expect_none(rules::check(repo.text(rules::PROTOCOL), &repo.code()));
}

#[test]
fn no_leftover_markers() {
    expect_none(markers::check(&Repo::read().code()));
}

#[test]
fn the_map_names_every_file() {
    let repo = Repo::read();
    expect_none(map::check(repo.text(map::MAP), &repo.paths()));
}

#[test]
fn text_files_are_clean() {
    expect_none(text::check(&Repo::read().texts));
}

#[test]
fn the_glossary_lists_what_is_used() {
    let repo = Repo::read();
    expect_none(glossary::check(repo.text(glossary::GLOSSARY), &repo.texts));
}

#[test]
fn prose_is_plain() {
    expect_none(prose::check(&Repo::read().texts));
}

#[test]
fn every_mutant_is_used() {
    expect_none(mutants::check(&Repo::read().code()));
}

#[test]
fn whoever_comes_from_elsewhere_finds_a_test() {
    let repo = Repo::read();
    expect_none(coming::check(repo.text(coming::PAGE), &repo.texts));
}

/// All complaints at once: a gate that shows one at a time is run as often as there are complaints.
fn expect_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "{} complaints:\n{}\n", complaints.len(), complaints.join("\n"));
}

#[test]
#[should_panic(expected = "2 complaints:\na.rs:1: first\nb.rs:2: second\n")]
fn complaints_fail_the_test() {
    expect_none(vec!["a.rs:1: first".to_string(), "b.rs:2: second".to_string()]);
}

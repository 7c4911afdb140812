//! The specification as scripts: one scenario a file in `scripts/`, its first line the claim.
//!
//! `README.md` beside this file says how to read and to write them. With `UPDATE_GOLDEN=1` the tests
//! write down what happens instead of comparing; then read the difference before you believe it.

mod commands;
mod host;
mod inject;
mod network;
mod script;
mod stage;
mod trace;

/// One test a script, and a test that no script is left out.
macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            script::check(stringify!($name));
        })*

        #[test]
        fn every_script_is_played() {
            let listed = std::collections::BTreeSet::from([$(stringify!($name).to_string()),*]);
            let files = std::fs::read_dir(script::folder()).expect("the folder of scripts");
            let names = files.map(|file| file.expect("a file").path());
            let there = names.map(|path| path.file_stem().expect("a name").display().to_string());
            assert_eq!(listed, there.collect());
        }
    };
}

scripts! {
    first_election
}

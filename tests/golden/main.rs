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
    all_start_together
    form_without
    leader_dies
    leader_falls_silent
    elder_returns
    elder_takes_over
    elder_pulls_first
    duelling_claims
    handover
    late_certificate
    one_way_cut
    one_way_cut_inwards
    unheard_follower
    wiped_disk
    doubtful_disk
    resent_and_reordered
    stale_epoch
    same_epoch_other_claim
    conflicting_suffix
    snapshot_catch_up
    minority_leader
    stuck_leader
    linear_read
    lease
    ack_all
    service_down
    dying_elder
    disk_full
    new_format
    divergence
    divergence_undecided
    odd_leader
    paused_leader
    unsynced_restart
    stray_promise
}

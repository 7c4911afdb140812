//! The specification as scripts: one scenario a file in `scripts/`, its first line the claim.
//!
//! `README.md` beside this file says how to read and write them. With `UPDATE_GOLDEN=1` the tests write down
//! what happens instead of comparing; read the difference before you believe it.

extern crate eldest_core as eldest;

mod commands;
mod documents;
mod host;
mod inject;
mod look;
mod network;
mod referee;
mod script;
mod stage;
mod trace;

/// One test for each script, and a test that no script is left out.
macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            script::check(stringify!($name));
        })*

        #[test]
        fn every_script_is_played() {
            let names = [$(stringify!($name),)*];
            let listed = names.map(String::from).into();
            assert_eq!(script::names(), listed);
        }
    };
}

scripts! {
    first_election
    all_start_together
    form_without
    two_die_at_once
    leader_dies
    leader_falls_silent
    paused_leader
    one_way_cut
    one_way_cut_inwards
    unheard_follower
    unconnected_elder
    stuck_leader
    elder_returns
    elder_takes_over
    elder_pulls_first
    dying_elder
    duelling_claims
    lost_approval
    stray_promise
    handover
    handover_with_writes
    late_certificate
    wiped_under_its_leader
    doubtful_disk
    one_node
    late_heartbeat
    five_nodes_split
    unsynced_restart
    resent_and_reordered
    stale_epoch
    same_epoch_other_claim
    conflicting_suffix
    snapshot_catch_up
    linear_read
    lease
    ack_all
    ack_all_handover
    service_down
    disk_full
    new_format
    divergence
    divergence_of_all
    late_third_node
    heir_asks_nobody
    held_elder_waits
    lost_certificate
    wiped_disk
    lost_promise
    one_node_reads
    claim_without_consent
    return_is_quick
    nothing_for_the_dead
    snapshot_after_restart
    divergence_cured
    divergence_undecided
    document_ttl
    document_with_role
    state_full
    odd_leader
    two_blank_nodes
    two_nodes
    minority_leader
    odd_answers_first
    dead_for_the_next
    doubtful_majority
    elder_asks_in_time
    followers_restart
}

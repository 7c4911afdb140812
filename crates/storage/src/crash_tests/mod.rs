//! The power fails, or the process dies, at any operation on any file. Every time the directory opens, is not doubtful, and has
//! one state of this disk: promise, log and snapshot together, with everything that was reported. The state after opening
//! stays, whatever fails next.

mod judge;
mod life;
mod opening;

use std::io;

use judge::{Seeds, every_crash, every_refusal};
use life::Life;

const SEEDS: Seeds = Seeds { losses: 2, crashes: 60 };

#[test]
fn appends_votes_and_rotations() {
    every_crash(SEEDS, |life| {
        for epoch in 3..8 {
            life.vote(epoch);
            life.append(epoch, 2);
            life.run();
            life.append(epoch, 3);
            life.append(epoch, 1);
            life.vote(epoch);
            life.run();
            life.rest();
        }
    });
}

/// Truncates within a segment, and back over several.
#[test]
fn truncations() {
    for by in [3, 5, 9] {
        every_crash(SEEDS, |life| {
            for epoch in 3..6 {
                life.vote(epoch);
                life.append(epoch, 5);
                life.run();
                life.append(epoch, 4);
                life.run();
                life.append(epoch, 1);
                if epoch < 5 {
                    life.run();
                }
                life.truncate(by);
                life.vote(epoch + 1);
                life.append(epoch + 1, 2);
                life.run();
            }
        });
    }
}

#[test]
fn installations() {
    for ahead in [1, 70] {
        every_crash(SEEDS, |life| {
            for epoch in 3..6 {
                life.vote(epoch);
                life.append(epoch, 9);
                life.run();
                life.install(epoch, ahead);
                life.append(epoch, 3);
                life.run();
            }
        });
    }
}

#[test]
fn rebases() {
    for unsynced in 0..3 {
        every_crash(SEEDS, |life| {
            for epoch in 3..8 {
                life.vote(epoch);
                life.append(epoch, 9);
                life.run();
                // Some truncations follow records that are not synced yet, or each other.
                life.append(epoch, unsynced);
                life.vote(epoch + 1);
                life.rebase(epoch + 1, 1 + unsynced % 2 * 20, epoch == 5);
                if epoch == 6 {
                    life.rebase(epoch + 1, 1, false);
                }
                life.append(epoch + 1, 3);
                life.run();
            }
        });
    }
}

/// The log drops the records in the snapshots, while snapshots grow, are merged, and continue from another history.
#[test]
fn snapshots_merges_and_trims() {
    every_crash(SEEDS, |life| {
        life.vote(3);
        for round in 0..11 {
            life.append(3, 2);
            life.snapshot(round % 2);
            life.trim();
            life.merge();
        }
        life.run();
        life.install(3, 5);
        life.append(3, 4);
        life.snapshot(1);
        life.trim();
        life.vote(4);
        life.rebase(4, 2, true);
        life.append(4, 3);
        life.run();
        life.snapshot(0);
        life.trim();
        life.run();
    });
}

/// One job of each kind.
fn short_history(life: &mut Life) {
    for epoch in 3..5 {
        life.vote(epoch);
        life.append(epoch, 6);
        life.run();
        life.append(epoch, 2);
        life.truncate(3);
        life.append(epoch, 2);
        life.snapshot(1);
        life.trim();
        life.rest();
    }
    life.vote(5);
    for _ in 0..8 {
        life.append(5, 1);
        life.snapshot(0);
        life.merge();
    }
    life.install(5, 5);
    life.append(5, 4);
    life.run();
    life.rebase(5, 2, false);
    life.append(5, 3);
    life.run();
}

#[test]
fn refusals() {
    let seeds = Seeds { losses: 0, crashes: 150 };
    for kind in [io::ErrorKind::Other, io::ErrorKind::StorageFull] {
        every_refusal(seeds, kind, short_history);
    }
}

/// A directory that is being created does not count as one that has lost something.
#[test]
fn first_starts() {
    every_crash(Seeds { losses: 20, crashes: 10 }, |_: &mut Life| {});
}

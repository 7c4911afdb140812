//! Watches the free space of the disk that holds the data directory, so that an operator hears of it before the disk is
//! full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::driver::Setup;

const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The largest state needs room for a new snapshot beside the old one. This is that room with the default of
/// `limits.state_bytes`, and the least for any setting.
const LOW_BYTES_LEAST: u64 = 4 << 30;

/// The shares of the disk that the remark names, in percent. At the last one it begins.
const STEPS: [u64; 4] = [1, 2, 5, 10];

/// Runs for as long as the node does.
pub async fn watch(setup: Arc<Setup>, data: PathBuf) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let low_bytes = low_bytes(setup.settings.limits.state_bytes);
    let mut step = None;
    loop {
        ticks.tick().await;
        let data = data.clone();
        // A file system on a network may not answer for a long time.
        let Ok(space) = tokio::task::spawn_blocking(move || space(&data)).await else { return };
        step = space.and_then(|space| next_step(step, space, low_bytes));
        setup.notices.set("disk_low", step.map(remark));
    }
}

/// A disk with this much free space is not nearly full, whatever its size: a tenth of a large disk is plenty.
fn low_bytes(state_bytes: u64) -> u64 {
    state_bytes.saturating_mul(2).max(LOW_BYTES_LEAST)
}

/// The free bytes and all bytes, or `None` if the system does not report them.
fn space(data: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(data).ok()?;
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}

/// The step that the remark names, or `None` if the disk is not nearly full. A step is left upwards only when a fifth
/// more is free: the remark begins below 10 % and ends above 12 %, from whichever step. So writes and deletes near a limit do not change
/// the remark, and with it the log, each time.
fn next_step(before: Option<u64>, (free, total): (u64, u64), low_bytes: u64) -> Option<u64> {
    let [free, total, low_bytes] = [free, total, low_bytes].map(u128::from);
    let is_plenty = match before {
        Some(_) => free * 10 > low_bytes * 12,
        None => free >= low_bytes,
    };
    if is_plenty || total == 0 {
        return None;
    }
    let reached = STEPS.into_iter().find(|step| free * 100 < total * u128::from(*step));
    let is_within = |step: &u64| free * 1_000 <= total * u128::from(*step) * 12;
    let kept = before.filter(is_within).or(before.and(STEPS.into_iter().find(is_within)));
    match (reached, kept) {
        (Some(reached), Some(kept)) => Some(reached.min(kept)),
        (reached, kept) => reached.or(kept),
    }
}

fn remark(step: u64) -> String {
    format!(
        "the disk of this node is nearly full: about {step} % of it or less is free. A full disk accepts no writes"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_disk_is_nearly_full_by_share_and_by_size() {
        let first = |free, total| next_step(None, (free, total), 4 * GIB);
        assert_eq!(first(10 * GIB, 100 * GIB), None, "a tenth");
        assert_eq!(first(5 * GIB, 100 * GIB), None, "still more than a new snapshot needs");
        assert_eq!(first(3 * GIB, 100 * GIB), Some(5));
        assert_eq!(first(GIB / 2, GIB), None, "a small disk that is half empty");
        assert_eq!(first(0, GIB), Some(1));
        assert_eq!(first(0, 0), None, "a file system without a size");
        assert_eq!(first(u64::MAX / 2, u64::MAX), None);
    }

    #[test]
    fn a_large_state_needs_more_room() {
        assert_eq!([low_bytes(1024), low_bytes(2 * GIB), low_bytes(3 * GIB)], [4 * GIB, 4 * GIB, 6 * GIB]);
        let free = (5 * GIB, 100 * GIB);
        assert_eq!(next_step(None, free, low_bytes(2 * GIB)), None);
        assert_eq!(next_step(None, free, low_bytes(3 * GIB)), Some(10));
    }

    /// The steps one after the other, for these free shares of a disk in thousandths.
    fn steps(thousandths: &[u64]) -> Vec<Option<u64>> {
        let mut step = None;
        let look = |free: &u64| {
            step = next_step(step, (*free, 1_000), 4 * GIB);
            step
        };
        thousandths.iter().map(look).collect()
    }

    #[test]
    fn the_remark_ends_later_than_it_begins_and_changes_by_steps() {
        assert_eq!(steps(&[120, 101, 100, 99]), [None, None, None, Some(10)]);
        assert_eq!(steps(&[99, 101, 120, 121, 119]), [Some(10), Some(10), Some(10), None, None]);
        assert_eq!(steps(&[99, 60, 49, 51, 60, 61, 51]), [10, 10, 5, 5, 5, 10, 10].map(Some));
        assert_eq!(steps(&[49, 110, 120, 121]), [Some(5), Some(10), Some(10), None]);
        assert_eq!(steps(&[19, 9, 0, 12, 13, 500]), [Some(2), Some(1), Some(1), Some(1), Some(2), None]);
        // The limit in bytes has the same tolerance.
        let look = |before, free| next_step(before, (free, 1_000 * GIB), 5 * GIB);
        assert_eq!(
            [look(None, 5 * GIB), look(Some(1), 6 * GIB), look(Some(1), 6 * GIB + 1)],
            [None, Some(1), None]
        );
    }

    #[test]
    fn the_text_names_the_step() {
        assert!(remark(5).contains("about 5 % of it or less is free"), "{}", remark(5));
    }

    #[test]
    fn a_folder_has_space() {
        let (free, total) = space(&std::env::temp_dir()).expect("a file system");
        assert!(free <= total && total > 0, "{free} of {total}");
        assert_eq!(space(Path::new("/no/such/folder")), None);
    }
}

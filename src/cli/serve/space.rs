//! Watches the free space of the disk that holds the data directory, so that an operator hears of it before the disk is
//! full.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::driver::Setup;

const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A disk is nearly full if less than this share is free, and also less than `LOW_BYTES`: a tenth of a large disk is
/// plenty.
const LOW_PERCENT: u64 = 10;

/// Twice the default of `limits.state_bytes`: room for a new snapshot beside the old one.
const LOW_BYTES: u64 = 4 << 30;

/// Runs for as long as the node does.
pub async fn watch(setup: Arc<Setup>, data: PathBuf) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let data = data.clone();
        // A file system on a network may not answer for a long time.
        let Ok(space) = tokio::task::spawn_blocking(move || space(&data)).await else { return };
        setup.notices.set("disk_low", space.and_then(|(free, total)| remark(free, total)));
    }
}

/// The free bytes and all bytes, or `None` if the system does not report them.
fn space(data: &Path) -> Option<(u64, u64)> {
    let found = rustix::fs::statvfs(data).ok()?;
    Some((found.f_bavail.saturating_mul(found.f_frsize), found.f_blocks.saturating_mul(found.f_frsize)))
}

/// The text has whole percents: a number that changed with each write would be logged with each write.
fn remark(free: u64, total: u64) -> Option<String> {
    let percent = (u128::from(free) * 100).checked_div(u128::from(total))?;
    (percent < u128::from(LOW_PERCENT) && free < LOW_BYTES).then(|| {
        format!(
            "the disk of this node is nearly full: {percent} % of it is free. A full disk accepts no writes"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_nearly_full_by_share_and_by_size() {
        let gib = 1 << 30;
        assert_eq!(remark(10 * gib, 100 * gib), None, "a tenth");
        assert_eq!(remark(5 * gib, 100 * gib), None, "still more than a new snapshot needs");
        assert!(remark(3 * gib, 100 * gib).is_some_and(|text| text.contains(": 3 % of it is free")));
        assert_eq!(remark(gib / 2, gib), None, "a small disk that is half empty");
        assert!(remark(0, gib).is_some());
        assert_eq!(remark(0, 0), None, "a file system without a size");
    }

    #[test]
    fn a_folder_has_space() {
        let (free, total) = space(&std::env::temp_dir()).expect("a file system");
        assert!(free <= total && total > 0, "{free} of {total}");
        assert_eq!(space(Path::new("/no/such/folder")), None);
    }
}

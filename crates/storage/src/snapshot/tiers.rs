//! Selects the files to merge next.
//!
//! Files of similar size are merged with each other. So a byte is rewritten only into a file that is several times larger, or
//! together with as many fresh bytes. The whole state is rewritten only once the changes since are a good part of it. So the
//! total written is the changes times the logarithm of the store, and never the changes times the store.

use std::ops::Range;

/// This many files of a level become one file of the next.
const FAN_IN: usize = 8;

/// The size limit of a file in level 0: below a disk block nothing can be saved.
const LEVEL_0_BYTES: u64 = 4 << 10;

/// Files from 1 GiB on are all in the last level, so that the number of files is bounded for every size.
const LEVELS: usize = 8;

/// The whole state is rewritten once the changes since are this part of it (one in `WHOLE_SHARE`): then a start reads at most
/// half as much again as it must, and the rewrites write at most three times the size of the changes.
const WHOLE_SHARE: u64 = 2;

/// The whole state is not rewritten while the changes are smaller than this and fewer than `FAN_IN`. Otherwise every write to a
/// store of a few keys would cause a rewrite.
const SPARED_BYTES: u64 = 256 << 10;

/// When no merge is due any more, a chain is never longer than this: the whole state, and for every level fewer files than a
/// merge needs. Files that are added while a merge runs come on top until it ends.
pub const CHAIN_FILES_MAX: usize = 1 + LEVELS * (FAN_IN - 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub bytes: u64,
    /// A merge is reading this file, so no other merge may.
    pub claimed: bool,
}

/// The files of a chain that are to become one. The first file of the chain is the whole state.
pub(super) fn due(chain: &[Size]) -> Option<Range<usize>> {
    due_whole(chain).or_else(|| due_level(chain))
}

fn due_whole(chain: &[Size]) -> Option<Range<usize>> {
    // This merge begins with the whole state, and its files must be adjacent. So it ends before the first file in use.
    let free = chain.iter().take_while(|size| !size.claimed).count();
    let (whole, changes) = chain[..free].split_first()?;
    let bytes: u64 = changes.iter().map(|size| size.bytes).sum();
    let spared = bytes < SPARED_BYTES && changes.len() < FAN_IN;
    (!changes.is_empty() && !spared && bytes >= whole.bytes / WHOLE_SHARE).then_some(0..free)
}

/// The newest run of enough files of one tier: the smallest, and so the fastest to merge.
fn due_level(chain: &[Size]) -> Option<Range<usize>> {
    let tiers = tiers(chain.get(1..)?);
    let mut end = chain.len();
    for run in tiers.chunk_by(|one, other| one == other).rev() {
        let start = end - run.len();
        if run[0].is_some() && run.len() >= FAN_IN {
            return Some(start..end);
        }
        end = start;
    }
    None
}

/// The level of each file, or of a newer file if that is greater. So tiers only decrease towards newer files, and small files
/// between large ones do not pile up. Returns `None` for a file that is claimed.
fn tiers(changes: &[Size]) -> Vec<Option<usize>> {
    let mut greatest = 0;
    let tier = |size: &Size| {
        greatest = level(size.bytes).max(greatest);
        (!size.claimed).then_some(greatest)
    };
    let mut tiers: Vec<_> = changes.iter().rev().map(tier).collect();
    tiers.reverse();
    tiers
}

fn level(bytes: u64) -> usize {
    let blocks = bytes / LEVEL_0_BYTES;
    let level = if blocks == 0 { 0 } else { 1 + blocks.ilog(FAN_IN as u64) as usize };
    level.min(LEVELS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: u64 = 1 << 40;

    fn chain(bytes: &[u64]) -> Vec<Size> {
        bytes.iter().map(|&bytes| Size { bytes, claimed: false }).collect()
    }

    #[test]
    fn nothing_is_due_at_first() {
        assert_eq!(due(&[]), None);
        assert_eq!(due(&chain(&[WHOLE])), None);
        assert_eq!(due(&chain(&[10, 10])), None);
        assert_eq!(due(&chain(&[WHOLE, 3000, 3000, 3000, 3000, 3000, 3000, 3000])), None);
    }

    #[test]
    fn eight_of_a_level_are_merged() {
        assert_eq!(due(&chain(&[WHOLE, 9, 1, 2, 3, 4, 5, 6, 7])), Some(1..9));
        assert_eq!(due(&chain(&[WHOLE, 5000, 1, 2, 3, 4, 5, 6, 7])), None);
        assert_eq!(due(&chain(&[WHOLE, 5000, 8, 1, 2, 3, 4, 5, 6, 7])), Some(2..10));
        assert_eq!(due(&chain(&[WHOLE, 8, 1, 2, 3, 4, 5, 6, 7000])), Some(1..9));
    }

    #[test]
    fn the_whole_waits_for_its_share() {
        assert_eq!(due(&chain(&[1 << 30, (1 << 29) - 1])), None);
        assert_eq!(due(&chain(&[1 << 30, 1 << 28, 1 << 28])), Some(0..3));
        assert_eq!(due(&chain(&[100, 10, 10, 10, 10, 10, 10, 10, 10])), Some(0..9));
    }

    #[test]
    fn claimed_files_stay_out() {
        let mut files = chain(&[WHOLE, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        files[1].claimed = true;
        assert_eq!(due(&files), Some(2..10));
        files[5].claimed = true;
        assert_eq!(due(&files), None);
        files[0] = Size { bytes: 1, claimed: true };
        assert_eq!(due(&files), None);
    }

    /// Merging every run that is due comes to an end, within the bound, whatever the sizes: levels only increase.
    #[test]
    fn the_chain_has_a_bound() {
        let mut seed = 1u64;
        let mut files = chain(&[WHOLE]);
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            files.push(Size { bytes: 1 << (seed >> 59), claimed: false });
            while let Some(range) = due(&files) {
                let bytes = files[range.clone()].iter().map(|size| size.bytes).sum();
                files.splice(range, [Size { bytes, claimed: false }]);
            }
            assert!(files.len() <= CHAIN_FILES_MAX);
        }
    }
}

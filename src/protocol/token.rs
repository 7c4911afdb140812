//! Fencing tokens (P30, I6).

use super::mutant::{self, Mutant};
use crate::types::WallTime;

/// The token of the next grant of a role. It beats the last one known, and, through the stamp's wall
/// time, also those that a restored backup has never heard of. Stays below 2^53, so that every JSON
/// reader keeps it exact: microseconds since 1970 reach that in the year 2255.
pub fn next_token(last: u64, stamped: WallTime) -> u64 {
    if mutant::is_on(Mutant::TokenByCounter) {
        return last + 1;
    }
    (last + 1).max(stamped.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_backup_does_not_repeat_tokens() {
        let granted_before_the_loss = next_token(next_token(41, WallTime(1_000)), WallTime(1_000));
        let first_after_the_restore = next_token(41, WallTime(2_000));
        assert!(first_after_the_restore > granted_before_the_loss);
    }
}

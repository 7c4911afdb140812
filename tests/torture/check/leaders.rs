//! Nodes that say that they lead: once one has said so in an epoch, no node says so in an earlier one.

use super::{Verdict, going_back};

/// An answer `true` of `/is_leader`.
#[derive(Clone, Copy, Debug)]
pub struct Belief {
    #[allow(dead_code, reason = "only the words of a violation show it")]
    pub node: u32,
    /// Its place among all epochs.
    pub epoch: u64,
    pub invoked: u64,
    pub returned: u64,
}

/// No belief in an earlier epoch was requested after one in a later epoch was answered.
pub fn check(beliefs: &[Belief]) -> Verdict {
    match going_back(beliefs, |belief| (belief.invoked, belief.returned), |belief| belief.epoch) {
        Some((newest, belief)) => {
            Err(format!("a leader of before still believes: {newest:?}, then {belief:?}"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(node: u32, epoch: u64, invoked: u64, returned: u64) -> Belief {
        Belief { node, epoch, invoked, returned }
    }

    #[test]
    fn leaders_one_after_the_other_pass() {
        let good = [belief(1, 3, 0, 9), belief(1, 3, 10, 30), belief(2, 4, 12, 20), belief(1, 5, 40, 41)];
        assert_eq!(check(&good), Ok(()));
    }

    #[test]
    fn a_leader_of_before_is_found() {
        let bad = [belief(1, 3, 0, 9), belief(2, 4, 10, 12), belief(1, 3, 13, 14)];
        assert!(check(&bad).unwrap_err().contains("still believes"));
    }
}

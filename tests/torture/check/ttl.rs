//! Documents that end by themselves: late perhaps, never early.

use super::Verdict;

/// The part of the ttl that a fast clock may take away: twice the drift bound of the nodes, in percent.
const DRIFT_PERCENT: u64 = 2;

/// An acknowledged document and a linear read that did not find it.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    #[allow(dead_code, reason = "only the words of a violation show it")]
    pub document: u64,
    /// The time at which the write began.
    pub invoked: u64,
    pub ttl: u64,
    /// The time at which the read was answered.
    pub missed: u64,
}

pub fn check(gone: &[Gone]) -> Verdict {
    let is_early = |gone: &&Gone| gone.missed < gone.invoked + gone.ttl * (100 - DRIFT_PERCENT) / 100;
    match gone.iter().find(is_early) {
        Some(early) => Err(format!("it ended before its time: {early:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_is_found_and_late_passes() {
        let gone = |missed| Gone { document: 1, invoked: 1_000, ttl: 2_000, missed };
        assert_eq!(check(&[gone(3_000), gone(9_000)]), Ok(()));
        assert!(check(&[gone(3_000), gone(2_900)]).is_err());
    }
}

//! Majority arithmetic, and nothing else.

/// The smallest size for which any two groups of nodes of that size share a node.
pub fn majority(members: usize) -> usize {
    members / 2 + 1
}

/// The greatest value that at least `needed` of `values` reach; `None` if there are fewer values.
pub fn reached_by<T: Ord + Copy>(values: impl IntoIterator<Item = T>, needed: usize) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.get(needed.checked_sub(1)?).copied()
}

/// The state of a count of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tally {
    Pending,
    Won,
    /// So many nodes refused that the rest cannot reach the needed number.
    Lost,
}

pub fn tally(yes: usize, no: usize, needed: usize, members: usize) -> Tally {
    match () {
        () if yes >= needed => Tally::Won,
        () if members.saturating_sub(no) < needed => Tally::Lost,
        () => Tally::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_majorities_always_meet() {
        for members in 1..=101 {
            assert!(2 * majority(members) > members);
            assert!(2 * (majority(members) - 1) <= members);
        }
    }

    #[test]
    fn reached_by_is_the_kth_greatest() {
        assert_eq!(reached_by([5, 9, 7], 1), Some(9));
        assert_eq!(reached_by([5, 9, 7], 2), Some(7));
        assert_eq!(reached_by([5, 9, 7], 3), Some(5));
        assert_eq!(reached_by([5, 9, 7], 4), None);
        assert_eq!(reached_by(Vec::<u64>::new(), 0), None);
    }

    #[test]
    fn a_count_is_pending_won_or_lost() {
        let needed = majority(5);
        assert_eq!(tally(2, 2, needed, 5), Tally::Pending);
        assert_eq!(tally(3, 2, needed, 5), Tally::Won);
        assert_eq!(tally(2, 3, needed, 5), Tally::Lost);
    }
}

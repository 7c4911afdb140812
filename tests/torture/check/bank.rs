//! Accounts between which money moves: the sum of any one state is the money that was paid in.

use super::{Verdict, going_back};

/// One read of all accounts.
#[derive(Clone, Debug)]
pub struct Statement {
    pub invoked: u64,
    pub returned: u64,
    /// The state that it saw.
    pub index: u64,
    /// A local read may be of any age, but it is of one state as well.
    pub linear: bool,
    pub balances: Vec<i64>,
}

/// Each statement has the sum; a linear one is not of an older state than one that was
/// complete before it began.
pub fn check(statements: &[Statement], accounts: usize, sum: i64) -> Verdict {
    for seen in statements {
        // A node that is far behind may have no account yet.
        let is_empty = !seen.linear && seen.balances.is_empty();
        if !is_empty && (seen.balances.len() != accounts || seen.balances.iter().sum::<i64>() != sum) {
            return Err(format!("{accounts} accounts hold {sum} together, and not: {seen:?}"));
        }
    }
    let linear = statements.iter().filter(|seen| seen.linear);
    match going_back(linear, |seen| (seen.invoked, seen.returned), |seen| seen.index) {
        Some((newest, seen)) => Err(format!("a linear read went back: {newest:?}, then {seen:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times: [u64; 2], index: u64, linear: bool, balances: &[i64]) -> Statement {
        Statement { invoked: times[0], returned: times[1], index, linear, balances: balances.to_vec() }
    }

    #[test]
    fn a_good_bank_passes() {
        let good = [
            seen([0, 5], 3, true, &[10, 10]),
            seen([2, 9], 7, true, &[4, 16]),
            seen([3, 4], 5, true, &[9, 11]),
            seen([10, 11], 2, false, &[]),
            seen([10, 11], 3, false, &[10, 10]),
        ];
        assert_eq!(check(&good, 2, 20), Ok(()));
    }

    #[test]
    fn a_wrong_sum_a_missing_account_and_an_old_state_are_found() {
        assert!(check(&[seen([0, 1], 1, false, &[10, 11])], 2, 20).is_err());
        assert!(check(&[seen([0, 1], 1, true, &[])], 2, 20).is_err());
        assert!(check(&[seen([0, 1], 1, true, &[20])], 2, 20).is_err());
        let back = [seen([0, 1], 7, true, &[10, 10]), seen([2, 3], 6, true, &[10, 10])];
        assert!(check(&back, 2, 20).unwrap_err().contains("went back"));
    }
}

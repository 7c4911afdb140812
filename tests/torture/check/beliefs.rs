//! Holders of roles: the grants of each instance, and the times in which it was certain to hold its role.

use std::collections::BTreeMap;

use super::{Verdict, going_back};

/// A new tenure, by its answer.
#[derive(Clone, Debug)]
pub struct Grant {
    #[allow(dead_code, reason = "only the words of a violation show it")]
    pub role: u32,
    #[allow(dead_code, reason = "only the words of a violation show it")]
    pub instance: String,
    pub token: u64,
    pub invoked: u64,
    pub returned: u64,
}

/// A time in which an instance was certain: it begins with an answer, and ends after the time that the answer
/// promises, counted from the call.
#[derive(Clone, Debug)]
pub struct Belief {
    pub role: u32,
    pub instance: String,
    pub token: u64,
    pub from: u64,
    pub until: u64,
}

/// No token is given twice.
pub fn tokens_differ(grants: &[Grant]) -> Verdict {
    let mut given: BTreeMap<u64, &Grant> = BTreeMap::new();
    for grant in grants {
        if let Some(other) = given.insert(grant.token, grant) {
            return Err(format!("one token for two tenures: {other:?} and {grant:?}"));
        }
    }
    Ok(())
}

/// A grant that was requested after another was answered has the greater token, even for another role.
pub fn tokens_rise(grants: &[Grant]) -> Verdict {
    match going_back(grants, |grant| (grant.invoked, grant.returned), |grant| grant.token) {
        Some((greatest, grant)) => {
            Err(format!("a later grant has a lesser token: {greatest:?}, then {grant:?}"))
        }
        None => Ok(()),
    }
}

/// No two instances are certain of one role at the same time, and the later one has the greater token.
pub fn one_at_a_time(beliefs: &[Belief]) -> Verdict {
    let mut sorted: Vec<&Belief> = beliefs.iter().filter(|belief| belief.from < belief.until).collect();
    sorted.sort_by_key(|belief| (belief.role, belief.from));
    let mut last: Option<&Belief> = None;
    for belief in sorted {
        if let Some(last) = last.filter(|last| last.role == belief.role && last.instance != belief.instance) {
            if last.until > belief.from {
                return Err(format!("two are certain at one time: {last:?} and {belief:?}"));
            }
            if last.token >= belief.token {
                return Err(format!("the token did not rise: {last:?}, then {belief:?}"));
            }
        }
        last = Some(belief);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(token: u64, invoked: u64, returned: u64) -> Grant {
        Grant { role: 0, instance: format!("i{token}"), token, invoked, returned }
    }

    fn belief(instance: &str, token: u64, from: u64, until: u64) -> Belief {
        Belief { role: 0, instance: instance.into(), token, from, until }
    }

    #[test]
    fn tokens() {
        let good = [grant(3, 0, 9), grant(2, 1, 4), grant(5, 10, 12)];
        assert_eq!((tokens_differ(&good), tokens_rise(&good)), (Ok(()), Ok(())));
        assert!(tokens_differ(&[grant(3, 0, 9), grant(3, 10, 12)]).is_err());
        assert!(tokens_rise(&[grant(3, 0, 9), grant(2, 10, 12)]).is_err());
    }

    #[test]
    fn good_beliefs_pass() {
        let good =
            [belief("a", 1, 0, 10), belief("a", 1, 15, 30), belief("b", 2, 30, 40), belief("b", 2, 35, 50)];
        assert_eq!(one_at_a_time(&good), Ok(()));
        // No instance is certain in a time of no length.
        assert_eq!(one_at_a_time(&[belief("a", 1, 0, 10), belief("b", 2, 9, 9)]), Ok(()));
    }

    #[test]
    fn two_holders_and_a_lesser_token_are_found() {
        let two = [belief("a", 1, 0, 10), belief("b", 2, 9, 20)];
        assert!(one_at_a_time(&two).unwrap_err().contains("two are certain"));
        let lesser = [belief("a", 2, 0, 10), belief("b", 1, 11, 20)];
        assert!(one_at_a_time(&lesser).unwrap_err().contains("did not rise"));
    }
}

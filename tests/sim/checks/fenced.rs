//! I6: tokens rise over all grants. A resource that checks them takes every write of a holder that rightly
//! believes, and takes no write of an earlier holder after it.

use std::collections::BTreeMap;

use eldest::types::Text;

use super::{Check, ensure};

const NAME: &str = "I6 tokens rise";

#[derive(Debug, Default)]
pub struct Fenced {
    last: u64,
    /// The greatest token that each role's resource has seen, and its holder.
    seen: BTreeMap<Text, (u64, usize)>,
}

impl Fenced {
    /// Called in the order of the log.
    pub fn granted(&mut self, token: u64) -> Check {
        let last = std::mem::replace(&mut self.last, token);
        ensure(last < token, NAME, || format!("{token} was granted after {last}"))
    }

    /// A write arrives at the resource.
    pub fn used(&mut self, role: &Text, who: usize, token: u64, believes: bool) -> Check {
        let (seen, whose) = self.seen.get(role).copied().unwrap_or_default();
        if token < seen {
            return ensure(!believes, NAME, || format!("{token} of {role} is refused after {seen}"));
        }
        ensure(token > seen || whose == who, NAME, || format!("{token} is that of {whose} and of {who}"))?;
        self.seen.insert(role.clone(), (token, who));
        Ok(())
    }
}

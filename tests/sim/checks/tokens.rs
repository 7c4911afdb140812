//! I6: the fencing tokens of a role strictly rise, in the order of the log.

use std::collections::BTreeMap;

use eldest::types::Index;

use super::{Check, ensure};

#[derive(Debug, Default)]
pub struct Tokens {
    grants: BTreeMap<u32, BTreeMap<Index, u64>>,
}

impl Tokens {
    pub fn granted(&mut self, role: u32, index: Index, token: u64) -> Check {
        let grants = self.grants.entry(role).or_default();
        let before = grants.range(..index).next_back().map(|(_, token)| *token);
        grants.insert(index, token);
        ensure(before.is_none_or(|before| before < token), "I6 tokens rise", || {
            format!("role {role} was granted {token} at {index} after {before:?}")
        })
    }
}

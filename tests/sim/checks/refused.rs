//! I8: a refused call is not applied, then or later (P15).

use std::collections::BTreeSet;

use super::{Check, ensure};
use crate::commands::Tag;

#[derive(Debug, Default)]
pub struct Refused {
    refused: BTreeSet<Tag>,
    applied: BTreeSet<Tag>,
}

const NAME: &str = "I8 refused means not applied";

impl Refused {
    pub fn refused(&mut self, tag: Tag) -> Check {
        self.refused.insert(tag);
        ensure(!self.applied.contains(&tag), NAME, || format!("{tag:?} was applied before"))
    }

    pub fn applied(&mut self, tag: Tag) -> Check {
        self.applied.insert(tag);
        ensure(!self.refused.contains(&tag), NAME, || format!("{tag:?} was refused before"))
    }
}

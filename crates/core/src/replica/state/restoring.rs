//! A restore on its way.

use std::collections::VecDeque;

use crate::replica::io::CallId;
use crate::store::Guard;
use crate::types::{Epoch, Payload, Time};

/// One attempt: all of its steps belong to one epoch of this node, or nothing comes of them.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Restoring {
    pub call: CallId,
    /// What has yet to be proposed.
    pub steps: VecDeque<Payload>,
    /// Asked before the first step, and again before the last.
    pub guard: Guard,
    pub epoch: Epoch,
    /// It is given up then.
    pub until: Time,
    /// A step waits for its verdict.
    pub waits: bool,
}

impl Restoring {
    /// Its last step may be in a log: only the verdict says what becomes of it.
    pub fn is_in_doubt(&self) -> bool {
        self.waits && self.steps.is_empty()
    }
}

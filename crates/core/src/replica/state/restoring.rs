//! A restore on its way.

use std::collections::VecDeque;

use crate::replica::answer::Denied;
use crate::replica::io::CallId;
use crate::store::Reply;
use crate::types::{Epoch, Payload};

/// A restore on its way.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Restoring {
    pub call: CallId,
    pub steps: VecDeque<Payload>,
    pub give_up: Payload,
    /// In which its first step was proposed.
    pub epoch: Option<Epoch>,
    /// What the last step came to.
    pub reply: Option<Reply>,
    /// Why it is being given up.
    pub failed: Option<Denied>,
}

impl Restoring {
    /// The outcome of its newest step.
    pub fn came_to(&mut self, reply: Reply) {
        self.reply = Some(reply);
    }
}

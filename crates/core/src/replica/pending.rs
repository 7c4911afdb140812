//! Calls that wait for a verdict of the protocol.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::mem;

use super::answer::{Denied, Written};
use super::io::CallId;
use super::wants::{Acquiring, Renewing};
use crate::store::{self, Rejection};
use crate::types::RequestId;

pub type WriteOutcome = Result<store::Reply, Rejection>;

/// The core bounds how many calls wait: `limits.uncommitted` writes and `limits.reads` reads.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    last: RequestId,
    waiting: BTreeMap<RequestId, Waiting>,
}

#[derive(Clone, Debug)]
pub enum Waiting {
    /// A write that was proposed, with its outcome. The outcome is known from the moment when the record entered a version;
    /// the verdict says whether the record stands.
    Write {
        call: CallId,
        outcome: WriteOutcome,
    },
    /// An answer that changes nothing. It leaves once the records that it was judged by are committed (P14).
    Judged {
        call: CallId,
        answer: Box<Result<Written, Denied>>,
    },
    Read(CallId),
    /// A grant, or the present state of a role.
    Acquire(Box<Acquiring>),
    /// A renewal, or a registration.
    Renew(Renewing),
    /// A step of a restore, with its outcome.
    Restore {
        call: CallId,
        outcome: WriteOutcome,
    },
    /// The replica's own record about leases. No caller waits for it.
    Leases(u64),
    /// A hand-over, a change of the service's holds, or a change of members.
    Admin(CallId),
    /// The process is to end, and hands over first.
    Farewell,
    /// A record that no caller waits for.
    Nobody,
}

impl Pending {
    pub fn add(&mut self, waiting: Waiting) -> RequestId {
        self.last.0 += 1;
        self.waiting.insert(self.last, waiting);
        self.last
    }

    pub fn take(&mut self, request: RequestId) -> Option<Waiting> {
        self.waiting.remove(&request)
    }

    /// The content of each request follows from its number, and its outcome from the version that it made. So both are left out.
    pub fn fingerprint(&self, state: &mut impl Hasher) {
        self.last.hash(state);
        for (request, waiting) in &self.waiting {
            (request, mem::discriminant(waiting), waiting.call()).hash(state);
        }
    }

    /// The replica ends. Records that have reached the log may yet be applied.
    pub fn drain(&mut self) -> impl Iterator<Item = Waiting> {
        mem::take(&mut self.waiting).into_values()
    }
}

impl Waiting {
    /// The caller to answer.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Waiting::Write { call, .. } | Waiting::Judged { call, .. } => Some(*call),
            Waiting::Read(call) | Waiting::Admin(call) => Some(*call),
            Waiting::Acquire(acquiring) => Some(acquiring.call),
            Waiting::Renew(renewing) => Some(renewing.call),
            // The restore itself answers its caller.
            Waiting::Restore { .. } => None,
            Waiting::Leases(_) | Waiting::Farewell | Waiting::Nobody => None,
        }
    }

    /// Whether the call has no record in the log, now or later.
    pub fn changes_nothing(&self) -> bool {
        matches!(self, Waiting::Read(_) | Waiting::Judged { .. })
    }

    /// The same call, with the outcome of its record.
    pub fn with_outcome(self, known: WriteOutcome) -> Waiting {
        match self {
            Waiting::Write { call, .. } => Waiting::Write { call, outcome: known },
            Waiting::Restore { call, .. } => Waiting::Restore { call, outcome: known },
            other => other,
        }
    }
}

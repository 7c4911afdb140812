//! Clients' calls that wait for a verdict of the core.

use std::collections::HashMap;

use super::api::{Denied, Reply, View, Written};
use super::leasing::{Acquiring, Renewing};
use crate::store::{self, Rejection};
use crate::types::RequestId;

pub type Outcome = Result<store::Reply, Rejection>;

/// Bounded by what the core lets wait: `limits.uncommitted` writes and `limits.reads` reads.
#[derive(Debug, Default)]
pub struct Pending {
    last: RequestId,
    calls: HashMap<RequestId, Call>,
}

#[derive(Debug)]
pub enum Call {
    /// A write that has reached the log, with what it brings about there.
    Write {
        reply: Reply<Written>,
        outcome: Option<Outcome>,
    },
    /// An answer that changes nothing: it leaves once what it was judged by is committed (P14).
    Judged {
        reply: Reply<Written>,
        answer: Box<Result<Written, Denied>>,
    },
    Read(Reply<View>),
    /// A grant, or the present state of a role.
    Acquire(Box<Acquiring>),
    /// A renewal, or a registration.
    Renew(Renewing),
    /// The loop's own record about leases; nobody waits for it.
    Leases(u64),
    /// A hand-over, or a change of the service's holds.
    Admin(Reply<()>),
    /// The process wants to end and hands over first.
    Farewell,
}

impl Pending {
    pub fn next(&mut self) -> RequestId {
        self.last.0 += 1;
        self.last
    }

    pub fn add(&mut self, request: RequestId, call: Call) {
        self.calls.insert(request, call);
    }

    pub fn take(&mut self, request: RequestId) -> Option<Call> {
        self.calls.remove(&request)
    }

    pub fn waits(&self, request: RequestId) -> bool {
        self.calls.contains_key(&request)
    }

    pub fn set_outcome(&mut self, request: RequestId, known: Option<Outcome>) {
        if let Some(Call::Write { outcome, .. }) = self.calls.get_mut(&request) {
            *outcome = known;
        }
    }

    /// The loop ends: what has reached the log may yet be applied.
    pub fn end(&mut self) {
        for (_, call) in self.calls.drain() {
            call.deny(Denied::Unknown);
        }
    }
}

impl Call {
    /// A caller that has gone away is not told.
    pub fn deny(self, denied: Denied) {
        match self {
            Call::Write { reply, .. } | Call::Judged { reply, .. } => drop(reply.send(Err(denied))),
            Call::Read(reply) => drop(reply.send(Err(denied))),
            Call::Admin(reply) => drop(reply.send(Err(denied))),
            Call::Acquire(acquiring) => acquiring.deny(denied),
            Call::Renew(renewing) => renewing.deny(denied),
            Call::Farewell | Call::Leases(_) => {}
        }
    }
}

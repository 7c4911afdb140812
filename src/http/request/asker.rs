//! The caller of a call: its connection, its credential, and the proofs of other nodes.
//!
//! ```text
//!   Connection ──────────────┐
//!   front: credential, seat ─┴─► Asker ── the guard of the route sets the principal ──► the handler
//! ```

use std::sync::Arc;

use axum::http::HeaderValue;
use eldest_tls::Caller as Certified;

use super::audit::AuditEntry;
use super::origin::GivesBack;
use crate::http::access::{Principal, Shown};
use crate::http::admission::{Admitted, Caller, ConnectionTimeouts, Sharer, Sharers};

/// The properties that all calls of a connection share.
#[derive(Debug)]
pub struct Connection {
    pub timeouts: Arc<ConnectionTimeouts>,
    pub caller: Arc<Caller>,
    /// The owner of the certificate that the caller has shown.
    pub certified: Option<Certified>,
    /// The connection is one of the reserve, which is for probes, orders and peers.
    pub is_reserve: bool,
}

/// The caller of a call.
#[derive(Clone, Debug)]
pub struct Asker {
    /// A question of this node itself has none.
    pub connection: Option<Arc<Connection>>,
    /// The credential, until the guard of the route has judged it.
    pub shown: Shown,
    /// It has no grant until the guard has judged the caller. So a route that forgets its guard refuses every call.
    pub principal: Principal,
    pub admitted: Admitted,
    /// The caller is another node, which gives back a role of one of its clients.
    pub gives_back: Option<GivesBack>,
    /// Set if the node keeps an audit log.
    pub entry: Option<Arc<AuditEntry>>,
    pub request_id: HeaderValue,
}

impl Asker {
    /// The caller of a call that came over this connection.
    pub fn new(connection: Option<Arc<Connection>>, shown: Shown, request_id: HeaderValue) -> Asker {
        let (principal, admitted) = (Principal::nobody(), Admitted::default());
        Asker { connection, shown, principal, admitted, gives_back: None, entry: None, request_id }
    }

    /// This node asks a question itself, which needs no grant.
    pub fn node() -> Asker {
        Asker::new(None, Shown::Nothing, HeaderValue::from_static(""))
    }

    /// The guard may know more of the principal than was known when the call was admitted.
    pub fn is(&mut self, principal: Principal) {
        self.admitted.sharers.principal = Some(Sharer::of(&principal.who));
        self.principal = principal;
    }

    pub fn certified(&self) -> Option<Certified> {
        self.connection.as_ref()?.certified
    }

    pub fn timeouts(&self) -> Option<&Arc<ConnectionTimeouts>> {
        self.connection.as_ref().map(|connection| &connection.timeouts)
    }

    /// Returns the sharers that the call counts for.
    pub fn sharers(&self) -> Sharers {
        self.admitted.sharers
    }

    /// Returns the request's id as text.
    pub fn id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }
}

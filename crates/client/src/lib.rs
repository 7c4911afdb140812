//! The client library: everything a program needs to take part in a cluster.
//!
//! ```text
//!   Election  Lock  Scope  leader_only  Broker      Registry  StateDoc
//!        └──────┴─────┴──────────┴────────┘              │        │
//!                     seat: one contender                │        │
//!                          │                             │        │
//!                    trait Backend                       │        │
//!                     ┌────┴─────┐                       │        │
//!                  Memory      Client ───────────────────┴────────┘
//!                     roles, processes, documents, bulk, channels, feed
//!                                │
//!      http/  retry: attempts of one call ── nodes: which node to call
//!                                │
//!             attempt: one request and its answer ── Caller: single calls and streams, for tools
//!                                │
//!             error, call_error ── holder, problem: parsed answers and refusals of the cluster
//! ```
//!
//! **Guarantees under any failure**
//!
//! - A holder treats its lease as over before the cluster does. It counts from when the request was *sent*, subtracts
//!   a margin, and uses a clock that goes on while the machine is suspended. It reads that clock each time it is
//!   asked.
//! - A call that may have been applied is sent again only under the same idempotency key, or if applying it twice has
//!   the same effect as once. When the time of a call runs out, the error says whether the call was certainly not
//!   applied ([`Error::Unavailable`]) or its outcome is unknown ([`Error::Indeterminate`]).
//! - Nothing that a server sends makes a client panic.
//! - An unreadable value affects only the item that contains it, not the items beside it or after it: a row of a list
//!   has the JSON text ([`DocumentRow`]), an event comes without the value ([`FeedEvent::unreadable`]), metadata
//!   become a string of the text ([`lenient`]).
//!
//! Two processes can still believe at the same time that they hold a role: one of them may be stopped between reading
//! the clock and acting. To exclude that, pass the token along to the resource, and let the resource refuse a token
//! that is smaller than one it has seen. Documents do this by themselves: [`If::held`], [`Broker::update`].

mod backend;
mod broker;
mod bulk;
mod call_error;
mod channels;
mod clock;
mod documents;
mod election;
mod error;
mod feed;
mod holder;
mod http;
mod json;
mod lease;
mod lock;
mod memory;
mod once;
mod pauses;
mod problem;
mod processes;
mod random;
mod registry;
mod roles;
mod seat;
mod state_doc;
mod tied;
mod ties;
mod watch;

#[cfg(test)]
mod tests;

pub use backend::{Acquire, Backend, Grant, Hold, Outcome, Renewal, TieNews, Tied, Watch, Watched};
pub use broker::{Broker, BrokerTried};
pub use bulk::Applied;
pub use call_error::CallError;
pub use channels::{Heard, Subscription};
pub use clock::{Clock, Moment};
pub use documents::{Document, DocumentRow, Holder, If, Level, Until, When, With};
pub use election::{ELECTION_WAIT, Election, ElectionBuilder, ElectionEvent, ElectionEvents, Role, Status};
pub use error::Error;
pub use feed::{Feed, FeedEvent, FeedOptions};
pub use holder::{Leader, RoleHeld, RoleState};
pub use http::{
    ACT_MAX, Answer, BodyPieces, Caller, Client, ClientBuilder, End, LOOK_MAX, Lines, LongAnswer, Page,
    Request, Tls, alike, encoded, parsed,
};
pub use json::lenient;
pub use lease::{RENEWALS, Term};
pub use lock::{Lock, LockGuard};
pub use memory::Memory;
pub use once::{Scope, leader_only};
pub use problem::{LeaderNode, Problem, Tried};
pub use processes::{Process, ProcessFilter, Registration};
pub use random::id as random_id;
pub use registry::{MASTER, Registry, RegistryBuilder, RegistryEvent, RegistryEvents, SLAVE};
/// The HTTP types that calls and answers use.
pub use reqwest::{Method, StatusCode, header::HeaderMap};
pub use roles::Check;
/// The text of a JSON value. Every document can be read as a `RawValue`.
pub use serde_json::value::RawValue;
pub use state_doc::StateDoc;
pub use ties::HeldBy;

//! The client library: what a program needs to take part in a cluster.
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
//!      http/  retry: attempts of one call ── nodes: whom to ask
//!                                │
//!             attempt: one request and its answer ── Caller: single calls and streams, for tools
//!                                │
//!             error, call_error ── holder, problem: what a cluster says
//! ```
//!
//! **What holds, whatever fails**
//!
//! - A holder stops to believe before its lease ends: counted from when the request was *sent*, less a margin, on a clock that
//!   goes on while the machine is suspended, and looked at with each question.
//! - A call that may have happened is made again only under the same idempotency key, or where twice is the same as once. When its
//!   time runs out, the error says whether it has surely not happened ([`Error::Unavailable`]) or nobody knows
//!   ([`Error::Indeterminate`]).
//! - Nothing that a server sends makes a client panic.
//! - A value that cannot be read costs what it is part of, and nothing that comes with it or after it: a row of a list has the text
//!   ([`DocumentRow`]), an event comes without it ([`FeedEvent::unreadable`]), metadata are a string of it ([`lenient`]).
//!
//! Two processes may believe at one time all the same if one is stopped between looking at the clock and acting. Whoever must not
//! let that happen passes the token along, and lets the resource refuse one that is smaller than it has seen. Documents refuse it by
//! themselves: [`If::held`], [`Broker::update`].

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
    Request, Tls, alike, encoded,
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
/// What calls and answers are made of.
pub use reqwest::{Method, StatusCode, header::HeaderMap};
pub use roles::Check;
/// The text of a JSON value: any document can be read as one.
pub use serde_json::value::RawValue;
pub use state_doc::StateDoc;
pub use ties::HeldBy;

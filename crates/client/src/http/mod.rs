//! Calls of a cluster over HTTP. Each file knows only those above it here:
//!
//! | file | what |
//! |---|---|
//! | `path` | names in paths and queries |
//! | `call`, `answer` | what to ask for, and what was answered |
//! | `exchange`, `lines` | one request and its whole answer, and whether the node still lives; an answer without an end, and what is too large to be held |
//! | `attempt` | one attempt of a call, and what it tells |
//! | `nodes`, `pool` | whom to ask; the connections with their certificates, and what all attempts go by |
//! | `retry` | one call, as many attempts as its time allows |
//! | `client`, `caller` | the way to a cluster for programs; single calls, for tools |

mod answer;
mod attempt;
mod call;
mod caller;
mod client;
mod exchange;
mod lines;
mod nodes;
mod path;
mod pool;
mod retry;

pub use answer::{Answer, Page};
pub use call::Call;
pub use caller::{ACT_MAX, Caller, LOOK_MAX, Request};
pub use client::{Client, ClientBuilder, SECRET};
pub use lines::{BodyPieces, LongAnswer};
pub use lines::{End, Lines};
pub use nodes::alike;
pub use path::{encoded, query, segment};
pub use pool::Tls;

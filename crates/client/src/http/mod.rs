//! Calls to a cluster over HTTP. Each file knows only those above it in this table:
//!
//! | file | contents |
//! |---|---|
//! | `path` | names in paths and queries |
//! | `call`, `answer` | a call, and a node's answer |
//! | `exchange`, `lines` | one request and its whole answer, with the probe of the node; streamed answers and large bodies |
//! | `attempt` | one attempt of a call, and its outcome |
//! | `nodes`, `pool` | which node to call; the connections with their certificates, and the settings that all attempts share |
//! | `retry` | one call, with as many attempts as its time allows |
//! | `client`, `caller` | the client for programs; single calls, for tools |

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
pub use nodes::{alike, parsed};
pub use path::{encoded, query, segment};
pub use pool::Tls;

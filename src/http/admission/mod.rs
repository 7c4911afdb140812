//! Admission: how much of this node each caller may take, by address and by token, and what all callers may take together.
//!
//! - `places` counts what a caller keeps for long: a bound for all, and a share of it for each address and each token.
//! - `callers` bounds the connections of each address, and the memory for its bodies.
//! - `seats` bounds the calls under way, each class by itself, and the long reads that run at once.
//! - `timeouts` bounds how long a connection may be silent or slow.
//! - `refused` counts wrong credentials by address, and failed handshakes.
//! - `traffic` counts what was asked and how it was answered, by route.
//!
//! A refusal of this folder is 429, or a constant 503 for a connection, and is given before anything of the
//! call has reached a log (P15). There is no queue in front of a bound: a client that is refused at once can
//! try another node, and a queue would fill with calls whose callers have given up. Only long reads queue for
//! their turn, and they have seats.
//!
//! Calls of peers meet only the bound of connections: clients that fill a node must not keep its peers from
//! being heard. `peer` has its own bounds.

mod callers;
mod places;
mod refused;
mod seats;
mod timeouts;
mod traffic;

pub use callers::{Caller, Callers, ConnectionPlace, Held, no_memory};
pub use places::{Origin, Place, Places, PlacesByName, Sharer, Sharers, Shares};
pub use refused::{FailedHandshakes, Refused};
pub use seats::{Admitted, Class, LongReads, Seat, Seats};
pub use timeouts::{ConnectionTimeouts, Decision, Untaken};
pub use traffic::{Counted, Traffic};

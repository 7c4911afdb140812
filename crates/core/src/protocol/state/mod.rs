//! What one node remembers, and the tools that all rules use.
//!
//! - `node` is what outlives a role; `seeking`, `following` and `leading` are what ends with one.
//! - `progress` is how far a leader's follower is, `ballots` are the digests that a leader compares.
//! - `leader` is the receiver of what a leader decides: the node, and what its role remembers.
//! - `members` are who belongs to the cluster, and whose votes count.
//! - `reach` is how far what others say may lie ahead of what is known here.
//! - `peers` are the other nodes' processes and disks, `grants` the leases that this node has given, `admission` says whose word
//!   counts.
//! - `impasses` are merges that do not come off.
//! - `effects` writes, promises, sends and commits: what must be durable before a message leaves is decided there alone.

mod admission;
mod ballots;
mod effects;
mod following;
mod grants;
mod impasses;
mod leader;
mod leading;
mod members;
mod node;
mod peers;
mod progress;
mod reach;
mod seeking;

pub use ballots::{Ballots, Judgement};
pub use following::{Following, Tentative};
pub use grants::relied_until;
pub use leader::Leader;
pub use leading::{HandingIn, HandingOver, Leading, Meeting, Merges, Reads, Waiting, Yielded};
pub use node::{Node, Role, RoleName};
pub use peers::{Life, Peer};
pub use progress::{Mode, Progress, Step};
pub use seeking::{Approval, Claiming, Known, Opinion, Pending, Seeking};

//! What clients can ask for, how it is read and checked, and what they are answered.
//!
//! - `kind` numbers and names the commands; `operations` are those of users, elections and documents, `leases` those of roles
//!   and processes.
//! - `parse` reads a command from a client or from the log, `lease_body` what clients send about leases.
//! - `outcome` is the reply to a command that was carried out, or the reason why it was rejected.

mod kind;
mod lease_body;
mod leases;
mod operations;
mod outcome;
mod parse;

pub use kind::{COMMANDS, Kind};
pub use lease_body::{Acquisition, Tenure, lease_name};
pub use leases::{Claim, LeaseOperation, Leases, NewProcess};
pub use operations::{Command, Condition, NewElection, NewUser, Operation};
pub use outcome::{Created, Reason, Rejection, Reply, Rule, Thing};
pub use parse::{BadCommand, Unreadable, check_key, new_election, new_user, value_text, value_text_of};

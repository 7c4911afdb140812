//! The commands of clients: how they are read and checked, and how they are answered.
//!
//! - `lifetime` says when a document ends. `holding` binds a write to a role, and checks a holder's secret.
//! - `kind` numbers and names the commands; `operations` are those of users, elections and documents, `leases` those of roles
//!   and processes, `tokens` those of clients' tokens.
//! - `parse` reads a command from a client or from the log, `lease_body` reads the bodies that clients send about leases.
//! - `blank` detects invisible names.
//! - `outcome` is the reply to a command that was carried out, or the reason why it was rejected.

mod blank;
mod holding;
mod kind;
mod lease_body;
mod leases;
mod lifetime;
mod operations;
mod outcome;
mod parse;
mod tokens;

pub use blank::is_blank;
pub use holding::Holding;
pub use holding::SecretHash;
pub use kind::{COMMANDS, CommandKind, ENDINGS, FOREIGN};
pub use lease_body::{Acquisition, Tenure, lease_name};
pub use leases::{HeldLeases, LeaseOperation, NewProcess, RoleClaim};
pub use lifetime::{Ending, Tether, lease_path};
pub use operations::{Command, DocCondition, NewElection, NewUser, Operation};
pub use outcome::{Created, Reason, Rejection, Reply, Rule, Thing};
pub use parse::{BadCommand, Unreadable, check_key, new_election, new_user, value_text, value_text_of};
pub use tokens::{NewToken, TokenOperation};

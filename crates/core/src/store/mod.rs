//! The replicated state: users, elections, votes, documents, roles, processes and tokens, and the calls that were carried out.
//!
//! ```text
//! client's JSON ── Command::parse ──► Command ── judge ──► to_payload ──► the log
//!                                                                           │ Record
//!        views, document ◄── clone ── Store ◄── apply ◄── from_payload ◄────┘
//!                                       └── entry, entries ──► snapshot ──► Loader ──► Store
//! ```
//!
//! The modules, lowest first; each imports only from the modules before it:
//!
//! - `encoding` reads and writes values, `access` decides what a token's grants cover,
//!   `command` has the commands of clients, `tables` hold the entries, `state` is the
//!   tables together.
//! - `data` has the rules and views of users, elections, documents and tokens, `leases` those of roles and processes.
//! - `merge` merges two histories, in available mode.
//! - `documents` are the state as one JSON document, and restores from it.
//! - `apply` combines rules, batches and remembered calls: it turns a record into the next state.
//! - `quota` decides what would make the state too large.
//!
//! The store is deterministic: the same records give the same state on every node (I5). Time comes with the records' stamps
//! (P17); the store does not read a clock, does no IO and draws no random numbers. Bad input from clients, disks and peers gets
//! an error and never a panic. A record that is applied out of order is a bug of this program, and panics.

mod access;
mod apply;
mod command;
mod data;
mod documents;
mod encoding;
mod leases;
mod merge;
mod quota;
mod state;
mod tables;
#[cfg(test)]
mod tests;

pub use access::{Area, BadGrant, Grant, Grants, TokenHash, TokenId, Verb};
pub use apply::{Applied, Judged};
pub use command::{
    Acquisition, BadCommand, COMMANDS, Command, CommandKind, DocCondition, Ending, HeldLeases, Holding,
    LeaseOperation, NewElection, NewProcess, NewToken, NewUser, Operation, Reason, Rejection, Reply,
    RoleClaim, Rule, SecretHash, Tenure, Tether, Thing, TokenOperation, Unreadable, is_blank, lease_name,
    lease_path,
};
pub use data::{DocItem, DocView, ElectionView, Gone, TokenEvent, TokenView, UserView};
pub use documents::{
    BadDocument, BadRow, Guard, RowSteps, Steps, ending, give_up_restore, merge_steps, restore_steps,
};
pub use encoding::date::{micros as date_micros, text as date_text};
pub use encoding::{
    BATCH_MOST, BadField, CALLS_KEPT, CALLS_MOST, CHOICES_MOST, CONFLICT_ID_MOST, DEPTH_MOST, DOC_TTL_MOST,
    FORGOTTEN_MOST, GRANTS_MOST, GROUPS_MOST, Json, KEY_MOST, METADATA_MOST, NAME_MOST, OPERATIONS_MOST,
    PAGE_BYTES_MOST, PAGE_MOST, PROCESS_TTL, Problem, REV_MOST, ROLE_TTL, TETHERED_MOST, TOKEN_FLOOR_MOST,
    TOKEN_NAME_MOST, TOKEN_REMAINDERS, TOKEN_TTL_MOST, TOKENS_MOST, TOMBSTONES_MOST, TTL_LEAST, TTL_MOST,
    VALUE_MOST, check_readable, compact,
};
pub use leases::{DocEnded, Ended, LeaseEvent, ProcessFilter};
pub use merge::{ConflictView, Difference, Merged, Print, entry_in, write_entry};
pub use quota::Quota;
pub use state::{Loader, Store};
pub use tables::{Bond, Conflict, Key, Lifetime, Page, Process, Role, TABLES, Token, Version};

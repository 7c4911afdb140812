//! The replicated state: users, elections, votes, documents, and the calls that were carried out.
//!
//! ```text
//! client's JSON ── Command::parse ──► Command ── judge ──► to_payload ──► the log
//!                                                                           │ Record
//!        views, document ◄── clone ── Store ◄── apply ◄── from_payload ◄────┘
//!                                       └── entry, entries ──► snapshot ──► Loader ──► Store
//! ```
//!
//! - `command` is what can be asked for, `parse` how it is read and checked, `fields` how errors find their path.
//! - `rules` says what each operation demands and does; `apply` strings rules, batches and remembered calls together.
//! - `state` holds the tables; each `table` is an immutable map with a running digest.
//! - `leases` are the roles and processes, `lease_command` what can be asked of them, `leasing` what that does, `lease_body`
//!   what clients send, `lease_pages` what they are listed.
//! - `sides` is what available mode keeps beside the tables, `said` all that a state has to say about a key, `held` a piece of
//!   that. `difference` and its `text` are what two histories hand each other; `merge` joins them, `overriding` makes a follower
//!   what its leader is, `conflict` is the journal of what was overridden, `union` adds an operator's document.
//! - `views` and `document` show the state; `load` and `document` make one; `restore` replaces one.
//!
//! Deterministic: the same records give the same state on every node (I5). Time comes with the records' stamps (P17); nothing
//! here reads a clock, does IO or draws a number. What comes from clients, disks and peers is answered with an error and
//! never a panic; a record applied out of turn is a bug of this program, and panics.

mod apply;
mod calls;
mod changed;
mod command;
mod conflict;
mod date;
mod difference;
mod document;
mod fields;
mod hash;
mod held;
mod json;
mod key;
mod lease_body;
mod lease_command;
mod lease_pages;
mod leases;
mod leasing;
mod limits;
mod load;
mod merge;
mod overriding;
mod parse;
mod rejection;
mod reply;
mod restore;
mod rows;
mod rules;
mod said;
mod sides;
mod state;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod union;
mod views;
mod votes;

pub use apply::{Applied, Judged};
pub use command::{COMMANDS, Command, Condition, Kind, NewElection, NewUser, Operation};
pub use conflict::{Conflict, ConflictView};
pub use date::text as date_text;
pub use difference::Difference;
pub use document::BadDocument;
pub use fields::{BadField, Problem};
pub use held::Held;
pub use json::{Json, compact};
pub use key::{Key, TABLES};
pub use lease_body::{Acquisition, Tenure, lease_name};
pub use lease_command::{Claim, LeaseOperation, Leases, NewProcess};
pub use lease_pages::ProcessFilter;
pub use leases::{Ended, LeaseEvent, Process, Role};
pub use limits::{
    BATCH_MOST, CALLS_KEPT, CALLS_MOST, CHOICES_MOST, CONFLICT_ID_MOST, DEPTH_MOST, FORGOTTEN_MOST,
    GROUPS_MOST, KEY_MOST, METADATA_MOST, NAME_MOST, OPERATIONS_MOST, PAGE_BYTES_MOST, PAGE_MOST,
    PROCESS_TTL, REV_MOST, ROLE_TTL, TOMBS_MOST, TTL_LEAST, TTL_MOST, VALUE_MOST,
};
pub use load::Loader;
pub use merge::Merged;
pub use parse::{BadCommand, Unreadable};
pub use rejection::{Reason, Rejection, Rule, Thing};
pub use reply::Reply;
pub use restore::{give_up_restore, merge_steps, restore_steps};
pub use state::Store;
pub use text::{entry_in, write_entry};
pub use views::{DocItem, DocView, ElectionView, Page, UserView};

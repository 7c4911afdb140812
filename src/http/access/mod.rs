//! Access: who calls, what a call asks for, and whether that caller may.
//!
//! - `needs` is one table: what each route needs of its caller. The router is built from it.
//! - `auth` finds out who calls, by `Authorization`, and what that caller may do.

mod auth;
pub mod needs;

pub use auth::{Guard, Principal, Shown, Who, written};

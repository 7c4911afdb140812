//! The rights of a token (P56), as pure functions on texts. The listener alone asks what a token may do; the store
//! reads, checks and keeps grants, and decides nothing by them.
//!
//! - `grant` is one right in its text form, `read,write docs/app/`; `grants` are all rights of a token.
//! - `credential` is the id of a token, and the hash of its secret.

mod credential;
mod grant;
mod grants;

pub use credential::{TokenHash, TokenId};
pub use grant::{Area, BadGrant, Grant, Verb};
pub use grants::Grants;

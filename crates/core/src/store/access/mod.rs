//! What somebody who shows a token may do (P56): pure questions about texts, which nobody but the listener asks.
//!
//! - `grant` is one right in its text form, `read,write docs/app/`; `grants` are all that a token has.
//! - `credential` is what a token is known by, and the hash of what is shown with it.

mod credential;
mod grant;
mod grants;

pub use credential::{TokenHash, TokenId};
pub use grant::{Area, BadGrant, Grant, Verb};
pub use grants::Grants;

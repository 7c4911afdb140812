//! The replicated state: `store` is all of it, `entries` reads and writes it key by key, and `load` builds it from the entries
//! of a snapshot.

mod entries;
mod load;
mod store;

pub use load::Loader;
pub use store::{Staged, Store};
#[cfg(test)]
pub use store::{history_digest, token_digest};

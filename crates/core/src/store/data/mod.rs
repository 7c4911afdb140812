//! Users, elections, votes, documents and tokens. `rules` has the preconditions and effects of each operation, `views` the form
//! that readers see; `tokens` has both for tokens.

mod rules;
mod tokens;
mod views;

pub use tokens::{Gone, TokenEffects, TokenEvent, TokenView};
pub use views::{DocItem, DocView, ElectionView, UserView};

//! Users, elections, votes, documents and tokens: `rules` says what each operation demands and does, `views` what readers
//! are shown; `tokens` has both of tokens.

mod rules;
mod tokens;
mod views;

pub use tokens::{Gone, TokenEffects, TokenEvent, TokenView};
pub use views::{DocItem, DocView, ElectionView, UserView};

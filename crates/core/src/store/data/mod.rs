//! Users, elections, votes and documents: `rules` says what each operation demands and does, `views` what readers are shown.

mod rules;
mod views;

pub use views::{DocItem, DocView, ElectionView, UserView};

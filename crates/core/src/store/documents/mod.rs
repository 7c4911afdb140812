//! All data as one JSON document: `document` writes and reads it, `restore` puts it in the place of a state, step by step.

mod document;
mod restore;

pub use document::BadDocument;
pub use restore::{Restored, Steps, give_up_restore, is_step, merge_steps, restore_steps};

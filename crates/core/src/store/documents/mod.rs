//! All data as one JSON document: `document` writes and reads it, `restore` replaces a state by it, step by step. `rows` does
//! the same with the rows of a backup.

mod document;
mod restore;
mod rows;

pub use document::BadDocument;
pub use restore::{Guard, Restored, Steps, ending, give_up_restore, is_step, merge_steps, restore_steps};
pub use rows::{BadRow, RowSteps};

//! Values are read and written here: JSON with its bounds, dates, and the hash that digests are made of.

pub mod date;
pub mod fields;
mod hash;
mod json;
mod limits;
mod readable;

pub use fields::{BadField, Fields, Problem, check_text};
pub use hash::{Hash, Mix};
pub use json::{Json, compact, open, write_list, write_text};
pub use limits::*;
pub use readable::check_readable;

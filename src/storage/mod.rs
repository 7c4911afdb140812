//! Everything that touches files.

mod meta;

pub use meta::Boundary;

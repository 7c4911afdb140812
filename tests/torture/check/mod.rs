//! What a history must be. Every checker is a function of what clients recorded: no clock, no cluster. `tests/it` includes these
//! modules, so that the gate runs their tests.
//!
//! Times are nanoseconds of one clock. A checker that finds nothing says nothing; one that does says what, and what happened around it.

pub mod bank;
pub mod beliefs;
pub mod channels;
pub mod feed;
pub mod leaders;
pub mod pairs;
pub mod sets;
pub mod ttl;

/// What was found, in words.
pub type Verdict = Result<(), String>;

/// What a client knows of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was an answer, and it is final.
    Done,
    /// It has not happened and never will.
    Refused,
    /// It may have happened, or may yet.
    Unknown,
}

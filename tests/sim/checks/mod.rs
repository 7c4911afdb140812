//! The checkers: one property per file. They see the whole cluster, which no node does.

pub mod acknowledged;
pub mod applied;
pub mod believers;
pub mod durable;
pub mod early;
pub mod epochs;
pub mod fenced;
pub mod forward;
pub mod history;
pub mod kept;
pub mod late;
pub mod lease;
pub mod merged;
pub mod positions;
pub mod refused;
pub mod restored;
pub mod returned;
pub mod story;
pub mod survival;
pub mod time;
pub mod tokens;
pub mod told;
pub mod vectors;

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub checker: &'static str,
    pub what: String,
}

pub type Check = Result<(), Violation>;

pub fn ensure(holds: bool, checker: &'static str, what: impl FnOnce() -> String) -> Check {
    match holds {
        true => Ok(()),
        false => Err(Violation { checker, what: what() }),
    }
}

/// All checkers that watch a running cluster.
#[derive(Debug, Default)]
pub struct Checks {
    pub epochs: epochs::Epochs,
    pub story: story::Story,
    pub survival: survival::Survival,
    pub answered: acknowledged::Answered,
    pub applied: applied::Applied,
    pub refused: refused::Refused,
    pub restored: restored::Restored,
    pub tokens: tokens::Tokens,
    pub told: told::Told,
    pub time: time::Times,
    pub lease: lease::Leases,
    pub history: history::History,
    pub positions: positions::Positions,
    pub believers: believers::Believers,
    pub early: early::Early,
    pub late: late::Late,
    pub fenced: fenced::Fenced,
    pub returned: returned::Returned,
}

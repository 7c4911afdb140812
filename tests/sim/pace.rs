//! The pace of a seed: in some seeds the timings are those of config/wan.toml or config/seed.toml, and some
//! messages arrive late by several time-outs.

use eldest::protocol::{Settings, Timing};
use eldest::types::Span;

use crate::rng::Rng;
use crate::world::World;

/// Drawn separately, so that the other seeds stay what they are.
const PACE: u64 = 0xFACE;

#[derive(Clone, Debug)]
pub struct Pace {
    timing: Timing,
    /// Faults follow each other, and clients ask, this many times slower than in the profile `lan`.
    pub factor: u64,
    late: bool,
}

impl Pace {
    pub fn of(seed: u64) -> Pace {
        let mut rng = Rng::new(seed ^ PACE);
        let (timing, factor) = match rng.below(100) {
            0..10 => (Timing::wan(), 2),
            10..14 => (Timing::seed(), 45),
            _ => (Timing::lan(), 1),
        };
        Pace { timing, factor, late: rng.chance(150) }
    }

    /// Holds and stability are as short relative to the other timings as in every seed.
    pub fn apply(&self, settings: &mut Settings) {
        let Timing { stable_for, hold, hold_most, .. } = settings.timing;
        let slower = |span: Span| span.times(self.factor);
        let (stable_for, hold, hold_most) = (slower(stable_for), slower(hold), slower(hold_most));
        settings.timing = Timing { stable_for, hold, hold_most, ..self.timing.clone() };
    }

    pub fn slow(&self, (low, high): (u64, u64)) -> (u64, u64) {
        (low * self.factor, high * self.factor)
    }

    pub fn delay_messages(&self, world: &mut World) {
        if self.late {
            world.net.late = 3 * world.hosts[0].settings.timing.election_timeout().0;
        }
    }
}

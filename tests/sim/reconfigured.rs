//! An operator rolls out another configuration. A node that starts again gets the new one, or the old one
//! back; in the end all have the new one. Nodes with different timings refuse each other.

use eldest::protocol::{Ack, Settings, Takeover, Timing};
use eldest::types::{NodeId, Span};

use crate::rng::Rng;
use crate::world::World;

#[derive(Debug)]
pub struct Rollout {
    rng: Rng,
    /// The old configuration, and the new one.
    both: [Settings; 2],
}

impl Rollout {
    pub fn new(mut rng: Rng, old: &Settings) -> Rollout {
        let mut new = old.clone();
        new.ack = *rng.pick(&[Ack::Majority, Ack::All]);
        new.takeover = *rng.pick(&[Takeover::Never, Takeover::WhenStable]);
        new.limits.batch = *rng.pick(&[1, 8, 64]);
        new.limits.inflight = *rng.pick(&[1, 8]);
        new.limits.keep = *rng.pick(&[0, 30, 1_000]);
        if rng.chance(500) {
            let (times, parts) = *rng.pick(&[(1, 2), (3, 2), (2, 1)]);
            new.timing = scaled(&old.timing, |span| Span(span.0 * times / parts));
        }
        Rollout { rng, both: [old.clone(), new] }
    }

    pub fn changes_timings(&self) -> bool {
        self.both[0].timing != self.both[1].timing
    }

    /// A machine starts again, mostly with the new configuration.
    pub fn again(&mut self, settings: &mut Settings) {
        let which = usize::from(self.rng.chance(700));
        self.give(which, settings);
    }

    fn give(&self, which: usize, settings: &mut Settings) {
        let Settings { timing, limits, takeover, ack, .. } = self.both[which].clone();
        *settings = Settings { timing, limits, takeover, ack, ..settings.clone() };
    }

    /// All get the new configuration: a node that runs with another one starts again.
    pub fn ends(&self, world: &mut World) {
        for node in 0..world.hosts.len() {
            let mut settings = world.hosts[node].settings.clone();
            self.give(1, &mut settings);
            if settings != world.hosts[node].settings {
                world.crash(node, false);
                world.hosts[node].settings = settings;
            }
        }
    }
}

fn scaled(timing: &Timing, scale: impl Fn(Span) -> Span) -> Timing {
    Timing {
        heartbeat: scale(timing.heartbeat),
        dead_after: scale(timing.dead_after),
        declare: scale(timing.declare),
        stagger: scale(timing.stagger),
        lease: scale(timing.lease),
        window: scale(timing.window),
        poll: scale(timing.poll),
        ..timing.clone()
    }
}

impl World {
    /// Whether a node listens to another one. All timings but the lease must be the same; each node takes the
    /// other's lease as it comes.
    pub fn are_configured_alike(&self, from: NodeId, node: usize) -> bool {
        let sender = self.machine(node, from);
        let [one, other] = [node, sender].map(|node| &self.hosts[node].settings.timing);
        Timing { lease: one.lease, ..other.clone() } == *one
    }
}

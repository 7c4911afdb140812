//! The members and the timings of the protocol. Relations between the timings are checked here,
//! once, so that the rest of the protocol may rely on them.

use crate::types::{ClusterId, DIGESTS, FORMAT, Format, INDEX_MOST, Member, Members, NodeId, Span, Text};

/// The timings. All nodes of a cluster run the same timings. Peers compare a digest of
/// them, because a lease is a promise about the patience of another node (P11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// The time between two beats of a leader.
    pub heartbeat: Span,
    /// After a silence of this length a leader is suspected; a leader without a majority for this long steps down.
    pub dead_after: Span,
    /// The time between two rounds of questions of a leaderless node, and between two repetitions of a claim.
    pub declare: Span,
    /// Head start of each rank over the next.
    pub stagger: Span,
    /// The lease that a leader asks for with each beat.
    pub lease: Span,
    /// The most by which a clock's rate may be off, in percent.
    pub drift_percent: u64,
    /// The longest time that a hand-over may take, and that a claim may go on without progress.
    pub window: Span,
    /// The time for which a returning elder must have been up under this leader before it takes over (P19).
    pub stable_for: Span,
    /// The hold after the second death in a row; it doubles with each further death (P20).
    pub hold: Span,
    /// The longest hold. A node must also live for this long before its deaths are forgotten.
    pub hold_most: Span,
    /// The time between two polls in which a leader looks for other leaders, in available mode (P32).
    pub poll: Span,
}

/// Whether a returning elder takes leadership back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Takeover {
    Never,
    WhenStable,
}

/// The moment at which a write is acknowledged to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ack {
    /// When a majority of the voters has it durably.
    Majority,
    /// When every follower that is not suspected has it durably as well: the rule of the seed program.
    All,
}

/// The operations that one side of a partition may carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Leadership and acknowledgement need a majority of the voters.
    Safe,
    /// Every side elects its live node with the lowest id and goes on; sides that meet are merged (P31).
    Available,
}

impl Mode {
    /// The name in the configuration, in messages and for people.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Safe => "safe",
            Mode::Available => "available",
        }
    }
}

/// Bounds on the data that a node holds or sends at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Records in one append: bounds the memory and the delay of one message.
    pub batch: usize,
    /// The same in bytes. One record alone may be larger.
    pub batch_bytes: usize,
    /// Appends in flight to one follower: bounds how much the leader resends to a slow follower.
    pub inflight: usize,
    /// Records appended but not committed; beyond it writes are refused with `TooMany` (429).
    pub uncommitted: u64,
    /// The same in bytes: bounds the memory that clients can fill faster than followers store the records.
    pub uncommitted_bytes: usize,
    /// Reads that wait for a confirmation; beyond it they are refused with `TooManyReads`.
    pub reads: usize,
    /// Records kept below the newest snapshot for followers that lag.
    pub keep: u64,
    /// The same in bytes: large records leave memory sooner.
    pub keep_bytes: usize,
    /// A node may be this far behind the newest position and still count as ready (P21).
    pub ready_lag: u64,
    /// The greatest state that a side sends to be merged, in bytes: the node that takes it in holds it in memory (P48).
    pub merge_bytes: u64,
    /// Entries of the journal of conflicts; a merge that would make more does not take place (P48).
    pub conflicts: usize,
    /// The same in bytes of text.
    pub conflict_bytes: usize,
    /// The greatest size to which clients may make the state grow, in bytes. The leader's own setting decides (P55).
    pub state_bytes: u64,
    /// The same for the documents of single areas. An area is a key up to its first slash.
    pub area_bytes: Vec<(Text, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    pub me: NodeId,
    /// The nodes of the topology file, this one included: the founders. Once the log names the members, the log decides (P43).
    pub members: Members,
    /// The id of a cluster that this node founds (P44). The driver draws it at random at the start.
    pub new_cluster: ClusterId,
    pub mode: Mode,
    pub timing: Timing,
    pub limits: Limits,
    pub takeover: Takeover,
    pub ack: Ack,
    /// The newest record format that this binary reads.
    pub format: Format,
    /// The version of the algorithm by which this binary computes the digests that nodes compare (P25).
    pub digests: u32,
    /// Whether peers prove who they are, by secret or certificate. If they do not, no unasked message ends this node (P51).
    pub peers_prove: bool,
    /// The base of the numbers of this process's questions and beats. The driver draws it at random at the start, so that only
    /// the nodes that were asked can answer (P51). Zero: the numbers begin at zero.
    pub asks_from: u64,
}

/// No lease is longer than this: a longer one is refused in the configuration, and cut in a message (P50).
/// The next leader waits at most this long before it may be relied on.
pub const LEASE_MOST: Span = Span::millis(60_000);

impl Timing {
    pub fn lan() -> Timing {
        Timing {
            heartbeat: Span::millis(100),
            dead_after: Span::millis(500),
            declare: Span::millis(50),
            stagger: Span::millis(20),
            lease: Span::millis(300),
            drift_percent: 1,
            window: Span::millis(1_000),
            stable_for: Span::millis(5_000),
            hold: Span::millis(10_000),
            hold_most: Span::millis(600_000),
            poll: Span::millis(1_000),
        }
    }

    pub fn wan() -> Timing {
        Timing {
            heartbeat: Span::millis(250),
            dead_after: Span::millis(2_000),
            declare: Span::millis(250),
            stagger: Span::millis(200),
            lease: Span::millis(1_500),
            window: Span::millis(3_000),
            stable_for: Span::millis(30_000),
            hold: Span::millis(60_000),
            poll: Span::millis(2_000),
            ..Timing::lan()
        }
    }

    /// The seed program's own numbers.
    pub fn seed() -> Timing {
        Timing {
            heartbeat: Span::millis(30_000),
            dead_after: Span::millis(60_000),
            declare: Span::millis(5_000),
            stagger: Span::millis(5_000),
            lease: Span::millis(2_000),
            window: Span::millis(30_000),
            stable_for: Span::millis(120_000),
            hold: Span::millis(240_000),
            poll: Span::millis(60_000),
            ..Timing::lan()
        }
    }

    /// Every timing with its name, in microseconds if it is a time. The struct is destructured by name, so that a new timing is not
    /// forgotten.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        let Timing {
            heartbeat,
            dead_after,
            declare,
            stagger,
            lease,
            drift_percent,
            window,
            stable_for,
            hold,
            hold_most,
            poll,
        } = self;
        [
            ("heartbeat", heartbeat.0),
            ("dead_after", dead_after.0),
            ("declare", declare.0),
            ("stagger", stagger.0),
            ("lease", lease.0),
            ("drift_percent", *drift_percent),
            ("window", window.0),
            ("stable_for", stable_for.0),
            ("hold", hold.0),
            ("hold_most", hold_most.0),
            ("poll", poll.0),
        ]
    }

    /// The election time-out, the unit of the liveness bound (I10).
    pub fn election_timeout(&self) -> Span {
        self.dead_after + self.window
    }

    /// The commit index may stand still for this long while records wait for a majority (P16). This outlasts a disk that stalls
    /// for two seconds, because a successor would have to wait for that disk as well.
    pub fn stuck_after(&self) -> Span {
        self.dead_after + self.window.times(2)
    }

    /// A follower remembers a silence of its leader for this long after the silence ended (P3).
    pub fn falters_for(&self) -> Span {
        self.hold.times(6)
    }

    /// Whether leases lapse between two beats. If they do, the leader asks for a new lease when a caller wants to know the leader
    /// (P11).
    pub fn leases_lapse(&self) -> bool {
        self.lease <= self.heartbeat
    }

    /// For this long an answer proves that its sender hears this node (P4).
    pub fn fresh(&self) -> Span {
        self.heartbeat.times(2)
    }

    /// Every violated relation that the rules rely on, with its reason. The list is empty when all relations hold.
    pub fn contradictions(&self) -> Vec<&'static str> {
        let relations = [
            (self.heartbeat > Span::ZERO, "heartbeat must not be zero"),
            (self.declare > Span::ZERO, "declare must not be zero"),
            (
                self.lease <= self.dead_after,
                "lease must not outlast dead_after: a silent leader is suspected by then (P11)",
            ),
            (self.lease > Span::ZERO, "lease must not be zero"),
            (
                self.lease <= LEASE_MOST,
                "lease must be a minute at most: the next leader waits that long before it may be relied on (P11)",
            ),
            (
                self.dead_after >= self.heartbeat.times(2),
                "dead_after must cover two beats, or one lost beat would count as a death (P3)",
            ),
            (
                self.drift_percent < 25,
                "drift_percent must be below 25: the leader counts a lease shortened by twice that (P11)",
            ),
            (self.window >= self.declare, "window must cover one declaration (P8)"),
        ];
        relations.into_iter().filter_map(|(holds, why)| (!holds).then_some(why)).collect()
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            batch: 1024,
            batch_bytes: 1 << 20,
            inflight: 16,
            uncommitted: 65_536,
            uncommitted_bytes: 64 << 20,
            reads: 65_536,
            keep: 10_000,
            keep_bytes: 64 << 20,
            ready_lag: 10_000,
            merge_bytes: 1 << 30,
            conflicts: 250_000,
            conflict_bytes: 1 << 30,
            state_bytes: 2 << 30,
            area_bytes: Vec::new(),
        }
    }
}

impl Settings {
    /// The number at which the questions and beats to that node begin. The numbers that one node hears tell it nothing about the numbers of
    /// another node. So a process that listens at the address of one node can answer for that node alone (P51).
    pub(in crate::protocol) fn numbers_from(&self, node: NodeId) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.asks_from.to_le_bytes()).update(&node.0.to_le_bytes());
        let mut number = [0; 8];
        number.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        if self.asks_from == 0 { 0 } else { u64::from_le_bytes(number) % INDEX_MOST }
    }

    pub fn lan(me: NodeId, members: Vec<NodeId>) -> Settings {
        Settings {
            me,
            members: members.into_iter().map(Member::founder).collect(),
            new_cluster: ClusterId::NONE,
            mode: Mode::Safe,
            timing: Timing::lan(),
            limits: Limits::default(),
            takeover: Takeover::Never,
            ack: Ack::Majority,
            format: FORMAT,
            digests: DIGESTS,
            peers_prove: true,
            asks_from: 0,
        }
    }

    pub fn is_available(&self) -> bool {
        self.mode == Mode::Available
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_do_not_contradict_themselves() {
        for timing in [Timing::lan(), Timing::wan(), Timing::seed()] {
            assert_eq!(timing.contradictions(), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_lease_beyond_the_patience_of_followers_is_refused() {
        let timing = Timing { lease: Span::millis(1_500), ..Timing::lan() };
        assert_eq!(timing.contradictions().len(), 1);
    }
}

//! Every partial-connectivity graph: a working cluster is cut down to the graph at once. Where some node
//! still reaches a majority both ways, writes go on within the bound (I10); where none does, only safety is
//! promised. After the heal all nodes agree.
//!
//! `SIM_FULL=1` runs every directed graph of three and four nodes and every undirected one of five, each with
//! several leaders, and 20,000 directed ones of five; otherwise a fixed sample of the larger sets runs.

use eldest::protocol::majority;
use eldest::types::NodeId;

use crate::calm::{MS, SECOND, Shape, bound, ends_well, for_all, is_full, ms, sample};
use crate::checks::{Violation, ensure};
use crate::plan::members;
use crate::rng::Rng;
use crate::run::states;
use crate::world::World;

/// The links that pass, one bit per directed link.
#[derive(Clone, Copy)]
struct Graph {
    count: u32,
    mask: u64,
}

impl Graph {
    fn links(count: u32) -> impl Iterator<Item = (NodeId, NodeId)> {
        let pairs =
            members(count).into_iter().flat_map(move |a| members(count).into_iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| a != b)
    }

    /// Made from one bit for each pair of nodes.
    fn undirected(count: u32, mask: u64) -> Graph {
        let mut graph = Graph { count, mask: 0 };
        let pairs = Graph::links(count).filter(|(a, b)| a < b);
        for (bit, (a, b)) in pairs.enumerate() {
            if mask >> bit & 1 == 1 {
                graph.mask |= graph.bit(a, b) | graph.bit(b, a);
            }
        }
        graph
    }

    fn bit(&self, from: NodeId, to: NodeId) -> u64 {
        let place = Graph::links(self.count).position(|link| link == (from, to));
        1 << place.expect("a link")
    }

    fn passes(&self, from: NodeId, to: NodeId) -> bool {
        from == to || self.mask & self.bit(from, to) != 0
    }

    /// Whether this node reaches a majority both ways, itself included.
    fn is_central(&self, node: NodeId) -> bool {
        let both = |other: &NodeId| self.passes(node, *other) && self.passes(*other, node);
        members(self.count).iter().filter(|other| both(other)).count() >= majority(self.count as usize)
    }

    fn has_centre(&self) -> bool {
        members(self.count).into_iter().any(|node| self.is_central(node))
    }

    fn cut(&self, world: &mut World) {
        for (from, to) in Graph::links(self.count) {
            if !self.passes(from, to) {
                world.net.cut(from, to);
            }
        }
    }
}

/// One graph, and the leader at the time of the cut.
#[derive(Clone, Copy)]
struct Case {
    graph: Graph,
    leader: u32,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n{} leads, graph {:#x}, links", self.leader, self.graph.mask)?;
        let links = Graph::links(self.graph.count).filter(|(a, b)| self.graph.passes(*a, *b));
        links.into_iter().try_for_each(|(a, b)| write!(f, " {}>{}", a.0, b.0))
    }
}

/// The result for one graph.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    case: Case,
    /// From the cut to the acknowledgement of the first write begun since.
    resumed: Option<u64>,
    /// The number of leaders that opened an epoch, in the time to settle and in the time after it.
    settling: usize,
    later: usize,
    /// From the heal to the acknowledgement of the first write begun since.
    healed: u64,
}

/// Leaders are counted for this long, once the cluster has had the bound's time to settle.
const WATCH: u64 = 4 * SECOND;
/// The think time of clients meanwhile.
const IDLE: (u64, u64) = (200 * MS, 600 * MS);

fn live(case: &Case) -> Result<Outcome, Violation> {
    let Case { graph, leader } = *case;
    let shape = Shape {
        leader,
        think: (40 * MS, 150 * MS),
        seed: graph.mask + u64::from(leader),
        ..Shape::of(graph.count)
    };
    let mut world = shape.formed()?;
    graph.cut(&mut world);
    let (cut, settled) = (world.now, world.now + bound(&world));
    let resumed = goes_on(&mut world, settled)?;
    ensure(resumed.is_some() || !graph.has_centre(), "I10 writes go on", || states(&world))?;
    world.run_until(settled)?;
    let settling = world.openings.len();
    // From here on only changes of leader are counted, and clients cause most of the events.
    let busy = std::mem::replace(&mut world.clients.think, IDLE);
    world.run_until(settled + WATCH)?;
    world.clients.think = busy;
    let later = world.openings.len() - settling;
    let resumed = resumed.map(|at| at - cut);
    let healed = ends_well(&mut world)?;
    Ok(Outcome { case: *case, resumed, settling, later, healed })
}

/// The time at which a write begun from now on is acknowledged, if that is by `until`.
fn goes_on(world: &mut World, until: u64) -> Result<Option<u64>, Violation> {
    let cut = world.now;
    let acknowledged = |world: &World| {
        let newest = world.clients.writes.last();
        newest.is_some_and(|(begun, _)| *begun >= cut)
    };
    let came = world.run_until_true(until, acknowledged)?;
    Ok(came.then_some(world.now))
}

/// Runs the cases, prints what they did, and asserts the bounds.
fn explore(name: &str, cases: &[Case]) {
    let outcomes = for_all(cases, live);
    let live = outcomes.iter().filter(|outcome| outcome.case.graph.has_centre());
    let slowest = live.clone().filter_map(|outcome| outcome.resumed).max().unwrap_or(0);
    println!(
        "{name}: {} graphs, {} with a centre; writes went on within {} ms of the cut and within {} ms of the heal; at most {} openings while settling",
        outcomes.len(),
        live.count(),
        ms(slowest),
        ms(outcomes.iter().map(|outcome| outcome.healed).max().unwrap_or(0)),
        outcomes.iter().map(|outcome| outcome.settling).max().unwrap_or(0),
    );
    outcomes.iter().for_each(hold_to_it);
}

/// At most one change, none where the leader keeps its majority, and none later (P4).
fn hold_to_it(outcome: &Outcome) {
    let Case { graph, leader } = outcome.case;
    let most = if graph.is_central(NodeId(leader)) { 0 } else { 1 };
    assert!(outcome.settling <= most, "more than {most} changes of leader: {outcome:?}");
    assert_eq!(outcome.later, 0, "leaders go on changing: {outcome:?}");
}

fn with_leaders(graphs: impl Iterator<Item = Graph>, leaders: &[u32]) -> Vec<Case> {
    graphs.flat_map(|graph| leaders.iter().map(move |leader| Case { graph, leader: *leader })).collect()
}

fn directed(count: u32, leaders: &[u32], some: usize) -> Vec<Case> {
    let masks = 0..1u64 << (count * (count - 1));
    let cases = with_leaders(masks.map(|mask| Graph { count, mask }), leaders);
    sample(cases.len(), some).into_iter().map(|case| cases[case]).collect()
}

#[test]
fn every_graph_of_three() {
    explore("three nodes, directed", &directed(3, &[1, 2, 3], 192));
}

#[test]
fn every_graph_of_four() {
    explore("four nodes, directed", &directed(4, &[1, 2, 4], 1_200));
}

#[test]
fn every_undirected_graph_of_five() {
    let graphs = (0..1 << 10).map(|mask| Graph::undirected(5, mask));
    let cases = with_leaders(graphs, &[1, 3]);
    let cases: Vec<Case> = sample(cases.len(), 400).into_iter().map(|case| cases[case]).collect();
    explore("five nodes, undirected", &cases);
}

#[test]
fn many_directed_graphs_of_five() {
    let mut rng = Rng::new(5);
    let count = if is_full() { 20_000 } else { 400 };
    let cases: Vec<Case> = (0..count)
        .map(|_| Case {
            // With half of the links at random, few graphs have a centre: two draws in three make a denser
            // graph.
            graph: Graph {
                count: 5,
                mask: (rng.next() | if rng.chance(667) { rng.next() } else { 0 }) & 0xF_FFFF,
            },
            leader: rng.range(1, 5) as u32,
        })
        .collect();
    explore("five nodes, directed", &cases);
}

/// Two nodes lose each other while both see a third: the leader goes on, and the other node stays.
#[test]
fn two_that_lose_each_other_disturb_nobody() {
    let pairs = [(1, 2), (1, 3), (2, 3)];
    let cases: Vec<(u32, (u32, u32))> = (1..=3).flat_map(|leader| pairs.map(|pair| (leader, pair))).collect();
    for_all(&cases, |(leader, (a, b))| {
        let mut world = Shape { leader: *leader, ..Shape::of(3) }.formed()?;
        world.net.cut(NodeId(*a), NodeId(*b));
        world.net.cut(NodeId(*b), NodeId(*a));
        let until = world.now + 60 * SECOND;
        world.run_until(until)?;
        ensure(world.openings.is_empty(), "P4 no change of leader", || format!("{:?}", world.openings))?;
        ends_well(&mut world)
    });
}

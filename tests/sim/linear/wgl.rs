//! The search for one key. See the parent module for the method and for why each cut is safe.

use std::collections::BTreeSet;

use super::front::{Bits, Config, Front};
use super::lower::{ABSENT, Kind, Plan, Step, Val};
use super::table::{Crowded, Table};

/// The number of configurations that are followed at first.
const NARROWEST: usize = 8;

/// Why a search ended without a linearization.
#[derive(Debug)]
pub enum Halt {
    /// No order explains the operation at this place in the history. Just before it returned, the
    /// register could have held only these.
    Stuck { op: usize, states: Vec<Val> },
    /// It would take too many steps.
    Exhausted,
    /// Too many operations are open at a time.
    Crowded,
}

impl From<Crowded> for Halt {
    fn from(_: Crowded) -> Halt {
        Halt::Crowded
    }
}

/// Finds out whether the plan has a linearization, in at most about `steps` steps.
pub fn search(plan: &Plan, mut steps: u64) -> Result<(), Halt> {
    let result = search_once(plan, &mut steps, false);
    if let Err(Halt::Stuck { .. }) = result {
        // That is certain. Finds it again without the cuts that leave out what the register could
        // have held, unless that is too much work.
        if let Err(detail @ Halt::Stuck { .. }) = search_once(plan, &mut steps, true) {
            return Err(detail);
        }
    }
    result
}

/// Uses the narrowest sets that do: more than 64 operations are open only if many are unknown.
fn search_once(plan: &Plan, steps: &mut u64, precise: bool) -> Result<(), Halt> {
    for attempt in [follow::<1>, follow::<4>, follow::<16>, follow::<64>] {
        match attempt(plan, steps, precise) {
            Err(Halt::Crowded) => {}
            result => return result,
        }
    }
    Err(Halt::Crowded)
}

/// Most histories that have a linearization have many, so first only the most promising few
/// configurations are followed. To find one is proof. To be stuck is proof only if none was let go.
fn follow<const W: usize>(plan: &Plan, steps: &mut u64, precise: bool) -> Result<(), Halt> {
    let mut width = if precise { usize::MAX } else { NARROWEST };
    loop {
        let mut search = Search::<W>::new(plan, precise, width, *steps);
        let result = search.run();
        *steps = search.steps_left;
        match result {
            Err(Halt::Stuck { .. }) if search.let_go => width *= 8,
            result => return result,
        }
    }
}

struct Search<'a, const W: usize> {
    plan: &'a Plan,
    table: Table<'a, W>,
    front: Front<W>,
    /// The slot of each item, while it is open.
    slot_of: Vec<usize>,
    /// The slot of the operation whose return is being dealt with.
    returning: usize,
    /// The values that the register is to hold later on the way that is being looked for.
    path: Vec<Val>,
    /// The number of configurations to follow, and whether there ever were more.
    width: usize,
    let_go: bool,
    steps_left: u64,
}

impl<'a, const W: usize> Search<'a, W> {
    fn new(plan: &'a Plan, precise: bool, width: usize, steps: u64) -> Self {
        let start = Config { state: ABSENT, used: Bits::NONE, free: Bits::NONE };
        Search {
            plan,
            table: Table::new(plan, precise),
            front: Front(vec![start]),
            slot_of: vec![0; plan.items.len()],
            returning: 0,
            path: Vec::new(),
            width,
            let_go: false,
            steps_left: steps,
        }
    }

    fn run(&mut self) -> Result<(), Halt> {
        let plan = self.plan;
        for &(_, kind, index) in &plan.events {
            match kind {
                Kind::Invoke => self.invoke(index)?,
                Kind::Return => self.settle(self.slot_of[index])?,
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: u64) -> Result<(), Halt> {
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Halt::Exhausted)
    }

    fn invoke(&mut self, index: usize) -> Result<(), Halt> {
        if let Some(slot) = self.table.enter(index)? {
            self.slot_of[index] = slot;
            let step = self.table.step(slot);
            for config in &mut self.front.0 {
                if self.table.unknown.has(slot) {
                    config.free.add(slot);
                } else {
                    absorb(config, slot, step);
                }
            }
        }
        Ok(())
    }

    /// The operation in a slot returns: keeps only configurations in which it has taken effect,
    /// extending those in which it has not in all ways that end with it.
    fn settle(&mut self, slot: usize) -> Result<(), Halt> {
        self.returning = slot;
        let mut done = std::mem::take(&mut self.front);
        let unused = done.0.iter().filter(|config| !config.used.has(slot));
        let mut todo = Front(unused.copied().collect());
        done.0.retain(|config| config.used.has(slot) || config.free.has(slot));
        let (mut at, mut found) = (0, Vec::new());
        while at < todo.0.len() {
            let config = todo.0[at];
            self.extend(&config, &mut found)?;
            for next in found.drain(..) {
                let side = if next.used.has(slot) { &mut done } else { &mut todo };
                let cost = side.append(next, self.table.looks);
                self.spend(cost)?;
            }
            self.let_go |= todo.shorten(self.width.saturating_mul(4));
            at += 1;
        }
        if done.0.is_empty() {
            let op = self.table.item(slot).op;
            let states = self.reachable(&todo);
            return Err(Halt::Stuck { op, states });
        }
        self.front = done;
        self.tidy()
    }

    /// Forgets the returned operation and all else that no longer matters. Configurations that differed in
    /// nothing else become one.
    fn tidy(&mut self) -> Result<(), Halt> {
        let mut gone = self.table.idle(&self.front);
        gone.add(self.returning);
        for config in &mut self.front.0 {
            config.used = config.used & !gone;
            config.free = config.free & !gone;
        }
        while let Some(slot) = gone.pop() {
            self.table.leave(slot);
        }
        self.table.merge_unnamed(&mut self.front);
        let cost = self.front.prune(self.table.looks);
        self.let_go |= self.front.keep(self.width, self.table.open);
        self.spend(cost)
    }

    /// Collects the configurations that are one wanted operation further: one that is still to do and is not
    /// a set, or the returning one. The operations that enable it go right before it.
    fn extend(&mut self, config: &Config<W>, found: &mut Vec<Config<W>>) -> Result<(), Halt> {
        let mut wanted = self.table.open & !(config.used | config.free | self.table.sets);
        wanted.add(self.returning);
        while let Some(slot) = wanted.pop() {
            let enabled = found.len();
            match self.table.step(slot) {
                Step::Set(_) => found.push(*config),
                Step::Is(val) | Step::Move { from: val, .. } => self.reach(config, val, found)?,
                Step::Not(val) => self.leave(config, val, found)?,
            }
            self.apply_to_all(&mut found[enabled..], slot);
        }
        Ok(())
    }

    /// Collects the ways to make the register hold `goal` by sets and unknown moves only: at most one
    /// set, then moves.
    fn reach(&mut self, config: &Config<W>, goal: Val, found: &mut Vec<Config<W>>) -> Result<(), Halt> {
        if config.state == goal {
            found.push(*config);
            // A detour that comes back here is of use only to get sets done that are still to do.
            if (self.table.sets & !(config.used | config.free)).is_empty() {
                return self.spend(1);
            }
        }
        self.make(config, goal, None, found)
    }

    /// Collects the ways to make a register that holds `val` hold anything else. One change will do:
    /// more of them can come after the look that wanted it.
    fn leave(&mut self, config: &Config<W>, val: Val, found: &mut Vec<Config<W>>) -> Result<(), Halt> {
        for at in 0..self.table.makeable.len() {
            let to = self.table.makeable[at];
            if to != val {
                self.make(config, to, Some(val), found)?;
            }
        }
        Ok(())
    }

    /// Collects the ways to get to `goal` that end with a change, by a move from `only` if given.
    fn make(
        &mut self,
        config: &Config<W>,
        goal: Val,
        only: Option<Val>,
        found: &mut Vec<Config<W>>,
    ) -> Result<(), Halt> {
        self.spend(1 + self.table.makers(goal) as u64)?;
        self.path.push(goal);
        for at in 0..self.table.makers(goal) {
            let maker = self.table.maker(goal, at, config);
            // The returning operation must come last, so it is of no help.
            let Some(maker) = maker.filter(|&maker| maker != self.returning) else {
                continue;
            };
            match self.table.step(maker) {
                Step::Move { from, .. } => {
                    if !self.path.contains(&from) && only.is_none_or(|only| only == from) {
                        let enabled = found.len();
                        self.reach(config, from, found)?;
                        self.apply_to_all(&mut found[enabled..], maker);
                    }
                }
                _ => found.push(self.apply(config, maker)),
            }
        }
        self.path.pop();
        Ok(())
    }

    fn apply_to_all(&self, configs: &mut [Config<W>], slot: usize) {
        for config in configs {
            *config = self.apply(config, slot);
        }
    }

    /// The configuration after an operation that is enabled in it.
    fn apply(&self, config: &Config<W>, slot: usize) -> Config<W> {
        let mut next = *config;
        next.used.add(slot);
        next.free.remove(slot);
        if self.table.sets.has(slot) {
            // The other open sets may have come just before this one, unseen.
            next.free = next.free | (self.table.sets & !next.used);
        }
        next.state = self.table.step(slot).left().unwrap_or(next.state);
        let mut owed = self.table.open & !(next.used | next.free);
        while let Some(slot) = owed.pop() {
            absorb(&mut next, slot, self.table.step(slot));
        }
        next
    }

    /// The values that the register can hold in these configurations or after more of the open operations.
    fn reachable(&self, configs: &Front<W>) -> Vec<Val> {
        let mut all = BTreeSet::new();
        for config in &configs.0 {
            let mut unused = self.table.open & !config.used;
            let steps: Vec<Step<Val>> =
                std::iter::from_fn(|| unused.pop()).map(|slot| self.table.step(slot)).collect();
            let (mut states, mut before) = (BTreeSet::from([config.state]), 0);
            while states.len() > before {
                before = states.len();
                for step in &steps {
                    match *step {
                        Step::Set(to) => states.insert(to),
                        Step::Move { from, to } => states.contains(&from) && states.insert(to),
                        Step::Is(_) | Step::Not(_) => false,
                    };
                }
            }
            all.append(&mut states);
        }
        all.into_iter().collect()
    }
}

/// Places an operation that changes nothing as things stand. A look is then done. A set may be done,
/// or may be done again later.
fn absorb<const W: usize>(config: &mut Config<W>, slot: usize, step: Step<Val>) {
    match step {
        Step::Is(val) if val == config.state => config.used.add(slot),
        Step::Not(val) if val != config.state => config.used.add(slot),
        Step::Set(val) if val == config.state => config.free.add(slot),
        _ => {}
    }
}

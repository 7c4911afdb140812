//! The search for one key. See the parent module for the method and for why each cut is safe.

use std::collections::BTreeSet;

use super::front::{Bits, Config, Front};
use super::lower::{ABSENT, Item, Kind, Plan, Step, Val};

/// How many configurations to follow at first.
const NARROWEST: usize = 8;

/// Why a search ended without a linearization.
#[derive(Debug)]
pub enum Halt {
    /// No order explains the operation at this place in the history. Before it, the register could
    /// have held only these.
    Stuck { op: usize, states: Vec<Val> },
    /// Too many steps, or too many operations open at a time.
    Exhausted,
}

/// Finds out whether the plan has a linearization, in at most about `steps` steps.
pub fn search(plan: &Plan, steps: u64) -> Result<(), Halt> {
    // The narrowest sets that do. Unknown operations stay open, so long histories need wider ones.
    match plan.slots {
        0..=Bits::<1>::CAPACITY => search_wider_and_wider::<1>(plan, steps),
        ..=Bits::<4>::CAPACITY => search_wider_and_wider::<4>(plan, steps),
        ..=Bits::<16>::CAPACITY => search_wider_and_wider::<16>(plan, steps),
        ..=Bits::<64>::CAPACITY => search_wider_and_wider::<64>(plan, steps),
        _ => Err(Halt::Exhausted),
    }
}

/// Most histories that have a linearization have many, so first only the most promising few
/// configurations are followed. To find one is proof. To be stuck is proof only if none was let go.
fn search_wider_and_wider<const W: usize>(plan: &Plan, mut steps: u64) -> Result<(), Halt> {
    let mut width = NARROWEST;
    loop {
        let mut search = Search::<W>::new(plan, width, steps);
        match search.run() {
            Err(Halt::Stuck { .. }) if search.let_go => {
                width *= 8;
                steps = search.steps_left;
            }
            result => return result,
        }
    }
}

struct Search<'a, const W: usize> {
    plan: &'a Plan,
    front: Front<W>,
    /// The open operations, and those of them that are sets, and looks.
    open: Bits<W>,
    sets: Bits<W>,
    looks: Bits<W>,
    /// The open item in each slot.
    in_slot: Vec<usize>,
    /// For each content, the open items that can leave it on demand: sets and unknown moves, in the
    /// order in which to spend them.
    makers: Vec<Vec<usize>>,
    /// The contents that have makers.
    makeable: Vec<Val>,
    /// The item whose return is being dealt with.
    returning: usize,
    /// How many configurations to follow, and whether there ever were more.
    width: usize,
    let_go: bool,
    steps_left: u64,
}

impl<'a, const W: usize> Search<'a, W> {
    fn new(plan: &'a Plan, width: usize, steps: u64) -> Self {
        let start = Config {
            state: ABSENT,
            used: Bits::NONE,
            free: Bits::NONE,
        };
        Search {
            plan,
            front: Front(vec![start]),
            open: Bits::NONE,
            sets: Bits::NONE,
            looks: Bits::NONE,
            in_slot: vec![0; plan.slots],
            makers: vec![Vec::new(); plan.vals()],
            makeable: Vec::new(),
            returning: usize::MAX,
            width,
            let_go: false,
            steps_left: steps,
        }
    }

    fn run(&mut self) -> Result<(), Halt> {
        let plan = self.plan;
        for &(_, kind, index) in &plan.events {
            match kind {
                Kind::Invoke => self.invoke(index),
                Kind::Return => self.settle(index)?,
                Kind::Forget => self.close(index)?,
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: u64) -> Result<(), Halt> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Halt::Exhausted)?;
        Ok(())
    }

    fn invoke(&mut self, index: usize) {
        let item = self.plan.items[index];
        self.in_slot[item.slot] = index;
        self.open.add(item.slot);
        match item.step {
            Step::Set(_) => self.sets.add(item.slot),
            Step::Is(_) | Step::Not(_) => self.looks.add(item.slot),
            Step::Move { .. } => {}
        }
        if let Some(to) = made(&item) {
            self.offer(index, to);
        }
        for config in &mut self.front.0 {
            if item.optional {
                config.free.add(item.slot);
            } else {
                absorb(config, &item);
            }
        }
    }

    /// Lists an item as a maker of `to`, soonest to return first, unknown ones last.
    fn offer(&mut self, index: usize, to: Val) {
        let items = &self.plan.items;
        let rank = |index: usize| (items[index].optional, items[index].until);
        let makers = &mut self.makers[to as usize];
        if makers.is_empty() {
            self.makeable.push(to);
        }
        let at = makers.partition_point(|&other| rank(other) <= rank(index));
        makers.insert(at, index);
    }

    /// Takes an item out of everything. Configurations that differed in it alone become one.
    fn close(&mut self, index: usize) -> Result<(), Halt> {
        let item = self.plan.items[index];
        if let Some(to) = made(&item) {
            let makers = &mut self.makers[to as usize];
            makers.retain(|&other| other != index);
            if makers.is_empty() {
                self.makeable.retain(|&val| val != to);
            }
        }
        self.open.remove(item.slot);
        self.sets.remove(item.slot);
        self.looks.remove(item.slot);
        let old = std::mem::take(&mut self.front);
        for mut config in old.0 {
            config.used.remove(item.slot);
            config.free.remove(item.slot);
            let cost = self.front.add(config, self.looks);
            self.spend(cost)?;
        }
        self.let_go |= self.front.keep(self.width, self.open);
        Ok(())
    }

    /// An item returns: keeps only configurations in which it has taken effect, extending those in
    /// which it has not in all ways that end with it.
    fn settle(&mut self, last: usize) -> Result<(), Halt> {
        let slot = self.plan.items[last].slot;
        self.returning = last;
        let (mut done, mut todo) = (Front::default(), Front::default());
        for config in std::mem::take(&mut self.front).0 {
            let used = config.used.has(slot);
            if used || config.free.has(slot) {
                done.0.push(config);
            }
            if !used {
                todo.0.push(config);
            }
        }
        let mut at = 0;
        while at < todo.0.len() {
            let config = todo.0[at];
            for next in self.extensions(&config)? {
                let side = if next.used.has(slot) {
                    &mut done
                } else {
                    &mut todo
                };
                let cost = side.append(next, self.looks);
                self.spend(cost)?;
            }
            at += 1;
            self.let_go |= todo.shorten(4 * self.width);
        }
        if done.0.is_empty() {
            let states = self.reachable(&todo);
            return Err(Halt::Stuck {
                op: self.plan.items[last].op,
                states,
            });
        }
        self.front = done;
        self.close(last)
    }

    /// The configurations one wanted operation further: one that is still to do and is not a set, or
    /// the returning one. Whatever is needed to enable it goes right before it.
    fn extensions(&mut self, config: &Config<W>) -> Result<Vec<Config<W>>, Halt> {
        let mut wanted = self.open & !(config.used | config.free | self.sets);
        wanted.add(self.plan.items[self.returning].slot);
        let mut found = Vec::new();
        for slot in wanted.slots() {
            let index = self.in_slot[slot];
            let mut ready = Vec::new();
            match self.plan.items[index].step {
                Step::Set(_) => ready.push(*config),
                Step::Is(val) | Step::Move { from: val, .. } => {
                    self.reach(config, val, &mut Vec::new(), &mut ready)?;
                }
                Step::Not(val) => self.leave(config, val, &mut ready)?,
            }
            found.extend(ready.iter().map(|config| self.apply(config, index)));
        }
        Ok(found)
    }

    /// Collects the ways to make the register hold `goal` by sets and unknown moves only: at most one
    /// set, then moves. `path` is what it is to hold later on the way.
    fn reach(
        &mut self,
        config: &Config<W>,
        goal: Val,
        path: &mut Vec<Val>,
        found: &mut Vec<Config<W>>,
    ) -> Result<(), Halt> {
        self.spend(1)?;
        if config.state == goal {
            found.push(*config);
            // A detour that comes back here is of use only to get sets done that are still to do.
            if (self.sets & !(config.used | config.free)).is_empty() {
                return Ok(());
            }
        }
        path.push(goal);
        for maker in self.choices(config, goal) {
            match self.plan.items[maker].step {
                Step::Move { from, .. } if path.contains(&from) => {}
                Step::Move { from, .. } => self.reach_then(config, from, maker, path, found)?,
                _ => found.push(self.apply(config, maker)),
            }
        }
        path.pop();
        Ok(())
    }

    /// As [`reach`](Self::reach), and then the item `maker`.
    fn reach_then(
        &mut self,
        config: &Config<W>,
        goal: Val,
        maker: usize,
        path: &mut Vec<Val>,
        found: &mut Vec<Config<W>>,
    ) -> Result<(), Halt> {
        let mut before = Vec::new();
        self.reach(config, goal, path, &mut before)?;
        found.extend(before.iter().map(|config| self.apply(config, maker)));
        Ok(())
    }

    /// Collects the ways to make a register that holds `val` hold anything else. One change will do:
    /// more of them can come after the look that wanted it.
    fn leave(
        &mut self,
        config: &Config<W>,
        val: Val,
        found: &mut Vec<Config<W>>,
    ) -> Result<(), Halt> {
        for at in 0..self.makeable.len() {
            self.spend(1)?;
            let to = self.makeable[at];
            if to == val {
                continue;
            }
            for maker in self.choices(config, to) {
                match self.plan.items[maker].step {
                    Step::Move { from, .. } if from != val => {}
                    Step::Move { .. } => {
                        self.reach_then(config, val, maker, &mut vec![to], found)?;
                    }
                    _ => found.push(self.apply(config, maker)),
                }
            }
        }
        Ok(())
    }

    /// The makers of a content that can be spent: of those alike the first only, and never the
    /// returning one, which must come last.
    fn choices(&self, config: &Config<W>, goal: Val) -> Vec<usize> {
        let items = &self.plan.items;
        let mut chosen: Vec<usize> = Vec::new();
        for &maker in &self.makers[goal as usize] {
            let alike = |&other: &usize| items[other].step == items[maker].step;
            if !config.used.has(items[maker].slot) && !chosen.iter().any(alike) {
                chosen.push(maker);
            }
        }
        chosen.retain(|&maker| maker != self.returning);
        chosen
    }

    /// The configuration after an item that is enabled in it.
    fn apply(&self, config: &Config<W>, index: usize) -> Config<W> {
        let item = &self.plan.items[index];
        let mut next = *config;
        next.used.add(item.slot);
        next.free.remove(item.slot);
        match item.step {
            Step::Set(to) => {
                next.state = to;
                // The other open sets may have come just before this one, unseen.
                next.free = next.free | (self.sets & !next.used);
            }
            Step::Move { to, .. } => next.state = to,
            Step::Is(_) | Step::Not(_) => {}
        }
        for slot in (self.open & !(next.used | next.free)).slots() {
            absorb(&mut next, &self.plan.items[self.in_slot[slot]]);
        }
        next
    }

    /// What the register can hold in these configurations or after more of the open operations.
    fn reachable(&self, configs: &Front<W>) -> Vec<Val> {
        let mut all = BTreeSet::new();
        for config in &configs.0 {
            let unused = (self.open & !config.used).slots();
            let steps: Vec<Step<Val>> = unused
                .map(|slot| self.plan.items[self.in_slot[slot]].step)
                .collect();
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

/// What an item can leave in the register when another operation needs it: sets, and moves that are
/// not bound to happen. A move that must happen is wanted for itself.
fn made(item: &Item) -> Option<Val> {
    match item.step {
        Step::Set(to) => Some(to),
        Step::Move { to, .. } if item.optional => Some(to),
        _ => None,
    }
}

/// Places an operation that changes nothing as things stand. A look is then done. A set may be done,
/// or may be done again later.
fn absorb<const W: usize>(config: &mut Config<W>, item: &Item) {
    match item.step {
        Step::Is(val) if val == config.state => config.used.add(item.slot),
        Step::Not(val) if val != config.state => config.used.add(item.slot),
        Step::Set(val) if val == config.state => config.free.add(item.slot),
        _ => {}
    }
}

//! The open operations of the search, by slot, and what is still to come of each content.

use super::front::{Bits, Config, Front};
use super::lower::{Item, OTHER, Plan, Step, Val};

#[derive(Debug)]
pub struct Table<'a, const W: usize> {
    plan: &'a Plan,
    /// The item last in each slot.
    in_slot: Vec<usize>,
    /// The step of each, with every content that counts as [`OTHER`] replaced by that.
    steps: Vec<Step<Val>>,
    /// The slots in use, and those of them holding sets, looks and operations of unknown outcome.
    pub open: Bits<W>,
    pub sets: Bits<W>,
    pub looks: Bits<W>,
    pub unknown: Bits<W>,
    /// For each content, the open operations that can leave it when another needs it: sets, and moves
    /// that need not happen, in the order in which to spend them. A move that has to happen is wanted
    /// for itself.
    makers: Vec<Vec<usize>>,
    /// The contents that have makers.
    pub makeable: Vec<Val>,
    /// For each content, the number of operations, open or to come, that name it, and that leave it.
    naming: Vec<u32>,
    leaving: Vec<u32>,
    /// The number of operations, open or to come, that want any content but a certain one.
    nots: u32,
    /// Contents that nothing names any more but that may still stand in steps and configurations.
    unnamed: Vec<Val>,
}

impl<'a, const W: usize> Table<'a, W> {
    /// With `precise`, contents stay distinct even when nothing to come can tell them apart.
    pub fn new(plan: &'a Plan, precise: bool) -> Self {
        // As if one more operation were to come that names them all.
        let names = u32::from(precise);
        let mut table = Table {
            plan,
            in_slot: Vec::new(),
            steps: Vec::new(),
            open: Bits::NONE,
            sets: Bits::NONE,
            looks: Bits::NONE,
            unknown: Bits::NONE,
            makers: vec![Vec::new(); plan.vals()],
            makeable: Vec::new(),
            naming: vec![names; plan.vals()],
            leaving: vec![0; plan.vals()],
            nots: names,
            unnamed: Vec::new(),
        };
        for item in &plan.items {
            table.count(item, |counter| *counter += 1);
        }
        table
    }

    fn count(&mut self, item: &Item, change: impl Fn(&mut u32)) {
        if let Some(val) = item.step.named() {
            change(&mut self.naming[val as usize]);
        }
        if let Some(val) = item.step.left() {
            change(&mut self.leaving[val as usize]);
        }
        if let Step::Not(_) = item.step {
            change(&mut self.nots);
        }
    }

    pub fn item(&self, slot: usize) -> &Item {
        &self.plan.items[self.in_slot[slot]]
    }

    /// The step of the operation in a slot, as far as anything can still tell.
    pub fn step(&self, slot: usize) -> Step<Val> {
        self.steps[slot]
    }

    /// The content that this one counts as.
    fn class(&self, val: Val) -> Val {
        if self.naming[val as usize] == 0 { OTHER } else { val }
    }

    /// Gives an item a slot, unless nothing can ever need it, or none is left.
    pub fn enter(&mut self, index: usize) -> Result<Option<usize>, Crowded> {
        let item = self.plan.items[index];
        let unknown = item.returned.is_none();
        let useful = |to: Val| self.nots > 0 || self.class(to) != OTHER;
        if unknown && !item.step.left().is_some_and(useful) {
            self.retire(&item);
            return Ok(None);
        }
        let slot = self.open.lowest_absent().ok_or(Crowded)?;
        if slot == self.in_slot.len() {
            self.in_slot.push(index);
            self.steps.push(item.step);
        }
        self.in_slot[slot] = index;
        self.steps[slot] = item.step.leaving(|to| self.class(to));
        self.open.add(slot);
        if unknown {
            self.unknown.add(slot);
        }
        match item.step {
            Step::Set(_) => self.sets.add(slot),
            Step::Is(_) | Step::Not(_) => self.looks.add(slot),
            Step::Move { .. } => {}
        }
        if let Some(to) = self.made(slot) {
            self.offer(slot, to);
        }
        Ok(Some(slot))
    }

    /// The content that the operation in a slot can leave on demand.
    fn made(&self, slot: usize) -> Option<Val> {
        let on_demand = self.sets.has(slot) || self.unknown.has(slot);
        self.step(slot).left().filter(|_| on_demand)
    }

    /// Lists a maker of `to`: the soonest to return first, those that never do last.
    fn offer(&mut self, slot: usize, to: Val) {
        let rank = |slot: usize| self.item(slot).returned.unwrap_or(u64::MAX);
        let makers = &self.makers[to as usize];
        let at = makers.partition_point(|&other| rank(other) <= rank(slot));
        if makers.is_empty() {
            self.makeable.push(to);
        }
        self.makers[to as usize].insert(at, slot);
    }

    pub fn leave(&mut self, slot: usize) {
        if let Some(to) = self.made(slot) {
            self.makers[to as usize].retain(|&other| other != slot);
            if self.makers[to as usize].is_empty() {
                self.makeable.retain(|&val| val != to);
            }
        }
        for set in [&mut self.open, &mut self.sets, &mut self.looks, &mut self.unknown] {
            set.remove(slot);
        }
        let item = *self.item(slot);
        self.retire(&item);
    }

    fn retire(&mut self, item: &Item) {
        self.count(item, |counter| *counter -= 1);
        let unnamed = |&val: &Val| self.naming[val as usize] == 0;
        self.unnamed.extend(item.step.named().filter(unnamed));
    }

    /// The number of makers of a content.
    pub fn makers(&self, goal: Val) -> usize {
        self.makers[goal as usize].len()
    }

    /// The maker at some place in the list, if it can be spent: among those that are alike, only the first
    /// can be.
    pub fn maker(&self, goal: Val, at: usize, config: &Config<W>) -> Option<usize> {
        let makers = &self.makers[goal as usize];
        let unused = |slot: usize| !config.used.has(slot);
        let alike = |&other: &usize| unused(other) && self.step(other) == self.step(makers[at]);
        (unused(makers[at]) && !makers[..at].iter().any(alike)).then_some(makers[at])
    }

    /// The unknown operations that no longer make a difference, no matter what is still to come.
    pub fn idle(&self, front: &Front<W>) -> Bits<W> {
        let mut idle = front.0.iter().fold(self.unknown, |all, config| all & config.used);
        let mut moves = self.unknown & !self.sets;
        while let Some(slot) = moves.pop() {
            if let Step::Move { from, .. } = self.item(slot).step {
                let never_again = self.leaving[from as usize] == 0;
                if never_again && front.0.iter().all(|config| config.state != from) {
                    idle.add(slot);
                }
            }
        }
        if self.nots == 0 {
            for &slot in &self.makers[OTHER as usize] {
                if self.unknown.has(slot) {
                    idle.add(slot);
                }
            }
        }
        idle
    }

    /// Makes one of all contents that nothing can tell apart any more.
    pub fn merge_unnamed(&mut self, front: &mut Front<W>) {
        while let Some(val) = self.unnamed.pop() {
            let other = |held: Val| if held == val { OTHER } else { held };
            for config in &mut front.0 {
                config.state = other(config.state);
            }
            if self.leaving[val as usize] == 0 {
                continue;
            }
            let mut changes = self.open & !self.looks;
            while let Some(slot) = changes.pop() {
                self.steps[slot] = self.steps[slot].leaving(other);
            }
            self.makeable.retain(|&made| made != val);
            for slot in std::mem::take(&mut self.makers[val as usize]) {
                self.offer(slot, OTHER);
            }
        }
    }
}

/// There are more open operations than slots.
#[derive(Debug)]
pub struct Crowded;

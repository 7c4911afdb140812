//! The result of a power failure.
//!
//! Luck is drawn for the names as a whole and for each file by itself, so a file may have its new name without its newest
//! bytes, or the bytes without the name. Code that relies on an order between two files must sync between them.

use std::collections::BTreeSet;

use crate::files::simulated::tree::{Data, DataChange, Inode, Node, Tree, put};

/// A disk writes a sector as a whole or not at all, except for one that is torn.
const SECTOR_BYTES: usize = 512;

/// The amount of unsynced data that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Nothing,
    Everything,
    /// A random part: all, none or some, of names and of each file's bytes.
    Some,
}

/// The outcome for one file, or for the names.
#[derive(Clone, Copy)]
enum Luck {
    All,
    None,
    /// Each change is kept, except with a chance of one in this many.
    Most(u64),
}

impl Loss {
    fn luck(self, dice: &mut Dice) -> Luck {
        match self {
            Loss::Nothing => Luck::All,
            Loss::Everything => Luck::None,
            Loss::Some => match dice.below(5) {
                0 => Luck::All,
                1 => Luck::None,
                chance => Luck::Most(1 << chance),
            },
        }
    }
}

impl Luck {
    fn keeps(self, dice: &mut Dice) -> bool {
        match self {
            Luck::All => true,
            Luck::None => false,
            Luck::Most(of) => dice.below(of) > 0,
        }
    }
}

/// Turns the tree into the one that is found when the power is back.
pub fn lose(tree: &mut Tree, dice: &mut Dice, loss: Loss) {
    let luck = loss.luck(dice);
    lose_names(tree, dice, luck);
    for node in tree.nodes.values_mut() {
        if let Node::File(data) = node {
            let luck = loss.luck(dice);
            lose_data(data, dice, luck);
        }
    }
    tree.collect();
}

/// A lost change also loses all later changes in its folders: a journal keeps the changes of a folder in order.
fn lose_names(tree: &mut Tree, dice: &mut Dice, luck: Luck) {
    let mut ended: BTreeSet<Inode> = BTreeSet::new();
    for change in tree.changes.drain(..) {
        if !change.dirs().any(|dir| ended.contains(&dir)) && luck.keeps(dice) {
            change.apply(&mut tree.durable);
        } else {
            ended.extend(change.dirs());
        }
    }
    tree.names.clone_from(&tree.durable);
}

fn lose_data(data: &mut Data, dice: &mut Dice, luck: Luck) {
    for change in data.changes.drain(..) {
        match change {
            DataChange::Emptied if luck.keeps(dice) => data.durable.clear(),
            // If the file was not emptied on disk, later writes are lost, too: they went to other blocks.
            DataChange::Emptied => break,
            DataChange::Wrote { offset, bytes } => {
                lose_sectors(&mut data.durable, offset, &bytes, dice, luck);
            }
        }
    }
    data.changes.clear();
    data.now.clone_from(&data.durable);
}

fn lose_sectors(durable: &mut Vec<u8>, offset: usize, bytes: &[u8], dice: &mut Dice, luck: Luck) {
    let end = offset + bytes.len();
    let first = offset / SECTOR_BYTES;
    let sectors = end.div_ceil(SECTOR_BYTES).saturating_sub(first).max(1);
    let torn = first + dice.below(sectors as u64) as usize;
    let mut at = offset;
    while at < end {
        let sector = at / SECTOR_BYTES;
        let next = end.min((sector + 1) * SECTOR_BYTES);
        let mut piece = &bytes[at - offset..next - offset];
        let mut from = at;
        if matches!(luck, Luck::Most(_)) && sector == torn {
            let cut = dice.below(piece.len() as u64 + 1) as usize;
            // Either the first part of the write was written, or the last one.
            if dice.below(2) == 0 {
                piece = &piece[..cut];
            } else {
                (piece, from) = (&piece[cut..], at + cut);
            }
        }
        if luck.keeps(dice) {
            put(durable, from, piece);
        }
        at = next;
    }
}

// Random numbers from a seed, the same for all versions of every crate: SplitMix64. Every test that needs random numbers uses
// it.

#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound that is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// An index into a list of this length.
    pub fn place(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.place(items.len())]
    }
}

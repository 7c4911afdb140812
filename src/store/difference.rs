//! What one state has beyond what another is known to include: what sides hand each other (P33, P34).
//!
//! It is a state with little in it. Beside what the other does not cover it holds all tombs and rivals, and of every key that
//! has rivals the current value too, so that whatever it says of a key is all that there is to say. A key that it does not
//! mention stands as the other knew it.

use std::sync::Arc;

use super::key::{Key, SIDE};
use super::load::Loader;
use super::parse::Unreadable;
use super::sides::Sides;
use super::state::Store;
use crate::types::Vector;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// All of the state: what is absent is not there.
    pub(super) whole: bool,
    pub(super) part: Store,
}

impl Difference {
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Its lines, as of a snapshot, in their order.
    pub fn entries(&self) -> impl Iterator<Item = (Key, String)> + '_ {
        self.part.entries()
    }

    /// For such lines.
    pub fn loader() -> Loader {
        Loader::with_sides(Vector::default())
    }

    /// What they come to. Without its bounds nobody knows what it leaves out.
    pub fn loaded(whole: bool, loader: Loader) -> Result<Difference, Unreadable> {
        match loader.has_bounds {
            true => Ok(Difference { whole, part: loader.finish_part() }),
            false => Err(Unreadable::Entry { table: "side", key: SIDE.to_string() }),
        }
    }

    /// Whether a state that includes `vector` can have said all this.
    pub fn is_within(&self, vector: &Vector) -> bool {
        self.part.keys().all(|key| self.part.said(&key).iter().all(|held| vector.covers(held.at)))
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        let of_sides = |sides: &Arc<Sides>| sides.tombs.len() + sides.rivals.len() + sides.conflicts.len();
        self.part.len() + self.part.sides.as_ref().map_or(0, of_sides)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Store {
    /// What somebody lacks who has `base`. None if that cannot be told: in safe mode, or when something of it is forgotten.
    pub fn difference(&self, base: &Vector) -> Option<Difference> {
        let sides = self.sides.as_ref().filter(|sides| sides.can_tell(base))?;
        let mut part = Store::with_sides();
        part.sides = Some(sides.for_difference().into());
        part.last_token = self.last_token;
        for key in sides.beyond(base).into_iter().chain(sides.contested()) {
            self.copy_row(&key, &mut part);
        }
        part.index_anew();
        Some(Difference { whole: false, part })
    }

    /// All there is.
    pub fn whole(&self) -> Difference {
        let sides = self.sides.clone().unwrap_or_default();
        let (applied, stamp) = Default::default();
        Difference {
            whole: true,
            part: Store { applied, stamp, staged: None, sides: Some(sides), ..self.clone() },
        }
    }

    fn copy_row(&self, key: &Key, part: &mut Store) {
        if let Key::Call(key) = key {
            if let Some(call) = self.calls.get(*key) {
                part.calls.add(*key, call.clone());
            }
        } else if let Some(row) = self.row(key) {
            let value = row.value.unwrap_or_default();
            part.put_row(key, row.at, &value);
        }
    }

    /// All keys that have something said about them but calls.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let docs = self.docs.iter().map(|(key, _)| Key::Doc(key.clone()));
        let elections = self.elections.iter().map(|(key, _)| Key::Election(key.clone()));
        let users = self.users.iter().map(|(key, _)| Key::User(key.clone()));
        let votes = self.votes.table().iter().map(|(key, _)| Key::Vote(key.clone()));
        let processes = self.processes.iter().map(|(key, _)| Key::Process(key.clone()));
        let roles = self.roles.iter().map(|(key, _)| Key::Role(key.clone()));
        let of_sides = self.sides.iter().flat_map(|sides| {
            let tombs = sides.tombs.iter().map(|(key, _)| key.clone());
            let conflicts = sides.conflicts.iter().map(|(id, _)| Key::Conflict(id.clone()));
            tombs.chain(conflicts).chain(sides.contested())
        });
        docs.chain(elections).chain(users).chain(votes).chain(processes).chain(roles).chain(of_sides)
    }
}

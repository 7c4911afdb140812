//! An operator of the simulated clusters creates and revokes tokens of clients (P56). There are few ids, so
//! that the same id comes up again.

use eldest::replica::Call;
use eldest::store::{Command, Grant, NewToken, TokenHash, TokenId};

use crate::calls::Waiting;
use crate::checks::Check;
use crate::rng::Rng;
use crate::world::{Event, World};

const SEED: u64 = 0x70c3_1056;
const IDS: u64 = 4;
/// The longest pause between two orders.
const PAUSE: u64 = 600_000;

/// The command with which an operator creates this token.
pub fn create(id: u64) -> Command {
    let (id, name, hash) = (TokenId(id), format!("t{id}").into(), TokenHash::of(&id.to_be_bytes()));
    Command::create_token(NewToken {
        id,
        name,
        hash,
        grants: [Grant::order()].into_iter().collect(),
        ttl: None,
    })
}

/// Creates or revokes a token under one of the ids.
fn order(rng: &mut Rng) -> Command {
    let id = rng.below(IDS);
    if rng.chance(500) { create(id) } else { Command::revoke_token(TokenId(id)) }
}

impl World {
    /// In some seeds an operator creates and revokes tokens.
    pub fn draw_tokens(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ SEED);
        if rng.chance(400) {
            let begin = rng.below(PAUSE);
            self.tokens = Some(rng);
            self.at(begin, Event::TokenOrder);
        }
    }

    /// Sends the order to any node. A node that does not lead refuses it, and the order is not repeated.
    pub fn token_order(&mut self) -> Check {
        let nodes = self.hosts.len() as u64;
        let Some(rng) = self.tokens.as_mut().filter(|_| !self.clients.stopped && !self.sides.stopped) else {
            return Ok(());
        };
        let (command, node, pause) = (order(rng), rng.below(nodes) as usize, rng.below(PAUSE));
        self.after(pause, Event::TokenOrder);
        self.arrives(node, Waiting::Nobody, Call::Write { command: command.into(), key: None })
    }
}

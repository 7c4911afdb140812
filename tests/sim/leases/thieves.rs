//! Holders that keep a secret, and others that try to end what belongs to them (P53).

use eldest::store::SecretHash;
use eldest::types::{LeaseName, Text};

use super::Wish;
use super::contenders::{Contender, Wants};
use crate::rng::Rng;
use crate::world::World;

/// Some contenders keep a secret.
pub fn keep_secrets(all: &mut [Contender], rng: &mut Rng) {
    for (number, contender) in all.iter_mut().enumerate() {
        contender.secret = rng.chance(500).then(|| SecretHash::of(&format!("secret {number}")));
    }
}

impl World {
    /// Now and then a contender tries to end a lease that it knows of, without the secret or with another
    /// one.
    pub fn steals(&mut self, who: usize) -> bool {
        let Some(mut rng) = self.lessees_mut().thieves.take() else { return false };
        let victim = rng.chance(60).then(|| self.some_keeper(&mut rng)).flatten();
        let shown = rng.chance(500).then(|| SecretHash::of("a guess"));
        self.lessees_mut().thieves = Some(rng);
        let Some(wish) = victim else { return false };
        self.note(|| format!("contender {who} tries: {wish:?}"));
        let (node, own) = (self.contender(who).target, self.contender(who).secret);
        self.contender(who).secret = shown;
        self.asks(who, node, wish, 300_000);
        self.contender(who).secret = own;
        self.lessees_mut().witness.thefts += 1;
        true
    }

    /// A call that would end something that was granted under a secret.
    fn some_keeper(&self, rng: &mut Rng) -> Option<Wish> {
        let all = &self.lessees.as_ref()?.all;
        let keeper = rng.pick(all);
        keeper.secret?;
        match &keeper.wants {
            Wants::Role(role) => {
                let held = self.witness().store.role(role)?;
                let instance = held.claim.instance.clone();
                held.claim.secret?;
                Some(Wish::Release { role: role.clone(), instance, token: held.token })
            }
            Wants::Process(_) => {
                let id = keeper.instance.clone();
                self.witness().store.process(&id)?.new.secret?;
                Some(Wish::Remove { id })
            }
        }
    }

    /// The secret under which this is held, for a caller that knows it.
    pub fn secret_of(&self, lease: &LeaseName) -> Option<SecretHash> {
        let store = &self.witness().store;
        let holder: Text = match lease {
            LeaseName::Role(role) => store.role(role)?.claim.instance.clone(),
            LeaseName::Process(id) => id.clone(),
            LeaseName::Doc(_) => return None,
        };
        self.lessees.as_ref()?.all.iter().find(|contender| contender.instance == holder)?.secret
    }
}

//! Documents that end with a lease, and those that end by their ttl (P54).
//!
//! A document is removed by the record that ends its lease, or by the merge or restore after which its lease no longer exists.
//! No state has the document without the lease.

use super::events::DocEnded;
use super::rules::Effects;
use crate::protocol::mutant::{self, Mutant};
use crate::store::command::{
    Command, DocCondition, Ending, Holding, Operation, Reason, Rejection, SecretHash, Tether, Thing,
};
use crate::store::encoding::TETHERED_MOST;
use crate::store::state::Store;
use crate::store::tables::{Bond, Key, KeyChange, Lifetime, Tombstone};
use crate::types::{LeaseName, Position, Text};

impl Store {
    pub(in crate::store) fn check_ending(&self, key: &str, ending: &Ending) -> Result<(), Reason> {
        match &ending.with {
            Some(Tether { lease, token, .. }) => self.check_bond(key, lease, *token),
            None => Ok(()),
        }
    }

    /// Whether a document may end with this lease.
    pub(in crate::store) fn check_bond(
        &self,
        key: &str,
        lease: &LeaseName,
        token: Option<u64>,
    ) -> Result<(), Reason> {
        let refused = |field| Err(Reason::LeaseNotHeld { lease: lease.clone(), field });
        match (self.lease(lease), token) {
            (None, _) => refused("with"),
            (Some(held), Some(token)) if held.token != token => refused("token"),
            // A document that is bound already takes no further place.
            _ if self.docs.is_bound_to(lease, key) => Ok(()),
            _ if self.docs.count_bound_to(lease) >= TETHERED_MOST => {
                Err(Reason::TooManyTethered { lease: lease.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether the writer may bind its documents to a lease: it must show the lease's secret. The leader checks this before it
    /// writes the record.
    pub(in crate::store) fn admits_bonds(&self, command: &Command) -> Result<(), Rejection> {
        let is_foreign = |operation: &Operation| match operation {
            Operation::PutDoc { ending: Ending { with: Some(tether), .. }, .. } => {
                !SecretHash::admits(self.secret_of(&tether.lease), tether.secret)
            }
            _ => false,
        };
        let is_batch = matches!(command, Command::Batch(_));
        match command.operations().iter().position(is_foreign) {
            Some(number) => {
                Err(Rejection { operation: is_batch.then_some(number), reason: Reason::WrongSecret })
            }
            None => Ok(()),
        }
    }

    fn secret_of(&self, lease: &LeaseName) -> Option<SecretHash> {
        match lease {
            LeaseName::Role(name) => self.role(name)?.claim.secret,
            LeaseName::Process(id) => self.process(id)?.new.secret,
            LeaseName::Doc(_) => None,
        }
    }

    /// Whether a write on condition of that role may be made (P59).
    pub(in crate::store) fn check_holder(&self, holder: Option<&Holding>) -> Result<(), Reason> {
        let Some(Holding { role, token }) = holder else { return Ok(()) };
        let holds = self.role(role).is_some_and(|held| held.token == *token);
        match holds || mutant::is_on(Mutant::FormerHolderWrites) {
            true => Ok(()),
            false => Err(Reason::RoleNotHeld { role: role.clone() }),
        }
    }

    /// The lifetime in a document's row. The caller must have called `check_ending` first.
    pub(in crate::store) fn lifetime_of(&self, ending: &Ending) -> Option<Lifetime> {
        let with = ending.with.as_ref().and_then(|Tether { lease, .. }| {
            // A process has no token that its clients know: the document is bound to the registration of this moment.
            let token = self.lease(lease)?.token;
            Some(Bond { lease: lease.clone(), token })
        });
        (!ending.is_none()).then_some(Lifetime { ttl: ending.ttl, with })
    }

    /// Whether the condition of a renewal matches the current document.
    pub fn check_renewal(&self, key: &Text, condition: &DocCondition) -> Result<(), Reason> {
        let Some(doc) = self.docs.get(key) else {
            return Err(Reason::NotFound { thing: Thing::Document, name: key.clone() });
        };
        self.check_condition(key, condition)?;
        match doc.lease() {
            Some(_) => Ok(()),
            None => Err(Reason::NoTtl { key: key.clone() }),
        }
    }

    /// The number of rows that are removed when this lease ends.
    pub fn ends_with(&self, lease: &LeaseName) -> usize {
        1 + self.docs.count_bound_to(lease)
    }

    /// Ends all documents that are bound to a lease that has just ended.
    pub(super) fn end_bound(&mut self, lease: &LeaseName, effects: &mut Effects) {
        if mutant::is_on(Mutant::BoundDocOutlivesLease) {
            return;
        }
        let keys: Vec<Text> = self.docs.bound_to(lease).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.end_doc(&key, DocEnded::WithLease, effects);
        }
    }

    pub(super) fn end_doc(&mut self, key: &Text, why: DocEnded, effects: &mut Effects) {
        let Some(doc) = self.docs.remove(key) else { return };
        effects.ended.push((key.clone(), why));
        // The mark says that no client requested the deletion: in a merge it loses against a write that did not know of it.
        let gone = KeyChange::Gone(Tombstone { at: effects.at, ended: true });
        self.note_lease(Key::Doc(key.clone()), Some(doc.at), gone, effects);
    }

    /// The keys of documents whose lease does not exist. A committed state has none.
    pub fn loose_docs(&self) -> Vec<Text> {
        if mutant::is_on(Mutant::LooseDocsStay) {
            return Vec::new();
        }
        let stands = |lease: &LeaseName, token| self.lease(lease).is_some_and(|held| held.token == token);
        let loose = self.docs.bonds().filter(|(_, lease, token)| !stands(lease, *token));
        loose.map(|(key, ..)| key.clone()).collect()
    }

    /// Ends the documents whose lease did not survive a merge or a restore.
    pub(in crate::store) fn end_loose(&mut self, at: Position, changes: &mut Vec<Key>) -> Vec<Text> {
        let loose = self.loose_docs();
        for key in &loose {
            self.erase(&Key::Doc(key.clone()), Some(Tombstone { at, ended: true }), changes);
        }
        loose
    }
}

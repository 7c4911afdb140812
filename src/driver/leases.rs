//! Calls about roles and processes, from outside of the loop.

use std::sync::Arc;

use super::api::{Ask, Denied, Handle};
use super::clock;
use super::replies::To;
use crate::replica::{Acquire, Call, Granted, LeaseTimes, Registration, Renewal, Untie};
use crate::store::{
    DocCondition, DocView, NewProcess, Process, Role, RoleClaim, SecretHash, Tenure, TokenId,
};
use crate::types::{KeyedCall, LeaseName, Span, Text};

impl Handle {
    /// Wants a role, and waits for it as long as it says, if somebody has it.
    pub async fn acquire(
        &self,
        role: Text,
        claim: Arc<RoleClaim>,
        priority: i64,
        wait: Span,
        by: Option<TokenId>,
        key: Option<KeyedCall>,
    ) -> Result<Granted<Role>, Denied> {
        let until = clock::now().mono + wait;
        self.wait(Acquire { role, claim, elect: false, priority, until, by, key }).await
    }

    /// An operator's word: this one has the role, whoever had it.
    pub async fn name_holder(
        &self,
        role: Text,
        claim: Arc<RoleClaim>,
        key: Option<KeyedCall>,
    ) -> Result<Granted<Role>, Denied> {
        let until = clock::now().mono;
        let acquire = Acquire { role, claim, elect: true, priority: 0, until, by: None, key };
        self.wait(acquire).await
    }

    pub async fn renew_role(&self, role: Text, tenure: Tenure) -> Result<Granted<Role>, Denied> {
        self.call(Call::Renew(Renewal::Role { role, tenure }), To::Role).await
    }

    /// The connection that the holder relies on has closed.
    pub async fn untie_role(&self, role: Text, tenure: Tenure, tie: u64) -> Result<(), Denied> {
        self.call(Call::Untie(Untie { role, tenure, tie }), To::Done).await
    }

    pub async fn renew_process(
        &self,
        id: Text,
        secret: Option<SecretHash>,
    ) -> Result<Granted<Process>, Denied> {
        self.call(Call::Renew(Renewal::Process { id, secret }), To::Process).await
    }

    /// A document with a ttl goes on.
    pub async fn renew_doc(&self, key: Text, condition: DocCondition) -> Result<Granted<DocView>, Denied> {
        self.call(Call::Renew(Renewal::Doc { key, condition }), To::Doc).await
    }

    pub async fn register(
        &self,
        id: Text,
        process: Arc<NewProcess>,
        key: Option<KeyedCall>,
    ) -> Result<Granted<Process>, Denied> {
        self.call(Call::Register(Registration { id, process, key }), To::Process).await
    }

    /// None where this node does not lead.
    pub async fn lease_times(&self, names: Vec<LeaseName>) -> Option<LeaseTimes> {
        self.tell(|reply| Ask::LeaseTimes { names, reply }).await.flatten()
    }
}

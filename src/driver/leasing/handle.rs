//! The same calls from outside of the loop.

use std::sync::Arc;

use super::super::api::{Ask, Denied, Handle};
use super::super::clock;
use super::renew::Registering;
use super::{Acquiring, Granted, LeaseAsk, LeaseTimes, Renewing};
use crate::store::{Claim, NewProcess, Process, Role, Tenure};
use crate::types::{Call, LeaseName, Span, Text};

impl Handle {
    /// Wants a role, and waits for it as long as it says, if somebody has it.
    pub async fn acquire(
        &self,
        role: Text,
        claim: Arc<Claim>,
        priority: i64,
        wait: Span,
        call: Option<Call>,
    ) -> Result<Granted<Role>, Denied> {
        let until = clock::now().mono + wait;
        self.ask(|reply| {
            let acquiring = Acquiring { priority, ..Acquiring::new(role, claim, until, call, reply) };
            Ask::Lease(LeaseAsk::Acquire(acquiring.into()))
        })
        .await
    }

    /// An operator's word: this one has the role, whoever had it.
    pub async fn name_holder(
        &self,
        role: Text,
        claim: Arc<Claim>,
        call: Option<Call>,
    ) -> Result<Granted<Role>, Denied> {
        let until = clock::now().mono;
        self.ask(|reply| {
            let acquiring = Acquiring { elect: true, ..Acquiring::new(role, claim, until, call, reply) };
            Ask::Lease(LeaseAsk::Acquire(acquiring.into()))
        })
        .await
    }

    pub async fn renew_role(&self, role: Text, tenure: Tenure) -> Result<Granted<Role>, Denied> {
        let Tenure { instance, token, ttl } = tenure;
        self.ask(|reply| Ask::Lease(LeaseAsk::Renew(Renewing::Role { role, instance, token, ttl, reply })))
            .await
    }

    pub async fn renew_process(&self, id: Text) -> Result<Granted<Process>, Denied> {
        self.ask(|reply| Ask::Lease(LeaseAsk::Renew(Renewing::Process { id, reply }))).await
    }

    pub async fn register(
        &self,
        id: Text,
        process: Arc<NewProcess>,
        call: Option<Call>,
    ) -> Result<Granted<Process>, Denied> {
        self.ask(|reply| {
            let registering = Registering { id, process, call, reply, new: false, replayed: false };
            Ask::Lease(LeaseAsk::Renew(Renewing::Register(registering)))
        })
        .await
    }

    /// None where this node does not lead.
    pub async fn lease_times(&self, names: Vec<LeaseName>) -> Option<LeaseTimes> {
        self.tell(|reply| Ask::Lease(LeaseAsk::Times { names, reply })).await.flatten()
    }
}

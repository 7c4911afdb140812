//! Eldest: documents and roles over HTTP.

use std::time::Duration;

use serde::Deserialize;

use super::super::http::{Connection, Request};
use super::super::session::Trouble;
use super::super::target::Target;
use super::op::Op;

/// The longest wait in the queue for a role.
const WAIT_MS: u64 = 20_000;

#[derive(Debug)]
pub struct Eldest {
    connection: Connection,
    request: Request,
    name: String,
    /// The token of the role that the client holds.
    token: u64,
    patience: Duration,
}

#[derive(Deserialize)]
struct Granted {
    token: u64,
}

impl Eldest {
    pub fn new(client: usize, patience: Duration) -> Eldest {
        let connection = Connection::new(patience);
        Eldest {
            connection,
            request: Request::default(),
            name: format!("client-{client}"),
            token: 0,
            patience,
        }
    }

    pub fn disconnect(&mut self) {
        self.connection = Connection::new(self.patience);
    }

    pub async fn perform(&mut self, target: &Target, op: &Op<'_>) -> Result<(), Trouble> {
        match op {
            Op::Write { key, value } => {
                self.request.set_line("PUT", format_args!("/v1/docs/bench/{key}"));
                self.request.set_json(b"", value);
                self.call(target).await
            }
            Op::ReadLinear { key } => self.read(target, *key, "linear").await,
            Op::ReadLocal { key } => self.read(target, *key, "local").await,
            Op::Acquire { lock } => {
                let name = &self.name;
                let body = format!("{{\"instance_id\":\"{name}\",\"wait_ms\":{WAIT_MS}}}");
                self.request.set_line("POST", format_args!("/v1/roles/{lock}/acquire"));
                self.request.set_json(b"", body.as_bytes());
                self.call(target).await?;
                let granted = serde_json::from_slice(self.connection.answer().body);
                self.token = granted.map_or(0, |Granted { token }| token);
                Ok(())
            }
            Op::Release { lock } => {
                let body = format!("{{\"instance_id\":\"{}\",\"token\":{}}}", self.name, self.token);
                self.request.set_line("POST", format_args!("/v1/roles/{lock}/release"));
                self.request.set_json(b"", body.as_bytes());
                self.call(target).await
            }
        }
    }

    pub async fn leads(&mut self, target: &Target) -> Result<bool, Trouble> {
        self.request.set_line("POST", format_args!("/is_leader"));
        self.request.set_json(b"", b"{}");
        self.call(target).await?;
        Ok(self.connection.answer().body == b"true")
    }

    async fn read(&mut self, target: &Target, key: u64, level: &str) -> Result<(), Trouble> {
        self.request.set_line("GET", format_args!("/v1/docs/bench/{key}?level={level}"));
        self.request.rest.clear();
        self.request.rest.extend_from_slice(b"\r\n");
        self.call(target).await
    }

    async fn call(&mut self, target: &Target) -> Result<(), Trouble> {
        match self.connection.exchange(target, &self.request).await {
            Ok(200..=299) => Ok(()),
            Ok(_) => Err(Trouble::of_answer(self.connection.answer())),
            Err(failure) => Err(Trouble::of_failure(failure)),
        }
    }
}

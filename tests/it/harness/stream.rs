//! An answer without an end, read event by event.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::cluster::Cluster;
use super::wait::DEADLINE;

/// A node that does not even begin to answer within this time does not answer.
const BEGIN: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub struct Events {
    response: reqwest::Response,
    buffer: Vec<u8>,
}

/// The next part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Event(Value),
    /// The node has ended the answer in order.
    End,
    BrokenOff,
}

impl Cluster {
    /// Opens the stream under this path. The error is the status of a refusal, or None if
    /// the node does not answer.
    pub async fn events(&self, id: u32, path: &str) -> Result<Events, Option<u16>> {
        self.stream(Method::GET, id, path, None).await
    }

    /// The same for a client with this token.
    pub async fn events_by(&self, id: u32, path: &str, token: &str) -> Result<Events, Option<u16>> {
        self.stream(Method::GET, id, path, Some(token)).await
    }

    /// The same for a route that is called with POST.
    pub async fn posted(&self, id: u32, path: &str) -> Result<Events, Option<u16>> {
        self.stream(Method::POST, id, path, None).await
    }

    pub async fn posted_by(&self, id: u32, path: &str, token: &str) -> Result<Events, Option<u16>> {
        self.stream(Method::POST, id, path, Some(token)).await
    }

    async fn stream(
        &self,
        method: Method,
        id: u32,
        path: &str,
        token: Option<&str>,
    ) -> Result<Events, Option<u16>> {
        let request = self.client().request(method, format!("{}{path}", self.node(id).url()));
        let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        let response =
            tokio::time::timeout(BEGIN, request.send()).await.map_err(|_| None)?.map_err(|_| None)?;
        match response.status().as_u16() {
            200 => Ok(Events { response, buffer: Vec::new() }),
            status => Err(Some(status)),
        }
    }
}

impl Events {
    /// The next event's JSON. Keep-alives are skipped; silence for too long fails the test.
    pub async fn next(&mut self) -> Told {
        match tokio::time::timeout(DEADLINE, self.read()).await {
            Ok(told) => told,
            Err(_) => panic!("nothing comes any more; last: {:?}", String::from_utf8_lossy(&self.buffer)),
        }
    }

    /// The next event, where nothing else may come.
    pub async fn event(&mut self) -> Value {
        match self.next().await {
            Told::Event(event) => event,
            told => panic!("{told:?} in the place of an event"),
        }
    }

    /// The next event that is no bookmark.
    pub async fn news(&mut self) -> Value {
        loop {
            let event = self.event().await;
            if event["kind"] != "bookmark" {
                return event;
            }
        }
    }

    async fn read(&mut self) -> Told {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = String::from_utf8(line).expect("events are text");
                let json = line.strip_prefix("data: ").unwrap_or(&line).trim_end();
                let is_data = line.starts_with("data: ") || !line.contains(": ") && !line.starts_with(':');
                if is_data && !json.is_empty() {
                    return Told::Event(serde_json::from_str(json).expect("events are JSON"));
                }
            }
            match self.response.chunk().await {
                Ok(Some(more)) => self.buffer.extend_from_slice(&more),
                Ok(None) => return Told::End,
                Err(_) => return Told::BrokenOff,
            }
        }
    }
}

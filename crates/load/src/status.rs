//! The cluster as its nodes describe it: the leader, the epoch and the number of members.

use std::sync::Arc;
use std::time::Duration;

use eldest_tls::trusting_no_certificate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::BenchError;
use super::http::{Connection, Request};
use super::node_url::NodeUrl;
use super::target::Target;

/// The time limit for a node's description. A slower node is skipped.
const PATIENCE: Duration = Duration::from_secs(2);

/// One node's description of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// The URL of the node that gave the description.
    pub url: String,
    pub cluster: Option<String>,
    pub members: usize,
    pub epoch: Option<String>,
    pub leader: Option<String>,
    pub commit_index: Option<u64>,
}

/// The members of `GET /v1/status` that are of interest here. Missing members get their defaults.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    cluster: Option<Value>,
    members: Vec<serde::de::IgnoredAny>,
    epoch: Option<Value>,
    leader: Option<Leader>,
    commit_index: Option<u64>,
}

#[derive(Deserialize)]
struct Leader {
    url: String,
}

/// The node's description, or what came instead.
pub async fn look_at(target: &Target, headers: &[u8]) -> Result<Look, String> {
    let mut connection = Connection::new(PATIENCE);
    let request = Request::get("/v1/status", headers);
    let status = connection.exchange(target, &request).await.map_err(|failure| failure.to_string())?;
    if status != 200 {
        return Err(format!("GET /v1/status answered {status}"));
    }
    parse(&target.url, connection.answer().body).map_err(|error| format!("GET /v1/status: {error}"))
}

fn parse(url: &str, body: &[u8]) -> Result<Look, serde_json::Error> {
    let status: Status = serde_json::from_slice(body)?;
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    Ok(Look {
        url: url.to_string(),
        cluster: status.cluster.map(text),
        members: status.members.len(),
        epoch: status.epoch.map(text),
        leader: status.leader.map(|leader| leader.url),
        commit_index: status.commit_index,
    })
}

/// The first description that names a leader, or else the first one.
pub async fn look(targets: &[Target], headers: &[u8]) -> Result<Look, Vec<(String, String)>> {
    let mut leaderless = None;
    let mut said = Vec::new();
    for target in targets {
        match look_at(target, headers).await {
            Ok(look) if look.leader.is_some() => return Ok(look),
            Ok(look) => leaderless = leaderless.or(Some(look)),
            Err(what) => said.push((target.url.clone(), what)),
        }
    }
    leaderless.ok_or(said)
}

/// The targets with the leader first, and the description of the cluster. The leader need not be one of the given
/// targets.
pub async fn leader_first(targets: Vec<Target>, headers: &[u8]) -> Result<(Vec<Target>, Look), BenchError> {
    let look = look(&targets, headers).await.map_err(|said| BenchError::NoLeader { said })?;
    let Some(url) = look.leader.clone() else {
        let said = vec![(look.url, "knows no leader".to_string())];
        return Err(BenchError::NoLeader { said });
    };
    let mut parsed: NodeUrl = url.parse().map_err(|source| BenchError::LeaderUrl { url, source })?;
    // A node may serve http and https, and the leader is called as the other nodes are.
    let secured = targets.iter().find_map(|target| target.secured.as_ref());
    parsed.tls = secured.is_some();
    let tls = secured.map_or_else(|| Arc::new(trusting_no_certificate()), |secured| secured.config.clone());
    let leader = Target::resolve(&parsed, &tls).await?;
    let others = targets.into_iter().filter(|target| target.address != leader.address);
    let first = std::iter::once(leader.clone()).chain(others).collect();
    Ok((first, look))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        let body = br#"{"cluster": "c", "mode": "safe", "epoch": "7.1", "commit_index": 9,
            "leader": {"id": 1, "url": "http://a:1"}, "members": [{"id": 1}, {"id": 2}]}"#;
        let look = parse("http://b:1", body).unwrap();
        assert_eq!(look.leader.as_deref(), Some("http://a:1"));
        assert_eq!((look.epoch.as_deref(), look.members, look.commit_index), (Some("7.1"), 2, Some(9)));
        assert_eq!((look.url.as_str(), look.cluster.as_deref()), ("http://b:1", Some("c")));
    }

    #[test]
    fn what_is_missing_is_not_told() {
        let look = parse("u", br#"{"leader": null, "epoch": 7}"#).unwrap();
        assert_eq!((look.leader, look.members, look.epoch.as_deref()), (None, 0, Some("7")));
        assert!(parse("u", b"[1").is_err() && parse("u", br#"{"members": 3}"#).is_err());
    }
}

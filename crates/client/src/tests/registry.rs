//! The registry, against servers that do not answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::fake::{Fake, Reply};
use crate::{Client, Error, Registry};

/// Far longer than a test waits: a call that ends earlier has its own bound.
const HOUR: Duration = Duration::from_secs(3_600);

/// A call takes this long only if it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node that registers a process, and does not answer the call that unregisters it.
async fn node() -> Fake {
    Fake::start(Arc::new(|request| {
        Box::pin(async move {
            let process = json!({"id": "p", "identifier": "x", "channel": "worker:slave:p"});
            match request.head.split_once(' ') {
                Some(("PUT", _)) => Reply::Json(200, process),
                Some(("GET", path)) if path.starts_with("/v1/feed") => {
                    Reply::Lines(vec![json!({"id": "1", "kind": "bookmark"})])
                }
                _ => Reply::Silence,
            }
        })
    }))
    .await
}

/// The entry lapses by itself, so a program that ends does not wait for a cluster that is down.
#[tokio::test]
async fn a_process_that_cannot_be_taken_out_says_so_soon() {
    for is_gone in [false, true] {
        let node = node().await;
        let client = Client::builder([&node.url]).deadline(HOUR).attempt_timeout(HOUR).build();
        let builder = Registry::builder(client.expect("a client"), "x").heartbeat_every(HOUR);
        let registry = builder.register().await.expect("it is taken in");
        let node = (!is_gone).then_some(node);
        let left =
            timeout(PATIENCE, registry.unregister()).await.expect("it gives up long before the client does");
        let error = left.expect_err("nobody answers");
        assert!(matches!(error, Error::Indeterminate { .. }), "{error}");
        assert!(error.to_string().contains("cannot remove the process from the registry"), "{error}");
        drop(node);
    }
}

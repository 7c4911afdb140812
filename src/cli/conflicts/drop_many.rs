//! `eldest conflicts drop --all`: drops page after page, each as one batch, until there are no more.

use serde_json::{Value, json};

use crate::cli::client::Target;
use crate::cli::exit::Failure;
use crate::client::{Request, encoded};

/// A batch takes 1,024 commands and 4 MiB. An id has at most 2 KiB.
const AT_ONCE: usize = 1000;

/// Returns how many conflicts were dropped.
pub async fn run(kind: Option<&str>, prefix: Option<&str>, target: &Target) -> Result<usize, Failure> {
    let mut gone = 0;
    loop {
        let page = target.ask(&Request::get(path(kind, prefix))).await?;
        let batch = batch(&page);
        if batch.is_empty() {
            return Ok(gone);
        }
        target.ask(&Request::post("/v1/commands".to_string(), &json!(batch))).await?;
        gone += batch.len();
    }
}

fn path(kind: Option<&str>, prefix: Option<&str>) -> String {
    let mut path = format!("/v1/conflicts?limit={AT_ONCE}");
    for (name, value) in [("kind", kind), ("prefix", prefix)] {
        path.extend(value.map(|value| format!("&{name}={}", encoded(value))));
    }
    path
}

fn batch(page: &Value) -> Vec<Value> {
    let ids = page["items"].as_array().into_iter().flatten().map(|item| &item["id"]);
    ids.map(|id| json!({"storage_cmd": "DropConflict", "payload": {"id": id}})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_dropped_as_one_batch() {
        let page =
            json!({"items": [{"id": "doc:a:1.1@2", "kind": "doc"}, {"id": "doc:b:1.1@3"}], "next": null});
        let drop = |id: &str| json!({"storage_cmd": "DropConflict", "payload": {"id": id}});
        assert_eq!(batch(&page), [drop("doc:a:1.1@2"), drop("doc:b:1.1@3")]);
        assert_eq!(batch(&json!({"items": []})), [] as [Value; 0]);
        assert_eq!(path(Some("doc"), Some("a/")), "/v1/conflicts?limit=1000&kind=doc&prefix=a%2F");
    }
}

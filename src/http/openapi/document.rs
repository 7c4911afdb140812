//! Builds the document once, from operations and schemas.
//!
//! ```text
//!   operations.rs ─► paths, parameters, bodies, answers ─┐
//!   schemas.json  ─► schemas                             ├─► /openapi.json
//!   needs::TABLE  ─► the grant of each operation         │
//!   Code::ALL     ─► the enumeration of codes            ┘
//! ```

use axum::http::Uri;
use serde_json::{Map, Value, json};

use super::operations::{DescribedAnswer, OPERATIONS, Operation};
use crate::http::access::needs::{Need, TABLE};
use crate::http::answer::Code;
use crate::store::TOKEN_FLOOR_MOST;

const SCHEMAS: &str = include_str!("schemas.json");

const PROBLEM: &str = "application/problem+json";

pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in &OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_lowercase()] = described(operation);
    }
    let mut schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    schemas["Code"] =
        json!({"type": "string", "enum": codes, "description": "stable: a code never changes its meaning"});
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Eldest",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Any node accepts any call. Names in paths are percent-encoded, including slashes. \
                Errors are problems (RFC 9457): distinguish them by their code.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "the admin token, \
                or a client's token"}},
        },
    })
}

fn described(operation: &Operation) -> Value {
    let Operation { method, path, about, query, body, status, answer } = *operation;
    let mut responses = Map::new();
    let mut good = json!({"description": "done"});
    if let Some(content) = content(answer) {
        good["content"] = content;
    }
    if method == "PUT" {
        let mut made = good.clone();
        made["description"] = "it did not exist before".into();
        responses.insert("201".to_string(), made);
    }
    responses.insert(status.to_string(), good);
    let problem = json!({PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}});
    responses.insert("default".to_string(), json!({"description": "a problem", "content": problem}));
    let needs = need_of(method, path);
    let open = needs.as_deref().is_none_or(|needs| needs == "nothing");
    let mut all = json!({
        "operationId": id_of(method, path),
        "summary": about,
        "parameters": parameters(path, query),
        "responses": responses,
        "security": if open { json!([]) } else { json!([{"token": []}, {}]) },
        "x-eldest-needs": needs,
    });
    if let Some(schema) = body {
        let media = if schema == "Backup" { "text/plain" } else { "application/json" };
        let content = json!({media: {"schema": reference(schema)}});
        all["requestBody"] = json!({"required": schema != "ServiceDown", "content": content});
    }
    if path == "/hearbeat" {
        all["deprecated"] = true.into();
    }
    all
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn content(answer: DescribedAnswer) -> Option<Value> {
    let of = |media: &str, schema: Value| Some(json!({media: {"schema": schema}}));
    match answer {
        DescribedAnswer::Json(schema) => of("application/json", reference(schema)),
        DescribedAnswer::Text => of("text/plain", json!({"type": "string"})),
        DescribedAnswer::Html => of("text/html", json!({"type": "string"})),
        DescribedAnswer::Stream => of("text/event-stream", json!({"type": "string"})),
        DescribedAnswer::Empty => None,
    }
}

fn parameters(path: &str, query: &str) -> Vec<Value> {
    let named = path.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let in_path = named.map(|(name, _)| {
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
    });
    let in_query =
        query.split_whitespace().map(|name| json!({"name": name, "in": "query", "schema": type_of(name)}));
    in_path.chain(in_query).collect()
}

/// A parameter has the same type on every route, so it is described once.
fn type_of(parameter: &str) -> Value {
    match parameter {
        "level" => json!({"enum": ["linear", "leader", "local"]}),
        "forward" => json!({"enum": ["yes", "no"]}),
        "other_cluster" => json!({"type": "boolean"}),
        "token_floor" => json!({"type": "integer", "minimum": 1, "maximum": TOKEN_FLOOR_MOST}),
        "format" => json!({"enum": ["sse", "ndjson"]}),
        "limit" => json!({"type": "integer", "minimum": 1, "maximum": 1000}),
        "ttl_ms" | "wait_ms" | "grace_ms" | "token" | "tie" | "priority" => json!({"type": "integer"}),
        _ => json!({"type": "string"}),
    }
}

fn id_of(method: &str, path: &str) -> String {
    let words = path.split(['/', '{', '}', '.']).filter(|word| !word.is_empty());
    let path: Vec<&str> = words.collect();
    if path.is_empty() {
        format!("{}_root", method.to_lowercase())
    } else {
        format!("{}_{}", method.to_lowercase(), path.join("_"))
    }
}

/// Returns the row of the table of needs for this operation.
fn row_of(method: &str, path: &str) -> Option<(&'static str, Need)> {
    let fits = |pattern: &str| match pattern.split_once("{*") {
        Some((fixed, _)) => path.strip_prefix(fixed).is_some_and(|rest| rest.starts_with('{')),
        None => pattern == path,
    };
    TABLE
        .iter()
        .find(|(of, pattern, _)| *of == method && fits(pattern))
        .map(|(_, pattern, need)| (*pattern, *need))
}

/// Returns the need in the syntax of grants.
/// A path with its braces removed is a call whose names are those of the parameters: `write roles/role`.
fn need_of(method: &str, path: &str) -> Option<String> {
    let (pattern, need) = row_of(method, path)?;
    let uri: Uri = path.replace(['{', '}'], "").parse().ok()?;
    Some(need.of(pattern, &uri).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// An empty key is valid, but OpenAPI has no path for it.
    const LEFT_OUT: &str = "/v1/docs/";

    #[test]
    fn every_route_is_described_and_nothing_else() {
        for operation in &OPERATIONS {
            let Operation { method, path, .. } = operation;
            assert!(row_of(method, path).is_some(), "{method} {path} is no route of the table of needs");
        }
        for (method, pattern, _) in TABLE.iter().filter(|(_, pattern, _)| *pattern != LEFT_OUT) {
            let described = OPERATIONS.iter().any(|operation| {
                operation.method == *method
                    && row_of(method, operation.path).is_some_and(|(found, _)| found == *pattern)
            });
            assert!(described, "{method} {pattern} is missing in src/http/openapi/operations.rs");
        }
    }

    #[test]
    fn whatever_is_named_is_there_and_ids_are_unique() {
        let document = document();
        let text = document.to_string();
        for name in text.split("\"#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document["components"]["schemas"].get(name).is_some(), "there is no schema {name}");
        }
        let ids: BTreeSet<String> = OPERATIONS.iter().map(|one| id_of(one.method, one.path)).collect();
        assert_eq!(ids.len(), OPERATIONS.len());
        let acquire = &document["paths"]["/v1/roles/{role}/acquire"]["post"];
        assert_eq!(acquire["x-eldest-needs"], "write roles/role");
        assert_eq!(document["paths"]["/v1/roles/{role}/elect"]["post"]["x-eldest-needs"], "order");
        assert_eq!(document["paths"]["/livez"]["get"]["security"], json!([]));
    }
}

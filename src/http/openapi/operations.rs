//! Every operation in one line: its purpose, its query, its body and its answer. Bodies and answers are names of schemas.

/// The description of one operation of the API.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub about: &'static str,
    /// Names of parameters, separated by blanks.
    pub query: &'static str,
    /// Missing if the operation takes no body.
    pub body: Option<&'static str>,
    pub status: u16,
    pub answer: DescribedAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescribedAnswer {
    Json(&'static str),
    Text,
    Html,
    /// Server-sent events, or lines of JSON with `format=ndjson`, without end.
    Stream,
    Empty,
}

use DescribedAnswer::{Empty, Html, Json, Stream, Text};

const fn get(
    path: &'static str,
    about: &'static str,
    query: &'static str,
    answer: DescribedAnswer,
) -> Operation {
    Operation { method: "GET", path, about, query, body: None, status: 200, answer }
}

const fn post(
    path: &'static str,
    about: &'static str,
    query: &'static str,
    body: Option<&'static str>,
    answer: DescribedAnswer,
) -> Operation {
    Operation { method: "POST", path, about, query, body, status: 200, answer }
}

const fn delete(path: &'static str, about: &'static str, answer: DescribedAnswer) -> Operation {
    Operation { method: "DELETE", path, about, query: "forward", body: None, status: 200, answer }
}

const fn put(
    path: &'static str,
    about: &'static str,
    query: &'static str,
    body: &'static str,
    answer: DescribedAnswer,
) -> Operation {
    Operation { method: "PUT", path, about, query, body: Some(body), status: 200, answer }
}

const READ: &str = "level forward";
const PAGE: &str = "level forward prefix limit after";

/// In the order of the documentation.
#[rustfmt::skip]
pub const OPERATIONS: [Operation; 70] = [
    get("/", "An overview: a page for browsers, text for other clients", "", Text),
    get("/ui/{file}", "The files of the dashboard", "", Html),
    get("/openapi.json", "This description", "", Json("Anything")),
    get("/livez", "The process accepts calls", "", Text),
    get("/readyz", "A linear read succeeds through this node within a second", "", Json("Ready")),
    get("/leader", "Whether this node leads, by its lease", "", Json("Leads")),
    get("/metrics", "Metrics for Prometheus", "", Text),
    get("/v1/status", "The cluster, as this node sees it", "", Json("Status")),
    get("/v1/diagnostics", "The data that eldest doctor reads from each node", "", Json("Anything")),
    get("/v1/members", "The members of the cluster", "", Json("Members")),
    post("/v1/members", "Adds, removes or moves a node", "forward", Some("MemberChange"), Json("Members")),
    get("/v1/explain/leader", "The leader, why it leads, and which node would be next", "level \
        limit", Json("Explained")),
    get("/v1/explain/roles/{role}", "The holder of a role, and the role's history", READ, Json("ExplainedRole")),
    get("/v1/explain/health", "What is wrong, how bad it is, and what to type: the findings of eldest doctor", "", Json("Health")),
    get("/v1/explain/nodes/{node}", "The state of a node, by its own answer and as the others see it", "level", Json("ExplainedNode")),
    get("/v1/explain/conflicts/{id}", "What became of a value that a merge overrode, in sentences", READ, Json("ExplainedConflict")),
    get("/v1/explain/calls/{id}", "Why a call was refused", "level", Json("ExplainedCall")),
    post("/v1/commands", "One command, or an array of them as one atomic batch", "forward", Some("Commands"), Json("Written")),
    get("/v1/users", "Users, by name", PAGE, Json("Page")),
    get("/v1/users/{name}", "A user", READ, Json("User")),
    get("/v1/elections", "Elections with their tallies, by name", PAGE, Json("Page")),
    get("/v1/elections/{name}", "An election with its tally", READ, Json("Election")),
    get("/v1/docs", "Documents, by key", PAGE, Json("DocPage")),
    get("/v1/docs/{key}", "A document; its ETag is its revision", READ, Json("Anything")),
    put("/v1/docs/{key}", "Writes a document; supports If-Match, If-None-Match and If-Role", "forward ttl_ms \
        with token", "Anything", Json("Put")),
    post("/v1/docs/{key}", "Renews a document with a ttl", "forward renew", None, Json("RenewedDoc")),
    delete("/v1/docs/{key}", "Deletes a document", Json("Key")),
    get("/v1/conflicts", "Values that merges overrode, by id", "level forward kind prefix limit after", Json("Page")),
    get("/v1/conflicts/{id}", "One such value", READ, Json("Conflict")),
    post("/v1/conflicts/{id}/apply", "Restores the value that lost", "forward", None, Json("Anything")),
    post("/v1/conflicts/{id}/drop", "Drops the value that lost", "forward", None, Json("Anything")),
    get("/v1/roles", "Held roles, by name", PAGE, Json("RolePage")),
    get("/v1/roles/{role}", "The holder of a role", READ, Json("Role")),
    get("/v1/roles/{role}/check", "Checks that a token is the newest", "level forward token", Json("Checked")),
    post("/v1/roles/{role}/acquire", "Acquires a role, or waits for it", "forward", Some("Acquire"), Json("Granted")),
    post("/v1/roles/{role}/renew", "Renews it", "forward", Some("Tenure"), Json("Renewed")),
    post("/v1/roles/{role}/release", "Releases it", "forward", Some("Tenure"), Json("Released")),
    post("/v1/roles/{role}/untie", "Ends it because its holder's connection has \
        closed", "forward", Some("Tenure"), Json("Released")),
    post("/v1/roles/{role}/elect", "Sets the holder", "forward", Some("Acquire"), Json("Granted")),
    post("/v1/roles/{role}/hold", "Holds it for as long as the client reads the answer", "instance_id ttl_ms \
        wait_ms priority address format", None, Stream),
    post("/v1/roles/{role}/tie", "A stream that a lease is tied to", "instance_id token tie ttl_ms grace_ms \
        format", None, Stream),
    get("/v1/processes", "Registered processes, by id", "level forward role capability identifier limit \
        after", Json("Page")),
    get("/v1/processes/{id}", "A process", READ, Json("Process")),
    put("/v1/processes/{id}", "Registers a process", "forward", "NewProcess", Json("Process")),
    post("/v1/processes/{id}/heartbeat", "Heartbeat of a process", "forward", None, Json("Heartbeat")),
    post("/v1/processes/{id}/remove", "Removes a process, by an operator", "forward", None, Json("Id")),
    delete("/v1/processes/{id}", "Unregisters a process", Json("Id")),
    get("/v1/feed", "Events, in the order of the log", "kinds prefix since format", Stream),
    get("/v1/channels/{name}", "Subscribes to a channel", "format", Stream),
    post("/v1/channels/{name}", "Publishes a message to the current \
        subscribers", "", Some("Anything"), Json("Delivered")),
    get("/v1/caller", "Who the caller is, and its grants", "", Json("Caller")),
    get("/v1/tokens", "Tokens, without their secrets", "level forward limit after", Json("Page")),
    Operation { status: 201, ..post("/v1/tokens", "Creates a token, which is shown \
        once", "forward", Some("NewToken"), Json("Token")) },
    delete("/v1/tokens/{id}", "Revokes a token", Json("Anything")),
    get("/v1/backup", "The whole state, as text", "level", Text),
    post("/v1/restore", "Replaces all data with a backup", "other_cluster \
        token_floor", Some("Backup"), Json("Anything")),
    post("/heartbeat", "This node is alive", "", None, Empty),
    post("/hearbeat", "The same, under an old misspelt name", "", None, Empty),
    post("/is_leader", "Whether this node leads", "", None, Json("Flag")),
    post("/declare_capability", "Whether this node would approve that node now", "", Some("NodeIdx"), Json("Opinion")),
    post("/writesync", "For nodes", "", Some("Anything"), Empty),
    post("/recv_elect", "For nodes", "", Some("Anything"), Empty),
    post("/catch_up", "The log from a boundary onwards, or all data", "", Some("CatchUp"), Json("Anything")),
    post("/merge_conflict", "Merges a document, in available mode", "", Some("Anything"), Json("Anything")),
    post("/override_all_data", "Replaces all data", "", Some("Anything"), Json("Anything")),
    post("/service_down", "Refuses client writes", "forward", Some("ServiceDown"), Json("Anything")),
    post("/service_up", "Accepts client writes again", "forward", None, Json("Anything")),
    post("/elect", "Hands leadership to a node", "forward", Some("NodeIdx"), Json("Anything")),
    post("/handoff", "Hands leadership to the best heir", "forward", None, Json("Anything")),
    post("/form", "Forms the cluster without some of its nodes", "", Some("Form"), Json("Anything")),
];

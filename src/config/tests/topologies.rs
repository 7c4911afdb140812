//! Each rule about topologies by itself.

use super::{LOCAL, Start};
use crate::config::Flags;
use crate::types::NodeId;

fn with(old: &str, new: &str) -> String {
    assert!(LOCAL.contains(old), "{old}");
    LOCAL.replacen(old, new, 1)
}

/// The mistakes of the local topology with something replaced.
fn bad(old: &str, new: &str) -> Vec<String> {
    Start::topology(&with(old, new)).bad()
}

fn line(rest: &str) -> Vec<String> {
    vec![format!("topology.json: {rest}")]
}

#[test]
fn names_ports_hosts_and_order() {
    let text = r#"{"cluster": "blue-2", "clusters": [
        {"name": "β", "ip": "Node-2.Example", "id": 2147483648, "port": 80},
        {"name": "α", "ip": "::1", "id": 7}, {"name": "γ", "ip": "::1", "id": 9, "port": 9001},
    ]}"#;
    let start = Start { flags: Flags { node: Some(7), ..Flags::default() }, ..Start::topology(text) };
    let config = start.clone().good();
    assert_eq!((config.cluster_name.as_str(), config.me), ("blue-2", NodeId(7)));
    let urls: Vec<String> = config.members.iter().map(|member| member.url()).collect();
    assert_eq!(urls, ["http://[::1]:9000", "http://[::1]:9001", "http://node-2.example:80"]);
    assert_eq!(config.member(NodeId(9)).unwrap().name, "γ");
    assert_eq!(config.listen.url(), "http://[::1]:9000");
    let ids: Vec<NodeId> = config.settings().members.iter().map(|member| member.id).collect();
    assert_eq!(ids, [NodeId(7), NodeId(9), NodeId(1 << 31)]);
    let remarks = start.remarks();
    assert_eq!(remarks[0], "α has the loopback address [::1]:9000: nodes on other machines cannot reach it");
}

#[test]
fn addresses() {
    let found = bad("\"127.0.0.2\"", "\"10.0.0\"");
    let hint = "an IPv4 address has four numbers from 0 to 255, such as 192.168.1.10";
    assert_eq!(
        found,
        line(&format!("clusters[1].ip: \"10.0.0\" is not an address: {hint} (line 5, column 26)"))
    );
    let found = bad("\"127.0.0.2\"", "\"n2:9000\"");
    let hint = "write the port separately, as \"port\"";
    assert_eq!(
        found,
        line(&format!("clusters[1].ip: \"n2:9000\" is not an address: {hint} (line 5, column 26)"))
    );
    assert_eq!(bad("\"127.0.0.2\"", "\"0.0.0.0\"").len(), 1);
}

/// Their tokens could be equal where two sides grant roles. In safe mode there is one side.
#[test]
fn ids_with_one_remainder() {
    let topology = with("\"id\": 3", "\"id\": 1026");
    let in_mode = |mode| Start { topology: topology.clone(), ..Start::config(&format!("mode = \"{mode}\"")) };
    assert!(in_mode("safe").run().is_ok());
    let found = in_mode("available").bad();
    assert!(found[0].contains("clusters: the ids 2 and 1026 differ by a multiple of 1024"), "{found:?}");
}

#[test]
fn ids() {
    let range = "is out of range: write an integer from 1 to 2147483648 (line 6, column 45)";
    for id in ["0", "2147483649", "-3", "3.5", "1e99"] {
        let found = bad("\"id\": 3", &format!("\"id\": {id}"));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("topology.json: clusters[2].id: ") && found[0].ends_with(range),
            "{found:?}"
        );
    }
    let found = bad("\"id\": 3", "\"id\": \"3\"");
    let wrong = "clusters[2].id: \"3\" has the wrong type: write an integer without quotes, sign or unit";
    assert_eq!(found, line(&format!("{wrong} (line 6, column 45)")));
    let found = bad("\"id\": 3", "\"id\": 2");
    assert_eq!(
        found,
        line("clusters[2].id: 2 is already used by clusters[1]: use another (line 6, column 45)")
    );
    let found = bad("\"id\": 3", "\"id\": 3, \"port\": 0");
    let wrong = "clusters[2].port: 0 is out of range: write an integer from 1 to 65535";
    assert_eq!(found, line(&format!("{wrong} (line 6, column 56)")));
}

#[test]
fn nobody_is_there_twice() {
    let found = bad("\"n3\"", "\"n2\"");
    assert_eq!(
        found,
        line("clusters[2].name: \"n2\" is already used by clusters[1]: use another (line 6, column 14)")
    );
    let found = bad("127.0.0.3", "127.0.0.2");
    assert_eq!(
        found,
        line(
            "clusters[2].ip: 127.0.0.2:9000 is already used by clusters[1]: use another (line 6, column 26)"
        )
    );
    let other_port = with("\"127.0.0.3\"", "\"127.0.0.2\", \"port\": 9001");
    assert_eq!(Start::topology(&other_port).good().members.len(), 3);
    // Two spellings of one address.
    let spelt = LOCAL.replace("127.0.0.2", "::1").replace("127.0.0.3", "0:0::0:1");
    assert_eq!(Start::topology(&spelt).bad().len(), 1);
}

#[test]
fn names() {
    let found = bad("\"n3\"", "\"\"");
    let wrong = "clusters[2].name: \"\" is not a valid name: use 1 to 128 characters, no control characters";
    assert_eq!(found, line(&format!("{wrong} (line 6, column 14)")));
    assert_eq!(bad("\"n3\"", "\"a\\nb\"").len(), 1);
    assert_eq!(bad("\"n3\"", &format!("{:?}", "a".repeat(129))).len(), 1);
    for name in ["", "Blue", "a_b", "ä", &"a".repeat(65)] {
        let found = bad("{", &format!("{{\"cluster\": {name:?},"));
        let wrong = format!("cluster: {name:?}");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].contains(&wrong[..20.min(wrong.len())]) && found[0].ends_with("(line 1, column 13)"),
            "{found:?}"
        );
    }
}

#[test]
fn this_node_is_one_of_them() {
    let found = bad("\"id\": 1", "\"id\": 4");
    assert_eq!(found, line("node.id: no node in clusters has id 4: use one of 1, 2, 3 (line 2, column 32)"));
    let found = bad("\"n1\"", "\"n2\"");
    assert_eq!(
        found,
        line("node.name: \"n2\" is \"n1\" in clusters[0]: use the same name in both (line 2, column 20)")
    );
    let without = with("\"node\": {\"name\": \"n1\", \"id\": 1},", "");
    let found = Start::topology(&without).bad();
    let wrong = "node: is missing: write {\"name\": …, \"id\": …} of this node, or start it with --node ID";
    assert_eq!(found, line(&format!("{wrong} (line 1, column 1)")));
    let chosen =
        |node| Start { flags: Flags { node: Some(node), ..Flags::default() }, ..Start::topology(&without) };
    assert_eq!(chosen(2).good().me, NodeId(2));
    // The flag overrules the file's own `node`, and the two are not compared.
    let other = Start { flags: Flags { node: Some(2), ..Flags::default() }, ..Start::default() };
    assert_eq!(other.good().me, NodeId(2));
}

#[test]
fn how_many() {
    let nodes = |many: usize| {
        let node = |id| format!("{{\"name\": \"n{id}\", \"ip\": \"127.0.0.{id}\", \"id\": {id}}}");
        let nodes: Vec<String> = (1..=many).map(node).collect();
        let text = format!("{{\"clusters\": [{}]}}", nodes.join(","));
        Start { flags: Flags { node: Some(1), ..Flags::default() }, ..Start::topology(&text) }
    };
    assert_eq!(nodes(1).good().members.len(), 1);
    assert_eq!(nodes(101).remarks(), [""; 0]);
    assert_eq!(
        nodes(4).remarks(),
        ["a cluster of 4 tolerates no more failures than one of 3 (1): use an odd number of nodes"]
    );
    assert_eq!(nodes(0).bad(), line("clusters: is empty: add at least this node (line 1, column 14)"));
    let many = "clusters: has 102 nodes: the maximum is 101 (line 1, column 14)";
    assert_eq!(nodes(102).bad(), line(many));
}

#[test]
fn shapes() {
    for text in [
        "",
        "[]",
        "{",
        "5",
        "null",
        "{\"clusters\": {}}",
        "{\"node\": 5, \"clusters\": 5}",
        "{\"clusters\": [5, []]}",
    ] {
        assert!(!Start::topology(text).bad().is_empty(), "{text}");
    }
    let found = bad("\"ip\": \"127.0.0.2\", ", "");
    assert_eq!(found, line("clusters[1].ip: is missing: write a string in quotes (line 5, column 5)"));
    let found = bad("\"ip\": \"127.0.0.2\"", "\"adress\": \"127.0.0.2\"");
    let unknown = "clusters[1].adress: unknown key: use one of name, ip, id, port (line 5, column 30)";
    let missing = "clusters[1].ip: is missing: write a string in quotes (line 5, column 5)";
    assert_eq!(found, [line(missing), line(unknown)].concat());
    let found = bad("\"name\": \"n2\"", "\"nmae\": \"n2\", \"name\": \"n2\", \"name\": \"n2\"");
    let unknown = "clusters[1].nmae: unknown key: did you mean name? (line 5, column 14)";
    let twice = "clusters[1].name: is given twice: keep one (line 5, column 42)";
    assert_eq!(found, [line(unknown), line(twice)].concat());
}

#[test]
fn syntax() {
    let found = bad("\"id\": 1},", "\"id\": 1}");
    assert_eq!(found, line("cannot be parsed: expected `,` or `}` (line 3, column 3)"));
}

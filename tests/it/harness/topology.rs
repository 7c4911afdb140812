//! The topology file, in the seed's form, and the ways in which that of one node may differ from the others'.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Topology {
    cluster: String,
    /// Name and address, from node 1 on.
    members: Vec<(String, Ipv4Addr)>,
}

impl Topology {
    pub fn new(addresses: &[Ipv4Addr]) -> Topology {
        let member = |(id, ip): (usize, &Ipv4Addr)| (format!("node-{id}"), *ip);
        Topology { cluster: "it".to_string(), members: (1..).zip(addresses).map(member).collect() }
    }

    pub fn called(mut self, cluster: &str) -> Topology {
        self.cluster = cluster.to_string();
        self
    }

    pub fn renamed(mut self, id: u32, name: &str) -> Topology {
        self.members[id as usize - 1].0 = name.to_string();
        self
    }

    pub fn moved(mut self, id: u32, ip: Ipv4Addr) -> Topology {
        self.members[id as usize - 1].1 = ip;
        self
    }

    /// Keeps the first nodes only.
    pub fn first(mut self, nodes: usize) -> Topology {
        self.members.truncate(nodes);
        self
    }

    /// The file of this node.
    pub fn text(&self, me: u32) -> String {
        let member = |(id, (name, ip)): (usize, &(String, Ipv4Addr))| json!({"name": name, "ip": ip.to_string(), "id": id});
        let members: Vec<Value> = (1..).zip(&self.members).map(member).collect();
        let own = json!({"name": self.members[me as usize - 1].0, "id": me});
        json!({"cluster": self.cluster, "node": own, "clusters": members}).to_string()
    }
}

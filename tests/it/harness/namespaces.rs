//! A separate network for every node, and a bridge between them on which any link can be cut.
//!
//! The bridge has its own namespace, where no firewall of this machine applies: one that a container engine
//! sets up drops packets on any bridge. The test itself has a cable to it and reaches every node, no matter
//! which nodes reach each other.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::addresses::{TRIES, claim_by};
use super::skip::{left_out, system};

const SKIP: &str = "ELDEST_SKIP_NETNS";
const NEEDED: &str = "a test of partitions makes network namespaces; set ELDEST_SKIP_NETNS=1 to leave it out";

/// The test's own address in each network.
const HOST: u8 = 254;

/// The namespace of the bridge, numbered like those of the nodes.
const SWITCH: u32 = 0;

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Network {
    /// The subnet's number. It is in the name of everything that is created, so that
    /// all of it may be removed.
    tag: String,
    subnet: [u8; 2],
    nodes: u32,
}

/// The two middle bytes of addresses 10.x.y.z that no other test uses, claimed as 127.8.x.y.
fn claim_subnet() -> [u8; 2] {
    let start = std::process::id().wrapping_mul(31);
    for _ in 0..TRIES {
        let place = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let subnet = [64 + (place >> 8) as u8 % 128, place as u8];
        if claim_by(Ipv4Addr::new(127, 8, subnet[0], subnet[1])) {
            return subnet;
        }
    }
    panic!("no free subnet in {TRIES} tries");
}

impl Network {
    /// Returns None if such tests are left out here.
    pub fn new(nodes: u32) -> Option<Network> {
        if left_out(SKIP, "network namespaces") {
            return None;
        }
        let subnet = claim_subnet();
        let tag = format!("{:02x}{:02x}", subnet[0], subnet[1]);
        // A failure from here on removes what was created.
        let network = Network { tag, subnet, nodes };
        // The subnet belongs to this test, so anything with its number was left by a run that was killed.
        network.remove();
        network.build();
        Some(network)
    }

    fn build(&self) {
        let (switch, cable) = (self.name(SWITCH), self.cable());
        run(&["ip", "netns", "add", &switch]);
        run(&["ip", "-n", &switch, "link", "add", "bridge", "type", "bridge"]);
        run(&["ip", "-n", &switch, "link", "set", "bridge", "up"]);
        run(&["ip", "link", "add", &cable, "type", "veth", "peer", "name", "test", "netns", &switch]);
        run(&["ip", "-n", &switch, "link", "set", "test", "master", "bridge", "up"]);
        run(&["ip", "addr", "add", &format!("{}/24", self.address(HOST)), "dev", &cable]);
        run(&["ip", "link", "set", &cable, "up"]);
        for id in 1..=self.nodes {
            let (name, outside) = (self.name(id), format!("node{id}"));
            run(&["ip", "netns", "add", &name]);
            let inside = ["type", "veth", "peer", "name", "eth0", "netns", &name];
            run(&[&["ip", "-n", &switch, "link", "add", &outside][..], &inside].concat());
            run(&["ip", "-n", &switch, "link", "set", &outside, "master", "bridge", "up"]);
            let address = format!("{}/24", self.address(id as u8));
            run(&["ip", "-n", &name, "addr", "add", &address, "dev", "eth0"]);
            run(&["ip", "-n", &name, "link", "set", "eth0", "up"]);
            run(&["ip", "-n", &name, "link", "set", "lo", "up"]);
        }
    }

    fn remove(&self) {
        let quietly = |words: &[&str]| {
            let _ = Command::new(words[0]).args(&words[1..]).output();
        };
        // A namespace takes its links with it, and a cable goes with either of its ends.
        for id in SWITCH..=self.nodes {
            quietly(&["ip", "netns", "del", &self.name(id)]);
        }
        quietly(&["ip", "link", "del", &self.cable()]);
    }

    /// The test's end of its cable to the bridge.
    fn cable(&self) -> String {
        format!("elb{}", self.tag)
    }

    pub fn name(&self, id: u32) -> String {
        format!("eldest-{}-{id}", self.tag)
    }

    fn address(&self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, self.subnet[0], self.subnet[1], last)
    }

    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        (1..=self.nodes).map(|id| self.address(id as u8)).collect()
    }

    /// The commands that start a process in the network of each node.
    pub fn launchers(&self) -> Vec<Vec<String>> {
        let launcher = |id| ["ip", "netns", "exec", &self.name(id)].map(str::to_string).to_vec();
        (1..=self.nodes).map(launcher).collect()
    }

    fn drop_packets(&self, from: u32, to: u32, which: &[&str]) {
        let (name, source) = (self.name(to), self.address(from as u8).to_string());
        let rule = ["ip", "netns", "exec", &name, "iptables", "-w", "-A", "INPUT", "-s", &source];
        run(&[&rule[..], which, &["-j", "DROP"]].concat());
    }

    /// Cuts one direction: no packet of `from` arrives at `to`.
    pub fn cut(&self, from: u32, to: u32) {
        self.drop_packets(from, to, &[]);
    }

    /// `from` cannot call `to`. `to` can still call `from` and gets its answers.
    pub fn cut_calls(&self, from: u32, to: u32) {
        self.drop_packets(from, to, &["-p", "tcp", "--dport", "9000"]);
    }

    /// Cuts all links between the two groups.
    pub fn split(&self, left: &[u32], right: &[u32]) {
        for l in left {
            for r in right {
                self.cut(*l, *r);
                self.cut(*r, *l);
            }
        }
    }

    /// These two hear each other again after a `cut` in both directions, no matter what else is cut.
    pub fn mend(&self, one: u32, other: u32) {
        for (at, from) in [(one, other), (other, one)] {
            let (name, source) = (self.name(at), self.address(from as u8).to_string());
            run(&[
                "ip", "netns", "exec", &name, "iptables", "-w", "-D", "INPUT", "-s", &source, "-j", "DROP",
            ]);
        }
    }

    pub fn heal(&self) {
        for id in 1..=self.nodes {
            run(&["ip", "netns", "exec", &self.name(id), "iptables", "-w", "-F", "INPUT"]);
        }
    }
}

fn run(words: &[&str]) {
    system(words, NEEDED);
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remove();
    }
}

//! A node's settings, and its knowledge of the cluster: the members, their addresses, and the nodes that it is cut off from.

use eldest_tls::NodeTls;
use reqwest::Url;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::protocol::Settings;
use crate::storage::node::backup::Home;
use crate::types::{ClusterId, Members, NodeId};
use crate::wire::{ClusterHead, Secrets};

/// Notices for an operator from other parts of the node than the loop: one text for each subject, for as long as it applies. They are
/// shown with the other remarks, in the status and in the log.
#[derive(Debug, Default)]
pub struct Notices(Mutex<BTreeMap<&'static str, String>>);

impl Notices {
    /// Sets the notice on this subject; None removes it.
    pub fn set(&self, matter: &'static str, text: Option<String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match text {
            Some(text) => drop(all.insert(matter, text)),
            None => drop(all.remove(matter)),
        }
    }

    /// Returns each subject with its text.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(matter, text)| (*matter, text.clone())).collect()
    }
}

/// A node of the cluster, and its address.
#[derive(Clone, Debug)]
pub struct Member {
    pub id: NodeId,
    pub name: String,
    pub host: String,
    pub port: u16,
    /// Whether the member votes. A node that was added first learns without a vote.
    pub votes: bool,
}

impl Member {
    /// Returns `host:port`, with brackets around an IPv6 address.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Parses `host:port`, with brackets around an IPv6 address. The address may come from another node, so an invalid one gives
    /// None. Anything beyond host and port, such as a path or a user, would change where calls go, and is invalid, too.
    pub fn at(id: NodeId, name: &str, address: &str) -> Option<Member> {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let member = Member { id, name: name.to_string(), host, port: port.parse().ok()?, votes: true };
        let url = Url::parse(&format!("http://{}", member.authority())).ok()?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        (bare && url.username().is_empty() && url.has_host()).then_some(member)
    }
}

/// The members of the cluster and their addresses: those of the log, and before the log has any, those of the topology file. Every thread
/// reads the current state, and only the loop changes it.
#[derive(Debug)]
pub struct Directory {
    /// The members in the topology file.
    founders: Vec<Member>,
    known: RwLock<Arc<KnownMembers>>,
    /// Nodes that have called and state another address than this node's log has, or that are no members. This node's log may be the one
    /// that lags, and the answer must still reach the caller.
    strangers: Mutex<BTreeMap<NodeId, Member>>,
}

/// At most this many nodes join one cluster at the same time. Further nodes are not remembered, and hear from this node only in
/// the responses to their calls. Any caller can name an id, so the table needs a bound.
const STRANGERS_MOST: usize = 16;

/// The members at one moment. A reader keeps the value that it got while the loop replaces it.
#[derive(Clone, Debug)]
pub struct KnownMembers {
    /// The id of the cluster, if the log has one.
    pub cluster: ClusterId,
    /// Ascending by id.
    pub members: Vec<Member>,
}

impl KnownMembers {
    pub fn member(&self, id: NodeId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn voters(&self) -> usize {
        self.members.iter().filter(|member| member.votes).count()
    }
}

impl Directory {
    pub fn new(founders: Vec<Member>) -> Directory {
        let known = KnownMembers { cluster: ClusterId::NONE, members: founders.clone() };
        Directory { founders, known: RwLock::new(Arc::new(known)), strangers: Mutex::default() }
    }

    /// Notes that a node has called, and the address that it states.
    pub fn meet(&self, id: NodeId, at: &str) {
        if self.known().member(id).is_some_and(|member| member.authority() == at) {
            return;
        }
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.get(&id).is_some_and(|stranger| stranger.authority() == at) {
            return;
        }
        let Some(stranger) = Member::at(id, &format!("node-{}", id.0), at) else {
            return;
        };
        let most = STRANGERS_MOST + self.known().members.len();
        if strangers.len() < most || strangers.contains_key(&id) {
            strangers.insert(id, stranger);
        }
    }

    /// Returns the addresses where a member may be, in the order in which they are tried: its address in `known`, the one in the
    /// topology file, and the one that the node states. An address in the log can be wrong, and correcting it takes a majority,
    /// which may need this very node (P43).
    pub fn places(&self, id: NodeId) -> Vec<Member> {
        let founder = self.founders.iter().find(|founder| founder.id == id).cloned();
        let all = [self.known().member(id).cloned(), founder, self.stranger(id)];
        let mut places: Vec<Member> = Vec::new();
        for place in all.into_iter().flatten() {
            if places.iter().all(|other| other.authority() != place.authority()) {
                places.push(place);
            }
        }
        places
    }

    pub fn stranger(&self, id: NodeId) -> Option<Member> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn known(&self) -> Arc<KnownMembers> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over the members of the log, after it has grown or was cut off. A founder keeps the address in the topology file,
    /// unless an operator has moved it in the log (`pinned`). Strangers are forgotten; one that still differs from the log is met
    /// again at its next call.
    pub fn follow(&self, cluster: ClusterId, members: &Members) {
        let place = |member: &crate::types::Member| {
            let by_file = self.founders.iter().find(|founder| founder.id == member.id && !member.pinned);
            let by_log = || Member::at(member.id, &member.name, &member.address);
            let found = by_file.cloned().or_else(by_log);
            if found.is_none() {
                tracing::error!(node = member.id.0, address = %member.address, "its address in the log is invalid");
            }
            found.map(|found| Member { votes: member.votes, ..found })
        };
        let members = members.iter().filter_map(place).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(KnownMembers { cluster, members });
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Describes where the topology file and the log name different nodes. The log decides, and the operator is informed (P43).
    pub fn disagreement(&self) -> Option<String> {
        let known = self.known();
        let ids = |members: &[Member]| -> Vec<NodeId> { members.iter().map(|member| member.id).collect() };
        let (file, log) = (ids(&self.founders), ids(&known.members));
        let list = |ids: &[NodeId]| -> String {
            ids.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(", ")
        };
        (known.cluster.is_known() && file != log).then(|| {
            format!(
                "the topology file names the nodes {}, but the cluster has {}, which takes precedence. Change \
                    the file to match, or change the cluster with `eldest members add` and `remove`",
                list(&file),
                list(&log)
            )
        })
    }
}

/// A simulated partition for people to try: this node is cut off from other nodes as by a network that drops everything. No port refuses,
/// no call is answered, and each call ends by its time limit. The process that started the node sets it over the node's stdin
/// (`cli/serve`); nothing that arrives over the network can. All senders and receivers share it. Without a partition it costs one look at
/// a flag.
#[derive(Debug, Default)]
pub struct Wall {
    stands: AtomicBool,
    behind: watch::Sender<BTreeSet<NodeId>>,
}

impl Wall {
    /// Replaces the set of nodes that this node is cut off from.
    pub fn set(&self, behind: BTreeSet<NodeId>) {
        let stands = !behind.is_empty();
        self.behind.send_replace(behind);
        self.stands.store(stands, Ordering::Relaxed);
    }

    pub fn hides(&self, node: NodeId) -> bool {
        self.stands.load(Ordering::Relaxed) && self.behind.borrow().contains(&node)
    }

    /// Returns the result of a call to that node, or None after the call's time limit if the wall dropped the call or its answer.
    pub async fn pass<T>(&self, node: NodeId, most: Duration, call: impl Future<Output = T>) -> Option<T> {
        let until = Instant::now() + most;
        // The wall is looked at twice: one that rises while the call is under way drops the answer.
        if !self.hides(node) {
            let brought = call.await;
            if !self.hides(node) {
                return Some(brought);
            }
        }
        sleep_until(until).await;
        None
    }

    /// Waits until that node is behind the wall.
    pub async fn rises(&self, node: NodeId) {
        let mut behind = self.behind.subscribe();
        // The sender lives as long as this borrow.
        let _ = behind.wait_for(|behind| behind.contains(&node)).await;
    }
}

/// The settings of a node at its start. They are everything that the loop and the transport need of the configuration. They never
/// change, except those with a lock inside: the directory, the secrets, the certificates, the notices and the wall.
#[derive(Debug)]
pub struct Setup {
    pub settings: Settings,
    pub cluster: ClusterHead,
    /// The members of the cluster, including this node.
    pub directory: Directory,
    /// The number of records from one snapshot to the next.
    pub snapshot_every: u64,
    pub secret: Option<Arc<Secrets>>,
    pub tls: Option<Tls>,
    pub notices: Notices,
    pub wall: Arc<Wall>,
}

/// The TLS settings of a node.
#[derive(Clone, Debug)]
pub struct Tls {
    pub certificates: Arc<NodeTls>,
    /// Whether this node calls other nodes by TLS. All nodes must understand TLS first.
    pub dials: bool,
    /// Whether calls without TLS are answered, too.
    pub takes_plain: bool,
}

impl Setup {
    /// Returns the URL of a node: `https://host:port`, or `http://` while nodes do not use TLS among each other.
    pub fn url(&self, member: &Member) -> String {
        let scheme = if self.dialling().is_some() { "https" } else { "http" };
        format!("{scheme}://{}", member.authority())
    }

    /// Returns the certificates for calls to nodes, if those calls use TLS.
    pub fn dialling(&self) -> Option<&Arc<NodeTls>> {
        self.tls.as_ref().filter(|tls| tls.dials).map(|tls| &tls.certificates)
    }

    /// Returns the name of the cluster and of this node, as a backup states them.
    pub fn home(&self) -> Home {
        let known = self.known().cluster;
        Home {
            cluster: self.cluster.name.clone(),
            cluster_id: known.is_known().then(|| known.to_string()),
            mode: self.cluster.mode.clone(),
            node: self.settings.me.0,
        }
    }

    pub fn known(&self) -> Arc<KnownMembers> {
        self.directory.known()
    }

    pub fn member(&self, id: NodeId) -> Option<Member> {
        self.known().member(id).cloned()
    }

    pub fn others(&self) -> Vec<Member> {
        let known = self.known();
        known.members.iter().filter(|member| member.id != self.settings.me).cloned().collect()
    }
}

#[cfg(test)]
mod notices_tests {
    use super::*;

    #[test]
    fn a_matter_has_one_text() {
        let notices = Notices::default();
        notices.set("b", Some("old".into()));
        notices.set("b", Some("new".into()));
        notices.set("a", Some("first".into()));
        assert_eq!(notices.all(), [("a", "first".to_string()), ("b", "new".to_string())]);
        notices.set("b", None);
        notices.set("c", None);
        assert_eq!(notices.all(), [("a", "first".to_string())]);
    }
}

#[cfg(test)]
mod member_tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_none() {
        let at = |address: &str| Member::at(NodeId(4), "n4", address).map(|member| member.authority());
        assert_eq!(at("10.0.0.4:9000").as_deref(), Some("10.0.0.4:9000"));
        assert_eq!(at("[::1]:9000").as_deref(), Some("[::1]:9000"));
        assert_eq!(at("n4.example:80").as_deref(), Some("n4.example:80"));
        for wrong in [
            "", "n4", ":9000", "n4:", "n4:99999", "a b:1", "a|b:1", "a/b:1", "a?b:1", "a#b:1", "u@n4:1",
            "<>:1", "[::g]:1",
        ] {
            assert_eq!(at(wrong), None, "{wrong:?}");
        }
    }
}

#[cfg(test)]
mod directory_tests {
    use super::*;
    use crate::types;

    fn member(id: u32) -> Member {
        Member::at(NodeId(id), &format!("node-{id}"), &format!("10.0.0.{id}:9000")).expect("an address")
    }

    /// A cluster of three by its topology file.
    fn directory() -> Directory {
        Directory::new([1, 2, 3].map(member).to_vec())
    }

    fn logged(id: u32, address: &str, pinned: bool) -> types::Member {
        let name = format!("node-{id}").into();
        types::Member { id: NodeId(id), name, address: address.into(), pinned, votes: id < 3 }
    }

    fn authority(member: Option<Member>) -> Option<String> {
        member.map(|member| member.authority())
    }

    #[test]
    fn there_is_room_for_as_many_strangers_as_members_and_some_more() {
        let directory = directory();
        let ids = || (100..200).map(NodeId);
        ids().for_each(|id| directory.meet(id, "10.0.1.1:9000"));
        let known = ids().filter(|id| directory.stranger(*id).is_some()).count();
        assert_eq!(known, STRANGERS_MOST + 3);
        // A known stranger may change its address although the table is full.
        directory.meet(NodeId(100), "10.0.1.2:9000");
        assert_eq!(authority(directory.stranger(NodeId(100))).as_deref(), Some("10.0.1.2:9000"));
        directory.meet(NodeId(100), "no address");
        assert_eq!(authority(directory.stranger(NodeId(100))).as_deref(), Some("10.0.1.2:9000"));
    }

    #[test]
    fn a_member_where_it_belongs_is_no_stranger() {
        let directory = directory();
        directory.meet(NodeId(2), "10.0.0.2:9000");
        assert!(directory.stranger(NodeId(2)).is_none());
        directory.meet(NodeId(2), "10.0.9.2:9000");
        assert!(directory.stranger(NodeId(2)).is_some());
    }

    /// The address in the log comes first, then the one in the file, then the one that the node states; each address once.
    #[test]
    fn a_member_is_looked_for_where_it_may_be() {
        let directory = directory();
        directory.follow(ClusterId(7), &[logged(2, "10.0.5.2:9000", true)].into_iter().collect());
        directory.meet(NodeId(2), "10.0.9.2:9000");
        let places = |id| -> Vec<String> {
            directory.places(NodeId(id)).iter().map(|place| place.authority()).collect()
        };
        assert_eq!(places(2), ["10.0.5.2:9000", "10.0.0.2:9000", "10.0.9.2:9000"]);
        directory.meet(NodeId(3), "10.0.0.3:9000");
        assert_eq!(places(3), ["10.0.0.3:9000"]);
        assert_eq!(places(4), [""; 0]);
    }

    #[test]
    fn the_file_says_where_a_member_is_unless_an_operator_has_said_it() {
        let directory = directory();
        let log = [
            logged(1, "10.0.5.1:9000", false),
            logged(2, "10.0.5.2:9000", true),
            logged(4, "10.0.5.4:9000", false),
            logged(5, "nowhere", false),
        ];
        directory.meet(NodeId(9), "10.0.9.9:9000");
        directory.follow(ClusterId(7), &log.into_iter().collect());
        let known = directory.known();
        let shown = |member: &Member| (member.authority(), member.votes);
        let shown: Vec<(String, bool)> = known.members.iter().map(shown).collect();
        let at = |authority: &str, votes| (authority.to_string(), votes);
        assert_eq!(shown, [at("10.0.0.1:9000", true), at("10.0.5.2:9000", true), at("10.0.5.4:9000", false)]);
        assert_eq!(known.voters(), 2);
        assert!(directory.stranger(NodeId(9)).is_none(), "who has called is forgotten");
    }

    #[test]
    fn people_hear_of_a_file_that_names_other_nodes() {
        let directory = directory();
        let log = |ids: &[u32]| ids.iter().map(|id| logged(*id, "10.0.5.1:9000", true)).collect();
        assert_eq!(directory.disagreement(), None);
        directory.follow(ClusterId(7), &log(&[1, 2, 3]));
        assert_eq!(directory.disagreement(), None);
        directory.follow(ClusterId(7), &log(&[1, 2, 4]));
        let told = directory.disagreement().expect("they differ");
        assert!(told.contains("names the nodes 1, 2, 3, but the cluster has 1, 2, 4"), "{told}");
        // Before the log names a cluster, only the file names members.
        directory.follow(ClusterId::NONE, &log(&[1, 2, 4]));
        assert_eq!(directory.disagreement(), None);
    }
}

#[cfg(test)]
mod wall_tests {
    use futures_util::FutureExt;

    use super::*;

    const PEER: NodeId = NodeId(2);
    const LONG: Duration = Duration::from_secs(3600);

    fn up(wall: &Wall) {
        wall.set([PEER].into());
    }

    #[test]
    fn it_hides_whom_it_is_told_to() {
        let wall = Wall::default();
        assert!(!wall.hides(PEER));
        up(&wall);
        assert!(wall.hides(PEER) && !wall.hides(NodeId(3)));
        wall.set([NodeId(3)].into());
        assert!(!wall.hides(PEER) && wall.hides(NodeId(3)));
        wall.set(BTreeSet::new());
        assert!(!wall.hides(PEER) && !wall.hides(NodeId(3)));
    }

    #[tokio::test]
    async fn a_swallowed_call_ends_when_its_time_is_up() {
        let wall = Wall::default();
        assert_eq!(wall.pass(PEER, LONG, async { 7 }).now_or_never(), Some(Some(7)));
        let on_its_way_back = wall.pass(PEER, LONG, async { up(&wall) });
        assert_eq!(on_its_way_back.now_or_never(), None);
        let never_left = async { panic!("it left") };
        assert_eq!(wall.pass(PEER, LONG, never_left).now_or_never(), None::<Option<()>>);
        assert_eq!(wall.pass(PEER, Duration::ZERO, async { 7 }).await, None);
        assert_eq!(wall.pass(NodeId(3), LONG, async { 7 }).now_or_never(), Some(Some(7)));
    }

    #[tokio::test]
    async fn who_waits_for_it_sees_it_rise() {
        let wall = Wall::default();
        let mut rises = std::pin::pin!(wall.rises(PEER));
        assert!(rises.as_mut().now_or_never().is_none());
        wall.set([NodeId(3)].into());
        assert!(rises.as_mut().now_or_never().is_none());
        up(&wall);
        assert!(rises.now_or_never().is_some());
    }
}

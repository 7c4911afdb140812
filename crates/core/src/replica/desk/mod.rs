//! The desk: what every kind of call needs. Here calls are judged by the newest version, proposed, and answered.

mod calls;
mod rounds;

use std::collections::VecDeque;

use crate::protocol::mutant::{self, Mutant};
use crate::protocol::{Input, Node, Output, Proposal, Refusal, Verdict};
use crate::replica::answer::{Answer, Denied, View};
use crate::replica::feed::FeedEvent;
use crate::replica::io::{CallId, End, Out};
use crate::replica::pending::{Pending, Waiting};
use crate::replica::versions::Versions;
use crate::store::Store;
use crate::types::{Entry, Epoch, Index, NodeId, Now, Owner, RequestId, Text, Time};

/// The records and reads of one input, given to the protocol together.
#[derive(Clone, Debug, Default)]
struct Round {
    entries: Vec<Proposal>,
    bytes: usize,
    /// Reads, each with the index of the record that its answer was judged by.
    reads: Vec<(RequestId, Index)>,
}

#[derive(Clone, Debug)]
pub struct Desk {
    node: Node,
    pub now: Now,
    pub versions: Versions,
    round: Round,
    pub pending: Pending,
    /// Verdicts that were reached without the protocol. They are handled next.
    pub decided: VecDeque<(Waiting, Verdict)>,
    /// Roles that became free by records that have entered the log.
    pub freed: Vec<Text>,
    /// Inputs that the protocol gets next.
    pub inputs: VecDeque<Input>,
    pub out: Vec<Out>,
    /// A merge that the feed announces once this node's promise is on its disk.
    pub untold: Option<FeedEvent>,
    /// The time when this node last heard its leader, or led.
    led_at: Time,
    ended: Option<End>,
}

impl Desk {
    pub fn new(node: Node, now: Now, versions: Versions) -> Desk {
        Desk {
            node,
            now,
            versions,
            round: Round::default(),
            pending: Pending::default(),
            decided: VecDeque::new(),
            freed: Vec::new(),
            inputs: VecDeque::new(),
            out: Vec::new(),
            untold: None,
            led_at: now.mono,
            ended: None,
        }
    }

    /// Read access to the protocol.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Passes an input to the protocol. Only the replica calls this, because it carries out the outputs.
    pub fn tell(&mut self, input: Input) -> Vec<Output> {
        self.node.handle(self.now, input)
    }

    pub fn me(&self) -> NodeId {
        self.node.settings().me
    }

    /// The committed state.
    pub fn committed(&self) -> &Store {
        self.versions.committed()
    }

    /// The epoch that this node leads, if that epoch is open.
    pub fn leads_in(&self) -> Option<Epoch> {
        self.node.is_open().then(|| self.node.vote().promise.epoch)
    }

    pub fn answer(&mut self, call: CallId, answer: Result<Answer, Denied>) {
        self.out.push(Out::Answer(call, answer));
    }

    /// A call gets one answer: every path of a call ends in one `answer` or `deny`, or leaves the call in `pending`, in
    /// the waiter queue, among the turns or in the restore under way.
    pub fn deny(&mut self, call: CallId, denied: Denied) {
        self.answer(call, Err(denied));
    }

    /// The replica cannot go on, or was asked to end. Every waiting caller gets an answer once the present input has been handled.
    pub fn end(&mut self, why: End) {
        self.ended.get_or_insert(why);
    }

    pub fn ended(&self) -> Option<&End> {
        self.ended.as_ref()
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub fn note_leader(&mut self) {
        match self.node.leader() {
            Some(leader) if leader == self.me() => self.led_at = self.now.mono,
            Some(leader) => self.led_at = self.node.last_heard(leader).unwrap_or(self.led_at),
            None => {}
        }
    }

    /// The committed state as a reader sees it.
    pub fn view(&self, now: Time) -> View {
        let store = self.committed().clone();
        let index = store.applied().index;
        let leader = self.node.leader();
        let heard_at = if leader == Some(self.me()) { now } else { self.led_at };
        View { store, leader, epoch: self.node.vote().promise.epoch, index, heard_at }
    }
}

// Events for readers of the feed.
impl Desk {
    /// A merge begins an epoch at once. Until the promise is on disk, this node may crash and begin the same epoch again,
    /// with another state at the same position. So the event waits for the promise.
    pub fn flush_merge_event(&mut self) {
        if self.node.promise_is_durable() || mutant::is_on(Mutant::MergeToldAtOnce) {
            self.out.extend(self.untold.take().map(Out::Feed));
        }
    }

    /// Sends an event, and the event of a waiting merge before it. That merge needs no further wait: anything behind it is committed on
    /// a disk that has the merge's epoch, so the promise is on that disk, too.
    pub fn publish(&mut self, event: FeedEvent) {
        self.out.extend(self.untold.take().into_iter().chain([event]).map(Out::Feed));
    }
}

// Reasons for a denial.
impl Desk {
    /// The denial that a caller gets for a verdict other than success.
    pub fn denied(&self, verdict: &Verdict) -> Denied {
        let Verdict::Refused(refusal) = verdict else {
            return Denied::Unknown;
        };
        match refusal {
            Refusal::NotLeader { .. } => self.not_leading(),
            // Another leader's record stands in the place of the call's record. The call never takes effect, and the caller
            // may ask that leader.
            Refusal::Superseded => self.not_leading(),
            Refusal::HandingOver => Denied::HandingOver,
            Refusal::ServiceDown => Denied::ServiceDown { reason: self.reason_for_stop() },
            Refusal::DiskFull => Denied::DiskFull,
            Refusal::TooMany => Denied::TooMany { bound: "writes that are not committed yet" },
            Refusal::TooManyReads => Denied::TooMany { bound: "answers that wait for a round" },
            Refusal::FormatNotShared => Denied::FormatNotShared,
            Refusal::NotAnHeir => Denied::NotAnHeir,
            Refusal::Members(refusal) => Denied::Members(*refusal),
        }
    }

    /// The reason why this node does not answer as the leader.
    pub fn not_leading(&self) -> Denied {
        match self.node.leader() {
            Some(leader) if leader != self.me() => Denied::NotLeader { leader },
            _ if !self.node.is_admitted() && self.node.vote().formed => Denied::CatchingUp,
            // Available mode needs no majority.
            _ if self.node.reaches_majority(self.now.mono) => Denied::NoLeader,
            _ => Denied::NoQuorum,
        }
    }

    /// The reason why the service is down, in the words of the operator who stopped it last, or of a merge if no operator did. It
    /// is empty if the log no longer has that record.
    fn reason_for_stop(&self) -> Text {
        let owner = match self.node.log().holds_of_service().held_by(Owner::Operator) {
            true => Owner::Operator,
            false => Owner::Merge,
        };
        let said = self.node.log().records().filter_map(|record| match &record.entry {
            Entry::ServiceDown { owner: by, reason, .. } if *by == owner => Some(reason.clone()),
            _ => None,
        });
        said.last().unwrap_or_else(|| "".into())
    }
}

//! What goes in and out: the inputs and outputs of a node, the messages between nodes, and how people read them.

mod event;
mod io;
mod message;
mod notation;
mod reasons;

pub use event::Event;
pub use io::{
    Input, IsLeader, MemberChange, MembersRefusal, Output, Proposal, Recovered, Refusal, ServiceChange,
    Taking, Verdict, Vote, Write,
};
pub use message::{Certificate, Checkpoint, Claim, Condition, Envelope, Message, Standing, Term};
pub use reasons::{Cause, Fault, Impasse, Objection};

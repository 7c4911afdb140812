//! What goes in and out: the inputs and outputs of a node, the messages between nodes, and how people read them.

mod io;
mod message;
mod notation;

pub use io::{
    Cause, Event, Fault, Impasse, Input, IsLeader, MemberChange, MembersRefusal, Output, Proposal, Recovered,
    Refusal, ServiceChange, Taking, Verdict, Vote, Write,
};
pub use message::{Certificate, Checkpoint, Claim, Condition, Envelope, Message, Standing, Term};

//! Tests of the client against the memory backend, whose clock stands still until all tasks wait, and against servers
//! that misbehave.

mod bulk;
mod caller;
mod calls;
mod elections;
mod fake;
mod holders;
mod locks;
mod over_http;
mod registry;
mod streams;
mod ties;
mod unreadable;

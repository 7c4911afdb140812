//! The whole state as one text, for an operator to keep: what this node has applied, or what the leader has. It is an order, one at a
//! time, and written no further ahead than it is taken.

use std::sync::Arc;

use axum::extract::State;

use super::pieces::streamed;
use crate::driver::handle::Level;
use crate::http::answer::{Answer, TEXT};
use crate::http::request::{ClientRequest, ConnectionTimeouts, Context};
use crate::storage::node::backup::{self, BackupHead};

/// Not passed on: who asks for another level than this node's own asks the leader.
pub async fn backup(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let level = request.query(&["level"])?.level.unwrap_or(Level::Local);
    let place = context.backups.take(request.sharers())?;
    let view = request.in_time(context.handle.read(level)).await??;
    let home = context.setup.home();
    let timeouts = request.parts.extensions.get::<Arc<ConnectionTimeouts>>();
    Ok(streamed(TEXT, place, timeouts, move |out| {
        let head = BackupHead::new(&home, &view.store, crate::driver::wall_time());
        backup::write(&head, &view.store, out)
    }))
}

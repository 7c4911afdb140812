//! The feed sends what this node has applied, event by event. All nodes send the same events, so a client that loses one node continues at
//! another; no call is forwarded.
//!
//! ```text
//!   subscribe ─► the ring of this node ─► filter ─► may this reader see it? ─► the next piece of the response
//!        └ an id that this node has not reached: wait, two seconds at most
//! ```
//!
//! An event's id is made of its record's position in the log, and is the same on all nodes. That is why a
//! reader can go on at another node with the id of the last event that it has seen.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use futures_util::stream::unfold;
use serde_json::Value;
use tokio::time::{Duration, Instant, sleep};

use crate::driver::feed::{Filter, Frame, Kind, Kinds, Next, Over, Refused, Since, Subscription};
use crate::driver::handle::Denied;
use crate::http::access::Principal;
use crate::http::admission::Place;
use crate::http::answer::stream::{self, Format};
use crate::http::answer::{Answer, Code, Problem};
use crate::http::request::{ClientRequest, Context};
use crate::protocol::Mode;
use crate::store::{Area, Verb};

/// A follower usually lags behind its leader by less than this.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A reader waits this long for a node that lags. It is less than clients wait before they take the node for dead.
const LAG_MOST: Duration = Duration::from_secs(2);

struct Wanted {
    filter: Filter,
    since: Option<Since>,
    format: Format,
}

pub async fn follow(State(context): State<Arc<Context>>, request: ClientRequest) -> Answer {
    let wanted = read(&request)?;
    let (format, silence) = (wanted.format, stream::silence(&context.limits));
    let place = context.readers.take(request.sharers())?;
    let subscription = subscribe(&context, &request, wanted).await?;
    let reader = Some(Reader { subscription, principal: request.principal().clone(), _place: place });
    let events = unfold(reader, move |reader| next(reader, format, silence));
    Ok(stream::response(format, events))
}

fn read(request: &ClientRequest) -> Result<Wanted, Problem> {
    let query = request.query(&["kinds", "prefix", "since", "format"])?;
    let format = query.format.as_deref().map_or(Ok(Format::Sse), Format::parse)?;
    let kinds = query.kinds.as_deref().filter(|kinds| !kinds.is_empty()).map(kinds).transpose()?;
    let filter = Filter::new(kinds, query.prefix.as_deref().unwrap_or_default());
    // An EventSource reconnects to its original URL, and states its current position in the header.
    let since = match stream::last_event_id(&request.head.parts.headers)? {
        Some(id) => since("Last-Event-ID", id, request.mode)?,
        None => query.since.as_deref().map_or(Ok(None), |id| since("since", id, request.mode))?,
    };
    Ok(Wanted { filter, since, format })
}

fn kinds(text: &str) -> Result<Kinds, Problem> {
    let kind = |name: &str| {
        Kind::from_name(name).ok_or_else(|| {
            let known = Kind::ALL.map(Kind::name).join(", ");
            Problem::field("kinds", format!("kinds must be a comma-separated list of {known}"))
        })
    };
    text.split(',').map(kind).collect::<Result<Vec<_>, _>>().map(Kinds::of)
}

/// An empty text and zero mean: from now on.
fn since(field: &str, text: &str, mode: Mode) -> Result<Option<Since>, Problem> {
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let wrong = || {
        let example = match mode {
            Mode::Safe => "12 or 12.3",
            Mode::Available => "7.1@12 or 7.1@12.3",
        };
        Problem::field(field, format!("not an event id of this cluster; write one like {example}"))
    };
    Since::parse(text, mode == Mode::Available).map(Some).ok_or_else(wrong)
}

/// A client that comes from a node ahead of this one waits until this node has caught up. Otherwise it would be refused in normal
/// operation, since followers lag by a moment.
async fn subscribe(
    context: &Context,
    request: &ClientRequest,
    wanted: Wanted,
) -> Result<Subscription, Problem> {
    let give_up = request.deadline.min(Instant::now() + LAG_MOST);
    loop {
        let refused = match context.handle.feed().subscribe(wanted.filter.clone(), wanted.since) {
            Ok(subscription) => return Ok(subscription),
            Err(refused) => refused,
        };
        // This node may lag behind the restore that begins the other history (P60).
        let may_come = matches!(refused, Refused::Ahead { .. } | Refused::OtherHistory { .. });
        if !may_come || Instant::now() >= give_up {
            return Err(refused.into());
        }
        let Ok(_place) = context.waiting.take(request.sharers()) else {
            return Err(refused.into());
        };
        sleep(LOOK_AGAIN).await;
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        match refused {
            Refused::Ahead { head } => {
                let detail = format!(
                    "that event is ahead of this node, whose feed ends at {head}: either this node lags, and \
                        another node has the event, or the id is not from this cluster"
                );
                Problem::new(Code::CatchingUp, detail).with("last", head.to_string())
            }
            Refused::Compacted { oldest } | Refused::OtherHistory { oldest } => {
                let detail = "the events after that one are no longer kept here, or belong to another history; \
                    read the data again, and continue from now or from the oldest id";
                Problem::new(Code::FeedCompacted, detail).with("oldest", oldest.to_string())
            }
            Refused::Closed => Denied::Stopping.into(),
        }
    }
}

/// The reader, and the principal that decides which events it may see.
struct Reader {
    subscription: Subscription,
    principal: Principal,
    _place: Place,
}

impl Reader {
    /// Each event needs a grant for its subject; an event for all, such as a change of everything, is shown to every reader.
    /// It is judged for each event and not for the subscription: a reader may watch several areas, and the
    /// prefix of the query does not name an area.
    fn may_see(&self, event: &Frame) -> bool {
        let principal = &self.principal;
        match (event.subject(), event.kind()) {
            _ if event.is_for_all() => true,
            (Some((area, name)), _) => principal.covers(Verb::Watch, area, &name),
            // These need the same grants as the list of conflicts and the list of tokens.
            (None, Kind::Conflict) => principal.covers_all(Verb::Watch, Area::Docs),
            (None, Kind::TokenCreated | Kind::TokenRevoked) => principal.may_order(),
            (None, _) => principal.covers_all(Verb::Watch, Area::Status),
        }
    }
}

/// Returns the next piece of the response, and the rest of the reader.
async fn next(
    reader: Option<Reader>,
    format: Format,
    silence: Duration,
) -> Option<(Result<Bytes, Infallible>, Option<Reader>)> {
    let mut reader = reader?;
    // Hidden events do not extend this deadline: otherwise a reader without grants would get no sign of life on a busy node.
    let speak_at = Instant::now() + silence;
    let (piece, goes_on) = loop {
        let said = (reader.subscription.next(silence).await, format);
        break match said {
            (Next::Event(event), _) if !reader.may_see(&event) => {
                // Hidden events appear only as this keep-alive message, which is sent as often anyway.
                if Instant::now() < speak_at {
                    continue;
                }
                (format.sign_of_life(), true)
            }
            (Next::Event(event), Format::Sse) => (event.frame(), true),
            (Next::Event(event), Format::Ndjson) => (event.line(), true),
            (Next::Bookmark(id), format) => {
                (format.event("bookmark", Some(&id.to_string()), Value::Null), true)
            }
            (Next::Over(Over::TooSlow), format) => {
                let detail =
                    "the next events are no longer kept: events were read more slowly than they arrived";
                (format.end("too_slow", detail), false)
            }
            (Next::Over(Over::Stopping), format) => {
                (format.end("stopping", "this node is stopping; continue at another one"), false)
            }
        };
    };
    Some((Ok(piece), goes_on.then_some(reader)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_or_refused() {
        for good in ["change", "change,new_leader", &Kind::ALL.map(Kind::name).join(",")] {
            assert!(kinds(good).is_ok(), "{good}");
        }
        for wrong in ["chnage", "change,", ",change", "change, new_leader", "bookmark", "Change"] {
            assert_eq!(kinds(wrong).err().map(|problem| problem.code()), Some(Code::BadField), "{wrong}");
        }
    }

    #[test]
    fn ids_are_of_the_cluster_s_mode() {
        let read = |text, mode| since("since", text, mode).map(|since| since.is_some()).ok();
        for mode in [Mode::Safe, Mode::Available] {
            assert_eq!((read("", mode), read("0", mode), read("x", mode)), (Some(false), Some(false), None));
        }
        assert_eq!((read("12.1", Mode::Safe), read("12.1", Mode::Available)), (Some(true), None));
        assert_eq!((read("7.1@12", Mode::Safe), read("7.1@12", Mode::Available)), (None, Some(true)));
    }
}

//! The task of an election.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, WeakSender};
use tokio::time::{sleep, timeout};

use super::core::{Core, Order};
use super::event::ElectionEvent;
use crate::backend::{Acquire, Backend, Watched};
use crate::error::Error;
use crate::lease::Term;
use crate::pauses::Pauses;
use crate::seat::{ANSWER_MOST, LEAVE_MOST, not_left};

/// The end of a phase, and what follows it.
enum Next {
    Lead(Term),
    Follow,
    /// A stop was ordered: the role is released.
    Stop,
}

/// Runs an election until it is stopped, and then releases the role. A release that fails is sent as an event.
pub async fn run<B: Backend>(core: Arc<Core<B>>, mut orders: Receiver<Order>, own: WeakSender<Order>) {
    let following = follow(core.clone(), own);
    let mut next = Next::Follow;
    let standing = async {
        loop {
            next = match next {
                Next::Follow => campaign(&core, &mut orders).await,
                Next::Lead(term) => reign(&core, term, &mut orders).await,
                Next::Stop => return,
            };
        }
    };
    tokio::select! {
        () = standing => {}
        () = following => {}
    }
    core.lose();
    if let Err(error) = timeout(LEAVE_MOST, core.seat.leave()).await.unwrap_or_else(|_| Err(not_left())) {
        core.tell_error(error);
    }
    core.stopped();
}

/// Asks for the role until it is granted.
async fn campaign<B: Backend>(core: &Core<B>, orders: &mut Receiver<Order>) -> Next {
    core.tell(ElectionEvent::ElectionStarted);
    let (mut wait, mut lost) = (Duration::ZERO, false);
    let mut pauses = Pauses::new();
    loop {
        let ask = core.seat.ask(wait, core.metadata());
        let (again, begun) = (lost, AtomicBool::new(false));
        let mut asking = std::pin::pin!(async {
            begun.store(true, Ordering::Relaxed);
            ask_once(core, &ask, again).await
        });
        let asked = match unless_ordered(core, orders, &mut asking).await {
            Ok(asked) => asked,
            Err(next) => {
                // A node may still process a call whose connection is closed, and grant the role after `leave` has
                // read the holder. A call that waits for the role has no such problem: its place in the queue ends
                // when the connection closes.
                if matches!(next, Next::Stop) && wait.is_zero() && begun.load(Ordering::Relaxed) {
                    let _ = timeout(ANSWER_MOST, asking).await;
                }
                return next;
            }
        };
        match asked {
            Ok(term) => return Next::Lead(term),
            Err(Error::RoleHeld(held)) => {
                core.note_leader(&held.leader.instance_id);
                if !lost {
                    core.decide(false);
                }
                (wait, lost, pauses) = (core.check_every, true, Pauses::new());
            }
            Err(error) => {
                core.tell_error(error);
                if let Err(next) = unless_ordered(core, orders, sleep(pauses.next())).await {
                    return next;
                }
            }
        }
    }
}

/// Returns the result of the work, unless an order comes first that changes the phase. The work goes on while orders
/// are read: a call that waits at the cluster keeps its place in the queue there.
async fn unless_ordered<B: Backend, T>(
    core: &Core<B>,
    orders: &mut Receiver<Order>,
    work: impl Future<Output = T>,
) -> Result<T, Next> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            order = orders.recv() => if let Some(next) = obey(core, order) {
                return Err(next);
            },
            done = &mut work => return Ok(done),
        }
    }
}

/// Asks for the role once, and returns the proved term.
async fn ask_once<B: Backend>(core: &Core<B>, ask: &Acquire, again: bool) -> Result<Term, Error> {
    let grant = core.seat.backend.acquire(ask).await?;
    if again {
        // The last election was decided against this process, so this grant belongs to a new one.
        core.tell(ElectionEvent::ElectionStarted);
    }
    core.seat.proved(&grant, !ask.wait.is_zero()).await
}

/// Leads until the lease is lost.
async fn reign<B: Backend>(core: &Core<B>, term: Term, orders: &mut Receiver<Order>) -> Next {
    core.win(term);
    let note = |error| core.tell(ElectionEvent::HeartbeatError(Arc::new(error)));
    let keeping = core.seat.keep(&core.belief, note);
    let next = match unless_ordered(core, orders, keeping).await {
        Ok(_why) => Next::Follow,
        Err(next) => next,
    };
    // A new grant to this process also ends the old one.
    core.lose();
    next
}

/// The effect of the order: the next phase, or `None`.
fn obey<B: Backend>(core: &Core<B>, order: Option<Order>) -> Option<Next> {
    match order {
        None | Some(Order::Stop) => Some(Next::Stop),
        Some(Order::Elected(term)) => Some(Next::Lead(term)),
        Some(Order::Deposed { by, token }) => {
            // Tokens rise: an order with a smaller token is outdated.
            let deposed = core.belief.token().map(|own| own < token);
            if deposed == Some(true) {
                core.lose();
            }
            if deposed != Some(false) {
                core.note_leader(&by);
            }
            deposed.filter(|deposed| *deposed).map(|_| Next::Follow)
        }
    }
}

/// Keeps track of the leader for as long as the election runs.
async fn follow<B: Backend>(core: Arc<Core<B>>, orders: WeakSender<Order>) {
    let mut pauses = Pauses::new();
    loop {
        match core.seat.backend.watch(&core.seat.role).await {
            Ok(mut watch) => {
                core.tell(ElectionEvent::SubscribeStarted);
                pauses = Pauses::new();
                while let Some(told) = watch.recv().await {
                    match told {
                        Ok(watched) => heard(&core, watched, &orders).await,
                        Err(error) => core.tell(ElectionEvent::SubscribeError(Arc::new(error))),
                    }
                }
            }
            Err(error) => core.tell(ElectionEvent::SubscribeError(Arc::new(error))),
        }
        sleep(pauses.next()).await;
    }
}

async fn heard<B: Backend>(core: &Core<B>, watched: Watched, orders: &WeakSender<Order>) {
    match watched {
        Watched::Changed(event) => core.tell(ElectionEvent::Change(event)),
        Watched::Lost { instance_id, .. } => core.note_lost(&instance_id),
        Watched::Acquired { instance_id, .. } if instance_id == core.seat.instance_id => {}
        Watched::Acquired { instance_id: by, token } => match (core.belief.token(), orders.upgrade()) {
            (Some(_), Some(orders)) => {
                let _ = orders.send(Order::Deposed { by, token }).await;
            }
            _ => core.note_leader(&by),
        },
    }
}

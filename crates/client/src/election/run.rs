//! An election's task.

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

/// How a phase ends.
enum Next {
    Lead(Term),
    Follow,
    /// In order: the role is given back.
    Stop,
}

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

/// Asks for the role until it is given.
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
                // A node may be at work on a call whose connection is closed, and grant the role after `leave` has looked who holds it.
                // Who waits in line is taken out of it when the connection closes.
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

/// The work's result, unless an order comes first that changes what is to be done. The work goes on meanwhile: who
/// waits at the cluster keeps its place there.
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

/// The role, proved to be had.
async fn ask_once<B: Backend>(core: &Core<B>, ask: &Acquire, again: bool) -> Result<Term, Error> {
    let grant = core.seat.backend.acquire(ask).await?;
    if again {
        // The one before was decided against this process.
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
    // A new grant to this process ends the old one, too.
    core.lose();
    next
}

/// What is to be done instead, if anything.
fn obey<B: Backend>(core: &Core<B>, order: Option<Order>) -> Option<Next> {
    match order {
        None | Some(Order::Stop) => Some(Next::Stop),
        Some(Order::Elected(term)) => Some(Next::Lead(term)),
        Some(Order::Deposed { by, token }) => {
            // Tokens rise: an older one is news of the past.
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

/// Hears who leads, as long as there is somebody to tell.
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

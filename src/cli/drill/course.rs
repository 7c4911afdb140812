//! The course of a drill, step by step.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::args::DrillArgs;
use super::order::Order;
use super::tally::Tally;
use super::watch::{LeaderWatch, Leads, status};
use crate::cli::exit::Failure;
use crate::cli::out::note;
use crate::cli::span::millis;
use crate::client::Caller;

const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The time since the beginning of the drill.
    pub at_ms: u64,
    pub says: String,
}

/// The outcome of a drill.
#[derive(Debug, Default)]
pub struct Outcome {
    pub events: Vec<Event>,
    pub another_led: bool,
    /// `None` if no node had to be brought back.
    pub is_back: Option<bool>,
    /// The number of times that a node said that it leads after a newer leader had said so. `None` if no node has
    /// answered at `/leader`.
    pub led_at_once: Option<u64>,
}

#[derive(Debug)]
pub struct Course<'a> {
    args: &'a DrillArgs,
    order: Order<'a>,
    caller: Caller,
    watch: LeaderWatch,
    tally: Arc<Mutex<Tally>>,
    outcome: Outcome,
    told: Option<Leads>,
    is_broken: bool,
}

impl<'a> Course<'a> {
    pub fn new(
        args: &'a DrillArgs,
        order: Order<'a>,
        caller: Caller,
        watch: LeaderWatch,
        tally: Arc<Mutex<Tally>>,
    ) -> Course<'a> {
        let (outcome, told, is_broken) = (Outcome::default(), None, false);
        Course { args, order, caller, watch, tally, outcome, told, is_broken }
    }

    pub fn into_outcome(self) -> Outcome {
        Outcome { led_at_once: self.watch.led_at_once(), ..self.outcome }
    }

    pub async fn run(&mut self) -> Result<(), Failure> {
        let (place, within) = (self.order.place, self.args.within);
        if !self.wait_for(|tally| tally.acknowledged > 0 && tally.is_held()).await {
            let what = format!(
                "no write was acknowledged or no role was granted within {within:?}; nothing was done"
            );
            return Err(Failure::NotNow { what });
        }
        self.say(format!(
            "{} leads in epoch {}; writers and role holders are running",
            place.name, place.epoch
        ));
        sleep(self.args.settle).await;
        if let Some(Leads { name, .. }) = self.watch.newest() {
            let what = format!(
                "{name} has become leader in the meantime instead of {}; nothing was done",
                place.name
            );
            return Err(Failure::NotNow { what });
        }

        self.is_broken = self.order.kind.has_to_be_mended();
        let done = self.order.take_away(self.args.break_by.as_deref()).await?;
        self.say(done);
        if timeout(within, self.watch.another_leads()).await.is_err() {
            self.say(format!("no other node leads after {within:?}"));
            return Ok(());
        }
        self.report_leader();
        let before = self.looked(|tally| tally.acknowledged);
        self.outcome.another_led = self.wait_for(|tally| tally.acknowledged > before).await;
        sleep(self.args.settle).await;
        self.report_leader();

        if self.is_broken {
            let done = self.order.bring_back(self.args.mend_by.as_deref()).await?;
            self.is_broken = false;
            self.say(done);
            let is_back = timeout(within, self.is_back()).await.is_ok();
            let how = if is_back { "is back and has all committed records" } else { "is not back in time" };
            self.say(format!("{} {how}", place.name));
            self.outcome.is_back = Some(is_back);
            sleep(self.args.settle).await;
            self.report_leader();
        }
        Ok(())
    }

    /// Mends what the drill has broken. Called after every outcome.
    pub async fn mend_what_is_broken(&mut self) {
        if !self.is_broken {
            return;
        }
        if let Err(failure) = self.order.bring_back(self.args.mend_by.as_deref()).await {
            note(&format!("{} must be brought back by hand: {failure}", self.order.place.name));
        }
    }

    /// Returns once the node answers, follows or leads, and has applied everything that was committed when it came
    /// back.
    async fn is_back(&self) {
        let place = self.order.place;
        let mut committed = 0;
        for url in place.urls.iter().filter(|url| **url != place.url) {
            let report = status(&self.caller, url).await;
            committed = committed.max(report.map_or(0, |report| report.commit_index));
        }
        loop {
            let report = status(&self.caller, &place.url).await;
            let is_there = report.is_some_and(|report| {
                report.leader.is_some() && report.admitted != Some(false) && report.applied_index >= committed
            });
            if is_there {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until the condition holds, within the time that a step may take. Returns whether it holds.
    async fn wait_for(&self, is_so: impl Fn(&Tally) -> bool) -> bool {
        let comes = async {
            while !self.looked(&is_so) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(self.args.within, comes).await.is_ok()
    }

    fn looked<T>(&self, look: impl FnOnce(&Tally) -> T) -> T {
        look(&self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports the leader, if it is another one than the last one reported.
    fn report_leader(&mut self) {
        let newest = self.watch.newest();
        if let Some(Leads { id, name, epoch }) = newest.as_ref().filter(|_| newest != self.told) {
            self.say(format!("{name} (node {id}) leads in epoch {epoch}"));
        }
        self.told = newest;
    }

    /// Adds an event to the report, and prints it for the person at the terminal.
    fn say(&mut self, says: String) {
        let at = self.looked(Tally::now);
        note(&format!("{:>7.3} s  {says}", at.as_secs_f64()));
        self.outcome.events.push(Event { at_ms: millis(at), says });
    }
}

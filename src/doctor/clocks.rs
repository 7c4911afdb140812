//! The check of clocks. The answers took some time on the network, so a finding is reported only if it holds for
//! every possible delay.

use super::finding::Finding;
use super::seen::{Node, NodeLook, Seen};

/// Wall clocks decide only when tokens, certificates and elections expire. A difference of this size is noticed
/// there.
const APART_MOST_US: i128 = 5_000_000;

const CORRECT_RATE: &str =
    "on that machine: chronyc tracking, or timedatectl; stop the node until its clock is right";

pub fn judge(seen: &Seen) -> Vec<Finding> {
    let others = seen.nodes.iter().filter(|node| Some(node.id) != seen.asker);
    let rates: Vec<(&Node, Rate)> = others.filter_map(|node| Some((node, rate(node)?))).collect();
    let mut found: Vec<Finding> = match the_askers(seen, &rates) {
        Some(finding) => vec![finding],
        None => rates.iter().map(|(node, rate)| rate.finding(&seen.here()).at(node.id)).collect(),
    };
    found.extend(apart(seen));
    found
}

/// If several clocks are all wrong, and may all have the same rate, then it is the asker's clock that is wrong.
/// Clocks that also differ from each other cannot all be right, so they are reported one by one.
fn the_askers(seen: &Seen, rates: &[(&Node, Rate)]) -> Option<Finding> {
    let (_, first) = rates.first()?;
    // The asker's clock is always right by itself, so its answer proves nothing.
    let answered = seen.answered().filter(|(node, _)| Some(node.id) != seen.asker).count();
    let may_be_equal = |one: &Rate, other: &Rate| one.may_be_at_most(other) && other.may_be_at_most(one);
    let alike = rates.iter().all(|(_, one)| rates.iter().all(|(_, other)| may_be_equal(one, other)));
    let same_way = rates.iter().all(|(_, rate)| rate.is_fast == first.is_fast);
    if answered < 2 || rates.len() < answered || !same_way || !alike {
        return None;
    }
    let how = if first.is_fast { "slow" } else { "fast" };
    if let Some(asker) = seen.asker {
        let text = format!(
            "its clock runs too {how}, or it was held up: the clocks of all {answered} other nodes that answer differ from \
                it by the same rate. Leases may be relied on for too long"
        );
        return Some(Finding::error("clock_rate", text, CORRECT_RATE).at(asker));
    }
    let text = format!(
        "the clock of this machine runs too {how}, or this program was held up: the clocks of all {answered} nodes \
            differ from it by the same rate. Clock rates were not judged"
    );
    Some(Finding::note(
        "own_clock",
        text,
        "eldest doctor, again, or on another machine; here: chronyc tracking",
    ))
}

/// The time that most nodes' wall clocks show, at the moment of the last answer.
pub fn wall_us(seen: &Seen) -> Option<u64> {
    let mut shown: Vec<u64> = seen.answered().map(|(_, said)| said.clock.wall_us).collect();
    shown.sort_unstable();
    shown.get(shown.len() / 2).copied()
}

/// A rate that is certainly off by more than the settings allow: leases are not safe then.
struct Rate {
    is_fast: bool,
    drift: i128,
    passed_us: i128,
    least_us: i128,
    most_us: i128,
}

impl Rate {
    /// Whether this clock may run no faster than the other one: its lowest possible rate, `passed_us / most_us`, is not
    /// above the highest possible rate of the other, `passed_us / least_us`. If `least_us` is not above zero, there is
    /// no highest rate.
    fn may_be_at_most(&self, other: &Rate) -> bool {
        self.passed_us * other.least_us <= other.passed_us * self.most_us
    }

    fn finding(&self, here: &str) -> Finding {
        let Rate { is_fast, drift, passed_us, least_us, most_us } = self;
        let how = if *is_fast { "fast" } else { "slow" };
        let text = format!(
            "its clock runs more than {drift} % too {how} (or the clock of {here} is wrong): {} ms passed there, \
                and {} to {} ms on {here}. Leases may be relied on for too long",
            passed_us / 1_000,
            least_us / 1_000,
            most_us / 1_000
        );
        Finding::error("clock_rate", text, CORRECT_RATE)
    }
}

fn rate(node: &Node) -> Option<Rate> {
    let [first, second] = node.looks.as_ref().ok()?;
    if first.said.status.node.id != second.said.status.node.id {
        return None;
    }
    let passed_us = i128::from(second.said.clock.mono_us) - i128::from(first.said.clock.mono_us);
    let least_us = i128::from(second.sent_us) - i128::from(first.heard_us);
    let most_us = i128::from(second.heard_us) - i128::from(first.sent_us);
    let drift = i128::from(second.said.timing.drift_percent);
    // The values are compared as products, so that no division rounds anything away.
    let is_fast = passed_us * 100 > most_us * (100 + drift);
    let is_slow = least_us > 0 && passed_us * 100 < least_us * (100 - drift);
    (is_fast || is_slow).then_some(Rate { is_fast, drift, passed_us, least_us, most_us })
}

/// The lead of a wall clock over the asker's clock, and the uncertainty of that.
fn offset(look: &NodeLook) -> (i128, i128) {
    let (sent, heard) = (i128::from(look.sent_us), i128::from(look.heard_us));
    let middle = (sent + heard) / 2;
    (i128::from(look.said.clock.wall_us) - middle, (heard - sent) / 2)
}

fn apart(seen: &Seen) -> Vec<Finding> {
    let looks = seen.nodes.iter().filter_map(|node| Some((node, &node.looks.as_ref().ok()?[1])));
    let offsets: Vec<_> = looks.map(|(node, look)| (node, offset(look))).collect();
    let mut middles: Vec<(i128, i128)> = offsets.iter().map(|(_, offset)| *offset).collect();
    middles.sort_unstable();
    let Some((median, unsure)) = middles.get(middles.len() / 2).copied() else {
        return Vec::new();
    };
    let far = |(node, (ahead, own)): &(&Node, (i128, i128))| {
        let apart = ahead - median;
        (apart.abs() - own - unsure > APART_MOST_US).then(|| {
            let way = if apart > 0 { "ahead of" } else { "behind" };
            let text = format!("its wall clock is {} s {way} the others", apart.abs() / 1_000_000);
            let next = "on that machine: chronyc tracking, or timedatectl; correct its clock";
            Finding::warning("wall_clock", text, next).at(node.id)
        })
    };
    let found: Vec<Finding> = offsets.iter().filter_map(far).collect();
    // The nodes agree with each other, and not with this machine. One node alone may be the one that is wrong. A node that asks is one of
    // them.
    if seen.asker.is_none() && found.is_empty() && offsets.len() > 1 && median.abs() - unsure > APART_MOST_US
    {
        let (seconds, way) = (median.abs() / 1_000_000, if median > 0 { "behind" } else { "ahead of" });
        let text = format!("the wall clock of this machine is {seconds} s {way} those of the nodes");
        let next = "here: chronyc tracking, or timedatectl; correct the clock";
        return vec![Finding::note("own_clock", text, next)];
    }
    found
}

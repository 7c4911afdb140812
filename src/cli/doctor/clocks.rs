//! The check of clocks. The answers took some time on the network, so a finding is reported only if it holds for
//! every possible delay.

use super::finding::Finding;
use super::seen::{Node, NodeLook, Seen};

/// Wall clocks decide only when tokens, certificates and elections expire. A difference of this size is noticed
/// there.
const APART_MOST_US: i128 = 5_000_000;

pub fn judge(seen: &Seen) -> Vec<Finding> {
    let mut found: Vec<Finding> = seen.nodes.iter().filter_map(rate).collect();
    found.extend(apart(seen));
    found
}

/// The time that most nodes' wall clocks show, at the moment of the last answer.
pub fn wall_us(seen: &Seen) -> Option<u64> {
    let mut shown: Vec<u64> = seen.answered().map(|(_, said)| said.clock.wall_us).collect();
    shown.sort_unstable();
    shown.get(shown.len() / 2).copied()
}

/// Reports a clock whose rate is certainly off by more than the settings allow: leases are not safe then.
fn rate(node: &Node) -> Option<Finding> {
    let [first, second] = node.looks.as_ref().ok()?;
    if first.said.status.node.id != second.said.status.node.id {
        return None;
    }
    let passed = i128::from(second.said.clock.mono_us) - i128::from(first.said.clock.mono_us);
    let least = i128::from(second.sent_us) - i128::from(first.heard_us);
    let most = i128::from(second.heard_us) - i128::from(first.sent_us);
    let drift = i128::from(second.said.timing.drift_percent);
    // The values are compared as products, so that no division rounds anything away.
    let fast = passed * 100 > most * (100 + drift);
    let slow = least > 0 && passed * 100 < least * (100 - drift);
    let how = if fast {
        "fast"
    } else if slow {
        "slow"
    } else {
        return None;
    };
    let text = format!(
        "its clock runs more than {drift} % too {how} (or this machine's clock is wrong): {} ms passed there, \
            {} to {} ms here. Leases may be relied on for too long",
        passed / 1_000,
        least / 1_000,
        most / 1_000
    );
    let next = "on that machine: chronyc tracking, or timedatectl; stop the node until its clock is right";
    Some(Finding::error("clock_rate", text, next).at(node.id))
}

/// The lead of a wall clock over this machine's clock, and the uncertainty of that.
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
    offsets.iter().filter_map(far).collect()
}

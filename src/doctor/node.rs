//! The findings about one node.

use super::finding::{Finding, Severity};
use super::seen::{Node, Sample, Seen, SeenMember, SeenRemark, SeenSilence, Timing};

/// A disk that has not finished a write for this long counts as blocked, and earlier if the timings are shorter.
const STANDS_STILL_MS: u64 = 1_000;

/// A leader's writes are as slow as its disk. With short timings an election cannot wait this long for a disk.
const SLOW_MS: u64 = 500;

/// The timings of `config/wan.toml`.
pub const WAN_HEARTBEAT_MS: u64 = 250;
pub const WAN_DEAD_AFTER_MS: u64 = 2_000;

/// Above the default of most machines. With fewer files a node takes fewer connections than it is configured for.
const FEW_FILES: u64 = 4_096;

pub fn judge(seen: &Seen, node: &Node) -> Vec<Finding> {
    let (before, now) = match (&node.looks, node.before(), node.now()) {
        (Err(silence), ..) => return vec![silent(seen, node, silence)],
        (_, Some(before), Some(now)) => (before, now),
        _ => return Vec::new(),
    };
    if now.status.node.id != node.id {
        let text = format!("node {1} answers at its address {0}", node.url, now.status.node.id);
        let next = "eldest members list; correct the addresses: eldest members move ID ADDRESS";
        return vec![Finding::error("wrong_node", text, next).at(node.id)];
    }
    // A disk that is full is not also told to be nearly full.
    let remarks = now.remarks.iter().filter(|remark| remark.about != "disk_low" || !now.disk.full);
    let mut found: Vec<Finding> = remarks.map(|told| remark(told, now)).collect();
    found.extend(disk(now));
    found.extend(files(now));
    found.extend(backup(now));
    found.extend(standing(now));
    found.extend(lag(seen, now));
    found.into_iter().map(|finding| finding.at(node.id)).chain(links(seen, node, before, now)).collect()
}

fn silent(seen: &Seen, node: &Node, silence: &SeenSilence) -> Finding {
    let restart = "on its machine: look at the node's log and start it (systemctl start eldest, or eldest serve …); \
        if it runs, check the network";
    let finding = match silence {
        SeenSilence::NotReached { why } => {
            if let Some(finding) = link_of_the_asker(seen, node, why) {
                return finding;
            }
            let text = format!("does not answer: {why}{}", last_majority(seen));
            Finding::error("down", text, restart)
        }
        SeenSilence::NoAnswer { why } => {
            let text = format!(
                "accepts connections but does not answer ({why}): it is stopped, or its machine is overloaded{}",
                last_majority(seen)
            );
            let next = "on its machine: ps -o pid,stat,wchan:20,cmd -C eldest, then kill -CONT or restart it";
            Finding::error("frozen", text, next)
        }
        SeenSilence::Refused { code, why } => {
            let text = format!("refuses to answer ({code}): {why}");
            let next = match code.as_str() {
                // The asker has accepted the same credential.
                "unauthorized" | "forbidden" if seen.asker.is_some() => {
                    "compare admin_token and anonymous in the settings of the nodes; eldest status shows whether it lags"
                }
                "unauthorized" | "forbidden" => {
                    "eldest doctor --token-file FILE, with a token that has the grant `read status`"
                }
                _ => "eldest doctor, again in a few seconds; if it still refuses, look at the node's log",
            };
            Finding::error("refused", text, next)
        }
        SeenSilence::Older => {
            let text = "does not know /v1/diagnostics: it runs an older version";
            Finding::warning("older", text, "install this version there and restart it; then eldest doctor")
        }
        SeenSilence::SameAddress => {
            let text =
                format!("another member has the same address, {}, so this one was not asked", node.url);
            Finding::error("same_address", text, "eldest members list; eldest members move ID ADDRESS")
        }
        SeenSilence::Strange { why } => {
            let text =
                format!("the answer from {} is not that of an Eldest node of this version: {why}", node.url);
            Finding::error("strange", text, "eldest members list; check what listens at that address")
        }
    };
    finding.at(node.id)
}

/// Words that are added in safe mode if no majority answers, or if one more failure would stop the cluster.
fn last_majority(seen: &Seen) -> &'static str {
    let voters = seen.nodes.iter().filter(|node| node.votes).count();
    let up = seen.nodes.iter().filter(|node| node.votes && node.is_up()).count();
    match up.cmp(&(voters / 2 + 1)) {
        _ if seen.is_available() => "",
        std::cmp::Ordering::Less => "; too few nodes answer to form a majority",
        std::cmp::Ordering::Equal => "; if one more fails, the cluster stops",
        std::cmp::Ordering::Greater => "",
    }
}

/// The finding for a remark that a node itself makes for its operator.
fn remark(remark: &SeenRemark, now: &Sample) -> Finding {
    let (severity, next) = match remark.about.as_str() {
        "no_leader" => (Severity::Error, "eldest status; follow its advice"),
        "no_member" => (Severity::Error, "do that, or stop the node"),
        "round_trip" if wan_is_longer(&now.timing) => {
            (Severity::Warning, "on all nodes: the [timing] of config/wan.toml, as docs/upgrade.md says")
        }
        "round_trip" => (
            Severity::Warning,
            "check the link; or on all nodes: a longer timing.heartbeat_ms, as docs/upgrade.md says",
        ),
        "disk_low" => (Severity::Warning, "on its machine: df -h; make room before it is full"),
        "disk_full" => {
            (Severity::Error, "on its machine: df -h; when there is room, the node resumes by itself")
        }
        "quota" => (
            Severity::Warning,
            "eldest doc list, then eldest doc delete; or raise limits.state_bytes on all nodes",
        ),
        "impasse" => (Severity::Warning, "eldest conflicts list; then see docs/failure-modes.md"),
        "topology" => (Severity::Warning, "eldest members list; change the node's topology file to match"),
        "certificates" => (Severity::Error, "eldest cert show FILE; correct it, then kill -HUP the node"),
        "expiry" => {
            let has_ended = now.certificate.is_some_and(|certificate| certificate.ends_in_s < 0);
            let severity = if has_ended { Severity::Error } else { Severity::Warning };
            (severity, "eldest cert node ID --topology FILE --dir DIR; then kill -HUP the node")
        }
        "secret" => (Severity::Error, "correct the cluster secret's file, then kill -HUP the node"),
        "backup" => (Severity::Error, "check the folder that it names; meanwhile: eldest backup --out FILE"),
        _ => (Severity::Warning, "eldest status"),
    };
    Finding::new(severity, &remark.about, remark.text.clone(), next)
}

/// The timings of `config/wan.toml` help only where both of these become longer by them.
fn wan_is_longer(timing: &Timing) -> bool {
    timing.heartbeat_ms < WAN_HEARTBEAT_MS && timing.dead_after_ms < WAN_DEAD_AFTER_MS
}

fn disk(now: &Sample) -> Option<Finding> {
    let disk = &now.disk;
    if disk.full {
        // A node of this version makes a remark, with what to do.
        let is_told = now.remarks.iter().any(|remark| remark.about == "disk_full");
        let next = "on its machine: df -h; free some space, and the node resumes by itself";
        return (!is_told)
            .then(|| Finding::error("disk_full", "its disk is full: it accepts no writes", next));
    }
    let dead_after_ms = now.timing.dead_after_ms;
    if disk.waits_ms >= STANDS_STILL_MS.min(dead_after_ms * 2) {
        let text = format!("its disk is stalled: a write has been in progress for {} ms", disk.waits_ms);
        let next = "on its machine: iostat -x 1, dmesg | tail; if it leads: eldest handoff";
        return Some(Finding::error("disk_stalled", text, next));
    }
    (disk.slowest_sync_ms >= SLOW_MS.min(dead_after_ms)).then(|| {
        let took = format!("its disk is slow: a sync in the last minute took {} ms", disk.slowest_sync_ms);
        // With longer timings the sync is slow by itself, and does not come near an election.
        let text = match dead_after_ms < SLOW_MS {
            true => format!("{took}; a leader counts as dead after {dead_after_ms} ms"),
            false => took,
        };
        Finding::warning("disk_slow", text, "on its machine: iostat -x 1; check what else writes to it")
    })
}

fn files(now: &Sample) -> Option<Finding> {
    let (open, most) = (now.files.open?, now.files.most?);
    let next = "raise the limit: LimitNOFILE= in its unit, or ulimit -n; or lower limits.connections";
    if open >= most - most / 10 {
        let text = format!("it has {open} files and sockets open; the limit is {most}");
        return Some(Finding::warning("files", text, next));
    }
    (most < FEW_FILES).then(|| {
        let text =
            format!("its limit of open files is {most}, so it accepts fewer connections than it could");
        Finding::note("files", text, next)
    })
}

/// Two intervals and a minute, as in the alert.
fn backup(now: &Sample) -> Option<Finding> {
    let backup = now.backup?;
    let ago = backup.last_success_ago_ms?;
    let late = ago > backup.every_ms.saturating_mul(2).saturating_add(60_000);
    let told = now.remarks.iter().any(|remark| remark.about == "backup");
    (late && !told).then(|| {
        let text = format!("it has saved no copy of the state for {} minutes", ago / 60_000);
        Finding::error("backup", text, "check its log and backup.dir; meanwhile: eldest backup --out FILE")
    })
}

fn standing(now: &Sample) -> Option<Finding> {
    let status = &now.status;
    let learns = status.members.iter().any(|member| member.id == status.node.id && !member.votes);
    if status.replaced {
        let text = "another disk has replaced this one under its id; this one can never vote again";
        Some(Finding::error("replaced", text, "stop this process; eldest members list shows the members"))
    } else if !status.admitted && !learns {
        let text = "its disk is waiting to be admitted: it does not vote until a majority without it has admitted it";
        Some(Finding::warning("not_admitted", text, "start the other nodes; then eldest status"))
    } else {
        learns.then(|| {
            let text = "it is a learner: it is catching up and does not vote yet";
            Finding::note("learns", text, "eldest members list")
        })
    }
}

/// Reports a node that has not yet applied what the leader had committed at the first look. In a partition no node
/// lags behind the other side.
fn lag(seen: &Seen, now: &Sample) -> Option<Finding> {
    if seen.is_available() && seen.leaders().len() > 1 || now.status.role == "leader" {
        return None;
    }
    let first = |node: &&Node| node.before().is_some_and(|said| said.status.role == "leader");
    let leader = seen.nodes.iter().find(first)?.before()?;
    let (has, had) = (now.status.applied_index, leader.status.commit_index);
    (has < had).then(|| {
        let text = format!(
            "it lags: it has applied record {has}, and one second earlier the leader had already committed {had}"
        );
        let next =
            "eldest status, again: if its LAG does not shrink, check its disk and its link to the leader";
        Finding::warning("lags", text, next)
    })
}

/// Reports links, each in one direction: the outcome of this node's calls of the others.
fn links(seen: &Seen, node: &Node, before: &Sample, now: &Sample) -> Vec<Finding> {
    let mut found = Vec::new();
    let hears_all = before.status.role == "leader" && now.status.role == "leader";
    for member in now.status.members.iter().filter(|member| member.id != node.id) {
        let other = seen.name_of(member.id);
        if let Some(trouble) = &member.trouble {
            let text = format!("calls between it and {other} are refused: {trouble}");
            let next = "eldest check --topology FILE --config FILE on both: compare cluster, ids and digest";
            found.push(Finding::error("trouble", text, next).at(node.id));
            continue;
        }
        let was = |is: &dyn Fn(&SeenMember) -> bool| {
            before.status.members.iter().any(|was| was.id == member.id && is(was))
        };
        let answers = seen.nodes.iter().any(|node| node.id == member.id && node.looks.is_ok());
        let unreached = |member: &SeenMember| !member.reachable;
        let unheard = |member: &SeenMember| {
            hears_all && member.last_heard_ms.is_some_and(|ms| ms > now.timing.dead_after_ms * 2)
        };
        let text = match () {
            // A node that answers no call is reported by another finding. The asker has reached the nodes that answer.
            () if !answers => continue,
            () if was(&unreached) && unreached(member) && seen.asker != Some(node.id) => {
                format!("it cannot reach {other}, although {} can", seen.here())
            }
            () if was(&unheard) && unheard(member) => {
                let ms = member.last_heard_ms.unwrap_or_default();
                format!("it leads, and has not heard from {other} for {ms} ms")
            }
            () => continue,
        };
        let next = format!("on its machine: eldest call GET /livez --url {}", member.url);
        found.push(Finding::error("link", text, next).at(node.id));
    }
    found
}

/// If another node has just heard from the one that the asker did not reach, the link between the two is down, and not the node. Two
/// followers need not hear from each other, so often there is no such witness.
fn link_of_the_asker(seen: &Seen, node: &Node, why: &str) -> Option<Finding> {
    let asker = seen.asker?;
    let hears = |said: &Sample| {
        let is_recent =
            |member: &SeenMember| member.last_heard_ms.is_some_and(|ms| ms < said.timing.dead_after_ms);
        said.status
            .members
            .iter()
            .any(|member| member.id == node.id && member.trouble.is_none() && is_recent(member))
    };
    let (witness, _) = seen.answered().find(|(other, said)| other.id != asker && hears(said))?;
    let text = format!("it cannot reach {} ({why}), although {} hears from it", node.name, witness.name);
    let next = format!("on its machine: eldest call GET /livez --url {}", node.url);
    Some(Finding::error("link", text, next).at(asker))
}

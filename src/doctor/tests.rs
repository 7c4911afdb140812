//! Each possible finding by itself, in a cluster that is healthy otherwise.

use super::finding;
use super::finding::{Finding, Severity};
use super::judge::judge;
use super::node::{WAN_DEAD_AFTER_MS, WAN_HEARTBEAT_MS};
use super::seen::{
    ClockRead, Disk, Files, Node, NodeLook, Sample, Seen, SeenBackup, SeenCertificate, SeenEnding,
    SeenMember, SeenNames, SeenRemark, SeenSilence, SeenStatus, Timing,
};

const SECOND: u64 = 1_000_000;
const START: u64 = 1_000_000 * SECOND;

fn member(id: u32) -> SeenMember {
    let (name, url) = (format!("node-{id}"), format!("http://10.0.0.{id}:9000"));
    SeenMember {
        id,
        name,
        url,
        reachable: true,
        votes: true,
        trouble: None,
        last_heard_ms: None,
        silent: false,
    }
}

fn look(id: u32, second: u64) -> NodeLook {
    let (sent_us, heard_us) = (START + second * SECOND, START + second * SECOND + 2_000);
    let clock = ClockRead { mono_us: 77 * SECOND + second * SECOND + 1_000, wall_us: sent_us + 1_000 };
    let role = if id == 1 { "leader" } else { "follower" };
    let status = SeenStatus {
        cluster_id: Some("c".into()),
        mode: "safe".into(),
        node: SeenNames { id },
        role: role.into(),
        leader: Some(SeenNames { id: 1 }),
        epoch: "7.1".into(),
        commit_index: 100 + second,
        applied_index: 100 + second,
        admitted: true,
        replaced: false,
        service_down: false,
        members: (1..=3).map(member).collect(),
    };
    let said = Sample {
        version: "0.1.0".into(),
        settings: "12ab".into(),
        clock,
        timing: Timing { heartbeat_ms: 100, dead_after_ms: 500, drift_percent: 10 },
        disk: Disk { full: false, waits_ms: 3, slowest_sync_ms: 20 },
        files: Files { open: Some(40), most: Some(65_536) },
        status,
        ..Sample::default()
    };
    NodeLook { said, sent_us, heard_us }
}

fn well() -> Seen {
    of_size(3)
}

fn of_size(nodes: u32) -> Seen {
    let node = |id| {
        let SeenMember { name, url, .. } = member(id);
        Node { id, name, url, votes: true, looks: Ok([look(id, 0), look(id, 1)]) }
    };
    let seen = Seen { nodes: (1..=nodes).map(node).collect(), ..Seen::default() };
    everywhere(seen, |look| look.said.status.members = (1..=nodes).map(member).collect())
}

/// A change in every answer of every node.
fn everywhere(mut seen: Seen, change: impl Fn(&mut NodeLook)) -> Seen {
    for node in &mut seen.nodes {
        node.looks.as_mut().expect("it answers").iter_mut().for_each(&change);
    }
    seen
}

/// A healthy cluster with this change in both answers of one node.
fn with(id: u32, change: impl Fn(&mut Sample)) -> Seen {
    let mut seen = well();
    let looks = seen.nodes[id as usize - 1].looks.as_mut().expect("it answers");
    looks.iter_mut().for_each(|look| change(&mut look.said));
    seen
}

fn silent(ids: &[u32], silence: &SeenSilence) -> Seen {
    let mut seen = well();
    ids.iter().for_each(|id| seen.nodes[*id as usize - 1].looks = Err(silence.clone()));
    seen
}

fn remarked(id: u32, about: &str) -> Seen {
    with(id, |said| said.remarks.push(SeenRemark { about: about.into(), text: "words".into() }))
}

#[track_caller]
fn only(seen: &Seen) -> Finding {
    let findings = judge(seen);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(!findings[0].next.is_empty(), "there is something to type");
    findings[0].clone()
}

#[track_caller]
fn is(seen: &Seen, severity: Severity, about: &str, nodes: &[u32]) {
    let found = only(seen);
    assert_eq!((found.severity, found.about.as_str(), found.nodes.as_slice()), (severity, about, nodes));
}

fn abouts(seen: &Seen) -> Vec<String> {
    judge(seen).into_iter().map(|finding| finding.about).collect()
}

fn down() -> SeenSilence {
    SeenSilence::NotReached { why: "Connection refused".into() }
}

#[test]
fn nothing_is_wrong_with_a_well_cluster() {
    let seen = well();
    assert_eq!(judge(&seen), []);
}

#[test]
fn who_does_not_answer_is_told_of_by_what_came_instead() {
    is(&silent(&[3], &down()), Severity::Error, "down", &[3]);
    is(&silent(&[3], &SeenSilence::NoAnswer { why: "late".into() }), Severity::Error, "frozen", &[3]);
    let refused = SeenSilence::Refused { code: "unauthorized".into(), why: "who are you?".into() };
    is(&silent(&[2], &refused), Severity::Error, "refused", &[2]);
    is(&silent(&[2], &SeenSilence::Older), Severity::Warning, "older", &[2]);
    is(&silent(&[2], &SeenSilence::Strange { why: "html".into() }), Severity::Error, "strange", &[2]);
    is(&silent(&[2], &SeenSilence::SameAddress), Severity::Error, "same_address", &[2]);
    // A token helps only against a refusal for lack of one.
    let next = |code: &str| {
        let refused = SeenSilence::Refused { code: code.into(), why: "no".into() };
        only(&silent(&[2], &refused)).next
    };
    assert!(next("forbidden").contains("--token-file"), "{}", next("forbidden"));
    assert!(!next("too_many_requests").contains("--token-file"), "{}", next("too_many_requests"));
}

#[test]
fn it_says_whether_one_more_failure_would_stop_the_cluster() {
    assert!(only(&silent(&[3], &down())).text.ends_with("if one more fails, the cluster stops"));
    let two = judge(&silent(&[2, 3], &down()));
    // Both nodes use the same words.
    assert_eq!((two.len(), two[0].nodes.as_slice()), (1, [2, 3].as_slice()));
    assert!(two[0].text.ends_with("too few nodes answer to form a majority"), "{}", two[0].text);
    // A node that refuses the doctor still votes.
    let mut seen = silent(&[3], &down());
    seen.nodes[1].looks = Err(SeenSilence::Refused { code: "forbidden".into(), why: "no".into() });
    let down = judge(&seen).into_iter().find(|finding| finding.about == "down").expect("found");
    assert!(down.text.ends_with("if one more fails, the cluster stops"), "{}", down.text);
}

#[test]
fn nobody_leads() {
    let mut seen = with(1, |said| said.status.role = "candidate".into());
    is(&seen, Severity::Error, "no_leader", &[]);
    // A node that knows the reason says it better. Nodes that say the same give one finding.
    for node in &mut seen.nodes {
        let looks = node.looks.as_mut().expect("it answers");
        looks[1].said.remarks.push(SeenRemark { about: "no_leader".into(), text: "waits for node-9".into() });
    }
    is(&seen, Severity::Error, "no_leader", &[1, 2, 3]);
}

#[test]
fn two_leaders_are_two_sides_in_available_mode_only() {
    let mut seen = with(3, |said| said.status.role = "leader".into());
    assert_eq!(judge(&seen), []);
    for node in &mut seen.nodes {
        let looks = node.looks.as_mut().expect("it answers");
        looks.iter_mut().for_each(|look| look.said.status.mode = "available".into());
    }
    is(&seen, Severity::Warning, "split", &[]);
}

#[test]
fn what_must_be_the_same_and_is_not() {
    is(&with(2, |said| said.version = "0.2.0".into()), Severity::Warning, "versions_differ", &[]);
    is(&with(2, |said| said.settings = "34cd".into()), Severity::Error, "settings_differ", &[]);
    is(&with(2, |said| said.status.cluster_id = Some("d".into())), Severity::Error, "other_cluster", &[]);
    // A node that is not part of the cluster yet knows no cluster id.
    assert_eq!(judge(&with(2, |said| said.status.cluster_id = None)), []);
}

#[test]
fn members_differ_by_who_and_where() {
    let seen = with(3, |said| said.status.members[0].url = "http://10.9.9.9:9000".into());
    is(&seen, Severity::Warning, "members_differ", &[]);
    // The scheme by which nodes are called changes node by node.
    assert_eq!(judge(&with(3, |said| said.status.members[0].url = "https://10.0.0.1:9000".into())), []);
}

#[test]
fn remarks_of_a_node_are_findings_with_a_next_step() {
    use Severity::{Error, Warning};
    for (about, severity) in [
        ("round_trip", Warning),
        ("disk_full", Error),
        ("no_member", Error),
        ("quota", Warning),
        ("impasse", Warning),
        ("topology", Warning),
        ("certificates", Error),
        ("expiry", Warning),
        ("disk_low", Warning),
        ("secret", Error),
        ("backup", Error),
        ("of a later version", Warning),
    ] {
        is(&remarked(2, about), severity, about, &[2]);
    }
}

#[test]
fn disks() {
    let at = |dead_after_ms, full, waits_ms, slowest_sync_ms| {
        with(2, move |said| {
            said.disk = Disk { full, waits_ms, slowest_sync_ms };
            said.timing.dead_after_ms = dead_after_ms;
        })
    };
    let disk = |full, waits_ms, slowest_sync_ms| at(500, full, waits_ms, slowest_sync_ms);
    assert_eq!(judge(&disk(false, 999, 499)), []);
    is(&disk(true, 5_000, 5_000), Severity::Error, "disk_full", &[2]);
    is(&disk(false, 1_000, 5_000), Severity::Error, "disk_stalled", &[2]);
    is(&disk(false, 0, 500), Severity::Warning, "disk_slow", &[2]);
    // Shorter timings need a faster disk. Longer ones make no write faster.
    is(&at(100, false, 200, 0), Severity::Error, "disk_stalled", &[2]);
    is(&at(100, false, 0, 100), Severity::Warning, "disk_slow", &[2]);
    is(&at(60_000, false, 0, 500), Severity::Warning, "disk_slow", &[2]);
    let slow = "its disk is slow: a sync in the last minute took 600 ms";
    assert_eq!(
        only(&at(500, false, 0, 600)).text,
        slow,
        "an election waits longer than such a sync should take"
    );
    assert_eq!(only(&at(499, false, 0, 600)).text, format!("{slow}; a leader counts as dead after 499 ms"));
}

#[test]
fn a_full_disk_is_not_also_nearly_full() {
    let mut seen = remarked(2, "disk_low");
    let looks = seen.nodes[1].looks.as_mut().expect("it answers");
    looks.iter_mut().for_each(|look| look.said.disk.full = true);
    is(&seen, Severity::Error, "disk_full", &[2]);
}

#[test]
fn a_certificate_that_has_ended_is_an_error() {
    let expires = |ends_in_s| {
        with(2, move |said| {
            said.remarks.push(SeenRemark { about: "expiry".into(), text: "words".into() });
            said.certificate = Some(SeenCertificate { ends_in_s });
        })
    };
    is(&expires(3_600), Severity::Warning, "expiry", &[2]);
    is(&expires(-1), Severity::Error, "expiry", &[2]);
}

#[test]
fn longer_timings_are_no_advice_to_those_who_have_them() {
    let far = |heartbeat_ms, dead_after_ms| {
        let mut seen = remarked(1, "round_trip");
        let looks = seen.nodes[0].looks.as_mut().expect("it answers");
        let timing = Timing { heartbeat_ms, dead_after_ms, drift_percent: 10 };
        looks.iter_mut().for_each(|look| look.said.timing = timing);
        only(&seen).next
    };
    assert!(far(249, 1_999).contains("config/wan.toml"), "{}", far(249, 1_999));
    // That file would leave one of the two as it is, or make it shorter.
    for next in [far(250, 1_999), far(249, 2_000)] {
        assert!(!next.contains("wan.toml") && next.contains("a longer timing.heartbeat_ms"), "{next}");
    }
}

#[test]
fn the_advice_about_longer_timings_knows_the_file_that_has_them() {
    let file = include_str!("../../config/wan.toml");
    for (name, ms) in [("heartbeat_ms", WAN_HEARTBEAT_MS), ("dead_after_ms", WAN_DEAD_AFTER_MS)] {
        assert!(file.lines().any(|line| line == format!("{name} = {ms}")), "{name}");
    }
}

#[test]
fn an_even_size_is_noted_unless_it_is_about_to_change() {
    is(&of_size(4), Severity::Note, "even_size", &[]);
    assert_eq!(only(&of_size(4)).text, "4 nodes survive one failure, the same as 3: use an odd number");
    assert_eq!(only(&of_size(4)).next, "eldest members add ID ADDRESS, or eldest members remove ID");
    assert_eq!(only(&of_size(2)).text, "2 nodes survive no failure, the same as 1: use an odd number");
    assert_eq!(only(&of_size(2)).next, "eldest members add ID ADDRESS", "one node alone is no better");
    assert_eq!(judge(&of_size(5)), []);
    let mut growing = of_size(4);
    growing.nodes[3].votes = false;
    assert_eq!(judge(&growing), [], "on the way from three to five");
    let learner = everywhere(of_size(4), |look| look.said.status.members[3].votes = false);
    assert!(!abouts(&learner).contains(&"even_size".to_string()), "the nodes know of a learner");
}

#[test]
fn an_even_size_is_not_noted_while_a_node_is_away_or_disagrees() {
    let mut away = of_size(4);
    away.nodes[3].looks = Err(down());
    assert_eq!(abouts(&away), ["down"]);
    let changed = |change: fn(&mut SeenStatus)| {
        let mut seen = of_size(4);
        let looks = seen.nodes[3].looks.as_mut().expect("it answers");
        looks.iter_mut().for_each(|look| change(&mut look.said.status));
        abouts(&seen)
    };
    assert_eq!(changed(|status| status.admitted = false), ["not_admitted"]);
    assert_eq!(changed(|status| status.replaced = true), ["replaced"]);
    assert_eq!(changed(|status| drop(status.members.remove(0))), ["members_differ"]);
}

#[test]
fn an_even_size_is_no_subject_in_available_mode() {
    let available = everywhere(of_size(4), |look| look.said.status.mode = "available".into());
    assert_eq!(judge(&available), [], "no majority is needed");
}

#[test]
fn files() {
    let files = |open, most| with(2, move |said| said.files = Files { open, most });
    assert_eq!(judge(&files(None, None)), []);
    assert_eq!(judge(&files(Some(9_000), Some(10_001))), []);
    is(&files(Some(9_001), Some(10_000)), Severity::Warning, "files", &[2]);
    is(&files(Some(100), Some(1_024)), Severity::Note, "files", &[2]);
}

#[test]
fn copies_that_are_not_kept() {
    let kept = |last_success_ago_ms| {
        with(3, move |said| said.backup = Some(SeenBackup { every_ms: 3_600_000, last_success_ago_ms }))
    };
    assert_eq!(judge(&kept(Some(7_260_000))), []);
    assert_eq!(judge(&kept(None)), []);
    is(&kept(Some(7_260_001)), Severity::Error, "backup", &[3]);
}

#[test]
fn who_does_not_count() {
    is(&with(2, |said| said.status.replaced = true), Severity::Error, "replaced", &[2]);
    is(&with(2, |said| said.status.admitted = false), Severity::Warning, "not_admitted", &[2]);
    let learns = with(2, |said| {
        said.status.admitted = false;
        said.status.members[1].votes = false;
    });
    is(&learns, Severity::Note, "learns", &[2]);
}

#[test]
fn who_has_not_now_what_the_leader_had_before_lags() {
    let seen = with(2, |said| said.status.applied_index = 99);
    is(&seen, Severity::Warning, "lags", &[2]);
    assert_eq!(judge(&with(2, |said| said.status.applied_index = 100)), []);
}

#[test]
fn a_link_is_told_of_by_its_direction() {
    let seen = with(2, |said| said.status.members[2].reachable = false);
    is(&seen, Severity::Error, "link", &[2]);
    assert_eq!(only(&seen).text, "it cannot reach node-3, although this machine can");
    assert_eq!(only(&seen).next, "on its machine: eldest call GET /livez --url http://10.0.0.3:9000");
    let seen = with(1, |said| said.status.members[1].trouble = Some("another mode".into()));
    is(&seen, Severity::Error, "trouble", &[1]);
    // A single failure may be an election. A node that answers no call is reported by another finding.
    let mut seen = well();
    let looks = seen.nodes[1].looks.as_mut().expect("it answers");
    looks[1].said.status.members[2].reachable = false;
    assert_eq!(judge(&seen), []);
    let mut seen = with(2, |said| said.status.members[2].reachable = false);
    seen.nodes[2].looks = Err(down());
    is(&seen, Severity::Error, "down", &[3]);
}

#[test]
fn another_node_at_its_address() {
    is(&with(2, |said| said.status.node.id = 3), Severity::Error, "wrong_node", &[2]);
}

/// This time passed on the node while one second passed here. The answers took 2 ms.
fn rate(passed_us: u64) -> Seen {
    let mut seen = well();
    let looks = seen.nodes[1].looks.as_mut().expect("it answers");
    looks[1].said.clock.mono_us = looks[0].said.clock.mono_us + passed_us;
    seen
}

#[test]
fn a_clock_at_a_wrong_rate_is_told_of_only_when_it_is_sure() {
    for right in [1_000_000, 1_102_000, 898_300] {
        assert_eq!(judge(&rate(right)), [], "{right}");
    }
    for wrong in [1_102_400, 898_100, 0] {
        is(&rate(wrong), Severity::Error, "clock_rate", &[2]);
    }
    // Answers that took long prove nothing.
    let mut seen = rate(0);
    seen.nodes[1].looks.as_mut().expect("it answers")[0].heard_us += SECOND;
    assert_eq!(judge(&seen), []);
}

/// This time passed on each of the nodes while one second passed here.
fn rates(passed_us: [u64; 3]) -> Seen {
    let mut seen = well();
    for (node, passed) in seen.nodes.iter_mut().zip(passed_us) {
        let looks = node.looks.as_mut().expect("it answers");
        looks[1].said.clock.mono_us = looks[0].said.clock.mono_us + passed;
    }
    seen
}

#[test]
fn this_machine_has_the_wrong_clock_if_all_others_have_the_same_rate() {
    // No node should be stopped then. The uncertainty is 2 ms before and after the second.
    for (passed, how) in [
        ([2_000_000; 3], "slow"),
        ([2_000_000, 2_007_000, 2_003_000], "slow"),
        ([100_000, 100_300, 100_000], "fast"),
    ] {
        is(&rates(passed), Severity::Note, "own_clock", &[]);
        assert!(only(&rates(passed)).text.contains(how), "{}", only(&rates(passed)).text);
    }
    // Clocks that differ from each other cannot all be right, whatever this machine's clock shows.
    for passed in
        [[2_000_000, 2_009_000, 2_000_000], [2_000_000, 3_000_000, 4_000_000], [100_000, 101_000, 100_000]]
    {
        let found = judge(&rates(passed));
        let nodes: Vec<u32> = found.iter().flat_map(|finding| finding.nodes.clone()).collect();
        assert!(found.iter().all(|finding| finding.about == "clock_rate"), "{found:#?}");
        assert_eq!(nodes.len(), 3, "{found:#?}");
    }
    let found = abouts(&rates([2_000_000, 100_000, 2_000_000]));
    assert!(!found.contains(&"own_clock".to_string()), "{found:?}");
}

/// The same answers, collected by one of the nodes.
fn asked_by(id: u32, seen: Seen) -> Seen {
    Seen { asker: Some(id), ..seen }
}

#[test]
fn a_node_that_asks_may_have_the_wrong_clock_itself() {
    // The asker's own clock is always right by itself.
    for (passed, how) in
        [([1_000_000, 2_000_000, 2_003_000], "slow"), ([1_000_000, 100_000, 100_300], "fast")]
    {
        let seen = asked_by(1, rates(passed));
        is(&seen, Severity::Error, "clock_rate", &[1]);
        assert!(only(&seen).text.starts_with(&format!("its clock runs too {how}")), "{}", only(&seen).text);
    }
    // One clock against one: the text says that either may be wrong.
    let seen = asked_by(1, rates([1_000_000, 1_000_000, 2_000_000]));
    is(&seen, Severity::Error, "clock_rate", &[3]);
    assert!(only(&seen).text.contains("or the clock of node-1 is wrong"), "{}", only(&seen).text);
    // It slept between the two looks.
    assert_eq!(judge(&asked_by(1, rates([900_000_000, 1_000_000, 1_000_000]))), []);
}

#[test]
fn a_node_that_asks_is_one_of_the_clocks() {
    let seen = everywhere(well(), |look| {
        let ahead = if look.said.status.node.id == 1 { 0 } else { 3_600 * SECOND };
        look.said.clock.wall_us += ahead;
    });
    is(&asked_by(1, seen), Severity::Warning, "wall_clock", &[1]);
}

#[test]
fn what_the_asker_does_not_reach_and_another_node_hears_is_a_link() {
    let witness = |heard_ms: Option<u64>, trouble: Option<String>| {
        let mut seen = asked_by(1, silent(&[3], &down()));
        let looks = seen.nodes[1].looks.as_mut().expect("it answers");
        let member = &mut looks[1].said.status.members[2];
        (member.last_heard_ms, member.trouble) = (heard_ms, trouble);
        seen
    };
    let seen = witness(Some(499), None);
    is(&seen, Severity::Error, "link", &[1]);
    assert_eq!(
        only(&seen).text,
        "it cannot reach node-3 (Connection refused), although node-2 hears from it"
    );
    // A connection stands for minutes after the machine at its other end is gone.
    for seen in [witness(None, None), witness(Some(500), None)] {
        is(&seen, Severity::Error, "down", &[3]);
    }
    assert_eq!(abouts(&witness(Some(499), Some("another cluster".into()))), ["trouble", "down"]);
    // The links of a program on another machine are no part of the cluster.
    is(&Seen { asker: None, ..witness(Some(499), None) }, Severity::Error, "down", &[3]);
    // The node itself says that it does not reach a node which has answered it.
    assert_eq!(judge(&asked_by(2, with(2, |said| said.status.members[2].reachable = false))), []);
    let seen = asked_by(1, with(2, |said| said.status.members[2].reachable = false));
    assert_eq!(only(&seen).text, "it cannot reach node-3, although node-1 can");
}

#[test]
fn a_leader_that_hears_nothing_from_a_node_has_a_broken_link() {
    let heard = |id: u32, ms: u64| with(id, move |said| said.status.members[2].last_heard_ms = Some(ms));
    is(&heard(1, 1_001), Severity::Error, "link", &[1]);
    assert_eq!(only(&heard(1, 1_001)).text, "it leads, and has not heard from node-3 for 1001 ms");
    assert_eq!(judge(&heard(1, 1_000)), []);
    assert_eq!(judge(&heard(2, 60_000)), [], "two followers need not hear from each other");
    let mut seen = heard(1, 1_001);
    seen.nodes[0].looks.as_mut().expect("it answers")[0].said.status.members[2].last_heard_ms = Some(9);
    assert_eq!(judge(&seen), [], "it may come by at any moment");
}

#[test]
fn a_leader_that_does_not_answer_is_no_lack_of_a_leader() {
    let refused = SeenSilence::Refused { code: "forbidden".into(), why: "no".into() };
    let mut seen = silent(&[1], &refused);
    for node in &mut seen.nodes[1..] {
        let looks = node.looks.as_mut().expect("it answers");
        looks.iter_mut().for_each(|look| look.said.status.leader = Some(SeenNames { id: 1 }));
    }
    is(&seen, Severity::Error, "refused", &[1]);
    seen.nodes[0].looks = Ok([look(2, 0), look(2, 1)].map(|look| NodeLook {
        said: Sample { status: SeenStatus { node: SeenNames { id: 1 }, ..look.said.status }, ..look.said },
        ..look
    }));
    assert_eq!(abouts(&seen), ["no_leader"], "it answers, and says that it does not lead");
}

#[test]
fn a_refusal_between_nodes_is_not_for_want_of_a_token() {
    let refused = SeenSilence::Refused { code: "unauthorized".into(), why: "no".into() };
    assert!(only(&asked_by(1, silent(&[2], &refused))).next.contains("admin_token"));
}

#[test]
fn wall_clocks_are_held_against_each_other() {
    let ahead = |seconds: u64| with(3, move |said| said.clock.wall_us += seconds * SECOND);
    assert_eq!(judge(&ahead(5)), []);
    is(&ahead(6), Severity::Warning, "wall_clock", &[3]);
    assert_eq!(only(&ahead(3_600)).text, "its wall clock is 3600 s ahead of the others");
    // All nodes agree, and this machine's clock is wrong. One node alone may be wrong itself.
    let all_ahead = |seen| everywhere(seen, |look| look.said.clock.wall_us += 86_400 * SECOND);
    is(&all_ahead(well()), Severity::Note, "own_clock", &[]);
    assert_eq!(
        only(&all_ahead(well())).text,
        "the wall clock of this machine is 86400 s behind those of the nodes"
    );
    assert_eq!(judge(&all_ahead(of_size(1))), []);
}

#[test]
fn what_an_operator_has_left_undone() {
    is(&with(1, |said| said.status.service_down = true), Severity::Warning, "service_down", &[]);
    is(&with(1, |said| said.conflicts = 2), Severity::Note, "conflicts", &[]);
}

#[test]
fn tokens_that_end() {
    let now = START + 2 * SECOND;
    let token = |life_days: u64, left_days: u64| {
        let day = 86_400 * SECOND;
        let ends_us = now + left_days * day;
        let mut seen = well();
        let (id, name) = ("00f3".into(), "web".into());
        // The token may be older than 1970.
        seen.tokens.push(SeenEnding { id, name, made_us: ends_us.saturating_sub(life_days * day), ends_us });
        seen
    };
    is(&token(10, 0), Severity::Warning, "token_ends", &[]);
    assert_eq!(judge(&token(5, 0)), [], "of a short life");
    assert_eq!(judge(&token(10, 2)), [], "not so soon");
    let mut ended = token(10, 0);
    ended.tokens[0].ends_us = now - SECOND;
    assert_eq!(judge(&ended), [], "it lets nobody in any more");
}

#[test]
fn the_worst_comes_first_and_notes_do_not_count() {
    let mut seen = silent(&[3], &down());
    let looks = seen.nodes[0].looks.as_mut().expect("it answers");
    (looks[1].said.conflicts, looks[1].said.status.service_down) = (4, true);
    let findings = judge(&seen);
    let abouts: Vec<&str> = findings.iter().map(|finding| finding.about.as_str()).collect();
    assert_eq!(abouts, ["down", "service_down", "conflicts"]);
    assert_eq!(finding::count(&findings), 2);
    let value = finding::json(&seen, &findings);
    assert_eq!((&value["well"], &value["findings"][0]["nodes"][0]), (&false.into(), &3.into()));
    assert_eq!(
        (&value["nodes"][2]["answers"], &value["nodes"][0]["role"]),
        (&false.into(), &"leader".into())
    );
}

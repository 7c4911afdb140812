//! A round is judged in order, is one batch, and is answered when it is committed.

use super::*;

fn appended(solo: &Solo) -> Vec<usize> {
    let appends = solo.writes.iter().filter_map(|write| match write {
        DiskWrite::Append(records) => Some(records.len()),
        _ => None,
    });
    appends.collect()
}

#[test]
fn the_calls_of_a_round_are_one_batch() {
    let mut solo = Solo::open();
    let calls = solo.round(["a", "b", "c"].map(|key| put(key, "1", DocCondition::None)).into());
    assert_eq!(appended(&solo), [3]);
    assert!(solo.answers.is_empty(), "nothing is durable yet (I9)");
    solo.sync();
    for call in calls {
        assert!(matches!(solo.answer(call), Some(Ok(Answer::Written(_)))));
    }
}

#[test]
fn each_is_judged_by_those_before_it() {
    let mut solo = Solo::open();
    let calls = solo.round(vec![put("a", "1", DocCondition::Absent), put("a", "2", DocCondition::Absent)]);
    assert!(solo.answers.is_empty(), "a refusal waits for what it was judged by (P14)");
    solo.sync();
    assert!(matches!(solo.answer(calls[0]), Some(Ok(Answer::Written(_)))));
    assert!(matches!(solo.answer(calls[1]), Some(Err(Denied::Rejected(_)))));
    assert_eq!(&*solo.replica.committed().doc("a").expect("it is there").value, "1");
}

#[test]
fn a_round_of_large_values_is_cut_into_batches() {
    let mut solo = Solo::open();
    let large = format!("\"{}\"", "x".repeat(700 << 10));
    solo.round(["a", "b", "c"].map(|key| put(key, &large, DocCondition::None)).into());
    assert_eq!(appended(&solo), [2, 1]);
}

#[test]
fn the_feed_tells_each_record_as_it_was() {
    let mut solo = Solo::open();
    solo.round(vec![put("a", "1", DocCondition::None), put("a", "2", DocCondition::None)]);
    solo.sync();
    let values = solo.outs.iter().filter_map(|out| match out {
        Out::Feed(super::super::FeedEvent::Record { drafts, .. }) => Some(format!("{drafts:?}")),
        _ => None,
    });
    let values: Vec<String> = values.collect();
    assert_eq!(values.len(), 2);
    assert!(values[0].contains("Some(\"1\")") && values[1].contains("Some(\"2\")"), "{values:?}");
}

fn orders(solo: &mut Solo) -> Vec<(u64, usize, bool)> {
    let outs = std::mem::take(&mut solo.outs);
    let orders = outs.into_iter().filter_map(|out| match out {
        Out::Snapshot(order) => Some((order.meta.index(), order.rows(false).count(), order.whole)),
        _ => None,
    });
    orders.collect()
}

#[test]
fn a_snapshot_that_failed_is_made_up_for_by_the_next() {
    let mut solo = Solo::open();
    // The first record opened the epoch, and other records may have admitted the disk.
    let first = solo.replica.core().last().index;
    for number in first + 1..=10 {
        solo.call(put(&format!("k{number}"), "1", DocCondition::None));
        solo.sync();
    }
    solo.pass(Span::millis(200));
    let written = 10 - first as usize;
    assert_eq!(orders(&mut solo), [(10, written, false)]);
    solo.feed(In::SnapshotEnded(None));
    for number in 11..=20 {
        solo.call(put(&format!("k{number}"), "1", DocCondition::None));
        solo.sync();
    }
    solo.pass(Span::millis(200));
    assert_eq!(orders(&mut solo), [(20, written + 10, false)]);
    solo.feed(In::SnapshotEnded(Some(20)));
    assert_eq!(solo.replica.snapshot_id(), 2);
}

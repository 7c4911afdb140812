//! Documents with a ttl, as the leader counts them (P54), and a state that is full (P55).

use super::*;
use crate::replica::Renewal;
use crate::store::{Reason, Tether, restore_steps};
use crate::types::LeaseName;

const TTL: Span = Span::millis(5_000);

fn lasting(ttl: Span) -> Ending {
    Ending { ttl: Some(ttl), with: None }
}

fn renew(key: &str, condition: DocCondition) -> Call {
    Call::Renew(Renewal::Doc { key: key.into(), condition })
}

impl Solo {
    fn has_doc(&self, key: &str) -> bool {
        self.replica.committed().doc(key).is_some()
    }

    fn settled(&mut self, call: Call) -> Result<Answer, Denied> {
        let id = self.call(call);
        self.sync();
        self.answer(id).expect("a node alone answers at once")
    }

    fn reason(&mut self, call: Call) -> Reason {
        match self.settled(call) {
            Err(Denied::Rejected(rejection)) => rejection.reason,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_document_ends_when_nobody_has_written_or_renewed_it_for_its_ttl() {
    let mut solo = Solo::open();
    solo.settled(put_until("k", "1", DocCondition::None, lasting(TTL))).expect("written");
    solo.pass(Span(TTL.0 - 1_000));
    assert!(solo.has_doc("k"));
    let Ok(Answer::Doc(renewed)) = solo.settled(renew("k", DocCondition::None)) else { panic!("renewed") };
    assert_eq!((renewed.expires_in, renewed.what.ttl()), (TTL, Some(TTL)));
    solo.pass(Span(TTL.0 - 1_000));
    assert!(solo.has_doc("k"), "it was renewed");
    solo.settled(put_until("k", "2", DocCondition::None, lasting(TTL))).expect("written");
    solo.pass(Span(TTL.0 - 1_000));
    assert!(solo.has_doc("k"), "it was written");
    let before = solo.replica.committed().applied().index;
    solo.pass(Span(2_000));
    assert!(!solo.has_doc("k"));
    assert_eq!(solo.replica.committed().applied().index, before + 1, "one record, and none that it has aged");
}

#[test]
fn who_renews_says_which_document_is_meant() {
    let mut solo = Solo::open();
    assert!(matches!(solo.reason(renew("k", DocCondition::None)), Reason::NotFound { .. }));
    solo.settled(put("k", "1", DocCondition::None)).expect("written");
    assert!(matches!(solo.reason(renew("k", DocCondition::None)), Reason::NoTtl { .. }));
    solo.settled(put_until("k", "1", DocCondition::None, lasting(TTL))).expect("written");
    let rev = solo.replica.committed().doc("k").map(|doc| doc.rev().to_string()).expect("it is there");
    assert!(solo.settled(renew("k", DocCondition::Rev(rev.as_str().into()))).is_ok());
    let other = solo.reason(renew("k", DocCondition::Rev("1".into())));
    assert!(matches!(other, Reason::PreconditionFailed { .. }), "{other:?}");
}

/// While the record of an end is under way, a renewal gets no answer: a caller must not count on a document that is about to end.
#[test]
fn a_renewal_waits_for_an_end_that_is_on_its_way() {
    let mut solo = Solo::open();
    solo.settled(put_until("k", "1", DocCondition::None, lasting(TTL))).expect("written");
    solo.now += TTL.0;
    solo.feed(In::Tick);
    let call = solo.call(renew("k", DocCondition::None));
    assert!(solo.answer(call).is_none(), "the record that ends it is not safe yet");
    solo.sync();
    let Some(Err(Denied::Rejected(rejection))) = solo.answer(call) else { panic!("it is gone") };
    assert!(matches!(rejection.reason, Reason::NotFound { .. }));
}

#[test]
fn a_restore_begins_every_ttl_anew() {
    let mut solo = Solo::open();
    let document =
        r#"{"docs":[{"key":"k","value":1,"ttl_ms":5000},{"key":"l","value":1,"with":"role/r","token":7}]}"#;
    solo.call(Call::Restore(restore_steps(document, 7).expect("a good document")));
    for _ in 0..4 {
        solo.sync();
    }
    assert!(solo.has_doc("k") && !solo.has_doc("l"), "nobody holds the role");
    solo.pass(Span(TTL.0 - 1_000));
    assert!(solo.has_doc("k"));
    solo.pass(Span(2_000));
    assert!(!solo.has_doc("k"));
}

/// One record may end a thousand leases, but a lease that takes ten thousand documents with it is the last one in its record.
#[test]
fn what_has_much_to_it_ends_alone() {
    let mut leases = crate::leases::Leases::default();
    let lease = |token| crate::types::Lease { token, ttl: TTL, aged: true };
    let name = |text: &str| LeaseName::Role(text.into());
    leases
        .lead(Time(0), ["a", "b", "c"].into_iter().zip(1..).map(|(text, token)| (name(text), lease(token))));
    let rows = |of: &LeaseName| if *of == name("b") { 10_001 } else { 1 };
    let first = leases.due_within(Time(TTL.0), rows);
    assert_eq!(first.end, [(name("a"), 1), (name("b"), 2)]);
}

#[test]
fn a_full_state_refuses_what_makes_it_larger() {
    let mut solo = Solo::open_with(|settings| settings.limits.state_bytes = 2_000);
    let long = format!("\"{}\"", "x".repeat(1_500));
    solo.settled(put("k", &long, DocCondition::None)).expect("there is room");
    let longer = format!("\"{}\"", "x".repeat(1_990));
    let Reason::StateFull { area: None, used, most: 2_000 } =
        solo.reason(put("l", &longer, DocCondition::None))
    else {
        panic!("it is full")
    };
    assert_eq!(used, solo.replica.committed().bytes());
    // A role takes room, too; giving it back, deleting and writing less do not.
    let claim = RoleClaim {
        instance: "i".into(),
        ttl: TTL,
        address: None,
        metadata: Some(longer.as_str().into()),
        secret: None,
    };
    let wanted = Acquire {
        role: "r".into(),
        claim: claim.into(),
        elect: false,
        priority: 0,
        until: Time(0),
        by: None,
        key: None,
    };
    assert!(matches!(solo.reason(Call::Acquire(wanted.into())), Reason::StateFull { .. }));
    solo.settled(put("k", "1", DocCondition::None)).expect("it is smaller");
    solo.settled(put("l", &long, DocCondition::None)).expect("there is room again");
    let document = format!(r#"{{"docs":[{{"key":"k","value":{longer}}}]}}"#);
    let restored = solo.reason(Call::Restore(restore_steps(&document, 7).expect("a good document")));
    assert!(matches!(restored, Reason::StateFull { most: 2_000, .. }), "before its first step");
    assert!(solo.has_doc("l"));
}

/// A document bound to a lease ends in the same record as the lease, so every reader sees both or neither.
#[test]
fn a_bound_document_goes_with_its_role() {
    let mut solo = Solo::open();
    solo.settled(acquire("a", TTL, Time(0))).expect("free");
    let token = solo.replica.committed().role("r").map(|role| role.token);
    let with = Some(Tether { lease: LeaseName::Role("r".into()), token, secret: None });
    solo.settled(put_until("k", "1", DocCondition::None, Ending { ttl: None, with })).expect("bound");
    solo.pass(Span(TTL.0 + 1_000));
    assert!(solo.has("r").is_none() && !solo.has_doc("k"));
    assert!(solo.replica.committed().loose_docs().is_empty());
}

//! Documents that expire or end with their lease (P54): in the record that ends the lease, or by their ttl.

use super::leases::{acquire, claim, elect, lease_command, register, release, role, text};
use super::sides::{Side, meet};
use super::*;
use crate::store::restore_steps;
use crate::types::{Entry, LeaseName};

fn put(key: &str, rest: &str) -> String {
    format!(r#"{{"key":"{key}","value":1{rest}}}"#)
}

fn with_role(name: &str, token: u64) -> String {
    format!(r#","with":"role/{name}","token":{token}"#)
}

impl Bench {
    fn has(&self, key: &str) -> bool {
        self.store.doc(key).is_some()
    }

    fn put_with(&mut self, key: &str, name: &str) {
        let token = self.token(name);
        self.ok("PutDoc", &put(key, &with_role(name, token)));
    }

    /// The reasons why this command ended documents.
    fn ended_by(&mut self, command: &Command) -> Vec<String> {
        let applied = self.apply(command, None);
        assert!(applied.outcome.is_ok(), "{:?}", applied.outcome);
        applied.ended.iter().map(|(key, why)| format!("{key} {why}")).collect()
    }
}

#[test]
fn a_document_goes_in_the_record_that_ends_its_lease() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    bench.lease(&acquire("s", "a")).expect("free");
    for (key, name) in [("k", "r"), ("l", "r"), ("m", "s")] {
        bench.put_with(key, name);
    }
    let token = bench.token("r");
    assert_eq!(bench.ended_by(&release("r", "a", token)), ["k lease_ended", "l lease_ended"]);
    assert!(!bench.has("k") && !bench.has("l") && bench.has("m"));
    assert_eq!(bench.ended_by(&elect("s", "b")), ["m lease_ended"], "it was bound to what the other held");
    bench.put_with("k", "s");
    let end = LeaseOperation::End { leases: vec![(role("s"), bench.token("s"))] };
    assert_eq!(bench.ended_by(&lease_command(end)), ["k lease_ended"]);
    bench.lease(&register("p", "worker")).expect("new");
    bench.ok("PutDoc", &put("k", r#","with":"process/p""#));
    assert_eq!(bench.ended_by(&Command::remove_process(text("p"), None)), ["k lease_ended"]);
    bench.store.check_sound();
}

#[test]
fn a_document_is_bound_to_what_stands_and_to_nothing_else() {
    let mut bench = Bench::new();
    let code = |told: Result<String, String>| told.err().map(|why| why.split(':').next().map(String::from));
    let refused = |bench: &mut Bench, rest: &str| code(bench.run("PutDoc", &put("k", rest))).flatten();
    assert_eq!(refused(&mut bench, &with_role("r", 1)).as_deref(), Some("lease_not_held"));
    assert_eq!(refused(&mut bench, r#","with":"process/p""#).as_deref(), Some("lease_not_held"));
    bench.lease(&acquire("r", "a")).expect("free");
    let token = bench.token("r");
    let wrong = command("PutDoc", &put("k", &with_role("r", token + 1)));
    let Judged::Rejected(rejection) = bench.store.judge(&wrong, None, bench.now) else { panic!("bound") };
    assert!(matches!(rejection.reason, Reason::LeaseNotHeld { field: "token", .. }), "{rejection:?}");
    bench.put_with("k", "r");
    // A document that is rewritten without an end stays, and so does one that was bound to another lease.
    bench.put_with("l", "r");
    bench.ok("PutDoc", &put("l", ""));
    assert_eq!(bench.ended_by(&release("r", "a", token)), ["k lease_ended"]);
    assert!(bench.has("l"));
}

/// P53: the writer of a document must show the secret of the lease to bind the document to it, and no record contains the
/// secret.
#[test]
fn only_who_may_speak_for_a_lease_binds_documents_to_it() {
    let mut bench = Bench::new();
    let secret = Some(SecretHash::of("s"));
    let claim = RoleClaim { secret, ..RoleClaim::clone(&claim("a", 30_000)) }.into();
    let wanted = LeaseOperation::Acquire { role: text("r"), claim, elect: false };
    bench.lease(&lease_command(wanted)).expect("free");
    let with_role = with_role("r", bench.token("r"));
    let process = r#","with":"process/p""#;
    let (identifier, ttl) = (text("worker"), Span::millis(45_000));
    let new = NewProcess { identifier, role: None, capabilities: None, metadata: None, ttl, secret };
    let register = LeaseOperation::Register { id: text("p"), process: new.into() };
    bench.lease(&lease_command(register)).expect("new");
    let judged = |bench: &Bench, command: &Command| match bench.store.judge(command, None, bench.now) {
        Judged::Rejected(rejection) => Some(rejection),
        _ => None,
    };
    for with in [with_role.as_str(), process] {
        for shown in ["", r#","secret":"other""#] {
            let single = command("PutDoc", &put("k", &format!("{with}{shown}")));
            let rejection = judged(&bench, &single).expect("it is not shown");
            assert_eq!((rejection.reason, rejection.operation), (Reason::WrongSecret, None), "{with}{shown}");
        }
        let right = command("PutDoc", &put("k", &format!(r#"{with},"secret":"s""#)));
        assert_eq!(judged(&bench, &right), None, "{with}");
        let recorded = right.as_recorded();
        assert_eq!(Command::from_payload(&right.to_payload(None)).as_ref(), Ok(&*recorded));
        assert!(!right.to_payload(None).text.contains("secret"), "no record has it");
    }
    let item = |rest: &str| format!(r#"{{"storage_cmd":"PutDoc","payload":{}}}"#, put("k", rest));
    let batch = format!("[{},{}]", item(""), item(&with_role));
    let rejection = judged(&bench, &command("Batch", &batch)).expect("it is not shown");
    assert_eq!((rejection.reason, rejection.operation), (Reason::WrongSecret, Some(1)));
}

/// P59: a former holder cannot write.
#[test]
fn a_former_holder_writes_nothing() {
    let mut bench = Bench::new();
    let names = |role: &str, token: u64| format!(r#","if_role":"{role}","role_token":{token}"#);
    let deletes = |rest: &str| format!(r#"{{"key":"k"{rest}}}"#);
    assert!(bench.run("PutDoc", &put("k", &names("r", 1))).is_err(), "nobody holds it");
    bench.lease(&acquire("r", "a")).expect("free");
    bench.lease(&acquire("s", "a")).expect("free");
    let (first, other) = (bench.token("r"), bench.token("s"));
    bench.ok("PutDoc", &put("k", &names("r", first)));
    let wrong = command("PutDoc", &put("k", &names("r", other)));
    let Judged::Rejected(rejection) = bench.store.judge(&wrong, None, bench.now) else { panic!("written") };
    assert_eq!(rejection.reason, Reason::RoleNotHeld { role: text("r") });
    bench.ended_by(&elect("r", "b"));
    let former = names("r", first);
    let refused = |told: Result<String, String>| told.is_err_and(|why| why.starts_with("role_not_held"));
    assert!(
        refused(bench.run("PutDoc", &put("k", &former)))
            && refused(bench.run("DeleteDoc", &deletes(&former)))
    );
    // One write that is bound to a role guards the whole batch.
    let item = |rest: &str| format!(r#"{{"storage_cmd":"PutDoc","payload":{}}}"#, put("l", rest));
    assert!(bench.run("Batch", &format!("[{},{}]", item(""), item(&former))).is_err() && !bench.has("l"));
    let latter = names("r", bench.token("r"));
    bench.ok("Batch", &format!("[{},{}]", item(""), item(&latter)));
    bench.ok("DeleteDoc", &deletes(&latter));
    assert!(!bench.has("k") && bench.has("l"));
    for wrong in [
        r#","if_role":"r""#,
        r#","role_token":7"#,
        r#","if_role":"r","role_token":-1"#,
        r#","if_role":"r","role_token":null"#,
        r#","if_role":null,"role_token":null"#,
    ] {
        let payload = put("k", wrong);
        let payload = serde_json::from_str(&payload).expect("JSON");
        assert!(Command::parse("PutDoc", payload).is_err(), "{wrong}");
    }
}

#[test]
fn only_so_many_documents_end_with_one_lease() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    for number in 0..TETHERED_MOST {
        bench.put_with(&format!("k{number}"), "r");
    }
    bench.put_with("k1", "r");
    let rest = with_role("r", bench.token("r"));
    let one_more = command("PutDoc", &put("other", &rest));
    let Judged::Rejected(rejection) = bench.store.judge(&one_more, None, bench.now) else {
        panic!("too many")
    };
    assert_eq!(rejection.reason, Reason::TooManyTethered { lease: role("r") });
    assert_eq!(bench.store.ends_with(&role("r")), TETHERED_MOST + 1);
    let token = bench.token("r");
    assert_eq!(bench.ended_by(&release("r", "a", token)).len(), TETHERED_MOST);
    assert_eq!(bench.store.bytes(), 0, "nothing is left that anybody has written");
}

/// Each write is a new grant: an end that was proposed before the write does not end the document.
#[test]
fn a_write_outruns_the_end_of_the_one_before() {
    let mut bench = Bench::new();
    bench.ok("PutDoc", &put("k", r#","ttl_ms":1000"#));
    let name = LeaseName::Doc(text("k"));
    let lease = bench.store.lease(&name).expect("it has a ttl");
    assert_eq!(bench.store.leases().collect::<Vec<_>>(), [(name.clone(), lease)]);
    let end = lease_command(LeaseOperation::End { leases: vec![(name.clone(), lease.token)] });
    bench.ok("PutDoc", &put("k", r#","ttl_ms":1000"#));
    assert_eq!(bench.lease(&end), Err(Reason::Unchanged));
    let lease = bench.store.lease(&name).expect("it has a ttl");
    let end = lease_command(LeaseOperation::End { leases: vec![(name.clone(), lease.token)] });
    assert_eq!(bench.ended_by(&end), ["k expired"]);
    bench.ok("PutDoc", &put("k", r#","ttl_ms":1000"#));
    bench.ok("PutDoc", &put("k", ""));
    assert_eq!(bench.store.lease(&name), None, "it stays until somebody deletes it");
}

/// Nodes that do not read the format yet do not receive it (P23). Documents without an end keep the old form in the log.
#[test]
fn an_ending_is_a_format_of_its_own() {
    let format = |rest: &str| command("PutDoc", &put("k", rest)).to_payload(None).format.0;
    assert_eq!((format(""), format(r#","ttl_ms":1000"#), format(r#","with":"process/p""#)), (1, 2, 2));
    let end = |name| lease_command(LeaseOperation::End { leases: vec![(name, 7)] }).to_payload(None);
    assert_eq!((end(role("r")).format.0, end(LeaseName::Doc(text("k"))).format.0), (1, 2));
    let docs = end(LeaseName::Doc(text("k")));
    assert_eq!(&*docs.text, r#"{"roles":[],"processes":[],"docs":[["k",7]]}"#);
    assert_eq!(Command::from_payload(&docs).map(|command| command.to_payload(None)), Ok(docs));
}

#[test]
fn what_is_wrong_with_an_ending_is_named() {
    let complaint =
        |rest: &str| Command::parse("PutDoc", raw(&put("k", rest))).err().map(|bad| bad.to_string());
    assert_eq!(complaint(r#","ttl_ms":86400000,"with":"process/a/b""#), None);
    for (rest, field) in [
        (r#","ttl_ms":999"#, "payload.ttl_ms"),
        (r#","ttl_ms":86400001"#, "payload.ttl_ms"),
        (r#","ttl_ms":"1000""#, "payload.ttl_ms"),
        (r#","with":"role/r""#, "payload.token"),
        (r#","with":"role/r","token":-1"#, "payload.token"),
        (r#","with":"role/","token":1"#, "payload.with"),
        (r#","with":"doc/k","token":1"#, "payload.with"),
        (r#","with":"r","token":1"#, "payload.with"),
        (r#","with":7,"token":1"#, "payload.with"),
        (r#","token":1"#, "payload.with"),
    ] {
        let found = complaint(rest).unwrap_or_default();
        assert!(found.starts_with(&format!("{field} ")), "{rest}: {found}");
    }
}

#[test]
fn a_document_comes_back_from_its_text_as_it_was() {
    let mut bench = Bench::new();
    bench.lease(&acquire("r", "a")).expect("free");
    let rest = with_role("r", bench.token("r"));
    bench.ok("PutDoc", &put("k", &format!(r#","ttl_ms":5000{rest}"#)));
    bench.ok("PutDoc", &put("l", r#","ttl_ms":7000"#));
    assert_eq!(load::reloaded(&bench.store), bench.store);
    let document = document::document(&bench.store);
    let formats: Vec<u16> =
        restore_steps(&document, 1).expect("our own").steps.iter().map(|step| step.format.0).collect();
    assert_eq!(formats, [2, 1], "who cannot read the part is not sent it");
    for step in restore_steps(&document, 1).expect("our own").steps {
        bench.apply_entry(Entry::Client(step));
    }
    let view = bench.store.doc("k").expect("its lease stands");
    assert_eq!((view.ttl(), view.with().as_deref()), (Some(Span::millis(5000)), Some("role/r")));
    let token = bench.token("r");
    bench.lease(&release("r", "a", token)).expect("its own");
    for step in restore_steps(&document, 2).expect("our own").steps {
        bench.apply_entry(Entry::Client(step));
    }
    assert!(!bench.has("k") && bench.has("l"), "nobody holds what the document was to end with");
    bench.store.check_sound();
}

/// The elder side granted the role again. A document that is bound to the younger side's grant ends in the merge that ends this
/// grant.
#[test]
fn a_bond_is_lost_with_its_lease_in_a_merge() {
    let mut sides = Side::group(&[1, 2], |_| ());
    for (side, by) in sides.iter_mut().zip(["elder", "younger"]) {
        side.lease(&acquire("r", by));
        let token = side.store.role("r").map_or(0, |held| held.token);
        side.run("PutDoc", &put(by, &with_role("r", token))).expect("bound");
    }
    assert_eq!(meet(&mut sides, 0, 1), 0, "what ends by itself is in no journal");
    for side in &sides {
        assert!(side.doc("elder").is_some() && side.doc("younger").is_none());
        side.check();
    }
}

/// The leader of each side counts ttls separately: an expiry on one side did not know what the other side wrote or renewed.
#[test]
fn an_end_on_one_side_takes_nothing_that_the_other_has() {
    for (ends_at, elder_wrote) in [(0, false), (1, false), (1, true)] {
        let mut sides = Side::group(&[1, 2], |side| {
            side.run("PutDoc", &put("k", r#","ttl_ms":1000"#)).expect("put");
        });
        let other = 1 - ends_at;
        if ends_at == 0 || elder_wrote {
            sides[other].run("PutDoc", r#"{"key":"k","value":2,"ttl_ms":1000}"#).expect("put");
        }
        let name = LeaseName::Doc(text("k"));
        let token = sides[ends_at].store.lease(&name).map_or(0, |lease| lease.token);
        sides[ends_at].lease(&lease_command(LeaseOperation::End { leases: vec![(name, token)] }));
        assert!(sides[ends_at].doc("k").is_none());
        assert_eq!(meet(&mut sides, 0, 1), 0, "an end that nobody asked for is no conflict");
        for side in &sides {
            assert!(side.doc("k").is_some(), "{ends_at} {elder_wrote}");
            side.check();
        }
    }
}

/// A delete by a client is a decision: the elder side's delete wins over the younger side's value, as always.
#[test]
fn a_delete_is_no_end() {
    let mut sides = Side::group(&[1, 2], |side| {
        side.run("PutDoc", &put("k", r#","ttl_ms":1000"#)).expect("put");
    });
    sides[0].delete("k");
    sides[1].run("PutDoc", r#"{"key":"k","value":2,"ttl_ms":1000}"#).expect("put");
    assert_eq!(meet(&mut sides, 0, 1), 1);
    assert!(sides.iter().all(|side| side.doc("k").is_none()));
}

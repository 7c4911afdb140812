//! The public part of a lease is not enough to act for it (P53).

use super::leases::{claim, lease_command, release, text};
use super::*;

/// P53: a lease that was granted under a secret needs it, and a lease that was granted without a secret accepts none later.
#[test]
fn who_can_read_a_lease_cannot_speak_for_it() {
    let mut bench = Bench::new();
    let secret = |text: &str| Some(SecretHash::of(text));
    let wants = |instance: &str, shown: Option<SecretHash>, elect: bool| {
        let claim = RoleClaim { secret: shown, ..RoleClaim::clone(&claim(instance, 30_000)) }.into();
        lease_command(LeaseOperation::Acquire { role: text("r"), claim, elect })
    };
    bench.lease(&wants("i", secret("s"), false)).expect("free");
    let token = bench.token("r");
    let gives_back = |shown| {
        let (role, instance) = (text("r"), text("i"));
        lease_command(LeaseOperation::Release { role, instance, token, secret: shown })
    };
    for shown in [None, secret("other"), secret("")] {
        assert_eq!(bench.lease(&wants("i", shown, false)), Err(Reason::WrongSecret));
        assert_eq!(bench.lease(&gives_back(shown)), Err(Reason::WrongSecret));
    }
    assert_eq!(bench.lease(&wants("i", secret("s"), false)), Err(Reason::Unchanged));
    assert_eq!(load::reloaded(&bench.store), bench.store);
    // An operator's order needs no secret, and keeps the existing one.
    let longer = RoleClaim { ttl: Span::millis(60_000), ..RoleClaim::clone(&claim("i", 1)) }.into();
    let named = LeaseOperation::Acquire { role: text("r"), claim: longer, elect: true };
    bench.lease(&lease_command(named)).expect("named");
    assert_eq!(bench.lease(&gives_back(None)), Err(Reason::WrongSecret));
    bench.lease(&gives_back(secret("s"))).expect("its own");
    bench.lease(&wants("i", None, false)).expect("free");
    assert_eq!(bench.lease(&wants("i", secret("s"), false)), Err(Reason::Unchanged), "there is none");
    bench.lease(&release("r", "i", bench.token("r"))).expect("without a secret, as before");
}

#[test]
fn who_can_read_a_process_cannot_speak_for_it() {
    let mut bench = Bench::new();
    let secret = |text: &str| Some(SecretHash::of(text));
    let says = |identifier: &str, secret: Option<SecretHash>| {
        let (identifier, ttl) = (text(identifier), Span::millis(45_000));
        let process = NewProcess { identifier, role: None, capabilities: None, metadata: None, ttl, secret };
        lease_command(LeaseOperation::Register { id: text("p"), process: process.into() })
    };
    bench.lease(&says("a", secret("s"))).expect("new");
    for shown in [None, secret("other")] {
        assert_eq!(bench.lease(&says("b", shown)), Err(Reason::WrongSecret));
        assert_eq!(bench.lease(&Command::remove_process(text("p"), shown)), Err(Reason::WrongSecret));
    }
    bench.lease(&says("b", secret("s"))).expect("its own");
    bench.lease(&Command::remove_process(text("p"), secret("s"))).expect("its own");
}

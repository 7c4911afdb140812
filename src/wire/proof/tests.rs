//! Proofs at their limits: which ones are accepted, which are refused, and what a refused one leaves behind.

use std::collections::BTreeSet;

use super::*;

/// Constants that other nodes rely on, repeated here so that a smaller value is noticed.
const TAKEN_BEHIND: u64 = 64;
const SESSIONS_KEPT: usize = 8;

const HELLO: Hello<'static> =
    Hello { path: "/heartbeat", cluster: "eldest", from: "1 to=2", message: "resigned", body: b"body" };

fn secret() -> ProofSecret {
    ProofSecret::new("correct horse battery staple")
}

fn only(secret: ProofSecret) -> Arc<Secrets> {
    Arc::new(Secrets::new(secret, None))
}

fn gate() -> ProofVerifier {
    ProofVerifier::new(only(secret()), NodeId(2), [7; 32])
}

/// A new session of node 1 with node 2.
fn session(gate: &ProofVerifier) -> Session {
    Session::new(&secret(), NodeId(1), NodeId(2), gate.challenge(NodeId(1)), 42)
}

fn parties() -> (ProofVerifier, Session) {
    let gate = gate();
    let session = session(&gate);
    (gate, session)
}

fn is_taken(gate: &ProofVerifier, proof: &str) -> bool {
    gate.check(NodeId(1), &HELLO, proof).is_some()
}

#[test]
fn a_call_and_its_answer_prove_each_other() {
    let (gate, session) = parties();
    let CallProof { proof: text, counter, .. } = session.prove(&HELLO);
    let proof = gate.check(NodeId(1), &HELLO, &text).expect("the secret is known");
    let answer = Hello { message: "appended", ..HELLO };
    assert!(session.checks(counter, &answer, &proof.answer(&answer)));
    let other = Hello { message: "gap", ..HELLO };
    assert!(!session.checks(counter, &other, &proof.answer(&answer)), "another answer");
    assert!(!session.checks(counter + 1, &answer, &proof.answer(&answer)), "the answer to another call");
}

#[test]
fn nothing_is_taken_twice_or_changed_or_from_another() {
    let (gate, session) = parties();
    let CallProof { proof: text, .. } = session.prove(&HELLO);
    assert!(gate.check(NodeId(3), &HELLO, &text).is_none(), "in another's name");
    for changed in [
        Hello { path: "/writesync", ..HELLO },
        Hello { body: b"bodY", ..HELLO },
        Hello { from: "1 to=3", ..HELLO },
        // The same bytes, divided differently.
        Hello { from: "1 to=", message: "2resigned", ..HELLO },
    ] {
        assert!(gate.check(NodeId(1), &changed, &text).is_none(), "{changed:?}");
    }
    assert!(gate.check(NodeId(1), &HELLO, &text).is_some());
    assert!(gate.check(NodeId(1), &HELLO, &text).is_none(), "replayed");
}

#[test]
fn calls_may_overtake_each_other_within_the_window() {
    let (gate, session) = parties();
    let calls: Vec<String> = (0..80).map(|_| session.prove(&HELLO).proof).collect();
    assert!(gate.check(NodeId(1), &HELLO, &calls[70]).is_some());
    assert!(gate.check(NodeId(1), &HELLO, &calls[69]).is_some());
    assert!(gate.check(NodeId(1), &HELLO, &calls[69]).is_none(), "replayed");
    assert!(gate.check(NodeId(1), &HELLO, &calls[2]).is_none(), "too far behind");
}

#[test]
fn an_old_session_does_not_come_back() {
    let secret = ProofSecret::new("correct horse battery staple");
    let gate = ProofVerifier::new(only(secret.clone()), NodeId(2), [7; 32]);
    let session = || Session::new(&secret, NodeId(1), NodeId(2), gate.challenge(NodeId(1)), 42);
    let first = session().prove(&HELLO).proof;
    assert!(gate.check(NodeId(1), &HELLO, &first).is_some());
    for _ in 0..20 {
        assert!(gate.check(NodeId(1), &HELLO, &session().prove(&HELLO).proof).is_some());
    }
    assert!(gate.check(NodeId(1), &HELLO, &first).is_none(), "its counter is forgotten, its number is not");
}

#[test]
fn another_secret_or_another_life_proves_nothing() {
    let (gate, _) = parties();
    let other = ProofSecret::new("another secret altogether");
    let session = Session::new(&other, NodeId(1), NodeId(2), gate.challenge(NodeId(1)), 42);
    assert!(gate.check(NodeId(1), &HELLO, &session.prove(&HELLO).proof).is_none());
    let secret = ProofSecret::new("correct horse battery staple");
    let before = ProofVerifier::new(only(secret.clone()), NodeId(2), [6; 32]);
    let session = Session::new(&secret, NodeId(1), NodeId(2), before.challenge(NodeId(1)), 42);
    assert!(gate.check(NodeId(1), &HELLO, &session.prove(&HELLO).proof).is_none());
}

/// Nodes of different versions prove themselves to each other: neither keys nor texts may change.
#[test]
fn proofs_are_what_other_versions_expect() {
    let gate = gate();
    let challenge = gate.challenge(NodeId(1));
    assert_eq!(challenge.encode(), "1.8739761adac5607aef7c82ba2cd52c49");
    assert!(gate.challenge(NodeId(1)).encode().starts_with("2."));
    let session = Session::new(&secret(), NodeId(1), NodeId(2), challenge, 42);
    let CallProof { proof: first, counter, .. } = session.prove(&HELLO);
    assert_eq!(counter, 1);
    assert_eq!(
        first,
        "1.8739761adac5607aef7c82ba2cd52c49.0000000000000000000000000000002a 1 \
         a902b0ae43def5f5fa8c81a6af8a0646e23e95647510c74740104d2a10f20ec4"
    );
    let proof = gate.check(NodeId(1), &HELLO, &first).expect("it is a proof");
    assert_eq!(proof.answer(&HELLO), "1 6ecbd3d0104e12c1612dea5b2729a662b26ca73098ee62e3d18730f927e801ee");
    let CallProof { proof: second, counter, .. } = session.prove(&HELLO);
    assert_eq!(counter, 2);
    assert!(is_taken(&gate, &second));
}

#[test]
fn heads_and_bound_streams_are_proved_as_other_versions_expect() {
    let (gate, session) = parties();
    let call = session.prove(&HELLO);
    assert_eq!(call.head, "4f1e60100710898dda8deaee3cb62e263d77852d79ecc8fe0e2b8ec73e626b66");
    let head = Hello { body: b"", ..HELLO };
    let proved = gate.check_head(NodeId(1), &head, &call.proof, &call.head).expect("the head is proved");
    let proof = proved.check_body(&HELLO).expect("and the body with it");
    let mut bound = blake3::Hasher::new_keyed(&proof.key);
    bound.update(b"stream").update(&call.counter.to_le_bytes()).update(b"body");
    assert_eq!(proof.stream_mac().update(b"body").finalize(), bound.finalize());
    assert_ne!(session.stream_mac(1).finalize(), session.stream_mac(2).finalize());
}

#[test]
fn a_head_is_proved_before_its_body_and_once() {
    let (gate, session) = parties();
    let call = session.prove(&HELLO);
    let head = |hello: &Hello<'_>, proof: &str, head: &str| gate.check_head(NodeId(1), hello, proof, head);
    for changed in [
        Hello { path: "/writesync", ..HELLO },
        Hello { message: "resigned more", ..HELLO },
        Hello { from: "1 to=3", ..HELLO },
        Hello { cluster: "other", ..HELLO },
    ] {
        assert!(head(&changed, &call.proof, &call.head).is_none(), "{changed:?}");
    }
    let other = session.prove(&Hello { body: b"other", ..HELLO });
    assert!(head(&HELLO, &other.proof, &call.head).is_none(), "the proof of another body");
    let end = call.proof.rsplit(' ').next().expect("a proof ends with a hash");
    assert!(head(&HELLO, &call.proof, end).is_none(), "the hash of the whole");
    let proved = head(&HELLO, &call.proof, &call.head).expect("it is proved");
    assert!(head(&HELLO, &call.proof, &call.head).is_none(), "replayed");
    assert!(!is_taken(&gate, &call.proof), "replayed as an old one");
    assert!(proved.check_body(&Hello { body: b"bodY", ..HELLO }).is_none());
}

#[test]
fn only_what_is_written_as_a_challenge_is_read_as_one() {
    let challenge = gate().challenge(NodeId(1));
    assert_eq!(Challenge::decode(&challenge.encode()), Some(challenge));
    let gate = gate();
    for _ in 0..100 {
        let text = gate.challenge(NodeId(1)).encode();
        assert_eq!(text.split_once('.').map(|(_, mac)| mac.len()), Some(32), "{text}");
    }
    for wrong in ["", "1", ".", "1.", ".1", "x.1", "1.x", "-1.1", "18446744073709551616.1"] {
        assert_eq!(Challenge::decode(wrong), None, "{wrong}");
    }
}

#[test]
fn a_challenge_is_for_one_caller_one_number_and_one_server() {
    let gate = gate();
    let open = |server: u32, challenge| Session::new(&secret(), NodeId(1), NodeId(server), challenge, 42);
    let given = gate.challenge(NodeId(1));
    let renumbered = Challenge { number: given.number + 1, ..given };
    let anothers = gate.challenge(NodeId(3));
    for (what, session) in [
        ("a number of the caller's choice", open(2, renumbered)),
        ("another caller's challenge", open(2, anothers)),
        ("another server", open(3, given)),
    ] {
        assert!(!is_taken(&gate, &session.prove(&HELLO).proof), "{what}");
    }
    assert!(is_taken(&gate, &open(2, given).prove(&HELLO).proof));
    // The same numbers at another node, which has made other challenges.
    let third = ProofVerifier::new(only(secret()), NodeId(3), [7; 32]);
    assert!(!is_taken(&third, &open(2, given).prove(&HELLO).proof));
}

#[test]
fn what_is_no_proof_is_refused() {
    let (gate, session) = parties();
    let CallProof { proof: text, .. } = session.prove(&HELLO);
    let words: Vec<&str> = text.split(' ').collect();
    let [name, counter, hash] = words[..] else { panic!("{text}") };
    let (challenge, nonce) = name.rsplit_once('.').expect("a nonce stands after the challenge");
    for wrong in [
        String::new(),
        name.to_string(),
        format!("{name} {counter}"),
        format!("{name} {hash}"),
        format!("{challenge} {counter} {hash}"),
        format!("{challenge}.x {counter} {hash}"),
        format!("{nonce} {counter} {hash}"),
        format!("{name} x {hash}"),
        format!("{name} 2 {hash}"),
        format!("{challenge}.{:032x} {counter} {hash}", 43),
        format!("{name} {counter} {}", &hash[1..]),
        format!("{name} {counter} {hash}0"),
        format!("{name} {counter} {hash} "),
    ] {
        assert!(!is_taken(&gate, &wrong), "{wrong}");
    }
    assert!(is_taken(&gate, &text));
}

#[test]
fn a_refused_proof_uses_nothing_up() {
    let (gate, first) = parties();
    let CallProof { proof: text, .. } = first.prove(&HELLO);
    let forged =
        |text: &str| format!("{}{}", &text[..text.len() - 1], if text.ends_with('0') { 1 } else { 0 });
    assert!(!is_taken(&gate, &forged(&text)));
    assert!(is_taken(&gate, &text), "its counter was not taken");
    for _ in 0..2 * SESSIONS_KEPT {
        assert!(!is_taken(&gate, &forged(&session(&gate).prove(&HELLO).proof)));
    }
    assert!(is_taken(&gate, &first.prove(&HELLO).proof), "no session took its place");
}

#[test]
fn an_answer_names_its_call_and_proves_it() {
    let (gate, session) = parties();
    let CallProof { proof: text, counter, .. } = session.prove(&HELLO);
    let proof = gate.check(NodeId(1), &HELLO, &text).expect("it is a proof");
    let answer = proof.answer(&HELLO);
    let (number, hash) = answer.split_once(' ').expect("a counter and a hash");
    assert!(session.checks(counter, &HELLO, &answer));
    let (_, hash_of_call) = text.rsplit_once(' ').expect("a hash stands at the end");
    for wrong in [
        String::new(),
        hash.to_string(),
        format!("2 {hash}"),
        format!("x {hash}"),
        format!("{number} {}", &hash[1..]),
        format!("{number} {}", "0".repeat(64)),
        format!("{number} {hash_of_call}"),
    ] {
        assert!(!session.checks(counter, &HELLO, &wrong), "{wrong}");
    }
    for changed in [
        Hello { path: "/writesync", ..HELLO },
        Hello { cluster: "younger", ..HELLO },
        Hello { from: "1 to=3", ..HELLO },
        Hello { body: b"", ..HELLO },
    ] {
        assert!(!session.checks(counter, &changed, &answer), "{changed:?}");
    }
    let other = super::tests::session(&gate);
    assert!(!other.checks(counter, &HELLO, &answer), "another session's");
}

#[test]
fn the_window_is_as_long_as_it_says() {
    let (gate, session) = parties();
    let calls: Vec<String> = (0..200).map(|_| session.prove(&HELLO).proof).collect();
    let newest = 150;
    let window = TAKEN_BEHIND as usize;
    assert!(is_taken(&gate, &calls[newest]));
    assert!(!is_taken(&gate, &calls[newest - window]), "just too far behind");
    assert!(is_taken(&gate, &calls[newest + 1 - window]), "the last one within");
    assert!(!is_taken(&gate, &calls[newest + 1 - window]), "replayed");
    assert!(!is_taken(&gate, &calls[newest]), "replayed");
}

/// However far a counter jumps, an accepted counter is not accepted again.
#[test]
fn a_jump_forgets_nothing() {
    for jump in [1, 2, TAKEN_BEHIND - 1, TAKEN_BEHIND, TAKEN_BEHIND + 1, u64::from(u32::MAX) + 1, 1 << 40] {
        let mut counters = ReplayWindow::default();
        assert!(counters.accept(10) && counters.accept(9), "{jump}");
        assert!(counters.accept(10 + jump), "{jump}");
        for counter in [9, 10, 10 + jump] {
            assert!(!counters.accept(counter), "{counter} after a jump of {jump}");
        }
    }
    let mut counters = ReplayWindow::default();
    let newest = 1 << 40;
    assert!(counters.accept(newest));
    assert!(!counters.accept(newest - (1 << 32) - 5), "its distance is not cut to 32 bits");
}

#[test]
fn counters_are_taken_once_each_and_only_within_the_window() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (mut counters, mut taken, mut newest) = (ReplayWindow::default(), BTreeSet::new(), 0);
    for _ in 0..20_000 {
        let counter = (newest + next(80)).saturating_sub(next(3) * 35).max(1);
        let right = counter + TAKEN_BEHIND > newest && !taken.contains(&counter);
        assert_eq!(counters.accept(counter), right, "{counter} with {newest} as the newest");
        if right {
            taken.insert(counter);
        }
        newest = newest.max(counter);
    }
}

#[test]
fn as_many_sessions_are_kept_as_it_says() {
    let gate = gate();
    let sessions: Vec<Session> = (0..=SESSIONS_KEPT).map(|_| session(&gate)).collect();
    let (last, kept) = sessions.split_last().expect("there are some");
    for session in kept.iter().chain(kept) {
        assert!(is_taken(&gate, &session.prove(&HELLO).proof), "all of them are kept");
    }
    assert!(is_taken(&gate, &last.prove(&HELLO).proof));
    assert!(!is_taken(&gate, &kept[0].prove(&HELLO).proof), "the oldest has gone for the newest");
    for session in sessions.iter().skip(1) {
        assert!(is_taken(&gate, &session.prove(&HELLO).proof), "and no other");
    }
}

#[test]
fn peers_have_sessions_of_their_own() {
    let (gate, first) = parties();
    assert!(is_taken(&gate, &first.prove(&HELLO).proof));
    for _ in 0..2 * SESSIONS_KEPT {
        let others = Session::new(&secret(), NodeId(3), NodeId(2), gate.challenge(NodeId(3)), 42);
        assert!(gate.check(NodeId(3), &HELLO, &others.prove(&HELLO).proof).is_some());
    }
    assert!(is_taken(&gate, &first.prove(&HELLO).proof));
}

#[test]
fn the_secret_is_never_printed() {
    assert_eq!(format!("{:?}", secret()), "ProofSecret(…)");
}

/// While the secret is changed, nodes with the new secret and nodes without it understand each other; after that, they do not.
#[test]
fn a_secret_is_changed_in_steps() {
    let [old, new] = ["the old one, which is known", "the new one, which is not"].map(ProofSecret::new);
    let secrets = only(old.clone());
    let gate = ProofVerifier::new(secrets.clone(), NodeId(2), [7; 32]);
    let session =
        |secret: &ProofSecret| Session::new(secret, NodeId(1), NodeId(2), gate.challenge(NodeId(1)), 42);
    let (by_old, by_new) = (session(&old), session(&new));
    let taken = |session: &Session| {
        let CallProof { proof, counter, .. } = session.prove(&HELLO);
        let checked = gate.check(NodeId(1), &HELLO, &proof);
        // The response is proved with the same secret as the call.
        checked.is_some_and(|checked| session.checks(counter, &HELLO, &checked.answer(&HELLO)))
    };
    assert_eq!((taken(&by_old), taken(&by_new)), (true, false));
    secrets.replace(old.clone(), Some(new.clone()));
    assert_eq!((taken(&by_old), taken(&by_new)), (true, true));
    secrets.replace(new.clone(), Some(old));
    assert_eq!((taken(&by_old), taken(&by_new)), (true, true));
    secrets.replace(new, None);
    assert_eq!((taken(&by_old), taken(&by_new)), (false, true));
}

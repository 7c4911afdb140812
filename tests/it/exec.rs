//! `eldest exec` from outside: what it runs, how it ends, and that nothing runs without the role.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Call, Cluster, eldest, wait_for};

/// One `eldest exec`. Its output goes to a file: a pipe would stay open as long as any
/// process that it has started.
struct Exec {
    child: Child,
    stderr: PathBuf,
}

/// A folder for the files that commands leave behind.
struct Place {
    folder: PathBuf,
    nodes: String,
    started: AtomicU32,
}

impl Place {
    fn of(cluster: &Cluster) -> Place {
        let folder = cluster.folder().join("exec");
        fs::create_dir_all(&folder).expect("a folder");
        Place { folder, nodes: cluster.urls().join(","), started: AtomicU32::new(0) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// `options` stand before the command, which a shell runs in the folder.
    fn start(&self, options: &[&str], script: &str) -> Exec {
        self.start_command(options, &["sh", "-c", script])
    }

    fn start_command(&self, options: &[&str], words: &[&str]) -> Exec {
        let mut command = Command::new(env!("CARGO_BIN_EXE_eldest"));
        command.args(["exec", "--role", "r", "--nodes", &self.nodes]).args(options).arg("--").args(words);
        let stderr = self.path(&format!("stderr-{}", self.started.fetch_add(1, Ordering::Relaxed)));
        let file = File::create(&stderr).expect("a file");
        command.current_dir(&self.folder).stdin(Stdio::null()).stderr(file).stdout(Stdio::null());
        Exec { child: command.spawn().expect("the binary starts"), stderr }
    }

    /// The text that the command has written into this file, once it is complete.
    async fn written(&self, name: &str) -> String {
        let path = self.path(name);
        wait_for("the command writes", async || {
            fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
        .await
        .trim()
        .to_string()
    }

    async fn pid(&self, name: &str) -> i32 {
        self.written(name).await.parse().expect("a process id")
    }
}

impl Exec {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process id is not zero");
        kill_process(pid, signal).expect("our own process takes signals");
    }

    /// The exit code, and the text on stderr.
    async fn end(&mut self) -> (Option<i32>, String) {
        let status =
            wait_for("eldest exec ends", async || self.child.try_wait().expect("our own child")).await;
        let said = fs::read_to_string(&self.stderr).expect("text");
        (status.code().or(status.signal().map(|signal| -signal)), said)
    }

    async fn code(&mut self) -> i32 {
        self.end().await.0.expect("a code")
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state as the kernel reports it: `R`, `S`, `T` for frozen; None if the process is
/// gone, or dead and not reaped.
fn state(pid: i32) -> Option<char> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let state = text.rsplit(") ").next()?.chars().next()?;
    (state != 'Z' && state != 'X').then_some(state)
}

async fn role(cluster: &Cluster) -> Value {
    cluster.eventually(Call::get("/v1/roles/r")).await.expect(200).json()
}

async fn is_free(cluster: &Cluster) {
    wait_for("the role is free", async || role(cluster).await["leader"].is_null().then_some(())).await;
}

/// No process is left to release the role: the kernel closes the connection that the role is tied to.
#[tokio::test]
async fn the_next_one_runs_long_before_the_ttl_of_one_that_was_killed_is_over() {
    let cluster = Cluster::of(3).await;
    let place = Place::of(&cluster);
    let first = place.start(&["--instance-id", "a", "--ttl", "1h"], "echo $ELDEST_TOKEN > a; exec sleep 100");
    let token: u64 = place.written("a").await.parse().expect("a token");
    let options = ["--instance-id", "b", "--ttl", "1h", "--wait"];
    let mut next = place.start(&options, "echo $ELDEST_TOKEN > b");
    wait_for("it waits", async || (role(&cluster).await["waiting"] == 1).then_some(())).await;
    first.signal(Signal::KILL);
    let later: u64 = place.written("b").await.parse().expect("a token");
    assert!(later > token);
    assert_eq!(next.code().await, 0);
}

/// This needs no cluster.
#[tokio::test]
async fn what_it_ends_with_when_nobody_is_there() {
    let run = |words: &[&str]| {
        let output = eldest(&[&["exec"], words].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for bad in [
        &["--role", "r"][..],
        &["--", "true"],
        &["--role", "r", "--ttl", "0s", "--", "true"],
        &["--role", "r", "--ttl", "soon", "--", "true"],
        &["--role", "r", "--nodes", "ftp://n1", "--", "true"],
    ] {
        let (code, said) = run(bad);
        assert_eq!(code, Some(2), "{bad:?}: {said}");
    }
    let (code, said) = run(&["--role", "r", "--nodes", "127.0.0.1:1", "--", "true"]);
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("127.0.0.1:1"), "{said}");
}

/// The lease was granted under a secret, which the command gets.
#[tokio::test]
async fn a_command_writes_in_the_name_of_its_role_and_binds_documents_to_it() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    let put = format!("{} doc put --url {}", env!("CARGO_BIN_EXE_eldest"), place.nodes);
    let script = format!(
        "{put} kept 1 --if-role $ELDEST_ROLE --role-token $ELDEST_TOKEN &&
         {put} bound 2 --with role/$ELDEST_ROLE --lease-token $ELDEST_TOKEN &&
         {put} kept 3 --if-role $ELDEST_ROLE --role-token $ELDEST_TOKEN"
    );
    assert_eq!(place.start(&[], &script).code().await, 0);
    assert_eq!(cluster.answer(1, Call::get("/v1/docs/kept")).await.expect(200).json(), json!(3));
    cluster.answer(1, Call::get("/v1/docs/bound")).await.expect(404);
}

#[tokio::test]
async fn a_command_runs_with_its_token_and_the_role_is_given_back() {
    let cluster = Cluster::of(3).await;
    let place = Place::of(&cluster);
    let script = "echo $ELDEST_TOKEN $ELDEST_ROLE $ELDEST_INSTANCE_ID >env; read go <gate; exit 7";
    let made = Command::new("mkfifo").arg(place.path("gate")).status().expect("mkfifo");
    assert!(made.success());
    let mut exec = place.start(&["--instance-id", "me"], script);
    let env = place.written("env").await;
    let held = role(&cluster).await;
    assert_eq!(held["leader"]["instance_id"], "me");
    assert_eq!(env, format!("{} r me", held["token"]));

    let mut other = place.start(&[], "echo ran >other");
    assert_eq!(other.code().await, 121);
    let mut other = place.start(&["--timeout", "300ms"], "echo ran >other");
    assert_eq!(other.code().await, 121);
    assert!(!place.path("other").exists());

    let mut next = place.start(&["--wait"], "echo $ELDEST_TOKEN >next");
    wait_for("it waits", async || (role(&cluster).await["waiting"] == json!(1)).then_some(())).await;
    // The test opens it for reading as well, so that it need not wait until the command does.
    let mut gate = File::options().read(true).write(true).open(place.path("gate")).expect("the gate");
    gate.write_all(b"go\n").expect("a pipe has room for a word");
    assert_eq!(exec.code().await, 7);
    assert_eq!(next.code().await, 0);
    let token: u64 = place.written("next").await.parse().expect("a token");
    assert!(Some(token) > held["token"].as_u64());
    is_free(&cluster).await;
}

#[tokio::test]
async fn how_a_command_ends_is_passed_on() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    assert_eq!(place.start(&[], "kill -KILL $$").code().await, 137);
    assert_eq!(place.start(&[], "exit 255").code().await, 255);
    let (code, said) = place.start_command(&[], &["./no-such-command"]).end().await;
    assert_eq!(code, Some(127), "{said}");
    fs::write(place.path("text"), "no program").expect("a file");
    let (code, said) = place.start_command(&[], &["./text"]).end().await;
    assert_eq!(code, Some(126), "{said}");
    is_free(&cluster).await;
}

#[tokio::test]
async fn signals_are_passed_on() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    let script =
        "trap 'echo usr1 >usr1' USR1; trap 'exit 9' TERM; echo $$ >pid; while :; do sleep 0.05; done";
    let mut exec = place.start(&[], script);
    place.pid("pid").await;
    exec.signal(Signal::USR1);
    assert_eq!(place.written("usr1").await, "usr1");
    exec.signal(Signal::TERM);
    assert_eq!(exec.code().await, 9);
    is_free(&cluster).await;
}

#[tokio::test]
async fn who_waits_gives_its_place_up() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    let mut first = place.start(&[], "echo $$ >pid; exec sleep 1000");
    let pid = place.pid("pid").await;
    let mut waiting = place.start(&["--wait"], "echo ran >other");
    wait_for("it waits", async || (role(&cluster).await["waiting"] == json!(1)).then_some(())).await;
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.code().await, 143);
    wait_for("nobody waits", async || (role(&cluster).await["waiting"] == json!(0)).then_some(())).await;
    first.signal(Signal::INT);
    assert_eq!(first.code().await, 130);
    assert!(state(pid).is_none() && !place.path("other").exists());
    is_free(&cluster).await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_killed_before_the_role_is_free() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    // The grandchild is an orphan.
    let script = "(sh -c 'trap \"\" TERM HUP; echo $$ >deep; exec sleep 1000' &) ; while ! test -s deep; do sleep 0.01; done; exit 3";
    let mut exec = place.start(&[], script);
    assert_eq!(exec.code().await, 3);
    assert!(state(place.pid("deep").await).is_none());
    is_free(&cluster).await;
}

#[tokio::test]
async fn a_command_dies_with_whoever_holds_its_role() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    let mut exec = place.start(&["--ttl", "30s"], "echo $$ >pid; exec sleep 1000");
    let pid = place.pid("pid").await;
    exec.child.kill().expect("our own process");
    assert_eq!(exec.end().await.0, Some(-9));
    wait_for("it is killed", async || state(pid).is_none().then_some(())).await;
    is_free(&cluster).await;
}

/// The lease cannot be renewed, so nothing of the command is left when it ends.
#[tokio::test]
async fn a_lost_lease_kills_the_command() {
    let cluster = Cluster::of(3).await;
    let place = Place::of(&cluster);
    let script = "trap '' TERM; sleep 1000 & echo $! >child; echo $$ >pid; wait";
    let mut exec = place.start(&["--ttl", "10s"], script);
    let (pid, child) = (place.pid("pid").await, place.pid("child").await);
    cluster.ids().for_each(|id| cluster.stop(id));
    let (code, said) = exec.end().await;
    assert_eq!(code, Some(122), "{said}");
    assert!(said.contains("lost"), "{said}");
    assert!(state(pid).is_none() && state(child).is_none());
    cluster.ids().for_each(|id| cluster.cont(id));
    is_free(&cluster).await;
}

#[tokio::test]
async fn doubt_freezes_a_command_and_a_proof_lets_it_go_on() {
    let cluster = Cluster::of(3).await;
    let place = Place::of(&cluster);
    // The command is frozen after two thirds of the ttl and killed after nine tenths: a renewal has
    // ten seconds. A connection in addition to the lease would be given up after 15 s of silence,
    // and leave half a second.
    let options = ["--ttl", "45s", "--held-by", "lease"];
    let mut exec = place.start(&options, "echo $$ >pid; exec sleep 1000");
    let pid = place.pid("pid").await;
    let token = role(&cluster).await["token"].clone();
    cluster.ids().for_each(|id| cluster.stop(id));
    wait_for("it is frozen", async || (state(pid) == Some('T')).then_some(())).await;
    // Another process may send SIGCONT as well, but the command continues only after a renewal.
    exec.signal(Signal::CONT);
    for _ in 0..25 {
        assert_eq!(state(pid), Some('T'), "no proof has come yet");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cluster.ids().for_each(|id| cluster.cont(id));
    let goes_on = wait_for("it goes on", async || (state(pid) != Some('T')).then(|| state(pid))).await;
    assert!(goes_on.is_some(), "it was killed");
    assert_eq!(role(&cluster).await["token"], token, "the same lease");
    exec.signal(Signal::TERM);
    assert_eq!(exec.code().await, 143);
}

#[tokio::test]
async fn another_one_that_is_named_ends_the_command() {
    let cluster = Cluster::of(1).await;
    let place = Place::of(&cluster);
    let mut exec = place.start(&["--ttl", "15s"], "echo $$ >pid; exec sleep 1000");
    let pid = place.pid("pid").await;
    let named = Call::post("/v1/roles/r/elect").json(&json!({"instance_id": "other", "ttl_ms": 3_600_000}));
    cluster.eventually(named).await.expect(200);
    let (code, said) = exec.end().await;
    assert_eq!(code, Some(122), "{said}");
    assert!(state(pid).is_none());
    assert_eq!(role(&cluster).await["leader"]["instance_id"], "other");
}

//! Units of systemd that `eldest unit` prints. The tests run their commands as systemd would, in separate networks.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::harness::{Cluster, Network, Plan, eldest, wait_for};
use crate::partitions::SECRET;

/// A node beyond loopback holds the address and the interface of its network.
const INTERFACE: &str = "eth0";

/// The exit code of `eldest exec` when the lease was lost.
const LOST: i32 = 122;

/// The commands of a unit, in the network of one machine.
struct Machine {
    namespace: String,
    before: String,
    start: String,
    after: String,
    running: Option<Child>,
}

impl Machine {
    fn new(namespace: String, unit: &str) -> Machine {
        let line = |name: &str| {
            let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap_or_else(|| panic!("{name} is missing: {unit}")).trim_start_matches('-').to_string()
        };
        let (before, start, after) = (line("ExecStartPre"), line("ExecStart"), line("ExecStopPost"));
        Machine { namespace, before, start, after, running: None }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, "sh", "-c", &format!("exec {line}")]);
        command.stdin(Stdio::null());
        command
    }

    fn start(&mut self) {
        // A failure of these lines is no failure of the unit.
        let _ = self.command(&self.before).status();
        let child = self.command(&self.start).process_group(0).spawn().expect("the unit starts");
        self.running = Some(child);
    }

    /// Waits until the process has ended, and does what comes after it. Returns its exit code.
    async fn ended(&mut self) -> Option<i32> {
        let mut child = self.running.take().expect("it runs");
        let status = wait_for("the unit ends", async || child.try_wait().expect("a process")).await;
        let _ = self.command(&self.after).status();
        status.code()
    }

    fn kill(&mut self, signal: &str) {
        let id = self.running.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
    }

    fn has(&self, address: &str) -> bool {
        let shown =
            Command::new("ip").args(["-n", &self.namespace, "-4", "addr", "show", "dev", INTERFACE]).output();
        String::from_utf8_lossy(&shown.expect("ip").stdout).contains(&format!("inet {address}/"))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(child) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until this machine has the address. Never may both have it.
async fn moves_to(machines: &[Machine; 2], place: usize, address: &str) {
    wait_for("the address moves", async || {
        let has = [machines[0].has(address), machines[1].has(address)];
        assert_ne!(has, [true, true], "two machines have the address");
        has[place].then_some(())
    })
    .await;
}

/// The third machine finds the address at this one.
async fn answers(network: &Network, machine: &Machine, address: &str) {
    let link = Command::new("ip").args(["-n", &machine.namespace, "-o", "link", "show", INTERFACE]).output();
    let link = String::from_utf8_lossy(&link.expect("ip").stdout).to_lowercase();
    let hardware =
        link.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    let namespace = network.name(3);
    wait_for("the address is found where it is", async || {
        let words = ["netns", "exec", &namespace, "arping", "-c", "1", "-w", "1", "-I", INTERFACE, address];
        let asked = Command::new("ip").args(words).output().expect("arping");
        String::from_utf8_lossy(&asked.stdout).to_lowercase().contains(hardware).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_floating_address_is_where_the_role_is_held() {
    let Some(network) = Network::new(3) else { return };
    let plan = Plan::at(network.addresses()).brisk().launchers(network.launchers()).config(SECRET);
    let cluster: Cluster = plan.start().await;
    cluster.leader().await;
    let own = network.addresses()[0].octets();
    let address = format!("10.{}.{}.100", own[1], own[2]);
    let (urls, wanted) = (cluster.urls().join(","), format!("{address}/32"));
    let words =
        ["unit", "web", "--role", "web", "--address", &wanted, "--interface", INTERFACE, "--url", &urls];
    let unit = eldest(&words);
    assert!(unit.status.success(), "{}", String::from_utf8_lossy(&unit.stderr));
    let unit = String::from_utf8(unit.stdout).expect("a text");
    let mut machines = [1, 2].map(|id| Machine::new(network.name(id), &unit));

    machines[0].start();
    moves_to(&machines, 0, &address).await;
    machines[1].start();
    answers(&network, &machines[0], &address).await;

    // The program dies, and the kernel ends what it ran.
    machines[0].kill("-KILL");
    machines[0].ended().await;
    moves_to(&machines, 1, &address).await;
    answers(&network, &machines[1], &address).await;

    // The machine is cut off from the cluster, and gives the address up by itself.
    machines[0].start();
    network.split(&[2], &[1, 3]);
    assert_eq!(machines[1].ended().await, Some(LOST));
    moves_to(&machines, 0, &address).await;
    network.heal();

    // A stop takes the address off before the role is free, without the line that comes after.
    machines[0].kill("-TERM");
    let mut child = machines[0].running.take().expect("it runs");
    wait_for("the unit ends", async || child.try_wait().expect("a process")).await;
    assert!(!machines[0].has(&address), "the address is taken off");
}

#[test]
fn systemd_understands_the_units() {
    let folder = std::env::temp_dir().join(format!("eldest-units-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let token = folder.join("token").display().to_string();
    fs::write(&token, "secret").expect("written");
    let url = ["--url", "http://10.0.0.1:9000,http://10.0.0.2:9000"];
    let command = [
        "unit",
        "report",
        "--role",
        "r",
        "--user",
        "root",
        "--token-file",
        &token,
        "--",
        "/bin/echo",
        "50 %",
        "$x",
    ];
    let address = ["unit", "web", "--role", "a b/ü", "--address", "10.0.0.100/24", "--interface", "eth0"];
    for words in [&command[..], &address] {
        let words = [&words[..4], &url, &words[4..]].concat();
        let unit = eldest(&words);
        assert!(unit.status.success(), "{}", String::from_utf8_lossy(&unit.stderr));
        let file = folder.join(format!("{}.service", words[1]));
        fs::write(&file, &unit.stdout).expect("written");
        let verified =
            Command::new("systemd-analyze").args(["verify", "--recursive-errors=no"]).arg(&file).output();
        let told = String::from_utf8_lossy(&verified.expect("systemd-analyze").stderr).into_owned();
        assert!(!told.contains(&format!("{}.service", words[1])), "{told}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_unit_names_its_cluster() {
    let told = eldest(&["unit", "u", "--role", "r", "--", "true"]);
    assert_eq!(told.status.code(), Some(2));
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("which cluster? name its nodes with --url, or use a context"), "{told}");
}

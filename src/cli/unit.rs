//! `eldest unit`: prints a unit of systemd for what runs only where a role is held: a command, or a floating address.
//!
//! ```text
//!   systemd ─► eldest exec --role R --wait ─┬─ the command               killed before another machine can hold the role
//!                                           └─ address on … address off  off before the role is given back; ExecStopPost, if it was killed
//! ```

use std::env::current_exe;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf, absolute};
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;

use super::exit::Failure;
use super::out::{clean, print};
use super::span::{millis, span};
use super::target::{Target, TokenSource};

#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  eldest unit report --role nightly-report --user report -- /usr/local/bin/report --all
  eldest unit web-address --role web --address 10.0.0.100/32 --interface eth0
  eldest unit web-address --role web --address 10.0.0.100/32 --interface eth0 --context prod

Save the output as /etc/systemd/system/NAME.service on each machine that may hold the role. Then run
`systemctl daemon-reload` and `systemctl enable --now NAME`. The unit has the addresses of the cluster and the paths of the
token and the certificates in it; systemd reads these files as root, so the command's user need not.

An address is put on the interface after the role was acquired, and announced if there is `arping` (iputils-arping). It is
taken off before the role is given back, and before the ttl has passed if the program is killed or cut off. A machine or
a program that stands still keeps it until it goes on. Give /32: then nothing else depends on the address.")]
pub struct UnitArgs {
    /// The name of the unit
    #[arg(value_name = "NAME", value_parser = unit_name)]
    name: String,
    /// The role that the machine must hold
    #[arg(long, value_parser = not_empty)]
    role: String,
    /// The time for which the role stays with a machine that does not renew it
    #[arg(long, value_name = "SPAN", value_parser = ttl, default_value = "10s")]
    ttl: Duration,
    /// The user that the command runs as [default: root]
    #[arg(long, conflicts_with = "address", value_parser = user_name)]
    user: Option<String>,
    /// An IPv4 address with the length of its network, which the machine has while it holds the role
    #[arg(long, value_name = "ADDRESS/BITS", requires = "interface", conflicts_with = "command")]
    address: Option<FloatingAddress>,
    /// The network interface of the address
    #[arg(long, value_name = "NAME", requires = "address", value_parser = interface_name)]
    interface: Option<String>,
    #[command(flatten)]
    target: Target,
    /// The command to run, with its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "address", value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FloatingAddress {
    ip: Ipv4Addr,
    bits: u8,
}

impl FromStr for FloatingAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<FloatingAddress, &'static str> {
        const FORM: &str = "write an IPv4 address with the length of its network, like 10.0.0.100/24";
        let (ip, bits) = text.split_once('/').ok_or(FORM)?;
        let ip = ip.parse::<Ipv4Addr>().map_err(|_| FORM)?;
        let bits = bits.parse().ok().filter(|bits| (1..=32).contains(bits)).ok_or(FORM)?;
        let is_of_a_machine =
            !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !ip.is_broadcast();
        if is_of_a_machine {
            Ok(FloatingAddress { ip, bits })
        } else {
            Err("a machine cannot have this address")
        }
    }
}

fn unit_name(text: &str) -> Result<String, &'static str> {
    let name = text.strip_suffix(".service").unwrap_or(text);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    match name.chars().all(fits) && (1..=200).contains(&name.len()) {
        true => Ok(name.to_string()),
        false => Err("use 1 to 200 letters, digits, hyphens, underscores, dots or colons"),
    }
}

fn not_empty(text: &str) -> Result<String, &'static str> {
    if text.is_empty() { Err("it is empty") } else { Ok(text.to_string()) }
}

fn ttl(text: &str) -> Result<Duration, String> {
    let ttl = span(text)?;
    if ttl < Duration::from_secs(1) { Err("give at least 1s".to_string()) } else { Ok(ttl) }
}

fn user_name(text: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().all(fits) && !text.is_empty() {
        true => Ok(text.to_string()),
        false => Err("give the name of a user"),
    }
}

/// The bound is the kernel's.
fn interface_name(text: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().all(fits) && (1..=15).contains(&text.len()) && !matches!(text, "." | "..") {
        true => Ok(text.to_string()),
        false => Err("the name of an interface has 1 to 15 letters, digits, hyphens, underscores or dots"),
    }
}

pub fn run(args: &UnitArgs) -> Result<(), Failure> {
    // Reports a wrong context or token now, not when the unit starts.
    args.target.credential()?;
    if !args.target.is_named {
        let what = "which cluster? name its nodes with --url, or use a context".to_string();
        return Err(Failure::Usage { what });
    }
    if let Some(relative) = args.command.first().filter(|word| word.contains('/') && !word.starts_with('/')) {
        return Err(Failure::Usage {
            what: format!("{relative}: give the whole path; systemd runs it elsewhere"),
        });
    }
    let program = current_exe().map_err(Failure::file("the path of this program"))?;
    let shown = Shown::of(&args.target)?;
    print(&text(args, &program, &shown))
}

/// The files that the program shows to the cluster. systemd passes them on as credentials.
#[derive(Debug, Default)]
struct Shown {
    files: Vec<(&'static str, PathBuf)>,
}

impl Shown {
    fn of(target: &Target) -> Result<Shown, Failure> {
        let token = match &target.token {
            TokenSource::Nowhere => None,
            TokenSource::File { path, .. } => Some(path),
            TokenSource::Given { from, .. } => {
                let what = format!(
                    "everybody can read a unit: give the token of {from} as a file, with --token-file"
                );
                return Err(Failure::Usage { what });
            }
        };
        let tls = &target.tls;
        let all = [
            ("token-file", token),
            ("ca", tls.ca.as_ref()),
            ("cert", tls.cert.as_ref()),
            ("key", tls.key.as_ref()),
        ];
        let mut files = Vec::new();
        for (option, path) in all.into_iter().filter_map(|(option, path)| Some((option, path?))) {
            let path = absolute(path).map_err(Failure::file(path))?;
            let fits = |text: &str| !text.contains(char::is_control) && !text.ends_with('\\');
            if !path.to_str().is_some_and(fits) {
                return Err(Failure::Usage {
                    what: format!("a unit cannot name the file {path:?}: rename it"),
                });
            }
            files.push((option, path));
        }
        Ok(Shown { files })
    }

    fn credentials(&self) -> String {
        self.files
            .iter()
            .map(|(name, path)| format!("LoadCredential={name}:{}\n", specified(&path.display().to_string())))
            .collect()
    }

    fn options(&self) -> String {
        self.files.iter().map(|(name, _)| format!(" --{name} ${{CREDENTIALS_DIRECTORY}}/{name}")).collect()
    }
}

fn text(args: &UnitArgs, program: &Path, shown: &Shown) -> String {
    let UnitArgs { name, role, target, .. } = args;
    // The kernel ends a command with the program, but takes no address off: that needs the rest of the ttl.
    let held_by = if args.address.is_some() { " --held-by lease" } else { "" };
    let exec = format!(
        "{} exec --role={}{held_by} --wait --ttl {}ms --url {}{} --",
        word(&program.display().to_string()),
        word(role),
        millis(args.ttl),
        word(&target.url.join(",")),
        shown.options(),
    );
    let (what, service) = match (&args.address, &args.interface) {
        (Some(address), Some(interface)) => {
            (format!("the address {}", address.ip), of_address(*address, interface, &exec))
        }
        _ => (args.command.join(" "), of_command(args, &exec)),
    };
    format!(
        "\
# {name}.service, made by `eldest unit`. Save it as /etc/systemd/system/{name}.service, then:
#   systemctl daemon-reload && systemctl enable --now {name}
[Unit]
Description={}
Wants=network-online.target
After=network-online.target eldest.service
# It is tried again without a limit: the cluster may come late.
StartLimitIntervalSec=0

[Service]
Type=exec
{}{service}Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
",
        specified(&clean(&format!("{what}, where the role {role} is held")).replace('\n', " ")),
        shown.credentials(),
    )
}

fn of_command(args: &UnitArgs, exec: &str) -> String {
    let command: Vec<String> = args.command.iter().map(|text| word(text)).collect();
    let user = args.user.iter().map(|user| format!("User={}\n", specified(user))).collect::<String>();
    // The program passes signals on, and ends after the command.
    format!("{user}ExecStart={exec} {}\nKillMode=mixed\n", command.join(" "))
}

fn of_address(FloatingAddress { ip, bits }: FloatingAddress, interface: &str, exec: &str) -> String {
    let off = format!("-/bin/sh -c \"ip address del {ip}/{bits} dev {interface} 2> /dev/null\"");
    let on = format!("ip address replace {ip}/{bits} dev {interface}");
    // The role is given back after this shell has ended, so the address comes off first.
    let trap = format!("trap 'ip address del {ip}/{bits} dev {interface}; exit 0' TERM INT");
    let announce = format!("command -v arping > /dev/null && arping -q -U -c 3 -I {interface} {ip}");
    format!(
        "\
# A machine that lost its power had no time to take the address off.
ExecStartPre={off}
ExecStart={exec} /bin/sh -c \"{trap}; {on} && {{ {announce}; sleep infinity & wait; }}\"
ExecStopPost={off}
KillMode=mixed
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK AF_PACKET
"
    )
}

/// A word of a command, as systemd reads it.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@/.:,=+-".contains(c);
    if text == ";" {
        return "\\;".to_string();
    }
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    let mut quoted = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' => quoted.extend([c, c]),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c => quoted.push(c),
        }
    }
    format!("\"{quoted}\"")
}

/// A value in which systemd replaces only what begins with a percent sign.
fn specified(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(words: &[&str]) -> String {
        let words =
            [&["unit", "u", "--role", "r", "--url", "http://n1:9000,http://n2:9000"][..], words].concat();
        let args = UnitArgs::try_parse_from(words).expect("understood");
        let shown = Shown::of(&args.target).expect("files");
        text(&args, Path::new("/usr/bin/eldest"), &shown)
    }

    #[test]
    fn a_command_is_quoted_for_systemd() {
        let text = unit(&["--user", "web", "--", "sh", "-c", "echo \"$HOME\" 100%", "", ";"]);
        let exec = "ExecStart=/usr/bin/eldest exec --role=r --wait --ttl 10000ms --url http://n1:9000,http://n2:9000 -- \
            sh -c \"echo \\\"$$HOME\\\" 100%%\" \"\" \\;\n";
        assert!(text.contains(exec), "{text}");
        assert!(
            text.contains("\nUser=web\n") && text.contains("Description=sh -c echo \"$HOME\" 100%%"),
            "{text}"
        );
    }

    #[test]
    fn files_become_credentials() {
        let text = unit(&["--token-file", "/etc/t%", "--ca", "/etc/ca.pem", "--", "true"]);
        assert!(
            text.contains("\nLoadCredential=token-file:/etc/t%%\nLoadCredential=ca:/etc/ca.pem\n"),
            "{text}"
        );
        let options =
            " --token-file ${CREDENTIALS_DIRECTORY}/token-file --ca ${CREDENTIALS_DIRECTORY}/ca -- true\n";
        assert!(text.contains(options), "{text}");
        let typed = ["unit", "u", "--role", "r", "--url", "n1", "--token", "secret", "--", "true"];
        let told =
            Shown::of(&UnitArgs::try_parse_from(typed).expect("understood").target).expect_err("a secret");
        assert!(told.to_string().starts_with("everybody can read a unit"), "{told}");
    }

    #[test]
    fn an_address_comes_off_before_and_after() {
        let text = unit(&["--address", "10.0.0.100/24", "--interface", "eth0"]);
        let off = "=-/bin/sh -c \"ip address del 10.0.0.100/24 dev eth0 2> /dev/null\"\n";
        assert!(
            text.contains(&format!("ExecStartPre{off}")) && text.contains(&format!("ExecStopPost{off}")),
            "{text}"
        );
        assert!(text.contains("; ip address replace 10.0.0.100/24 dev eth0 && { "), "{text}");
        assert!(
            text.contains(" --held-by lease ") && text.contains("trap 'ip address del 10.0.0.100/24 "),
            "{text}"
        );
        assert!(text.contains("Description=the address 10.0.0.100, where the role r is held"), "{text}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for wrong in
            ["10.0.0.100", "10.0.0.100/0", "10.0.0.100/33", "::1/64", "127.0.0.1/8", "0.0.0.0/0", "x/24"]
        {
            assert!(FloatingAddress::from_str(wrong).is_err(), "{wrong}");
        }
        assert_eq!(unit_name("web.service").as_deref(), Ok("web"));
        assert!(unit_name("a/b").is_err() && unit_name("").is_err());
        assert!(interface_name("eth0.7").is_ok() && interface_name("eth0; reboot").is_err());
        assert!(user_name("root\nExecStartPre=/x").is_err() && user_name("").is_err() && ttl("0s").is_err());
        let told = |words: &[&str]| {
            let words = [&["unit", "u", "--role", "r", "--url", "n1"][..], words].concat();
            Shown::of(&UnitArgs::try_parse_from(words).expect("understood").target)
                .expect_err("wrong")
                .to_string()
        };
        assert!(told(&["--token-file", "/a\nb", "--", "true"]).contains("rename it"));
        assert!(told(&["--ca", "/a\\", "--", "true"]).contains("rename it"));
        let both =
            ["unit", "u", "--role", "r", "--address", "10.0.0.1/24", "--interface", "eth0", "--", "true"];
        assert!(UnitArgs::try_parse_from(both).is_err());
        assert!(UnitArgs::try_parse_from(["unit", "u", "--role", "r"]).is_err(), "what should run?");
    }
}

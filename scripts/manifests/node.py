"""A node as a pod would start it: its variables, and the files of its volumes."""

import base64
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from .build import Wrong, find

INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"
# Even a busy machine needs much less time than this.
PATIENCE_S = 60


class Node:
    """The pod with this number, its folders below `root`."""

    def __init__(self, objects, number, root, binary):
        self.spec = find(objects, "StatefulSet", "eldest")["spec"]["template"]["spec"]
        [self.container] = self.spec["containers"]
        self.number, self.root, self.binary = number, pathlib.Path(root) / str(number), binary
        self.namespace = find(objects, "StatefulSet", "eldest")["metadata"].get("namespace", "default")
        self.mounts = {mount["mountPath"]: self.folder(objects, mount) for mount in self.container["volumeMounts"]}
        self.variables = self.expanded()

    def folder(self, objects, mount):
        """The folder that the container sees at a mount."""
        folder = self.root / mount["mountPath"].strip("/")
        folder.mkdir(parents=True)
        volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        volume = volumes.get(mount["name"], {})
        if "configMap" in volume:
            data = find(objects, "ConfigMap", volume["configMap"]["name"])["data"]
            texts = {name: text.encode() for name, text in data.items()}
        elif "secret" in volume:
            data = find(objects, "Secret", volume["secret"]["secretName"])["data"]
            texts = {name: base64.b64decode(text) for name, text in data.items()}
        else:
            texts = {}
        for name, text in texts.items():
            (folder / name).write_bytes(text)
            (folder / name).chmod(0o400)
        return folder

    def expanded(self):
        """`$(NAME)` is replaced by the value of a variable that is defined before it."""
        fields = {INDEX: str(self.number), "metadata.namespace": self.namespace}
        known = {}
        for variable in self.container["env"]:
            value = variable.get("value")
            if value is None:
                field = variable["valueFrom"]["fieldRef"]["fieldPath"]
                if field not in fields:
                    raise Wrong(f"{variable['name']}: scripts/manifests/node.py does not know {field}")
                value = fields[field]
            for name in re.findall(r"\$\(([^)]*)\)", value):
                if name not in known:
                    raise Wrong(f"{variable['name']}: $({name}) does not stand before it")
                value = value.replace(f"$({name})", known[name])
            known[variable["name"]] = value
        return known

    def environment(self, **others):
        """The same variables, with the paths of this machine."""
        here = {name: self.here(name, value) for name, value in self.variables.items()}
        return {"PATH": os.environ["PATH"], **here, **others}

    def here(self, name, value):
        if not value.startswith("/"):
            return value
        for mount, folder in self.mounts.items():
            if value.startswith(mount + "/"):
                place = folder / value.removeprefix(mount + "/")
                if mount != "/data" and not place.exists():
                    raise Wrong(f"{name}: no volume has {value}")
                return str(place)
        raise Wrong(f"{name}: {value} is in no volume, and everything else is read-only")

    def check(self):
        """The output of `eldest check`."""
        if self.container["args"] != ["serve"]:
            raise Wrong("the arguments of the container are not `serve` alone")
        done = subprocess.run([self.binary, "check"], env=self.environment(), capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if done.returncode != 0 or "remark:" in done.stdout:
            raise Wrong(f"eldest check for node {self.number}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_alone(self):
        """Starts the node without the others, and returns the answers to each of its probes and by its Service's names."""
        port = free_port()
        environment = self.environment(ELDEST_LISTEN=f"127.0.0.1:{port}")
        with open(self.root / "log", "wb") as log:
            started = subprocess.Popen([self.binary, "serve"], env=environment, stderr=log)
        try:
            self.wait(started, port, "startupProbe")
            probes = ["startupProbe", "livenessProbe", "readinessProbe"]
            answers = {probe: self.ask(port, probe) for probe in probes}
            called = self.variables["ELDEST_ALLOWED_HOSTS"].split()
            answers["hosts"] = {self.ask(port, "livenessProbe", f"{name}:9000") for name in called}
            started.send_signal(signal.SIGTERM)
            answers["end"] = started.wait(self.spec["terminationGracePeriodSeconds"])
            return answers
        finally:
            started.kill()
            started.wait()

    def wait(self, started, port, probe):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and started.poll() is None:
            try:
                return self.ask(port, probe)
            except OSError:
                time.sleep(0.05)
        raise Wrong(f"node {self.number} did not start:\n{(self.root / 'log').read_text()}")

    def ask(self, port, probe, host="10.0.0.7:9000"):
        """The status of a probe. Like Kubernetes, it accepts any certificate."""
        get = self.container[probe]["httpGet"]
        url = f"{get.get('scheme', 'HTTP').lower()}://127.0.0.1:{port}{get['path']}"
        request = urllib.request.Request(url, headers={"Host": host})
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S, context=context) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code


#: Each keeps a port claimed until this process ends.
CLAIMS = []


def free_port():
    """A port that no other run has, and that the kernel gives to no process that asks for any: the port after it is kept."""
    for port in range(18_000, 20_000, 2):
        claim, free = socket.socket(), socket.socket()
        try:
            claim.bind(("127.0.0.1", port + 1))
            free.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
        else:
            CLAIMS.append(claim)
            return port
        finally:
            free.close()
    raise Wrong("no port is free from 18000 to 19999")

"""Three nodes of Eldest, each with a separate file system that can be made to stall."""

import json
import os
import subprocess

from .systems import Eldest

DISK_MB = 2048


class Cluster(Eldest):
    """Each node has a separate file system, if disks have to stall."""

    disks = False

    def prepare(self):
        super().prepare()
        for node in self.nodes if self.disks else ():
            image, folder = os.path.join(self.folder, f"disk-{node}"), os.path.join(self.folder, f"data-{node}")
            with open(image, "wb") as file:
                file.truncate(DISK_MB << 20)
            os.mkdir(folder)
            subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
            subprocess.run(["mount", "-o", "loop", image, folder], check=True)

    def command(self, node):
        data = f"data-{node}/node" if self.disks else f"data-{node}"
        return [self.program, "serve", "--topology", "topology.json", "--node", str(node), "--data", data]

    def freeze(self, nodes, on):
        for node in nodes:
            subprocess.run(["fsfreeze", "-f" if on else "-u", os.path.join(self.folder, f"data-{node}")], check=True)

    def unmount(self):
        for node in self.nodes if self.disks else ():
            folder = os.path.join(self.folder, f"data-{node}")
            if os.path.ismount(folder):
                subprocess.run(["umount", folder], check=False)

    def urls(self):
        return ",".join(f"http://127.0.0.1:{self.client_port(node)}" for node in self.nodes)

    def status(self):
        told = subprocess.run(["curl", "-s", "-m", "5", f"http://127.0.0.1:{self.client_port(1)}/v1/status"], capture_output=True, text=True)
        return json.loads(told.stdout or "{}")

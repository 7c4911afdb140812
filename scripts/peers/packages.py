"""The other systems' programs, from Debian's packages, unpacked into a cache folder: nothing is installed, so no package
starts a service."""

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "eldest-bench-peers")
JARS = "usr/share/java"


def unpack(package, program):
    """The path of the package's program: the installed one, or one that is unpacked here, once."""
    installed = os.path.join("/", program)
    root = os.path.join(CACHE, package)
    if os.path.exists(installed):
        return installed
    if not os.path.exists(os.path.join(root, "done")):
        download(package, root)
    unpacked = os.path.join(root, program)
    if not os.path.exists(unpacked):
        sys.exit(f"bench-peers: {package} has no {program}; remove {root} and try again")
    return unpacked


def download(package, root):
    print(f"unpacking {package} into {root}", file=sys.stderr)
    shutil.rmtree(root, ignore_errors=True)
    archives = os.path.join(root, "archives")
    os.makedirs(os.path.join(archives, "partial"))
    # This includes the dependencies that the machine lacks; nothing is installed.
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "--download-only", "-o", f"Dir::Cache::archives={archives}",
               "-o", "APT::Sandbox::User=root", package]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench-peers: cannot download {package}; is `apt-get update` due?\n{done.stderr}")
    for archive in sorted(glob.glob(os.path.join(archives, "*.deb"))):
        subprocess.run(["dpkg", "-x", archive, root], check=True)
    shutil.rmtree(archives)
    open(os.path.join(root, "done"), "w").close()


def libraries(package):
    """The folders of libraries that were unpacked, for the linker."""
    root = os.path.join(CACHE, package)
    folders = glob.glob(os.path.join(root, "usr/lib/*-linux-gnu")) + glob.glob(os.path.join(root, "lib/*-linux-gnu"))
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)} if folders else dict(os.environ)


def java(package):
    """A Java runtime: the machine's, or the unpacked one."""
    found = shutil.which("java")
    unpacked = glob.glob(os.path.join(CACHE, package, "usr/lib/jvm/*/bin/java"))
    if not found and not unpacked:
        sys.exit("bench-peers: no java")
    return found or unpacked[0]


def class_path(package, names):
    """The archives of these names, and those that they name themselves."""
    found, wanted = [], list(names)
    while wanted:
        name = wanted.pop(0)
        places = [os.path.join(CACHE, package, JARS, name), os.path.join("/", JARS, name)]
        path = next((place for place in places if os.path.exists(place)), None)
        if path and path not in found:
            found.append(path)
            wanted.extend(named_in(path))
    return ":".join(found)


def named_in(path):
    with zipfile.ZipFile(path) as archive:
        try:
            text = archive.read("META-INF/MANIFEST.MF").decode()
        except KeyError:
            return []
    text = re.sub(r"\r?\n ", "", text)
    line = re.search(r"^Class-Path: (.*)$", text, re.MULTILINE)
    return [os.path.basename(name) for name in line.group(1).split()] if line else []

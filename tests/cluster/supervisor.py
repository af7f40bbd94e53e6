# SPDX-License-Identifier: Apache-2.0
"""supervisor.py WEFT - `weft up` and `weft down`: who starts, restarts and ends the tasks of a cluster."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from weftlib import SLOWER, until


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def tasks(folder):
    """Pids of the running tasks of this cluster, by role-number."""
    found = {}
    for proc in pathlib.Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        try:
            words = (proc / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if any(str(folder) in w for w in words) and "--cluster" in words:
            role = re.search(r"weft-(\w+)", " ".join(words)).group(1)
            number = words[words.index("--task") + 1] if "--task" in words else "0"
            found[f"{role}-{number}"] = int(proc.name)
    return found


class Cluster:
    def __init__(self, weft, folder):
        self.folder = folder
        self.weft = folder / "weft"
        # Copies: its programs are looked for beside it, and one of them is exchanged below.
        for name in ("weft", "weft-master", "weft-ps", "weft-worker"):
            shutil.copy(pathlib.Path(weft).parent / name, folder / name)
        self.ports = free_ports(5)
        a = [f"{{address: 'tcp://127.0.0.1:{p}'}}" for p in self.ports]
        (folder / "cluster.yaml").write_text(
            f"master: {a[0]}\nps: [{a[1]}, {a[2]}]\nworkers: [{a[3]}, {a[4]}]\nstate_dir: state\n")

    def run(self, *words, code=0, says=""):
        done = subprocess.run([self.weft, *words], cwd=self.folder, capture_output=True, text=True,
                              timeout=40 * SLOWER)
        text = done.stdout + done.stderr
        assert done.returncode == code, f"{words}: exit {done.returncode}: {text}"
        assert says in text, f"{words}: said {text!r}, wanted {says!r}"

    def supervisor(self):
        return int((self.folder / "state/supervisor.lock").read_text())


def a_cluster_comes_up_and_goes_down(c):
    c.run("up", says="1 master, 2 ps, 2 workers")
    first = tasks(c.folder)
    assert set(first) == {"master-0", "ps-0", "ps-1", "worker-0", "worker-1"}, first
    c.run("up", code=1, says="is up already")
    c.run("up", "--if-down")
    assert tasks(c.folder) == first
    os.kill(first["ps-1"], signal.SIGKILL)
    until(lambda: tasks(c.folder).get("ps-1", first["ps-1"]) != first["ps-1"], "another ps/1")
    others = {k: v for k, v in tasks(c.folder).items() if k != "ps-1"}
    assert others == {k: v for k, v in first.items() if k != "ps-1"}
    log = (c.folder / "state/logs/supervisor.log").read_text()
    assert "task.died task=ps/1" in log and "signal=9" in log, log
    c.run("up", "--if-down")
    c.run("down", says="is down")
    assert tasks(c.folder) == {}
    c.run("down", code=1, says="is not up")


def tasks_do_not_outlive_a_killed_supervisor(c):
    c.run("up")
    os.kill(c.supervisor(), signal.SIGKILL)
    until(lambda: tasks(c.folder) == {}, "the end of all tasks")
    c.run("down", code=1, says="is not up")
    c.run("up")
    c.run("down")


def a_port_in_use_names_its_process(c):
    with socket.socket() as s:
        s.bind(("127.0.0.1", c.ports[2]))
        s.listen()
        c.run("up", code=1, says=f"in use by process {os.getpid()} (")
    assert tasks(c.folder) == {}


def a_task_that_never_comes_is_named(c):
    (c.folder / "weft-ps").write_text("#!/bin/sh\nexit 2\n")
    c.run("up", "--timeout", "1", code=1, says="still missing: ps/0 at tcp://")
    c.run("down")


def main():
    with tempfile.TemporaryDirectory() as name:
        c = Cluster(sys.argv[1], pathlib.Path(name))
        try:
            a_cluster_comes_up_and_goes_down(c)
            tasks_do_not_outlive_a_killed_supervisor(c)
            a_port_in_use_names_its_process(c)
            a_task_that_never_comes_is_named(c)
        finally:
            subprocess.run([c.weft, "down"], cwd=c.folder, capture_output=True)
    print("the supervisor keeps its tasks")


if __name__ == "__main__":
    main()

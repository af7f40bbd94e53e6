# SPDX-License-Identifier: Apache-2.0
"""supervisor.py WEFT - `weft up` and `weft down`: who starts, restarts and ends the tasks of a cluster."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

from weftlib import SLOWER, free_ports, until


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


def stat(pid):
    """(state, parent) of a process; None when it is gone."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return words[0], int(words[1])


JOB = """job: {name}
model:
  input: {{x: [4]}}
  layers:
    - dense: {{units: 2}}
loss: sparse_categorical_crossentropy
data:
  format: idx
  train: {{x: x.idx, y: y.idx}}
batch: 8
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: 0.1}}}}
"""


def write_job(folder, name, records=64, epochs=1):
    (folder / "x.idx").write_bytes(struct.pack(">BBBBII", 0, 0, 8, 2, records, 4) + bytes(4 * records))
    (folder / "y.idx").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, records) + bytes(records))
    (folder / "job.yaml").write_text(JOB.format(name=name, epochs=epochs))


class Cluster:
    def __init__(self, weft, folder):
        self.folder, self.programs = folder, pathlib.Path(weft).parent
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

    def output(self, *words):
        return subprocess.run([self.weft, *words], cwd=self.folder, capture_output=True, text=True,
                              timeout=40 * SLOWER, check=False).stdout or "{\"tasks\": []}"

    def replace(self, program, script=None):
        """Puts a script in a program's place, or the program back. The running one stays as it is."""
        path = self.folder / program
        path.unlink()
        if script:
            path.write_text(script)
            path.chmod(0o755)
        else:
            shutil.copy(self.programs / program, path)

    def supervisor(self):
        return int((self.folder / "state/supervisor.lock").read_text())

    def parents(self):
        return {task: stat(pid)[1] for task, pid in tasks(self.folder).items()}

    def children_in_state(self, letter):
        """Children of the supervisor that stay in a state: "Z" is a zombie."""
        def now():
            found = [stat(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()]
            return [s for s in found if s == (letter, self.supervisor())]
        try:
            until(lambda: not now(), "none in that state", 2)
        except AssertionError:
            pass
        return now()


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
    assert "task.died task=ps/1" in log and "killed by signal 9" in log, log
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
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of the cluster before
        s.bind(("127.0.0.1", c.ports[2]))
        s.listen()
        for _ in range(10):  # each finds the port, and not the supervisor of the one before
            c.run("up", code=1, says=f"in use by process {os.getpid()} (")
    assert tasks(c.folder) == {}


def a_task_that_never_comes_is_named(c):
    c.replace("weft-ps", "#!/bin/sh\nexec sleep 60\n")  # lives, and never listens
    c.run("up", "--timeout", "1", code=1, says="still missing: ps/0 at tcp://")
    c.run("down")
    c.replace("weft-ps", "#!/bin/sh\nexit 2\n")
    c.run("up", "--timeout", "20", code=1, says="(its files are wrong); see ")
    c.run("down")


def a_task_that_is_asked_to_end_comes_back(c):
    """SIGTERM, from whomever but `weft down`, ends a task with exit code 0."""
    c.run("up")
    for task in ("ps-1", "worker-0", "master-0"):
        first = tasks(c.folder)[task]
        os.kill(first, signal.SIGTERM)
        until(lambda: tasks(c.folder).get(task, first) != first, f"another {task} after SIGTERM", 10)
    c.run("up", "--if-down", says="")
    assert c.children_in_state("Z") == [], "the supervisor has a zombie"
    c.run("down")


def a_task_that_is_down_for_good_is_named(c):
    """A ps whose files are wrong is not started again; every command that would wait says so."""
    c.run("up")
    c.replace("weft-ps", "#!/bin/sh\nexit 2\n")
    os.kill(tasks(c.folder)["ps-1"], signal.SIGKILL)
    log = str(c.folder / "state/logs/ps-1.log")

    def row():
        picture = json.loads(c.output("status", "--json"))
        return next(t for t in picture["tasks"] if t["task"] == "ps/1")

    task = until(lambda: row() if row()["state"] == "down" else None, "ps/1 is down in the status", 10)
    assert task["pid"] is None and "exit code 2" in task["reason"] and log in task["reason"], task
    line = next(x for x in c.output("status").split("\n") if x.startswith("ps/1"))
    assert re.search(r"ps/1 +down +- .*exit code 2 .*ago", line), line
    c.run("up", "--if-down", code=1, says="down for good: ps/1: ended with exit code 2")
    # The master starts again and has to be told anew.
    first = tasks(c.folder)["master-0"]
    os.kill(first, signal.SIGKILL)
    until(lambda: tasks(c.folder).get("master-0", first) != first, "another master")
    until(lambda: row()["state"] == "down", "the new master knows that ps/1 is down", 10)
    write_job(c.folder, "waits")
    c.run("train", "job.yaml", code=1, says="waits for ps/1, which is down for good: ended with")
    c.run("down")
    c.replace("weft-ps")
    c.run("up")
    assert row()["state"] != "down"
    c.run("down")


def each_worker_that_is_down_for_good_is_named_once(c):
    """In the order in which they went down, which is not that of their numbers."""
    write_job(c.folder, "dwindles", epochs=1000000)
    c.run("up")
    with subprocess.Popen([c.weft, "train", "job.yaml"], cwd=c.folder, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as train:
        until(lambda: "running" in c.output("status"), "the job runs", 10)
        c.replace("weft-worker", "#!/bin/sh\nexit 2\n")
        os.kill(tasks(c.folder)["worker-1"], signal.SIGKILL)
        until(lambda: re.search(r"worker/1 +down", c.output("status")), "worker/1 is down", 10)
        said = next(line for line in train.stderr if "is down for good" in line)
        os.kill(tasks(c.folder)["worker-0"], signal.SIGKILL)
        until(lambda: train.poll() is not None, "the end of weft train", 15)
        said += train.stderr.read()
    for worker in ("worker/0", "worker/1"):
        assert said.count(f"{worker} is down for good: ended with exit code 2") == 1, said
    c.run("down")
    c.replace("weft-worker")


def a_master_that_is_down_for_good_is_named(c):
    c.run("up")
    c.replace("weft-master", "#!/bin/sh\nexit 3\n")
    os.kill(tasks(c.folder)["master-0"], signal.SIGTERM)
    log = c.folder / "state/tasks.down"
    until(lambda: "master: ended with exit code 3" in log.read_text(), "the master is given up", 10)
    c.run("status", code=1, says="down for good: master: ended with exit code 3")
    c.run("down")
    c.replace("weft-master")


def who_follows_a_job_sees_that_the_cluster_is_gone(c):
    """kill -9 of the supervisor, and with it of all tasks: nobody will start the master again."""
    write_job(c.folder, "followed", epochs=1000000)
    c.run("up")
    with subprocess.Popen([c.weft, "train", "job.yaml"], cwd=c.folder, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as train:
        until(lambda: "running" in c.output("status"), "the job runs", 10)
        os.kill(c.supervisor(), signal.SIGKILL)
        until(lambda: train.poll() is not None, "the end of weft train", 15)
        said = train.stderr.read()
    assert train.returncode == 1 and "is not running: nobody listens at" in said, said


def a_stopped_supervisor_goes_on_and_can_be_ended(c):
    """Whatever is tried while it is stopped: when it wakes, it has all its tasks and they have it."""
    c.run("up")
    first, supervisor = tasks(c.folder), c.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(first["ps-0"], signal.SIGKILL)
    c.run("up", code=1, says=f"is up already (supervisor {supervisor})")
    c.run("up", "--foreground", code=1, says=f"is up already (supervisor {supervisor})")
    log = (c.folder / "state/logs/supervisor.log").read_text()
    assert "is up already" not in log, "the log of the supervisor that runs has another's words"
    os.kill(supervisor, signal.SIGCONT)
    until(lambda: tasks(c.folder).get("ps-0", first["ps-0"]) != first["ps-0"], "another ps/0", 10)
    assert c.supervisor() == supervisor
    assert set(c.parents().values()) == {supervisor}, c.parents()
    os.kill(supervisor, signal.SIGSTOP)
    c.run("down", says="is down")
    assert tasks(c.folder) == {}


def main():
    with tempfile.TemporaryDirectory() as name:
        c = Cluster(sys.argv[1], pathlib.Path(name))
        try:
            a_cluster_comes_up_and_goes_down(c)
            tasks_do_not_outlive_a_killed_supervisor(c)
            a_task_that_is_asked_to_end_comes_back(c)
            a_task_that_is_down_for_good_is_named(c)
            each_worker_that_is_down_for_good_is_named_once(c)
            a_master_that_is_down_for_good_is_named(c)
            who_follows_a_job_sees_that_the_cluster_is_gone(c)
            a_stopped_supervisor_goes_on_and_can_be_ended(c)
            a_port_in_use_names_its_process(c)
            a_task_that_never_comes_is_named(c)
        finally:
            subprocess.run([c.weft, "down"], cwd=c.folder, capture_output=True)
    print("the supervisor keeps its tasks")


if __name__ == "__main__":
    main()

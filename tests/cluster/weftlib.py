# SPDX-License-Identifier: Apache-2.0
"""A cluster of real processes in a temporary folder, for the tests beside this file.

    with Cluster(weft, ps=2, workers=2) as c:
        c.write("job.yaml", JOB)
        c.must("train", "job.yaml")

Every process of a cluster carries the folder of its cluster file on its command line: that is how
processes are found, counted and, at the end of the `with`, ended, also when a test fails. Waiting is
until(): a condition, looked at again and again, with a deadline and a name.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "kit"))
SKIP = 77
running = False  # a test, and not the head of its file
DEADLINE_S = 60
# Programs under sanitizers need more of everything's time: WEFT_SLOWER=5.
SLOWER = float(os.environ.get("WEFT_SLOWER", "1"))


class Skipped(Exception):
    """A test cannot run here; the words say what it lacks."""


def needs(*modules):
    """Ends the test, or before main() the whole file, as skipped when a module is not there."""
    for name in modules:
        try:
            __import__(name)
        except ImportError as missing:
            skip(f"{missing}; set WEFT_PYTHON to an interpreter that has it")


def skip(why):
    if running:
        raise Skipped(why)
    print(f"skipped: {why}")
    sys.exit(SKIP)


def shared(*parts):
    """A path in the folder of reference models and data; ends the test as skipped without it."""
    root = os.environ.get("WEFT_SHARED", os.path.join(HERE, "..", "..", "..", "shared"))
    path = os.path.abspath(os.path.join(root, *parts))
    if not os.path.exists(path):
        skip(f"there is no {path}; set WEFT_SHARED to the folder of reference data")
    return path


def until(condition, what, seconds=DEADLINE_S):
    """The first true value of condition(); fails with `what` after so many seconds."""
    end = time.monotonic() + seconds * SLOWER
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds * SLOWER:.0f} s: {what}")
        time.sleep(0.01)


def free_ports(n):
    """Ports that nobody has, below those that the system gives to connections: one of these could be
    taken between here and its use."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first = int(f.read().split()[0])
    found = []
    while len(found) < n:
        port = random.randrange(10000, first)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def one_sentence(text):
    """What a failing command says: one line, with nothing that only a programmer reads."""
    lines = [line for line in text.strip().split("\n") if line]
    check(len(lines) == 1, f"one sentence expected, not:\n{text}")
    for word in (r"\(null\)", "assert", "errno", r"(?<![-\w])0x"):  # a temporary folder may be called weft-0x1
        check(not re.search(word, text), f"{word!r} in: {text}")
    return lines[0]


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


class Cluster:
    def __init__(self, weft, ps=2, workers=2, transport="ipc", env=None, more="", devices=()):
        """`more`: further lines of cluster.yaml; `env`: what the processes find in theirs;
        `devices`: of the first workers, a list for each."""
        self.weft = os.path.abspath(weft)
        self.folder = tempfile.mkdtemp(prefix="weft-")
        self.env = dict(os.environ, **(env or {}))
        self.started, self.seen = [], {}
        self.ports = self._addresses(transport, 1 + 4 + workers)
        self.n_workers, self.more, self.devices = workers, more, dict(enumerate(devices))
        self.resize(ps)

    def __enter__(self):
        return self

    def __exit__(self, failure, *rest):
        if failure and failure is not KeyboardInterrupt:
            print(self.logs(), file=sys.stderr)
        self.kill_all()
        bugs = self._bugs()
        shutil.rmtree(self.folder, ignore_errors=True)
        check(failure or not bugs, "".join(bugs))

    def _addresses(self, transport, n):
        if transport == "ipc":
            return [f"ipc://{self.folder}/{i}.sock" for i in range(n)]
        return [f"tcp://127.0.0.1:{port}" for port in free_ports(n)]

    def resize(self, ps):
        """Writes cluster.yaml, with another number of ps (up to 4) and all else as it was."""
        first_worker = 5
        lines = ["cluster: test", f"master: {{address: '{self.ports[0]}'}}"]
        lines += ["ps:"] if ps else []
        lines += [f"  - {{address: '{self.ports[1 + i]}'}}" for i in range(ps)]
        lines += ["workers:"]
        lines += [f"  - {{address: '{self.ports[first_worker + i]}', "
                  f"devices: {json.dumps(self.devices.get(i, ['cpu']))}}}"
                  for i in range(self.n_workers)]
        lines += ["state_dir: .weft", "checkpoint_dir: checkpoints", self.more]
        self.n_ps = ps
        self.write("cluster.yaml", "\n".join(lines) + "\n")

    # ---- files ----

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def logs(self):
        text = ""
        folder = self.path(".weft", "logs")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                text += f"==== {name}\n" + "".join(f.readlines()[-15:])
        return text

    def _bugs(self):
        """Lines of sanitizers and of wf_assert in what the processes wrote."""
        found = []
        for folder, _, names in os.walk(self.path(".weft", "logs")):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                    found += [line for line in f if "runtime error:" in line or
                              "Sanitizer" in line or "a bug in weft" in line]
        return found

    def saved(self, job, *parts):
        """A path in the folder of checkpoints of a job's newest run."""
        top = self.path("checkpoints")
        runs = [int(n.split("#")[1]) for n in (os.listdir(top) if os.path.isdir(top) else [])
                if n.split("#")[0] == job]
        return os.path.join(top, f"{job}#{max(runs, default=1)}", *parts)

    def checkpoints(self, job):
        """Names of the complete checkpoints of the newest run, oldest first."""
        folder = self.saved(job)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(n for n in names if n.startswith("step-"))

    # ---- commands ----

    def _argv(self, args):
        return [self.weft, *args, "--cluster", self.path("cluster.yaml")]

    def bare(self, *args, timeout=DEADLINE_S):
        """Runs weft with just these words, in the cluster's folder."""
        try:
            done = subprocess.run([self.weft, *args], cwd=self.folder, env=self.env,
                                  timeout=timeout * SLOWER,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"weft {' '.join(args)} does not end: {late}") from late
        return Result(done.returncode, done.stdout, done.stderr)

    def run(self, *args, timeout=DEADLINE_S):
        return self.bare(*self._argv(args)[1:], timeout=timeout)

    def must(self, *args, code=0, timeout=DEADLINE_S):
        result = self.run(*args, timeout=timeout)
        check(result.code == code, f"weft {' '.join(args)}: exit {code} expected, {result}")
        return result

    def start(self, *args):
        """Starts a command and leaves it running; its output goes to a file each."""
        n = len(self.started)
        out = open(self.path(f"out{n}"), "w", encoding="utf-8")  # noqa: SIM115
        err = open(self.path(f"err{n}"), "w", encoding="utf-8")  # noqa: SIM115
        process = subprocess.Popen(self._argv(args), cwd=self.folder, env=self.env, stdout=out,
                                   stderr=err, stdin=subprocess.DEVNULL)
        out.close()
        err.close()
        process.number = n
        self.started.append(process)
        return process

    def end_of(self, process, seconds=DEADLINE_S):
        """Waits for a started command."""
        until(lambda: process.poll() is not None, "the end of " + " ".join(process.args[1:3]),
              seconds)
        return Result(process.returncode, self.read(f"out{process.number}"),
                      self.read(f"err{process.number}"))

    # ---- what the master says ----

    def status(self):
        """The picture, or None while the master is away."""
        result = self.run("status", "--json")
        picture = json.loads(result.out) if result.code == 0 else None
        return picture if picture and picture["up"] else None

    def job(self, name):
        picture = self.status() or {"jobs": []}
        runs = [j for j in picture["jobs"] if j["job"] == name]
        return max(runs, key=lambda j: j["run"], default=None)

    def until_job(self, name, condition, what, seconds=DEADLINE_S):
        """Waits until the job is there and condition(job) holds; gives the job."""
        def look():
            job = self.job(name)
            return job if job and condition(job) else None
        return until(look, f"job {name}: {what}", seconds)

    # ---- processes ----

    def processes(self):
        """{pid: the words of its command line} of all that runs for this cluster."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().decode(errors="replace").split("\0")
                with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                    facts = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            state, threads = facts[0], int(facts[17])
            # A dead process has no words left; its last threads may still hold its sockets.
            if state == "Z" and threads > 1 and int(pid) in self.seen:
                found[int(pid)] = self.seen[int(pid)]
            elif any(word.startswith(self.folder) for word in words) and int(pid) != os.getpid():
                found[int(pid)] = words
        self.seen.update(found)
        return found

    def pid(self, task):
        """The process of "master", "ps/0", "worker/1"...; None while there is none."""
        role, _, index = task.partition("/")
        for pid, words in self.processes().items():
            if os.path.basename(words[0]) == f"weft-{role}" and \
                    (role == "master" or words[words.index("--task") + 1] == index):
                return pid
        return None

    def supervisor(self):
        """The process of the supervisor."""
        return int(self.read(".weft/supervisor.lock"))

    def tasks(self):
        return (["master"] + [f"ps/{i}" for i in range(self.n_ps)] +
                [f"worker/{i}" for i in range(self.n_workers)])

    def kill(self, task):
        pid = until(lambda: self.pid(task), f"a process of {task}")
        os.kill(pid, signal.SIGKILL)
        return pid

    def kill_all(self):
        """kill -9 of everything, the supervisor and following commands first."""
        def end():
            pids = self.processes()
            for pid, words in sorted(pids.items(), key=lambda p: p[1][0] != self.weft):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not pids
        until(end, "no process is left", 10)
        for process in self.started:
            process.wait()

    def most_memory(self, task):
        """The largest resident size so far, in bytes."""
        with open(f"/proc/{self.pid(task)}/status", encoding="utf-8") as f:
            line = next(line for line in f if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024


def main(tests):
    """Runs the tests (functions of the path of weft), or those named on the command line. One that
    was skipped makes the file skipped, whatever else passed: give it a meson test of its own."""
    global running
    weft, only = sys.argv[1], sys.argv[2:]
    failed = skipped = 0
    running = True
    unknown = set(only) - {test.__name__ for test in tests}
    check(not unknown, f"there is no test {unknown}")
    for test in tests:
        if only and test.__name__ not in only:
            continue
        began = time.monotonic()
        try:
            test(weft)
            print(f"ok   {test.__name__}  {time.monotonic() - began:.1f} s", flush=True)
        except AssertionError as why:
            failed += 1
            print(f"FAIL {test.__name__}: {why}", flush=True)
        except Skipped as why:
            skipped += 1
            print(f"skipped {test.__name__}: {why}", flush=True)
    sys.exit(1 if failed else SKIP if skipped else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft's parameter servers beside TensorFlow's, in one run on the same cores: the MLP 784-128-10.

parameter_servers.py [--peers DIR] [--tensorflow PYTHON] [--batches 32,128,512] [--repeats 5]

weft: jobs of a few seconds on a cluster that is up, 1 + 1 and 2 + 2 in turns; the rate is all examples of the job
over the time from its first step to its end, with the ends of epochs and the last checkpoint in it. TensorFlow:
DIR/tf_ps.py (run PS WORKERS BATCH STEPS_PER_CALL), its best of 1 and 20 steps per call. Prints a table,
the ratios, the shares of a step, the time from launch to the first step (the median of several
starts), and resident memory. Ends with exit code 1 and a sentence where one side did not run.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WEFT = os.path.join(HERE, "..", "build", "cmd", "weft")
RECORDS = 60000
STARTS = 7
TENSORFLOW_S = 300

JOB = """
job: {name}
model:
  input: {{x: [784]}}
  layers:
    - dense: {{units: 128, activation: relu}}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
data: {{format: synthetic, records: {records}}}
batch: {batch}
epochs: {epochs}
optimizer: {{adam: {{learning_rate: 0.001}}}}
consistency: {{mode: async, pipeline: 1}}
seed: 1
"""


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """A cluster of weft's on tcp loopback in a temporary folder; without ps its worker holds the
    variables."""

    def __init__(self, ps, workers, threads, shared_memory=True, devices=("cpu",)):
        self.folder = tempfile.TemporaryDirectory()
        task = lambda extra="": "{address: tcp://127.0.0.1:%d%s}" % (free_port(), extra)
        lines = ["cluster: bench", "master: " + task()] + (["ps:"] if ps else [])
        lines += ["  - " + task() for _ in range(ps)]
        lines += [] if shared_memory else ["shared_memory: off"]
        lines += ["workers:"] + ["  - " + task(", threads: %d, devices: [%s]" % (threads, ", ".join(devices))) for _ in range(workers)]
        self.file = os.path.join(self.folder.name, "cluster.yaml")
        with open(self.file, "w") as f:
            f.write("\n".join(lines) + "\nstate_dir: .weft\n")

    def weft(self, *words):
        """What `weft words...` prints; ends the program with what it says where it fails."""
        done = subprocess.run([WEFT, *words], cwd=self.folder.name, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            said = (done.stderr.strip() or "nothing was said").splitlines()[-1]
            raise SystemExit(f"weft {' '.join(words)} ended with {done.returncode}: {said}")
        return done.stdout

    def __enter__(self):
        self.weft("up")
        return self

    def __exit__(self, *_):
        self.weft("down")
        self.folder.cleanup()

    def picture(self):
        return json.loads(self.weft("status", "--json"))

    def run(self, name, batch, epochs):
        """Examples per second of one job, and the shares of its workers' time."""
        file = os.path.join(self.folder.name, name + ".yaml")
        with open(file, "w") as f:
            f.write(JOB.format(name=name, records=RECORDS, batch=batch, epochs=epochs))
        before = self.spent()
        self.weft("train", file)
        job = [j for j in self.picture()["jobs"] if j["job"] == name][0]
        spent = {k: v - before[k] for k, v in self.spent().items()}
        return RECORDS * epochs / job["elapsed_s"], spent

    def spent(self):
        keys = ("compute_s", "transfer_s", "wait_s", "data_s")
        workers = [t for t in self.picture()["tasks"] if t["role"] == "worker"]
        return {k: sum(t[k] for t in workers) for k in keys}

    def resident_mib(self):
        """The most that each process has held, by task."""
        out = {}
        for t in self.picture()["tasks"]:
            with open("/proc/%d/status" % t["pid"]) as f:
                out[t["task"]] = int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) / 1024
        return out


class Side:
    """weft in one topology: what its runs have reached. Each turn has a cluster of its own, since what one makes
    differs more from start to start than from job to job."""

    def __init__(self, ps, workers, threads):
        self.shape = (ps, workers, threads)
        self.rates, self.spent, self.memory = [], {}, {}

    def turn(self, batch):
        rate = {32: 50e3, 128: 130e3, 512: 200e3}.get(batch, 50e3)
        with Cluster(*self.shape) as c:
            c.run("warm", batch, 2)
            rate, spent = c.run("turn", batch, max(2, int(4 * rate / RECORDS)))
            self.memory = c.resident_mib()
        self.rates.append(rate)
        self.spent = {k: self.spent.get(k, 0) + v for k, v in spent.items()}

    def median(self):
        return statistics.median(self.rates)

    def row(self, batch):
        whole = sum(self.spent.values()) or 1
        shares = "  ".join("%s %.0f %%" % (k[:-2], 100 * v / whole) for k, v in self.spent.items())
        return "| weft %d ps + %d workers, %d threads | %d | %.0f (%.0f-%.0f) | %s | %s |" % (
            *self.shape, batch, self.median(), min(self.rates), max(self.rates), shares,
            ", ".join("%s %.0f" % (k, v) for k, v in self.memory.items()))


def measure_weft(batch, turns):
    """Examples per second of 1 + 1, with the better number of threads; and how 2 + 2 compare, in words."""
    ones, two = [Side(1, 1, 1), Side(1, 1, 2)], Side(2, 2, 1)
    sides = [*ones, two]
    for turn in range(turns):
        for side in sides if turn % 2 == 0 else sides[::-1]:
            side.turn(batch)
    print("\n".join(side.row(batch) for side in sides), flush=True)
    one = max(ones, key=Side.median)
    of_turns = [t / o for t, o in zip(two.rates, one.rates)]
    return one.median(), "batch %d: 2 + 2 over 1 + 1: medians %.2f; of each turn %s, their median %.2f" % (
        batch, two.median() / one.median(), " ".join("%.2f" % r for r in of_turns), statistics.median(of_turns))


def run_tensorflow(python, peers, ps, workers, batch, steps, *options):
    """The cells of the row that tf_ps.py prints."""
    words = [python, os.path.join(peers, "tf_ps.py"), "run", str(ps), str(workers), str(batch), str(steps), *options]
    try:
        done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=TENSORFLOW_S)
    except subprocess.TimeoutExpired:
        raise SystemExit("TensorFlow did not run: %s took over %d s" % (" ".join(words), TENSORFLOW_S)) from None
    row = [l for l in done.stdout.splitlines() if l.startswith(("| mlp", "| deepfm"))]
    if not row:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing was printed").splitlines()
        raise SystemExit("TensorFlow did not run: %s ended with %d: %s" % (
            " ".join(words), done.returncode, last[-1]))
    return [c.strip() for c in row[0].strip("| ").split("|")]


def measure_tensorflow(python, peers, ps, workers, batch):
    best = 0
    for steps in (20, 1):
        cells = run_tensorflow(python, peers, ps, workers, batch, steps)
        print("| tensorflow %d ps + %d workers, %d steps per call | %d | %s | | RSS MiB %s |" % (
            ps, workers, steps, batch, cells[3], cells[6]), flush=True)
        best = max(best, float(cells[3].split()[0]))
    return best


def first_step_s():
    """From `weft train` to the first step, cluster and all: the loss log's first line."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "loss")
        job = os.path.join(folder, "job.yaml")
        cluster = Cluster(1, 1, 1)
        with open(job, "w") as f:
            f.write(JOB.format(name="first", records=RECORDS, batch=32, epochs=1))
        began = time.monotonic()
        p = subprocess.Popen([WEFT, "train", job, "--cluster", cluster.file], cwd=folder,
                             env=dict(os.environ, WEFT_LOSS_LOG=log), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        while not (os.path.exists(log) and os.path.getsize(log)):
            if time.monotonic() - began > 30 or p.poll() is not None:
                raise SystemExit("no first step within 30 s")
            time.sleep(0.002)
        took = time.monotonic() - began
        p.wait()
        cluster.folder.cleanup()
        return took


def check_tensorflow(python, peers):
    """Before minutes are spent on weft's side."""
    script = os.path.join(peers, "tf_ps.py")
    if not os.path.exists(script):
        raise SystemExit("parameter_servers.py: there is no %s; give its folder with --peers" % script)
    try:
        done = subprocess.run([python, "-c", "import tensorflow, tf_keras"], text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as why:
        raise SystemExit("parameter_servers.py: --tensorflow %s: %s" % (python, why))
    if done.returncode:
        raise SystemExit("parameter_servers.py: --tensorflow %s: %s" % (
            python, done.stderr.strip().splitlines()[-1]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--peers", default=os.path.join(os.environ.get("WEFT_SHARED", HERE + "/../../shared"), "peers"))
    p.add_argument("--tensorflow", default=os.environ.get("T"), help="a Python with tensorflow and tf_keras")
    p.add_argument("--batches", default="32,128,512")
    p.add_argument("--repeats", type=int, default=5)
    a = p.parse_args()
    if a.tensorflow:
        check_tensorflow(a.tensorflow, a.peers)
    print("load before: %.2f" % os.getloadavg()[0])
    print("| what | batch | examples/s: median (min-max) | shares of a step | resident MiB |\n|---|---|---|---|---|")
    ratios = []
    for batch in map(int, a.batches.split(",")):
        one, compared = measure_weft(batch, a.repeats)
        ratios.append(compared)
        if a.tensorflow:
            tf = measure_tensorflow(a.tensorflow, a.peers, 1, 1, batch)
            ratios[-1] += "; weft over TensorFlow, 1 + 1: %.2f" % (one / tf)
    print("\n".join(ratios))
    times = [first_step_s() for _ in range(STARTS)]
    print("launch to first step: %.2f s (%.2f-%.2f), the median of %d starts" % (
        statistics.median(times), min(times), max(times), STARTS))
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A long job under faults without end: kills, terms, stops and those of connections.

    soak.py WEFT MINUTES SEED [--only KIND,KIND] [--pause SECONDS]

In the first third of the time any task may be killed. Then only ps/1 and worker/2 are, so that the
others grow old under all other faults, rollbacks included; of these memory and descriptors are judged.
It must hold:
  - after each fault's end every worker trains on within 5 s;
  - resident memory: the median of the last quarter of the time is at most 5 % + 4 MiB above that of
    the first quarter; descriptors: the most of the last quarter are at most 4 more than the most of
    the first (connections that are being dialled anew);
  - the job ends done and its ledger is exact: no acknowledged update of the surviving history is lost.
"""
import argparse
import os
import random
import statistics
import sys
import threading
import time

from weftlib import check, needs

needs("numpy", "onnx")
import drill  # noqa: E402
from disturb import KINDS, Disturber  # noqa: E402
from proxied import ProxiedCluster  # noqa: E402

MOVES_WITHIN_S = 5
MEMORY_PART, MEMORY_BYTES, MORE_DESCRIPTORS = 1.05, 4 << 20, 4
OLD = ("supervisor", "master", "ps/0", "worker/0", "worker/1")


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Samples of the old tasks: {task: [(pid, bytes, descriptors)]}, once a second."""

    def __init__(self, cluster):
        self.c, self.samples, self.over = cluster, {task: [] for task in OLD}, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.over.wait(1):
            for task, rows in self.samples.items():
                try:
                    pid = self.c.supervisor() if task == "supervisor" else self.c.pid(task)
                    rows.append((pid, resident(pid), len(os.listdir(f"/proc/{pid}/fd"))))
                except (OSError, ValueError):
                    pass  # it has just been replaced: judge() finds two pids

    def end(self):
        self.over.set()
        self.thread.join()

    def judge(self):
        bad = []
        for task, rows in self.samples.items():
            check(len(rows) >= 8, f"{task} has been seen {len(rows)} times only")
            n, pids = len(rows) // 4, {pid for pid, _, _ in rows}
            first, last = rows[:n], rows[-n:]
            memory = [statistics.median(b for _, b, _ in part) for part in (first, last)]
            descriptors = [max(d for _, _, d in part) for part in (first, last)]
            print(f"     {task:<10}  resident {memory[0] / 2**20:.1f} -> {memory[1] / 2**20:.1f} MiB  "
                  f"descriptors {descriptors[0]} -> {descriptors[1]}", flush=True)
            if len(pids) > 1:
                bad.append(f"{task} was started again {len(pids) - 1} times")
            elif memory[1] > MEMORY_PART * memory[0] + MEMORY_BYTES:
                bad.append(f"the memory of {task} grows")
            elif descriptors[1] > descriptors[0] + MORE_DESCRIPTORS:
                bad.append(f"the descriptors of {task} grow")
        check(not bad, "; ".join(bad))


def disturb_until(end, job, disturber, pause):
    n = 0
    while time.monotonic() < end:
        time.sleep(disturber.rng.uniform(0, 2 * pause))  # the pace that was asked for
        what, ended = disturber.disturb()
        n += 1
        job.moves_again(f"fault {n}, {what}", MOVES_WITHIN_S, everyone=True, since=ended)
    return n


def soak(weft, minutes, seed, kinds, pause):
    rng = random.Random(seed)
    with ProxiedCluster(weft) as c:
        job, disturber = drill.Job(c, seed, every_steps=1000), Disturber(c, rng, kinds)
        job.begin()
        begin = time.monotonic()
        n = disturb_until(begin + minutes * 20, job, disturber, pause)
        disturber.mortal = ["ps/1", "worker/2"]
        watch = Watch(c)
        n += disturb_until(begin + minutes * 60, job, disturber, pause)
        watch.end()
        again = job.finish()
        worst = max(job.stood_still[1:], key=lambda f: f[1])
        print(f"     {n} faults in {minutes:g} minutes, the longest wait {worst[1]:.2f} s after "
              f"{worst[0]}; {job.epochs} epochs, {job.lost_workers()} workers lost, 0 updates lost, "
              f"{again} records trained again", flush=True)
        watch.judge()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("weft")
    options.add_argument("minutes", type=float)
    options.add_argument("seed", type=int)
    options.add_argument("--only", default=",".join(KINDS))
    options.add_argument("--pause", type=float, default=0.5, help="mean seconds between two faults")
    words = options.parse_args()
    try:
        soak(words.weft, words.minutes, words.seed, words.only.split(","), words.pause)
    except AssertionError as why:
        print(f"FAIL seed {words.seed}: {why}", flush=True)
        sys.exit(1)
    print(f"ok   seed {words.seed}", flush=True)


main()

# SPDX-License-Identifier: Apache-2.0
"""What the drills share: a ledger job that trains while something is done to its processes, and the
count of its records at the end.

    job = drill.Job(cluster, seed)
    job.begin()
    ...disturb the cluster...
    job.moves_again("the stop of ps/0", seconds=3)
    job.finish()

The job has more epochs than it will ever train. finish() stops it with a checkpoint and recovers it
with an epoch or two to go, so that it ends done, whenever that is; then the weights say how often each
record was trained.
"""
import re
import sys
import time

from weftlib import check, needs, until

needs("numpy", "onnx")
import ledger  # noqa: E402

RECORDS, SPLIT, BATCH = 2048, 64, 4
# A worker has a split in hand and the next one ahead of it.
SPLITS_IN_HAND = 2
ENDLESS = 100_000


def seeds_of(words):
    """The seeds that are meant by words as 7 and 1-200."""
    for word in words:
        first, _, last = word.partition("-")
        yield from range(int(first), int(last or first) + 1)


def run_seeds(drill_seed, words, options=""):
    """Runs a drill with each seed and ends the process. `options`: what stands behind the seeds on the
    command line, for the commands that run again what failed."""
    failed = []
    for seed in seeds_of(words):
        try:
            drill_seed(seed)
        except AssertionError as why:
            failed.append(seed)
            print(f"FAIL seed {seed}: {why}", flush=True)
    for seed in failed:
        print(f"again: {sys.argv[0]} {sys.argv[1]} {seed}{options}")
    sys.exit(1 if failed else 0)


class Job:
    """The ledger job of a cluster."""

    def __init__(self, cluster, seed, every_steps=1000, pipeline=1, accumulate=1):
        self.c, self.epochs, self.stood_still = cluster, ENDLESS, []
        ledger.write_job(cluster.folder, RECORDS, ENDLESS, batch=BATCH // accumulate,
                         split_records=SPLIT, every_steps=every_steps, pipeline=pipeline, seed=seed,
                         accumulate=accumulate)

    def begin(self):
        self.c.must("up")
        self.c.must("submit", "ledger.yaml")
        self.moves_again("the start", 20, everyone=True)

    def moves_again(self, after, seconds, everyone=False, since=None):
        """Waits until the step that the master tells has grown (`everyone`: that of each worker, and of
        a process that is still there), and notes how long that took since the time `since`. The first
        step that it tells may be old news, and a rollback begins with a smaller one."""
        began, seen, moved = since or time.monotonic(), {}, set()
        wall = time.time() - (time.monotonic() - began)

        def look():
            picture = self.c.status()
            job = next((j for j in (picture or {"jobs": []})["jobs"] if j["job"] == "ledger"), None)
            if not job or job["state"] != "running":
                return False
            keys = []
            for row in [job] + [t for t in picture["tasks"] if everyone and t["role"] == "worker"]:
                key = (job["generation"], row.get("task"), row.get("pid"))
                keys.append(key)
                if row["step"] > seen.setdefault(key, row["step"]):
                    moved.add(key)
            return all(key in moved for key in keys)

        try:
            until(look, f"{'every worker' if everyone else 'the job'} trains on after {after}", seconds)
        except AssertionError as why:
            raise AssertionError(f"{why}; {self.picture()}; {self.who_waits(wall)}") from None
        self.stood_still.append((after, time.monotonic() - began))

    def who_waits(self, since):
        """What the status, and the logs since a time of this host's clock, say of waits for a task, or
        that they say nothing: what stands still must not be silent about it."""
        waits = re.compile(r"\bwait(s|ing|ed)?\b.*\b(master|ps|worker)\b")
        said = [line.strip() for line in self.c.run("status").out.split("\n") if waits.search(line)]
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
        said += [line for line in self.c.logs().split("\n") if line > when and waits.search(line)]
        return "said: " + " | ".join(said[-6:]) if said else "NOBODY SAYS WHO WAITS FOR WHOM"

    def picture(self):
        """State, reasons and who is missing, in a line, for a failure's message."""
        picture = self.c.status()
        if not picture:
            return "the master does not answer"
        tasks = ", ".join(f"{t['task']} {t['state']} {t['reason']}" for t in picture["tasks"])
        jobs = ", ".join(f"{j['job']} {j['state']} generation {j['generation']} step {j['step']} "
                         f"{j['reason']}" for j in picture["jobs"])
        return f"{jobs}; {tasks}"

    def finish(self, seconds=60):
        """Ends the job done, an epoch or two from where it stands, and counts its records. Gives the
        number of those that were trained once more than there are epochs."""
        self.c.must("stop", "ledger", timeout=seconds)
        job = self.c.job("ledger")
        check(job["state"] == "stopped", f"after weft stop the job is {self.picture()}")
        self.epochs = job["epoch"] + 1
        self.c.must("recover", "ledger", "--set", f"epochs={self.epochs}", timeout=seconds)
        job = self.c.job("ledger")
        check(job["state"] == "done", f"after weft recover the job is {self.picture()}")
        return self.count(self.lost_workers())

    def lost_workers(self):
        """How many incarnations of workers the master has given up, as its log says."""
        with open(self.c.path(".weft", "logs", "master-0.log"), encoding="utf-8") as f:
            return len(re.findall(r"member\.lost task=worker", f.read()))

    def count(self, repeats):
        """Every record at least once an epoch, and no more repeats than so many deaths of workers
        explain. A rollback takes back what was trained again before it."""
        self.c.must("export", "ledger", "-o", self.c.path("out.onnx"))
        counts = ledger.read_counts(self.c.path("out.onnx"))
        check((counts == counts.round()).all(), f"counts are no whole numbers: {counts.tolist()}")
        again = int(counts.sum()) - RECORDS * self.epochs
        check(counts.max() <= self.epochs + repeats, f"record {counts.argmax()} was trained "
              f"{counts.max():.0f} times in {self.epochs} epochs, with {repeats} deaths of workers")
        check(counts.min() >= self.epochs, f"record {counts.argmin()} was trained "
              f"{counts.min():.0f} times in {self.epochs} epochs")
        check(again <= repeats * SPLITS_IN_HAND * SPLIT,
              f"{again} records were trained again after {repeats} deaths of workers")
        return again

    def report(self):
        return ", ".join(f"{after} {s:.2f} s" for after, s in self.stood_still)

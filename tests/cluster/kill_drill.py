# SPDX-License-Identifier: Apache-2.0
"""Kills every kind of process with -9 while a job trains, and counts what became of each record.

    kill_drill.py WEFT SEED...

A seed may be a range, as 1-9. It chooses moments, order, transport and pipeline. One run: a cluster
of 2 ps + 2 workers trains the ledger model; a worker, the chief, a ps and the master are killed one after the other;
then everything that runs, and `weft recover` ends the job. A seed divisible by 3 kills ps only
before it kills everything: such deaths take the whole job back to a checkpoint, so that nothing may
be trained twice. Of every four seeds one has steps of two batches.

It must hold:
  - the job ends done, exit 0, and no process is left;
  - every record was trained at least once an epoch on the history that survives; exactly once an
    epoch where no worker died alone; and each such death repeats no more than the splits in hand;
  - training moves again within 5 s of each kill.
"""
import random
import sys
import time

from weftlib import Cluster, check, needs, until

needs("numpy", "onnx")
import drill  # noqa: E402
import ledger  # noqa: E402
from drill import RECORDS, SPLIT, SPLITS_IN_HAND  # noqa: E402

MOVES_WITHIN_S = 5


class Run:
    def __init__(self, cluster, seed):
        self.c, self.seed, self.luck = cluster, seed, random.Random(seed)
        self.epochs = 70
        self.exact = seed % 3 == 0
        self.stood_still = []
        self.worker_deaths = 0
        accumulate = 2 if seed % 4 == 2 else 1
        ledger.write_job(cluster.folder, RECORDS, self.epochs, batch=4 // accumulate,
                         split_records=SPLIT, every_steps=self.luck.choice([500, 1000, 3000]),
                         pipeline=self.luck.choice([0, 1]), seed=seed, accumulate=accumulate)

    def let_run(self, steps):
        """Until the job has made so many steps more in the generation it is in."""
        job = self.c.until_job("ledger", lambda j: j["state"] == "running", "runs")
        goal, generation = job["step"] + steps, job["generation"]
        return self.c.until_job("ledger",
                                lambda j: j["step"] >= goal or j["generation"] != generation,
                                f"reaches step {goal} of generation {generation}")

    def train_on(self, killed, run=None):
        """Measures how long training stands still: until the step that the master tells grows. The
        first that it tells may be old news, and a rollback begins with a smaller one. What little is
        left of the job may also be over, and the command that runs it, before this looks."""
        began, seen = time.monotonic(), {}

        def moved():
            job = self.c.job("ledger")
            if run and run.poll() is not None or job and job["state"] == "done":
                return True
            if not job or job["state"] != "running":
                return False
            return job["step"] > seen.setdefault(job["generation"], job["step"])

        until(moved, f"trains on after the death of {killed}", MOVES_WITHIN_S)
        self.stood_still.append((killed, time.monotonic() - began))

    def kill_one(self, task):
        job = self.let_run(self.luck.randrange(50, 3000))
        check(job["state"] == "running", f"the job is {job['state']} before all was killed")
        self.c.kill(task)
        self.worker_deaths += task.startswith("worker")
        self.train_on(task)

    def run(self):
        self.c.must("up")
        self.c.must("submit", "ledger.yaml")
        tasks = ["worker/1", "worker/0", f"ps/{self.luck.randrange(2)}", "master"]
        if self.exact:
            tasks = ["ps/0", "ps/1"]
        self.luck.shuffle(tasks)
        for task in tasks:
            self.kill_one(task)
        self.let_run(self.luck.randrange(50, 3000))
        job = self.c.job("ledger")
        check(job and job["state"] == "running", "the job ended before everything was killed")
        self.c.kill_all()
        recovery = self.c.start("recover", "ledger")
        self.train_on("everything", recovery)
        result = self.c.end_of(recovery)
        check(result.code == 0, f"weft recover: {result}")
        until(lambda: not self.c.processes(), "no process is left", 10)

    def count(self):
        self.c.must("export", "ledger", "-o", self.c.path("out.onnx"))
        counts = ledger.read_counts(self.c.path("out.onnx"))
        twice = int(counts.sum()) - RECORDS * self.epochs
        check(counts.min() >= self.epochs,
              f"record {counts.argmin()} was trained {counts.min():.0f} times in {self.epochs} "
              "epochs")
        check(twice <= self.worker_deaths * SPLITS_IN_HAND * SPLIT,
              f"{twice} records were trained again after {self.worker_deaths} deaths of workers")
        return twice


def drill_seed(weft, seed):
    with Cluster(weft, transport="tcp" if seed % 2 else "ipc") as c:
        run = Run(c, seed)
        began = time.monotonic()
        run.run()
        twice = run.count()
        stood = ", ".join(f"{task} {s:.2f} s" for task, s in run.stood_still)
        print(f"ok   seed {seed}  {time.monotonic() - began:.1f} s  trains on after {stood}; "
              f"{twice} records trained again", flush=True)


drill.run_seeds(lambda seed: drill_seed(sys.argv[1], seed), sys.argv[2:])

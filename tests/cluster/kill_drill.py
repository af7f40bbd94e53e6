# SPDX-License-Identifier: Apache-2.0
"""Kills every kind of process with -9 while a job trains, and counts what became of each record.

    kill_drill.py WEFT SEED...

A seed may be a range, as 1-9. It chooses moments, order, transport (of each four seeds one has direct
connections, two ZeroMQ's socket and one tcp, both behind shared memory) and pipeline. One run: a cluster
of 2 ps + 2 workers trains the ledger model; a worker, the chief, a ps and the master are killed one after the other;
then everything that runs, and `weft recover` ends the job. A seed divisible by 3 kills ps only
before it kills everything: such deaths take the whole job back to a checkpoint, so that nothing may
be trained twice. Of every four seeds one has steps of two batches.

It must hold:
  - the job ends done, exit 0, and no process is left;
  - every record was trained at least once an epoch on the history that survives; exactly once an
    epoch where no worker died alone; and each such death repeats no more than the splits in hand;
  - training moves again within 5 s of each kill;
  - direct connections are made again after each death of a worker or ps.
"""
import os
import random
import sys
import time

from weftlib import Cluster, check, needs, until

needs("numpy", "onnx")
import drill  # noqa: E402

MOVES_WITHIN_S, EPOCHS_LEFT, END_S = 5, 40, 120


class Run:
    def __init__(self, cluster, seed):
        self.c, self.rng, self.exact = cluster, random.Random(seed), seed % 3 == 0
        self.job = drill.Job(cluster, seed, every_steps=self.rng.choice([500, 1000, 3000]),
                             pipeline=self.rng.choice([0, 1]), accumulate=2 if seed % 4 == 2 else 1)

    def let_run(self, steps):
        """Until the job has made so many steps more in the generation it is in."""
        job = self.c.until_job("ledger", lambda j: j["state"] == "running", "runs")
        goal, generation = job["step"] + steps, job["generation"]
        self.c.until_job("ledger", lambda j: j["step"] >= goal or j["generation"] != generation,
                         f"reaches step {goal} of generation {generation}")

    def kill_each(self):
        """Gives the number of workers that were killed."""
        tasks = ["worker/1", "worker/0", f"ps/{self.rng.randrange(2)}", "master"]
        if self.exact:
            tasks = ["ps/0", "ps/1"]
        self.rng.shuffle(tasks)
        for task in tasks:
            self.let_run(self.rng.randrange(50, 3000))
            self.c.kill(task)
            self.job.moves_again(task, MOVES_WITHIN_S)
        return sum(task.startswith("worker") for task in tasks)

    def kill_everything(self):
        """The job that is recovered has an end, some seconds away."""
        self.let_run(self.rng.randrange(50, 3000))
        self.job.epochs = self.c.job("ledger")["epoch"] + EPOCHS_LEFT
        self.c.kill_all()
        recovery = self.c.start("recover", "ledger", "--set", f"epochs={self.job.epochs}")
        self.job.moves_again("everything", MOVES_WITHIN_S)
        result = self.c.end_of(recovery, END_S)
        check(result.code == 0, f"weft recover: {result}")
        until(lambda: not self.c.processes(), "no process is left", 10)


def direct_connections(c):
    """How many the workers have made since the cluster began."""
    made = 0
    for name in os.listdir(c.path(".weft", "logs")):
        if name.startswith("worker"):
            with open(c.path(".weft", "logs", name), encoding="utf-8") as f:
                made += sum(" net.stream " in line for line in f)
    return made


def drill_seed(weft, seed):
    direct = seed % 4 == 3
    with Cluster(weft, transport="tcp" if seed % 2 else "ipc", more="shared_memory: off" if direct else "") as c:
        run, began = Run(c, seed), time.monotonic()
        run.job.begin()
        deaths = run.kill_each()
        before = direct_connections(c)
        run.kill_everything()
        after = direct_connections(c)
        # Two workers have one to each of two ps, and everything was killed once more. With shared memory a
        # few are made while a ps that starts again does not listen there yet.
        check(not direct or (before >= 4 and after >= before + 4), f"direct connections: {before}, {after}")
        again = run.job.count(deaths)
        print(f"ok   seed {seed}  {time.monotonic() - began:.1f} s  trains on after {run.job.report()}; "
              f"{again} records trained again", flush=True)


drill.run_seeds(lambda seed: drill_seed(sys.argv[1], seed), sys.argv[2:])

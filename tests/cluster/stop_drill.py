# SPDX-License-Identifier: Apache-2.0
"""Stops (SIGSTOP) a worker, a ps, the master and the supervisor, one after the other and each for longer
than a silence may last, while a ledger job trains.

    stop_drill.py WEFT SEED...

A seed may be a range, as 1-9. It chooses the order. A stop of 8 s outlasts the heartbeats of ZeroMQ, so that connections are
dropped by one side and dialled anew before the other one wakes. It must hold:
  - every worker trains on within 5 s of each end of a stop;
  - the supervisor that was stopped is the supervisor afterwards, and the parent of all tasks;
  - the job ends done, and its ledger is exact.
"""
import os
import random
import signal
import sys
import time

from weftlib import Cluster, check, needs

needs("numpy", "onnx")
import drill  # noqa: E402

STOP_S, MOVES_WITHIN_S = 8, 5


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def drill_seed(weft, seed):
    rng = random.Random(seed)
    with Cluster(weft, transport="tcp" if seed % 2 else "ipc") as c:
        job = drill.Job(c, seed)
        job.begin()
        supervisor = c.supervisor()
        order = ["worker/0", f"ps/{rng.randrange(2)}", "master", "supervisor"]
        rng.shuffle(order)
        for what in order:
            pid = supervisor if what == "supervisor" else c.pid(what)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STOP_S)  # the fault itself
            os.kill(pid, signal.SIGCONT)
            job.moves_again(f"the stop of {what}", MOVES_WITHIN_S, everyone=True)
        check(c.supervisor() == supervisor, "there is another supervisor")
        for task in c.tasks():
            check(parent(c.pid(task)) == supervisor, f"{task} is no child of the supervisor")
        again = job.finish()
        print(f"ok   seed {seed}  {job.report()}; {again} records trained again", flush=True)


drill.run_seeds(lambda seed: drill_seed(sys.argv[1], seed), sys.argv[2:])

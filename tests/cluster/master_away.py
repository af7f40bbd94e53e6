# SPDX-License-Identifier: Apache-2.0
"""master_away.py WEFT - the master's process stands still for longer than any task may be silent, or
comes back to another cluster.yaml.

Workers train on meanwhile with the splits in hand. When the master runs again it gives nobody up:
that it heard nothing is no evidence against anybody.
"""
import os
import signal
import time

from weftlib import Cluster, main, needs, until

needs("numpy", "onnx")
import ledger  # noqa: E402

STOPPED_S = 8  # dead_ms is 5000


def nobody_is_given_up_for_the_masters_absence(weft):
    with Cluster(weft, ps=1, workers=3) as c:
        ledger.write_job(c.folder, 2048, 10000, batch=4, split_records=64, every_steps=5000, pipeline=0,
                         seed=1, accumulate=1)
        c.must("up")
        c.must("submit", "ledger.yaml")
        c.until_job("ledger", lambda j: j["step"] > 100, "it trains")
        pids = {task: c.pid(task) for task in c.tasks()}
        os.kill(pids["master"], signal.SIGSTOP)
        time.sleep(STOPPED_S)  # the fault itself
        os.kill(pids["master"], signal.SIGCONT)
        before = until(lambda: c.job("ledger"), "an answer of the master")["step"]
        c.until_job("ledger", lambda j: j["step"] > before + 100, "it trains on")
        time.sleep(STOPPED_S)  # nothing is waited for: whom the master held for silent would go now
        assert {task: c.pid(task) for task in c.tasks()} == pids
        assert "member.lost" not in c.logs(), c.logs()
        job = c.job("ledger")
        assert job["state"] == "running" and job["generation"] == 1, job


def a_ps_that_is_no_longer_named_takes_the_job_back(weft):
    """What it holds is lost to the job, which goes on from its checkpoint with the others."""
    with Cluster(weft, ps=2, workers=2) as c:
        ledger.write_job(c.folder, 2048, 20, batch=4, split_records=64, every_steps=100, pipeline=0, seed=1,
                         accumulate=1)
        c.must("up")
        c.must("submit", "ledger.yaml")
        c.until_job("ledger", lambda j: j["step"] > 300 and c.checkpoints("ledger"), "a checkpoint")
        c.resize(1)
        c.kill("master")
        job = c.until_job("ledger", lambda j: j["state"] == "done" or j["generation"] > 1, "another generation")
        assert job["generation"] == 2, job
        c.until_job("ledger", lambda j: j["state"] == "done", "its end")
        assert "ps/1: it is no longer in cluster.yaml" in c.read(".weft/jobs/ledger#1/events.jsonl")


if __name__ == "__main__":
    main([nobody_is_given_up_for_the_masters_absence, a_ps_that_is_no_longer_named_takes_the_job_back])

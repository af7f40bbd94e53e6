# SPDX-License-Identifier: Apache-2.0
"""hung.py WEFT - a process that stands still, as by SIGSTOP, is killed by its supervisor and started again."""
import os
import re
import signal

from weftlib import Cluster, check, main, needs, until

needs("numpy", "onnx")
import small  # noqa: E402


def hold(c, *tasks):
    """Stops these tasks while a job trains, until each has another process. Gives the job before, and the processes
    that were stopped."""
    small.write_job(c, epochs=100000, every_steps=400)
    c.must("up")
    c.must("submit", "small.yaml")
    job = c.until_job("small", lambda j: j["checkpoint"], "a checkpoint")
    before = {task: c.pid(task) for task in c.tasks()}
    for task in tasks:
        os.kill(before[task], signal.SIGSTOP)
    until(lambda: all(c.pid(task) not in (before[task], None) for task in tasks), "other processes", 40)
    same = {task for task in before if c.pid(task) == before[task]}
    check(same == set(before) - set(tasks), f"{same} run as before")
    return job, before


def a_job_goes_on_when_a_ps_and_a_worker_hang(weft):
    with Cluster(weft, more="heartbeat_ms: 200\ndead_ms: 1000\n") as c:
        job, before = hold(c, "ps/0", "worker/1")
        c.until_job("small", lambda j: j["generation"] > job["generation"] and j["state"] == "running"
                    and j["checkpoint"] > job["checkpoint"], "it trains on")
        events = c.read(os.path.join(".weft", "jobs", "small#1", "events.jsonl"))
        check(re.search(r"ps/0: nothing heard for \d\.\d s", events), events[-2000:])
        log = c.read(os.path.join(".weft", "logs", "supervisor.log"))
        for task in "ps/0", "worker/1":
            check(re.search(rf'task.died task={task} pid={before[task]} how="it hung \(nothing heard for \d\.\d s\), '
                            'and was killed"', log), log[-2000:])
        c.must("down")


def a_job_goes_on_when_the_master_hangs(weft):
    with Cluster(weft, more="heartbeat_ms: 200\ndead_ms: 1000\nstuck_ms: 2000\n") as c:
        job, _ = hold(c, "master")
        after = c.until_job("small", lambda j: j["state"] == "running" and j["step"] > job["step"] + 1000, "it trains on")
        check(after["generation"] == job["generation"], str(after))
        c.must("down")


main([a_job_goes_on_when_a_ps_and_a_worker_hang, a_job_goes_on_when_the_master_hangs])

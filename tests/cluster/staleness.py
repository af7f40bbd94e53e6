# SPDX-License-Identifier: Apache-2.0
"""consistency: {mode: ssp}: workers that wait for each other, and how stale their gradients are."""
import os
import signal

import numpy as np
import small
from weftlib import Cluster, check, main, until

PUSHES = 20 * 64 * 5  # epochs, steps, slices
PATIENT = "dead_ms: 60000\nstuck_ms: 60000"


def ssp(staleness, more=""):
    return [("seed: 1", f"consistency: {{mode: ssp, staleness: {staleness}{more}}}\nseed: 1")]


def tasks_of(c):
    return until(c.status, "the master answers")["tasks"]


def steps_of(c):
    return {t["task"]: t["step"] for t in tasks_of(c) if t["role"] == "worker"}


def a_stopped_worker_holds_the_others_who_are_told_for_whom_they_wait(weft):
    with Cluster(weft, more=PATIENT) as c:
        # Long epochs in large splits: a worker is stopped in the middle of its steps.
        small.write_job(c, epochs=100, every_steps=1000000, change=ssp(3) + [
            ("  eval: {x: x.npy, y: y.npy}\n", ""), ("split_records: 64", "split_records: 20000")])
        for name in ("x.npy", "y.npy"):
            np.save(c.path(name), np.concatenate([np.load(c.path(name))] * 400))
        c.must("up")
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 300 and j["staleness"], "trains")
        pid = c.pid("worker/1")
        os.kill(pid, signal.SIGSTOP)
        try:
            def held():
                ps = [t for t in tasks_of(c) if t["role"] == "ps" and t["waits"]]
                return ps and "which worker/0 waits for (staleness 3)" in ps[0]["waits"]["what"] and ps
            waits = until(held, "a ps says that worker/0 waits")[0]["waits"]
            check(waits["for"] == "worker/1", str(waits))
            # What a worker tells of its step is up to a heartbeat old: the first look is two behind.
            until(lambda: held() and held()[0]["waits"]["since_s"] > 2, "two seconds pass")
            step = steps_of(c)["worker/0"]
            until(lambda: held() and held()[0]["waits"]["since_s"] > 4, "two more seconds pass")
            check(steps_of(c)["worker/0"] == step, "worker/0 went on")
        finally:
            os.kill(pid, signal.SIGCONT)
        c.until_job("small", lambda j: j["step"] > 2 * step + 500, "goes on")
        os.kill(pid, signal.SIGKILL)  # nobody waits for the dead, and the next one joins
        before = steps_of(c)["worker/0"]
        until(lambda: steps_of(c)["worker/0"] > before + 200, "goes on without it")
        until(lambda: all(t["state"] == "training" for t in tasks_of(c)
                                         if t["role"] == "worker"), "both train again")
        now = steps_of(c)
        until(lambda: all(steps_of(c)[w] > now[w] + 200 for w in now), "and both go on")
        training.send_signal(signal.SIGINT)
        check(c.end_of(training).code == 5, str(c.end_of(training)))


def stale_by_no_more_than_the_steps_of_all(weft):
    """Between a pull and its push each other worker makes at most 2 s + 2 steps."""
    for staleness, pipeline in ((0, 0), (1, 1)):
        with Cluster(weft, workers=4) as c:
            small.write_job(c, epochs=20, change=ssp(staleness, f", pipeline: {pipeline}"))
            c.must("up")
            c.must("train", "small.yaml")
            job = c.until_job("small", lambda j: j["staleness"] and j["staleness"]["pushes"] == PUSHES,
                              "the ps have told of all pushes")
            most = 3 * (2 * staleness + 2) + pipeline
            check(job["staleness"]["most"] <= most, f"{job['staleness']} > {most}")
            check(job["eval"]["accuracy"] > 0.9, str(job["eval"]))
            check(job["step"] == 20 * 64, str(job["step"]))
            print(f"     staleness {staleness}, pipeline {pipeline}: {job['staleness']}")


def one_worker_waits_for_nobody_and_wrong_settings_are_named(weft):
    with Cluster(weft, ps=1, workers=1) as c:
        small.write_job(c, epochs=20, change=ssp(0))
        c.must("up")
        c.must("train", "small.yaml")
        check(c.job("small")["step"] == 20 * 64, "all steps")
        job = c.until_job("small", lambda j: j["staleness"], "the ps has told")
        check(job["staleness"]["most"] == 0, str(job["staleness"]))
        said = c.must("train", "small.yaml", "--set", "consistency.mode=async", code=2).err
        check('"staleness" says how far workers may be apart' in said, said)


main([a_stopped_worker_holds_the_others_who_are_told_for_whom_they_wait,
      stale_by_no_more_than_the_steps_of_all,
      one_worker_waits_for_nobody_and_wrong_settings_are_named])

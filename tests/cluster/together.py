# SPDX-License-Identifier: Apache-2.0
"""consistency: {mode: bsp}: workers that make each step together, and backups that nobody waits for."""
import glob
import json
import os
import signal

import numpy as np
import small
from safetensors.numpy import load_file
from weftlib import Cluster, check, main, until


def mode(text):
    return [("seed: 1", f"consistency: {{{text}}}\nseed: 1")]


def checkpoint(c, job):
    """Variables of the newest checkpoint, and how many updates each of their slices has had."""
    folder = c.saved(job, c.checkpoints(job)[-1])
    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    arrays, updates = {}, set()
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        arrays.update(load_file(path))
    for v in manifest["variables"]:
        updates |= {s["updates"] for s in v["slices"]}
    return arrays, updates


def one_record_many_times(c):
    """So that each batch has the same gradient, whoever computes it."""
    for name in ("x.npy", "y.npy"):
        a = np.load(c.path(name))
        np.save(c.path(name), np.repeat(a[:1], len(a), axis=0))


def updates_together(weft, pipeline):
    """A job of two workers: its variables at the end, and the updates that each slice has had."""
    with Cluster(weft, ps=2, workers=2) as c:
        small.write_job(c, epochs=3, change=mode(f"mode: bsp, pipeline: {pipeline}"))
        one_record_many_times(c)
        c.must("up")
        c.must("train", "small.yaml")
        job = c.job("small")
        arrays, updates = checkpoint(c, "small")
    check(len(updates) == 1, f"slices have different numbers of updates: {updates}")
    n = updates.pop()
    check(job["step"] == 3 * 64, str(job["step"]))
    check(3 * 32 <= n < 3 * 64, f"{n} updates of {job['step']} steps")
    print(f"     pipeline {pipeline}: {n} updates of {job['step']} steps")
    return arrays, n


def a_step_of_two_workers_is_one_step_of_the_mean(weft):
    """The mean of two equal gradients is that gradient, to the bit: two workers that make n updates
    end where one worker is after n steps."""
    updates_together(weft, 1)
    together, n = updates_together(weft, 0)
    with Cluster(weft, ps=2, workers=1) as c:
        small.write_job(c, epochs=3, change=mode("mode: async")
                        + [("epochs: 3", f"epochs: 3\nsteps: {n}")])
        one_record_many_times(c)
        c.must("up")
        c.must("train", "small.yaml")
        alone, steps = checkpoint(c, "small")
    check(steps == {n}, f"{steps} is not {n}")
    differ = {k for k in set(alone) | set(together) if not np.array_equal(alone.get(k), together.get(k))}
    check(not differ, f"differ: {differ}")


def backups_are_left_out_and_a_stopped_one_holds_nobody(weft):
    with Cluster(weft, workers=3, more="dead_ms: 60000\nstuck_ms: 60000") as c:
        small.write_job(c, epochs=100, every_steps=1000000,
                        change=mode("mode: bsp, backup_workers: 1")
                        + [("  eval: {x: x.npy, y: y.npy}\n", ""),
                           ("split_records: 64", "split_records: 20000")])
        for name in ("x.npy", "y.npy"):
            np.save(c.path(name), np.concatenate([np.load(c.path(name))] * 400))
        c.must("up")
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 300, "trains")
        pid = c.pid("worker/1")

        def step():
            return c.job("small")["step"]

        os.kill(pid, signal.SIGSTOP)
        try:
            at = step()
            until(lambda: step() > at + 500, "the others go on without the one that stands still")
        finally:
            os.kill(pid, signal.SIGCONT)
        c.until_job("small", lambda j: j["left_out_parts"] > 0, "its step is left out")
        mine = {t["task"]: t["step"] for t in c.status()["tasks"]}["worker/1"]
        until(lambda: {t["task"]: t["step"] for t in c.status()["tasks"]}["worker/1"] > mine + 100,
              "it goes on with the others")
        check("of the gradients came after their step" in c.must("status", "small").out,
              "status tells of what was left out")
        training.send_signal(signal.SIGINT)
        check(c.end_of(training).code == 5, str(c.end_of(training)))


def a_worker_dies_and_the_others_finish(weft):
    with Cluster(weft, workers=3) as c:
        small.write_job(c, epochs=300, every_steps=5000, change=mode("mode: bsp"))
        c.must("up")
        training = c.start("train", "small.yaml")
        job = c.until_job("small", lambda j: j["step"] > 200 and j["staleness"], "trains")
        check(job["staleness"]["most"] == 0, str(job["staleness"]))
        os.kill(c.pid("worker/2"), signal.SIGKILL)
        end = c.end_of(training)
        check(end.code == 0, str(end))
        check(c.job("small")["eval"]["accuracy"] > 0.9, str(c.job("small")["eval"]))


def settings_that_make_no_sense_are_named(weft):
    with Cluster(weft, workers=2) as c:
        small.write_job(c, epochs=1)
        for given, says in (
                (("mode=bsp", "backup_workers=2"), "no step waits for any of the 2 workers"),
                (("mode=bsp", "staleness=1"), '"staleness" says how far workers may be apart'),
                (("mode=async", "backup_workers=1"), '"backup_workers" says how many workers'),
                (("mode=bsp", "backup_workers=-1"), '"backup_workers" must be a whole number')):
            said = c.run("train", "small.yaml", *(w for g in given for w in ("--set", f"consistency.{g}")))
            check(said.code in (1, 2) and says in said.err, f"{given}: {said.code}: {said.err}")


main([a_step_of_two_workers_is_one_step_of_the_mean, backups_are_left_out_and_a_stopped_one_holds_nobody,
      a_worker_dies_and_the_others_finish, settings_that_make_no_sense_are_named])

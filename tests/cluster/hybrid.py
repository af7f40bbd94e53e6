# SPDX-License-Identifier: Apache-2.0
"""strategy: hybrid: tables lie on the ps, and each worker holds all other variables.

    hybrid.py WEFT [TEST...]
"""
import json
import os
import re

from losses import losses
from weftlib import Cluster, check, main, needs, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
from rows import STEPS, make, weights, whole  # noqa: E402

HYBRID = ("--set", "strategy=hybrid")
DENSE = {"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}


def trained(weft, *how):
    with make(weft) as c:
        c.must("up")
        c.must("train", "rows.yaml", *how)
        return losses(c), whole(weights(c))


def check_close(ours, theirs, what, atol=0.0):
    check(ours.keys() == theirs.keys(), f"{what}: {sorted(ours)} and {sorted(theirs)}")
    for name in ours:
        off = np.abs(ours[name] - theirs[name]).max()
        check(off <= atol, f"{what}: {name} differs by {off}")


def one_worker_has_the_bits_of_parameter_servers(weft):
    ours, theirs = trained(weft, *HYBRID), trained(weft)
    check(len(ours[0]) == STEPS and ours[0] == theirs[0], "other losses")
    check_close(ours[1], theirs[1], "one worker")


def workers_share_a_job(weft):
    """The dense variables of all have the same updates, one for each step that they make together."""
    for workers in (2, 3):
        with make(weft, workers=workers, optimizer="{adam: {learning_rate: 0.01}}", epochs=6, split=64) as c:
            c.must("up")
            c.must("train", "rows.yaml", *HYBRID)
            job, most = c.job("rows"), 2 * STEPS
            check(job["step"] == most and job["metrics"]["auc"] > 0.9, job)
            with open(os.path.join(c.saved("rows", c.checkpoints("rows")[-1]), "manifest.json"), encoding="utf-8") as f:
                counts = {v["name"]: {s["updates"] for s in v["slices"]} for v in json.load(f)["variables"]}
            together = set().union(*(counts[name] for name in DENSE))
            check(len(together) == 1 and most // workers <= together.pop() < most, counts)
            check(all(max(n) <= most for name, n in counts.items() if name not in DENSE), counts)
            c.must("recover", "rows", "--set", "strategy=parameter_server", "--set", "epochs=7")
            check(c.job("rows")["metrics"]["auc"] > 0.9, c.job("rows"))


def the_job_goes_on_under_other_strategies(weft):
    """hybrid, parameter_server, hybrid: as if it had never changed."""
    with make(weft, epochs=1) as c:
        c.must("up")
        c.must("train", "rows.yaml", *HYBRID)
        manifest = c.read(os.path.join(c.saved("rows", c.checkpoints("rows")[-1]), "manifest.json"))
        check(manifest.count("-of-00003") == 3, manifest)
        for epochs, strategy in ((2, "parameter_server"), (3, "hybrid")):
            c.must("recover", "rows", "--set", f"strategy={strategy}", "--set", f"epochs={epochs}")
        ours = whole(weights(c))
    check_close(ours, trained(weft)[1], "after three strategies")


def whoever_dies_the_job_goes_on(weft):
    """Workers and the master in the same generation; a ps takes it back to the newest checkpoint."""
    for pipeline in (0, 1):
        with make(weft, workers=3, optimizer="{adam: {learning_rate: 0.002}}", pipeline=pipeline, epochs=60) as c:
            c.must("up")
            training = c.start("train", "rows.yaml", *HYBRID)
            for task, generation in (("worker/1", 1), ("worker/0", 1), ("master", 1), ("ps/1", 2), ("worker/2", 2)):
                c.until_job("rows", lambda j: j["state"] == "running" and j["checkpoint"], "runs")
                step = c.job("rows")["step"]
                c.kill(task)
                c.until_job("rows", lambda j: j["state"] == "running" and j["generation"] >= generation and
                            j["step"] > step + 300, f"goes on after the death of {task}")
                check(c.job("rows")["generation"] == generation, f"{task} died: {c.job('rows')}")
            check(c.end_of(training, 120).code == 0, "the job ends")
            check(c.job("rows")["metrics"]["auc"] > 0.9, c.job("rows")["metrics"])
            until(lambda: re.search(r"worker\.adds_up workers=3 ", c.read(os.path.join(".weft", "logs", "worker-2.log"))),
                  "all three trained together")


def its_status_says_who_holds_what(weft):
    with make(weft, workers=2, epochs=200) as c:
        c.must("up")
        c.must("submit", "rows.yaml", *HYBRID)
        c.until_job("rows", lambda j: j["state"] == "running" and j["step"] > 50, "runs")
        shown = json.loads(c.must("status", "--placement", "--json").out)["variables"]
        shown = {v["name"]: v["on"] for v in shown}
        check({n for n, on in shown.items() if on == {"workers": 1}} == DENSE, shown)
        check(all(set(on) == {"ps/0", "ps/1"} for n, on in shown.items() if n not in DENSE), shown)
        said = c.must("move", "rows", "dense/kernel", "ps/1", code=3).err
        check("each worker of job rows#1 holds that variable, and no ps" in said, said)


def bad_jobs(weft):
    with Cluster(weft, ps=0, workers=2) as c:
        with make(weft) as other:
            for name in ("rows.yaml", "user.npy", "items.npy", "y.npy"):
                with open(other.path(name), "rb") as f, open(c.path(name), "wb") as to:
                    to.write(f.read())
        c.must("up")
        said = c.must("train", "rows.yaml", *HYBRID, code=2).err
        check("strategy hybrid wants at least 1 ps, and the cluster has 0" in said, said)
    with make(weft) as c:
        c.must("up")
        c.write("pinned.yaml", c.read("rows.yaml") + 'placement: {pin: {"dense/*": 0}}\n')
        said = c.must("train", "pinned.yaml", *HYBRID, code=2).err
        check('"dense/*" matches no variable on a ps; there is "' in said, said)
        for mode, more in (("bsp", ()), ("ssp", ("--set", "consistency.staleness=3"))):
            said = c.must("train", "rows.yaml", *HYBRID, "--set", f"consistency.mode={mode}", *more, code=3).err
            check(re.search(rf"rows\.yaml:\d+: with strategy hybrid .* there is no mode {mode}; leave out", said), said)


main([one_worker_has_the_bits_of_parameter_servers, workers_share_a_job,
      the_job_goes_on_under_other_strategies, whoever_dies_the_job_goes_on, its_status_says_who_holds_what,
      bad_jobs])

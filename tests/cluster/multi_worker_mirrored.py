# SPDX-License-Identifier: Apache-2.0
"""strategy: multi_worker_mirrored: workers that hold all variables and add up their gradients.

All batches of the data are the same 8 records, so that a step has the same mean whoever computes how
many of them: after n updates the weights are those of one worker with one batch or two after n steps.
"""
import json
import os
import re

from weftlib import Cluster, check, main, needs, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
import small  # noqa: E402
from losses import saved_weights  # noqa: E402

BATCH, RECORDS, EPOCHS, SPLIT = 8, 2048, 3, 64
EPOCHS_OF_DRILL = 40
RING = "strategy: multi_worker_mirrored"
ADAM, SGD = "{adam: {learning_rate: 0.002}}", "{sgd: {learning_rate: 0.02}}"
MOMENTUM = "{sgd: {learning_rate: 0.005, momentum: 0.9}}"


def write_job(c, how, batch=BATCH, epochs=EPOCHS, every_steps=40, more=(), records=RECORDS,
              optimizer=ADAM):
    """With a smooth activation: at the kink of relu a gradient that is rounded otherwise by one bit is another."""
    small.write_job(c, epochs=epochs, every_steps=every_steps, records=records,
                    change=[("seed: 1", f"{how}\nseed: 1"), ("batch: 8", f"batch: {batch}"), ("relu", "tanh"),
                            (f"split_records: {SPLIT}", f"split_records: {SPLIT}\n  shuffle: false"),
                            ("{sgd: {learning_rate: 0.05}}", optimizer), *more])
    for name in ("x.npy", "y.npy"):
        a = np.load(c.path(name))
        np.save(c.path(name), np.tile(a[:BATCH], (len(a) // BATCH,) + (1,) * (a.ndim - 1)))


def updates(c):
    """How many updates the variables of the newest checkpoint have had."""
    with open(os.path.join(c.saved("small", c.checkpoints("small")[-1]), "manifest.json"), encoding="utf-8") as f:
        counts = {s["updates"] for v in json.load(f)["variables"] for s in v["slices"]}
    check(len(counts) == 1, f"slices have different numbers of updates: {counts}")
    return counts.pop()


def trained(weft, how, ps=0, workers=1, **kinds):
    with Cluster(weft, ps=ps, workers=workers) as c:
        write_job(c, how, **kinds)
        c.must("up")
        c.must("train", "small.yaml")
        return saved_weights(c, "small"), updates(c)


def check_close(ours, theirs, what, atol=1e-7):
    check(ours.keys() == theirs.keys(), f"{what}: {sorted(ours)} and {sorted(theirs)}")
    for name in ours:
        check(np.allclose(ours[name], theirs[name], rtol=1e-6, atol=atol),
              f"{what}: {name} differs by {np.abs(ours[name] - theirs[name]).max()}")


def alone_after(weft, n, batch=BATCH, optimizer=ADAM, more=()):
    """One worker that holds the variables, after n steps."""
    epochs = 3 * EPOCHS
    weights, steps = trained(weft, "strategy: local", batch=batch, epochs=epochs, optimizer=optimizer,
                             more=[(f"epochs: {epochs}", f"epochs: {epochs}\nsteps: {n}"), *more])
    check(steps == n, f"{steps} steps are not {n}")
    return weights


def workers_train_as_one_with_the_summed_batch(weft):
    """Two and three workers; also where the ps make the steps (bsp)."""
    steps = RECORDS // BATCH * EPOCHS
    for workers, how, ps in ((2, RING, 0), (3, RING, 0), (2, "consistency: {mode: bsp}", 2)):
        ours, n = trained(weft, how, ps=ps, workers=workers, optimizer=SGD)
        check(max(200, steps // workers) <= n < steps, f"{n} updates of {steps} steps of {workers} workers")
        print(f"     {workers} workers, {ps} ps: {n} updates of {steps} steps")
        check_close(ours, alone_after(weft, n, BATCH, SGD), f"{how}: {workers} workers, {n} updates", 1e-6)
        check_close(ours, alone_after(weft, n, workers * BATCH, SGD), f"{how}: {workers} batches, {n} updates", 1e-6)


def way_of(c, worker=0):
    return re.findall(r"worker\.adds_up workers=\d+ by=(\w+)", c.read(os.path.join(".weft", "logs", f"worker-{worker}.log")))[-1]


def three_workers_add_up_by_where_they_are(weft):
    """On one host directly, and at three addresses in a ring, or by halving where there is little to send. The kernel is
    of two buckets."""
    large = [("units: 32", "units: 60000")]
    for hosts, more, way in ((1, large, "direct"), (3, large, "size"), (3, [], "size")):
        with Cluster(weft, ps=0, workers=3, transport="tcp") as c:
            lines = c.read("cluster.yaml").splitlines()
            workers = lines.index("workers:")
            for i in range(3):
                lines[workers + 1 + i] = lines[workers + 1 + i].replace("127.0.0.1", f"127.0.0.{1 + i % hosts}")
            c.write("cluster.yaml", "\n".join(lines) + "\n")
            write_job(c, RING, epochs=1, optimizer=SGD, more=more)
            c.must("up")
            c.must("train", "small.yaml")
            ways = {way_of(c, i) for i in range(3)}
            n = updates(c)
            ours = saved_weights(c, "small")
        check(ways == {way}, f"{hosts} hosts: added up by {ways}")
        check_close(ours, alone_after(weft, n, optimizer=SGD, more=more), f"{hosts} hosts, {n} updates", 1e-6)


def one_worker_has_the_bits_of_local(weft):
    with Cluster(weft, ps=0, workers=1) as c:
        write_job(c, RING)
        c.must("up")
        c.must("train", "small.yaml")
        ours, log = saved_weights(c, "small"), c.read(os.path.join(".weft", "logs", "worker-0.log"))
    check("there is one worker: nothing is sent" in log, log)
    theirs, _ = trained(weft, "strategy: local")
    check(all((ours[name] == theirs[name]).all() for name in theirs), "other bits than those of local")


def several_workers_without_ps_take_it_by_themselves(weft):
    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, "on_nan: stop")
        c.must("up")
        c.must("train", "small.yaml")
        for i in (0, 1):
            log = c.read(os.path.join(".weft", "logs", f"worker-{i}.log"))
            check(re.search(r"worker\.adds_up workers=2 .* buckets=1 bytes=2704", log), log)


def over_tcp(weft):
    """With checksums, and without memory that processes share."""
    for more in ("shared_memory: off\nchecksums: always", "shared_memory: off\ndirect_connections: off"):
        with Cluster(weft, ps=0, workers=2, transport="tcp", more=more) as c:
            write_job(c, RING, epochs=1)
            c.must("up")
            c.must("train", "small.yaml")
            n = updates(c)
            ours = saved_weights(c, "small")
        check_close(ours, alone_after(weft, n), f"{more}, {n} updates")


def a_variable_in_two_buckets_over_tcp(weft):
    """Sums that come in messages of their own, not in memory that lies together."""
    large = [("units: 32", "units: 60000")]
    with Cluster(weft, ps=0, workers=2, transport="tcp", more="shared_memory: off") as c:
        write_job(c, RING, epochs=1, more=large)
        c.must("up")
        c.must("train", "small.yaml")
        check("buckets=2" in c.read(os.path.join(".weft", "logs", "worker-0.log")), "other buckets")
        n = updates(c)
        ours = saved_weights(c, "small")
    check_close(ours, alone_after(weft, n, more=large), f"{n} updates")


def whoever_is_killed_the_others_go_on(weft):
    """In the same generation; and when all die, from the newest checkpoint."""
    with Cluster(weft, ps=0, workers=3) as c:
        write_job(c, RING, epochs=EPOCHS_OF_DRILL, every_steps=400, records=8 * RECORDS)
        c.must("up")
        training = c.start("train", "small.yaml")
        for task in ("worker/1", "worker/0", "master", "worker/2"):
            c.until_job("small", lambda j: j["state"] == "running" and j["step"] > 0, "runs")
            step = c.job("small")["step"]
            c.kill(task)
            c.until_job("small", lambda j: j["state"] == "running" and j["step"] >= step + 2000,
                        f"goes on after the death of {task}")
            check(c.job("small")["generation"] == 1, f"{task} died: {c.job('small')}")
        until(lambda: len(re.findall(r"worker\.adds_up workers=3 ", c.read(os.path.join(
            ".weft", "logs", "worker-2.log")))) > 0, "all three train again")
        for task in ("worker/1", "worker/0", "worker/2"):
            c.kill(task)
        c.until_job("small", lambda j: j["generation"] == 2 and j["state"] == "running", "goes back")
        result = c.end_of(training, 120)
        check(result.code == 0, f"{result}")
        job = c.job("small")
        check(job["left_out_records"] in (0, SPLIT), f"more is left out than what all three may have died of: {job}")
        least = (8 * RECORDS * EPOCHS_OF_DRILL - job["left_out_records"]) // BATCH
        check(job["state"] == "done" and least <= job["step"], str(job))
        n = updates(c)
        check(least // 3 <= n <= job["step"], f"{n} updates of {job['step']} steps")


def a_job_goes_on_under_another_strategy(weft):
    with Cluster(weft, ps=2, workers=2) as c:
        write_job(c, "consistency: {mode: bsp}", epochs=1)
        c.must("up")
        c.must("train", "small.yaml")
        first = updates(c)
        c.must("down")
        c.resize(0)
        c.must("up")
        c.must("recover", "small", "--set", "strategy=multi_worker_mirrored", "--set", "epochs=2")
        until(lambda: c.job("small")["state"] == "done", "the job ends")
        second, weights = updates(c), saved_weights(c, "small")
        check(second > first, f"{first} and {second} updates")
        check_close(weights, alone_after(weft, second), f"{second} updates")
        c.must("down")
        c.resize(2)
        c.must("up")
        c.must("recover", "small", "--set", "strategy=parameter_server", "--set", "epochs=3")
        until(lambda: c.job("small")["state"] == "done", "the job ends")
        third, weights = updates(c), saved_weights(c, "small")
        check_close(weights, alone_after(weft, third), f"{third} updates")


def each_worker_writes_a_file_of_a_large_model(weft):
    """And the job goes on from them, here and on parameter servers."""
    large = [("units: 32", "units: 8000")]
    with Cluster(weft, ps=0, workers=3) as c:
        write_job(c, RING, epochs=1, more=large)
        c.must("up")
        c.must("train", "small.yaml")
        folder = c.saved("small", c.checkpoints("small")[-1])
        files = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
        check(files == [f"shard-{i:05}-of-00003.safetensors" for i in range(3)], files)
        c.must("recover", "small", "--set", "epochs=2")
        n = updates(c)
        for ps in (0, 2):
            c.must("down")
            c.resize(ps)
            c.must("up")
            strategy = "parameter_server" if ps else "multi_worker_mirrored"
            c.must("recover", "small", "--set", f"strategy={strategy}", "--set", f"epochs={3 + ps}")
            until(lambda: c.job("small")["state"] == "done", "the job ends")
            check(updates(c) > n, f"{n} and {updates(c)} updates")
            n = updates(c)


def the_state_of_the_optimizer_may_be_divided(weft):
    """The same weights; and a job goes on from what the workers saved of it, divided or not."""
    divided = RING + "\nshard_optimizer: true"
    for workers in (2, 3):
        ours, n = trained(weft, divided, workers=workers, optimizer=MOMENTUM)
        check_close(ours, alone_after(weft, n, optimizer=MOMENTUM), f"{workers} workers, {n} updates", 1e-6)
    with Cluster(weft, ps=0, workers=3) as c:
        write_job(c, divided, epochs=EPOCHS_OF_DRILL, every_steps=400, records=8 * RECORDS)
        c.must("up")
        training = c.start("train", "small.yaml")
        for generation, task in enumerate(("worker/1", "worker/0", "master", "worker/2"), 2):
            c.until_job("small", lambda j: j["state"] == "running" and j["checkpoint"], "runs")
            step = c.job("small")["step"]
            c.kill(task)
            c.until_job("small", lambda j: j["state"] == "running" and j["step"] >= step + 1000,
                        f"goes on after the death of {task}")
        check(c.end_of(training, 120).code == 0, c.job("small"))
        files = [name for name in os.listdir(c.saved("small", c.checkpoints("small")[-1]))
                 if name.endswith(".safetensors")]
        check(len(files) == 3, files)
        n = updates(c)
        c.must("down")
        c.resize(2)
        c.must("up")
        other = ("recover", "small", "--set", "strategy=parameter_server", "--set", f"epochs={EPOCHS_OF_DRILL + 1}")
        said = c.must(*other, code=3).err
        check("shard_optimizer is for strategy multi_worker_mirrored, and not for parameter_server" in said, said)
        c.must(*other, "--set", "shard_optimizer=false")
        check(updates(c) > n, f"{n} and {updates(c)} updates")


def one_process_has_all_of_the_state(weft):
    """A job of several workers may be tried in one process, or go on there."""
    def check_state(c, job):
        folder = c.saved(job, c.checkpoints(job)[-1])
        c.must("ckpt", "verify", job)
        files = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".safetensors")]
        check(any(b"momentum" in open(name, "rb").read() for name in files), f"{job} has no slots in {files}")

    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, RING + "\nshard_optimizer: true", optimizer=MOMENTUM)
        c.must("train", "small.yaml", "--local", "--name", "alone")
        check_state(c, "alone")
        c.must("up")
        c.must("train", "small.yaml")
        c.must("down")
        c.must("train", "small.yaml", "--local", "--resume", "--set", "epochs=3")
        check_state(c, "small")


def what_a_cluster_cannot_serve_is_said(weft):
    def said(c, code, words):
        result = c.run("train", "small.yaml")
        check(result.code == code and re.search(words, result.err), f"{words} is not in: {result}")
    with Cluster(weft, ps=1, workers=2) as c:
        write_job(c, RING)
        said(c, 2, r"small\.yaml:\d+: strategy multi_worker_mirrored wants at most 0 ps, and the cluster has 1; ")
    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, "strategy: local")
        said(c, 2, r"small\.yaml:\d+: strategy local is for at most 1 worker, and the cluster has 2; "
                   r'take "strategy: multi_worker_mirrored"')


if __name__ == "__main__":
    main([workers_train_as_one_with_the_summed_batch, three_workers_add_up_by_where_they_are, one_worker_has_the_bits_of_local,
          several_workers_without_ps_take_it_by_themselves, over_tcp, a_variable_in_two_buckets_over_tcp,
          whoever_is_killed_the_others_go_on, a_job_goes_on_under_another_strategy,
          each_worker_writes_a_file_of_a_large_model, the_state_of_the_optimizer_may_be_divided, one_process_has_all_of_the_state,
          what_a_cluster_cannot_serve_is_said])

# SPDX-License-Identifier: Apache-2.0
"""strategy: multi_worker_mirrored and hybrid, with variables on GPUs, which are the host's own (tests/cuda).

    multi_worker_gpu.py WEFT PLUGIN [TEST...]

All batches are the same 8 records, as in multi_worker_mirrored.py: after n common steps a loss is that of one
worker on the processor after n steps, whoever computes it. So each loss tells its n.
"""
import os
import re
import sys

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402

PLUGIN = os.path.abspath(sys.argv.pop(2))
import multi_worker_mirrored as cpu  # noqa: E402
import rows  # noqa: E402
from losses import saved_weights  # noqa: E402
from multi_worker_mirrored import ADAM, BATCH, MOMENTUM, RECORDS, RING, check_close, updates, write_job  # noqa: E402

GPU, CPU = ["cuda:0"], ["cpu"]
NORM = [("activation: tanh}", "activation: tanh}\n    - batch_normalization")]
DIVIDED = RING + "\nshard_optimizer: true"
PLAIN = "{sgd: {learning_rate: 0.02}}"
WEIGHTS = 16 * 32 + 32 + 32 * 4 + 4


def cluster(weft, devices, ps=0, wrong="", **kinds):
    c = Cluster(weft, ps=ps, workers=len(devices), devices=devices,
                env={"WEFT_CUDA": PLUGIN, "WEFT_CUDA_HOST": wrong}, **kinds)
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    return c


def losses(c):
    """Of all workers, as text."""
    return [line.split()[5] for line in c.read("losses").splitlines() if line.count(" ") == 5]


def trained(weft, devices, how=RING, **kinds):
    """Losses, weights, and how many updates these have had."""
    with cluster(weft, devices) as c:
        write_job(c, how, **kinds)
        c.must("up")
        c.must("train", "small.yaml")
        return losses(c), saved_weights(c, "small"), updates(c)


def curve(weft, **kinds):
    """The losses of one worker on the processor, step by step."""
    return np.array([float.fromhex(x) for x in trained(weft, [CPU], "strategy: local", **kinds)[0]])


def by_step(run, whole, what):
    """{n: its losses}, of steps whose losses differ enough from those of the steps beside them to tell n. A loss is of
    logarithms of numbers near 1, in float32: it has an error of 1e-7, however small it is."""
    steps = {}
    near = 1e-6 * whole + 1e-7
    apart = np.abs(np.diff(whole, prepend=np.inf, append=-np.inf))
    tells = np.minimum(apart[:-1], apart[1:]) > 4 * near
    for text in run:
        loss = float.fromhex(text)
        n = int(np.abs(whole - loss).argmin())
        check(abs(loss - whole[n]) < near[n], f"{what}: a loss of {loss}, and not {whole[n]} of step {n}")
        if tells[n]:
            steps.setdefault(n, set()).add(text)
    check(len(steps) >= 200, f"{what}: {len(steps)} steps")
    return steps


def check_same(ours, theirs, what):
    both = ours.keys() & theirs.keys()
    check(len(both) >= 200, f"{what}: {len(both)} steps")
    for n in both:
        check(ours[n] == theirs[n] and len(ours[n]) == 1, f"{what}: step {n} has {ours[n]} and {theirs[n]}")


def workers_on_gpus_train_as_on_processors(weft):
    """Losses to 1e-6, with equal bits on both workers and in two runs."""
    for optimizer, more in ((MOMENTUM, ()), (ADAM, ()), ("{sgd: {learning_rate: 0.05, global_clipnorm: 0.1}}", ()),
                            ("{adam: {learning_rate: 0.002, clipnorm: 0.05}}", NORM)):
        kinds = dict(optimizer=optimizer, more=more)
        whole = curve(weft, epochs=3 * cpu.EPOCHS // 2, **kinds)
        by_step(trained(weft, [CPU, CPU], **kinds)[0], whole, f"{optimizer} on processors")
        runs = [trained(weft, [GPU, GPU], **kinds) for _ in range(2)]
        steps = [by_step(run[0], whole, optimizer) for run in runs]
        check_same(*steps, optimizer)
        if optimizer in (MOMENTUM, ADAM):
            by_step(trained(weft, [GPU, CPU], **kinds)[0], whole, f"{optimizer} on both")
        check_close(runs[0][1], alone_after(weft, runs[0][2], **kinds), f"{optimizer}: {runs[0][2]} updates", 2e-6)


def alone_after(weft, n, optimizer, more=()):
    return cpu.alone_after(weft, n, optimizer=optimizer, more=more)


def three_workers_and_one(weft):
    """Means of three come by way of sums, and those of one are its gradients."""
    for devices in ([GPU, GPU, GPU], [GPU]):
        _, weights, n = trained(weft, devices, optimizer=ADAM)
        check(n >= 200, f"{n} updates")
        check_close(weights, alone_after(weft, n, ADAM), f"{len(devices)} workers, {n} updates", 2e-6)


def gradients_go_out_and_means_come_in(weft):
    """Once for each step, and no weights: what two epochs more of one worker copy, and all that one of two does."""
    told = {}
    for epochs in 1, 2, 3:
        with cluster(weft, [GPU]) as c:
            c.env["WEFT_CUDA_HOST"] = "tell=" + c.path("told")
            write_job(c, RING, epochs=epochs, every_steps=10000, optimizer=PLAIN,
                      more=[("  eval: {x: x.npy, y: y.npy}\n", "")])
            c.must("up")
            c.must("train", "small.yaml")
            c.must("down")
            told[epochs] = [int(n) for n in c.read("told").split()[:3]]
    steps = RECORDS // BATCH
    for i, want in ((0, BATCH * (4 * 16 + 8) + 4 * WEIGHTS), (1, 4 * WEIGHTS)):
        more = told[3][i] - told[2][i]
        check(more == told[2][i] - told[1][i], f"epochs differ: {told}")
        check(want <= more / steps <= want + 16, f"{more / steps} bytes of a step, and not {want} and a loss: {told}")
    check(told[3][2] == told[1][2], f"{told}: some are copied by hand")
    for how in RING, DIVIDED:
        with cluster(weft, [GPU, CPU]) as c:
            c.env["WEFT_CUDA_HOST"] = "tell=" + c.path("told")
            write_job(c, how, every_steps=10000, optimizer=PLAIN, more=[("  eval: {x: x.npy, y: y.npy}\n", "")])
            c.must("up")
            c.must("train", "small.yaml")
            n, steps = updates(c), RECORDS // BATCH * cpu.EPOCHS
            c.must("down")
            into, out, _ = [int(n) for n in c.read("told").split()[:3]]
        check(n < steps, f"{n} updates of {steps} steps: they made none together")
        shares = 4 * WEIGHTS * n if how is DIVIDED else 0
        least = 4 * WEIGHTS * n
        check(least <= into <= least + shares + steps * (BATCH * (4 * 16 + 8) + 16) + 4 * WEIGHTS + 64,
              f"{how}: {into} bytes go in with {n} updates of {WEIGHTS} weights")
        check(out <= 4 * WEIGHTS * n + shares + 16 * steps + 8 * WEIGHTS, f"{how}: {out} bytes come out with {n} updates")


def whoever_is_killed_the_others_go_on(weft):
    """And who comes back has the variables from another; then all die, and the job goes back."""
    with cluster(weft, [GPU, GPU, CPU]) as c:
        write_job(c, RING, epochs=12, every_steps=400, records=4 * RECORDS)
        c.must("up")
        training = c.start("train", "small.yaml")
        for task in ("worker/1", "worker/0", "worker/2"):
            c.until_job("small", lambda j: j["state"] == "running" and j["step"] > 0, "runs")
            step = c.job("small")["step"]
            c.kill(task)
            c.until_job("small", lambda j: j["state"] == "running" and j["step"] >= step + 500,
                        f"goes on after the death of {task}")
            check(c.job("small")["generation"] == 1, f"{task} died: {c.job('small')}")
        until(lambda: re.search(r"worker\.adds_up workers=3 ", c.read(os.path.join(".weft", "logs", "worker-2.log"))),
              "all three train again")
        for task in ("worker/1", "worker/0", "worker/2"):
            c.kill(task)
        c.until_job("small", lambda j: j["generation"] == 2 and j["state"] == "running", "goes back")
        check(c.end_of(training, 180).code == 0, c.job("small"))
        weights, n = saved_weights(c, "small"), updates(c)
    check(n > 1000 and all(np.isfinite(x).all() for x in weights.values()), f"{n} updates")


def a_gpu_that_fails_ends_its_process(weft):
    with cluster(weft, [GPU, CPU], wrong="fail=copy after=3000 error=79") as c:
        write_job(c, RING)
        c.must("up")
        result = c.must("train", "small.yaml", timeout=120)
        check(re.search(r"worker/0: ended with exit code 1: .*cuda:0: .*\(CUDA error 79\)", result.out + result.err), result)
        check(c.job("small")["state"] == "done" and c.job("small")["generation"] == 1, c.job("small"))
        weights, n = saved_weights(c, "small"), updates(c)
    check_close(weights, alone_after(weft, n, ADAM), f"{n} updates", 2e-6)


def the_state_of_the_optimizer_may_be_divided(weft):
    """The same weights; and a job goes on from what the workers saved of it, also when one has died."""
    for devices, optimizer in (([GPU, GPU], MOMENTUM), ([GPU, CPU, GPU], ADAM)):
        _, weights, n = trained(weft, devices, DIVIDED, optimizer=optimizer)
        check_close(weights, alone_after(weft, n, optimizer), f"{devices}, {n} updates", 2e-6)
    with cluster(weft, [GPU, GPU]) as c:
        write_job(c, DIVIDED, epochs=8, every_steps=200, records=4 * RECORDS)
        c.must("up")
        training = c.start("train", "small.yaml")
        for task in ("worker/1", "worker/0"):
            before = c.until_job("small", lambda j: j["state"] == "running" and j["checkpoint"], "runs")["generation"]
            c.kill(task)
            # More than one generation, if the other begins one alone before this one is back.
            c.until_job("small", lambda j: j["state"] == "running" and j["generation"] > before,
                        f"goes back after the death of {task}")
        check(c.end_of(training, 180).code == 0, c.job("small"))
        files = [name for name in os.listdir(c.saved("small", c.checkpoints("small")[-1]))
                 if name.endswith(".safetensors")]
        check(len(files) == 2 and updates(c) > 1000, f"{files}, {updates(c)} updates")


def a_job_goes_on_anywhere(weft):
    """From workers with GPUs to one on the processor, to one on a GPU, and back."""
    with cluster(weft, [GPU, GPU]) as c:
        write_job(c, RING, epochs=1)
        c.must("up")
        c.must("train", "small.yaml")
        steps = (([CPU], "local"), ([GPU, CPU], "multi_worker_mirrored"), ([GPU], "local"),
                 ([GPU, GPU], "multi_worker_mirrored"))
        for epochs, (devices, strategy) in enumerate(steps, 2):
            c.must("down")
            c.devices, c.n_workers = dict(enumerate(devices)), len(devices)
            c.resize(0)
            c.must("up")
            c.must("recover", "small", "--set", f"strategy={strategy}", "--set", f"epochs={epochs}")
            until(lambda: c.job("small")["state"] == "done", "the job ends")
        weights, n = saved_weights(c, "small"), updates(c)
    check(n > 3 * RECORDS // BATCH, f"{n} updates")
    check_close(weights, alone_after(weft, n, ADAM), f"{n} updates", 2e-6)


def large_models_are_saved_by_all(weft):
    """Each worker writes a file from its GPU, in several pieces; one that joins gets as many."""
    large = [("units: 32", "units: 60000")]
    with cluster(weft, [GPU, GPU]) as c:
        write_job(c, RING, epochs=1, records=512, more=large)
        c.must("up")
        c.must("train", "small.yaml")
        folder = c.saved("small", c.checkpoints("small")[-1])
        files = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
        check(files == [f"shard-{i:05}-of-00002.safetensors" for i in range(2)], files)
        weights, n = saved_weights(c, "small"), updates(c)
    check_close(weights, alone_after(weft, n, ADAM, more=large), f"{n} updates", 2e-6)


def hybrid_keeps_its_tables_on_ps(weft):
    """One worker with a GPU has the losses of one without; two train together."""
    def run(devices, **kinds):
        with rows.make(weft, workers=len(devices), **kinds) as c:
            c.env["WEFT_CUDA"] = PLUGIN
            c.devices = dict(enumerate(devices))
            c.resize(c.n_ps)
            c.must("up")
            c.must("train", "rows.yaml", "--set", "strategy=hybrid")
            return c.job("rows"), [float.fromhex(x) for x in losses(c)]
    ours, theirs = run([GPU])[1], run([CPU])[1]
    check(len(ours) == len(theirs) == rows.STEPS and ours != theirs, f"{len(ours)} and {len(theirs)} losses")
    check(np.allclose(ours, theirs, rtol=1e-6, atol=0), f"losses differ by {np.abs(np.array(ours) / theirs - 1).max()}")
    for devices in [GPU, GPU], [CPU, GPU]:
        job, _ = run(devices, optimizer="{adam: {learning_rate: 0.01}}", epochs=6, split=64)
        check(job["step"] == 2 * rows.STEPS and job["metrics"]["auc"] > 0.9, job)


def a_step_that_is_no_number_is_named_or_left_out(weft):
    """With the words of a processor; a gradient that is bad does not leave."""
    said = set()
    for devices in [CPU, CPU], [GPU, GPU]:
        for how in "on_nan: stop", "on_nan: skip":
            with cluster(weft, devices) as c:
                write_job(c, f"{RING}\n{how}", epochs=1, more=[("  eval: {x: x.npy, y: y.npy}\n", "")])
                x = np.load(c.path("x.npy"))
                x[1000, 3] = np.nan
                np.save(c.path("x.npy"), x)
                c.must("up")
                if how == "on_nan: skip":
                    c.must("train", "small.yaml")
                    weights = saved_weights(c, "small")
                    check(all(np.isfinite(w).all() for w in weights.values()), f"{devices}: {weights}")
                    logs = "".join(c.read(os.path.join(".weft", "logs", f"worker-{i}.log")) for i in (0, 1))
                    check(logs.count("worker.step_dropped") == 1, f"{devices}: dropped steps")
                    continue
                line = one_sentence(c.must("train", "small.yaml", code=1).err.strip().split("\n")[-1])
                said.add(re.sub(r"step \d+|worker/?\s?\d|split \d+|nan-\d+", "", line).replace(c.folder, ""))
    check(len(said) == 1 and "NaN" in "".join(said), f"{said}")


def memory_is_told_ahead(weft):
    """weft graph counts what a worker keeps on its GPU; a GPU that lacks it is named."""
    with cluster(weft, [GPU, GPU], wrong="memory=100000") as c:
        write_job(c, RING, more=[("units: 32", "units: 8000")])
        said = c.bare("graph", "small.yaml", "--memory", "--ps", "0", "--device", "cuda:7")
        numbers = 16 * 8000 + 8000 + 8000 * 4 + 4
        check(said.code == 0 and re.search(r"cuda:7 .* of weights, gradients and the optimizer's slots", said.out), said)
        found = re.search(r"cuda:7\s+(\S+ \S+)\s+of weights", said.out)
        check(found and abs(float(found[1].split()[0]) - 4 * 4 * numbers / 2**20) < 0.1, f"{said.out}")
        c.must("up")
        result = c.run("train", "small.yaml")
        check(result.code == 1 and re.search(r"cuda:0 has no \d+ bytes left", result.err), result)


def copies_that_cannot_stay_equal_are_refused(weft):
    """lamb rounds its norms otherwise on a GPU; where one worker updates each variable, all have what it has."""
    lamb = "{lamb: {learning_rate: 0.01}}"
    with cluster(weft, [GPU, CPU]) as c:
        write_job(c, RING, optimizer=lamb)
        c.must("up")
        said = one_sentence(c.must("train", "small.yaml", code=1).err)
        check(re.search(r"small\.yaml:\d+: lamb takes norms of variables, which a GPU and a processor round otherwise, and "
                        r"the copies of worker/0 and worker/1 are to stay equal; let all", said), said)
    for devices, how in (([GPU, CPU], DIVIDED), ([GPU, GPU], RING)):
        _, weights, n = trained(weft, devices, how, optimizer=lamb)
        check(n >= 200, f"{n} updates")
        check_close(weights, alone_after(weft, n, lamb), f"{devices}, {n} updates", 1e-4)


main([workers_on_gpus_train_as_on_processors, three_workers_and_one, gradients_go_out_and_means_come_in,
      whoever_is_killed_the_others_go_on, a_gpu_that_fails_ends_its_process,
      the_state_of_the_optimizer_may_be_divided, a_job_goes_on_anywhere, large_models_are_saved_by_all,
      copies_that_cannot_stay_equal_are_refused, hybrid_keeps_its_tables_on_ps, a_step_that_is_no_number_is_named_or_left_out, memory_is_told_ahead])

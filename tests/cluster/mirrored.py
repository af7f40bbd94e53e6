# SPDX-License-Identifier: Apache-2.0
"""strategy: mirrored: a replica of the model on each device of one worker.

    mirrored.py WEFT PLUGIN [TEST...]

PLUGIN is loaded instead of weft-cuda.so: its GPUs are the host's own (tests/cuda/plugin.c). Losses are
those of one device that computes the whole batch; where batches are normalised, those of one device
that adds up batches of half the size.
"""
import os
import re
import sys

from losses import cluster_with_data, losses, saved_weights
from weftlib import check, main, needs, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402

PLUGIN = os.path.abspath(sys.argv.pop(2))
RECORDS, BATCH, EPOCHS = 3210, 32, 2
STEPS = (RECORDS + BATCH - 1) // BATCH * EPOCHS  # the last batch of an epoch has 10 records
ONE, TWO = ["cpu:0"], ["cpu:0", "cpu:1"]
GPU, GPUS = ["cuda:0"], ["cuda:0", "cuda:1"]
JOB = """
job: mirrored
model:
  input: {{x: [64]}}
  layers:
    - dense: {{units: 32, activation: tanh}}{layers}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
batch: {batch}
epochs: {epochs}
optimizer: {optimizer}
checkpoint: {{every_steps: 50, keep: 50}}
seed: 7
"""
SGD = "{sgd: {learning_rate: 0.01, momentum: 0.9}}"
ADAM = "{adam: {learning_rate: 0.002}}"
NORM = "\n    - batch_normalization"
DROP = "\n    - dropout: {rate: 0.3}"
TEXT = dict(layers="", batch=BATCH, epochs=EPOCHS, optimizer=SGD)


def write_devices(c, devices, threads=2, ps=0):
    """As a person writes them, without quotation marks."""
    c.devices = {0: devices}
    c.resize(ps)
    text = re.sub(r"devices: \[.*?\]", f"threads: {threads}, devices: [{', '.join(devices)}]", c.read("cluster.yaml"))
    c.write("cluster.yaml", text)


def make(weft, devices=TWO, strategy="mirrored", more="", ps=0, records=RECORDS, wrong="", **kinds):
    """A cluster of one worker with such devices, and the job with what is other than in TEXT."""
    c = cluster_with_data(weft, ps, records, 64)
    c.env.update(WEFT_CUDA=PLUGIN, WEFT_CUDA_HOST=wrong)
    write_devices(c, devices, ps=ps)
    write_job(c, strategy, more, **kinds)
    return c


def write_job(c, strategy="mirrored", more="", **kinds):
    c.write("job.yaml", JOB.format(**{**TEXT, **kinds}) + f"strategy: {strategy}\n" + more)


def values(c, generation=1):
    return np.array([float.fromhex(loss) for _, loss in losses(c, generation)])


def results(c):
    """Losses and weights, and what the evaluations gave."""
    said = c.must("train", "job.yaml").out
    return values(c), saved_weights(c, "mirrored"), re.findall(r"val_accuracy \S+", said)


def run_of(weft, devices=TWO, strategy="mirrored", **kinds):
    with make(weft, devices, strategy, **kinds) as c:
        return results(c)


def check_close(ours, theirs, what, rtol=1e-6):
    check(len(ours[0]) == len(theirs[0]), f"{what}: {len(ours[0])} and {len(theirs[0])} losses")
    check(np.allclose(ours[0], theirs[0], rtol=rtol, atol=0),
          f"{what}: {np.abs(ours[0] / theirs[0] - 1).max()} between losses")
    check(ours[1].keys() == theirs[1].keys(), f"{what}: {sorted(ours[1])} and {sorted(theirs[1])}")
    for name in ours[1]:
        check(np.allclose(ours[1][name], theirs[1][name], rtol=100 * rtol, atol=10 * rtol), f"{what}: {name}")
    check(len(ours[2]) == len(theirs[2]) > 0, f"{what}: {ours[2]} and {theirs[2]}")


def check_same(ours, theirs, what):
    check(len(ours[0]) == len(theirs[0]) and (ours[0] == theirs[0]).all(), f"{what}: other losses")
    check(ours[1].keys() == theirs[1].keys(), f"{what}: {sorted(ours[1])} and {sorted(theirs[1])}")
    for name in ours[1]:
        check((ours[1][name] == theirs[1][name]).all(), f"{what}: {name} is another")
    check(ours[2] == theirs[2], f"{what}: {ours[2]} and {theirs[2]}")


def log_of(c):
    return c.read(os.path.join(".weft", "logs", "worker-0.log"))


def two_replicas_have_the_losses_of_one_device(weft):
    """202 steps, of which the last of an epoch is short; also where gradients are clipped."""
    for optimizer in (SGD, "{sgd: {learning_rate: 0.05, global_clipnorm: 0.2}}",
                      "{sgd: {learning_rate: 0.05, clipvalue: 0.003}}",
                      "{sgd: {learning_rate: 0.05, gradient_accumulation_steps: 2, clipnorm: 0.2}}"):
        whole = run_of(weft, ONE, "local", optimizer=optimizer)
        ours = run_of(weft, optimizer=optimizer)
        check(len(ours[0]) > (STEPS // 2 - 2 if "accumulation" in optimizer else 200), f"{len(ours[0])} steps")
        check_close(ours, whole, optimizer)
        check((ours[0] != whole[0]).any(), f"{optimizer}: all bits are those of one device")


def two_gpus_have_the_losses_of_one(weft):
    """Also where gradients are clipped, behind their sum; and two runs have the same bits."""
    for optimizer in (SGD, "{sgd: {learning_rate: 0.05, global_clipnorm: 0.2}}",
                      "{sgd: {learning_rate: 0.05, clipvalue: 0.003}}"):
        whole = run_of(weft, GPU, "local", optimizer=optimizer)
        ours = run_of(weft, GPUS, optimizer=optimizer)
        check(len(ours[0]) > 200, f"{len(ours[0])} steps")
        check_close(ours, whole, optimizer)
        check((ours[0] != whole[0]).any(), f"{optimizer}: all bits are those of one device")
    first = run_of(weft, GPUS, layers=NORM + DROP, optimizer=ADAM, epochs=1)
    check_same(run_of(weft, GPUS, layers=NORM + DROP, optimizer=ADAM, epochs=1), first, "a second run")


def each_gpu_is_brought_its_share_ahead(weft):
    """Of all batches of an epoch but the last, which is smaller, and the one behind it. An epoch is one split: the
    first batch of another may come too late to be there ahead."""
    told = []
    for epochs in 1, 2:
        with make(weft, GPUS, epochs=epochs) as c:
            c.write("job.yaml", c.read("job.yaml").replace("data:\n", f"data:\n  split_records: {RECORDS}\n"))
            c.env.update(WEFT_CUDA_HOST="tell=" + c.path("told"))
            results(c)
            told.append(int(c.read("told").split()[4]))
    want = (RECORDS // BATCH - 1) * BATCH * (4 * 64 + 8)
    check(told[1] - told[0] == want, f"{told}: not {want} bytes of an epoch were there ahead")


def the_same_job_has_the_same_bits(weft):
    kinds = dict(layers=NORM + DROP, optimizer=ADAM)
    first = run_of(weft, **kinds)
    check_same(run_of(weft, **kinds), first, "a second run")
    with make(weft, **kinds) as c:
        write_devices(c, TWO, threads=4)
        check_same(results(c), first, "twice the threads")


def batches_are_normalised_by_each_replica(weft):
    """As by a device that adds up two batches of half the size: same bits, also of the running values."""
    for one, two, optimizer in ((ONE, TWO, "sgd: {learning_rate: 0.05%s}"),
                                (ONE, TWO, "adam: {learning_rate: 0.002, clipnorm: 0.5%s}"),
                                (GPU, GPUS, "adam: {learning_rate: 0.002, clipnorm: 0.5%s}")):
        kinds = dict(layers=NORM, records=3200 if one is ONE else 800)
        half = run_of(weft, one, "local", batch=BATCH // 2,
                      optimizer="{" + optimizer % ", gradient_accumulation_steps: 2" + "}", **kinds)
        ours = run_of(weft, two, optimizer="{" + optimizer % "" + "}", **kinds)
        check("batch_normalization/moving_mean" in ours[1], f"{sorted(ours[1])}")
        check((ours[1]["batch_normalization/moving_mean"] == half[1]["batch_normalization/moving_mean"]).all(),
              "moving_mean")
        check_same((np.array([]), ours[1], []), (np.array([]), half[1], []), optimizer)
        check(np.allclose(ours[0], half[0], rtol=1e-12), "losses")


def replicas_draw_other_random_numbers(weft):
    """A batch of two equal halves: the same masks on both would have the loss of one half alone."""
    def loss(devices, strategy, twice):
        with make(weft, devices, strategy, layers=DROP, batch=16 * (1 + twice), epochs=1, records=16) as c:
            for name in "x.npy", "y.npy":
                half = np.load(c.path(name))
                np.save(c.path(name), np.concatenate([half, half]) if twice else half)
            c.write("job.yaml", c.read("job.yaml").replace("eval: {x: x.npy, y: y.npy}", "shuffle: false"))
            c.must("train", "job.yaml")
            check(len(losses(c)) == 1, f"{losses(c)}")
            return values(c)[0]
    half, both = loss(ONE, "local", False), loss(TWO, "mirrored", True)
    check(1e-3 < abs(both / half - 1) < 0.5, f"{half} of a half, {both} of two")


def a_batch_may_be_smaller_than_the_replicas(weft):
    four = [f"cpu:{i}" for i in range(4)]
    for batch, records in (1, 20), (3, 20), (5, 33):
        whole = run_of(weft, ONE, "local", batch=batch, records=records)
        check_close(run_of(weft, four, batch=batch, records=records), whole, f"{batch}, {records}")
    for more in "", ", gradient_accumulation_steps: 3": # the last step has one record, or four
        kinds = dict(optimizer="{sgd: {learning_rate: 0.05%s}}" % more, batch=3, records=22)
        check_close(run_of(weft, GPUS, **kinds), run_of(weft, GPU, "local", **kinds), f"of GPUs{more}")


def steps_with_bad_gradients_are_left_out_or_named(weft):
    # of the first replica's share of batch 5, and the second's
    for devices, at in (TWO, 3), (TWO, 29), (GPUS, 3), (GPUS, 29):
        with make(weft, devices, more="on_nan: skip\n") as c:
            spoil(c, 5 * BATCH + at)
            c.must("up")
            c.must("train", "job.yaml")
            check(c.job("mirrored")["dropped_steps"] == EPOCHS, f"{c.job('mirrored')['dropped_steps']} dropped")
            check(all(np.isfinite(w).all() for w in saved_weights(c, "mirrored").values()), "weights")
        with make(weft, devices) as c:
            spoil(c, 5 * BATCH + at)
            said = c.must("train", "job.yaml", code=1).err.strip().split("\n")[-1]
            check(re.search(rf"the loss is NaN at step 6 \(worker/0, epoch 1, .*record {5 * BATCH + at} of x.npy", said),
                  said)
            folder = re.search(r"replay: weft grad (\S+); ", said)[1]
            check("NaN" in c.bare("grad", folder).out, "the step is kept")


def spoil(c, record):
    x = np.load(c.path("x.npy"))
    x[record, 7] = np.nan
    np.save(c.path("x.npy"), x)
    c.write("job.yaml", c.read("job.yaml").replace("eval: {x: x.npy, y: y.npy}", "shuffle: false"))


def a_job_goes_on_under_another_strategy(weft):
    """From checkpoints of replicas to one device, to a ps, and back."""
    ways = ("mirrored", TWO, 0), ("mirrored", GPUS, 0), ("local", ONE, 0), ("parameter_server", ONE, 1)
    whole = run_of(weft, ONE, "local", optimizer=ADAM)
    for first in ways:
        for then in ways:
            if first is then or "mirrored" not in (first[0], then[0]):
                continue
            with make(weft, first[1], first[0], ps=first[2], epochs=1, optimizer=ADAM) as c:
                c.must("train", "job.yaml")
                before = values(c)
                move(c, then)
                c.must("train", "job.yaml", "--resume")
                got = np.concatenate([before, values(c, 2)])
                check(len(got) == STEPS and np.allclose(got, whole[0], rtol=1e-4),
                      f"{first[0]} to {then[0]}: {len(got)} losses, {np.abs(got / whole[0] - 1).max()}")


def a_strategy_is_set_on_the_way(weft):
    """Without a change of the job file; a wrong one ends nothing for good."""
    whole = run_of(weft, ONE, "local", optimizer=ADAM)
    with make(weft, TWO, "local", epochs=1, optimizer=ADAM) as c:
        c.must("train", "job.yaml")
        check("worker.replicas" not in log_of(c), log_of(c))
        for wrong, why in ("mirorred", "there is no strategy \"mirorred\""), ("parameter_server", "at least 1 ps"):
            check(why in c.must("recover", "mirrored", "--set", f"strategy={wrong}", code=2).err, wrong)
        c.must("recover", "mirrored", "--set", "strategy=mirrored", "--set", f"epochs={EPOCHS}")
        check("worker.replicas n=2" in log_of(c), log_of(c))
        got = values(c)
        check(len(got) == STEPS // EPOCHS, f"{len(got)} losses of the first epoch")
        last = [v for g in range(2, 6) for v in values(c, g)]
        check(np.allclose(np.concatenate([got, last]), whole[0], rtol=1e-4), f"{got[-3:]} {last[:3]} {whole[0][-3:]}")


def move(c, then):
    """To another strategy, on a cluster that has what it needs."""
    write_devices(c, then[1], ps=then[2])
    write_job(c, then[0], optimizer=ADAM)


def a_worker_that_dies_takes_the_job_back(weft):
    for devices, epochs in (TWO, 20), (GPUS, 4):
        kinds = dict(devices=devices, epochs=epochs, layers=NORM + DROP)
        whole = run_of(weft, **kinds)
        with make(weft, **kinds) as c:
            c.must("up")
            c.must("submit", "job.yaml")
            until(lambda: len(c.checkpoints("mirrored")) > 1 and len(losses(c)) > STEPS // 2, "some checkpoints")
            c.kill("worker/0")
            c.until_job("mirrored", lambda j: j["state"] == "done", "the end of the job")
            after, ends = values(c, 2), saved_weights(c, "mirrored")
            check(0 < len(after) < len(whole[0]) and (after == whole[0][-len(after):]).all(), "other losses")
            check(all((ends[k] == whole[1][k]).all() for k in ends), "other weights")


def one_device_trains_as_local_does_and_says_so(weft):
    kinds = dict(layers=NORM + DROP, optimizer=ADAM)
    for devices in ONE, ["cpu"]:
        with make(weft, devices, **kinds) as c:
            ours = results(c)
            check('worker.one_replica device=cpu why="strategy mirrored on one device trains as local does"'
                  in log_of(c), log_of(c))
        check_same(ours, run_of(weft, devices, "local", **kinds), f"{devices}")
    with make(weft, TWO, "local", **kinds) as c: # names of one device, which another strategy uses once
        check_same(results(c), ours, "local")
        check("worker.replicas" not in log_of(c), log_of(c))
    with make(weft, TWO, **kinds) as c:
        c.must("train", "job.yaml")
        check("worker.replicas n=2 device=cpu" in log_of(c), log_of(c))


def what_cannot_be_mirrored_is_said(weft):
    def said(c, code, words):
        result = c.run("train", "job.yaml")
        lines = result.err.strip().split("\n")
        check(result.code == code and re.search(words, lines[-1]), f"{words} is not in: {result}")
    with make(weft) as c:
        c.n_workers = 2
        c.ports.append(c.ports[-1].replace(".sock", "-second.sock"))
        write_devices(c, TWO)
        said(c, 2, r"job\.yaml:\d+: strategy mirrored is for at most 1 worker, and the cluster has 2; take "
                   r'"strategy: multi_worker_mirrored"')
    with make(weft, ps=1) as c:
        said(c, 2, r"job\.yaml:\d+: strategy mirrored wants at most 0 ps, and the cluster has 1; ")
    with make(weft, ["cpu:0", "tpu:1"]) as c:
        said(c, 2, r'cluster\.yaml:\d+: unknown device "tpu:1"; known: cpu')
    with make(weft, ["cpu:0", '"cuda:0"']) as c:
        said(c, 1, r"strategy mirrored takes devices of one kind, and this worker has cpu and cuda:0; list either")
    with make(weft, GPUS, wrong="fail=nccl_new error=40000") as c:
        said(c, 1, r"cuda:0 and cuda:1: gradients of several GPUs are added up by NCCL, and libnccl\.so\.2 is "
                   r"missing; install NCCL 2 for CUDA 13; ")
    with make(weft, ["cuda:0", "cuda:2"]) as c:
        said(c, 1, r"cuda:2: this host has 2 GPUs; GPUs are numbered from 0")
    with make(weft) as c:
        c.write("job.yaml", c.read("job.yaml").replace("units: 10", "units: 10, device: cpu"))
        said(c, 1, r'"dense_1\S*" is for the device cpu, and strategy mirrored has each layer on every device; ')


main([two_replicas_have_the_losses_of_one_device, two_gpus_have_the_losses_of_one, each_gpu_is_brought_its_share_ahead, the_same_job_has_the_same_bits,
      batches_are_normalised_by_each_replica, replicas_draw_other_random_numbers,
      a_batch_may_be_smaller_than_the_replicas, steps_with_bad_gradients_are_left_out_or_named,
      a_job_goes_on_under_another_strategy, a_worker_that_dies_takes_the_job_back,
      a_strategy_is_set_on_the_way, one_device_trains_as_local_does_and_says_so, what_cannot_be_mirrored_is_said])

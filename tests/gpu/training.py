# SPDX-License-Identifier: Apache-2.0
"""Steps of whole jobs: batches, loss, gradients, and updates by an optimizer."""
import array
import json
import os
import random

import models
import npy

# {network: (steps of an epoch, epochs)}: synthetic data lie in memory, up to 200 MB. Nothing is measured before
# the first epoch's end.
LENGTHS = {"mlp": (400, 25), "lenet": (400, 6), "resnet50-bf16": (5, 16), "deepfm-tables": (200, 6), "mlp-wide": (10, 4)}
QUICK = (3, 3)


def ways(network):
    """Where variables live: with the worker, or with a ps on this host."""
    return ("ps",) if network in models.WITH_TABLES else ("local", "ps")


def peer_runs(network, how):
    """Rows of tables in memory of the host cannot be captured."""
    return network not in models.WITH_TABLES or how == "eager"


def ps_threads():
    """Half of the processors, when two are left for the worker: one core cannot read, add and write the weights of a
    ResNet-50 in a step's time."""
    return max(1, ((os.cpu_count() or 1) - 2) // 2)


CLUSTER = """cluster: gpu
master: {{address: 'ipc://{folder}/0.sock'}}
ps: [{{address: 'ipc://{folder}/1.sock', threads: {threads}}}]
workers: [{{address: 'ipc://{folder}/2.sock', devices: ["{device}"]}}]
state_dir: .weft
checkpoint_dir: checkpoints
"""


def records_of_tables(size, n, folder):
    """Ids of all rows, which the synthetic format does not draw; the key of a job that reads them."""
    r, fields, counts = random.Random(1), size["fields"], size["counts"]
    npy.write(f"{folder}/ids.npy", "<i4", (n, fields), array.array("i", (r.randrange(size["rows"]) for _ in range(n * fields))))
    npy.write(f"{folder}/counts.npy", "<f4", (n, counts), array.array("f", (r.random() for _ in range(n * counts))))
    npy.write(f"{folder}/y.npy", "<f4", (n, 1), array.array("f", (float(r.getrandbits(1)) for _ in range(n))))
    return f"data: {{format: npy, train: {{ids: {folder}/ids.npy, counts: {folder}/counts.npy, y: {folder}/y.npy}}}}"


def prepare(network, way, quick, device, folder):
    """Writes the files of a job into a folder. The words behind `weft` that train it, and that tell its epochs."""
    size = models.size_of(network, quick)
    steps, epochs = QUICK if quick else LENGTHS[network]
    n = steps * size["batch"]
    data = records_of_tables(size, n, folder) if network in models.WITH_TABLES else None
    with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as f:
        f.write(models.job(network, size, records=n, epochs=epochs, data=data))
    if way == "local":
        return ["train", "--local", "--device", device, "job.yaml"], ["history", network, "--json"]
    with open(os.path.join(folder, "cluster.yaml"), "w", encoding="utf-8") as f:
        f.write(CLUSTER.format(folder=folder, device=device, threads=ps_threads()))
    return ["train", "job.yaml"], ["history", network, "--json"]


def figures(network, quick, history):
    """What the epochs behind the first one took, from what `weft history --json` says."""
    epochs = json.loads(history)["epochs"]
    first, last = epochs[0], epochs[-1]
    ms = 1e3 * (last["elapsed_s"] - first["elapsed_s"]) / (last["step"] - first["step"])
    return {"ms_per_step": ms, "steps_per_s": 1e3 / ms, "steps": last["step"] - first["step"],
            "batch": models.size_of(network, quick)["batch"], "loss": last["loss"]}

# SPDX-License-Identifier: Apache-2.0
"""Steps of whole jobs: batches, loss, gradients, and updates by an optimizer."""
import json
import os

import models

# {network: (steps of an epoch, epochs)}: synthetic data lie in memory, up to 200 MB. Nothing is measured before
# the first epoch's end.
LENGTHS = {"mlp": (400, 25), "mlp-wide": (40, 10), "lenet": (400, 10), "resnet50": (8, 8)}
QUICK = (3, 3)
WAYS = ("local", "ps")  # where variables live: with the worker, or with a ps on this host
CLUSTER = """cluster: gpu
master: {{address: 'ipc://{folder}/0.sock'}}
ps: [{{address: 'ipc://{folder}/1.sock'}}]
workers: [{{address: 'ipc://{folder}/2.sock', devices: ["{device}"]}}]
state_dir: .weft
checkpoint_dir: checkpoints
"""


def prepare(network, way, quick, device, folder):
    """Writes the files of a job into a folder. The words behind `weft` that train it, and that tell its epochs."""
    size = models.size_of(network, quick)
    steps, epochs = QUICK if quick else LENGTHS[network]
    with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as f:
        f.write(models.job(network, size, records=steps * size["batch"], epochs=epochs))
    if way == "local":
        return ["train", "--local", "--device", device, "job.yaml"], ["history", network, "--json"]
    with open(os.path.join(folder, "cluster.yaml"), "w", encoding="utf-8") as f:
        f.write(CLUSTER.format(folder=folder, device=device))
    return ["train", "job.yaml"], ["history", network, "--json"]


def figures(network, quick, history):
    """What the epochs behind the first one took, from what `weft history --json` says."""
    epochs = json.loads(history)["epochs"]
    first, last = epochs[0], epochs[-1]
    ms = 1e3 * (last["elapsed_s"] - first["elapsed_s"]) / (last["step"] - first["step"])
    return {"ms_per_step": ms, "steps_per_s": 1e3 / ms, "steps": last["step"] - first["step"],
            "batch": models.size_of(network, quick)["batch"], "loss": last["loss"]}

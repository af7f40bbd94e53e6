# SPDX-License-Identifier: Apache-2.0
"""Data of ten classes, and the losses of a job that is trained with them, to the last bit.

The worker writes each step's loss to the file of WEFT_LOSS_LOG: generation, step, epoch, split,
batch and the loss as a hexadecimal float.
"""
import os

from weftlib import Cluster, needs

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402


def cluster_with_data(weft, ps, records, width):
    """A cluster of one worker that logs its losses, with x.npy [records, width] and y.npy."""
    c = Cluster(weft, ps=ps, workers=1)
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    random = np.random.default_rng(3)
    x = random.normal(size=(records, width)).astype(np.float32)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), np.argmax(x[:, :10] + x[:, 10:20], axis=1).astype(np.int64))
    return c


def losses(c, generation=1):
    """[((epoch, split, batch), loss as text)] in the order in which they were computed."""
    rows = [line.split() for line in c.read("losses").splitlines() if line.count(" ") == 5]
    return [(tuple(map(int, r[2:5])), r[5]) for r in rows if int(r[0]) == generation]


def saved_weights(c, job):
    """Everything in a job's newest checkpoint, by variable and slot, with slices put together."""
    folder = c.saved(job, c.checkpoints(job)[-1])
    parts = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            for key, value in load_file(os.path.join(folder, name)).items():
                variable, _, offset = key.partition("#")
                parts.setdefault(variable, []).append((int(offset or 0), value.reshape(-1)))
    return {k: np.concatenate([v for _, v in sorted(p, key=lambda p: p[0])])
            for k, p in parts.items()}

# SPDX-License-Identifier: Apache-2.0
"""A job of two workers that add up gradients, with variables on GPUs: both with the one card, and one of them without.

All batches are the same records: after n common steps the loss is that of one worker after n steps.
"""
import array
import glob
import json
import os
import random

import npy
from stages import CLUSTER

JOB = """job: workers
model:
  input: {{x: [256]}}
  layers:
    - dense: {{units: 512, activation: tanh}}
    - batch_normalization
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  shuffle: false
  split_records: {split}
batch: {batch}
epochs: 4
optimizer: {{sgd: {{learning_rate: 0.002, momentum: 0.9}}}}
deterministic: true
seed: 1
strategy: {strategy}
"""
BATCH, SPLIT, WIDTH, CLASSES = 64, 4, 256, 10
RING = "multi_worker_mirrored"
# {name: (the devices of each worker, the strategy)}; "GPU" is the card.
WAYS = {
    "one": ([["cpu"]], "local"),
    "one card": ([["GPU"], ["GPU"]], RING),
    "card and processor": ([["GPU"], ["cpu"]], RING),
}


def prepare(way, quick, device, folder):
    """Writes a job, its data and its cluster into a folder."""
    devices, strategy = WAYS[way]
    batches, chance = 16 if quick else 160, random.Random(7)
    x = array.array("f", (chance.gauss(0, 1) for _ in range(BATCH * WIDTH)))
    y = array.array("q", (chance.randrange(CLASSES) for _ in range(BATCH)))
    npy.write(f"{folder}/x.npy", "<f4", (batches * BATCH, WIDTH), x.tobytes() * batches)
    npy.write(f"{folder}/y.npy", "<i8", (batches * BATCH,), y.tobytes() * batches)
    workers = "\n".join(f"  - {{address: 'ipc://{folder}/{i + 1}.sock', devices: {d}}}" for i, d in enumerate(devices))
    with open(f"{folder}/cluster.yaml", "w", encoding="utf-8") as f:
        f.write(CLUSTER.format(folder=folder, workers=workers).replace("GPU", device))
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as f:
        f.write(JOB.format(batch=BATCH, split=SPLIT * BATCH, strategy=strategy))


def updates(folder):
    """How many the variables of the newest checkpoint have had."""
    newest = max(glob.glob(f"{folder}/checkpoints/*/*/manifest.json"), key=os.path.getmtime)
    with open(newest, encoding="utf-8") as f:
        return max(s["updates"] for v in json.load(f)["variables"] for s in v["slices"])


def differences(losses, steps):
    """{what: how far the last loss is from that of one worker, relative}, and what is wrong or "". The losses fall."""
    figures, one = {}, losses["one"]
    for way in WAYS:
        if not 0 < steps[way] <= len(one):
            return figures, f"{way} made {steps[way]} updates, one worker {len(one)}"
        figures[way] = abs(min(losses[way]) / one[steps[way] - 1] - 1)
    if len(set(losses["one card"])) > steps["one card"]:
        return figures, f"two workers on one card have {len(set(losses['one card']))} losses in {steps['one card']} steps"
    if max(figures.values()) > 1e-2:
        return figures, f"losses differ from those of one worker: {figures}"
    return figures, ""

# SPDX-License-Identifier: Apache-2.0
"""A job of two embeddings, whose rows may be in tables, and what its checkpoints hold."""
import json
import os

import numpy as np
from safetensors.numpy import load_file
from weftlib import Cluster

RECORDS, USERS, ITEMS, BATCH, EPOCHS = 4096, 700, 300, 16, 3
STEPS = RECORDS // BATCH * EPOCHS
JOB = """job: rows
model:
  input: {{user: {{shape: [1], dtype: int64}}, items: {{shape: [5], dtype: int32}}}}
  layers:
    - embedding: {{input_dim: {users}, output_dim: 6, inputs: user, name: users}}
    - flatten: {{name: flat_user}}
    - embedding: {{input_dim: 300, output_dim: 4, inputs: items, name: items_of}}
    - flatten: {{name: flat_items}}
    - concatenate: {{inputs: [flat_user, flat_items]}}
    - dense: {{units: 16, activation: relu}}
    - dense: {{units: 1}}
loss: binary_crossentropy
metrics: [auc]
data:
  format: npy
  train: {{user: user.npy, items: items.npy, y: y.npy}}
  eval: {{user: user.npy, items: items.npy, y: y.npy}}
  split_records: {split}
batch: 16
epochs: {epochs}
optimizer: {optimizer}
consistency: {{pipeline: {pipeline}}}
checkpoint: {{every_steps: 100, keep: 50}}
slice_bytes: 2048
seed: 7
"""
ADAGRAD = "{adagrad: {learning_rate: 0.05}}"


CACHED = """tables:
  - {match: "users/*", cache_rows: 512, cache_staleness: 6}
  - {match: "items_of/*", cache_rows: 64, cache_staleness: 3}
"""


def make(weft, tables=True, cached=False, optimizer=ADAGRAD, pipeline=0, workers=1, epochs=EPOCHS, users=USERS,
         split=0):
    c = Cluster(weft, ps=2, workers=workers, more="dead_ms: 1000\nheartbeat_ms: 200")
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    rng = np.random.default_rng(5)
    user = np.minimum(rng.zipf(1.2, RECORDS) - 1, USERS - 1)
    items = rng.integers(0, ITEMS, (RECORDS, 5))
    taste, worth = rng.normal(size=USERS), rng.normal(size=ITEMS)
    np.save(c.path("user.npy"), user.astype(np.int64)[:, None])
    np.save(c.path("items.npy"), items.astype(np.int32))
    np.save(c.path("y.npy"), (taste[user] + worth[items].sum(1) > 0).astype(np.float32)[:, None])
    text = JOB.format(optimizer=optimizer, pipeline=pipeline, epochs=epochs, users=users, split=split or (RECORDS if workers == 1 else 256))
    if cached:
        c.write("rows.yaml", text + CACHED)
        return c
    c.write("rows.yaml", text + ('tables: ["users/*", "items_of/*"]\n' if tables else ""))
    return c


def weights(c):
    """Everything in the newest checkpoint, by variable and slot, with slices put together."""
    folder = c.saved("rows", c.checkpoints("rows")[-1])
    parts = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            parts.update(load_file(os.path.join(folder, name)))
    return parts


def whole(parts):
    """The same, whatever the slices: sorted numbers of each variable and slot."""
    sums = {}
    for name, values in parts.items():
        sums.setdefault(name.split("@")[0].split("#")[0], []).append(values.ravel())
    return {name: np.sort(np.concatenate(rows)) for name, rows in sums.items()}


def updates(c):
    manifest = json.load(open(c.saved("rows", c.checkpoints("rows")[-1], "manifest.json")))
    return max(s["updates"] for v in manifest["variables"] for s in v["slices"])


def alike(c):
    """All records are the first one: whoever makes a step, its gradients are the same."""
    for name in ("user.npy", "items.npy", "y.npy"):
        a = np.load(c.path(name))
        np.save(c.path(name), np.repeat(a[:1], RECORDS, axis=0))

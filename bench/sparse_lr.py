#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logistic regression by FTRL on sparse records, beside the same in PyTorch operations, on the same cores.

sparse_lr.py [--torch PYTHON] [--batches 512,4096] [--clusters 1+1] [--repeats 5] [--rows bounded,unbounded]

39 ids of 1,000,000 in a record, by Zipf, in memory on both sides. weft: an embedding of dim 1 with
`combiner: sum`, as a table. PyTorch: ids made distinct, the rows' z and n gathered, FTRL-Proximal written
out, and put back (McMahan et al. 2013, algorithm 1). Both take turns, so that what else the machine
does meets both alike. weft's rate is that of a job's epochs behind the first, by the times in its log.
Prints medians, least and most, the shares of the workers' time, and the ratio to PyTorch's best.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from deepfm import moment
from parameter_servers import Cluster

RECORDS, NNZ, COLUMNS, EPOCHS = 200000, 39, 1000000, 9
JOB = """
job: {name}
model:
  input: {{ids: {{shape: [39], dtype: int64}}}}
  layers:
    - embedding: {{input_dim: {rows}, output_dim: 1, combiner: sum, embeddings_initializer: zeros}}
loss: {{binary_crossentropy: {{from_logits: true}}}}
data:
  format: npy
  train: {{ids: {data}/ids.npy, y: {data}/y.npy}}
  split_records: 200000
tables: [{table}]
batch: {batch}
epochs: {epochs}
optimizer: {{ftrl: {{learning_rate: 0.1, l1_regularization_strength: 0.0001, beta: 1.0}}}}
consistency: {{mode: async, pipeline: 1}}
seed: 1
"""
TABLES = {"bounded": (str(COLUMNS), '"*/embeddings"'),
          "unbounded": ("unbounded", '{match: "*/embeddings", rows: unbounded}')}
TORCH = """
import sys, time, statistics, numpy as np, torch
folder, batch, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
I, Y = (torch.from_numpy(np.load(f"{folder}/{k}.npy")) for k in ("ids", "y"))
Y = Y[:, 0]
A, B, L1, L2 = 0.1, 1.0, 1.0, 0.0
Z, N = torch.zeros(1000000), torch.zeros(1000000)
rates = []
for epoch in range(4):
    began = time.perf_counter()
    steps = len(I) // batch
    for k in range(steps):
        i, y = I[k * batch:(k + 1) * batch], Y[k * batch:(k + 1) * batch]
        u, inverse = i.unique(return_inverse=True)
        z, n = Z[u], N[u]
        w = torch.where(z.abs() > L1, -(z - torch.sign(z) * L1) / ((B + n.sqrt()) / A + L2), torch.zeros(()))
        p = torch.sigmoid(w[inverse].sum(1))
        g = torch.zeros_like(w).scatter_add_(0, inverse.flatten(), (p - y).repeat_interleave(i.shape[1]))
        s = ((n + g * g).sqrt() - n.sqrt()) / A
        Z[u] = z + g - s * w
        N[u] = n + g * g
    rates.append(steps * batch / (time.perf_counter() - began))
print(statistics.median(rates[1:]))
"""


def make_data(folder):
    r = np.random.default_rng(0)
    ids = np.sort((r.zipf(1.2, (RECORDS, NNZ)) * 2654435761 + np.arange(NNZ) * 97) % COLUMNS, axis=1)
    np.save(f"{folder}/ids.npy", ids.astype(np.int64))
    score = r.normal(size=COLUMNS)[ids].sum(1)
    np.save(f"{folder}/y.npy", (score > 0).astype(np.float32)[:, None])


class Weft:
    def __init__(self, text, rows, data):
        ps, workers = map(int, text.split("+"))
        self.name, self.rows, self.data, self.n = f"weft {ps} ps + {workers} workers, {rows}", rows, data, 0
        self.cluster = Cluster(ps, workers, max(1, os.cpu_count() // workers))

    def run(self, batch):
        c = self.cluster
        self.n += 1
        name = f"s{self.n}"
        rows, table = TABLES[self.rows]
        with open(os.path.join(c.folder.name, name + ".yaml"), "w", encoding="utf-8") as f:
            f.write(JOB.format(name=name, data=self.data, batch=batch, epochs=EPOCHS, rows=rows, table=table))
        before = c.spent()
        c.weft("train", name + ".yaml")
        spent = {k: v - before[k] for k, v in c.spent().items()}
        with open(os.path.join(c.folder.name, ".weft", "jobs", name + "#1", "events.jsonl"), encoding="utf-8") as f:
            ends = [moment(e["ts"]) for e in map(json.loads, f) if e["event"] == "job.epoch"]
        c.weft("rm", name)
        return RECORDS * (len(ends) - 1) / (ends[-1] - ends[0]), spent


class Torch:
    def __init__(self, python, threads, data):
        self.name, self.python, self.threads, self.data = f"PyTorch, {threads} threads", python, threads, data

    def run(self, batch):
        done = subprocess.run([self.python, "-c", TORCH, self.data, str(batch), str(self.threads)], text=True,
                              capture_output=True)
        if done.returncode:
            sys.exit(f"sparse_lr.py: PyTorch did not run: {done.stderr.strip().splitlines()[-1]}")
        return float(done.stdout), {}


def report(sides, batch, runs):
    best = max((statistics.median(r for r, _ in of) for side, of in zip(sides, runs) if isinstance(side, Torch)),
               default=None)
    for side, of_side in zip(sides, runs):
        rates = [r for r, _ in of_side]
        spent = {k: sum(s[k] for _, s in of_side) for k in of_side[0][1]}
        shares = "  ".join(f"{k[:-2]} {100 * v / sum(spent.values()):.0f} %" for k, v in spent.items())
        ratio = f"{statistics.median(rates) / best:.2f}" if best else ""
        print(f"| {side.name} | {batch} | {statistics.median(rates):.0f} ({min(rates):.0f}-{max(rates):.0f}) "
              f"| {ratio} | {shares} |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--torch", help="a Python with torch and numpy")
    p.add_argument("--batches", default="512,4096")
    p.add_argument("--clusters", default="1+1")
    p.add_argument("--rows", default="bounded")
    p.add_argument("--repeats", type=int, default=5)
    a = p.parse_args()
    print(f"load before: {os.getloadavg()[0]:.2f}")
    print("| what | batch | examples/s: median (min-max) | of PyTorch | workers' time |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as data, contextlib.ExitStack() as stack:
        make_data(data)
        sides = [Weft(text, rows, data) for text in a.clusters.split(",") for rows in a.rows.split(",")]
        for side in sides:
            stack.enter_context(side.cluster)
        sides += [Torch(a.torch, t, data) for t in (1, 2)] if a.torch else []
        for batch in map(int, a.batches.split(",")):
            rounds = [[side.run(batch) for side in sides] for _ in range(a.repeats)]
            report(sides, batch, list(zip(*rounds)))


if __name__ == "__main__":
    main()

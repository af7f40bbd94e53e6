#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""AUC of DeepFM after training by weft, for kinds of tables and of consistency, beside PyTorch's.

click_auc.py [--torch PYTHON] [--records 1000000] [--seeds 1]

Records of 13 numbers and 26 ids, by Zipf, are clicks with the probability that a known factorization
machine (the teacher) gives them: its own AUC is the most that a model can reach. All sides read the
same records once, shuffled, with Adagrad from random weights of their own; 100,000 further records
are evaluated. Workers of async take batches of 512; of bsp 256 each, which makes PyTorch's 512
together. Prints each AUC, and by how much it differs from the mean of PyTorch's; ends with exit
code 1 where a side did not run, or differs by more than 0.001.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from parameter_servers import Cluster

FIELDS, EACH, NUMBERS, EVALUATED, MOST = 26, 4000, 13, 100000, 0.001
ROWS = FIELDS * EACH
JOB = """
job: {name}
model:
  input: {{numbers: [13], ids: {{shape: [26], dtype: int64}}}}
  layers:
    - embedding: {{name: vectors, input_dim: {rows}, output_dim: 8, inputs: ids,
                  embeddings_initializer: {{random_normal: {{stddev: 0.01}}}}}}
    - factorization_machine: {{name: pairs}}
    - embedding: {{name: weights, input_dim: {rows}, output_dim: 1, inputs: ids, embeddings_initializer: zeros}}
    - global_average_pooling1d
    - rescaling: {{scale: 26, name: first}}
    - dense: {{units: 1, name: linear, inputs: numbers, kernel_initializer: zeros}}
    - flatten: {{inputs: vectors}}
    - concatenate: {{inputs: [flatten, numbers]}}
    - dense: {{units: 64, activation: relu}}
    - dense: {{units: 32, activation: relu}}
    - dense: {{units: 1, name: deep}}
    - add: {{inputs: [linear, first, pairs, deep]}}
loss: {{binary_crossentropy: {{from_logits: true}}}}
metrics: [auc]
data:
  format: npy
  train: {{numbers: {data}/train_numbers.npy, ids: {data}/train_ids.npy, y: {data}/train_y.npy}}
  eval: {{numbers: {data}/eval_numbers.npy, ids: {data}/eval_ids.npy, y: {data}/eval_y.npy}}
tables:
  - {{match: "vectors/*"{table}}}
  - {{match: "weights/*"{table}}}
batch: {batch}
epochs: 1
optimizer: {{adagrad: {{learning_rate: 0.1}}}}
consistency: {{mode: {mode}}}
compute: {compute}
seed: {seed}
"""
TORCH = """
import sys, numpy as np, torch
from torch.nn import functional as F
folder, seed, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(seed)
data = {k: torch.from_numpy(np.load(f"{folder}/{k}.npy")) for k in
        [f"{part}_{what}" for part in ("train", "eval") for what in ("numbers", "ids", "y")]}

class DeepFM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = torch.nn.Embedding(rows, 8, sparse=True)
        self.weights = torch.nn.Embedding(rows, 1, sparse=True)
        self.linear = torch.nn.Linear(13, 1)
        self.deep = torch.nn.Sequential(torch.nn.Linear(26 * 8 + 13, 64), torch.nn.ReLU(),
                                        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        torch.nn.init.normal_(self.vectors.weight, std=0.01)
        torch.nn.init.zeros_(self.weights.weight)
        torch.nn.init.zeros_(self.linear.weight)
        for m in (self.linear, *self.deep):
            if isinstance(m, torch.nn.Linear):
                torch.nn.init.zeros_(m.bias)
        for m in self.deep:
            if isinstance(m, torch.nn.Linear):
                torch.nn.init.xavier_uniform_(m.weight)

    def forward(self, numbers, ids):
        v = self.vectors(ids)
        pairs = 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(1, keepdim=True)
        deep = self.deep(torch.cat([v.flatten(1), numbers], 1))
        return self.linear(numbers) + self.weights(ids).sum(1) + pairs + deep

m = DeepFM()
opt = torch.optim.Adagrad(m.parameters(), lr=0.1, initial_accumulator_value=0.1, eps=1e-7)
order = torch.randperm(len(data["train_y"]))
for at in range(0, len(order), 512):
    k = order[at:at + 512]
    opt.zero_grad()
    out = m(data["train_numbers"][k], data["train_ids"][k])
    F.binary_cross_entropy_with_logits(out, data["train_y"][k]).backward()
    opt.step()
with torch.no_grad():
    out = torch.cat([m(data["eval_numbers"][a:a + 10000], data["eval_ids"][a:a + 10000])
                     for a in range(0, len(data["eval_y"]), 10000)])
np.save(f"{folder}/torch_{seed}.npy", out.numpy()[:, 0])
"""
RUNS = [(f"{rows}, rows {dtype}, {mode}", rows, dtype, mode, "float32")
        for rows in ("bounded", "unbounded") for dtype in ("float32", "bfloat16") for mode in ("async", "bsp")]
RUNS.append(("bounded, rows and compute bfloat16, async", "bounded", "bfloat16", "async", "bfloat16"))


def area(scores, y):
    """The area under the ROC curve by ranks (Hanley and McNeil, 1982); equal scores are too rare to count."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    ones = y == 1
    n = ones.sum()
    return (ranks[ones].sum() - n * (n + 1) / 2) / (n * (len(y) - n))


def make_data(folder, records):
    """Returns the AUC of the teacher."""
    r = np.random.default_rng(0)
    weights, vectors = r.normal(0, 0.3, ROWS), r.normal(0, 0.12, (ROWS, 4)).astype(np.float32)
    slope = r.normal(0, 0.3, NUMBERS)
    for part, n in (("train", records), ("eval", EVALUATED)):
        ids = (r.zipf(1.2, (n, FIELDS)) - 1) % EACH + np.arange(FIELDS) * EACH
        numbers = r.standard_normal((n, NUMBERS), dtype=np.float32)
        total, squares = np.zeros((n, 4), np.float32), np.zeros(n, np.float32)
        for field in range(FIELDS):
            v = vectors[ids[:, field]]
            total += v
            squares += (v ** 2).sum(1)
        logit = -1 + weights[ids].sum(1) + numbers @ slope + 0.5 * ((total ** 2).sum(1) - squares)
        y = (r.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
        for what, array in (("numbers", numbers), ("ids", ids), ("y", y[:, None])):
            np.save(f"{folder}/{part}_{what}.npy", array)
    return area(logit, y)


def train(cluster, data, name, run, seed):
    _, rows, dtype, mode, compute = run
    table = f", dtype: {dtype}" + (", rows: unbounded" if rows == "unbounded" else "")
    with open(os.path.join(cluster.folder.name, name + ".yaml"), "w", encoding="utf-8") as f:
        f.write(JOB.format(name=name, data=data, rows=ROWS if rows == "bounded" else "unbounded", table=table,
                           batch=512 if mode == "async" else 256, mode=mode, compute=compute, seed=seed))
    cluster.weft("train", name + ".yaml")
    job = [j for j in json.loads(cluster.weft("status", "--json"))["jobs"] if j["job"] == name][0]
    cluster.weft("rm", name)
    return job["eval"]["auc"]


def train_torch(python, data, seed):
    done = subprocess.run([python, "-c", TORCH, data, str(seed), str(ROWS)], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"click_auc.py: PyTorch did not run: {done.stderr.strip().splitlines()[-1]}")
    return area(np.load(f"{data}/torch_{seed}.npy"), np.load(f"{data}/eval_y.npy")[:, 0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--torch", help="a Python with torch and numpy")
    p.add_argument("--records", type=int, default=1000000)
    p.add_argument("--seeds", type=int, default=1)
    a = p.parse_args()
    seeds, far = range(1, a.seeds + 1), []
    with tempfile.TemporaryDirectory() as data:
        print(f"the teacher: {make_data(data, a.records):.4f}")
        torch = [train_torch(a.torch, data, seed) for seed in seeds] if a.torch else []
        if torch:
            print("PyTorch: " + " ".join(f"{t:.4f}" for t in torch))
        print("| weft | AUC | less PyTorch's |\n|---|---|---|", flush=True)
        with Cluster(2, 2, 1) as cluster:
            for i, run in enumerate(RUNS):
                found = [train(cluster, data, f"c{i}s{seed}", run, seed) for seed in seeds]
                less = statistics.mean(found) - statistics.mean(torch) if torch else 0
                far += [run[0]] if abs(less) > MOST else []
                print(f"| {run[0]} | {' '.join(f'{f:.4f}' for f in found)} | "
                      f"{f'{less:+.4f}' if torch else ''} |", flush=True)
    if far:
        sys.exit(f"click_auc.py: more than {MOST} from PyTorch: {'; '.join(far)}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DeepFM with embeddings as tables on a cluster, beside PyTorch in one process, on the same cores.

deepfm.py [--torch PYTHON] [--tensorflow PYTHON] [--peers DIR] [--batches 512,4096] [--ids uniform,zipf] [--clusters 1+1,2+2] 
          [--repeats 5] [--rows 1000000] [--compute float32]

13 numbers and 26 ids of a record; --rows rows of 16 numbers and as many of one; a perceptron of
400-400-400; Adagrad. --compute is of weft's workers alone: PyTorch computes in float32. weft's clusters of PS+WORKERS and DIR/ctr_torch.py (deepfm BATCH adagrad), run by
PYTHON, which prints its rate, take turns, so that what else the machine does meets all alike. So do
TensorFlow's parameter servers with uniform ids of 10^6 rows, in the clusters that weft has (DIR/tf_ps.py run PS WORKERS
BATCH STEPS deepfm: the better of 1 and 10 steps per call). weft's
rate is that of a job's epochs behind the first, by the times in its log: the start and the last
checkpoint are not in it, as the start of PyTorch is not.
Prints medians, least and most, the shares of the workers' time, and the ratios to PyTorch; ends with
exit code 1 and a sentence where a side did not run.
"""
import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import tempfile

import numpy as np

from parameter_servers import Cluster, check_tensorflow, run_tensorflow

RECORDS, FIELDS, NUMBERS, EPOCHS = 122880, 26, 13, 3
EXPONENT = 1.05
TORCH_ROWS = "ROWS, DIM, N = 1000000,"
JOB = """
job: {name}
model:
  input: {{numbers: [13], ids: {{shape: [26], dtype: int64}}}}
  layers:
    - embedding: {{name: vectors, input_dim: {rows}, output_dim: 16, inputs: ids,
                  embeddings_initializer: {{random_normal: {{stddev: 0.01}}}}}}
    - factorization_machine: {{name: pairs}}
    - embedding: {{name: weights, input_dim: {rows}, output_dim: 1, inputs: ids, embeddings_initializer: zeros}}
    - global_average_pooling1d
    - rescaling: {{scale: 26, name: first}}
    - dense: {{units: 1, name: linear, inputs: numbers, kernel_initializer: zeros}}
    - flatten: {{inputs: vectors}}
    - concatenate: {{inputs: [flatten, numbers]}}
    - dense: {{units: 400, activation: relu}}
    - dense: {{units: 400, activation: relu}}
    - dense: {{units: 400, activation: relu}}
    - dense: {{units: 1, name: deep}}
    - add: {{inputs: [linear, first, pairs, deep]}}
loss: binary_crossentropy
data:
  format: npy
  train: {{numbers: {data}/numbers.npy, ids: {data}/{ids}.npy, y: {data}/y.npy}}
tables: ["vectors/*", "weights/*"]
batch: {batch}
epochs: {epochs}
optimizer: {{adagrad: {{learning_rate: 0.01}}}}
consistency: {{mode: async, pipeline: 2}}
compute: {compute}
seed: 1
"""


def make_data(folder, rows):
    """As ctr_torch.py makes it; ids of a field by Zipf lie in the field's own rows."""
    r = np.random.default_rng(0)
    each = rows // FIELDS
    np.save(f"{folder}/uniform.npy", r.integers(0, rows, (RECORDS, FIELDS)))
    np.save(f"{folder}/zipf.npy", (r.zipf(EXPONENT, (RECORDS, FIELDS)) - 1) % each + np.arange(FIELDS) * each)
    np.save(f"{folder}/numbers.npy", r.standard_normal((RECORDS, NUMBERS), dtype=np.float32))
    np.save(f"{folder}/y.npy", r.integers(0, 2, (RECORDS, 1)).astype(np.float32))


class Weft:
    """A cluster that is up, and what its jobs have reached: rates, and the seconds of its workers."""

    def __init__(self, text, data, rows, compute):
        ps, workers = map(int, text.split("+"))
        self.rows, self.compute = rows, compute
        self.name, self.data, self.n = f"weft {ps} ps + {workers} workers", data, 0
        self.cluster = Cluster(ps, workers, max(1, os.cpu_count() // workers))

    def run(self, ids, batch):
        c = self.cluster
        self.n += 1
        name = f"d{self.n}"
        with open(os.path.join(c.folder.name, name + ".yaml"), "w", encoding="utf-8") as f:
            f.write(JOB.format(name=name, data=self.data, ids=ids, batch=batch, epochs=EPOCHS, rows=self.rows,
                               compute=self.compute))
        before = c.spent()
        c.weft("train", name + ".yaml")
        spent = {k: v - before[k] for k, v in c.spent().items()}
        with open(os.path.join(c.folder.name, ".weft", "jobs", name + "#1", "events.jsonl"), encoding="utf-8") as f:
            ends = [moment(e["ts"]) for e in map(json.loads, f) if e["event"] == "job.epoch"]
        c.weft("rm", name)
        return RECORDS * (len(ends) - 1) / (ends[-1] - ends[0]), spent


class Torch:
    name = "PyTorch, 1 process"

    def __init__(self, python, peers, folder, rows):
        with open(os.path.join(peers, "ctr_torch.py"), encoding="utf-8") as f:
            text = f.read()
        if text.count(TORCH_ROWS) != 1:
            raise SystemExit(f"deepfm.py: {f.name} does not set {TORCH_ROWS!r} once; take that of this bench's time")
        script = os.path.join(folder, "ctr_torch.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(text.replace(TORCH_ROWS, f"ROWS, DIM, N = {rows},"))
        self.words = [python, script, "deepfm"]
        self.env = dict(os.environ, PYTHONPATH=peers)

    def run(self, ids, batch):
        words = [*self.words, str(batch), "adagrad", *(["zipf"] if ids == "zipf" else [])]
        done = subprocess.run(words, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        found = re.search(r"([\d.]+) \(.*\) examples/s", done.stdout)
        if done.returncode or not found:
            last = (done.stderr.strip() or done.stdout.strip() or "nothing was printed").splitlines()[-1]
            raise SystemExit(f"deepfm.py: PyTorch did not run: {' '.join(words)} ended with {done.returncode}: {last}")
        return float(found.group(1)), {}


class TensorFlow:
    def __init__(self, python, peers, text):
        self.ps, self.workers = map(int, text.split("+"))
        self.name, self.python, self.peers = f"TensorFlow {self.ps} ps + {self.workers} workers", python, peers

    def run(self, _, batch):
        cells = [run_tensorflow(self.python, self.peers, self.ps, self.workers, batch, steps, "deepfm")
                 for steps in (1, 10)]
        return max(float(c[3].split()[0]) for c in cells), {}


def moment(ts):
    day, hours, minutes, seconds = re.search(r"(\d+)T(\d+):(\d+):([\d.]+)Z", ts).groups()
    return ((int(day) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds)


def ratio(rate, of):
    return f"{rate / of:.2f}" if of else ""


def report(sides, ids, batch, runs):
    rates = {side.name: [r for r, _ in of_side] for side, of_side in zip(sides, runs)}
    median = {name: statistics.median(r) for name, r in rates.items()}
    for side, of_side in zip(sides, runs):
        spent = {k: sum(s[k] for _, s in of_side) for k in of_side[0][1]}
        shares = "  ".join(f"{k[:-2]} {100 * v / sum(spent.values()):.0f} %" for k, v in spent.items())
        of_torch = ratio(median[side.name], median.get(Torch.name))
        of_tensorflow = ratio(median[side.name], median.get("TensorFlow" + side.name.removeprefix("weft")))
        print(f"| {side.name} | {ids} | {batch} | {median[side.name]:.0f} ({min(rates[side.name]):.0f}-"
              f"{max(rates[side.name]):.0f}) | {of_torch} | {of_tensorflow} | {shares} |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--torch", help="a Python with torch and numpy")
    p.add_argument("--tensorflow", help="a Python with tensorflow and tf_keras")
    p.add_argument("--peers", default=os.path.join(os.environ.get("WEFT_SHARED", ""), "peers"))
    p.add_argument("--batches", default="512,4096")
    p.add_argument("--ids", default="uniform,zipf")
    p.add_argument("--clusters", default="1+1,2+2")
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--rows", type=int, default=1000000)
    p.add_argument("--compute", choices=["float32", "bfloat16"], default="float32")
    a = p.parse_args()
    if a.tensorflow and (a.ids, a.rows) != ("uniform", 1000000):
        raise SystemExit("deepfm.py: TensorFlow's side has uniform ids of 1000000 rows; give --ids uniform")
    if a.tensorflow:
        check_tensorflow(a.tensorflow, a.peers)
    print(f"load before: {os.getloadavg()[0]:.2f}")
    print("| what | ids | batch | examples/s: median (min-max) | of PyTorch | of TensorFlow | workers' time |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as data, contextlib.ExitStack() as stack:
        make_data(data, a.rows)
        sides = [Weft(text, data, a.rows, a.compute) for text in a.clusters.split(",")]
        for side in sides:
            stack.enter_context(side.cluster)
        sides += [TensorFlow(a.tensorflow, a.peers, text) for text in a.clusters.split(",")] if a.tensorflow else []
        sides += [Torch(a.torch, a.peers, data, a.rows)] if a.torch else []
        for batch in map(int, a.batches.split(",")):
            for ids in a.ids.split(","):
                rounds = [[side.run(ids, batch) for side in sides] for _ in range(a.repeats)]
                report(sides, ids, batch, list(zip(*rounds)))


if __name__ == "__main__":
    main()

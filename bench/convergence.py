#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loss against records and against time, for each way in which workers may wait for each other.

    bench/convergence.py mnist|criteo --build FOLDER --shared FOLDER [--repeats N] [--svg FILE]

One ps and four workers of one thread train the same model in turns: async, ssp with a staleness of 3,
bsp, and bsp with four times the learning rate, as its updates are a quarter as many (Goyal and others,
"Accurate, Large Minibatch SGD", 2017, section 2.1). Prints a table, and draws the runs as SVG.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORKERS = 4
MODES = [("async", "mode: async", 1), ("ssp, staleness 3", "mode: ssp, staleness: 3", 1),
         ("bsp", "mode: bsp", 1), ("bsp, 4 x rate", "mode: bsp", 4)]
COLOURS = ["#1f77b4", "#2ca02c", "#d62728", "#9467bd"]

MNIST = """job: NAME
model:
  input: {x: [784]}
  layers: [{dense: {units: 128, activation: relu}}, {dense: {units: 10}}]
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: idx
  train: {x: DATA/mnist/train-images-idx3-ubyte.gz, y: DATA/mnist/train-labels-idx1-ubyte.gz}
  eval: {x: DATA/mnist/t10k-images-idx3-ubyte.gz, y: DATA/mnist/t10k-labels-idx1-ubyte.gz}
  map: {x: [{scale: 0.00392156862745098}, {reshape: [784]}]}
  split_records: 320
batch: 32
epochs: 12
optimizer: {sgd: {learning_rate: RATE}}
consistency: {MODE}
seed: SEED
"""


def criteo():
    """The example, with four epochs of its sample."""
    text = (ROOT / "examples/deepfm-criteo.yaml").read_text()
    for old, new in (("job: deepfm-criteo", "job: NAME"), ("../data/", "DATA/"),
                     ("batch: 64", "batch: 16"), ("epochs: 1", "epochs: 2"), ("seed: 1", "seed: SEED"),
                     ("  map: {ids:", "  split_records: 160\n  map: {ids:"),
                     ("optimizer: {adam: {learning_rate: 0.001}}",
                      "optimizer: {adam: {learning_rate: RATE}}\nconsistency: {MODE}")):
        assert old in text, old
        text = text.replace(old, new)
    return text


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    def __init__(self, build):
        self.weft = str(pathlib.Path(build).resolve() / "cmd/weft")
        self.folder = tempfile.TemporaryDirectory()
        lines = ["cluster: bench"]
        for role, n in (("ps", 1), ("workers", WORKERS)):
            lines += [role + ":"] + ["  - {address: tcp://127.0.0.1:%d, threads: 1}" % free_port()
                                     for _ in range(n)]
        lines += ["master: {address: tcp://127.0.0.1:%d}" % free_port(), "state_dir: .weft"]
        pathlib.Path(self.folder.name, "cluster.yaml").write_text("\n".join(lines) + "\n")

    def run(self, *words):
        return subprocess.run([self.weft, *words], cwd=self.folder.name, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def __enter__(self):
        self.run("up")
        return self

    def __exit__(self, *_):
        self.run("down")
        self.folder.cleanup()

    def job(self, name):
        jobs = json.loads(self.run("status", "--json"))["jobs"]
        return max((j for j in jobs if j["job"] == name), key=lambda j: j["run"], default=None)

    def train(self, name, text):
        """Points (seconds, records, loss of the records since the point before), and the job's end."""
        pathlib.Path(self.folder.name, name + ".yaml").write_text(text)
        process = subprocess.Popen([self.weft, "train", name + ".yaml"], cwd=self.folder.name,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        points, last = [], (1, 0, 0.0)
        while process.poll() is None:
            job = self.job(name)
            if job and job["state"] == "running" and job["metrics"].get("loss") is not None:
                epoch, trained = job["epoch"], job["epoch_trained"]
                total = job["metrics"]["loss"] * trained
                before = last if last[0] == epoch else (epoch, 0, 0.0)
                if trained - before[1] >= 1000:
                    points.append((job["elapsed_s"], (epoch - 1) * job["epoch_records"] + trained,
                                   (total - before[2]) / (trained - before[1])))
                    last = (epoch, trained, total)
            time.sleep(0.02)
        if process.returncode:
            raise SystemExit(f"{name} has failed")
        return points, self.job(name)


def panel(x0, width, height, runs, axis, label):
    """Lines of one plot: the loss against seconds (axis 0) or records (1)."""
    most = max(p[axis] for _, points, _ in runs for p in points)
    high = max(p[2] for _, points, _ in runs for p in points)
    low = min(p[2] for _, points, _ in runs for p in points)
    out = [f'<rect x="{x0}" y="20" width="{width}" height="{height}" fill="none" stroke="#888"/>']
    for k in range(5):
        y = 20 + height * (1 - k / 4)
        out.append(f'<text x="{x0 - 6}" y="{y + 4:.0f}" text-anchor="end">{low + (high - low) * k / 4:.2f}</text>')
        value = most * k / 4
        text = f"{value:.1f}" if axis == 0 else f"{value / 1000:.0f}k"
        out.append(f'<text x="{x0 + width * k / 4:.0f}" y="{height + 36}" text-anchor="middle">{text}</text>')
    out.append(f'<text x="{x0 + width / 2:.0f}" y="{height + 54}" text-anchor="middle">{label}</text>')
    for (_, points, _), colour in zip(runs, COLOURS):
        line = " ".join(f"{x0 + width * p[axis] / most:.1f},{20 + height * (high - p[2]) / (high - low):.1f}"
                        for p in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return out


def svg(runs):
    width, height = 380, 260
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * width + 150}" height="{height + 90}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    out += panel(50, width, height, runs, 0, "seconds")
    out += panel(width + 120, width, height, runs, 1, "records")
    for i, ((name, _, _), colour) in enumerate(zip(runs, COLOURS)):
        x = 60 + i * 190
        out.append(f'<line x1="{x}" y1="{height + 76}" x2="{x + 20}" y2="{height + 76}" stroke="{colour}" '
                   f'stroke-width="3"/><text x="{x + 26}" y="{height + 80}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("data", choices=["mnist", "criteo"])
    p.add_argument("--build", default=str(ROOT / "build"))
    p.add_argument("--shared", required=True)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--svg")
    args = p.parse_args()
    text, rate, metric = (MNIST, 0.1, "accuracy") if args.data == "mnist" else (criteo(), 0.001, "auc")
    text = text.replace("DATA", os.path.abspath(os.path.join(args.shared, "data")))
    runs = {}
    with Cluster(args.build) as c:
        for repeat in range(args.repeats):
            for i, (name, mode, times) in enumerate(MODES):
                job = f"{args.data}-{i}"
                points, end = c.train(job, text.replace("NAME", job).replace("MODE", mode)
                                      .replace("RATE", str(rate * times)).replace("SEED", str(repeat + 1)))
                runs.setdefault(name, []).append((points, end))
    print(f"| mode | {metric} | loss | seconds | staleness p50, p99 |\n| --- | --- | --- | --- | --- |")
    for name, of in runs.items():
        ends = [end for _, end in of]
        value = [e["eval"][metric] for e in ends]
        stale = [e["staleness"] or {"p50": 0, "p99": 0} for e in ends]
        print(f"| {name} | {min(value):.4f} to {max(value):.4f} | "
              f"{statistics.median(e['eval']['loss'] for e in ends):.4f} | "
              f"{statistics.median(e['elapsed_s'] for e in ends):.1f} | "
              f"{statistics.median(s['p50'] for s in stale):.0f}, {statistics.median(s['p99'] for s in stale):.0f} |")
    if args.svg:
        pathlib.Path(args.svg).write_text(svg([(name, *of[0]) for name, of in runs.items()]))


main()

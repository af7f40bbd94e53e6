#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the model of a job beside this file with PyTorch, to hold weft's result against.

    peer.py NAME... [--threads N]

The same data, model, first values by the same rule, loss, batch, epochs and optimizer (Adam with
weft's epsilon), in one process. The loss at the end is that of the records for evaluation.
"""
import argparse
import gzip
import os
import re
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import models

HERE = os.path.dirname(os.path.abspath(__file__))


def layers(text):
    """The module of `layers:` of a job file, drawn as weft draws it: glorot_uniform, biases 0."""
    size, made = int(re.search(r"input: {x: \[(\d+)\]}", text)[1]), []
    words = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
    for kind, options in re.findall(r"- (dense|dropout): {(.*)}", text):
        if kind == "dropout":
            made.append(nn.Dropout(float(re.search(r"rate: ([\d.]+)", options)[1])))
            continue
        units = int(re.search(r"units: (\d+)", options)[1])
        made.append(nn.Linear(size, units))
        nn.init.xavier_uniform_(made[-1].weight)
        nn.init.zeros_(made[-1].bias)
        activation, size = re.search(r"activation: (\w+)", options), units
        made += [words[activation[1]]()] if activation else []
    return nn.Sequential(*made)


def read(path):
    if path.endswith(".npy"):
        return np.load(path)
    with gzip.open(path) as f:
        raw = f.read()
    dims = np.frombuffer(raw, ">i4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(dims)


def fields(text, part):
    """{field: tensor} of `train` or `eval`, through the steps of `map`."""
    block = re.search(rf"  {part}:(.*?)\n(?=\S|  \w+:)", text + "\nend", re.S)[1]
    found = {}
    for name, path in re.findall(r"(\w+): ([^\s,}]+)", block):
        value = torch.from_numpy(np.array(read(os.path.join(HERE, path))))
        steps = re.search(rf"\b{name}: \[({{.*}})\]", text)
        if steps:
            shape = re.search(r"reshape: \[([\d, ]+)\]", steps[1])
            value = value.float() * float(re.search(r"scale: ([\d.]+)", steps[1])[1])
            value = value.reshape(-1, *map(int, shape[1].split(","))) if shape else value
        found[name] = value
    return found


LOSSES = {
    "sparse_categorical_crossentropy": lambda z, y: F.cross_entropy(
        z.flatten(0, -2), y.flatten().long()),
    "binary_crossentropy": lambda z, y: F.binary_cross_entropy_with_logits(z, y.float()),
    "mse": lambda z, y: F.mse_loss(z, y.float()),
}


def auc(y, z):
    order = np.argsort(z, kind="stable")
    rank = np.empty(len(z))
    rank[order] = np.arange(1, len(z) + 1)
    n = y.sum()
    return (rank[y > 0].sum() - n * (n + 1) / 2) / (n * (len(y) - n))


def evaluate(model, data, loss):
    z, y = [], data["y"]
    model.eval()
    with torch.no_grad():
        inputs = [k for k in data if k != "y"]
        for at in range(0, len(y), 500):
            z.append(model(*[feed(data[k][at:at + 500]) for k in inputs]))
    model.train()
    z = torch.cat(z)
    shown = {"loss": LOSSES[loss](z, y).item()}
    if loss.startswith("sparse"):
        shown["accuracy"] = (z.argmax(-1) == y).float().mean().item()
    elif loss.startswith("binary"):
        shown["accuracy"] = ((z > 0) == (y > 0)).float().mean().item()
        shown["auc"] = auc(y.numpy().ravel(), z.numpy().ravel())
    return shown


def feed(value):
    """Ids as int64, all else as float32."""
    return value.long() if value.dtype == torch.int32 or value.dim() == 2 and \
        value.dtype == torch.uint8 and value.shape[1] == 64 else value.float()


def train(name):
    with open(os.path.join(HERE, f"{name}.yaml"), encoding="utf-8") as f:
        text = f.read()
    torch.manual_seed(1)
    model = models.build(name) if name in models.MODELS else layers(text)
    batch, epochs = (int(re.search(rf"^{key}: (\d+)", text, re.M)[1]) for key in ("batch", "epochs"))
    rate = float(re.search(r"adam: {learning_rate: ([\d.]+)}", text)[1])
    loss = next(word for word in LOSSES if word in text)
    data, held = fields(text, "train"), fields(text, "eval")
    inputs = [k for k in data if k != "y"]
    optimizer, began = torch.optim.Adam(model.parameters(), rate, eps=1e-7), time.monotonic()
    for epoch in range(epochs):
        for at in torch.randperm(len(data["y"])).split(batch):
            optimizer.zero_grad()
            LOSSES[loss](model(*[feed(data[k][at]) for k in inputs]), data["y"][at]).backward()
            optimizer.step()
        shown = evaluate(model, held, loss)
        print(f"{name}: epoch {epoch + 1}/{epochs}  {time.monotonic() - began:.1f} s  " +
              "  ".join(f"{k} {v:.4f}" for k, v in shown.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name in args.name:
        train(name)


if __name__ == "__main__":
    main()

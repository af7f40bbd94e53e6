#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the model of a job beside this file with PyTorch, to hold weft's result against.

    peer.py NAME... [--threads N] [--seed N]

The same data, model, first values by the same rule, loss, batch, epochs and optimizer (Adam with
its epsilon where weft and Keras have it, clipping by the common norm), in one process. Another
--seed is another order of the records and, for `layers`, other first values. What is shown after
each epoch is of the records for evaluation.
"""
import argparse
import gzip
import os
import re
import sys
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


def evaluate(model, data, inputs, loss):
    z, y = [], data["y"]
    model.eval()
    with torch.no_grad():
        for at in range(0, len(y), 500):
            z.append(model(*[data[k][at:at + 500].to(kind) for k, kind in inputs.items()]))
    model.train()
    z = torch.cat(z)
    shown = {"loss": LOSSES[loss](z, y).item()}
    if loss.startswith("sparse"):
        shown["accuracy"] = (z.argmax(-1) == y).float().mean().item()
    elif loss.startswith("binary"):
        shown["accuracy"] = ((z > 0) == (y > 0)).float().mean().item()
        shown["auc"] = auc(y.numpy().ravel(), z.numpy().ravel())
    return shown


def built(name, text, seed):
    """The model of a job, and its inputs with their dtypes."""
    torch.manual_seed(seed)
    if not re.search("format: (npy|idx)", text):
        sys.exit(f"peer.py: {name} reads text, and this program arrays alone")
    if name in models.MODELS:
        return models.build(name), {k: v.dtype for k, v in models.MODELS[name][1].items()}
    return layers(text), {"x": torch.float32}


def stepper(text, model, inputs, loss):
    """A function that takes data and places in it, makes one step, and returns its loss."""
    rate = float(re.search(r"learning_rate: ([\d.]+)", text)[1])
    most, done = re.search(r"global_clipnorm: ([\d.]+)", text), 0
    optimizer = torch.optim.Adam(model.parameters(), rate)

    def step(data, at):
        nonlocal done
        done += 1
        optimizer.zero_grad()
        z = model(*[data[k][at].to(kind) for k, kind in inputs.items()])
        value = LOSSES[loss](z, data["y"][at])
        value.backward()
        if most:
            nn.utils.clip_grad_norm_(model.parameters(), float(most[1]))
        # PyTorch adds epsilon after v's correction of bias, Keras and weft before it.
        optimizer.param_groups[0]["eps"] = 1e-7 / (1 - 0.999 ** done) ** 0.5
        optimizer.step()
        return value.item()
    return step


def train(name, seed):
    with open(os.path.join(HERE, f"{name}.yaml"), encoding="utf-8") as f:
        text = f.read()
    batch = int(re.search(r"^batch: (\d+)", text, re.M)[1])
    epochs = int(re.search(r"^epochs: (\d+)", text, re.M)[1])
    loss = next(word for word in LOSSES if word in text)
    data, held = fields(text, "train"), fields(text, "eval")
    model, inputs = built(name, text, seed)
    step, began = stepper(text, model, inputs, loss), time.monotonic()
    torch.manual_seed(seed)
    for epoch in range(epochs):
        for at in torch.randperm(len(data["y"])).split(batch):
            step(data, at)
        shown = evaluate(model, held, inputs, loss)
        print(f"{name}: epoch {epoch + 1}/{epochs}  {time.monotonic() - began:.1f} s  " +
              "  ".join(f"{k} {v:.4f}" for k, v in shown.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name in args.name:
        train(name, args.seed)


if __name__ == "__main__":
    main()

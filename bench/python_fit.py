# SPDX-License-Identifier: Apache-2.0
"""python_fit.py LIBWEFT MNIST [RUNS] - an epoch of MNIST at batch 128: weft's fit, Keras's, and PyTorch.

A dense network, 784 - 128 (relu) - 10, trained by Adam on 60,000 images in memory as float32. Each
library runs in a process of its own, one after the other, with as many threads as it takes by itself;
each trains one epoch to get warm, and then RUNS (5) epochs, one fit each. All of a call of fit counts.
PyTorch has two loops: over slices of a permuted tensor, and over a DataLoader of tensors.

MNIST is the folder of the four IDX files. Runs in the interpreter that calls it: what is not
installed there is left out.
"""
import gzip
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

BATCH, HIDDEN, RATE = 128, 128, 0.001
KINDS = ["weft", "keras tensorflow", "keras torch", "torch slices", "torch loader"]


def mnist(folder):
    def read(name, skip):
        with gzip.open(os.path.join(folder, name)) as f:
            return np.frombuffer(f.read(), np.uint8, offset=skip)
    x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32) / 255
    return x, read("train-labels-idx1-ubyte.gz", 8).astype(np.int64)


def by_weft(x, y):
    import weft
    m = weft.Model.from_layers([weft.Input([784]), weft.layers.Dense(HIDDEN, activation="relu"),
                                weft.layers.Dense(10)])
    m.compile(weft.optimizers.Adam(RATE), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return lambda: m.fit(x, y, batch_size=BATCH, verbose=0).history["loss"][-1]


def by_keras(x, y):
    import keras
    m = keras.Sequential([keras.Input((784,)), keras.layers.Dense(HIDDEN, "relu"),
                          keras.layers.Dense(10)])
    m.compile(keras.optimizers.Adam(RATE),
              keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return lambda: m.fit(x, y, batch_size=BATCH, verbose=0).history["loss"][-1]


def by_torch(x, y, loads):
    import torch
    from torch import nn
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    net = nn.Sequential(nn.Linear(784, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))
    optimizer = torch.optim.Adam(net.parameters(), RATE)
    crossentropy = nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), BATCH, shuffle=True)

    def slices():
        order = torch.randperm(len(x))
        for at in range(0, len(x), BATCH):
            rows = order[at:at + BATCH]
            yield x[rows], y[rows]

    def epoch():
        total = right = 0.0
        for bx, by in loader if loads else slices():
            optimizer.zero_grad()
            scores = net(bx)
            loss = crossentropy(scores, by)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(bx)
            right += (scores.argmax(1) == by).sum().item()
        return total / len(x)
    return epoch


def one(kind, folder, runs):
    words = kind.split()
    if words[0] == "keras":
        os.environ["KERAS_BACKEND"] = words[1]
    x, y = mnist(folder)
    try:
        epoch = (by_weft(x, y) if words[0] == "weft" else by_keras(x, y) if words[0] == "keras"
                 else by_torch(x, y, words[1] == "loader"))
    except ImportError as e:
        print(f"{kind:18} not here: {e}")
        return
    epoch()
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        loss = epoch()
        took.append(time.perf_counter() - began)
    print(f"{kind:18} {min(took):7.3f} s the best of {runs}, {statistics.median(took):7.3f} the "
          f"median; loss {loss:.4f} after {runs + 1} epochs", flush=True)


def main():
    library, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    env = dict(os.environ, WEFT_LIBRARY=library, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=str(
        pathlib.Path(__file__).resolve().parent.parent / "python"))
    if "WEFT_FIT_KIND" in os.environ:
        one(os.environ["WEFT_FIT_KIND"], folder, runs)
        return
    for kind in KINDS:
        subprocess.run([sys.executable, *sys.argv], env=dict(env, WEFT_FIT_KIND=kind), check=True,
                       stderr=subprocess.DEVNULL)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of training beside PyTorch's, model by model, in one run on the same cores.

models.py [--build DIR] [--threads 2] [--only mlp-32,lenet] [--bf16] [--as-installed]
              [--keras PYTHON --peers DIR]

Each network is written once, in PyTorch, and exported: both sides train the same graph with the same
optimizer on data of the same shapes, one worker, no network. The rate of a side is the median of five
windows; PyTorch's is the better of eager and compiled (channels last where there are images). --bf16
sets `compute: bfloat16` beside autocast. Memory is what training adds to a process that holds the
weights: the most that was resident, less what was before the first step. PyTorch is told to flush
subnormal numbers, as weft does; --as-installed leaves it as it comes. --peers: DIR/keras_train.py's XLA
loop for the MLP. Prints a table and, last, the ratios. Python is one with torch, onnx and numpy.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WINDOWS = 5
# case: network, batch, examples (or tokens) counted for each record, wanted ratio, ratio in bf16
CASES = {
    "mlp-32": ("mlp", 32, 1, 2.5, None),
    "mlp-128": ("mlp", 128, 1, 2.0, None),
    "mlp-512": ("mlp", 512, 1, 1.3, None),
    "lenet": ("lenet", 128, 1, 1.2, 1.3),
    "resnet18": ("resnet18", 64, 1, 1.0, 1.3),
    "gpt": ("gpt", 16, 256, 1.0, 1.3),
    "lstm": ("lstm", 64, 1, 1.5, None),
    "deepfm": ("deepfm", 512, 1, 2.0, None),
}
BINARY = ("lstm", "deepfm")
OPTIMIZER = {"deepfm": "adagrad"}


def networks():
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Residual(nn.Module):
        def __init__(self, c, m, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(c, m, 3, stride, 1, bias=False), nn.BatchNorm2d(m), nn.ReLU(),
                nn.Conv2d(m, m, 3, 1, 1, bias=False), nn.BatchNorm2d(m))
            self.short = nn.Identity() if c == m else nn.Sequential(
                nn.Conv2d(c, m, 1, stride, bias=False), nn.BatchNorm2d(m))

        def forward(self, x):
            return F.relu(self.body(x) + self.short(x))

    def resnet18():
        stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        blocks = [b for c, m, s in stages for b in (Residual(c, m, s), Residual(m, m, 1))]
        return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                             *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, width = x.shape
            q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2)
                       for z in self.qkv(self.first(x)).split(width, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self, layers=6, width=384, heads=6, context=256, vocabulary=65):
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, x):
            return self.head(self.norm(self.layers(self.token(x) + self.place.weight)))

    class LSTM(nn.Module):
        def __init__(self, words=10000, width=128):
            super().__init__()
            self.words, self.lstm = nn.Embedding(words, width), nn.LSTM(width, width, batch_first=True)
            self.out = nn.Linear(width, 1)

        def forward(self, x):
            return self.out(self.lstm(self.words(x))[0][:, -1])[:, 0]

    class DeepFM(nn.Module):
        """The dense part: 26 rows of 16 that were gathered, and 13 counts."""

        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(429, 1)
            sizes = [429, 400, 400, 400]
            self.deep = nn.Sequential(*(m for a, b in zip(sizes, sizes[1:])
                                        for m in (nn.Linear(a, b), nn.ReLU())), nn.Linear(400, 1))

        def forward(self, x):
            e = x[:, 13:].reshape(-1, 26, 16)
            s = e.sum(1)
            return (self.linear(x) + self.deep(x) + 0.5 * (s * s - (e * e).sum(1)).sum(1, keepdim=True))[:, 0]

    return {
        "mlp": lambda: nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)),
        "lenet": lambda: nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(7 * 7 * 64, 512), nn.ReLU(), nn.Linear(512, 10)),
        "resnet18": resnet18, "gpt": GPT, "lstm": LSTM, "deepfm": DeepFM,
    }


def data(network, n):
    """Features and labels of n records, as arrays."""
    import numpy as np

    r = np.random.default_rng(0)
    shape = {"mlp": (784,), "lenet": (1, 28, 28), "resnet18": (3, 32, 32), "deepfm": (429,)}.get(network)
    if network == "gpt":
        return r.integers(0, 65, (n, 256)), r.integers(0, 65, (n, 256))
    if network == "lstm":
        return r.integers(0, 10000, (n, 200)), r.integers(0, 2, n).astype(np.float32)
    x = r.standard_normal((n, *shape), dtype=np.float32)
    return x, r.integers(0, 2, n).astype(np.float32) if network in BINARY else r.integers(0, 10, n)


def records(network, batch):
    return 60000 if network == "mlp" else 8 * batch


def train(case, threads, options):
    """PyTorch's side, in a process of its own: prints the rate of each window."""
    import torch
    from torch.nn import functional as F

    network, batch, count, _, _ = CASES[case]
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    torch.set_flush_denormal("as_installed" not in options)  # weft does
    model = networks()[network]()
    x, y = (torch.from_numpy(a) for a in data(network, records(network, batch)))
    if "channels_last" in options:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    if network == "deepfm":
        optimizer = torch.optim.Adagrad(model.parameters(), 0.01, fused=True)
    else:
        optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def loss(xb, yb):
        with torch.autocast("cpu", torch.bfloat16, enabled="bf16" in options):
            out = model(xb)
        if network in BINARY:
            return F.binary_cross_entropy_with_logits(out.float(), yb)
        return F.cross_entropy(out.flatten(0, -2).float(), yb.flatten())

    compiled = torch.compile(loss) if "compile" in options else loss
    order = torch.randperm(len(x))
    at = 0

    def step():
        nonlocal at
        some = order[at:at + batch]
        at = at + batch if at + 2 * batch <= len(x) else 0
        optimizer.zero_grad(set_to_none=True)
        compiled(x[some], y[some]).backward()
        optimizer.step()

    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the most begins anew
    before = resident("VmRSS")
    for _ in range(3):
        step()
    rates = []
    for _ in range(WINDOWS):
        steps, begin = 0, time.perf_counter()
        while steps < 2 or time.perf_counter() - begin < 1:
            step()
            steps += 1
        rates.append(steps * batch * count / (time.perf_counter() - begin))
    print(*rates, resident("VmHWM") - before)


def resident(which):
    """The process's resident MiB: as they are (VmRSS), or the most that they were (VmHWM)."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(which + ":"))


JOB = """job: {case}
model: {{onnx: {case}.onnx}}
loss: {loss}
data: {{format: npy, train: {{x: {network}-x.npy, y: {network}-y.npy}}}}
batch: {batch}
optimizer: {{{optimizer}: {{learning_rate: 0.001}}}}
{compute}seed: 1
"""


def prepare(folder, case, bf16):
    import numpy as np
    import torch

    network, batch, _, _, _ = CASES[case]
    torch.manual_seed(0)
    x, y = data(network, records(network, batch))
    np.save(os.path.join(folder, f"{network}-x.npy"), x)
    np.save(os.path.join(folder, f"{network}-y.npy"), y)
    model = networks()[network]().train()
    torch.onnx.export(model, (torch.from_numpy(x[:2]),), os.path.join(folder, f"{case}.onnx"),
                      dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["x"], output_names=["out"],
                      dynamic_axes={"x": {0: "N"}})
    loss = "{binary_crossentropy: {from_logits: true}}" if network in BINARY else \
        "sparse_categorical_crossentropy"
    path = os.path.join(folder, f"{case}.yaml")
    with open(path, "w") as f:
        f.write(JOB.format(case=case, network=network, batch=batch, loss=loss,
                           optimizer=OPTIMIZER.get(network, "adam"),
                           compute="compute: bfloat16\n" if bf16 else ""))
    return path


def weft(build, path, threads, count):
    done = subprocess.run([os.path.join(build, "bench", "bench_train"), path, str(threads), "5"],
                          capture_output=True, text=True)
    m = re.search(r": ([\d.]+) \(([\d.]+)-([\d.]+)\) examples/s.* memory (\d+) MiB", done.stdout)
    if not m:
        sys.exit(done.stdout + done.stderr)
    *rates, memory = map(float, m.groups())
    return [v * count for v in rates] + [memory], done.stdout.strip()


def peer(case, threads, options):
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, "--train", case, "--threads",
                           str(threads), *options], capture_output=True, text=True)
    try:
        *rates, memory = map(float, done.stdout.split())
    except ValueError:
        rates = []
    if len(rates) != WINDOWS:
        sys.exit(done.stdout + done.stderr)
    return [statistics.median(rates), min(rates), max(rates), memory]


def keras(python, peers, batch, threads):
    """The faster of its loops over steps inside one graph, compiled by XLA, on one thread and on all."""
    best = None
    for n in {1, threads}:
        done = subprocess.run([python, os.path.join(peers, "keras_train.py"), "mlp", str(batch), "graph-xla"],
                              capture_output=True, text=True, env={**os.environ, "THREADS": str(n)})
        m = re.search(r"\| (\d+) \((\d+)-(\d+)\) examples/s", done.stdout)
        if not m:
            sys.exit(done.stdout + done.stderr)
        rates = [float(v) for v in m.groups()] + [float("nan")]
        best = rates if not best or rates[0] > best[0] else best
    return best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--only", default=",".join(CASES))
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--as-installed", action="store_true", help="PyTorch keeps subnormals, as it does untold")
    p.add_argument("--keras", help="Python with TensorFlow")
    p.add_argument("--peers", help="folder of keras_train.py")
    p.add_argument("--train", help=argparse.SUPPRESS)
    p.add_argument("options", nargs="*", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.train:
        train(a.train, a.threads, a.options)
        return
    import warnings

    warnings.filterwarnings("ignore")
    ratios = []
    show = lambda who, v: print(f"  {who:32s}{v[0]:10.0f} ({v[1]:.0f}-{v[2]:.0f}) /s{v[3]:9.0f} MiB", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for case in a.only.split(","):
            network, batch, count, wanted, wanted_bf16 = CASES[case]
            if a.bf16 and not wanted_bf16:
                continue
            print(f"{case}, batch {batch}, {a.threads} threads{', bf16' if a.bf16 else ''}", flush=True)
            path = prepare(folder, case, a.bf16)
            ours, line = weft(a.build, path, a.threads, count)
            best = 0
            last = ["channels_last"] if network in ("lenet", "resnet18") else []
            for how in ([], ["compile"]):
                options = how + last + (["bf16"] if a.bf16 else []) + \
                    (["as_installed"] if a.as_installed else [])
                rates = peer(case, a.threads, options)
                show("torch " + " ".join(options or ["eager"]), rates)
                best = max(best, rates[0])
            again, line = weft(a.build, path, a.threads, count)
            ours = max(ours, again)
            show("weft", ours)
            print("    " + line[line.index("gather"):])
            ratios.append((case, "PyTorch", ours[0] / best, wanted_bf16 if a.bf16 else wanted))
            if network == "mlp" and a.keras and a.peers:
                rates = keras(a.keras, a.peers, batch, a.threads)
                show("keras, XLA", rates)
                ratios.append((case, "XLA", ours[0] / rates[0], 1.0))
    for case, who, ratio, wanted in ratios:
        print(f"{case:10s} {ratio:5.2f} x {who:8s} (wanted {wanted})")


main()

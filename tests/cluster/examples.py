# SPDX-License-Identifier: Apache-2.0
"""The quick jobs of examples/, from their own files, on a part of their data: they learn.

    examples.py WEFT [TEST...]

Models that PyTorch exports are trained where torch is there. The LSTM, too slow to learn here,
makes its first steps beside PyTorch: one worker, records in the file's order, the same losses.
"""
import importlib.util
import os
import shutil
import sys

from weftlib import Cluster, check, main, needs, shared

needs("numpy")

SHARED = os.path.dirname(shared("data"))
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
sys.path.insert(0, EXAMPLES)
import data  # noqa: E402


def train(weft, job, of, most_loss, records, least):
    """Trains examples/JOB.yaml on the first records of a set; `least`: metrics and their bounds."""
    with Cluster(weft) as c:
        os.mkdir(c.path("examples"))
        shutil.copyfile(os.path.join(EXAMPLES, f"{job}.yaml"), c.path("examples", f"{job}.yaml"))
        data.prepare(of, SHARED, c.path("data"), records)
        if "onnx:" in c.read(f"examples/{job}.yaml"):
            if not importlib.util.find_spec("torch"):
                print(f"     {job} is not trained: there is no torch to export its model")
                return
            import models
            models.export(job, c.path("data", "models"))
        c.must("up")
        c.must("train", f"examples/{job}.yaml", timeout=240)
        reached = c.job(job)["eval"]
        check(reached["loss"] < most_loss, f"{job}: the loss is {reached['loss']:.4f}")
        for name, bound in least.items():
            check(reached[name] > bound, f"{job}: {name} is {reached[name]:.4f}")
        print("     " + ", ".join(f"{k} {v:.4f}" for k, v in reached.items()))


# job, what it takes of `data`, the most loss, how many records, the least of its metrics
JOBS = [
    ("iris", "iris", 0.3, None, {"accuracy": 0.85}),
    ("logistic-a9a", "a9a", 0.36, 12_000, {"auc": 0.88}),
    ("higgs", "higgs", 0.69, None, {"auc": 0.58}),
    ("house-price", "house-price", 0.08, None, {}),
    ("mean-embedding-imdb", "imdb", 0.6, 4_000, {"auc": 0.8}),
    ("deepfm-criteo", "criteo", 0.56, None, {"auc": 0.66}),
    ("factorisation-movielens", "movielens", 0.95, None, {}),
    ("wide-deep-adult", "adult", 0.37, 12_000, {"auc": 0.87}),
]


def training(job, *bounds):
    def test(weft):
        train(weft, job, *bounds)
    test.__name__ = job.replace("-", "_")
    return test


def lstm_imdb_steps_as_pytorch(weft):
    if not importlib.util.find_spec("torch"):
        print("     there is no torch to step beside")
        return
    import torch
    import models
    import peer
    records, batch = 768, 32
    with Cluster(weft, ps=1, workers=1) as c:
        c.env["WEFT_LOSS_LOG"] = c.path("losses")
        data.prepare("imdb", SHARED, c.path("data"), records)
        models.export("lstm-imdb", c.path("data", "models"))
        with open(os.path.join(EXAMPLES, "lstm-imdb.yaml"), encoding="utf-8") as f:
            text = f.read().replace("../data/", "data/").replace("epochs: 2", "epochs: 1")
        c.write("lstm.yaml", text.replace("format: npy", "format: npy\n  shuffle: false"))
        c.must("train", "lstm.yaml", timeout=240)
        ours = [float.fromhex(line.split()[5]) for line in c.read("losses").splitlines()]
        model, inputs = peer.built("lstm-imdb", text, 1)
        step = peer.stepper(text, model, inputs, "binary_crossentropy")
        read = {k: torch.from_numpy(peer.read(c.path("data", "imdb", f"train_{k}.npy")))
                for k in inputs | {"y": None}}
        theirs = [step(read, at) for at in torch.arange(records).split(batch)]
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    check(len(ours) == len(theirs), f"{len(ours)} and {len(theirs)} steps")
    check(worst < 1e-5, f"losses differ by {worst:.2e}: {ours} {theirs}")
    print(f"     {len(ours)} steps, {worst:.1e} at most between their losses")


main([training(*job) for job in JOBS] + [lstm_imdb_steps_as_pytorch])

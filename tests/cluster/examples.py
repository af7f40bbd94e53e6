# SPDX-License-Identifier: Apache-2.0
"""The quick jobs of examples/, from their own files, on a part of their data: they learn.

    examples.py WEFT [TEST...]

A model that examples/models.py exports from PyTorch is written with onnx.helper here
(example_models.py). The LSTM of the examples is too slow to learn here: a smaller one of the
reference models makes 30 steps with the losses that PyTorch had, and where torch is there, the
LSTM itself makes its first steps beside it: one worker, records in the file's order.
"""
import os
import shutil
import sys

from weftlib import Cluster, check, main, needs, shared

needs("numpy", "onnx")
import example_models  # noqa: E402
import numpy as np  # noqa: E402

SHARED = os.path.dirname(shared("data"))
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
sys.path.insert(0, EXAMPLES)
import data  # noqa: E402


def train(weft, job, of, most_loss, records, least, *words):
    """Trains examples/JOB.yaml on the first records of a set, or on the files of a folder as they are;
    `least`: metrics and their bounds; words: of the command besides."""
    with Cluster(weft) as c:
        os.mkdir(c.path("examples"))
        shutil.copyfile(os.path.join(EXAMPLES, f"{job}.yaml"), c.path("examples", f"{job}.yaml"))
        if of in data.SETS:
            data.prepare(of, SHARED, c.path("data"), records)
        else:
            of = of.split()[0]
            os.mkdir(c.path("data"))
            os.symlink(os.path.join(SHARED, "data", of), c.path("data", of))
        if "onnx:" in c.read(f"examples/{job}.yaml"):
            example_models.write(job, c.path("data", "models"))
        c.must("up")
        c.must("train", f"examples/{job}.yaml", *words, timeout=240)
        reached = c.job(job)["eval"]
        check(reached["loss"] < most_loss, f"{job}: the loss is {reached['loss']:.4f}")
        for name, bound in least.items():
            check(reached[name] > bound, f"{job}: {name} is {reached[name]:.4f}")
        print("     " + ", ".join(f"{k} {v:.4f}" for k, v in reached.items()))


# job, what it takes of `data` ("NAME files": as published, where data.py also converts NAME), the most loss, how many records, the least of its metrics. A model
# that answers each record with the mean of all labels has the loss behind "mean", and an area of 0.5.
JOBS = [
    ("iris", "iris", 0.3, None, {"accuracy": 0.85}),  # mean 1.10
    ("logistic-a9a", "a9a", 0.34, None, {"auc": 0.89}),  # mean 0.553
    ("sparse-logistic-a9a", "a9a", 0.33, None, {"auc": 0.9, "accuracy": 0.848}),
    ("higgs", "higgs", 0.68, None, {"auc": 0.61}),  # mean 0.692
    ("house-price", "house-price", 0.045, None, {}),  # mean 0.153
    ("mean-embedding-imdb", "imdb", 0.6, 4_000, {"auc": 0.8}),  # mean 0.693
    ("words-imdb", "imdb files", 0.31, None, {"accuracy": 0.86, "auc": 0.94}),  # mean 0.693
    ("lstm-shakespeare", "tinyshakespeare", 2.3, None, {"accuracy": 0.34}, "--set", "epochs=1"),  # by frequency 3.3
    ("deepfm-criteo", "criteo-sample", 0.53, None, {"auc": 0.69}),  # mean 0.532
    ("dlrm-criteo", "criteo-sample", 0.51, None, {"auc": 0.68}),  # mean 0.532
    ("factorisation-movielens", "ml-100k", 0.9, None, {}),  # mean 1.331
    ("two-tower-movielens", "ml-100k", 0.58, None, {"auc": 0.76}),  # mean 0.686
    ("wide-deep-adult", "adult", 0.34, None, {"auc": 0.89}),  # mean 0.553
]


def training(job, *bounds):
    def test(weft):
        train(weft, job, *bounds)
    test.__name__ = job.replace("-", "_")
    return test


def a_stream_of_a9a(weft):
    """A file appears when the job waits for it."""
    with Cluster(weft) as c:
        for folder in ("examples", "data", "data/a9a-stream"):
            os.mkdir(c.path(folder))
        os.symlink(os.path.join(SHARED, "data", "a9a"), c.path("data", "a9a"))
        shutil.copy(os.path.join(EXAMPLES, "stream-a9a.yaml"), c.path("examples"))
        with open(c.path("data", "a9a", "a9a"), encoding="ascii") as f:
            part = c.write("part", "".join(f.readlines()[:16000]))
        c.must("up")
        c.must("submit", "examples/stream-a9a.yaml")
        c.until_job("stream-a9a", lambda j: j["rounds"] and j["rounds"]["waits_for"], "waits")
        os.rename(part, c.path("data", "a9a-stream", "part-0"))
        job = c.until_job("stream-a9a", lambda j: j["eval_epoch"] == 1, "is evaluated")
        check(job["rounds"]["records"] == 16000 and job["eval"]["auc"] > 0.895, job)
        c.must("stop", "stream-a9a")


LSTM_JOB = """job: lstm
model: {{onnx: {model}}}
data: {{format: npy, shuffle: false, train: {{ids: ids.npy, y: y.npy}}}}
batch: {batch}
optimizer: {{adam: {{learning_rate: 0.001, epsilon: 1.0e-7}}}}
"""


def an_lstm_has_pytorchs_losses(weft):
    """30 steps from the same weights over the same batches; epsilon as the curves have it is near."""
    want = np.load(shared("models", "lstm_classifier.npz"))
    order = want["order"]
    for form in ("script", "dynamo"):
        with Cluster(weft, ps=1, workers=1) as c:
            c.env["WEFT_LOSS_LOG"] = c.path("losses")
            for name in ("ids", "y"):
                np.save(c.path(f"{name}.npy"), want[f"input.{name}"][order.ravel()])
            c.write("lstm.yaml", LSTM_JOB.format(
                model=shared("models", f"lstm_classifier.{form}.onnx"), batch=order.shape[1]))
            c.must("train", "lstm.yaml")
            ours = np.array([float.fromhex(line.split()[5])
                             for line in c.read("losses").splitlines()])
        theirs = want["curve.adam"]
        worst = np.abs(ours - theirs).max() if ours.shape == theirs.shape else np.inf
        check(worst < 2e-4, f"{form}: off by {worst:.2e}: {ours}")
        print(f"     {form}: {len(ours)} steps, {worst:.1e} at most between their losses")


def lstm_imdb_steps_as_pytorch(weft):
    needs("torch")
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


main([training(*job) for job in JOBS] + [a_stream_of_a9a, an_lstm_has_pytorchs_losses, lstm_imdb_steps_as_pytorch])

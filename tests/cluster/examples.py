# SPDX-License-Identifier: Apache-2.0
"""The quick jobs of examples/, from their own files, on a part of their data: they learn.

    examples.py WEFT [TEST...]

Models that PyTorch exports are trained where torch is there.
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


def train(weft, job, of, most_loss, records=None, least=None):
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
        c.must("train", f"examples/{job}.yaml")
        reached = c.job(job)["eval"]
        check(reached["loss"] < most_loss, f"{job}: the loss is {reached['loss']:.4f}")
        for name, bound in (least or {}).items():
            check(reached[name] > bound, f"{job}: {name} is {reached[name]:.4f}")
        print("     " + ", ".join(f"{k} {v:.4f}" for k, v in reached.items()))


def iris(weft):
    train(weft, "iris", "iris", 0.3, least={"accuracy": 0.85})


def logistic_a9a(weft):
    train(weft, "logistic-a9a", "a9a", 0.36, 12_000, {"auc": 0.88})


def higgs(weft):
    train(weft, "higgs", "higgs", 0.69, least={"auc": 0.6})


def house_price(weft):
    train(weft, "house-price", "house-price", 0.08)


def mean_embedding_imdb(weft):
    train(weft, "mean-embedding-imdb", "imdb", 0.6, 4_000, {"auc": 0.8})


def deepfm_criteo(weft):
    train(weft, "deepfm-criteo", "criteo", 0.56, least={"auc": 0.66})


def factorisation_movielens(weft):
    train(weft, "factorisation-movielens", "movielens", 0.95)


def wide_deep_adult(weft):
    train(weft, "wide-deep-adult", "adult", 0.37, 12_000, {"auc": 0.87})


main([iris, logistic_a9a, higgs, house_price, mean_embedding_imdb, deepfm_criteo,
      factorisation_movielens, wide_deep_adult])

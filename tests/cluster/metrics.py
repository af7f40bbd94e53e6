# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics from end to end: what a job reports is what numpy makes of its weights.

Each test trains a job on two workers, exports the weights of its end, computes every metric from the
model's outputs with forms written here, and compares: with the evaluation that the master shows, and
with that of `weft eval`. 1203 records are batches of 500, 500 and 203.
"""
import json
import sys

import weftlib

weftlib.needs("numpy", "onnx", "onnxruntime")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RECORDS = 1203
JOB = """job: {name}
model: {model}
loss: {loss}
metrics: {metrics}
{more}
data:
  format: npy
  train: {{{fields}}}
  eval: {{{fields}}}
  split_records: 128
batch: 32
epochs: 2
optimizer: {{sgd: {{learning_rate: 0.05}}}}
seed: 3
"""
LAYERS = "{{input: {{x: [8]}}, layers: [dense: {{units: 16, activation: tanh}}, dense: {{units: {}}}]}}"


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def log_softmax(z):
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def roc_auc(y, score):
    """The chance that a positive example has the higher score: by ranks, ties in the middle."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    n = y.sum()
    return (rank[y > 0].sum() - n * (n + 1) / 2) / (n * (len(y) - n))


def average_precision(y, score):
    order = np.argsort(-score, kind="stable")
    y, score = y[order], score[order]
    last = np.append(score[1:] != score[:-1], True)  # thresholds lie between different scores
    hits = np.cumsum(y)[last]
    precision = hits / (np.flatnonzero(last) + 1)
    return (np.diff(hits, prepend=0) * precision).sum() / y.sum()


def f1_scores(said, right):
    """Of each class, from rows of yes and no: by precision and recall, unlike weft's form."""
    hits = (said & right).sum(0)
    precision = np.divide(hits, said.sum(0), out=np.zeros(len(hits)), where=said.sum(0) > 0)
    recall = np.divide(hits, right.sum(0), out=np.zeros(len(hits)), where=right.sum(0) > 0)
    both = precision + recall
    return np.divide(2 * precision * recall, both, out=np.zeros(len(hits)), where=both > 0)


def f1_of_all(said, right):
    return f1_scores(said.reshape(-1, 1), right.reshape(-1, 1))[0]


def check(shown, want, tolerance=2e-5):
    for name, value in want.items():
        weftlib.check(name in shown, f"no {name} in {shown}")
        limit = 1e-3 if "auc" in name else tolerance * max(1, abs(value))
        weftlib.check(abs(shown[name] - value) < limit, f"{name}: {shown[name]} for {value}")


def train(c, name, model, loss, metrics, data, expect, more=""):
    """Trains, and compares with expect(outputs of the exported model)."""
    for field, value in data.items():
        np.save(c.path(f"{field}.npy"), value)
    fields = ", ".join(f"{field}: {field}.npy" for field in data)
    c.write(f"{name}.yaml", JOB.format(name=name, model=model, loss=loss, metrics=metrics,
                                       fields=fields, more=more))
    c.must("up")
    done = c.must("train", f"{name}.yaml")
    c.must("export", name, "-o", f"{name}.onnx")
    session = onnxruntime.InferenceSession(c.path(f"{name}.onnx"))
    feeds = {i.name: data[i.name] for i in session.get_inputs()}
    values = {o.name: v.astype(np.float64)
              for o, v in zip(session.get_outputs(), session.run(None, feeds))}
    want = expect(values)
    job = c.job(name)
    check(job["eval"], want)
    evaluated = json.loads(c.must("eval", name, "--json").out)
    weftlib.check(evaluated["records"] == RECORDS, evaluated)
    check(evaluated, want)
    for shown in want:
        weftlib.check(shown in done.out, f"{shown} is not in: {done.out}")
        if job["metrics"]:  # a job of less than a second ends before its first report
            weftlib.check(shown in job["metrics"], f"{shown} is not in {job['metrics']}")


def records():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(RECORDS, 8)).astype(np.float32)
    return x, rng


def metrics_of_regression(weft):
    x, rng = records()
    y = np.stack([x[:, 0] * 2 + 3, np.sin(x[:, 1]) + 40], 1)
    y = (y + rng.normal(size=y.shape) / 4).astype(np.float32)

    def expect(out):
        p = out["output"]
        d = p - y
        spread = np.square(y - y.mean(0, dtype=np.float64)).sum(0)
        size = np.abs(d)
        return {
            "loss": np.square(d).mean(), "mean_squared_error": np.square(d).mean(),
            "root_mean_squared_error": np.sqrt(np.square(d).mean()),
            "mean_absolute_error": size.mean(),
            "mean_absolute_percentage_error": 100 * (size / np.abs(y)).mean(),
            "r2_score": (1 - np.square(d).sum(0) / spread).mean(),
            "huber": np.where(size <= 1, size ** 2 / 2, size - 0.5).mean(),
        }

    with weftlib.Cluster(weft) as c:
        train(c, "regression", LAYERS.format(2), "mse",
              "[mse, rmse, mae, mape, r2_score, huber]", {"x": x, "y": y}, expect)


def metrics_of_two_classes(weft):
    x, rng = records()
    y = (x[:, 0] + rng.normal(size=RECORDS) > 1).astype(np.int64)  # one number a record: no axis

    def expect(out):
        z = out["output"][:, 0]
        p = sigmoid(z)
        each = -np.where(y, np.log(p), np.log(1 - p))
        above, often = p > 0.5, p > 0.2
        return {
            "loss": each.mean(), "log_loss": each.mean(),  # without class_weight
            "accuracy": (above == y).mean(),
            "precision": (above & (y > 0)).sum() / max(above.sum(), 1),
            "recall": (above & (y > 0)).sum() / y.sum(),
            "p20": (often & (y > 0)).sum() / often.sum(),
            "f1_score": f1_of_all(above, y > 0), "f1_20": f1_of_all(often, y > 0),
            "auc": roc_auc(y, z), "pr_auc": average_precision(y, z),
        }

    with weftlib.Cluster(weft) as c:
        train(c, "binary", LAYERS.format(1), "binary_crossentropy",
              "[accuracy, log_loss, auc, {auc: {curve: PR, name: pr_auc}}, precision, recall, "
              "{precision: {thresholds: 0.2, name: p20}}, f1, {f1_score: {threshold: 0.2, name: f1_20}}]", {"x": x, "y": y}, expect,
              more="class_weight: {0: 1.0, 1: 5.0}")


def metrics_of_many_classes(weft):
    x, rng = records()
    y = x[:, :6].argmax(1)
    weight = rng.uniform(0, 2, RECORDS).astype(np.float32)

    def expect(out):
        z = out["output"]
        own = z[np.arange(RECORDS), y]
        each = -log_softmax(z)[np.arange(RECORDS), y]
        place = (z > own[:, None]).sum(1)
        said, right = np.eye(6, dtype=bool)[z.argmax(1)], np.eye(6, dtype=bool)[y]
        f1 = f1_scores(said, right)
        return {
            "f1_score": f1.mean(), "f1_all": f1_of_all(said, right),
            "f1_by_count": (f1 * right.sum(0)).sum() / RECORDS,
            "loss": (each * weight).mean(), "log_loss": each.mean(),
            "perplexity": np.exp(each.mean()), "accuracy": (place < 1).mean(),
            "sparse_top_k_categorical_accuracy": (place < 2).mean(),
        }

    with weftlib.Cluster(weft) as c:
        train(c, "classes", LAYERS.format(6), "sparse_categorical_crossentropy",
              "[accuracy, log_loss, perplexity, {sparse_top_k_categorical_accuracy: {k: 2}}, "
              "f1_score, {f1_score: {average: micro, name: f1_all}}, "
              "{f1_score: {average: weighted, name: f1_by_count}}]",
              {"x": x, "y": y, "weight": weight}, expect, more="sample_weight: weight")


def labels_that_are_ignored(weft):
    x, rng = records()
    y = np.where(rng.random(RECORDS) < 0.25, -1, x[:, :4].argmax(1))
    kept = y >= 0

    def expect(out):
        z = out["output"][kept]
        each = -log_softmax(z)[np.arange(kept.sum()), y[kept]]
        # The loss is the mean over batches by their records, as Keras has it; metrics are exact.
        parts = [slice(at, min(at + 500, RECORDS)) for at in range(0, RECORDS, 500)]
        spread = np.zeros(RECORDS)
        spread[kept] = each
        loss = sum(spread[p].sum() / kept[p].sum() * (p.stop - p.start) for p in parts) / RECORDS
        return {"loss": loss, "log_loss": each.mean(), "perplexity": np.exp(each.mean()),
                "accuracy": (z.argmax(1) == y[kept]).mean(),
                "f1_score": f1_scores(np.eye(4, dtype=bool)[z.argmax(1)],
                                      np.eye(4, dtype=bool)[y[kept]]).mean()}

    with weftlib.Cluster(weft) as c:
        train(c, "ignored", LAYERS.format(4), "{sparse_categorical_crossentropy: {ignore_class: -1}}",
              "[accuracy, log_loss, perplexity, f1_score]", {"x": x, "y": y}, expect)


def metrics_of_one_hot_labels(weft):
    x, rng = records()
    place = x[:, :5].argmax(1)
    y = np.eye(5, dtype=np.float32)[place]

    def expect(out):
        z = out["output"]
        p = np.exp(log_softmax(z))
        own = z[np.arange(RECORDS), place]
        each = -(y * log_softmax(z)).sum(-1)
        smooth = -((y * 0.8 + 0.2 / 5) * log_softmax(z)).sum(-1)
        above = p > 0.5
        return {
            "loss": smooth.mean(), "log_loss": each.mean(),
            "accuracy": (z.argmax(1) == place).mean(),
            "top_k_categorical_accuracy": ((z > own[:, None]).sum(1) < 3).mean(),
            "f1_score": f1_scores(np.eye(5, dtype=bool)[z.argmax(1)], y > 0).mean(),
            "f1_30": f1_scores(p > 0.3, y > 0).mean(),
            "auc": roc_auc(y.reshape(-1), p.reshape(-1)),
            "precision": (above & (y > 0)).sum() / max(above.sum(), 1),
            "recall": (above & (y > 0)).sum() / y.sum(),
        }

    with weftlib.Cluster(weft) as c:
        train(c, "one-hot", LAYERS.format(5), "{categorical_crossentropy: {label_smoothing: 0.2}}",
              "[accuracy, log_loss, {top_k_categorical_accuracy: {k: 3}}, auc, precision, recall, "
              "f1_score, {f1_score: {threshold: 0.3, name: f1_30}}]",
              {"x": x, "y": y}, expect)


def two_towers():
    """Two inputs that meet in two outputs: `score` [n, 1] and `kind` [n, 3], both linear."""
    rng = np.random.default_rng(9)
    constants = [numpy_helper.from_array(rng.normal(size=shape).astype(np.float32) / 3, name)
                 for name, shape in (("wu", (8, 12)), ("wi", (5, 12)), ("ws", (12, 1)),
                                     ("wk", (12, 3)))]
    nodes = [helper.make_node("MatMul", ["user", "wu"], ["u"]),
             helper.make_node("MatMul", ["item", "wi"], ["i"]),
             helper.make_node("Add", ["u", "i"], ["ui"]), helper.make_node("Tanh", ["ui"], ["h"]),
             helper.make_node("MatMul", ["h", "ws"], ["score"]),
             helper.make_node("MatMul", ["h", "wk"], ["kind"])]

    def port(name, width):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])
    graph = helper.make_graph(nodes, "towers", [port("user", 8), port("item", 5)],
                              [port("score", 1), port("kind", 3)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def two_inputs_and_two_losses(weft):
    user, rng = records()
    item = rng.normal(size=(RECORDS, 5)).astype(np.float32)
    score = (user[:, :1] * item[:, :1]).astype(np.float32)
    kind = (user[:, :3] + item[:, :3]).argmax(1)
    half = rng.uniform(0, 1, RECORDS).astype(np.float32)

    def expect(out):
        d = out["score"] - score
        each = -log_softmax(out["kind"])[np.arange(RECORDS), kind]
        squares = (np.square(d)[:, 0] * half).mean()
        return {
            "loss": 0.3 * squares + each.mean(), "score_loss": squares, "kind_loss": each.mean(),
            "score_mean_absolute_error": np.abs(d).mean(),
            "kind_accuracy": (out["kind"].argmax(1) == kind).mean(),
            "kind_perplexity": np.exp(each.mean()),
        }

    with weftlib.Cluster(weft) as c:
        onnx.save(two_towers(), c.path("towers.onnx"))
        # The labels of `score` have its name; those of `kind` are named.
        train(c, "towers-job", "{onnx: towers.onnx}",
              "{score: mse, kind: {sparse_categorical_crossentropy: {from_logits: true}}}",
              "{score: mae, kind: [accuracy, perplexity]}",
              {"user": user, "item": item, "score": score, "k": kind, "half": half}, expect,
              more="loss_weights: {score: 0.3}\nlabels: {kind: k}\nsample_weight: {score: half}")


if __name__ == "__main__":
    weftlib.main([metrics_of_regression, metrics_of_two_classes, metrics_of_many_classes,
                  metrics_of_one_hot_labels, labels_that_are_ignored, two_inputs_and_two_losses])

# SPDX-License-Identifier: Apache-2.0
"""Bags of ids: an embedding with a combiner makes one row of all ids of a record.

    bags.py WEFT [TEST...]

A numpy model of its own says what the combiners are, and what FTRL makes of a sparse linear model.
"""
import json

from losses import losses
from weftlib import Cluster, check, main, needs

needs("numpy", "onnx", "onnxruntime")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

RECORDS, ROWS, MOST, BATCH = 2048, 500, 6, 32
COMBINERS = ("sum", "mean", "sqrtn", "max")
JOB = """job: bags
model:
  input: {{ids: {{shape: [6], dtype: int64}}, w: [6]}}
  layers:
{layers}
    - concatenate: {{inputs: [{names}]}}
    - dense: {{units: 1}}
loss: binary_crossentropy
metrics: [auc]
data:
  format: npy
  train: {{ids: ids.npy, w: w.npy, y: y.npy}}
  eval: {{ids: ids.npy, w: w.npy, y: y.npy}}
batch: 32
epochs: {epochs}
optimizer: {{adagrad: {{learning_rate: 0.05}}}}
seed: 7
{tables}
"""


def bags(rng, n=RECORDS):
    """Ids [n, MOST] with -1 where there is none, at any place; some bags are empty."""
    ids = np.minimum(rng.zipf(1.3, (n, MOST)) - 1, ROWS - 1)
    ids[rng.random((n, MOST)) < 0.4] = -1
    ids[::17] = -1
    return ids


def make(weft, tables="bounded", workers=1, epochs=2, combiners=COMBINERS):
    c = Cluster(weft, ps=2, workers=workers)
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    rng = np.random.default_rng(5)
    ids, w = bags(rng), rng.uniform(0.2, 2, (RECORDS, MOST)).astype(np.float32)
    worth = rng.normal(size=ROWS)
    y = (np.where(ids >= 0, worth[ids], 0) * w).sum(1) > 0
    for name, values in (("ids", ids), ("w", w), ("y", y.astype(np.float32)[:, None])):
        np.save(c.path(f"{name}.npy"), values)
    rows = "unbounded" if tables == "unbounded" else ROWS
    layers = "\n".join(
        f"    - embedding: {{input_dim: {rows}, output_dim: 4, combiner: {k}, name: {k}_of, "
        f"embeddings_initializer: {{constant: 0.125}}, inputs: [ids{'' if k == 'max' else ', w'}]}}" for k in combiners)
    limits = ", rows: unbounded" if tables == "unbounded" else ""
    c.write("bags.yaml", JOB.format(
        layers=layers, names=", ".join(f"{k}_of" for k in combiners), epochs=epochs,
        tables=f'tables: [{{match: "*_of/*"{limits}}}]' if tables else ""))
    return c


def bags_train_alike_with_tables_and_without(weft):
    runs = {}
    for tables in ("", "bounded", "unbounded"):
        with make(weft, tables) as c:
            c.must("up")
            c.must("train", "bags.yaml")
            runs[tables] = losses(c)
            check(c.job("bags")["eval"]["auc"] > 0.85, f"{c.job('bags')['eval']}")
    check(len(runs[""]) == 2 * RECORDS // BATCH, f"{len(runs[''])} steps")
    for tables in ("bounded", "unbounded"):
        differ = [i for i, (a, b) in enumerate(zip(runs[""], runs[tables])) if a != b]
        check(runs[""] == runs[tables], f"{tables}: losses differ from step {differ[:1]} on")


def two_workers_share_a_table_of_bags(weft):
    for tables in ("bounded", "unbounded"):
        with make(weft, tables, workers=2, epochs=4) as c:
            c.must("up")
            c.must("train", "bags.yaml")
            reached = c.job("bags")["eval"]
            check(reached["auc"] > 0.86, f"{tables}: {reached}")


def combined(rows, ids, w, combiner):
    """What TensorFlow's safe_embedding_lookup_sparse, and of max torch's EmbeddingBag, gives."""
    has = ids >= 0
    rows = np.where(has[..., None], rows[np.maximum(ids, 0)], 0)
    if combiner == "max":
        return np.where(has.any(1)[:, None], np.where(has[..., None], rows, -np.inf).max(1), 0)
    w = np.where(has, w, 0)
    by = {"sum": 1, "mean": w.sum(1), "sqrtn": np.sqrt((w * w).sum(1))}[combiner] + np.zeros(len(w))
    total = (rows * w[..., None]).sum(1)
    return np.divide(total, by[:, None], out=np.zeros_like(total), where=by[:, None] != 0)


def weights_of(path):
    """By name; rows of an unbounded table by id, as those of a bounded one."""
    model = onnx.load(path)
    weights = {v.name: onnx.numpy_helper.to_array(v) for v in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "LabelEncoder":
            attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            name = node.name.split("/LabelEncoder")[0]
            at = dict(zip(attrs["keys_int64s"], attrs["values_int64s"]))
            weights[name] = weights[name][[at.get(id, attrs["default_int64"]) for id in range(ROWS)]]
    return weights


def an_exported_model_has_the_outputs_of_numpy(weft):
    for tables in ("bounded", "unbounded"):
        check_exported(weft, tables)


def check_exported(weft, tables):
    with make(weft, tables) as c:
        c.must("up")
        c.must("train", "bags.yaml")
        line = c.must("export", "bags", "-o", "m.onnx").out
        check("without a row" not in line, f"initial values are constants: {line}")
        rng = np.random.default_rng(9)
        ids, w = bags(rng, 301), rng.normal(size=(301, MOST)).astype(np.float32)
        np.save(c.path("ids2.npy"), ids)
        np.save(c.path("w2.npy"), w)
        v = weights_of(c.path("m.onnx"))
        x = np.concatenate([combined(v[f"{k}_of/embeddings"], ids, w, k) for k in COMBINERS], 1)
        want = x @ v["dense/kernel"] + v["dense/bias"]
        (got,) = onnxruntime.InferenceSession(c.path("m.onnx")).run(None, {"ids": ids, "w": w})
        check(np.allclose(got, want, atol=1e-5), f"onnxruntime: {np.abs(got - want).max()}")
        for of in ("bags", "m.onnx"):
            c.must("predict", of, "--input", "ids=ids2.npy", "w=w2.npy", "-o", "p.npy")
            got = np.load(c.path("p.npy"))
            check(np.allclose(got, want, atol=1e-5), f"{of}: {np.abs(got - want).max()}")
        shown = json.loads(c.must("eval", "bags", "--json").out)
        trained = c.job("bags")["eval"]
        check(abs(shown["loss"] - trained["loss"]) < 1e-6, f"{shown} for {trained}")


LINEAR = """job: linear
model:
  input: {ids: {shape: [6], dtype: int64}, w: [6]}
  layers:
    - embedding: {input_dim: 500, output_dim: 1, combiner: sum, inputs: [ids, w],
                  embeddings_initializer: zeros}
loss: {binary_crossentropy: {from_logits: true}}
data: {format: npy, shuffle: false, train: {ids: ids.npy, w: w.npy, y: y.npy}}
batch: 32
optimizer: {ftrl: {learning_rate: 0.1, l1_regularization_strength: 0.1, beta: 1.0}}
tables: [embedding/embeddings]
"""


def ftrl_steps_as_numpy_does(weft):
    """FTRL-Proximal by the formulas of McMahan et al. 2013, algorithm 1, with the accumulator of Keras."""
    with make(weft) as c:
        c.write("linear.yaml", LINEAR)
        c.must("train", "linear.yaml")
        ours = np.array([float.fromhex(loss) for _, loss in losses(c)])
        ids, w, y = (np.load(c.path(f"{name}.npy")) for name in ("ids", "w", "y"))
        c.must("export", "linear", "-o", "m.onnx")
        trained = weights_of(c.path("m.onnx"))["embedding/embeddings"][:, 0]
    z, n, weights = np.zeros(ROWS), np.full(ROWS, 0.1), np.zeros(ROWS)
    theirs = []
    for at in range(0, RECORDS, BATCH):
        i, x, t = ids[at:at + BATCH], w[at:at + BATCH] * (ids[at:at + BATCH] >= 0), y[at:at + BATCH, 0]
        logit = (weights[i] * x).sum(1)
        theirs.append((np.logaddexp(0, logit) - t * logit).mean())
        g = np.zeros(ROWS)
        np.add.at(g, i.ravel(), (x * ((1 / (1 + np.exp(-logit)) - t) / BATCH)[:, None]).ravel())
        named = np.unique(i[i >= 0])
        s = (np.sqrt(n[named] + g[named] ** 2) - np.sqrt(n[named])) / 0.1
        z[named] += g[named] - s * weights[named]
        n[named] += g[named] ** 2
        weights[named] = np.where(np.abs(z[named]) > 0.1, -(z[named] - np.sign(z[named]) * 0.1) /
                                  ((1.0 + np.sqrt(n[named])) / 0.1), 0)
    worst = np.abs(ours - theirs).max()
    check(len(ours) == len(theirs) and worst < 1e-5, f"losses differ by {worst:.1e}")
    check(np.allclose(trained, weights, atol=1e-4), f"{np.abs(trained - weights).max()}")
    check(0.2 < (trained == 0).mean() < 0.99, f"{(trained == 0).mean()} of the weights are 0")


def what_cannot_be_a_bag_is_said(weft):
    def refused(old, new, *texts):
        c.write("bad.yaml", text.replace(old, new))
        result = c.must("train", "bad.yaml", "--check", code=2)
        for said in texts:
            check(said in result.err, f"{said!r} is not in {result.err}")

    with make(weft, combiners=("sum", "max")) as c:
        text = c.read("bags.yaml")
        refused("combiner: sum, ", "", 'bad.yaml:5: layer', "without a combiner each id has a row of its own",
                "add combiner: sum, mean or sqrtn")
        refused("combiner: sum", "combiner: max", "combiner: max takes ids alone")
        refused("combiner: sum", "combiner: avg", 'bad.yaml:5', "sum, mean, sqrtn, max")
        refused("w: [6]", "w: [5]", "ids are", "and their weights")
        ids = np.load(c.path("ids.npy"))
        ids[1234, 2] = ROWS
        np.save(c.path("ids.npy"), ids)
        result = c.must("train", "bags.yaml", code=1)
        check(f"names row {ROWS}" in result.err and '"sum_of/embeddings"' in result.err, result.err)


main([bags_train_alike_with_tables_and_without, two_workers_share_a_table_of_bags,
      an_exported_model_has_the_outputs_of_numpy, ftrl_steps_as_numpy_does,
      what_cannot_be_a_bag_is_said])

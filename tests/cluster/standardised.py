# SPDX-License-Identifier: Apache-2.0
"""Mean and deviation of the training data are kept with the model: what it says of records does not
change with the files that it was trained on, and an exported model takes records as they are.

    standardised.py WEFT [TEST...]
"""
import json
import os
import re

import weftlib

weftlib.needs("numpy", "onnx", "onnxruntime")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

RECORDS = 1200
TABLE = """job: table
model: {input: {x: [3], i: [4]}, layers: [{concatenate: {inputs: [x, i]}}, {dense: {units: 2}}]}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npz
  train: {x: t.npz, i: t.npz, y: t.npz}
  eval: {x: e.npz, i: e.npz, y: e.npz}
  map: {x: [{fill: 2}, log1p, standardise], i: [{scale: 1/255}, {crop: [2, 2]}, standardise,
    {reshape: [4]}]}
batch: 16
epochs: 2
seed: 4
checkpoint: {every_steps: 20}
optimizer: {adam: {learning_rate: 0.01}}
"""


def write(c, name, seed, shift=0.0):
    """Columns of other sizes, some missing, and images of bytes."""
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(5, [1, 2, 0.01], (RECORDS, 3))).astype(np.float32) + np.float32(shift)
    i = rng.integers(0, 256, (RECORDS, 4, 4)).astype(np.uint8)
    y = (np.log1p(x[:, 1]) + i[:, 1, 2] / 80 > 6.5).astype(np.int64)
    x[rng.random((RECORDS, 3)) < 0.05] = np.nan
    np.savez(c.path(name), x=x, i=i, y=y)
    return x, i, y


def metrics_of(scores, y):
    """loss and accuracy as weft prints them."""
    z = scores.astype(np.float64)
    loss = (np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]).mean()
    return f"loss {loss:.4f}  accuracy {(z.argmax(1) == y).mean():.4f}"


def run(c, model, feeds):
    onnx.checker.check_model(onnx.load(c.path(model)), full_check=True)
    return onnxruntime.InferenceSession(c.path(model)).run(None, feeds)[0]


def learnt(c, job):
    folder = re.search(r"checkpoint (\S+)", job).group(1)
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        return {row["field"]: row for row in json.load(f)["learnt"]}


def check_numbers(c, done, x, i):
    rows = learnt(c, done)
    filled = np.log1p(np.where(np.isnan(x), 2, x).astype(np.float64))
    want = np.concatenate([filled.mean(0), filled.std(0)])
    weftlib.check(np.allclose(rows["x"]["numbers"], want, rtol=1e-6), f"{rows['x']} for {want}")
    weftlib.check(rows["i"]["dtype"] == "uint8" and rows["i"]["shape"] == [4, 4], str(rows["i"]))
    middle = i[:, 1:3, 1:3] * np.float32(1 / 255)
    want = [middle.mean(dtype=np.float64), middle.std(dtype=np.float64)]
    weftlib.check(np.allclose(rows["i"]["numbers"], want, rtol=1e-5), f"{rows['i']} for {want}")


def check_export(c, said):
    """The exported model on records of the file: the metrics of weft eval, and its predictions."""
    with np.load(c.path("e.npz")) as e:
        x, i, y = e["x"], e["i"], e["y"]
    shown = c.must("export", "table", "-o", "m.onnx").out
    weftlib.check("standardises x, i itself" in shown, shown)
    # Where operations begin behind a step that is none of ONNX's, its results are the input.
    cropped = i[:, 1:3, 1:3] * np.float32(1 / 255)
    scores = run(c, "m.onnx", {"x": x, "i": cropped})
    weftlib.check(metrics_of(scores, y) in said, f"{metrics_of(scores, y)} in {said}")
    np.save(c.path("x.npy"), x)
    np.save(c.path("i.npy"), i)
    np.save(c.path("cropped.npy"), cropped)
    c.must("predict", "table", "--input", "x=x.npy", "--input", "i=i.npy", "-o", "p.npy")
    c.must("predict", "m.onnx", "--input", "x=x.npy", "--input", "i=cropped.npy", "-o", "q.npy")
    p, q = np.load(c.path("p.npy")), np.load(c.path("q.npy"))
    weftlib.check(np.abs(p - scores).max() < 1e-5, "weft predict and onnxruntime differ")
    weftlib.check((p == q).all(), "weft predict differs by job and by file")
    names = [n.name for n in onnx.load(c.path("m.onnx")).graph.node]
    weftlib.check({"x/standardise/Sub", "x/standardise/Div", "x/log1p/Log"} <= set(names), names)
    return scores


def files_may_change_and_go(weft):
    with weftlib.Cluster(weft, ps=2, workers=2) as c:
        c.write("job.yaml", TABLE)
        x, i, _ = write(c, "t.npz", 1)
        write(c, "e.npz", 2)
        c.must("up")
        done = c.must("train", "job.yaml").out
        check_numbers(c, done, x, i)
        said = c.must("eval", "table").out
        scores = check_export(c, said)
        write(c, "t.npz", 3, shift=500)
        weftlib.check(c.must("eval", "table").out == said, "other training data, other numbers")
        os.remove(c.path("t.npz"))
        weftlib.check(c.must("eval", "table").out == said, "without training data: other numbers")
        weftlib.check((check_export(c, said) == scores).all(), "the export is another one")

        # A job that goes on keeps the numbers that its weights were trained with.
        write(c, "t.npz", 3, shift=500)
        c.must("down")
        c.must("up")
        again = c.must("recover", "table", "--set", "epochs=3").out
        check_numbers(c, again, x, i)


def the_model_alone_takes_what_data_map_makes(weft):
    plain = TABLE.replace("log1p, ", "")  # of numbers below -1 it has none
    with weftlib.Cluster(weft) as c:
        c.write("job.yaml", plain)
        write(c, "t.npz", 1)
        write(c, "e.npz", 2)
        c.must("train", "--local", "job.yaml")
        said = c.must("export", "table", "--model-only", "-o", "alone.onnx").out
        weftlib.check("standardises" not in said, said)
        names = [n.op_type for n in onnx.load(c.path("alone.onnx")).graph.node]
        weftlib.check(names == ["Concat", "Gemm"], names)

        # One that standardises is trained again: it must not be standardised twice.
        c.must("export", "table", "-o", "whole.onnx")
        once = plain.replace("job: table", "job: again").replace("epochs: 2", "epochs: 1")
        once = re.sub(r"model: .*", "model: {onnx: whole.onnx}", once)
        once = once.replace("[4]}]", "[2, 2]}]")
        c.write("again.yaml", once)
        twice = c.must("train", "--local", "again.yaml").err
        weftlib.check(twice.count("standardises its input") == 2 and "--model-only" in twice, twice)
        c.write("again.yaml", once.replace("x: [{fill: 2}, standardise], ", "")
                .replace(", standardise,\n    {reshape: [2, 2]}", ""))
        right = c.must("train", "--local", "again.yaml").err
        weftlib.check("standardises" not in right, right)


if __name__ == "__main__":
    weftlib.main([files_may_change_and_go, the_model_alone_takes_what_data_map_makes])

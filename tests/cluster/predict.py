# SPDX-License-Identifier: Apache-2.0
"""weft predict and weft eval --data: a trained model on records that its job file does not name."""
import json
import re

import weftlib

weftlib.needs("numpy", "onnxruntime")

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

JOB = """job: images
model: {input: {x: [6]}, layers: [dense: {units: 3}]}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {x: x.npy, y: y.npy}
  eval: {x: x.npy, y: y.npy}
  map: {x: [{scale: 0.0078125}, {reshape: [6]}]}
batch: 16
epochs: 2
optimizer: {adam: {learning_rate: 0.05}}
"""


def write(c, records, name=""):
    rng = np.random.default_rng(records)
    x = rng.integers(0, 256, (records, 2, 3)).astype(np.uint8)
    y = x[:, 0].argmax(1)
    np.save(c.path(f"x{name}.npy"), x)
    np.save(c.path(f"y{name}.npy"), y)
    return x, y


def said(c, *words, code, text):
    result = c.run(*words)
    weftlib.check(result.code == code and re.search(text, result.err), f"{words}: {result}")


def other_records(weft):
    with weftlib.Cluster(weft) as c:
        c.write("job.yaml", JOB)
        write(c, 512)
        x, y = write(c, 301, "2")
        c.must("train", "--local", "job.yaml")
        c.must("export", "images", "-o", "m.onnx")
        rows = (x.reshape(-1, 6) / np.float32(128)).astype(np.float32)
        np.save(c.path("rows.npy"), rows)
        (want,) = onnxruntime.InferenceSession(c.path("m.onnx")).run(None, {"x": rows})

        shown = c.must("predict", "images", "--input", "x=x2.npy", "-o", "p.npy").out
        weftlib.check(shown == "p.npy: float32[301, 3]\n", shown)
        got = np.load(c.path("p.npy"))
        weftlib.check(np.allclose(got, want, atol=1e-5), "predict differs from onnxruntime")
        c.must("predict", "m.onnx", "--input", "x=rows.npy", "-o", "out/q.npy", code=1)
        c.must("predict", "m.onnx", "--input", "x=rows.npy", "--batch", "7", "-o", "out")
        weftlib.check(np.allclose(np.load(c.path("out/output.npy")), want, atol=1e-5), "by file")

        shown = json.loads(c.must("eval", "images", "--data", "x=x2.npy", "y=y2.npy", "--json").out)
        right = want.argmax(1) == y
        z = want.astype(np.float64)
        loss = np.log(np.exp(z).sum(1)) - z[np.arange(301), y]
        weftlib.check(shown["records"] == 301 and abs(shown["accuracy"] - right.mean()) < 1e-6 and
                      abs(shown["loss"] - loss.mean()) < 1e-5, f"{shown} for {loss.mean()}")

        np.save(c.path("narrow.npy"), x[:, :1])
        said(c, "predict", "images", "--input", "z=x2.npy", "-o", "p", code=2, text='no input "z"')
        said(c, "predict", "images", "-o", "p.npy", code=2, text="add --input x=FILE")
        said(c, "predict", "images", "--input", "x=x2.npy", code=2, text="add -o OUT.npy")
        said(c, "predict", "images", "--input", "x=narrow.npy", "-o", "p.npy", code=1,
             text=r"reshape: a record is \[1, 3\], 3 elements, and does not fit \[6\]")
        said(c, "predict", "m.onnx", "--input", "x=x2.npy", "-o", "p.npy", code=1,
             text=r"x2.npy is uint8\[301, 2, 3\], and input")
        said(c, "predict", "images", "--input", "x=none.npy", "-o", "p.npy", code=1,
             text="none.npy: No such file")
        for words in (["export", "images", "-o", "none/m.onnx"],
                      ["predict", "images", "--input", "x=x2.npy", "-o", "none/p.npy"]):
            said(c, *words, code=1, text="there is no folder none; make it, or write to another")
        said(c, "predict", "nobody", "--input", "x=x2.npy", "-o", "p.npy", code=1, text='"nobody"')
        said(c, "eval", "images", "--data", "x=x2.npy", code=1, text="512 records.*301")
        said(c, "eval", "images", "--data", "z=x2.npy", code=2, text='no field "z"')
        said(c, "eval", "images", "--data", "x2.npy", code=2, text="write FIELD=FILE")


def other_text(weft):
    """A csv file holds all fields."""
    with weftlib.Cluster(weft) as c:
        rows = np.random.default_rng(1).normal(size=(240, 3))
        for name, part in (("a", rows[:200]), ("b", rows[200:])):
            c.write(f"{name}.csv", "u,v,up\n" +
                    "".join(f"{u:.6f},{v:.6f},{int(u > v)}\n" for u, v, _ in part))
        c.write("job.yaml", "job: rows\nmodel: {input: {x: [2]}, layers: [dense: {units: 1}]}\n"
                "loss: binary_crossentropy\nmetrics: [accuracy]\ndata:\n  format: csv\n"
                "  train: a.csv\n  columns: {x: [u, v], y: up}\n"
                "batch: 8\nepochs: 2\noptimizer: adam\n")
        c.must("train", "--local", "job.yaml")
        said(c, "eval", "rows", code=2, text="no data to evaluate on")
        weftlib.check("40 records" in c.must("eval", "rows", "--data", "b.csv").out, "other rows")
        said(c, "eval", "rows", "--data", "x=b.csv", code=2, text="give the file alone")


def other_records_are_standardised_as_the_training_data(weft):
    """By the mean and deviation of what was trained, of its part before the split; and all of another
    file is evaluated, whatever the split."""
    text = JOB.replace("[{scale: 0.0078125}, {reshape: [6]}]", "[standardise, {reshape: [6]}]")
    text = text.replace("  eval: {x: x.npy, y: y.npy}\n", "  validation_split: 0.25\n")
    with weftlib.Cluster(weft) as c:
        c.write("job.yaml", text)
        x, _ = write(c, 512)
        other, y = write(c, 301, "2")
        other = other // 4 + 150  # of quite another mean and deviation
        np.save(c.path("x2.npy"), other.astype(np.uint8))
        c.must("train", "--local", "job.yaml")
        c.must("export", "images", "--model-only", "-o", "m.onnx")
        known = x[:384].astype(np.float64)
        mean, deviation = known.mean(0, keepdims=True), known.std(0, keepdims=True)
        peeked = json.loads(c.must("eval", "images", "--json").out)
        weftlib.check(peeked["records"] == 128, str(peeked))
        want = []
        for period in ((mean, deviation), (known.mean((0, 1)), known.std((0, 1))),
                       (known.mean(), known.std())):
            rows = ((other - period[0]) / period[1]).reshape(-1, 6).astype(np.float32)
            session = onnxruntime.InferenceSession(c.path("m.onnx"))
            want.append(session.run(None, {"x": rows})[0])
        c.must("predict", "images", "--input", "x=x2.npy", "-o", "p.npy")
        got = np.load(c.path("p.npy"))
        fits = [i for i, w in enumerate(want) if np.allclose(got, w, atol=1e-3)]
        weftlib.check(len(fits) == 1, f"standardised by none of {want[0][:2]}: {got[:2]}")
        shown = json.loads(c.must("eval", "images", "--data", "x=x2.npy", "--data", "y=y2.npy",
                                  "--json").out)
        right = (got.argmax(1) == y).mean()
        weftlib.check(shown["records"] == 301 and abs(shown["accuracy"] - right) < 1e-6,
                      f"{shown}, {right}")


if __name__ == "__main__":
    weftlib.main([other_records, other_text, other_records_are_standardised_as_the_training_data])

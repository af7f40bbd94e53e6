# SPDX-License-Identifier: Apache-2.0
"""weft predict and weft eval --data: a trained model on records that its job file does not name."""
import gzip
import json
import os
import re
import shutil
import signal
import struct
import subprocess

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
        cells = np.loadtxt(c.path("b.csv"), delimiter=",", skiprows=1, dtype=np.float32)[:, :2]
        np.savez(c.path("b.npz"), x=cells)
        with gzip.open(c.path("b.npy.gz"), "wb") as f:
            np.save(f, cells)
        c.must("predict", "rows", "--input", "x=b.csv", "-o", "csv.npy")
        for file in ("b.npz#x", "b.npy.gz"):
            c.must("predict", "rows", "--input", f"x={file}", "-o", "other.npy")
            weftlib.check((np.load(c.path("other.npy")) == np.load(c.path("csv.npy"))).all(), f"{file} gives others")


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


def a_model(c, width, hidden=8):
    """m.onnx, y = softmax(relu(x w) v), and it as numpy computes it."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(5)
    w = rng.normal(size=(width, hidden)).astype(np.float32)
    v = rng.normal(size=(hidden, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("MatMul", ["r", "v"], ["z"]), helper.make_node("Softmax", ["z"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), c.path("m.onnx"))

    def compute(x):
        z = np.maximum(x.astype(np.float64) @ w, 0) @ v
        e = np.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    return compute


def example(x):
    """A tf.train.Example with the float_list x, as a TFRecord; its checksums by crc32c."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    def field(number, data):
        return varint(number << 3 | 2) + varint(len(data)) + data
    floats = field(2, field(1, x.astype("<f4").tobytes()))
    data = field(1, field(1, field(1, b"x") + field(2, floats)))
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked(head)) + data + struct.pack("<I", masked(data))


def masked(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def files_of_each_format_give_the_same(weft):
    """In: npy, npz, idx, tfrecord, csv, libsvm, each packed and as several files where that can be. Out: npy, a
    folder, csv."""
    with weftlib.Cluster(weft) as c:
        compute = a_model(c, 4)
        x = (np.random.default_rng(2).integers(1, 200, (700, 4)) / 8).astype(np.float32)
        want = compute(x)
        names = "a,b,c,d"

        def table(rows, sep=","):
            return "".join(sep.join(f"{v:.9g}" for v in row) + "\n" for row in rows)
        idx = bytes([0, 0, 13, 2]) + struct.pack(">II", *x.shape) + x.astype(">f4").tobytes()
        np.save(c.path("x.npy"), x)
        np.savez(c.path("x.npz"), rows=x)
        c.write("x.csv", names + "\n" + table(x))
        c.write("bare.csv", table(x, ";"))
        c.write("more.csv", "d,label,c,b,a\n" + table(np.stack([x[:, 3], x[:, 0], x[:, 2], x[:, 1], x[:, 0]], 1)))
        c.write("x.libsvm", "".join("1 " + " ".join(f"{k + 1}:{v:.9g}" for k, v in enumerate(row)) + "\n" for row in x))
        for i in range(7):
            np.save(c.path(f"part-{i}.npy"), x[i * 100:i * 100 + 100])
        for name, data in (("x-idx2-ubyte", idx), ("x-idx2-ubyte.gz", gzip.compress(idx)),
                           ("x.tfrecord", b"".join(example(row) for row in x)),
                           ("x.csv.gz", gzip.compress((names + "\n" + table(x)).encode()))):
            with open(c.path(name), "wb") as f:
                f.write(data)
        first = None
        for files in (["x.npy"], ["x.npz#rows"], ["x-idx2-ubyte"], ["x-idx2-ubyte.gz"], ["x.tfrecord"], ["x.csv"],
                      ["x.csv.gz"], ["bare.csv"], ["more.csv#a,b,c,d"], ["x.libsvm"], ["part-*.npy"],
                      ["part-0.npy", "part-[1-6].npy"]):
            words = [w for file in files for w in ("--input", f"x={file}")]
            shown = c.must("predict", "m.onnx", *words, "-o", "out.npy").out
            weftlib.check(shown == "out.npy: float32[700, 3]\n", f"{files}: {shown}")
            got = np.load(c.path("out.npy"))
            weftlib.check(np.allclose(got, want, atol=1e-5), f"{files} give other outputs")
            first = got if first is None else first
            weftlib.check((got == first).all(), f"{files} give other bits")
        weftlib.check(c.must("predict", "m.onnx", "--input", "x=x.npy", "-o", "out.csv").out ==
                      "out.csv: 700 rows of 3\n", "csv is told otherwise")
        with open(c.path("out.csv")) as f:
            head, *rows = f.read().splitlines()
        weftlib.check(head == "y_0,y_1,y_2", head)
        weftlib.check((np.array([r.split(",") for r in rows], np.float32) == first).all(), "csv holds other numbers")


def each_bad_input_is_one_sentence(weft):
    with weftlib.Cluster(weft) as c:
        a_model(c, 4)
        x = np.ones((700, 4), np.float32)
        np.save(c.path("x.npy"), x)
        np.save(c.path("zero.npy"), x[:0])
        np.save(c.path("wide.npy"), np.ones((700, 5), np.float32))
        c.write("x.csv", "a,b,c,d\n" + "1,2,3,4\n" * 600 + "1,2,oh,4\n")
        c.write("words.txt", "so it is\nand so it was\n")
        with open(c.path("x.npy"), "rb") as f:
            whole = f.read()
        with open(c.path("cut.npy"), "wb") as f:
            f.write(whole[:999])
        with open(c.path("rows.dat"), "wb") as f:
            f.write(bytes(64))
        os.mkdir(c.path("folder.npy"))
        os.mkdir(c.path("other.npy.parts"))
        c.write("other.npy.parts/mine", "1")
        before = sorted(os.listdir(c.path(".")))

        def refused(text, file, out="out.npy", code=1, more=()):
            said(c, "predict", "m.onnx", "--input", f"x={file}", "-o", out, *more, code=code, text=text)
            weftlib.check(sorted(os.listdir(c.path("."))) == before, f"{text}: something is left")

        refused("none.npy: No such file", "none.npy")
        refused("no file matches none-\\*.npy", "none-*.npy")
        refused("cut.npy: 11328 bytes wanted by its header, 999 present", "cut.npy")
        refused("zero.npy holds no records", "zero.npy")
        refused(r'wide.npy is float32\[700, 5\], and input "x" is float32\[batch, 4\]', "wide.npy")
        refused(r"x.csv:602: column \"c\".*oh", "x.csv")
        refused('x.csv gives 2 columns, and input "x" takes 4; name the columns', "x.csv#a,b", code=2)
        refused('no column "z"', "x.csv#a,b,c,z", code=2)
        refused("words.txt is text", "words.txt", code=3)
        refused("the format of rows.dat is unknown", "rows.dat")
        refused("there is no folder none; make it", "x.npy", out="none/out.npy")
        refused("folder.npy is a folder, not a file", "x.npy", out="folder.npy")
        refused('other.npy.parts is needed for parts of the result, and has "mine" in it', "x.npy", out="other.npy")
        refused("m.onnx has one set of weights, and no checkpoints", "x.npy", code=2, more=["--from", "7"])
        refused("x.npy is an input of this prediction", "x.npy", out="./x.npy", code=2)
        refused("x.csv is an input of this prediction", "x.csv#a,b,c,d", out="x.csv", code=2)
        refused("writes npy and csv files, and out.txt is neither; end a folder's name with a slash", "x.npy",
                out="out.txt", code=2)
        refused("cannot write to words.txt", "x.npy", out="words.txt", code=2)
        refused("cannot write to -;", "x.npy", out="-", code=2)


def an_interrupted_one_goes_on(weft):
    """Killed, and stopped by Ctrl-C: the same command goes on, and the result has the bytes of one that nobody
    disturbed."""
    with weftlib.Cluster(weft) as c:
        a_model(c, 500, 700)
        np.save(c.path("x.npy"), np.random.default_rng(3).normal(size=(40000, 500)).astype(np.float32))
        for out in ("out.npy", "out.csv"):
            words = ["predict", "m.onnx", "--input", "x=x.npy", "--batch", "64", "--split-records", "128", "-o"]
            c.must(*words, "whole-" + out)
            parts, counted = c.path(out + ".parts"), []
            for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
                had = len(os.listdir(parts)) if counted else 0
                p = subprocess.Popen([c.weft, *words, out], cwd=c.path("."), stderr=subprocess.PIPE, text=True)
                weftlib.until(lambda: os.path.isdir(parts) and len(os.listdir(parts)) > had + 10, "parts")
                p.send_signal(how)
                told = p.communicate()[1]
                weftlib.check(how == signal.SIGKILL or p.returncode == 5 and "the same command goes on" in told,
                              f"{how}: exit {p.returncode}, {told}")
                weftlib.check(not os.path.exists(c.path(out)), f"{out} is there before it is whole")
                counted.append(len(os.listdir(parts)))
            absolute = [w.replace("x=", "x=" + c.path("")) if w.startswith("x=") else w for w in words[:-1]]
            told = c.must(*absolute, "-o", c.path(out)).err  # the same files by other words
            told = told.replace(c.path(""), "")
            weftlib.check(re.search(r"\d+ of 313 parts of out\.... are there: it goes on", told), told)
            weftlib.check(counted[0] < counted[1] < counted[2] < 313, f"parts: {counted}")
            with open(c.path(out), "rb") as a, open(c.path("whole-" + out), "rb") as b:
                weftlib.check(a.read() == b.read(), f"{out} has other bytes")
            weftlib.check(not os.path.exists(parts), "the parts are left")
            c.must(*words, out)  # over one that is there
        p = subprocess.Popen([c.weft, *words, out], cwd=c.path("."), stderr=subprocess.DEVNULL)
        weftlib.until(lambda: os.path.isdir(parts) and len(os.listdir(parts)) > 1, "parts")
        said(c, *words, out, code=1, text="another weft predict writes out.csv")
        p.kill()
        p.wait()
        told = c.must("predict", "m.onnx", "--input", "x=x.npy", "-o", out).err
        weftlib.check("out.csv.parts held parts of another prediction: it begins anew" in told, told)


def memory_does_not_grow_with_the_file(weft):
    """256 MB of records, through less than 100 MB of memory beyond that of one record."""
    with weftlib.Cluster(weft) as c:
        a_model(c, 1000)
        x = np.lib.format.open_memmap(c.path("x.npy"), "w+", np.float32, (64000, 1000))
        x[:] = 1
        x.flush()
        np.save(c.path("one.npy"), x[:1])
        most = []
        for file in ("one.npy", "x.npy"):
            p = subprocess.Popen([c.weft, "predict", "m.onnx", "--input", f"x={file}", "-o", "o.npy"], cwd=c.path("."),
                                 stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = status
            weftlib.check(status == 0, f"{file}: status {status}")
            most.append(usage.ru_maxrss >> 10)
        weftlib.check(most[1] - most[0] < 100, f"{most} MiB")


def a_checkpoints_folder_names_its_step(weft):
    with weftlib.Cluster(weft) as c:
        c.write("job.yaml", JOB + "checkpoint: {every_steps: 16, keep: 9}\n")
        write(c, 512)
        c.must("train", "--local", "job.yaml")
        folder = c.path("checkpoints/images#1")
        steps = sorted(n for n in os.listdir(folder) if n.startswith("step-"))
        weftlib.check(len(steps) > 2, str(steps))
        for step in steps:
            c.must("predict", f"{folder}/{step}", "--input", "x=x.npy", "-o", "a.npy")
            c.must("predict", "images", "--from", str(int(step[5:])), "--input", "x=x.npy", "-o", "b.npy")
            weftlib.check((np.load(c.path("a.npy")) == np.load(c.path("b.npy"))).all(), f"{step} gives others")
        c.must("predict", "images", "--input", "x=x.npy", "-o", "b.npy")
        weftlib.check((np.load(c.path("a.npy")) == np.load(c.path("b.npy"))).all(), "the newest is another")
        os.mkdir(c.path("images"))  # the results of several outputs, say
        c.must("predict", "images", "--input", "x=x.npy", "-o", "c.npy")
        said(c, "predict", "images/", "--input", "x=x.npy", "-o", "c.npy", code=2, text="images/ is a folder, and no checkpoint of a job")
        a_checkpoint_elsewhere(c, f"{folder}/{steps[-1]}")


def a_checkpoint_elsewhere(c, checkpoint):
    """Another cluster, whose job has the same name: the one beside the checkpoint counts."""
    os.makedirs(c.path("other", "checkpoints"))
    for part in ("jobs", "checkpoints"):
        shutil.copytree(c.path(part if part == "checkpoints" else ".weft/jobs"), c.path("other", part), dirs_exist_ok=True)
    kept = c.path("other", "jobs", "images#1", "job.yaml")
    with open(kept, encoding="utf-8") as f:
        text = f.read()
    with open(kept, "w", encoding="utf-8") as f:
        f.write(text.replace("scale: 0.0078125", "scale: 0.5"))
    elsewhere = checkpoint.replace(c.path("checkpoints"), c.path("other", "checkpoints"))
    c.must("predict", elsewhere, "--input", "x=x.npy", "-o", "d.npy")
    weftlib.check((np.load(c.path("d.npy")) != np.load(c.path("a.npy"))).any(), "the job of the other cluster is taken")
    shutil.rmtree(c.path("other", "jobs"))
    said(c, "predict", elsewhere, "--input", "x=x.npy", "-o", "d.npy", code=1, text="there is no job file for the checkpoint")


if __name__ == "__main__":
    weftlib.main([other_records, other_text, other_records_are_standardised_as_the_training_data,
                  files_of_each_format_give_the_same, each_bad_input_is_one_sentence, an_interrupted_one_goes_on,
                  memory_does_not_grow_with_the_file, a_checkpoints_folder_names_its_step])

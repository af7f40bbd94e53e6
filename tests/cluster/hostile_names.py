# SPDX-License-Identifier: Apache-2.0
"""Names in files that hold control characters: what a command prints never has any.

    hostile_names.py WEFT [TEST...]
"""
import json
import os
import struct
import subprocess
import tempfile

from weftlib import SLOWER, Cluster, check, main, needs

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

# Clears the screen and sets the title; the 8-bit form; right-to-left; a line of its own.
EVIL = "\x1b[2J\x1b]0;t\x07\u009b31m\u202e\nok: all is well"
EVIL_NAME = "w\u009b31m\u202e"  # what the importer lets through


JOB = """job: evil
model: {onnx: evil.onnx}
loss: mse
metrics: [{mae: {name: "m\\x9b31m\\u202e"}}]
data:
  format: npy
  train: {x: x.npy, t: t.npy}
  eval: {x: x.npy, t: t.npy}
batch: 8
epochs: 1
optimizer: {sgd: {learning_rate: 0.1}}
"""


def check_printed(weft, *words, says=(), folder=None):
    """Returns what went to standard output."""
    done = subprocess.run([weft, *words], capture_output=True, timeout=60 * SLOWER, check=False,
                          cwd=folder)
    text = (done.stdout + done.stderr).decode()
    for line in text.splitlines():
        check(not line.startswith("ok: all is well"), f"{words}: a forged line: {text!r}")
    evil = [c for c in text if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"]
    check(not evil, f"{words}: {evil} in {text!r}")
    for part in says:
        check(part in text, f"{words}: {part!r} expected in: {text}")
    return done.stdout


def save(folder, graph, **more):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8,
                              **more)
    path = os.path.join(folder, "evil.onnx")
    onnx.save(model, path)
    return path


def graph_of(nodes, w="w", initializers=None, name="g", axis="n"):
    return helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [axis, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
        initializer=initializers or [numpy_helper.from_array(np.ones((4, 2), np.float32), w)])


def models(folder):
    """Paths of one file after the other, with words that tell what is printed."""
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    yield save(folder, graph_of([helper.make_node(EVIL, ["x"], ["y"], name="n")])), "x1b[2J"
    yield save(folder, graph_of([helper.make_node("Relu", ["x"], ["y"], domain=EVIL)])), "x1b[2J"
    yield save(folder, graph_of([helper.make_node("Relu", ["x"], ["y"], name=EVIL)])), "control"
    yield save(folder, graph_of([helper.make_node("Relu", ["x"], ["y"], **{EVIL: 1})])), "x1b[2J"
    yield save(folder, graph_of([helper.make_node("Pad", ["x", "w"], ["y"], mode=EVIL)])), "Pad"
    yield save(folder, graph_of([helper.make_node("Gelu", ["x"], ["y"], approximate=EVIL)])), ""
    yield save(folder, graph_of([product], axis=EVIL)), "control"
    yield save(folder, graph_of([product], name=EVIL)), "inputs"
    yield save(folder, graph_of([helper.make_node("MatMul", ["x", EVIL_NAME], ["y"])],
                                w=EVIL_NAME)), "w\\xc2\\x9b31m"
    tensor = TensorProto(name="w", data_type=1, dims=[4, 2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=EVIL)
    yield save(folder, graph_of([product], initializers=[tensor])), ""


def names_in_models_are_escaped(weft):
    with tempfile.TemporaryDirectory() as folder:
        for path, says in models(folder):
            check_printed(weft, "graph", path, "--memory", says=[says])
            check_printed(weft, "run", path, "-o", os.path.join(folder, "out"))
            check_printed(weft, "grad", path, "--loss", EVIL, "-o", os.path.join(folder, "out"))


def words_and_paths_are_escaped(weft):
    with tempfile.TemporaryDirectory() as folder:
        check_printed(weft, EVIL, says=["x1b[2J"])
        check_printed(weft, "graph", EVIL, says=["x1b[2J"])
        check_printed(weft, "graph", "a.onnx", "--" + EVIL, says=["x1b"])
        evil_array = os.path.join(folder, "evil.npy")
        with open(evil_array, "wb") as f:
            header = ("{'descr': '" + EVIL + "', 'fortran_order': False, 'shape': (1,), }").encode()
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        path = save(folder, graph_of([helper.make_node("MatMul", ["x", "w"], ["y"])]))
        check_printed(weft, "run", path, "--input", f"x={evil_array}", "-o", folder)


def names_of_a_job_are_escaped(weft):
    with Cluster(weft, ps=1, workers=1) as c:
        save(c.folder, graph_of([helper.make_node("MatMul", ["x", EVIL_NAME], ["y"])], w=EVIL_NAME))
        np.save(c.path("x.npy"), np.ones((64, 4), np.float32))
        np.save(c.path("t.npy"), np.ones((64, 2), np.float32))
        c.write("job.yaml", JOB)
        check_printed(c.weft, "train", "job.yaml", folder=c.folder, says=["m\\xc2\\x9b31m"])
        check_printed(c.weft, "ckpt", "show", "evil", folder=c.folder, says=["w\\xc2\\x9b31m"])
        for words in (["ckpt", "show", "evil"], ["ckpt", "ls", "evil"], ["eval", "job.yaml"]):
            json.loads(check_printed(c.weft, *words, "--json", folder=c.folder))
        c.run("up")
        json.loads(check_printed(c.weft, "status", "--json", folder=c.folder))


if __name__ == "__main__":
    main([names_in_models_are_escaped, words_and_paths_are_escaped, names_of_a_job_are_escaped])

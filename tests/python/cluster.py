# SPDX-License-Identifier: Apache-2.0
"""cluster.py LIBWEFT WEFT - weft.Cluster: a cluster started, a job trained on it, its model here;
and weft.Session: numbers, names and feeds."""
import os
import pathlib
import socket
import sys
import tempfile

import kit

kit.set_up(sys.argv[1])
kit.need("numpy")
os.environ["WEFT_EXECUTABLE"] = os.path.abspath(sys.argv[2])
import numpy as np  # noqa: E402
import weft  # noqa: E402
import weft.errors  # noqa: E402

JOB = """job: small
model: {input: {x: [4]}, layers: [{dense: {units: 8, activation: relu}}, {dense: 3}]}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data: {format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.25}
batch: 8
epochs: 30
optimizer: {adam: {learning_rate: 0.02}}
"""


def check_numbers(session):
    """Python's numbers get the dtype of a variable or input, where they fit."""
    for name, first in (("i", np.array(1, "int32")), ("u", np.array([1, 2], "uint8")), ("f", 1.5)):
        session.variable(name, first)
    for name, value in (("i", 2**40), ("i", 1.7), ("i", float("nan")), ("u", [300, 1]),
                        ("u", [-1, 1]), ("f", 1e300), ("f", 2**24 + 1)):
        kit.raises(weft.errors.Invalid, "does not fit", lambda: session.assign(name, value))
        kit.raises(weft.errors.Invalid, "does not fit", lambda: session.assign_add(name, value))
    assert session.read("i") == 1 and session.read("f") == 1.5
    kit.raises(weft.errors.Invalid, "does not fit", lambda: session.variable("g", 1e300))
    session.assign("i", 3.0)
    session.assign("f", 0.1)
    assert session.read("i") == 3 and session.read("f") == np.float32(0.1)


def check_words(session):
    """What is no name, and names that C would cut."""
    for call in (lambda n: session.read(n), lambda n: session.variable(n, 1),
                 lambda n: session.assign(n, 1), lambda n: session.run(n),
                 lambda n: session.run("y", {n: 1}), lambda n: weft.Session(n)):
        kit.raises(weft.errors.WrongType, "is 3, of int", lambda: call(3))
        kit.raises(weft.errors.Invalid, "has a character NUL", lambda: call("i\0x"))
    kit.raises(weft.errors.WrongType, "the model is 5", lambda: session.extend(5))
    kit.raises(weft.errors.WrongType, "feeds is of list", lambda: session.run("y", [1]))


def check_feeds(session):
    """Of graphs whose inputs are known, and of those that are not."""
    try:
        import onnx
    except ImportError:
        print("no onnx here")
        return
    from onnx import helper
    for kind in (onnx.TensorProto.FLOAT, onnx.TensorProto.INT32):
        x, y, w = (f"{n}{kind}" for n in "xyw")
        graph = helper.make_graph(
            [helper.make_node("Mul", [x, w], [y])], "g",
            [helper.make_tensor_value_info(x, kind, ["n"])],
            [helper.make_tensor_value_info(y, kind, ["n"])],
            [helper.make_tensor(w, kind, [], [2])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        model.metadata_props.add(key="weft.variable." + w, value="trainable")
        session.extend(model if kind == onnx.TensorProto.FLOAT else model.SerializeToString())
        assert session.run(y, {x: [1, 2]}).tolist() == [2, 4]
        e = kit.raises(weft.errors.ShapeError, "float64", lambda: session.run(y, {x: np.ones(2)}))
        assert "dtypes" in e.hint
        kit.raises(weft.errors.Invalid, "is a variable",
                   lambda: session.run(y, {x: [1, 2], w: np.array(1)}))
    kit.raises(weft.errors.Invalid, "1.5 does not fit", lambda: session.run(y, {x: [1.5]}))


def check_errors_of_the_command():
    def body():
        with weft.Cluster(folder / "cluster.yaml") as cluster:
            kit.raises(weft.errors.NotFound, "there is no file",
                       lambda: cluster.train(folder / "none.yaml"))
            raise KeyError("of the body")
    kit.raises(KeyError, "of the body", body)
    was = os.environ["WEFT_EXECUTABLE"]
    os.environ["WEFT_EXECUTABLE"] = "/none/weft"
    kit.raises(weft.errors.NotFound, "WEFT_EXECUTABLE is /none/weft",
               weft.Cluster(folder / "cluster.yaml").status)
    os.environ["WEFT_EXECUTABLE"] = was


def free_ports(n):
    held = [socket.socket() for _ in range(n)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ports = free_ports(3)
    at = "{{address: tcp://127.0.0.1:{}}}"
    (folder / "cluster.yaml").write_text(
        f"cluster: of-python\nmaster: {at.format(ports[0])}\nps:\n  - {at.format(ports[1])}\n"
        f"workers:\n  - {at.format(ports[2])}\n".replace("{{", "{").replace("}}", "}"))
    x = np.random.default_rng(1).normal(size=(96, 4)).astype("float32")
    y = x[:, :3].argmax(axis=1)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    (folder / "job.yaml").write_text(JOB)
    (folder / "bad.yaml").write_text(JOB.replace("adam", "adm"))
    kit.raises(weft.Error, "there is no file", lambda: weft.Cluster(folder / "none.yaml"))
    check_errors_of_the_command()
    with weft.Cluster(folder / "cluster.yaml").up() as cluster:
        with weft.Session(f"127.0.0.1:{ports[0]}") as session:
            check_numbers(session)
            check_words(session)
            check_feeds(session)
        assert {t["role"] for t in cluster.status()["tasks"]} == {"ps", "worker"}
        kit.raises(weft.Error, 'did you mean "adam"', lambda: cluster.train(folder / "bad.yaml"))
        run = cluster.train(folder / "job.yaml")
        reports = list(run)
        assert run.name == "small#1" and reports[-1]["state"] == "done", reports[-1]
        assert [r["step"] for r in reports] == sorted(r["step"] for r in reports)
        history = run.history()
        assert history.epoch == list(range(30))
        assert abs(history.history["val_loss"][-1] - reports[-1]["eval"]["loss"]) < 1e-6
        m = run.model()
        right = (m.predict(x).argmax(axis=1) == y).mean()
        assert right > 0.9, right
        long = cluster.train(folder / "job.yaml", settings={"epochs": 100000})
        for report in long:
            if report["step"] > 0:
                break
        long.stop()
        kit.raises(weft.errors.Stopped, "small#2 stopped", long.wait)
    print("ok")

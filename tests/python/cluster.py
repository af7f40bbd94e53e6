# SPDX-License-Identifier: Apache-2.0
"""cluster.py LIBWEFT WEFT - weft.Cluster: a cluster started, a job trained on it, its model here."""
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

JOB = """job: small
model: {input: {x: [4]}, layers: [{dense: {units: 8, activation: relu}}, {dense: 3}]}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data: {format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.25}
batch: 8
epochs: 30
optimizer: {adam: {learning_rate: 0.02}}
"""


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
    with weft.Cluster(folder / "cluster.yaml").up() as cluster:
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

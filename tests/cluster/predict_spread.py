# SPDX-License-Identifier: Apache-2.0
"""weft predict --spread: the splits of a prediction on the workers of a cluster, while these, the master, and all of it
are killed. The result has the bytes of one machine's."""
import os
import re
import signal

import weftlib

weftlib.needs("numpy", "onnx")

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RECORDS, SPLIT = 20000, 64
JOB = """job: images
model: {input: {x: [6]}, layers: [dense: {units: 3}]}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {x: x.npy, y: y.npy}
  map: {x: [standardise, {reshape: [6]}]}
batch: 16
epochs: 1
optimizer: adam
"""


def make(c, hidden=3000, records=RECORDS):
    """m.onnx and rows.npy, of which a split takes some milliseconds."""
    rng = np.random.default_rng(5)
    tensors = {"w": rng.normal(size=(200, hidden)), "v": rng.normal(size=(hidden, 3))}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("MatMul", ["r", "v"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 200])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(a.astype(np.float32), k) for k, a in tensors.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), c.path("m.onnx"))
    np.save(c.path("rows.npy"), rng.normal(size=(records, 200)).astype(np.float32))


WORDS = ["predict", "m.onnx", "--input", "x=rows.npy", "--batch", "32", "--split-records", str(SPLIT), "-o"]


def content(c, name):
    with open(c.path(name), "rb") as f:
        return f.read()


def parts(c, out):
    """The parts that are whole."""
    folder = c.path(out + ".parts")
    return [n for n in (os.listdir(folder) if os.path.isdir(folder) else []) if re.fullmatch(r"part-\w+-\d+\.0", n)]


def by_workers(result):
    """That no part was left to the command."""
    weftlib.check(result.code == 0 and "not computed by the workers" not in result.err, str(result))
    return result


def the_bytes_are_those_of_one_machine(weft):
    for ps in (2, 0):
        with weftlib.Cluster(weft, ps=ps, workers=3) as c:
            make(c, hidden=20, records=3001)
            c.must("up")
            for out in ("a.npy", "a.csv", "folder"):
                c.must(*WORDS, "one-" + out)
                shown = by_workers(c.run(*WORDS, out, "--spread")).out
                files = [out] if out != "folder" else ["folder/y.npy"]
                for file in files:
                    weftlib.check(content(c, file) == content(c, "one-" + file), f"{ps} ps, {file}: other bytes")
                weftlib.check(shown.startswith(files[0] + ": "), shown)
                weftlib.check(not os.path.exists(c.path(out + ".parts")), "parts are left")
            picture = c.status()
            weftlib.check(not picture["jobs"], f"jobs are left: {picture['jobs']}")


def a_jobs_checkpoint_and_its_map(weft):
    """A checkpoint's means and deviations go with it to the workers; a cluster is started for the command."""
    with weftlib.Cluster(weft) as c:
        c.write("job.yaml", JOB)
        x = np.random.default_rng(1).integers(0, 256, (900, 2, 3)).astype(np.uint8)
        np.save(c.path("x.npy"), x)
        np.save(c.path("y.npy"), x[:, 0].argmax(1))
        np.save(c.path("x2.npy"), x[::-1] // 2)
        c.must("train", "job.yaml")
        words = ["predict", "images", "--input", "x=x2.npy", "--batch", "8", "--split-records", "24", "-o"]
        c.must(*words, "one.npy")
        by_workers(c.run(*words, "all.npy", "--spread"))
        weftlib.check(content(c, "all.npy") == content(c, "one.npy"), "other bytes")
        weftlib.check(not c.processes(), "the cluster is left")


def each_task_is_killed(weft):
    """Workers, the master and a ps, one after the other: parts go on to come, and no record is missing or there
    twice."""
    for ps, tasks in ((1, ("worker/0", "master", "worker/1", "ps/0", "worker/0")), (0, ("worker/0", "master", "worker/1"))):
        with weftlib.Cluster(weft, ps=ps, workers=2) as c:
            make(c)
            c.must(*WORDS, "one.npy")
            c.must("up")
            p = c.start(*WORDS, "all.npy", "--spread")
            for task in tasks:
                had = len(parts(c, "all.npy"))
                weftlib.until(lambda: len(parts(c, "all.npy")) > had + 5 or p.poll() is not None, f"parts before {task}")
                weftlib.check(p.poll() is None, f"it ended before {task} was killed: its splits are too few")
                c.kill(task)
            by_workers(c.end_of(p))
            weftlib.check(content(c, "all.npy") == content(c, "one.npy"), "other bytes")


def all_of_it_is_killed(weft):
    """And the command with it: given again, it goes on where the parts end."""
    with weftlib.Cluster(weft, ps=1, workers=2) as c:
        make(c)
        c.must(*WORDS, "one.npy")
        for round in range(3):
            had = len(parts(c, "all.npy"))
            c.start(*WORDS, "all.npy", "--spread")
            weftlib.until(lambda: len(parts(c, "all.npy")) > had + 20, "parts")
            c.kill_all()
            weftlib.check(not os.path.exists(c.path("all.npy")), "it is there before it is whole")
        have = len(parts(c, "all.npy"))
        told = by_workers(c.run(*WORDS, "all.npy", "--spread")).err
        weftlib.check(f"{have} of {-(-RECORDS // SPLIT)} parts of all.npy are there: it goes on" in told, told)
        weftlib.check(content(c, "all.npy") == content(c, "one.npy"), "other bytes")
        # What a cluster began, one process ends.
        p = c.start(*WORDS, "more.npy", "--spread")
        weftlib.until(lambda: len(parts(c, "more.npy")) > 20, "parts")
        c.kill_all()
        p.wait()
        c.must("predict", c.path("m.onnx"), "--input", f"x={c.path('rows.npy')}", *WORDS[4:], c.path("more.npy"))
        weftlib.check(content(c, "more.npy") == content(c, "one.npy"), "other bytes")


def an_interrupted_one_stops_its_job(weft):
    with weftlib.Cluster(weft, ps=1, workers=2) as c:
        make(c)
        c.must(*WORDS, "one.npy")
        c.must("up")
        p = c.start(*WORDS, "all.npy", "--spread")
        weftlib.until(lambda: len(parts(c, "all.npy")) > 20, "parts")
        p.send_signal(signal.SIGINT)
        result = c.end_of(p)
        weftlib.check(result.code == 5 and re.search(r"interrupted: \d+ of \d+ parts of all.npy are computed; the same "
                                                     "command goes on", result.err), str(result))
        states = [j["state"] for j in c.status()["jobs"]]
        weftlib.check(states == ["stopped"], f"{states}")
        told = c.must(*WORDS, "all.npy").err  # by this process now
        weftlib.check(re.search(r"\d+ of \d+ parts of all.npy are there: it goes on", told), told)
        weftlib.check(content(c, "all.npy") == content(c, "one.npy"), "other bytes")


def a_record_that_is_wrong_ends_it(weft):
    with weftlib.Cluster(weft, ps=1, workers=2) as c:
        make(c, hidden=20)
        c.write("x.csv", "".join(",".join(["0.5"] * 200) + "\n" for _ in range(5000)) + ",".join(["oh"] * 200) + "\n")
        c.must("up")
        words = ["predict", "m.onnx", "--input", "x=x.csv", "--split-records", "512", "-o", "a.npy", "--spread"]
        told = weftlib.one_sentence(c.must(*words, code=1).err.splitlines()[-1])
        weftlib.check("x.csv:5001: column" in told, told)
        weftlib.check(not os.path.exists(c.path("a.npy")), "a result is there")


if __name__ == "__main__":
    weftlib.main([the_bytes_are_those_of_one_machine, a_jobs_checkpoint_and_its_map, each_task_is_killed, all_of_it_is_killed,
                  an_interrupted_one_stops_its_job, a_record_that_is_wrong_ends_it])

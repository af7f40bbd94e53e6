# SPDX-License-Identifier: Apache-2.0
"""What a person gives that is wrong: each gets one sentence and an exit code, and changes nothing.

    bad_input.py WEFT [TEST...]

YAML and models are refused before anything starts; what only the data shows ends the job, and the
cluster trains the next one.
"""
import gzip
import os
import re
import socket
import struct

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import small  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


MODEL_JOB = """job: bad
model: {onnx: model.onnx}
data: {format: npy, train: {x: x4.npy}}
batch: 8
optimizer: sgd
"""


def tree(c):
    """{path: (size, time of change)} of all files of the cluster's folder."""
    found = {}
    for folder, _, names in os.walk(c.folder):
        for name in names:
            facts = os.stat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (facts.st_size, facts.st_mtime_ns)
    return found


def refused(c, *words, code, says):
    """The command fails with that code and a sentence, and no file or process is new."""
    before = tree(c)
    result = c.run(*words)
    check(result.code == code, f"{words}: exit {code} expected, {result}")
    check(result.out == "", f"{words}: {result}")
    sentence = one_sentence(result.err)
    check(re.search(says, sentence), f"{words}: {says!r} expected in: {sentence}")
    check(tree(c) == before, f"{words}: files changed: {set(tree(c)) ^ set(before)}")
    check(not c.processes(), f"{words}: processes: {c.processes()}")


def job_files_that_are_wrong(weft):
    rows = [
        # change to a good file, exit code, what is said
        (("batch: 8", "batch: [8"), 2, r"bad.yaml:\d+: not YAML"),
        (("batch: 8", "bacth: 8"), 2, r'bad.yaml:14: unknown key "bacth"; did you mean "batch"'),
        (("optimizer:", "optimiser:"), 2, r'bad.yaml:16: unknown key "optimiser".*"optimizer"'),
        (("units: 32", "unit: 32"), 2, r'bad.yaml:5: unknown option of dense "unit".*"units"'),
        (("sgd:", "sdg:"), 2, r'bad.yaml:16: .*"sdg".*"sgd"'),
        (("learning_rate", "learnin_rate"), 2, r'bad.yaml:16: .*"learnin_rate".*"learning_rate"'),
        (("learning_rate: 0.05", "learning_rate: -1"), 2, r"bad.yaml:16: .*learning_rate.*-1"),
        (("sgd: {learning_rate: 0.05}", "adafactor: {}"), 3, r"bad.yaml:16: .*adafactor.*not built yet"),
        (("- dense: {units: 4}", "- densse: {units: 4}"), 2, r'bad.yaml:6: .*"densse".*"dense"'),
        (("accuracy", "acuracy"), 2, r'bad.yaml:8: .*"acuracy".*"accuracy"'),
        (("loss: sparse", "loss: spase"), 2, r'bad.yaml:7: .*"spase_categorical_crossentropy".*'
                                             r'"sparse_categorical_crossentropy"'),
        (("format: npy", "format: nyp"), 2, r'bad.yaml:10: .*"nyp".*"npy"'),
        (("batch: 8", "batch: 0"), 2, r"bad.yaml:14: .*batch"),
        (("batch: 8", "batch: many"), 2, r'bad.yaml:14: "batch" must be a whole number .*, not many'),
        (("batch: 8\n", ""), 2, r'bad.yaml:\d+: .*"batch"'),
        (("batch: 8\n", "batch: 8\nbatch: 9\n"), 2, r'bad.yaml:15: .*"batch"'),
        (("train: {x: x.npy", "train: {x: none.npy"), 1, r"bad.yaml:11: there is no file .*none"),
        (("  input:", "  onnx: none.onnx\n  input:"), 2, r"bad.yaml:\d+: .*not both"),
        (("seed: 1", "strategy: hibrid"), 2, r'bad.yaml:19: there is no strategy "hibrid"; did you mean "hybrid"'),
        (("seed: 1", "replicas: 1"), 3, r"bad.yaml:19: .*replicas.*not built yet"),
        (("seed: 1", "tables: {}"), 2, r'bad.yaml:19: a table has no "match"'),
        (("seed: 1", 'tables: [{match: "e/*", max_rows: 64}]'), 2,
         r'bad.yaml:19: "max_rows" is for tables with rows: unbounded'),
        (("seed: 1", 'tables: [{match: "e/*", cache_staleness: 3}]'), 2,
         r'bad.yaml:19: "cache_staleness" is for tables with cache_rows'),
        (("seed: 1", 'tables: [{match: "e/*", cache_rows: 64}]\nconsistency: {mode: bsp}'), 2,
         r'bad.yaml:19: "cache_rows" lets workers use rows of earlier steps'),
        (("seed: 1", 'tables: [{match: "e/*", rows: endless}]'), 2, r'bad.yaml:19: .*"endless"'),
        (("seed: 1", "codec: bf61"), 2, r'bad.yaml:19: unknown codec "bf61"; did you mean "bf16"'),
        (("seed: 1", "codec: {match: dens*, pull: int8}"), 2, r'bad.yaml:19: unknown pull "int8"'),
        (("seed: 1", "codec: {match: densse, push: topk, ratio: 0.1}"), 2,
         r'bad.yaml:19: codec: "densse" matches no variable; there is "dense'),
        (("seed: 1", 'tables: [{match: "e/*", dtype: int4}]'), 2, r'bad.yaml:19: .*"int4"'),
        (("seed: 1", "class_weight: {0: 2.0, 4: 2.0}"), 2,
         r'class_weight: there is no class 4; the scores "output" are of 4, 0 to 3'),
        (("seed: 1", 'freeze: ["*"]'), 2, r'bad.yaml:19: "freeze" leaves no variable to train'),
        (("seed: 1", "dtype: int8"), 2, r'bad.yaml:19: "dtype" is no key here; write it below "tables"'),
    ]
    with Cluster(weft) as c:
        for change, code, says in rows:
            small.write_job(c, "bad", change=[change])
            refused(c, "train", "bad.yaml", code=code, says=says)
        small.write_job(c, "bad", change=[("train: {x: x.npy, y: y.npy", "train: {x: x.npy, y: y.npy, w: y.npy"), ("seed: 1", "sample_weight: w")])
        refused(c, "train", "bad.yaml", code=1, says=r'no data for "w", which the model or the loss reads')
        refused(c, "train", "none.onnx", code=2,
                says=r"none.onnx is not a job file; write model: {onnx: none.onnx} into one")
        refused(c, "train", "none.yaml", code=1, says="there is no job file none.yaml")
        small.write_job(c, "bad")
        c.write("bad.yaml", c.read("bad.yaml").replace("input: {x: [16]}", "onnx: none.onnx")
                .split("  layers:")[0] + "data: {format: npy, train: {x: x.npy, y: y.npy}}\n"
                "batch: 8\noptimizer: sgd\n")
        refused(c, "train", "bad.yaml", code=1, says=r"none\.onnx")
        with open(c.path("bad.yaml"), "wb") as f:
            f.write(b"\x00\xff\xfe" * 100)
        refused(c, "train", "bad.yaml", code=2, says=r"bad.yaml is not a job file: it is binary")
        c.write("bad.yaml", "a: " + "[" * 100000)
        refused(c, "train", "bad.yaml", code=2, says=r"bad.yaml:1: ")


def cluster_files_that_are_wrong(weft):
    rows = [
        (("workers:", "wrokers:"), 2, r'cluster.yaml:6: unknown key "wrokers"; did you mean "work'),
        (("address:", "adress:"), 2, r'cluster.yaml:2: .*"adress".*"address"'),
        (("master: {", "master: {{"), 2, r"cluster.yaml:\d+: "),
        (("ipc://", "udp://"), 2, r"cluster.yaml:2: .*udp://"),
        (("/2.sock", "/1.sock"), 2, r"cluster.yaml:5: ps/1 has the address .*, and so has ps/0"),
        (("/5.sock", "/0.sock"), 2, r"cluster.yaml:7: worker/0 has the address .* the master"),
    ]
    with Cluster(weft) as c:
        small.write_job(c)
        good = c.read("cluster.yaml")
        for (old, new), code, says in rows:
            check(old in good, old)
            c.write("cluster.yaml", good.replace(old, new))
            for command in (["up"], ["train", "small.yaml"], ["status"]):
                refused(c, *command, code=code, says=says)
        c.write("cluster.yaml", re.sub("checkpoint_dir: .*", "checkpoint_dir: small.yaml", good))
        said = one_sentence(c.must("up", code=1).err)
        check(re.search(r"cluster.yaml:\d+: checkpoint_dir: .*small.yaml is a file, and no folder", said), said)
        check(not c.processes(), str(c.processes()))


def a_port_in_use_names_its_process(weft):
    with Cluster(weft, transport="tcp") as c, socket.socket() as s:
        port = int(c.ports[2].rsplit(":", 1)[1])
        s.bind(("127.0.0.1", port))
        s.listen()
        result = c.must("up", code=1)
        check(re.search(rf"ps/1 cannot have tcp://127.0.0.1:{port}: it is in use by process "
                        rf"{os.getpid()} \(", one_sentence(result.err)), str(result))
        until(lambda: not c.processes(), "every process to end")


def graph(nodes, shape=("n", 4), weights=(), outputs=("loss",)):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))
    out = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in outputs]
    return helper.make_graph(nodes, "bad", [x], out,
                             [numpy_helper.from_array(a, name) for name, a in weights])


def model(nodes, opset=17, **rest):
    made = helper.make_model(graph(nodes, **rest), opset_imports=[helper.make_opsetid("", opset)],
                             ir_version=8)
    return made.SerializeToString()


def nested(depth):
    """A graph in an attribute of a node of a graph in an attribute..., by hand: no library writes
    it."""
    def field(number, body):
        size, length = len(body), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + body
    body = b""
    for _ in range(depth):
        body = field(1, field(5, field(6, body)))  # graph.node, node.attribute, attribute.g
    return field(7, body)


def onnx_files_that_are_wrong(weft):
    w = np.ones((4, 1), np.float32)
    good = [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc"),
            helper.make_node("ReduceSum", ["y"], ["loss"], keepdims=0)]
    cycle = [helper.make_node("Add", ["x", "b"], ["a"], name="first"),
             helper.make_node("Neg", ["a"], ["b"], name="second"),
             helper.make_node("ReduceSum", ["b"], ["loss"], keepdims=0)]
    unknown = [helper.make_node("Frobnicate", ["x"], ["y"], name="odd"), good[1]]
    whole = model(good, weights=[("w", w)])
    rows = [
        (whole[:-7], 1, r"model.onnx.*"),
        (whole[:len(whole) // 2], 1, r"model.onnx.*"),
        (b"", 1, r"model.onnx.*"),
        (os.urandom(2000), 1, r"model.onnx.*"),
        (nested(20000), 1, r"model.onnx.*nested"),
        (model(good, weights=[("w", w)], opset=6), 3, r"model.onnx.*opset 6.*7 to 25"),
        (model(good, weights=[("w", w)], opset=99), 3, r"model.onnx.*opset 99"),
        (model(cycle), 1, r"model.onnx.*(first|second).*"),
        (model(unknown), 3, r'Frobnicate.*'),
        (model(good, weights=[("w", np.ones((5, 1), np.float32))]), 1,
         r"MatMul \"fc\".*4\].*\[5, 1\]"),
        (model([unknown[0], helper.make_node("Swoosh", ["y"], ["z"], name="other"),
                helper.make_node("ReduceSum", ["z"], ["loss"], keepdims=0)]), 3,
         r'2 operations of opset 17 .*Frobnicate "odd".*Swoosh "other"'),
        (model([helper.make_node("MatMul", ["x", "nowhere"], ["loss"], name="fc")]), 1,
         r'fc.*"nowhere"'),
    ]
    with Cluster(weft) as c:
        small.write_data(c)
        np.save(c.path("x4.npy"), np.ones((64, 4), np.float32))
        c.write("model.yaml", MODEL_JOB)
        for body, code, says in rows:
            with open(c.path("model.onnx"), "wb") as f:
                f.write(body)
            refused(c, "train", "model.yaml", code=code, says=says)
            before = tree(c)
            run = c.bare("run", "model.onnx", "--input", "x=x4.npy", "--output-dir", "out")
            check(run.code == code and re.search(says, one_sentence(run.err)), str(run))
            check(tree(c) == before, "weft run wrote something")


def models_that_cannot_be_trained(weft):
    w = ("w", np.ones((4, 1), np.float32))
    matmul = helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")
    mean = helper.make_node("ReduceMean", ["z"], ["loss"], keepdims=0)
    rows = [
        ([matmul, helper.make_node("ReduceMean", ["x"], ["loss"], keepdims=0)], 1,
         r'the loss "loss" depends on none|no trainable variable'),
        ([matmul, helper.make_node("Cast", ["y"], ["i"], to=TensorProto.INT64),
          helper.make_node("Cast", ["i"], ["z"], to=TensorProto.FLOAT, name="back"), mean], 1,
         r'from the loss "loss" to "w" ends at Cast "back", which takes int64'),
        ([matmul, helper.make_node("Hardmax", ["y"], ["z"], name="hard"), mean], 1,
         r'"w" ends at Hardmax "hard", which has no gradient'),
        ([matmul, helper.make_node("NonZero", ["x"], ["n"], name="count"),
          helper.make_node("Cast", ["n"], ["f"], to=TensorProto.FLOAT),
          helper.make_node("ReduceMean", ["f"], ["q"], keepdims=0),
          helper.make_node("Mul", ["y", "q"], ["z"]), mean], 3,
         r'NonZero "count": axis 1 of its result "n".*depends on what is fed'),
    ]
    with Cluster(weft) as c:
        np.save(c.path("x4.npy"), np.ones((64, 4), np.float32))
        c.write("model.yaml", MODEL_JOB)
        for nodes, code, says in rows:
            with open(c.path("model.onnx"), "wb") as f:
                f.write(model(nodes, weights=[w]))
            refused(c, "train", "model.yaml", code=code, says=says)


def data_that_is_wrong_ends_the_job_alone(weft):
    y = np.arange(small.RECORDS) % 4

    def idx(path, name, cut):
        body = struct.pack(">IIII", 0x803, 100, 4, 4) + bytes(1600)
        with gzip.open(path(name), "wb") as f:
            f.write(body[:len(body) - cut])

    rows = [
        # name, change of the job, file to spoil and how, what is said
        ("shape", [], ("x.npy", np.ones((small.RECORDS, 15), np.float32)), r"shape\.yaml:11: .*x\.npy.*\[15\].*16"),
        ("count", [], ("y.npy", y[:100]), r"y\.npy.*100.*512|512.*100"),
        ("labels", [], ("y.npy", np.where(y == 3, 4, y)), r"y\.npy.*label 4.*|record 3.*4"),
        ("minus", [], ("y.npy", y - 1), r"y\.npy.*-1"),
        ("floats", [("  train", "  map: {x: [{reshape: [3, 5]}]}\n  train")], None,
         r"floats\.yaml:12: .*reshape.*16.*\[3, 5\]"),
        ("onehot", [], ("y.npy", np.eye(4, dtype=np.int64)[y]),
         r'onehot.yaml:11: the labels "y" in .* are one-hot \(int64\[4\]\), and '
         r"sparse_categorical_crossentropy takes class numbers.*; use loss: categorical_crossentropy"),
        ("numbers", [("loss: sparse_", "loss: ")], ("y.npy", y),
         r'numbers.yaml:11: the labels "y" in .* are class numbers, one a record, .*'
         r"use loss: sparse_categorical_crossentropy, or write map: {y: \[{one_hot: 4}\]}"),
        ("signs", [("units: 4", "units: 1"), ("loss: sparse_categorical", "loss: binary")],
         ("y.npy", (y > 0) * 2.0 - 1), r"y\.npy: record 0 has the label -1, and must be from 0 to 1"),
        ("halves", [], ("y.npy", y * 0.5), r"y\.npy: record 1 has the label 0\.5; classes are whole numbers, 0 to 3"),
        ("cut", [("format: npy", "format: idx"), ("x: x.npy", "x: x.gz"), ("x: x.npy", "x: x.gz")]
         [:2], "idx", r"x\.gz: 1616 bytes wanted .*, 1606 present"),
        ("notnpy", [], ("x.npy", b"PK\x03\x04 something else"), r"x\.npy.*not an npy"),
    ]
    with Cluster(weft) as c:
        c.must("up")
        for name, change, spoil, says in rows:
            small.write_job(c, name, change=change)
            if spoil == "idx":
                idx(c.path, "x.gz", 10)
            elif spoil and isinstance(spoil[1], bytes):
                with open(c.path(spoil[0]), "wb") as f:
                    f.write(spoil[1])
            elif spoil:
                np.save(c.path(spoil[0]), spoil[1])
            result = c.run("train", f"{name}.yaml")
            sentence = result.err.strip().split("\n")[-1]
            check(result.code == 1 and re.search(says, sentence), f"{name}: {result}")
            check(not c.checkpoints(name), f"{name} has checkpoints")
        small.write_job(c, "good")
        c.must("train", "good.yaml")
        check([j["job"] for j in c.status()["jobs"]] == ["good"], "a job with wrong data was made")
        # What goes wrong after the check is found by the workers, and ends the job alone.
        small.write_job(c, "long", epochs=100000)
        c.must("submit", "long.yaml")
        c.must("submit", "good.yaml")
        np.save(c.path("y.npy"), np.where(y == 3, 4, y))
        c.must("stop", "long")
        job = c.until_job("good", lambda j: j["run"] == 2 and j["state"] == "failed", "fails")
        check(re.search(r"y\.npy.*label 4", job["reason"]), str(job["reason"]))
        small.write_job(c, "good")
        c.must("train", "good.yaml")


def a_number_that_is_none_stops_the_job(weft):
    with Cluster(weft) as c:
        c.must("up")
        small.write_job(c, "nan", rate=1e30)
        result = c.must("train", "nan.yaml", code=1)
        sentence = result.err.strip().split("\n")[-1]
        check(re.search(r"the loss is NaN at step \d+ \(worker/\d, epoch 1, split \d+, batch \d+\); "
                        r"(first bad value: |the variable )", sentence),
              sentence)
        # The root of 0: a loss of 0, with a gradient of infinity times 0.
        with open(c.path("model.onnx"), "wb") as f:
            f.write(model([helper.make_node("MatMul", ["x", "w"], ["y"]),
                           helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0),
                           helper.make_node("Sqrt", ["sum"], ["loss"])],
                          weights=[("w", np.ones((4, 1), np.float32))]))
        np.save(c.path("x4.npy"), np.zeros((64, 4), np.float32))
        c.write("root.yaml", MODEL_JOB.replace("job: bad", "job: root"))
        result = c.must("train", "root.yaml", code=1)
        sentence = result.err.strip().split("\n")[-1]
        check(re.search(r'NaN in the gradient of "w" at step 1 .*first bad value: ', sentence),
              sentence)
        check(not c.checkpoints("nan") and not c.checkpoints("root"), "a checkpoint of NaN")
        small.write_job(c, "good")
        c.must("train", "good.yaml")


main([job_files_that_are_wrong, cluster_files_that_are_wrong, a_port_in_use_names_its_process,
      onnx_files_that_are_wrong, models_that_cannot_be_trained, data_that_is_wrong_ends_the_job_alone,
      a_number_that_is_none_stops_the_job])

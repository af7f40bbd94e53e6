# SPDX-License-Identifier: Apache-2.0
"""A step that makes NaN: the job stops and says where it came from, leaves the step out, or goes back.

    nan.py WEFT [TEST...]

The model takes the logarithm of its input; a bad record is one of negative numbers.
"""
import glob
import json
import os
import re
import shlex

from weftlib import Cluster, check, main, needs, one_sentence

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

RECORDS, BATCH, SPLIT, EPOCHS = 256, 8, 32, 3
JOB = f"""job: nan
model: {{onnx: model.onnx}}
loss: loss
data: {{format: npy, train: {{x: x.npy}}, split_records: {SPLIT}}}
batch: {BATCH}
epochs: {EPOCHS}
optimizer: {{sgd: {{learning_rate: 0.01}}}}
checkpoint: {{every_steps: 8}}
seed: 1
on_nan: """


def model(nodes, weights):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "nan", [x], [loss],
                              [numpy_helper.from_array(a, name) for name, a in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8).SerializeToString()


def train(c, on_nan, bad, code=0, value=-2, words=(), job=JOB):
    """Trains with such records bad, and gives what was said last."""
    node = helper.make_node
    with open(c.path("model.onnx"), "wb") as f:
        f.write(model([node("Log", ["x"], ["l"], name="log"), node("MatMul", ["l", "w"], ["y"]),
                       node("Sub", ["y", "k"], ["d"]), node("Mul", ["d", "d"], ["s"]),
                       node("ReduceMean", ["s"], ["loss"], keepdims=0)],
                      [("w", np.ones((4, 1), np.float32)), ("k", np.float32(0.5))]))
    x = np.random.default_rng(1).uniform(0.5, 1.5, (RECORDS, 4)).astype(np.float32)
    x[bad] = value
    np.save(c.path("x.npy"), x)
    c.write("nan.yaml", job + on_nan + "\n")
    if not words:
        c.must("up")
    return c.must("train", "nan.yaml", *words, code=code).err.strip().split("\n")[-1]


def weights_are_numbers(c):
    shards = glob.glob(c.saved("nan", "step-*", "*.safetensors"))
    check(shards, "no checkpoint")
    for path in shards:
        for name, value in load_file(path).items():
            check(np.isfinite(value.astype(np.float64)).all(), f"{path}: {name} is no number")


def stop_names_the_source(weft):
    with Cluster(weft, workers=1) as c:
        sentence = train(c, "stop", [100], code=1)
        check(re.search(r"the loss is NaN at step \d+ \(worker/0, epoch 1, split \d, batch \d\); "
                        r'first bad value: Log "log", input min -2 max 1\.\d+', sentence), sentence)
        check("small number" in sentence, sentence)
        named = re.search(r"; records (\d+), (\d+), (\d+) and 5 more of x.npy; replay: weft grad (\S+); ",
                          sentence)
        check(named, sentence)
        folder = named[4]
        check(os.path.dirname(folder) == os.path.realpath(c.path(".weft", "jobs", "nan#1")), sentence)
        # The kept batch is those records, the bad one among them, and the weights are the job's.
        with open(os.path.join(folder, "step.json"), encoding="utf-8") as f:
            records = json.load(f)["records"]
        check(records[:3] == [int(named[i]) for i in (1, 2, 3)] and 100 in records, str(records))
        batch = np.load(os.path.join(folder, "inputs", "x.npy"))
        check((batch == np.load(c.path("x.npy"))[records]).all(), str(batch))
        check(os.listdir(os.path.join(folder, "weights")) == ["w.npy"], str(os.listdir(folder)))
        # The command works as it was printed, and gives the gradients.
        source = re.search(r'the loss is NaN|first bad value: Log "log", input min \S+ max [0-9.]+',
                           sentence.split(";", 1)[1])[0]
        result = c.bare(*shlex.split(re.search(r"replay: weft (.*?); ", sentence)[1]))
        check(result.code == 0 and result.out == f"the loss is NaN; {source}\n", f"{result}")
        result = c.bare("grad", folder, "-o", "grads")
        check(result.code == 0 and np.isnan(np.load(c.path("grads", "w.npy"))).all(), str(result))
        check(np.isfinite(np.load(os.path.join(folder, "weights", "w.npy"))).all(), "bad weights")


def an_input_names_its_record(weft):
    for words in ((), ("--local",)):
        with Cluster(weft, workers=1) as c:
            sentence = train(c, "stop", [77], code=1, value=np.nan, words=words)
            check(re.search(r'the input "x" holds NaN already; record 77 of x.npy; replay: weft grad ',
                            sentence), sentence)
            result = c.bare(*shlex.split(re.search(r"replay: weft (.*?); ", sentence)[1]))
            check(result.out == 'the loss is NaN; the input "x" holds NaN already\n', str(result))


def records_in_order_are_a_range(weft):
    with Cluster(weft, workers=1) as c:
        sentence = train(c, "stop", [100], code=1, job=JOB.replace("split_", "shuffle: false, split_"))
        check("; records 96 to 103 of x.npy; replay" in sentence, sentence)


def a_damaged_step_is_one_sentence(weft):
    with Cluster(weft, workers=1) as c:
        sentence = train(c, "stop", [100], code=1)
        folder = re.search(r"replay: weft grad (\S+); ", sentence)[1]
        x = np.load(os.path.join(folder, "inputs", "x.npy"))
        told = c.read(os.path.join(folder, "step.json"))
        for spoil, says in (
                (lambda: np.save(os.path.join(folder, "inputs", "x.npy"), x.astype(np.int64)), "x.npy|fit"),
                (lambda: np.save(os.path.join(folder, "inputs", "x.npy"), x[:, :3]), "graph.onnx|fit"),
                (lambda: os.remove(os.path.join(folder, "inputs", "x.npy")), "x.npy"),
                (lambda: c.write(os.path.join(folder, "step.json"), told[:100]), "step.json"),
                (lambda: c.write(os.path.join(folder, "step.json"), "{}"), "step"),
                (lambda: c.write(os.path.join(folder, "graph.onnx"), "no"), "graph.onnx"),
                (lambda: os.remove(os.path.join(folder, "step.json")), "holds no step")):
            c.write(os.path.join(folder, "step.json"), told)
            spoil()
            result = c.bare("grad", folder)
            check(result.code in (1, 2) and re.search(says, one_sentence(result.err)), f"{says}: {result}")



def skip_drops_the_step_alone(weft):
    with Cluster(weft, workers=1) as c:
        train(c, "skip", [100])
        check(c.job("nan")["dropped_steps"] == EPOCHS, str(c.job("nan")))
        weights_are_numbers(c)


def rollback_goes_back_and_leaves_the_split_out(weft):
    for workers in (1, 2):
        with Cluster(weft, workers=workers) as c:
            train(c, "rollback", [100])
            job = c.job("nan")
            check(job["state"] == "done" and job["left_out_records"] == EPOCHS * SPLIT, str(job))
            check(job["generation"] == 1 + EPOCHS, str(job))
            weights_are_numbers(c)


def rollback_has_a_bound(weft):
    with Cluster(weft, workers=1) as c:
        sentence = train(c, "rollback", slice(None), code=1)
        check(re.search(r'first bad value: Log "log".*; going back to the beginning 3 times has not '
                        r"helped", sentence), sentence)
        check(c.job("nan")["generation"] == 4, str(c.job("nan")))
        kept = glob.glob(c.path(".weft", "jobs", "nan#1", "*nan-*"))
        check(1 <= len(kept) <= 3, str(kept))


main([stop_names_the_source, an_input_names_its_record, records_in_order_are_a_range,
      a_damaged_step_is_one_sentence, skip_drops_the_step_alone, rollback_goes_back_and_leaves_the_split_out,
      rollback_has_a_bound])

# SPDX-License-Identifier: Apache-2.0
"""Frozen variables and large constants travel once, from the ps, and not with the graphs.

    frozen.py WEFT [TEST...]

The model looks rows of a fixed table up by a record's id, and trains a linear layer on them. Labels
are a function of these very rows, so that accuracy says whether the table is the right one, in
training and in evaluation.
"""
import os
import re

from weftlib import Cluster, check, main, needs, until

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

WIDTH, RECORDS = 32, 4096
MOST_START_BYTES = 1 << 20
JOB = """job: {name}
model: {{onnx: {name}.onnx}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
{more}
data:
  format: npy
  train: {{id: id.npy, label: y.npy}}
  eval: {{id: id.npy, label: y.npy}}
  split_records: 256
batch: 32
epochs: {epochs}
optimizer: {{adam: {{learning_rate: 0.02}}}}
checkpoint: {{every_steps: 50, keep: 3}}
seed: 1
"""


def write(c, name, rows, more="", trained=None, epochs=6):
    """A job whose table has so many rows. `trained` names the variables in the file's metadata, where
    all other initializers are constants."""
    rng = np.random.default_rng(7)
    table = rng.standard_normal((rows, WIDTH), dtype=np.float32)
    arrays = {"table": table, "w": np.zeros((WIDTH, 2), np.float32), "b": np.zeros(2, np.float32)}
    nodes = [helper.make_node("Gather", ["table", "id"], ["row"]),
             helper.make_node("Gemm", ["row", "w", "b"], ["scores"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, name, [info("id", TensorProto.INT64, ["batch"])],
                              [info("scores", TensorProto.FLOAT, ["batch", 2])],
                              [numpy_helper.from_array(v, k) for k, v in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for variable in trained or []:
        model.metadata_props.add(key="weft.variable." + variable, value="trainable")
    onnx.save(model, c.path(name + ".onnx"))
    ids = rng.integers(0, rows, RECORDS)
    np.save(c.path("id.npy"), ids.astype(np.int64))
    np.save(c.path("y.npy"), (table[ids] @ rng.normal(size=WIDTH) > 0).astype(np.int64))
    c.write(name + ".yaml", JOB.format(name=name, more=more, epochs=epochs))
    return table


def log_lines(c, role, event):
    """The facts of each line with this event in the logs of all tasks of a role, as text."""
    found = []
    folder = c.path(".weft", "logs")
    for name in sorted(os.listdir(folder)):
        if not name.startswith(role):
            continue
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
            found += [dict(re.findall(r"(\w+)=(\S+)", line)) for line in f if f" {event} " in line]
    return found


def check_travel(c, table, starts):
    """Each of so many starts was small, and brought the table once."""
    began = log_lines(c, "worker", "worker.started")
    check(len(began) == starts, f"{starts} starts expected, not {began}")
    for line in began:
        check(line["status"] == "0" and int(line["start_bytes"]) < MOST_START_BYTES, str(line))
    came = log_lines(c, "worker", "worker.frozen_in")
    check(len(came) == starts, f"the table came {len(came)} times at {starts} starts")
    for line in came:
        check(int(line["bytes"]) == table.nbytes, f"a table of {table.nbytes} bytes: {line}")


def check_learnt(said, least):
    found = re.findall(r"accuracy (\d+\.\d+)", said.out + said.err)
    check(found and float(found[-1]) >= least, f"accuracy {found}: {said}")


def a_frozen_part_that_no_message_could_carry_trains(weft):
    with Cluster(weft, ps=2, workers=2) as c:
        table = write(c, "large", 1_200_000, more="freeze: [table]", epochs=2)
        check(2 * table.nbytes > 256 << 20, "the table is to be too large for two graphs")
        said = c.must("train", "large.yaml", timeout=120)
        check_travel(c, table, starts=2)
        check_learnt(said, 0.9)


def a_large_constant_is_pulled_and_a_recovery_brings_it_again(weft):
    with Cluster(weft, ps=2, workers=2) as c:
        table = write(c, "constant", 65536, trained=["w", "b"], epochs=40)
        job = c.start("train", "constant.yaml")
        until(lambda: c.checkpoints("constant") and
              len(log_lines(c, "worker", "worker.frozen_in")) == 2, "a checkpoint, and two tables")
        os.remove(c.saved("constant", "initial.safetensors"))
        c.kill("ps/1")
        said = c.end_of(job)
        check(said.code == 0, said)
        check_learnt(said, 0.95)
        newest = c.saved("constant", c.checkpoints("constant")[-1])
        size = sum(os.path.getsize(os.path.join(newest, f)) for f in os.listdir(newest))
        check(size < table.nbytes / 100, f"the checkpoint has {size} bytes")
        check_travel(c, table, starts=4)


main([a_frozen_part_that_no_message_could_carry_trains,
      a_large_constant_is_pulled_and_a_recovery_brings_it_again])

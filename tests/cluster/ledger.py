# SPDX-License-Identifier: Apache-2.0
"""The ledger: a job whose weights count how often each record was trained.

The model is loss = -sum(x @ w) over a batch, x the one-hot of the record's number, w [records, 1]
zeros, sgd with rate 1: one step adds 1 to w[r] for each record r of the batch. In f32 that is exact
to 2^24. What w holds at the end is the history that survived, in numbers.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

JOB = """
job: ledger
model: {{onnx: ledger.onnx}}
data:
  format: npy
  train: {{x: ids.npy}}
  map: {{x: [{{one_hot: {{classes: {records}}}}}]}}
  split_records: {split_records}
batch: {batch}
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: {accumulate}, gradient_accumulation_steps: {accumulate}}}}}
consistency: {{mode: async, pipeline: {pipeline}}}
checkpoint: {{every_steps: {every_steps}, keep: 3}}
slice_bytes: 1024
seed: {seed}
"""


def write_job(folder, records, epochs, batch, split_records, every_steps, pipeline, seed,
              accumulate=1):
    """Writes ledger.onnx, ids.npy and ledger.yaml. `accumulate`: batches to a step, whose mean times
    as many is their sum; they divide a split, so that all weigh the same."""
    assert split_records % (batch * accumulate) == 0 and accumulate in (1, 2, 4)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", records])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    w = numpy_helper.from_array(np.zeros((records, 1), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]),
             helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0),
             helper.make_node("Neg", ["sum"], ["loss"])]
    graph = helper.make_graph(nodes, "ledger", [x], [y, loss], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, f"{folder}/ledger.onnx")
    np.save(f"{folder}/ids.npy", np.arange(records, dtype=np.int64))
    with open(f"{folder}/ledger.yaml", "w", encoding="utf-8") as f:
        f.write(JOB.format(records=records, epochs=epochs, batch=batch,
                           split_records=split_records, every_steps=every_steps,
                           pipeline=pipeline, seed=seed, accumulate=accumulate))


def read_counts(path):
    """How often each record was trained, [records], from an exported model."""
    model = onnx.load(path)
    w = next(i for i in model.graph.initializer if i.name == "w")
    return numpy_helper.to_array(w).reshape(-1)

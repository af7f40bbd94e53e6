# SPDX-License-Identifier: Apache-2.0
"""A model in float16 trains in float32, as the same model in float32 does, and is exported in float16.
"""
from weftlib import Cluster, check, main, needs

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RECORDS, WIDTH, CLASSES = 512, 16, 4
JOB = """job: {name}
model: {{onnx: {name}.onnx}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, label: y.npy}}
  eval: {{x: x.npy, label: y.npy}}
  split_records: 64
batch: 16
epochs: 4
optimizer: {{adam: {{learning_rate: 0.01}}}}
checkpoint: {{every_steps: 100, keep: 3}}
seed: 1
"""


def write(c, name, dtype):
    rng = np.random.default_rng(5)
    # What float16 holds, so that both models begin with the same weights.
    weights = {"w1": rng.normal(size=(WIDTH, 32), scale=0.3), "b1": np.zeros(32),
               "w2": rng.normal(size=(32, CLASSES), scale=0.3), "b2": np.zeros(CLASSES)}
    weights = {k: v.astype(np.float16).astype(dtype) for k, v in weights.items()}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Gemm", ["r", "w2", "b2"], ["scores"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, name, [info("x", kind, ["batch", WIDTH])],
                              [info("scores", kind, ["batch", CLASSES])],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              c.path(name + ".onnx"))
    x = rng.normal(size=(RECORDS, WIDTH)).astype(np.float16).astype(np.float32)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), x[:, :CLASSES].argmax(axis=1).astype(np.int64))
    c.write(name + ".yaml", JOB.format(name=name))


def a_model_in_float16_trains_in_float32(weft):
    out = {}
    with Cluster(weft, ps=2, workers=1) as c:
        for name, dtype in (("half", np.float16), ("single", np.float32)):
            write(c, name, dtype)
            said = c.must("train", name + ".yaml")
            check(("computed in float32" in said.out + said.err) == (name == "half"), said)
            c.must("export", name, "-o", name + "-out.onnx")
            model = onnx.load(c.path(name + "-out.onnx"))
            onnx.checker.check_model(model)
            out[name] = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
            kind = model.graph.input[0].type.tensor_type.elem_type
            check(kind == helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), f"the input is {kind}")
            kind = model.graph.output[0].type.tensor_type.elem_type
            check(kind == helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), f"the output is {kind}")
    for name in ("w1", "b1", "w2", "b2"):
        half, single = out["half"][name], out["single"][name]
        check(half.dtype == np.float16, f"{name} is {half.dtype}")
        check(np.array_equal(half, single.astype(np.float16)), f"{name} was trained otherwise")


main([a_model_in_float16_trains_in_float32])

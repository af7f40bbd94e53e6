# SPDX-License-Identifier: Apache-2.0
"""The seeds of the fuzzer: small valid models that hold each operation.

    corpus_model.py FOLDER

An operation with a gradient has its smallest case of tests/parity/onnx_gradients.py, with a loss to
train by; others have their smallest case of onnx's node suite. What the fuzzer found lies in the same
folder, is called found-..., and is left alone.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../parity"))
import onnx_gradients  # noqa: E402
import weft_ops  # noqa: E402

SIZE = 3000  # bytes; a larger one teaches the fuzzer nothing more


def to_float32(graph):
    """What a job trains is float32; the cases are float64."""
    for t in graph.initializer:
        if t.data_type == TensorProto.DOUBLE:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float32), t.name))
    for v in list(graph.input) + list(graph.output):
        if v.type.tensor_type.elem_type == TensorProto.DOUBLE:
            v.type.tensor_type.elem_type = TensorProto.FLOAT


def with_loss(case):
    """The case's model, trained by the sum of its squares."""
    model, _, _ = case.model(1)
    graph = model.graph
    to_float32(graph)
    for n in graph.node:
        if n.output[0] == "yr":
            n.input[1] = "y"
    for i in [i for i in graph.input if i.name == "r"]:
        graph.input.remove(i)
    for o in [o for o in graph.output if o.name == "y"]:
        graph.output.remove(o)
    return model


def trained():
    """The smallest case of each operation, by its name."""
    least = {}
    for case in onnx_gradients.cases():
        model = with_loss(case)
        size = model.ByteSize()
        for op in {n.op_type for n in case.nodes}:
            if op not in least or size < least[op].ByteSize():
                least[op] = model
    return least


def computed(known):
    """Of the other operations that weft has, in the oldest opset that it reads or a newer one."""
    least = {}
    with open(os.path.join(HERE, "../../docs/operators.md"), encoding="utf-8") as f:
        ours = {line.split("|")[1].strip() for line in f if line.startswith("| ")}
    for case in collect_testcases(None):
        ops = [n.op_type for n in case.model.graph.node]
        if len(ops) != 1 or ops[0] in known or ops[0] not in ours:
            continue
        for used in case.model.opset_import:
            used.version = max(used.version, 13) if used.domain == "" else used.version
        if ops[0] not in least or case.model.ByteSize() < least[ops[0]].ByteSize():
            least[ops[0]] = case.model
    return least


def classifier():
    """A small network with what a whole model has: a symbolic batch, a convolution, a norm with running
    values, a reshape by the shape of its input, labels."""
    rng = np.random.default_rng(1)
    f32 = {"k": (2, 1, 3, 3), "scale": (2,), "shift": (2,), "mean": (2,), "var": (2,), "w": (8, 3),
           "b": (3,)}
    inits = [numpy_helper.from_array(rng.uniform(0.5, 1, s).astype(np.float32), n)
             for n, s in f32.items()]
    inits += [numpy_helper.from_array(np.array(v, np.int64), n)
              for n, v in {"zero": 0, "rest": [-1], "axis": [0]}.items()]
    node = helper.make_node
    nodes = [node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
             node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n", "rm", "rv"],
                  training_mode=1),
             node("Relu", ["n"], ["r"]), node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2],
                                              strides=[2, 2]),
             node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["batch"]),
             node("Unsqueeze", ["batch", "axis"], ["first"]),
             node("Concat", ["first", "rest"], ["shape"], axis=0),
             node("Reshape", ["p", "shape"], ["flat"]), node("Gemm", ["flat", "w", "b"], ["logits"]),
             node("SoftmaxCrossEntropyLoss", ["logits", "labels"], ["loss"])]
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 4, 4]),
             helper.make_tensor_value_info("labels", TensorProto.INT64, ["n"])]
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    return helper.make_model(helper.make_graph(nodes, "classifier", ports, [loss], inits),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if not name.startswith("found-"):
            os.remove(os.path.join(folder, name))
    models = trained()
    models.update(computed(models))
    models["classifier"] = classifier()
    total = count = 0
    for name, model in sorted(models.items()):
        data = model.SerializeToString()
        if len(data) > SIZE:
            continue
        with open(os.path.join(folder, name + ".onnx"), "wb") as f:
            f.write(data)
        total, count = total + len(data), count + 1
    print(f"{count} models, {total} bytes, domain {weft_ops.DOMAIN}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""The model of a job of examples/, written with onnx.helper.

examples/models.py exports the same network from PyTorch; here it needs numpy and onnx alone, so
that its test trains wherever tests run. First values are drawn from seed 1, by the rules that
models.py has.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Writer:
    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.nodes, self.inputs, self.weights = [], [], []

    def input(self, name, dtype, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, ["batch", *shape]))
        return name

    def weight(self, name, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def constant(self, value):
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def op(self, kind, *inputs, **attributes):
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def sum(self, x, axis, keep=0):
        return self.op("ReduceSum", x, self.constant(np.array([axis])), keepdims=keep)

    def rows(self, name, ids, n, width, std):
        return self.op("Gather", self.weight(name, self.rng.normal(0, std, (n, width))), ids)

    def linear(self, name, x, n_in, n_out):
        bound = n_in ** -0.5
        w = self.weight(f"{name}.weight", self.rng.uniform(-bound, bound, (n_out, n_in)))
        b = self.weight(f"{name}.bias", self.rng.uniform(-bound, bound, n_out))
        return self.op("Gemm", x, w, b, transB=1)

    def save(self, out, path):
        self.nodes.append(helper.make_node("Identity", [out], ["out"], name="out"))
        graph = helper.make_graph(
            self.nodes, "model", self.inputs,
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", 1])],
            initializer=self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def mean_embedding(w):
    x = w.input("x", TensorProto.INT64, 200)
    there = w.op("Cast", w.op("Not", w.op("Equal", x, w.constant(np.int64(0)))),
                 to=TensorProto.FLOAT)
    rows = w.rows("table.weight", x, 10_000, 16, 0.03)
    rows = w.op("Mul", rows, w.op("Unsqueeze", there, w.constant(np.array([-1]))))
    count = w.op("Max", w.sum(there, 1, keep=1), w.constant(np.float32(1)))
    return w.linear("fc", w.op("Div", w.sum(rows, 1), count), 16, 1)


MODELS = {"mean-embedding-imdb": mean_embedding}


def write(job, folder):
    os.makedirs(folder, exist_ok=True)
    w = Writer()
    w.save(MODELS[job](w), os.path.join(folder, f"{job}.onnx"))

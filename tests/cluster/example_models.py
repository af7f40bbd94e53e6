# SPDX-License-Identifier: Apache-2.0
"""The models of four jobs of examples/, written with onnx.helper.

examples/models.py exports the same networks from PyTorch; here they need numpy and onnx alone, so
that their tests train wherever tests run. First values are drawn from seed 1, by the rules that
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

    def perceptron(self, x, *sizes):
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            x = self.linear(f"deep.{i}", x, a, b)
            x = self.op("Relu", x) if i + 2 < len(sizes) else x
        return x

    def save(self, out, shape, path):
        self.nodes.append(helper.make_node("Identity", [out], ["out"], name="out"))
        graph = helper.make_graph(
            self.nodes, "model", self.inputs,
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)],
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


def deepfm(w, fields=26, buckets=5_000, width=8, dense=13):
    numbers = w.input("dense", TensorProto.FLOAT, dense)
    ids = w.op("Add", w.input("ids", TensorProto.INT64, fields),
               w.constant(np.arange(fields, dtype=np.int64) * buckets))
    first = w.rows("first.weight", ids, fields * buckets, 1, 0.01)
    v = w.rows("second.weight", ids, fields * buckets, width, 0.01)
    total = w.sum(v, 1)
    pairs = w.op("Sub", w.op("Mul", total, total), w.sum(w.op("Mul", v, v), 1))
    pairs = w.op("Mul", w.sum(pairs, 1, keep=1), w.constant(np.float32(0.5)))
    deep = w.op("Concat", w.op("Flatten", v), numbers, axis=1)
    out = w.op("Add", w.linear("linear", numbers, dense, 1), w.sum(first, 1))
    return w.op("Add", w.op("Add", out, pairs),
                w.perceptron(deep, fields * width + dense, 64, 32, 1))


def factorisation(w, users=944, items=1683, width=8):
    user, item = (w.input(n, TensorProto.INT64) for n in ("user", "item"))
    product = w.op("Mul", w.rows("user.weight", user, users, width, 0.01),
                   w.rows("item.weight", item, items, width, 0.01))
    bias = w.op("Add", w.rows("user_bias.weight", user, users, 1, 0.01),
                w.rows("item_bias.weight", item, items, 1, 0.01))
    out = w.op("Add", w.sum(product, 1), w.sum(bias, 1))
    return w.op("Add", out, w.weight("mean", 3.528))


def wide_deep(w, words=103, fields=8, width=8, dense=5):
    numbers = w.input("dense", TensorProto.FLOAT, dense)
    ids = w.input("ids", TensorProto.INT64, fields)
    deep = w.op("Concat", w.op("Flatten", w.rows("table.weight", ids, words, width, 1.0)), numbers,
                axis=1)
    return w.op("Add", w.sum(w.rows("wide.weight", ids, words, 1, 0.01), 1),
                w.perceptron(deep, fields * width + dense, 64, 32, 1))


MODELS = {"mean-embedding-imdb": mean_embedding, "deepfm-criteo": deepfm,
          "factorisation-movielens": factorisation, "wide-deep-adult": wide_deep}


def write(job, folder):
    os.makedirs(folder, exist_ok=True)
    w = Writer()
    out = MODELS[job](w)
    shape = ["batch"] if MODELS[job] is factorisation else ["batch", 1]
    w.save(out, shape, os.path.join(folder, f"{job}.onnx"))

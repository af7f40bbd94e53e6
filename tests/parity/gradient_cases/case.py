# SPDX-License-Identifier: Apache-2.0
"""What a case is, how one is drawn, and the list of those who draw."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "ai.weft"


class Case:
    """Variables w0, w1... [float64 arrays], nodes that lead from them to "y", constants by name.
    `fixed`: dimensions of variables must be known before the run."""

    def __init__(self, weights, *nodes, opset=18, fixed=False, **consts):
        self.weights, self.nodes, self.opset, self.consts = weights, nodes, opset, consts
        self.fixed = fixed

    def model(self, symbolic):
        inits = [numpy_helper.from_array(np.asarray(w, np.float64), f"w{i}")
                 for i, w in enumerate(self.weights)]
        inits += [numpy_helper.from_array(np.asarray(v), k) for k, v in self.consts.items()]
        nodes, inputs, rename = [], [], {}
        for i, w in enumerate(self.weights if symbolic and not self.fixed else []):
            inputs.append(helper.make_tensor_value_info(
                f"in_w{i}", TensorProto.DOUBLE, [f"w{i}_{k}" for k in range(np.ndim(w))]))
            nodes.append(helper.make_node("Add", [f"w{i}", f"in_w{i}"], [f"sym_w{i}"]))
            rename[f"w{i}"] = f"sym_w{i}"
        for n in self.nodes:
            n.input[:] = [rename.get(i, i) for i in n.input]
            nodes.append(n)
        graph = helper.make_graph(nodes, "case", inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
                                  inits)
        model = helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", self.opset), helper.make_opsetid(DOMAIN, 1)])
        helper.set_model_props(model, {f"weft.variable.w{i}": "trainable"
                                       for i in range(len(self.weights))})
        return model


def node(op, inputs, outputs="y", domain="", **attrs):
    """Words of inputs, "-" for one that is absent; attributes that are None are left out."""
    return helper.make_node(op, ["" if i == "-" else i for i in inputs.split()], outputs.split(),
                            domain=domain, **{k: v for k, v in attrs.items() if v is not None})


def i64(*values):
    return np.array(values, np.int64)


class Luck:
    """What generators draw from."""

    def __init__(self, rng):
        self.rng = rng

    def int(self, low, high):
        """low <= n <= high"""
        return int(self.rng.integers(low, high + 1))

    def chance(self, p=0.5):
        return bool(self.rng.random() < p)

    def pick(self, values):
        return values[self.int(0, len(values) - 1)]

    def ints(self, n, low, high):
        return [self.int(low, high) for _ in range(n)]

    def dims(self, low=1, high=4, most=4):
        """A shape of low to high axes."""
        return self.ints(self.int(low, high), 1, most)

    def apart(self, shape, low=-1.5, high=1.5):
        """Numbers that are all different, and none within 0.0005 of a number of two digits: away
        from ties and from where attributes of two digits put corners."""
        n = int(np.prod(shape))
        steps = int(round((high - low) * 100))
        if n > steps:  # too many for that grid
            return self.rng.permutation(n).reshape(shape) / n * (high - low) + low + 0.0007
        grid = self.rng.permutation(steps)[:n]
        return (low + (grid + self.rng.uniform(0.1, 0.9, n)) / 100).reshape(shape)

    def number(self, low, high):
        """Of two digits."""
        return round(float(self.rng.uniform(low, high)), 2)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, least=1):
        """Some axes in any order, some of them counted from the end."""
        chosen = self.rng.permutation(rank)[:self.int(min(least, rank), rank)]
        return [int(a) - rank * self.chance() for a in chosen]

    def part(self, shape):
        """A shape that broadcasts to this one."""
        cut = shape[self.int(0, len(shape)):] if self.chance(0.3) else shape
        return [1 if self.chance(0.25) else d for d in cut]

    def below(self, shape, *limits):
        """int64 indices [*shape, len(limits)], some of them negative."""
        rows = [self.rng.integers(-n, n, shape) for n in limits]
        return np.stack(rows, -1).astype(np.int64)


GENERATORS = {}


def of(*ops):
    def add(function):
        for op in ops:
            GENERATORS[op] = lambda random, op=op: function(random, op)
        return function
    return add

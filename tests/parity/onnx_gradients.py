# SPDX-License-Identifier: Apache-2.0
"""The gradient graph of each operation against central differences.

    onnx_gradients.py ONNX_TOOL

Each case is a small float64 model: an expression of variables w0, w1... and integer inputs, with
loss = sum(y * r) for a fixed random r, so that every element of the upstream gradient differs. weft
builds the gradient graph; onnx's reference evaluator runs both, with weft_ops.py for weft's own
operations.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nn_cases  # noqa: E402
import weft_fused  # noqa: E402
import weft_ops  # noqa: E402

STEP = 1e-5


class Case:
    """One model: nodes that lead from w0, w1... (float64 variables) to "y"."""

    def __init__(self, name, weights, *nodes, consts=None, symbolic=False, domain="", opset=18):
        self.name, self.weights, self.nodes = name, weights, list(nodes)
        self.consts, self.symbolic = consts or {}, symbolic
        self.domain, self.opset = domain, opset

    def model(self, seed):
        rng = np.random.default_rng(seed)
        weights = {f"w{i}": draw(rng, w) for i, w in enumerate(self.weights)}
        inits = [numpy_helper.from_array(v, k) for k, v in weights.items()]
        inits += [numpy_helper.from_array(np.asarray(v), k) for k, v in self.consts.items()]
        nodes, inputs, feeds = [], [], {}
        rename = {}
        if self.symbolic:  # weights reach the operation plus a zero input of symbolic shape
            for k, v in weights.items():
                dims = [f"{k}_{i}" for i in range(v.ndim)]
                inputs.append(helper.make_tensor_value_info("in_" + k, TensorProto.DOUBLE, dims))
                feeds["in_" + k] = np.zeros_like(v)
                nodes.append(helper.make_node("Add", [k, "in_" + k], ["sym_" + k]))
                rename[k] = "sym_" + k
        for n in self.nodes:
            n = onnx.NodeProto.FromString(n.SerializeToString())
            n.input[:] = [rename.get(i, i) for i in n.input]
            nodes.append(n)
        nodes += [helper.make_node("Mul", ["y", "r"], ["yr"]),
                  helper.make_node("ReduceSum", ["yr"], ["loss"], keepdims=0)]
        inputs.append(helper.make_tensor_value_info("r", TensorProto.DOUBLE, None))
        graph = helper.make_graph(
            nodes, "case", inputs,
            [helper.make_tensor_value_info(o, TensorProto.DOUBLE, None) for o in ("y", "loss")],
            inits)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(weft_ops.DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8,
                                 producer_name="pytorch"), weights, feeds


def draw(rng, spec):
    """A shape, or (shape, low, high), or an array."""
    if isinstance(spec, np.ndarray):
        return spec
    if isinstance(spec, tuple) and spec and isinstance(spec[0], (list, tuple)):
        return rng.uniform(spec[1], spec[2], spec[0])
    values = rng.uniform(0.2, 1.5, spec)  # away from kinks and ties
    return np.asarray(values * rng.choice([-1.0, 1.0], spec))


def node(op, inputs, outputs="y", domain="", **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attrs)


def i64(*values):
    return np.array(values, np.int64)


def cases():
    yield from weft_fused.gradients(Case, node)
    positive = ((3, 4), 0.3, 2.0)
    for op in "Neg Exp Relu Sigmoid Tanh Abs Reciprocal Identity Softmax LogSoftmax".split():
        yield Case(op, [(3, 4)], node(op, "w0"))
    for op in "Log Sqrt".split():
        yield Case(op, [positive], node(op, "w0"))
    for op in "Softmax LogSoftmax".split():
        yield Case(op + " axis 1", [(2, 3, 4)], node(op, "w0", axis=1))
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((), (3,)),
              ((1,), (2, 3)), ((4,), (2, 3, 4)), ((1, 1), (3,))]
    for op in "Add Sub Mul Div Max Min".split():
        for a, b in shapes:
            yield Case(f"{op} {a} {b}", [a, b], node(op, "w0 w1"))
            yield Case(f"{op} {a} {b} symbolic", [a, b], node(op, "w0 w1"), symbolic=True)
    for a, b in shapes:
        yield Case(f"Pow {a} {b}", [(a, 0.3, 2.0), (b, -1.5, 2.5)], node("Pow", "w0 w1"))
    for p in (1.0, 2.0, 3.0, 0.5):
        yield Case(f"Pow {p}", [positive], node("Pow", "w0 p"), consts={"p": np.float64(p)})
    yield Case("Pow int", [(3, 4)], node("Pow", "w0 p"), consts={"p": i64(3)})
    yield Case("Mul itself", [(3,)], node("Mul", "w0 w0"))
    yield Case("Max of three", [(3, 4), (4,), (3, 1)], node("Max", "w0 w1 w2"))
    for name, mats in {"2x2": ((3, 4), (4, 5)), "batched": ((2, 3, 4), (2, 4, 5)),
                       "linear": ((2, 3, 4), (4, 5)), "broadcast": ((2, 1, 3, 4), (5, 4, 2)),
                       "left": ((3, 4), (2, 4, 5)), "vec mat": ((4,), (4, 5)),
                       "mat vec": ((3, 4), (4,)), "vec vec": ((4,), (4,)),
                       "vec batch": ((4,), (2, 4, 5)), "batch vec": ((2, 3, 4), (4,))}.items():
        yield Case("MatMul " + name, list(mats), node("MatMul", "w0 w1"))
        yield Case(f"MatMul {name} symbolic", list(mats), node("MatMul", "w0 w1"), symbolic=True)
    for ta in (0, 1):
        for tb in (0, 1):
            for c in ((), (5,), (3, 1), (3, 5), (1,)):
                yield Case(f"Gemm {ta}{tb} {c}", [(4, 3) if ta else (3, 4), (5, 4) if tb else (4, 5), c],
                           node("Gemm", "w0 w1 w2", transA=ta, transB=tb, alpha=0.5, beta=2.0))
    yield Case("Gemm without C", [(3, 4), (4, 5)], node("Gemm", "w0 w1"))
    for symbolic in (False, True):
        s = " symbolic" if symbolic else ""
        yield Case("Reshape" + s, [(3, 4)], node("Reshape", "w0 s"), consts={"s": i64(2, -1)},
                   symbolic=symbolic)
        yield Case("Flatten" + s, [(2, 3, 4)], node("Flatten", "w0", axis=2), symbolic=symbolic)
        yield Case("Transpose" + s, [(2, 3, 4)], node("Transpose", "w0", perm=[1, 2, 0]),
                   symbolic=symbolic)
        yield Case("Squeeze" + s, [(2, 1, 3)], node("Squeeze", "w0 a"), consts={"a": i64(1)},
                   symbolic=symbolic)
        yield Case("Unsqueeze" + s, [(2, 3)], node("Unsqueeze", "w0 a"), consts={"a": i64(0, -1)},
                   symbolic=symbolic)
        yield Case("Expand" + s, [(3, 1)], node("Expand", "w0 s"), consts={"s": i64(2, 1, 4)},
                   symbolic=symbolic)
        yield Case("Concat" + s, [(2, 3), (2, 1), (2, 2)], node("Concat", "w0 w1 w2", axis=-1),
                   symbolic=symbolic)
        for axes, keep in (((0,), 0), ((1,), 1), ((-1, 0), 0), ((0, 1, 2), 1)):
            for op in ("ReduceSum", "ReduceMean"):
                yield Case(f"{op} {axes} {keep}{s}", [(2, 3, 4)],
                           node(op, "w0 a", keepdims=keep), consts={"a": i64(*axes)},
                           symbolic=symbolic)
        for op in ("ReduceSum", "ReduceMean"):
            yield Case(f"{op} all{s}", [(2, 3)], node(op, "w0", keepdims=0), symbolic=symbolic)
        yield Case("Slice" + s, [(5, 6)], node("Slice", "w0 b e a t"),
                   consts={"b": i64(1, -1), "e": i64(-1, -2**63), "a": i64(0, 1), "t": i64(2, -2)},
                   symbolic=symbolic)
        yield Case("Gather" + s, [(5, 3)], node("Gather", "w0 i"),
                   consts={"i": i64(1, -1, 1, 0).reshape(2, 2)}, symbolic=symbolic)
        yield Case("Gather axis 1" + s, [(2, 5, 3)], node("Gather", "w0 i", axis=1),
                   consts={"i": i64(4, 4, 2)}, symbolic=symbolic)
        yield from mover_cases(symbolic, s)
    yield from branch_cases()
    yield from structure_cases()
    yield from sampling_cases()
    yield Case("ReduceMean of opset 13", [(2, 3)], node("ReduceMean", "w0", axes=[1], keepdims=0),
               opset=13)
    yield Case("noop_with_empty_axes", [(2, 3)], node("ReduceSum", "w0", noop_with_empty_axes=1))
    yield Case("Where", [(3, 1), (4,)], node("Where", "c w0 w1"),
               consts={"c": np.array([[True, False, True, True]] * 3)})
    yield Case("Clip", [(3, 4)], node("Clip", "w0 lo hi"),
               consts={"lo": np.float64(-0.9), "hi": np.float64(0.8)})
    yield Case("Dropout in inference", [(3, 4)], node("Dropout", "w0", "y"))
    yield Case("Cast", [(3, 4)], node("Identity", "w0", "a"), node("Cast", "a", to=TensorProto.DOUBLE))
    labels = {"l": i64(0, 2, 3, 2)}
    weights = np.array([0.5, 1.5, 2.0, 1.0])
    scores = {"2-d": ((4, 4), i64(0, 2, 3, 2)),
              "3-d": ((2, 4, 3), i64(0, 2, 3, 2, 1, 1).reshape(2, 3))}
    for kind, (shape, l) in scores.items():
        for reduction in ("mean", "sum", "none"):
            for attrs in ({}, {"ignore_index": 2}):
                for w in ("", " cw"):
                    name = f"{kind} {reduction} {attrs}{w}"
                    for op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"):
                        yield Case(f"{op} {name}", [shape], node(op, "w0 l" + w, reduction=reduction, **attrs),
                                   consts={"l": l, "cw": weights} if w else {"l": l})
    yield Case("log_prob of SoftmaxCrossEntropyLoss", [(4, 4)],
               node("SoftmaxCrossEntropyLoss", "w0 l", "unused y"), consts=labels)
    for reduction in ("mean", "sum", "none"):
        yield Case("SigmoidCrossEntropy " + reduction, [(3, 4)],
                   node("SigmoidCrossEntropy", "w0 z", domain=weft_ops.DOMAIN, reduction=reduction),
                   consts={"z": np.array([[0.0, 1, 1, 0.25]] * 3)})
    yield from elementwise()
    yield from reductions()
    yield from masked()
    yield Case("used twice", [(3,)], node("Exp", "w0", "a"), node("Mul", "a w0", "b"),
               node("Add", "b a"))
    yield from nn_cases.gradients(Case, node)


def elementwise():
    """Activations, functions of one number, and what folds several."""
    signs = np.array([[-2.6, -1.3, -0.7, -0.2], [0.3, 0.6, 1.4, 2.2], [4.0, -4.0, 0.9, -0.9]])
    for op, attrs in (("Celu", {}), ("Celu", {"alpha": 0.5}), ("Elu", {}), ("Elu", {"alpha": 2.0}),
                      ("HardSigmoid", {}), ("HardSigmoid", {"alpha": 0.5, "beta": 0.25}),
                      ("HardSwish", {}), ("LeakyRelu", {}), ("LeakyRelu", {"alpha": 0.25}),
                      ("Mish", {}), ("Selu", {}), ("Selu", {"alpha": 1.5, "gamma": 0.5}),
                      ("Softplus", {}), ("Softsign", {}), ("ThresholdedRelu", {}),
                      ("ThresholdedRelu", {"alpha": 0.5}), ("Shrink", {}),
                      ("Shrink", {"bias": 0.5, "lambd": 1.0}), ("Erf", {}), ("Sin", {}),
                      ("Cos", {}), ("Tan", {}), ("Sinh", {}), ("Cosh", {}), ("Asinh", {}),
                      ("Atan", {})):
        yield Case(f"{op} {attrs}", [signs], node(op, "w0", **attrs))
        yield Case(f"{op} {attrs} symbolic", [signs], node(op, "w0", **attrs), symbolic=True)
    for way in ("none", "tanh"):
        yield Case("Gelu " + way, [signs], node("Gelu", "w0", approximate=way), opset=20)
    for op, low, high in (("Asin", -0.9, 0.9), ("Acos", -0.9, 0.9), ("Atanh", -0.9, 0.9),
                          ("Acosh", 1.1, 3.0)):
        yield Case(op, [((3, 4), low, high)], node(op, "w0"))
    for op in ("Floor", "Ceil", "Round", "Sign"):
        yield Case(op, [(3, 4)], node(op, "w0", "a"), node("Mul", "a w0"))
    for slope in ((3, 4), (4,), (3, 1), (1,), ()):
        for symbolic in (False, True):
            yield Case(f"PRelu {slope} {symbolic}", [signs, slope], node("PRelu", "w0 w1"),
                       symbolic=symbolic)
    for op in ("Sum", "Mean"):
        for symbolic in (False, True):
            yield Case(f"{op} of three {symbolic}", [(3, 4), (4,), (3, 1)], node(op, "w0 w1 w2"),
                       symbolic=symbolic)
        yield Case(op + " of one", [(3, 4)], node(op, "w0"))
    yield Case("Mod", [signs, ((4,), 0.8, 1.2)], node("Mod", "w0 w1", fmod=1))
    for op in ("Max", "Min"):
        yield Case(op + " of one", [(3,)], node(op, "w0"))


def reductions():
    shape, positive = (2, 3, 4), ((2, 3, 4), 0.5, 2.0)
    for op, weight in (("ReduceL1", shape), ("ReduceL2", shape), ("ReduceLogSum", positive),
                       ("ReduceLogSumExp", shape), ("ReduceMax", shape), ("ReduceMin", shape),
                       ("ReduceProd", shape), ("ReduceSumSquare", shape)):
        for symbolic in (False, True):
            for axes, keep in (((0,), 0), ((1,), 1), ((-1, 0), 0), ((0, 1, 2), 1)):
                yield Case(f"{op} {axes} {keep} {symbolic}", [weight],
                           node(op, "w0 a", keepdims=keep), consts={"a": i64(*axes)},
                           symbolic=symbolic)
            yield Case(f"{op} all {symbolic}", [weight], node(op, "w0", keepdims=0),
                       symbolic=symbolic)
        yield Case(f"{op} of opset 13", [weight], node(op, "w0", axes=[1], keepdims=0), opset=13)
        if op not in ("ReduceL1", "ReduceL2", "ReduceLogSum"):  # the reference copies x
            yield Case(f"{op} of no axes", [weight], node(op, "w0", noop_with_empty_axes=1))
    zeros = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [1.5, -2.0, 4.0]])
    yield Case("ReduceProd of zeros", [zeros], node("ReduceProd", "w0 a", keepdims=0),
               consts={"a": i64(1)})
    for exclusive in (0, 1):
        for reverse in (0, 1):
            for axis in (0, -1):
                yield Case(f"CumSum {exclusive}{reverse} {axis}", [(3, 4)],
                           node("CumSum", "w0 a", exclusive=exclusive, reverse=reverse),
                           consts={"a": np.int64(axis)}, symbolic=reverse == 1)


def masked():
    """Infinities that must not reach a gradient."""
    mask = np.triu(np.full((4, 4), -np.inf), 1)
    yield Case("Softmax of masked scores", [(4, 4)], node("Add", "w0 m", "a"), node("Softmax", "a"),
               consts={"m": mask})
    yield Case("Softmax of Where", [(4, 4)], node("Where", "c m w0", "a"), node("Softmax", "a"),
               consts={"m": np.float64(-np.inf), "c": mask < 0})


def points():
    """(case, upstream gradient, gradients): where differences see nothing, at corners, ties and
    infinities."""
    inf, t, f = np.inf, True, False
    one = np.array([1.0, 2.0, 4.0])
    yield (Case("Where takes nothing from the other side", [np.array([4.0, 9.0]), np.array([5.0, 0.0])],
                node("Where", "c w0 w1", "a"), node("Sqrt", "a"), consts={"c": np.array([t, f])}),
           np.array([1.0, 1.0]), {"w0": np.array([0.25, 0]), "w1": np.array([0, inf])})
    rows = np.array([[0.0, -inf, 0.0], [-inf, -inf, -inf]])
    yield (Case("ReduceLogSumExp of masked rows", [np.zeros((2, 3))], node("Add", "w0 m", "a"),
                node("ReduceLogSumExp", "a x", keepdims=0), consts={"m": rows, "x": i64(1)}),
           np.array([2.0, 3.0]), {"w0": np.array([[1.0, 0, 1], [0, 0, 0]])})
    ties = np.array([[2.0, 2.0, 1.0], [1.0, 3.0, 3.0]])
    for op, want in (("ReduceMax", [[1.0, 1, 0], [0, 2, 2]]), ("ReduceMin", [[0.0, 0, 2], [4, 0, 0]])):
        yield (Case(op + " of ties", [ties], node(op, "w0 x", keepdims=0), consts={"x": i64(1)}),
               np.array([2.0, 4.0]), {"w0": np.array(want)})
    for op, want in (("Max", [0.5, 0, 4]), ("Min", [0.5, 2, 0])):
        yield (Case(op + " of ties", [np.array([1.0, 1, 3]), np.array([1.0, 2, 1])],
                    node(op, "w0 w1")), one, {"w0": np.array(want), "w1": one - want})
    yield (Case("ReduceL2 at 0", [np.zeros(3)], node("ReduceL2", "w0", keepdims=0)), np.float64(1),
           {"w0": np.zeros(3)})
    yield (Case("Clip on its bounds", [np.array([-1.0, 1.0, 2.0])], node("Clip", "w0 l h"),
                consts={"l": np.float64(-1), "h": np.float64(1)}), one, {"w0": np.array([1.0, 2, 0])})
    corner = np.array([0.0, -1.0, 1.0])
    for op, slope in (("LeakyRelu", np.float64(np.float32(0.01))), ("Elu", 1.0), ("Relu", 0.0)):
        left = {"LeakyRelu": slope, "Elu": np.exp(-1), "Relu": 0.0}[op]
        yield (Case(op + " at 0", [corner], node(op, "w0")), one,
               {"w0": one * np.array([slope, left, 1])})
    yield (Case("PRelu at 0", [corner, np.array([0.25])], node("PRelu", "w0 w1")), one,
           {"w0": one * np.array([0.25, 0.25, 1]), "w1": np.array([-2.0])})


EINSUMS = [("ij->ji", (3, 4)), ("ij->i", (3, 4)), ("ij->", (3, 4)), ("i...j->...", (2, 3, 4)),
           ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
           ("bhid,bhjd->bhij", (2, 3, 4, 2), (2, 3, 5, 2)), ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
           ("i,j->ij", (3,), (4,)), ("ij,ij->", (3, 4), (3, 4)), ("ij,k->jk", (3, 4), (5,)),
           ("bij,bi->bj", (2, 3, 4), (2, 3)),
           ("...i,...i->...", (2, 1, 3), (4, 3)), ("abc,cb->ba", (2, 3, 4), (4, 3))]


def branch(n):
    return helper.make_graph([n], "branch", [], [onnx.ValueInfoProto(name=n.output[0])])


def mover_cases(symbolic, s):
    yield Case("Split" + s, [(2, 5)], node("Split", "w0 sizes", "a b c", axis=1),
               node("Mul", "a c", "y"), consts={"sizes": i64(2, 1, 2)}, symbolic=symbolic)
    yield Case("Split of opset 13" + s, [(4, 3)], node("Split", "w0", "a b"), node("Mul", "a b"),
               symbolic=symbolic, opset=13)
    yield Case("Split num_outputs" + s, [(2, 5)],
               node("Split", "w0", "y a b", axis=-1, num_outputs=3), symbolic=symbolic)
    for repeats in ((2, 3), (1, 2), (3, 1), (1, 1)):
        yield Case(f"Tile {repeats}{s}", [(2, 3)], node("Tile", "w0 t"),
                   consts={"t": i64(*repeats)}, symbolic=symbolic)
    for mode in "constant reflect edge wrap".split():
        yield Case(f"Pad {mode}{s}", [(3, 4)], node("Pad", "w0 p", mode=mode),
                   consts={"p": i64(1, 2, 2, 3)}, symbolic=symbolic)
        yield Case(f"Pad {mode} cropping{s}", [(2, 3, 5)],
                   helper.make_node("Pad", ["w0", "p", "", "a"], ["y"], mode=mode),
                   consts={"p": i64(-1, 2, 3, -1), "a": i64(-1, 0)}, symbolic=symbolic)
    yield Case("GatherElements" + s, [(3, 4)], node("GatherElements", "w0 i", axis=1),
               consts={"i": i64(0, 0, -1, 2, 1, 1).reshape(2, 3)}, symbolic=symbolic)
    yield Case("GatherElements axis 0" + s, [(3, 4)], node("GatherElements", "w0 i"),
               consts={"i": i64(2, 0, 1, 2, -1, 2, 2, 0).reshape(2, 4)}, symbolic=symbolic)
    yield Case("GatherND" + s, [(3, 4, 2)], node("GatherND", "w0 i"),
               consts={"i": i64(0, 1, 2, -1, 0, 1).reshape(3, 2)}, symbolic=symbolic)
    yield Case("GatherND batch_dims" + s, [(2, 3, 4)], node("GatherND", "w0 i", batch_dims=1),
               consts={"i": i64(1, 0, 1, 2).reshape(2, 2, 1)}, symbolic=symbolic)
    for reduction in ("none", "add"):
        yield Case(f"ScatterElements {reduction}{s}", [(3, 4), (2, 3)],
                   node("ScatterElements", "w0 i w1", axis=1, reduction=reduction),
                   consts={"i": i64(0, 3, -2, 1, 0, 2).reshape(2, 3)}, symbolic=symbolic)
        yield Case(f"ScatterND {reduction}{s}", [(3, 4, 2), (2, 2)],
                   node("ScatterND", "w0 i w1", reduction=reduction),
                   consts={"i": i64(0, 1, 2, 3).reshape(2, 2)}, symbolic=symbolic)
    yield Case("ScatterND adding twice" + s, [(5,), (3,)],
               node("ScatterND", "w0 i w1", reduction="add"),
               consts={"i": i64(1, 1, 4).reshape(3, 1)}, symbolic=symbolic)
    for upper in (0, 1):
        for k in (-1, 0, 2):
            yield Case(f"Trilu {upper} {k}{s}", [(2, 3, 4)], node("Trilu", "w0 k", upper=upper),
                       consts={"k": np.int64(k)}, symbolic=symbolic)
    for largest in (0, 1):
        yield Case(f"TopK {largest}{s}", [(3, 5)], node("TopK", "w0 k", "y i", largest=largest),
                   consts={"k": i64(2)}, symbolic=symbolic)
        yield Case(f"TopK axis 0 {largest}{s}", [(4, 3)],
                   node("TopK", "w0 k", "y i", axis=0, largest=largest),
                   consts={"k": i64(3)}, symbolic=symbolic)
    for mode in ("DCR", "CRD"):
        yield Case(f"DepthToSpace {mode}{s}", [(2, 8, 2, 3)],
                   node("DepthToSpace", "w0", blocksize=2, mode=mode), symbolic=symbolic)
    yield Case("SpaceToDepth" + s, [(2, 3, 4, 6)], node("SpaceToDepth", "w0", blocksize=2),
               symbolic=symbolic)
    for axes in ({"batch_axis": 0, "time_axis": 1}, {"batch_axis": 1, "time_axis": 0}):
        yield Case(f"ReverseSequence {axes}{s}", [(3, 3, 2)],
                   node("ReverseSequence", "w0 l", **axes), consts={"l": i64(2, 3, 1)},
                   symbolic=symbolic)
    if symbolic:
        yield Case("GridSample symbolic", [(1, 2, 3, 3), ((1, 2, 2, 2), -1.6, 1.6)],
                   node("GridSample", "w0 w1", mode="linear"), symbolic=True, opset=20)
    for equation, *shapes in EINSUMS:
        yield Case(f"Einsum {equation}{s}", shapes,
                   node("Einsum", " ".join(f"w{i}" for i in range(len(shapes))), equation=equation),
                   symbolic=symbolic)
    yield Case("CenterCropPad" + s, [(3, 6)], node("CenterCropPad", "w0 z"),
               consts={"z": i64(6, 3)}, symbolic=symbolic)


def sampling_cases():
    for mode in "linear cubic nearest".split():
        for padding in "zeros border reflection".split():
            for aligned in (0, 1):
                yield Case(f"GridSample {mode} {padding} {aligned}",
                           [(1, 2, 3, 3), ((1, 2, 2, 2), -1.6, 1.6)],
                           node("GridSample", "w0 w1", mode=mode, padding_mode=padding,
                                align_corners=aligned), opset=20)
    yield Case("GridSample of volumes", [(1, 1, 3, 2, 2), ((1, 1, 1, 2, 3), -1.2, 1.2)],
               node("GridSample", "w0 w1", mode="linear"), opset=20)


def branch_cases():
    for limit in (-100.0, 100.0):
        yield Case(f"If of unknown condition, {limit}", [(2, 3), (2, 3)],
                   node("ReduceSum", "w0", "t", keepdims=0), node("Greater", "t k", "c"),
                   node("If", "c", then_branch=branch(node("Mul", "w0 w1", "b")),
                        else_branch=branch(node("Exp", "w0", "b"))),
                   consts={"k": np.float64(limit)})
        yield Case(f"If of known condition, {limit}", [(2, 3)],
                   node("If", "c", then_branch=branch(node("Neg", "w0", "b")),
                        else_branch=branch(node("Exp", "w0", "b"))),
                   consts={"c": np.bool_(limit > 0)})


def subgraph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "body", [onnx.ValueInfoProto(name=i) for i in inputs.split()],
                             [onnx.ValueInfoProto(name=o) for o in outputs.split()])


def structure_cases():
    """What reading puts other nodes in the place of."""
    turn = subgraph([node("Mul", "v w1", "a"), node("Tanh", "a", "b"), node("Identity", "c", "d")],
                    "i c v", "d b a")
    yield Case("Loop", [(3,), (3,)], node("Loop", "n yes w0", "z s", body=turn),
               node("Add", "z s"), consts={"n": np.int64(4), "yes": np.bool_(True)})
    step = subgraph([node("Mul", "h e", "s"), node("Sin", "s", "t")], "h e", "t s")
    yield Case("Scan", [(3,), (4, 3)], node("Scan", "w0 w1", "h s", body=step, num_scan_inputs=1),
               node("Mul", "h s"))
    for symbolic in (False, True):
        s = " symbolic" if symbolic else ""
        yield Case("SplitToSequence" + s, [(2, 5)],
                   node("SplitToSequence", "w0 k", "q", axis=1), node("SequenceAt", "q p", "a"),
                   node("SequenceAt", "q o", "b"), node("Mul", "a b"),
                   consts={"k": i64(2, 1, 2), "p": np.int64(-1), "o": np.int64(0)},
                   symbolic=symbolic)
        yield Case("ConcatFromSequence" + s, [(2, 3), (2, 3)],
                   node("SequenceConstruct", "w0 w1", "q"), node("SequenceInsert", "q w0", "p"),
                   node("ConcatFromSequence", "p", "a", axis=-1, new_axis=1), node("Exp", "a"),
                   symbolic=symbolic)
        for op, attrs in (("LpNormalization", {"p": 1, "axis": 0}), ("LpNormalization", {}),
                          ("MeanVarianceNormalization", {"axes": [0, 2]})):
            yield Case(f"{op} {attrs}{s}", [(2, 3, 4)], node(op, "w0", **attrs), symbolic=symbolic)
        for align in (0, 1):
            yield Case(f"AffineGrid {align}{s}", [(2, 2, 3)],
                       node("AffineGrid", "w0 n", align_corners=align),
                       consts={"n": i64(2, 1, 3, 4)}, symbolic=symbolic, opset=20)
    yield Case("Col2Im", [(2, 12, 4)],
               node("Col2Im", "w0 image block", pads=[0, 1, 1, 0], strides=[2, 1], dilations=[1, 2]),
               consts={"image": i64(4, 5), "block": i64(2, 3)})
    yield Case("MaxUnpool", [(1, 1, 2, 2)],
               node("MaxUnpool", "w0 i", kernel_shape=[2, 2], strides=[2, 2]),
               consts={"i": i64(5, 7, 8, 14).reshape(1, 1, 2, 2)})


def evaluate(model, feeds, r_of_y):
    evaluator = ReferenceEvaluator(model, new_ops=weft_ops.OPS)
    return dict(zip(evaluator.output_names, evaluator.run(None, {**feeds, "r": r_of_y})))


def differences(model, weights, feeds, r):
    """By one evaluator for all: making it costs more than a run of so small a model."""
    evaluator = ReferenceEvaluator(model, new_ops=weft_ops.OPS)
    loss = evaluator.output_names.index("loss")
    grads = {}
    for name, w in weights.items():
        grads[name] = np.zeros_like(w)
        for at in np.ndindex(*w.shape):
            ends = []
            for sign in (1, -1):
                moved = w.copy()
                moved[at] += sign * STEP
                evaluator.rt_inits_[name] = moved
                ends.append(evaluator.run(None, {**feeds, "r": r})[loss])
            grads[name][at] = (ends[0] - ends[1]) / (2 * STEP)
        evaluator.rt_inits_[name] = w
    return grads


def check(tool, case, folder, seed):
    model, weights, feeds = case.model(seed)
    source, out = os.path.join(folder, "case.onnx"), os.path.join(folder, "grad.onnx")
    y = evaluate(model, feeds, np.float64(1))["y"]
    r = np.random.default_rng(seed + 1).uniform(0.5, 1.5, y.shape)
    # weft wants to know the shape of r to prove the loss a scalar; a fixed one will do.
    for value in model.graph.input:
        if value.name == "r":
            value.CopyFrom(helper.make_tensor_value_info("r", TensorProto.DOUBLE, y.shape))
    onnx.save(model, source)
    done = subprocess.run([tool, "grad", source, out, "loss"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.strip()
    made = onnx.load(out)
    onnx.checker.check_model(made)
    got = evaluate(made, feeds, r)
    for name, want in differences(model, weights, feeds, r).items():
        grad = got["grad/" + name]
        assert grad.shape == want.shape, f"{name}: {grad.shape}, not {want.shape}"
        assert np.allclose(grad, want, rtol=1e-5, atol=1e-7), \
            f"{name}: off by {np.abs(grad - want).max()}"


def main(tool):
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed, case in enumerate(cases()):
            count += 1
            try:
                check(tool, case, folder, seed)
            except Exception as wrong:  # one bad case must not hide the next
                failed += 1
                print(f"FAILED  {case.name}: {type(wrong).__name__}: {wrong}")
    print(f"{count - failed} of {count} cases")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""If, as exporters write it, through `weft run`: held against onnx's reference evaluator.

    branches.py WEFT
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

WEFT = sys.argv[1]


def node(op, inputs, outputs, **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value)))


def branch(*nodes, output="r", inits=()):
    return helper.make_graph(nodes, "branch", [], [onnx.ValueInfoProto(name=output)], inits)


def model(nodes, dims, outputs="y"):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims),
                     helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [onnx.ValueInfoProto(name=o) for o in outputs.split()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def choice(condition, then, otherwise, output="y", name=""):
    return helper.make_node("If", [condition], [output], name=name, then_branch=then,
                            else_branch=otherwise)


def squeezed():
    """What torch.squeeze becomes: in one of the branches the axis does not fit."""
    return [constant("zero", np.int64(0)), node("Shape", "x", "s"),
            node("Gather", "s zero", "n"), constant("one", np.int64(1)),
            node("Equal", "n one", "is_one"),
            choice("is_one", branch(constant("a", np.array([0])), node("Squeeze", "x a", "r")),
                   branch(node("Identity", "x", "r")))]


def nested(condition):
    inner = choice(condition, branch(node("Exp", "x", "r")), branch(node("Neg", "x", "r")), "r")
    return [choice("c", branch(inner), branch(node("Abs", "x", "r"))), node("Relu", "y", "z")]


def cases():
    for n in (1, 3):
        yield "squeeze", model(squeezed(), ["n", 4]), np.ones((n, 4), np.float32), True
    for c in (True, False):
        x = np.array([-1.0, 0.5], np.float32)
        sign = [constant("k", np.float32(0)), node("ReduceSum", "x", "t", keepdims=0),
                node("Greater", "t k", "up")]
        yield "fed", model(nested("c"), [2], "y z"), x, c
        yield "computed", model(sign + nested("up"), [2], "y z"), x, c
        weights = numpy_helper.from_array(np.array([3, 4], np.float32), "w")
        yield "initializer", model(
            [choice("c", branch(node("Mul", "x w", "r"), inits=[weights]),
                    branch(node("Add", "x w", "r"), inits=[weights]))], [2]), x, c


def weft(folder, path, *words):
    return subprocess.run([WEFT, "run", path, "--output-dir", os.path.join(folder, "out"), *words],
                          capture_output=True, text=True, timeout=60)


def check(folder, m, x, c):
    path = os.path.join(folder, "m.onnx")
    onnx.save(m, path)
    words = []
    for name, value in (("x", x), ("c", np.array(c))):
        np.save(os.path.join(folder, name + ".npy"), value)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    done = weft(folder, path, *words)
    assert done.returncode == 0, done.stderr
    names = [o.name for o in m.graph.output]
    for name, want in zip(names, ReferenceEvaluator(m).run(None, {"x": x, "c": np.array(c)})):
        got = np.load(os.path.join(folder, "out", name + ".npy"))
        assert got.shape == want.shape and np.allclose(got, want), f"{name}: {got}, not {want}"


def check_refused(folder):
    """Branches that are no good end with a sentence."""
    path = os.path.join(folder, "bad.onnx")
    deep = branch(node("Neg", "x", "r"))
    for i in range(8):
        deep = branch(choice("c", deep, deep, "r"))
    unknown = branch(node("Frobnicate", "x", "r"))
    fine = branch(node("Neg", "x", "r"))
    for bad, code, says in ((deep, 3, "more than 8 deep"), (unknown, 3, "Frobnicate"),
                            (branch(node("Neg", "x", "r"), output="q"), 1, "nothing makes")):
        onnx.save(model([choice("c", bad, fine)], [2]), path)
        done = weft(folder, path)
        assert done.returncode == code and says in done.stderr, (done.returncode, done.stderr)
    onnx.save(model([node("If", "c", "y")], [2]), path)
    done = weft(folder, path)
    assert done.returncode == 1 and "_branch\" is missing" in done.stderr, (done.returncode, done.stderr)


with tempfile.TemporaryDirectory() as scratch:
    count = 0
    for title, made, fed, decided in cases():
        try:
            check(scratch, made, fed, decided)
        except AssertionError as wrong:
            sys.exit(f"FAILED  {title} {fed.shape} {decided}: {wrong}")
        count += 1
    check_refused(scratch)
    print(f"{count} models with branches")

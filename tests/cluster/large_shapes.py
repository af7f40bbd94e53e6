# SPDX-License-Identifier: Apache-2.0
"""Model files of a few hundred bytes that name tensors of gigabytes.

    large_shapes.py WEFT [TEST...]

Each file is evaluated, differentiated and measured by a process whose largest resident size is read
from the system. A size that neither the file nor its input accounts for is refused with the node and
the shape, before memory is touched; what is meant can be allowed.
"""
import os
import resource
import subprocess
import tempfile

from weftlib import SLOWER, check, main, needs, one_sentence

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MOST_BYTES = 1300 << 20  # the limit of 1 GiB for a small file, and the program itself
ADDRESS_BYTES = 16 << 30  # what ends the process if all else fails

FLOAT, INT = np.float32, np.int64


def node(op, inputs, **attributes):
    return [helper.make_node(op, inputs.split(), ["t"], name="big", **attributes)]


def fill(name, shape, out):
    return helper.make_node("ConstantOfShape", [shape], [out], name=name,
                            value=numpy_helper.from_array(np.ones(1, FLOAT)))


def loop():
    body = helper.make_graph(
        [fill("big", "s", "b"), helper.make_node("Identity", ["go"], ["go_on"]),
         helper.make_node("Identity", ["acc"], ["sum"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("acc", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
         helper.make_tensor_value_info("sum", TensorProto.FLOAT, None),
         helper.make_tensor_value_info("b", TensorProto.FLOAT, None)])
    return [helper.make_node("Loop", ["m", "yes", "x"], ["last", "t"], name="loop", body=body)]


def many_fills():
    """A hundred constants of 16 MiB, of which no run needs more than two at a time."""
    nodes, last = [], "x"
    for i in range(100):
        nodes += [fill(f"fill{i}", "s", f"c{i}"),
                  helper.make_node("ReduceMean", [f"c{i}"], [f"r{i}"], keepdims=0),
                  helper.make_node("Add", [last, f"r{i}"], [f"a{i}"])]
        last = f"a{i}"
    return nodes + [helper.make_node("Identity", [last], ["t"])]


# name: nodes that make t of x [2, 4], constants, words of the refusal (None: it is computed)
MODELS = {
    "fill": ([fill("big", "s", "t")], {"s": [1 << 30]}, r'ConstantOfShape "big" makes .*[1073741824]'),
    "fill_beyond_addresses": ([fill("big", "s", "t")], {"s": [1 << 31, 1 << 31, 1 << 31]},
                              r'[2147483648, 2147483648, 2147483648]'),
    "tile": (node("Tile", "x s"), {"s": [1 << 28, 1 << 28]}, 'Tile "big" makes'),
    "tile_of_1_gib": (node("Tile", "x s"), {"s": [1 << 20, 32]}, 'Tile "big" makes'),
    "expand": (node("Expand", "x s"), {"s": [1 << 28, 2, 4]}, "[268435456, 2, 4]"),
    "pad": (node("Pad", "x s"), {"s": [0, 0, 1 << 28, 1]}, 'Pad "big" makes'),
    "resize": ([helper.make_node("Unsqueeze", ["x", "zero"], ["u"]),
                helper.make_node("Resize", ["u", "", "", "s"], ["t"], name="big", mode="linear")],
               {"zero": [0], "s": [1, 2, 1 << 28]}, 'Resize "big" makes'),
    "crop_and_pad": (node("CenterCropPad", "x s"), {"s": [1 << 30, 1 << 28]},
                     'CenterCropPad "big" makes'),
    "range": (node("Range", "zero m one"), {"zero": 0.0, "m": 1e12, "one": 1.0},
              'Range "big" makes'),
    "one_hot": ([helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
                 helper.make_node("OneHot", ["i", "m", "v"], ["t"], name="big")],
                {"m": 1 << 40, "v": [0.0, 1.0]}, "[2, 4, 1099511627776]"),
    "conv": ([helper.make_node("Unsqueeze", ["x", "zero"], ["u"]),
              helper.make_node("Conv", ["u", "k"], ["t"], name="big", pads=[1 << 28, 1 << 28])],
             {"zero": [1], "k": [[[1.0]]]}, 'Conv "big" makes'),
    "conv_transpose": ([helper.make_node("Unsqueeze", ["x", "zero"], ["u"]),
                        helper.make_node("ConvTranspose", ["u", "k"], ["t"], name="big",
                                         strides=[1 << 28])],
                       {"zero": [1], "k": [[[1.0]]]}, 'ConvTranspose "big" makes'),
    "pool": ([helper.make_node("Unsqueeze", ["x", "zero"], ["u"]),
              helper.make_node("AveragePool", ["u"], ["t"], name="big", kernel_shape=[1 << 28],
                               pads=[(1 << 28) - 1, 3])],
             {"zero": [1]}, 'AveragePool "big" makes'),
    "outer_product": ([helper.make_node("Expand", ["w", "s"], ["e"]),
                       helper.make_node("Transpose", ["e"], ["f"]),
                       helper.make_node("MatMul", ["f", "e"], ["t"], name="big")],
                      {"s": [4, 60000]}, "[60000, 60000]"),
    "loop": (loop(), {"s": [1 << 20], "m": 1000, "yes": True}, "[1000, 1048576]"),
    "many_fills": (many_fills(), {"s": [1 << 22]}, None),
}


def save(folder, name):
    nodes, constants, _ = MODELS[name]
    nodes = nodes + [helper.make_node("ReduceMean", ["t"], ["mean_t"], keepdims=0),
                     helper.make_node("MatMul", ["x", "w"], ["xw"]),
                     helper.make_node("ReduceMean", ["xw"], ["mean_x"], keepdims=0),
                     helper.make_node("Add", ["mean_t", "mean_x"], ["loss"])]
    arrays = {"w": np.ones((4, 1), FLOAT)}
    for key, value in constants.items():
        value = np.array(value)
        kind = {"f": FLOAT, "i": INT, "b": np.bool_}[value.dtype.kind]
        arrays[key] = value.astype(kind)
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
        initializer=[numpy_helper.from_array(v, k) for k, v in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    return path


def limit_addresses():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))


def run(weft, *words):
    """(exit code, what was said on stderr, largest resident bytes) of a command."""
    limits = None if os.environ.get("ASAN_OPTIONS") or SLOWER > 1 else limit_addresses
    with subprocess.Popen([weft, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          preexec_fn=limits, text=True) as p:
        said = p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    return p.returncode, said, usage.ru_maxrss * 1024


def commands(folder, path):
    x, out = os.path.join(folder, "x.npy"), os.path.join(folder, "out")
    np.save(x, np.ones((2, 4), FLOAT))
    fed = ["--input", f"x={x}", "--output-dir", out, "--threads", "2"]
    return [["graph", path, "--memory"], ["run", path, *fed], ["grad", path, "--loss", "loss", *fed]]


def sizes_that_nothing_accounts_for_are_refused(weft):
    with tempfile.TemporaryDirectory() as folder:
        for name, (_, _, says) in MODELS.items():
            for words in commands(folder, save(folder, name)):
                code, said, most = run(weft, *words)
                where = f"{name}: {words[0]}"
                check(most < MOST_BYTES * SLOWER, f"{where}: {most >> 20} MiB, exit {code}: {said}")
                check("free some memory" not in said, f"{where}: {said}")
                if says is None:
                    check(code == 0, f"{where}: exit {code}: {said}")
                    continue
                check(code == 1, f"{where}: exit {code}: {said}")
                sentence = one_sentence(said)
                for part in says.split(" makes .*"):
                    check(part in sentence, f"{where}: {part!r} expected in: {sentence}")
                check("--memory-limit" in sentence, f"{where}: {sentence}")


def what_is_meant_can_be_allowed(weft):
    with tempfile.TemporaryDirectory() as folder:
        path = save(folder, "tile_of_1_gib")
        for words in commands(folder, path)[:2]:
            code, said, _ = run(weft, *words, "--memory-limit", "2 GiB")
            check(code == 0, f"{words[0]}: exit {code}: {said}")
            code, said, _ = run(weft, *words, "--memory-limit", "64MiB")
            check(code == 1 and "67108864 may be used here" in said, f"{words[0]}: {said}")
            code, said, _ = run(weft, *words, "--memory-limit", "much")
            check(code == 2 and '"much"' in said, f"{words[0]}: {said}")


def tables_and_workspace_share_the_limit(weft):
    """A Resize with tables of 130 MiB before a product with a workspace of 64 MiB."""
    with tempfile.TemporaryDirectory() as folder:
        path, x = os.path.join(folder, "m.onnx"), os.path.join(folder, "x.npy")
        np.save(x, np.ones((2, 1, 1, 2), FLOAT))
        graph = helper.make_graph(
            [helper.make_node("Resize", ["x", "", "", "sizes"], ["r"], mode="linear"),
             helper.make_node("ReduceProd", ["r", "first"], ["p"], keepdims=0),
             helper.make_node("ReduceMax", ["p"], ["y"], keepdims=0)], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 1, 2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
            [numpy_helper.from_array(np.array([2, 1, 1, 1 << 22], INT), "sizes"),
             numpy_helper.from_array(np.array([0], INT), "first")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)],
                                    ir_version=8), path)
        for limit, wanted in (("200MiB", 1), ("300MiB", 0)):
            code, said, _ = run(weft, "run", path, "--input", f"x={x}", "-o", folder,
                                "--memory-limit", limit)
            check(code == wanted, f"{limit}: exit {code}: {said}")


if __name__ == "__main__":
    main([sizes_that_nothing_accounts_for_are_refused, what_is_meant_can_be_allowed,
          tables_and_workspace_share_the_limit])

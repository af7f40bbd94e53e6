# SPDX-License-Identifier: Apache-2.0
"""Files of opsets 7 to 12, whose forms differ from those of today, through `weft run`: held against
onnxruntime, which reads them as they are; those that must be refused; and files of the newest opsets.

    older_opsets.py WEFT
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

WEFT = sys.argv[1]
RNG = np.random.default_rng(11)


def f32(*shape):
    return RNG.normal(0, 1, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def node(op, inputs, outputs="y", **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def model(opset, nodes, feeds, outputs="y", consts=None, types=None):
    """As files of that time were: initializers are inputs too before IR version 4."""
    inits = [numpy_helper.from_array(np.asarray(v), k) for k, v in (consts or {}).items()]
    given = dict(feeds, **{k: np.asarray(v) for k, v in (consts or {}).items()})
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
              for k, v in given.items()]
    out = [helper.make_tensor_value_info(o, (types or {}).get(o, TensorProto.FLOAT), None)
           for o in outputs.split()]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, out, inits),
                             ir_version=3 if opset < 9 else 6 if opset < 13 else 8,
                             opset_imports=[helper.make_opsetid("", opset)])


def one(opset, op, feeds, outputs="y", consts=None, types=None, **attrs):
    inputs = " ".join(list(feeds) + list(consts or {}))
    title = f"{op} of opset {opset} {attrs or ''}"
    return title, model(opset, [node(op, inputs, outputs, **attrs)], feeds, outputs, consts,
                        types), feeds


def attributes_that_became_inputs():
    x = {"x": f32(3, 4, 5)}
    for opset in (7, 9):
        yield one(opset, "Slice", x, starts=[1, 0], ends=[3, 2**31 - 1], axes=[0, 2])
        yield one(opset, "Slice", x, starts=[0, -3], ends=[2, -1])
        yield one(opset, "TopK", x, "y i", types={"i": TensorProto.INT64}, k=2)
        yield one(opset, "TopK", x, "y i", types={"i": TensorProto.INT64}, k=3, axis=1)
    for opset in (7, 10):
        yield one(opset, "Pad", x, pads=[0, 1, 2, 1, 0, 1], value=0.5)
        yield one(opset, "Pad", x, pads=[0, 1, 2, 1, 0, 1], mode="edge")
        yield one(opset, "Pad", x, pads=[0, 1, 2, 1, 0, 1], mode="reflect")
        yield one(opset, "Clip", x, min=-0.5, max=0.25)
        yield one(opset, "Clip", x, max=0.0)
        yield one(opset, "Clip", x)
    for opset in (7, 11, 12):
        yield one(opset, "Unsqueeze", x, axes=[0, 3])
        yield one(opset, "Squeeze", {"x": f32(1, 4, 1)}, axes=[2])
        yield one(opset, "Squeeze", {"x": f32(1, 4, 1)})
        yield one(opset, "Split", x, "y z", axis=2, split=[2, 3])
        yield one(opset, "Split", x, "y z", axis=1)
        yield one(opset, "ReduceSum", x, axes=[0, 2], keepdims=0)
        yield one(opset, "ReduceSum", x)
        yield one(opset, "ReduceMean", x, axes=[1])
        yield one(opset, "ReduceMax", x, axes=[0])
    for opset in (11, 12):
        yield one(opset, "Unsqueeze", x, axes=[-1])
        yield one(opset, "Squeeze", {"x": f32(1, 4, 1)}, axes=[-1])


def coerced():
    for opset in (7, 11, 12):
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            yield one(opset, op, {"x": f32(3, 4)})
            yield one(opset, op, {"x": f32(2, 3, 4, 5)})
            yield one(opset, op, {"x": f32(2, 3, 4)}, axis=2)
            yield one(opset, op, {"x": f32(2, 3, 4)}, axis=0)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield one(12, op, {"x": f32(2, 3, 4)}, axis=-2)


def images():
    x = {"x": f32(2, 3, 4, 6)}
    yield one(7, "Upsample", x, scales=[1.0, 1.0, 2.0, 3.0])
    yield one(7, "Upsample", x, scales=[1.0, 1.0, 2.0, 1.5], mode="linear")
    yield one(9, "Upsample", x, consts={"s": np.array([1, 1, 3, 2], np.float32)})
    for scales in ([1, 1, 2, 3], [1, 1, 0.5, 0.6], [1, 1, 1, 0.25]):
        yield one(10, "Resize", x, consts={"s": np.array(scales, np.float32)})
    yield one(10, "Resize", x, consts={"s": np.array([1, 1, 2, 0.5], np.float32)}, mode="linear")
    norm = {"s": f32(3), "b": f32(3), "m": f32(3), "v": np.abs(f32(3)) + 0.5}
    yield one(7, "BatchNormalization", x, consts=norm)
    yield one(8, "BatchNormalization", x, consts=norm, spatial=1, epsilon=1e-3)
    yield one(9, "BatchNormalization", x, consts=norm, momentum=0.8)
    yield one(7, "AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    yield one(10, "AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    yield one(8, "MaxPool", x, kernel_shape=[2, 2], auto_pad="SAME_UPPER")
    yield one(10, "MaxPool", x, kernel_shape=[2, 2], dilations=[2, 2])
    yield one(7, "InstanceNormalization", x, consts={"s": f32(3), "b": f32(3)})
    yield one(9, "DepthToSpace", {"x": f32(1, 8, 2, 3)}, blocksize=2)


def others():
    x = {"x": f32(3, 4)}
    yield one(7, "Dropout", x, ratio=0.3)
    yield one(10, "Dropout", x)
    yield one(12, "Dropout", x, consts={"r": np.float32(0.4)})
    for opset in (9, 10):
        yield one(opset, "Scatter", dict(x, i=RNG.integers(0, 3, (2, 4)), u=f32(2, 4)))
        yield one(opset, "Scatter", dict(x, i=RNG.integers(0, 4, (3, 2)), u=f32(3, 2)), axis=1)
    yield one(7, "Gemm", {"x": f32(3, 4)}, consts={"w": f32(5, 4), "b": f32(5)}, transB=1)
    yield one(8, "Max", dict(x, z=f32(4)))
    yield one(8, "Expand", x, consts={"s": i64(2, 3, 4)})
    yield "Where of opset 9", model(9, [node("Greater", "x z", "c"), node("Where", "c x z")], x,
                                    consts={"z": f32(4)}), x
    yield one(7, "LSTM", {"x": f32(5, 2, 3)}, "y h", consts={"w": f32(1, 16, 3), "r": f32(1, 16, 4)},
              hidden_size=4)
    yield one(11, "OneHot", {"i": i64(0, 2, 1)}, consts={"d": i64(4), "v": np.array([0, 1], np.float32)})
    then, other = (helper.make_graph([node(op, "x", op + "_out", **attrs)], op, [],
                                     [helper.make_tensor_value_info(op + "_out", TensorProto.FLOAT, None)])
                   for op, attrs in (("Slice", {"starts": [0], "ends": [9]}), ("Clip", {"min": 0.0})))
    yield "If of opset 9, with older forms in its branches", model(
        9, [node("If", "c", then_branch=then, else_branch=other)], x,
        consts={"c": np.bool_(True)}), x


def zoo():
    """As the networks of the ONNX model zoo: opset 8, initializers among the inputs."""
    x = {"x": f32(2, 1, 28, 28)}
    consts = {"k": f32(8, 1, 5, 5), "kb": f32(8, 1, 1), "rows": i64(-1, 128), "w": f32(128, 10),
              "b": f32(1, 10), "g": f32(8), "h": f32(8), "m": f32(8), "v": np.abs(f32(8)) + 1}
    nodes = [node("Conv", "x k", "c", auto_pad="SAME_UPPER", kernel_shape=[5, 5]),
             node("Add", "c kb", "a"), node("BatchNormalization", "a g h m v", "n"),
             node("Relu", "n", "r"),
             node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0]),
             node("MaxPool", "p", "q", kernel_shape=[3, 3], strides=[3, 3]),
             node("Reshape", "q rows", "f"), node("Dropout", "f", "d", ratio=0.5),
             node("MatMul", "d w", "l"), node("Add", "l b", "z"), node("Softmax", "z", axis=1)]
    yield "a convolutional network of opset 8", model(8, nodes, x, consts=consts), x


def refused():
    """(model, feeds, exit code, what it says)"""
    x = {"x": f32(1, 1, 4, 4)}
    yield one(6, "Neg", x)[1], x, 3, "opset 6; weft reads 7 to 25"
    yield one(26, "Neg", x)[1], x, 3, "opset 26; weft reads 7 to 25"
    norm = {"s": f32(1), "b": f32(1), "m": f32(1), "v": np.ones(1, np.float32)}
    yield one(8, "BatchNormalization", x, consts=norm, spatial=0)[1], x, 3, "spatial"
    yield one(9, "Upsample", x, consts={"s": np.ones(4, np.float32)}, mode="cubic")[1], x, 3, "mode"
    yield one(9, "Upsample", x)[1], x, 1, "0 scales"
    yield one(10, "Resize", x, consts={"s": np.array([1, 1, 2, 0.5], np.float32)})[1], x, 3, "longer"
    yield one(9, "Slice", x, starts=[0] * 40, ends=[1] * 40)[1], x, 1, "40 entries"
    yield one(9, "Slice", x, starts=[0])[1], x, 1, "\"ends\" is missing"
    yield one(9, "Slice", x, consts={"a": i64(0), "b": i64(1)}, starts=[0],
              ends=[1])[1], x, 1, "3 inputs"
    yield one(9, "Pad", x, pads=[0] * 8, mode="wrap")[1], x, 1, "mode"
    yield one(12, "Softmax", x, axis=7)[1], x, 1, "axis 7"
    yield one(13, "Squeeze", x, axes=[0])[1], x, 3, "\"axes\""
    yield one(11, "Upsample", x, consts={"s": np.ones(4, np.float32)})[1], x, 3, "Upsample"
    body = helper.make_graph([node("Neg", "v", "w")], "b",
                             [helper.make_tensor_value_info("v", TensorProto.FLOAT, None)],
                             [helper.make_tensor_value_info("w", TensorProto.FLOAT, None)])
    yield model(8, [node("Scan", "x", body=body, num_scan_inputs=1)], x), x, 3, "Scan"


def weft(folder, made, feeds):
    path = os.path.join(folder, "m.onnx")
    onnx.save(made, path)
    words = []
    for name, value in feeds.items():
        np.save(os.path.join(folder, name + ".npy"), value)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    return subprocess.run([WEFT, "run", path, "--output-dir", os.path.join(folder, "out"), *words],
                          capture_output=True, text=True, timeout=60)


def check(folder, made, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns of initializers among the inputs
    session = onnxruntime.InferenceSession(made.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    done = weft(folder, made, feeds)
    assert done.returncode == 0, done.stderr
    for o, want in zip(made.graph.output, session.run(None, feeds)):
        got = np.load(os.path.join(folder, "out", o.name + ".npy"))
        assert got.dtype == want.dtype and got.shape == want.shape and \
            np.allclose(got, want, 1e-4, 1e-5), f"{o.name}: {got}, not {want}"


def newest(folder):
    """onnxruntime may be older than these."""
    for opset in (24, 25):
        x = {"x": f32(3, 4)}
        title, made, feeds = one(opset, "Softmax", x)
        made.ir_version = 8
        done = weft(folder, made, feeds)
        assert done.returncode == 0, done.stderr
        powers = np.exp(x["x"])
        assert np.allclose(np.load(os.path.join(folder, "out", "y.npy")),
                           powers / powers.sum(1, keepdims=True), 1e-5), title


def main():
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in (attributes_that_became_inputs, coerced, images, others, zoo):
            for title, made, feeds in kind():
                try:
                    check(folder, made, feeds)
                except Exception as wrong:
                    sys.exit(f"FAILED  {title}: {wrong}")
                count += 1
        newest(folder)
        for made, feeds, code, says in refused():
            done = weft(folder, made, feeds)
            if done.returncode != code or says not in done.stderr:
                sys.exit(f"FAILED  exit code {done.returncode}, not {code}, \"{says}\" not in: "
                         f"{done.stderr}")
            count += 1
    print(f"{count} models")


main()

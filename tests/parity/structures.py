# SPDX-License-Identifier: Apache-2.0
"""Loop, Scan, sequences and operations that reading writes out in others, through `weft run`: held
against onnxruntime, which computes them as they are; and those that must be refused.

    structures.py WEFT
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
RNG = np.random.default_rng(7)


def node(op, inputs, outputs="y", **attrs):
    n = helper.make_node(op, inputs.split(), outputs.split(), **attrs)
    n.input[:] = ["" if i == "|" else i for i in n.input]
    n.output[:] = ["" if o == "|" else o for o in n.output]
    return n


def body(nodes, inputs, outputs, inits=()):
    """A subgraph; inputs are NAME, or NAME:TYPE."""
    kinds = {"b": TensorProto.BOOL, "i": TensorProto.INT64}

    def info(text, shape=None):
        name, _, kind = text.partition(":")
        return helper.make_tensor_value_info(name, kinds.get(kind, TensorProto.FLOAT), shape)

    return helper.make_graph(nodes, "body",
                             [info(i, [] if ":" in i else None) for i in inputs.split()],
                             [info(o, [] if ":b" in o else None) for o in outputs.split()],
                             [numpy_helper.from_array(v, k) for k, v in dict(inits).items()])


def model(nodes, feeds, outputs="y", consts=None, opset=18, types=None):
    inits = [numpy_helper.from_array(np.asarray(v), k) for k, v in (consts or {}).items()]
    inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
              for k, v in feeds.items()]
    out = [helper.make_tensor_value_info(o, (types or {}).get(o, TensorProto.FLOAT), None)
           for o in outputs.split()]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, out, inits), ir_version=8,
                             opset_imports=[helper.make_opsetid("", opset),
                                            helper.make_opsetid("ai.onnx.ml", 3)])


def f32(*shape):
    return RNG.normal(0, 1, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def loops():
    x, w = f32(3), f32(3)
    step = [node("Mul", "v w", "a"), node("Tanh", "a", "b"), node("Identity", "c", "d"),
            node("Cast", "i", "t", to=TensorProto.FLOAT), node("Add", "b t", "s")]
    turn = body(step, "i:i c:b v", "d:b s s")
    for trips in (1, 4):
        yield f"Loop of {trips}", model(
            [node("Loop", "n yes x", "y z", body=turn)], {"x": x}, "y z",
            {"n": np.int64(trips), "yes": np.bool_(True), "w": w}), {"x": x}
    yield "Loop without condition", model(
        [node("Loop", "n | x", "y", body=body(step, "i:i c:b v", "d:b s"))], {"x": x}, "y",
        {"n": np.int64(3), "w": w}), {"x": x}
    until = body([node("Add", "v w", "s"), node("Less", "i last", "d")], "i:i c:b v", "d:b s",
                 {"last": np.array(2, np.int64)})
    yield "Loop while", model([node("Loop", "| yes x", "y", body=until)], {"x": x}, "y",
                              {"yes": np.bool_(True), "w": w}), {"x": x}
    feeds = {"x": x, "n": np.array(3, np.int64)}
    yield "Loop of a count that is fed", model(
        [node("Loop", "n | x", "y z", body=turn)], feeds, "y z", {"w": w}), feeds
    # Keras counts in floats: from the condition that begins it on.
    floats = [node("Cast", "i", "fi", to=TensorProto.FLOAT), node("Less", "fi last", "p"),
              node("Less", "fi far", "q"), node("And", "p q", "d"), node("Add", "v w", "s")]
    yield "Loop counted in floats", model(
        [node("Less", "zero last", "a"), node("Less", "zero far", "b"), node("And", "a b", "yes"),
         node("Loop", "n yes x", "y z", body=body(floats, "i:i c:b v", "d:b s s"))], {"x": x}, "y z",
        {"n": np.int64(9), "w": w, "zero": np.float32(0), "last": np.float32(4), "far": np.float32(7)}), {"x": x}
    inner = body([node("Add", "u v", "r"), node("Identity", "k", "l")], "j:i k:b u", "l:b r")
    nested = body([node("Loop", "two yes v", "s", body=inner), node("Identity", "c", "d")],
                  "i:i c:b v", "d:b s", {"two": np.array(2, np.int64)})
    yield "Loop in a Loop", model(
        [node("Loop", "n yes x", "y", body=nested)], {"x": x}, "y",
        {"n": np.int64(3), "yes": np.bool_(True)}), {"x": x}


def scans():
    x, h = f32(4, 3, 2), f32(3, 2)
    step = body([node("Add", "h e", "s"), node("Tanh", "s", "t")], "h e", "t s")
    for axis, reverse, out in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, -1)):
        state = h if axis == 0 else f32(4, 2)
        attrs = dict(num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[reverse],
                     scan_output_axes=[out], scan_output_directions=[reverse])
        feeds = {"h": state, "x": x}
        yield f"Scan {axis} {reverse} {out}", model(
            [node("Scan", "h x", "y z", body=step, **attrs)], feeds, "y z"), feeds


def sequences():
    x = f32(6, 5)
    for split in (np.int64(2), i64(1, 3, 2), np.int64(4)):
        yield f"SplitToSequence {split}", model(
            [node("SplitToSequence", "x k", "s"), node("SequenceAt", "s at", "a"),
             node("SequenceAt", "s last", "y"), node("SequenceLength", "s", "n")], {"x": x}, "a y n",
            {"k": split, "at": np.int64(0), "last": np.int64(-1)},
            types={"n": TensorProto.INT64}), {"x": x}
    for keep in (0, 1):
        yield f"unbind {keep}", model(
            [node("SplitToSequence", "x", "s", axis=1, keepdims=keep),
             node("SequenceAt", "s at", "a"), node("ConcatFromSequence", "s", "y", axis=0)],
            {"x": x}, "a y", {"at": np.int64(3)}), {"x": x}
    chain = [node("SequenceConstruct", "x u", "a"), node("SequenceInsert", "a v", "b"),
             node("SequenceInsert", "b w zero", "c"), node("SequenceErase", "c one", "d"),
             node("SequenceInsert", "d x last", "e"), node("Identity", "e", "f")]
    feeds = {k: f32(2, 3) for k in "xuvw"}
    consts = {"zero": np.int64(0), "one": np.int64(1), "last": np.int64(-1)}
    for new in (0, 1):
        yield f"SequenceInsert and the rest {new}", model(
            chain + [node("ConcatFromSequence", "f", "y", axis=-1, new_axis=new)], feeds, "y",
            consts), feeds
    grow = helper.make_graph(
        [node("Mul", "w t", "m"), node("SequenceInsert", "s m", "r"), node("Identity", "c", "d"),
         node("Cast", "i", "t", to=TensorProto.FLOAT)][3:] +
        [node("Mul", "w t", "m"), node("SequenceInsert", "s m", "r"), node("Identity", "c", "d")],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("c", TensorProto.BOOL, []),
         helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []),
         helper.make_tensor_sequence_value_info("r", TensorProto.FLOAT, None)])
    yield "a sequence through a Loop", model(
        [node("SequenceEmpty", "", "e"), node("Loop", "n yes e", "s", body=grow),
         node("ConcatFromSequence", "s", "y", axis=0, new_axis=1)], {"w": feeds["w"]}, "y",
        {"n": np.int64(3), "yes": np.bool_(True)}), {"w": feeds["w"]}


def attentions():
    q, k, v = f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 3)
    four = {"q": q, "k": k, "v": v}
    flat = {"q": f32(2, 5, 32), "k": f32(2, 6, 16), "v": f32(2, 6, 16)}
    seen = RNG.random((5, 6)) < 0.7
    seen[:, 0] = True
    yield "Attention", model([node("Attention", "q k v")], four, opset=23), four
    yield "Attention causal", model([node("Attention", "q k v", is_causal=1)], four, opset=23), four
    yield "Attention flat, shared heads", model(
        [node("Attention", "q k v", q_num_heads=4, kv_num_heads=2, scale=0.3)], flat, opset=23), flat
    for mask in (seen, f32(2, 1, 5, 6)):
        feeds = dict(four, m=mask)
        yield f"Attention under {mask.dtype}", model([node("Attention", "q k v m")], feeds,
                                                     opset=23), feeds
    yield "Attention with softcap", model([node("Attention", "q k v", softcap=2.0)], four,
                                          opset=23), four
    past = dict(four, pk=f32(2, 4, 3, 8), pv=f32(2, 4, 3, 3))
    yield "Attention with a past", model(
        [node("Attention", "q k v | pk pv", "y a b")], past, "y a b", opset=23), past


def rotations():
    cache = {"c": f32(10, 4), "s": f32(10, 4)}
    at = {"p": i64(*RNG.integers(0, 10, 10)).reshape(2, 5)}
    for interleaved in (0, 1):
        feeds = {"x": f32(2, 3, 5, 8), **cache, **at}
        yield f"RotaryEmbedding {interleaved}", model(
            [node("RotaryEmbedding", "x c s p", interleaved=interleaved)], feeds, opset=23), feeds
        feeds = {"x": f32(2, 5, 24), **cache, **at}
        yield f"RotaryEmbedding flat {interleaved}", model(
            [node("RotaryEmbedding", "x c s p", interleaved=interleaved, num_heads=3)], feeds,
            opset=23), feeds
    feeds = {"x": f32(2, 3, 5, 12), "c": f32(2, 5, 4), "s": f32(2, 5, 4)}
    yield "RotaryEmbedding of a part", model(
        [node("RotaryEmbedding", "x c s", rotary_embedding_dim=8)], feeds, opset=23), feeds


def others():
    x = f32(2, 3, 4, 5)
    for op, attrs in (("LpNormalization", {}), ("LpNormalization", {"p": 1, "axis": 1}),
                      ("GlobalLpPool", {}), ("GlobalLpPool", {"p": 3}),
                      ("MeanVarianceNormalization", {"axes": [1, 2]})):
        yield f"{op} {attrs}", model([node(op, "x", **attrs)], {"x": x}), {"x": x}


def normalisations():
    x = f32(2, 3, 4)
    for axis, dims in ((-1, (4,)), (1, (3, 4))):
        feeds = {"x": x, "s": f32(*dims)}
        yield f"RMSNormalization {axis}", model(
            [node("RMSNormalization", "x s", axis=axis, epsilon=1e-3)], feeds, opset=23), feeds


def halves():
    """Of types that no kernel reckons in."""
    half = lambda *shape: f32(*shape).astype(np.float16)  # noqa: E731
    feeds = {"x": half(3, 4)}
    consts = {"w": half(4, 5), "b": half(5)}
    out = {"y": TensorProto.FLOAT16, "z": TensorProto.FLOAT16}
    yield "Gemm of float16", model(
        [node("Gemm", "x w b", "h"), node("Tanh", "h", "z"), node("Softmax", "z")], feeds, "y z",
        consts, types=out), feeds
    feeds = {"x": f32(3, 4)}
    yield "float16 between float32", model(
        [node("Cast", "x", "h", to=TensorProto.FLOAT16), node("MatMul", "h w", "m"),
         node("Cast", "m", to=TensorProto.FLOAT)], feeds, "y", {"w": consts["w"]}), feeds


def ml(op, inputs, outputs="y", **attrs):
    return node(op, inputs, outputs, domain="ai.onnx.ml", **attrs)


def scikit_learn():
    """As skl2onnx writes linear models and what stands before and behind them."""
    x, classes = f32(7, 5), {"label": TensorProto.INT64}
    row, bias = list(map(float, f32(5))), 0.3
    yield "Scaler", model([ml("Scaler", "x", offset=row, scale=[2.0, 1, 0.5, 3, 1])], {"x": x}), {"x": x}
    for norm in ("L1", "L2"):
        yield f"Normalizer {norm}", model([ml("Normalizer", "x", norm=norm)], {"x": x}), {"x": x}
    yield "Binarizer", model([ml("Binarizer", "x", threshold=0.2)], {"x": x}), {"x": x}
    holes = np.where(x > 1, np.nan, x).astype(np.float32)
    yield "Imputer", model([ml("Imputer", "x", imputed_value_floats=row,
                                   replaced_value_float=float("nan"))], {"x": holes}), {"x": holes}
    for targets in (1, 3):
        yield f"LinearRegressor {targets}", model(
            [ml("LinearRegressor", "x", coefficients=list(map(float, f32(5 * targets))),
                intercepts=list(map(float, f32(targets))), targets=targets)], {"x": x}), {"x": x}
    yield "LinearRegressor without intercepts", model(
        [ml("LinearRegressor", "x", coefficients=row)], {"x": x}), {"x": x}
    two = dict(coefficients=[-w for w in row] + row, intercepts=[-bias, bias], multi_class=0,
               classlabels_ints=[3, 8], post_transform="LOGISTIC")
    yield "LinearClassifier of two, ZipMap", model(
        [ml("LinearClassifier", "x", "label p", **two),
         node("Identity", "p", "probabilities")], {"x": x}, "label probabilities", types=classes), {"x": x}
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield f"LinearClassifier {transform}", model(
            [ml("LinearClassifier", "x", "label p", coefficients=list(map(float, f32(15))),
                intercepts=list(map(float, f32(3))), classlabels_ints=[2, 5, 9], multi_class=1,
                post_transform=transform), ml("Normalizer", "p", "y", norm="L1")],
            {"x": x}, "label y", types=classes), {"x": x}
    yield "LinearClassifier and Cast of opset 9", model(
        [ml("LinearClassifier", "x", "l p", **two), node("Cast", "l", "label", to=TensorProto.INT64),
         node("Identity", "p", "y")], {"x": x}, "label y", opset=9, types=classes), {"x": x}
    yield "ArrayFeatureExtractor", model(
        [node("ArgMax", "x", "at", axis=1), ml("ArrayFeatureExtractor", "names at", "z"),
         node("Reshape", "z shape", "label")], {"x": x}, "label",
        {"names": i64(4, 7, 1, 0, 3), "shape": i64(-1)}, types=classes), {"x": x}
    yield "ArrayFeatureExtractor of columns", model(
        [ml("ArrayFeatureExtractor", "x at")], {"x": x}, "y", {"at": i64(3, 0)}), {"x": x}


def labels():
    ids = {"ids": i64(7, -3, 2**62, 5, 0)}
    types = {"y": TensorProto.INT64}
    yield "LabelEncoder", model([ml("LabelEncoder", "ids", keys_int64s=[7, 2**62, -3], values_int64s=[0, 1, 2],
                                    default_int64=3)], ids, types=types), ids
    yield "LabelEncoder without default", model(
        [ml("LabelEncoder", "ids", keys_int64s=[7], values_int64s=[4])], ids, types=types), ids
    yield "LabelEncoder before Gather", model(
        [ml("LabelEncoder", "ids", "at", keys_int64s=[7, 0], values_int64s=[1, 0], default_int64=2),
         node("Gather", "rows at")], ids, consts={"rows": f32(3, 4)}), ids


def weft(folder, made, feeds):
    path = os.path.join(folder, "m.onnx")
    onnx.save(made, path)
    words = []
    for name, value in feeds.items():
        np.save(os.path.join(folder, name + ".npy"), value)
        words += ["--input", f"{name}={folder}/{name}.npy"]
    return subprocess.run([WEFT, "run", path, "--output-dir", os.path.join(folder, "out"), *words],
                          capture_output=True, text=True, timeout=60)


def is_exact(made):
    """Whether nothing in it is a half."""
    return all(t.data_type != TensorProto.FLOAT16 for t in made.graph.initializer)


def check(folder, made, feeds):
    done = weft(folder, made, feeds)
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(made.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    for o, want in zip(made.graph.output, session.run(None, feeds)):
        got = np.load(os.path.join(folder, "out", o.name + ".npy"))
        near = (1e-4, 1e-5) if is_exact(made) else (4e-3, 4e-3)
        assert got.dtype == want.dtype and got.shape == want.shape and \
            np.allclose(got, want, *near), f"{o.name}: {got}, not {want}"


def refused():
    """(model, feeds, exit code, what it says)"""
    x = {"x": f32(3)}
    same = [node("Identity", "c", "d"), node("Neg", "v", "s")]
    turn = body(same, "i:i c:b v", "d:b s")
    yes = {"yes": np.bool_(True)}
    yield model([node("Loop", "n yes x", body=turn)], x, consts=dict(yes, n=np.int64(10**9))), x, 3, \
        "more than"
    yield model([node("Loop", "| yes x", body=turn)], x, consts=yes), x, 3, "more than"
    unknown = body([node("ReduceSum", "v", "t", keepdims=0), node("Greater", "t k", "d"),
                    node("Neg", "v", "s")], "i:i c:b v", "d:b s", {"k": np.array(0, np.float32)})
    yield model([node("Loop", "n yes x", body=unknown)], x, consts=dict(yes, n=np.int64(9))), x, 3, \
        "known only during the run"
    counted = [node("ReduceSum", "x", "t", keepdims=0), node("Cast", "t", "n", to=TensorProto.INT64)]
    yield model(counted + [node("Loop", "n yes x", body=turn)], x, consts=yes), x, 3, \
        "known only during the run"
    yield model([node("Loop", "n yes x", body=body(same, "i:i c:b", "d:b s"))], x,
                consts=dict(yes, n=np.int64(2))), x, 1, "inputs"
    yield model([node("SplitToSequence", "x", "s"), node("SequenceAt", "s k")], x,
                consts={"k": np.int64(3)}), x, 1, "position 3"
    yield model([node("SplitToSequence", "x", "s"), node("Neg", "s")], x), x, 1, "is a sequence"
    late = counted + [node("SplitToSequence", "x", "s"), node("SequenceAt", "s n")]
    yield model(late, x), x, 3, "known only during the run"
    yield model([node("SplitToSequence", "x", "y")], x), x, 3, "is a sequence"
    yield model([node("Scan", "x x", body=turn, num_scan_inputs=4)], x), x, 1, "scans"
    yield model([node("LpNormalization", "x", p=3)], x), x, 3, "p is 3"
    yield model([node("LpNormalization", "x", q=3)], x), x, 3, "\"q\""
    rows = {"x": f32(2, 3)}
    yield model([ml("Scaler", "x", offset=[0.0, 0], scale=[1.0])], rows), rows, 1, "3 features"
    yield model([ml("LinearRegressor", "x", coefficients=[1.0, 2])], rows), rows, 1, "do not fit"
    yield model([ml("LinearRegressor", "x", coefficients=[1.0, 2, 3], post_transform="PROBIT")],
                rows), rows, 3, "post_transform"
    yield model([ml("LinearClassifier", "x", "l y", coefficients=[1.0] * 6, intercepts=[0.0, 0],
                    classlabels_ints=[1])], rows), rows, 1, "1 labels for 2 classes"
    ids = {"ids": i64(1, 2)}
    for keys, values, code, says in (([1, 2, 1], [0, 1, 2], 1, "key 1 is there twice"),
                                     ([1, 2, 3], [0, 1], 1, "3 keys and 2 values")):
        yield model([ml("LabelEncoder", "ids", keys_int64s=keys, values_int64s=values)], ids), ids, code, says
    yield model([ml("LabelEncoder", "x", keys_int64s=[1], values_int64s=[1])], rows), rows, 1, "must be int64"
    yield model([ml("LabelEncoder", "ids", keys_int64s=[1], values_strings=["one"], default_string="")],
                ids), ids, 3, "no values_int64s"
    yield model([ml("TreeEnsembleRegressor", "x")], rows), rows, 3, "ai.onnx.ml.TreeEnsembleRegressor"


def split_is_written_as_others_read_it(folder):
    """Equal parts of opset 13, without sizes, are counted by an attribute in the file that weft writes."""
    made = model([node("Split", "x", "y z", axis=1)], {"x": f32(2, 6)}, "y z", opset=13)
    path, out = (os.path.join(folder, name) for name in ("split.onnx", "split-out.onnx"))
    onnx.save(made, path)
    subprocess.run([WEFT, "graph", path, "-o", out], check=True, capture_output=True)
    onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])


def main():
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        split_is_written_as_others_read_it(folder)
        for kind in (loops, scans, sequences, attentions, rotations, others, normalisations,
                     halves, scikit_learn, labels):
            for title, made, feeds in kind():
                try:
                    check(folder, made, feeds)
                except Exception as wrong:
                    sys.exit(f"FAILED  {title}: {wrong}")
                count += 1
        for made, feeds, code, says in refused():
            done = weft(folder, made, feeds)
            if done.returncode != code or says not in done.stderr:
                sys.exit(f"FAILED  exit code {done.returncode}, not {code}, \"{says}\" not in: "
                         f"{done.stderr}")
            count += 1
    print(f"{count} models")


main()

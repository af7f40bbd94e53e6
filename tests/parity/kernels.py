# SPDX-License-Identifier: Apache-2.0
"""Every kernel against references.

    kernels.py PLAN_TOOL ONNX_TOOL

1. Single operations, f32 and integers, many shapes: onnx's reference evaluator.
2. The gradient graphs of onnx_gradients.py, f64: the same, with weft_ops.py; and gradients at
   corners, ties and infinities, as they are written there.
3. Models exported from PyTorch ($WEFT_SHARED/models): loss and gradients as PyTorch computed them.
4. On another device than the CPU: cases that no reference decides, against the CPU's kernels.

WEFT_TEST_CASES in the environment: only checks whose name this regular expression finds something in.
"""
import os
import re
import struct
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
import device_edges  # noqa: E402
import nn_cases  # noqa: E402
import onnx_gradients  # noqa: E402
import weft_fused  # noqa: E402
import weft_ops  # noqa: E402

UNSUPPORTED = 3
INF = np.float32(np.inf)
ML = "ai.onnx.ml"
# Products that OpenBLAS multiplies (all of them on processors without AVX-512) are cut another way for
# other threads, which rounds another way; a recurrent layer's are, with the rows of its batch.
CUT_PRODUCTS = {"Gemm", "Linear", "MatMul", "Product", "Einsum", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN"}
PRODUCTS = {"DotAttention", "DotAttentionGrad", "Einsum", "Gemm", "Linear", "MatMul", "Product", "Conv",
            "ConvDataGrad", "ConvWeightGrad", "ConvTranspose"}
NORM_GRADIENTS = {"BatchNormalizationGrad", "GroupNormalizationGrad", "LayerNormalizationGrad",
                  "RMSNormalizationGrad"}


def pack(tensors):
    out = b""
    for name, value in tensors.items():
        value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        out += struct.pack("<I", len(name)) + name.encode()
        out += struct.pack(f"<II{value.ndim}q", dtype, value.ndim, *value.shape) + value.tobytes()
    return out


def unpack(data):
    tensors, at = {}, 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        name = data[at + 4:at + 4 + length].decode()
        at += 4 + length
        dtype, rank = struct.unpack_from("<II", data, at)
        dims = struct.unpack_from(f"<{rank}q", data, at + 8)
        at += 8 + 8 * rank
        # numpy has no bfloat16: it is shown as its bits.
        bits = dtype == TensorProto.BFLOAT16
        kind = np.dtype(np.uint16 if bits else helper.tensor_dtype_to_np_dtype(dtype))
        count = int(np.prod(dims, dtype=np.int64))
        tensors[name] = np.frombuffer(data, kind, count, at).reshape(dims)
        at += count * kind.itemsize
    return tensors


# Of the host; the kernels of other devices have none of them.
THREADS = (1,) if os.environ.get("WEFT_TEST_DEVICE") else (1, 3)


class Weft:
    """plan_tool, which is started once; and again after a model that ended it."""

    def __init__(self, tool, folder, env=None):
        tools.append(self)
        self.tool, self.folder, self.env = tool, folder, env
        self.process = None
        self.said = tempfile.TemporaryFile(dir=folder)  # what it writes to stderr

    def ask(self, *words):
        """(exit code, sentence)."""
        if not self.process:
            self.said.seek(0)
            self.said.truncate()
            self.process = subprocess.Popen([self.tool, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=self.said, text=True, env=self.env)
        try:
            self.process.stdin.write("\t".join(words) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            return self.close(), self.last_words()
        code, sentence = answer.rstrip("\n").split("\t", 1)
        return int(code), sentence

    def last_words(self):
        self.said.seek(0)
        return self.said.read().decode(errors="replace").strip()

    def close(self):
        """Its exit code, which a sanitizer may have something to say by."""
        process, self.process = self.process, None
        if not process:
            return 0
        process.communicate()
        return process.returncode

    def run(self, model, feeds, threads=1):
        """Outputs by name, or (exit code, sentence)."""
        source, fed = os.path.join(self.folder, "in"), os.path.join(self.folder, "out")
        with open(source, "wb") as f:
            f.write(pack(feeds))
        code, sentence = self.ask(model, source, fed, str(threads))
        if code:
            return code, sentence
        with open(fed, "rb") as f:
            return unpack(f.read())


def draw(rng, shape, dtype=np.float32):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(0, 1.5, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    return rng.integers(0 if dtype.kind == "u" else -7, 8, shape).astype(dtype)


def eighths(shape):
    """Numbers whose sums lose no digits, in whatever order they are added."""
    return np.round(8 * draw(np.random.default_rng(17), shape)) / np.float32(8)


def single(op, *inputs, n_out=1, domain="", **attrs):
    return op, inputs, n_out, domain, attrs


def singles():
    """(op, inputs, outputs, domain, attributes): shapes are drawn f32, (shape, dtype) as that dtype,
    arrays as they are; lists are constants."""
    for op in "Neg Abs Relu Sigmoid Tanh Exp Reciprocal Identity Softmax LogSoftmax".split():
        for shape in ((), (1,), (7,), (3, 5), (33, 100), (2, 3, 4), (0, 3)):
            if "Softmax" in op and len(shape) == 0:
                continue
            yield single(op, shape)
    for axis in (0, 1, 2, -1, -2):
        for op in ("Softmax", "LogSoftmax"):
            yield single(op, (4, 33, 17), axis=axis)
    wide = np.linspace(-120, 120, 4001, dtype=np.float32)
    special = np.array([0, -0.0, INF, -INF, np.nan, 1e-30, -1e-30, 88.8, -103.9], np.float32)
    for op in "Exp Sigmoid Tanh Relu Neg Abs".split():
        yield single(op, wide)
        yield single(op, special)
    masked = np.array([[1, -INF, 2], [-INF, -INF, 0], [300, -300, 299]], np.float32)
    yield single("Softmax", masked)
    yield single("LogSoftmax", masked[:2])  # of the last row the reference takes log 0
    yield single("Softmax", (3, 5000))
    yield single("LogSoftmax", (3, 5000))
    for op in ("Log", "Sqrt"):
        yield single(op, np.array([0.0, 0.5, 1, 2, 1e20, INF], np.float32))
    shapes = [((), ()), ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 4), (3, 1)), ((3, 1), (1, 4)),
              ((2, 3, 4), (3, 1)), ((), (3,)), ((1,), (2, 3)), ((4,), (2, 3, 4)), ((1, 1), (3,)),
              ((5, 1, 7, 1), (4, 1, 6)), ((300, 128), (128,)), ((128,), (300, 128)), ((0, 3), (3,)),
              ((600, 200), (600, 1))]
    for a, b in shapes:
        for op in "Add Sub Mul Div Max Min Equal Greater Less".split():
            for dtype in (np.float32, np.float64, np.int32, np.int64):
                if op == "Div" and np.dtype(dtype).kind == "i":
                    b_value = np.abs(draw(np.random.default_rng(5), b, dtype)) + 1
                    yield single(op, (np.abs(draw(np.random.default_rng(6), a, dtype))), b_value)
                else:
                    yield single(op, (a, dtype), (b, dtype))
        yield single("Where", (a, bool), b, a)
        yield single("Where", (a, bool), (b, np.int64), (b, np.int64))
    yield single("Max", (3, 4), (4,), (3, 1))
    yield single("Min", (3,))
    for op in ("Max", "Min"):
        yield single(op, np.array([np.nan, 1], np.float32), np.array([1, np.nan], np.float32))
    yield single("Not", ((3, 4), bool))
    for p in (2.0, 0.5, -1.0, 3.0, 1.7):
        yield single("Pow", np.abs(draw(np.random.default_rng(1), (3, 4))), np.float32(p))
    yield single("Pow", ((3, 4), np.float32), np.array([2, 3, 0, 1], np.int64))
    yield single("Pow", ((3, 4), np.int64), np.array([2, 3, 0, 1], np.int64))
    kinds = (np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_, np.float16)
    for a in kinds:
        for b in kinds:
            x = np.array([[0, 1, 2], [3, 100, 7]]).astype(a)
            yield single("Cast", x, to=int(helper.np_dtype_to_tensor_dtype(np.dtype(b))))
            yield single("CastLike", x, np.zeros(1, b))
    yield single("Clip", (3, 4), np.float32(-1), np.float32(0.5))
    yield single("Clip", (3, 4), None, np.float32(0.5))
    yield single("Clip", ((9,), np.int64), np.int64(-2), np.int64(3))
    for dtype in (np.float32, np.float64, np.int64):
        for axes in ([0], [1], [-1], [0, 2], [1, 2], [0, 1, 2], None):
            for keep in (0, 1):
                for op in ("ReduceSum", "ReduceMean"):
                    if op == "ReduceMean" and dtype == np.int64:
                        continue
                    yield single(op, ((5, 33, 18), dtype), *([axes] if axes else []), keepdims=keep)
    yield single("ReduceSum", (70000,))
    yield single("ReduceSum", np.round(8 * draw(np.random.default_rng(2), (512, 128))), [0],
                 keepdims=0)
    yield single("ReduceSum", (3, 4), noop_with_empty_axes=1)
    for axis in (0, 1, -1):
        for last in (0, 1):
            yield single("ArgMax", ((3, 4, 5), np.int64), axis=axis, keepdims=last,
                         select_last_index=last)
    yield single("ArgMax", (6, 9), axis=1)
    yield from elementwise()
    yield from reductions()
    yield from movers()
    yield from products()
    yield from losses()
    yield from nn_cases.singles(single)


def elementwise():
    wide = np.linspace(-30, 30, 3001, dtype=np.float32)
    special = np.array([0, -0.0, INF, -INF, np.nan, 1e-30, -1e-30, 88.8, -103.9, 0.5, 1.5, 2.5,
                        -0.5], np.float32)
    plain = "Softplus Softsign Mish Selu Elu Celu LeakyRelu ThresholdedRelu HardSigmoid HardSwish"
    plain += " Erf Sin Cos Tan Atan Asinh Floor Ceil Round Sign"
    for op in plain.split():
        for shape in ((1,), (33, 100)):
            yield single(op, shape)
            yield single(op, (shape, np.float64))
        if op != "Tan":
            yield single(op, wide)
    for op in "Floor Ceil Round Sign Erf IsNaN IsInf".split():
        yield single(op, special)
    yield single("IsInf", special, detect_negative=0)
    yield single("IsInf", special, detect_positive=0)
    yield single("IsInf", special, detect_positive=0, detect_negative=0)
    for op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu"):
        yield single(op, wide, alpha=0.75)
    yield single("HardSigmoid", wide, alpha=0.5, beta=0.25)
    yield single("Selu", wide, alpha=0.5, gamma=2.0)
    yield single("Shrink", wide, bias=1.0, lambd=2.0)
    yield single("Swish", wide)
    yield single("Swish", ((5, 7), np.float64), alpha=0.5)
    for way in ("none", "tanh"):
        yield single("Gelu", wide, approximate=way)
        yield single("Gelu", ((5, 7), np.float64), approximate=way)
    narrow = np.linspace(-0.99, 0.99, 301, dtype=np.float32)
    for dtype in (np.float32, np.float64):
        for op in "Asin Acos Atanh".split():
            yield single(op, narrow.astype(dtype))
        for op in "Sinh Cosh".split():
            yield single(op, (wide / 3).astype(dtype))
        yield single("Acosh", (1 + np.abs(wide)).astype(dtype))
    yield single("Log", np.exp2(np.linspace(-126, 127, 5001)).astype(np.float32))
    shapes = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3,)), ((300, 128), (128,))]
    for a, b in shapes:
        for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8):
            for op in ("GreaterOrEqual", "LessOrEqual", "Greater", "Less", "Equal"):
                yield single(op, (a, dtype), (b, dtype))
            divisor = draw(np.random.default_rng(7), b, dtype)
            divisor = np.where(divisor == 0, np.ones_like(divisor), divisor)
            yield single("Mod", (a, dtype), divisor, fmod=1)
            if np.dtype(dtype).kind != "f":
                yield single("Mod", (a, dtype), divisor)
        for op in ("And", "Or", "Xor"):
            yield single(op, (a, bool), (b, bool))
        for dtype in (np.int32, np.int64, np.uint8):
            for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
                yield single(op, (a, dtype), (b, dtype))
            yield single("BitwiseNot", (a, dtype))
        for direction in ("LEFT", "RIGHT"):
            yield single("BitShift", (a, np.uint8), (b, np.uint8), direction=direction)
        for op in ("Add", "Sub", "Mul"):
            yield single(op, (a, np.uint8), (b, np.uint8))
        for dtype in (np.float32, np.float64):
            for op in ("Sum", "Mean"):
                if op == "Sum" or len(b) <= len(a) and a != (3, 1):  # the reference's Mean cannot
                    yield single(op, (a, dtype), (b, dtype), (a, dtype))
                yield single(op, (a, dtype))
        if len(b) <= len(a) and a != (3, 1):
            for dtype in (np.float32, np.float64, np.int64):
                yield single("PRelu", (a, dtype), (b, dtype))
    for op in "CeluGrad EluGrad HardSigmoidGrad HardSwishGrad LeakyReluGrad MishGrad SeluGrad " \
              "ShrinkGrad SoftplusGrad SoftsignGrad SwishGrad ThresholdedReluGrad GeluGrad".split():
        dy = np.random.default_rng(12).normal(0, 1, wide.shape).astype(np.float32)
        yield single(op, dy, wide + np.float32(0.003), domain=weft_ops.DOMAIN)  # beside corners
        yield single(op, ((5, 7), np.float64), ((5, 7), np.float64), domain=weft_ops.DOMAIN)
    yield single("GeluGrad", dy, wide, domain=weft_ops.DOMAIN, approximate="tanh")


def reductions():
    ops = "L1 L2 LogSum LogSumExp Max Min Prod Sum SumSquare Mean".split()
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        for axes in ([0], [1], [-1], [0, 2], None):
            for op in ops:
                if np.dtype(dtype).kind == "i" and ("Log" in op or op in ("L2", "Mean")):
                    continue
                if dtype == np.int32 and op == "SumSquare":  # the reference makes it int64
                    continue
                x = draw(np.random.default_rng(13), (5, 33, 18), dtype)
                x = np.abs(x) + np.ones_like(x) if op in ("LogSum", "Prod") else x
                if op == "Prod":
                    x = (x % 2 + 1) if np.dtype(dtype).kind == "i" else (0.97 + x / 50).astype(dtype)
                yield single("Reduce" + op, x, *([axes] if axes else []), keepdims=axes == [1])
    for op in ops:
        if op not in ("Mean", "L1", "L2", "Prod", "LogSum", "SumSquare"):
            yield single("Reduce" + op, np.array([[1, np.nan], [2, 3]], np.float32), [1])
        # Enough elements to be cut into parts; whole numbers, so that no order loses digits.
        x = np.random.default_rng(14).integers(-3, 4, (3, 2**20 + 5)).astype(np.float32)
        if op not in ("LogSum", "LogSumExp", "Prod"):
            yield single("Reduce" + op, x, [1], keepdims=0)
            yield single("Reduce" + op, np.ascontiguousarray(x.T), [0], keepdims=0)
            yield single("Reduce" + op, eighths((6, 100, 64)), [0, 1], keepdims=0)
            yield single("Reduce" + op, eighths((20, 7, 300)), [0, 2], keepdims=0)
    for op in ("Sum", "Max", "L2"):
        yield single("Reduce" + op, (2, 3, 4, 5, 6), [1, 3], keepdims=0)
        yield single("Reduce" + op, (3, 1, 4), [1], keepdims=0)
        yield single("Reduce" + op, (), keepdims=0)
        yield single("Reduce" + op, (1500, 3), [0])
        yield single("Reduce" + op, (1500, 3), [1])
    for op in ("Max", "Min"):
        yield single("Reduce" + op, ((3, 4), bool), [1])
        yield single("Reduce" + op, ((3, 4), np.uint8), [0])
    for op in ("Sum", "Prod"):
        yield single("Reduce" + op, (2, 0, 3), [1])
    for op in ("ArgMax", "ArgMin"):
        for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8):
            for axis in (0, 1, 2):
                for last in (0, 1):
                    yield single(op, ((3, 40, 300), dtype), axis=axis, select_last_index=last)
    for axis in (0, 1, -1):
        yield single("Hardmax", (3, 4, 5), axis=axis)
        for dtype in (np.float32, np.float64, np.int64):
            x = draw(np.random.default_rng(15), (3, 4, 300), np.int64).astype(dtype)
            for exclusive in (0, 1):
                for reverse in (0, 1):
                    yield single("CumSum", x, np.int64(axis), exclusive=exclusive,
                                 reverse=reverse)
                    yield single("CumSum", x.reshape(2, 600, 3), np.int64(axis), exclusive=exclusive,
                                 reverse=reverse)


def movers():
    for dtype in (np.float32, np.int64, np.uint8, np.float16):
        x = ((2, 3, 4), dtype)
        yield single("Transpose", x)
        yield single("Transpose", x, perm=[1, 2, 0])
        yield single("Transpose", x, perm=[0, 2, 1])
        yield single("Reshape", x, [4, -1])
        yield single("Reshape", x, [0, 12])
        yield single("Flatten", x, axis=2)
        yield single("Squeeze", ((2, 1, 3, 1), dtype), [1])
        yield single("Unsqueeze", x, [0, -1])
        yield single("Concat", x, ((2, 5, 4), dtype), ((2, 1, 4), dtype), axis=1)
        yield single("Concat", x, x, axis=-1)
        yield single("Expand", ((3, 1), dtype), [2, 1, 4])
        yield single("Slice", ((6, 7, 8), dtype), [1, -1], [-1, -2**63], [0, 2], [2, -2])
        yield single("Slice", ((6, 7), dtype), [0, 2], [100, 3])
        yield single("Slice", ((6, 7), dtype), [4], [2], [1])
        yield single("Gather", ((5, 3), dtype), np.array([[1, -1], [0, 4]], np.int64))
        yield single("Gather", ((2, 5, 3), dtype), np.array([4, 4, 2], np.int32), axis=1)
        yield single("Shape", x)
        yield single("Shape", x, start=1, end=-1)
        for axis in (0, 1, -1):
            yield single("Split", ((4, 6, 8), dtype), [1, 0, 3] if axis == 0 else [2, 4] if axis == 1
                         else [8], n_out=3 if axis == 0 else 2 if axis == 1 else 1, axis=axis)
        yield single("Split", ((3, 7), dtype), n_out=3, axis=1, num_outputs=3)
        yield single("Tile", x, [1, 2, 3])
        yield single("Tile", ((3, 1), dtype), [0, 2])
        for pads in ([1, 2, 0, 2, 0, 1], [-1, 0, 2, 0, -1, 3], [0, 0, 0, 0, 0, 0]):
            yield single("Pad", x, pads)
        yield single("Pad", x, [1, 0, 0, 2], np.array(7, dtype), [-1, 0])
        for mode in "reflect edge wrap".split():
            yield single("Pad", ((3, 5), dtype), [2, 3, 1, 4], mode=mode)
        ids = np.random.default_rng(12).integers(-3, 3, (2, 3, 3))
        yield single("GatherElements", ((2, 3, 4), dtype), ids, axis=1)
        yield single("GatherElements", ((40, 300), dtype), np.random.default_rng(13).integers(
            -300, 300, (40, 1000)).astype(np.int32), axis=1)
        yield single("ScatterElements", ((3, 5), dtype), np.array([[4, 0], [1, -1]]), ((2, 2), dtype),
                     axis=1)
        yield single("GatherND", ((3, 4, 5), dtype), np.array([[0, 1], [2, -1]]))
        yield single("GatherND", ((2, 3, 4), dtype), np.array([[[1], [0]], [[2], [2]]]), batch_dims=1)
        yield single("ScatterND", ((3, 4, 5), dtype), np.array([[0, 1], [2, 3]]), ((2, 5), dtype))
        for upper in (0, 1):
            for k in (-9, -1, 0, 1, 9):
                yield single("Trilu", ((2, 3, 5), dtype), np.int64(k), upper=upper)
        yield single("DepthToSpace", ((2, 12, 3, 2), dtype), blocksize=2)
        yield single("DepthToSpace", ((2, 12, 3, 2), dtype), blocksize=2, mode="CRD")
        yield single("SpaceToDepth", ((2, 3, 4, 6), dtype), blocksize=2)
        yield single("CenterCropPad", ((4, 7, 5), dtype), [7, 4, 5])
        yield single("CenterCropPad", ((4, 7), dtype), [2], axes=[-1])
        yield single("OneHot", np.array([[1, -1], [3, 7]]), [4], np.array([0, 1]).astype(dtype), axis=1)
        for axes in ({"batch_axis": 0, "time_axis": 1}, {"batch_axis": 1, "time_axis": 0}):
            yield single("ReverseSequence", ((3, 3, 2), dtype), np.array([3, 0, 2]), **axes)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        for reduction in "add mul max min".split():
            yield single("ScatterElements", ((3, 5), dtype), np.array([[4, 0, 4], [1, -1, 1]]),
                         ((2, 3), dtype), axis=1, reduction=reduction)
            yield single("ScatterND", ((4, 5), dtype), np.array([[0], [2], [0]]), ((3, 5), dtype),
                         reduction=reduction)
            many = np.random.default_rng(18).integers(-9, 9, (700, 1))  # twos, so that products stay numbers
            twos = np.where(np.random.default_rng(19).random((700, 4)) < 0.02, 2, 1).astype(dtype)
            yield single("ScatterND", ((9, 4), dtype), many, twos, reduction=reduction)
            yield single("ScatterElements", ((9, 4), dtype), np.tile(many, 4), twos, reduction=reduction)
        yield single("EyeLike", ((3, 5), dtype), k=1)
        yield single("EyeLike", ((3, 5), dtype), k=-2, dtype=int(TensorProto.BOOL))
        for axis in (0, 1, 2):
            for largest in (0, 1):
                x = np.random.default_rng(14).permutation(5 * 40 * 6).reshape(5, 40, 6).astype(dtype)
                yield single("TopK", x, [4], n_out=2, axis=axis, largest=largest)
                yield single("TopK", x, [x.shape[axis]], n_out=2, axis=axis, largest=largest)
    yield single("ConstantOfShape", [2, 3])
    yield single("ConstantOfShape", [2, 3], value=numpy_helper.from_array(np.array([7], np.int64)))
    # Too large to be computed before the run.
    yield single("ConstantOfShape", [2100, 2000], value=numpy_helper.from_array(np.array([7], np.uint8)))
    yield single("Concat", *(((2, k % 4, 3), np.float32) for k in range(40)), axis=1)
    yield single("Split", (3, 39), [k % 3 for k in range(40)], n_out=40, axis=1)
    yield single("Transpose", (129, 65))
    for perm in ([0, 2, 1, 3], [3, 1, 0, 2], [2, 3, 0, 1], [1, 3, 2, 0], [3, 2, 1, 0]):
        yield single("Transpose", (17, 5, 18, 33), perm=perm)


def products():
    yield from weft_fused.cases(single)
    for ta in (0, 1):
        for tb in (0, 1):
            for c in (None, (), (5,), (3, 1), (3, 5), (1,)):
                a, b = (4, 3) if ta else (3, 4), (5, 4) if tb else (4, 5)
                yield single("Gemm", a, b, *([c] if c is not None else []), transA=ta, transB=tb,
                             alpha=0.5, beta=2.0)
    for m, k, n in ((32, 784, 128), (784, 32, 128), (1, 100, 7), (130, 33, 257), (3, 0, 4)):
        for ta in (0, 1):
            for tb in (0, 1):
                yield single("Gemm", (k, m) if ta else (m, k), (n, k) if tb else (k, n), (n,),
                             transA=ta, transB=tb)
    for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)),
                 ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)),
                 ((4,), (4,)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((64, 300), (300, 200))):
        for dtype in (np.float32, np.float64):
            yield single("MatMul", (a, dtype), (b, dtype))


    for mode in "bilinear bicubic nearest".split():
        for padding in "zeros border reflection".split():
            for aligned in (0, 1):
                for x, points in (((2, 2, 5, 4), (2, 3, 4, 2)), ((1, 2, 1, 3), (1, 2, 3, 2))):
                    yield single("GridSample", x, points, mode=mode, padding_mode=padding,
                                 align_corners=aligned)
                    yield single("GridSampleGrad", x[:2] + points[1:3], x, points, n_out=2, mode=mode,
                                 padding_mode=padding, align_corners=aligned, domain=weft_ops.DOMAIN)
    for equation, *shapes in onnx_gradients.EINSUMS + [
            ("ii->i", (4, 4)), ("bii->b", (3, 4, 4)), ("ii", (4, 4)), ("iji,jk->ik", (3, 4, 3), (4, 5)),
            ("ij,jk->ik", (3, 0), (0, 4)), ("ij->i", (3, 0)),
            ("bhid,bhjd->bhij", (2, 3, 33, 20), (2, 3, 30, 20)),
            ("bhij,bhjd->bihd", (2, 3, 30, 33), (2, 3, 33, 20)), ("k...,jk", (4, 2, 3), (5, 4)),
            ("...,...->...", (), ()), (" i j , j k -> i k ", (3, 4), (4, 5))]:
        for dtype in (np.float32, np.float64):
            yield single("Einsum", *((s, dtype) for s in shapes), equation=equation)


def losses():
    weft = weft_ops.DOMAIN
    class_weights = np.array([0.5, 1.5, 2.0, 1.0], np.float32)
    for shape, labels in (((5, 4), (5,)), ((2, 4, 3), (2, 3)), ((40, 4), (40,))):
        label = np.random.default_rng(3).integers(0, 4, labels)
        for reduction in ("mean", "sum", "none"):
            for attrs in ({}, {"ignore_index": 2}):
                for w in ((), (class_weights,)):
                    a = dict(attrs, reduction=reduction)
                    for kind in (np.int64, np.int32):
                        l = label.astype(kind)
                        yield single("SoftmaxCrossEntropyLoss", shape, l, *w, n_out=2, **a)
                        yield single("SoftmaxCrossEntropyLoss", shape, l, *w, **a)
                        yield single("NegativeLogLikelihoodLoss", shape, l, *w, **a)
                    d = labels if reduction == "none" else ()
                    yield single("SoftmaxCrossEntropyGrad", d, shape, label, *w, domain=weft, **a)
                    yield single("NegativeLogLikelihoodLossGrad", d, shape, label, *w, domain=weft,
                                 **a)
    for shape in ((7, 1003), (3, 5001), (1200, 6)):  # rows that begin at any element; many records
        label = np.random.default_rng(5).integers(0, shape[1], shape[:1])
        yield single("SoftmaxCrossEntropyLoss", shape, label, n_out=2)
        yield single("SoftmaxCrossEntropyLoss", shape, label)
        yield single("SoftmaxCrossEntropyGrad", (), shape, label, domain=weft)
    for reduction in ("mean", "sum", "none"):
        for x, z in (((3, 4), (3, 4)), ((5,), (5,)), ((3, 4), (4,)), ((3, 4), (1,))):
            d = x if reduction == "none" else ()
            target = (np.random.default_rng(4).random(z) < 0.5).astype(np.float32)
            yield single("SigmoidCrossEntropy", x, target, domain=weft, reduction=reduction)
            yield single("SigmoidCrossEntropyGrad", d, x, target, domain=weft, reduction=reduction)
    for op in "ReluGrad SigmoidGrad TanhGrad".split():
        for shape in ((3, 5), (33, 40)):
            yield single(op, shape, shape, domain=weft)
    for shape, axis in (((3, 5), -1), ((33, 40), 1), ((3, 5, 20), 1)):
        e = np.exp(draw(np.random.default_rng(11), shape))
        y = e / e.sum(axis=axis, keepdims=True)
        yield single("SoftmaxGrad", shape, y, domain=weft, axis=axis)
        yield single("LogSoftmaxGrad", shape, np.log(y), domain=weft, axis=axis)
    for x, ref in (((3, 4), (4,)), ((3, 4), (3, 1)), ((3, 4), ()), ((2, 3, 4), (3, 1)),
                   ((3, 4), (3, 4)), ((100, 50), (50,))):
        yield single("SumToLike", x, ref, domain=weft)
    yield single("GatherGrad", (2, 2, 3), np.array([[1, -1], [0, 1]], np.int64), (5, 3), domain=weft)
    yield single("GatherGrad", (2, 3, 3), np.array([4, 4, 2], np.int32), (2, 5, 3), domain=weft,
                 axis=1)
    popular = np.random.default_rng(16).integers(0, 40, 3000)
    popular[1000:] %= 2
    for ids, rows in ((popular, 40), (popular[:2600].astype(np.int32) - 40, 40), (37 * popular, 2000)):
        yield single("GatherGrad", eighths((len(ids), 3)), ids, (rows, 3), domain=weft)
        yield single("GatherGrad", eighths((2, len(ids))), ids, (2, rows), domain=weft, axis=1)
        yield single("GatherNDGrad", eighths((len(ids), 5)), ids.reshape(-1, 1), (rows, 5), domain=weft)
    many = np.random.default_rng(18).integers(0, 70000, 33000)
    for ids in (many[:9000], many):
        yield single("GatherGrad", eighths((len(ids), 1)), ids, (70000, 1), domain=weft)
    bags = np.array([[1, -1, 0, 1], [-1, -1, -1, -1], [4, 2, 2, -7]], np.int64)
    many = np.random.default_rng(12).integers(-1, 900, (600, 2, 40))
    for ids, rows, dims in ((bags, 5, (1, 3)), (bags.astype(np.int32), 5, (2,)), (many, 900, (1, 7, 16))):
        for dim in dims:
            dy, table, weights = (eighths(shape) for shape in ((*ids.shape[:-1], dim), (rows, dim), ids.shape))
            for mode in ("sum", "max"):
                yield single("EmbeddingBag", table, ids, domain=weft, mode=mode)
                yield single("EmbeddingBagGrad", dy, ids, table, domain=weft, mode=mode)
            yield single("EmbeddingBag", table, ids, weights, domain=weft)
            yield single("EmbeddingBagGrad", dy, ids, table, weights, domain=weft)
            yield single("EmbeddingBagWeightsGrad", dy, ids, table, domain=weft)
    named = np.array([-2**63, -7, 0, 3, 2**63 - 1], np.int64)
    looked_up = np.concatenate([named, named[1:] - 1]).reshape(3, 3)
    for n in (0, 1, 5):
        for bags, dtype in ((0, 1), (1, 1), (0, 16)):
            yield single("TableRows", (n + 1, 3), named[:n], looked_up, n_out=2, domain=weft, bags=bags, dtype=dtype,
                         numbers=numpy_helper.from_array(np.array([0.7, 0])))
    shuffled = np.array([3, -2**63, 0, 2**63 - 1, -7])
    yield single("LabelEncoder", looked_up, domain=ML, keys_int64s=shuffled, values_int64s=[5, -1, 7, 2**62, 5],
                 default_int64=-2**63)
    many = np.random.default_rng(13).permutation(5000) * 3 - 6000
    yield single("LabelEncoder", many.reshape(40, 125) // 2, domain=ML, keys_int64s=many,
                 values_int64s=np.arange(5000), default_int64=-1)
    yield single("SliceGrad", (2, 4), (5, 7), [1, -1], [-1, -2**63], [0, 1], [2, -2], domain=weft)
    yield single("TileGrad", (4, 9), (2, 3), domain=weft)
    yield single("TileGrad", (3, 1, 40), (3, 1, 4), domain=weft)
    yield single("TileGrad", eighths((90, 4000)), (2, 5), domain=weft)
    for mode in "constant reflect edge wrap".split():
        yield single("PadGrad", (6, 11), (3, 5), [2, 3, 1, 3], domain=weft, mode=mode)
        yield single("PadGrad", (3, 9), (3, 8), [-2, 3], [1], domain=weft, mode=mode)
        yield single("PadGrad", (12, 40), (2, 5), [3, 16, 7, 19], domain=weft, mode=mode)
    yield single("GatherNDGrad", (3, 5), (np.array([[0, 1], [2, -1], [0, 1]])), (3, 4, 5), domain=weft)
    for mode in ("DCR", "CRD"):
        yield single("DepthToSpaceGrad", (2, 3, 4, 6), domain=weft, blocksize=2, mode=mode)
    yield single("CorrectCount", (50, 4), np.random.default_rng(8).integers(0, 4, 50), domain=weft)
    for k in (1, 2, 4):
        yield single("CorrectCount", (50, 4), np.random.default_rng(8).integers(0, 4, 50),
                     domain=weft, k=k)
    for scores in ((50,), np.random.default_rng(11).random((40, 2)).astype(np.float32)):
        n = scores if isinstance(scores, tuple) else scores.shape
        hit = (np.random.default_rng(9).random(n) < 0.5).astype(np.float32)
        yield single("ScoreKeys", scores, hit, domain=weft, logits=int(isinstance(scores, tuple)))
    for shape in ((50,), (50, 1)):
        hit = (np.random.default_rng(9).random(50) < 0.5).astype(np.float32)
        yield single("CorrectCount", shape, hit.reshape(shape), domain=weft, threshold=0.5)
    mask = np.random.default_rng(10).random((3, 4)) < 0.5
    yield single("DropoutGrad", (3, 4), mask, np.float32(0.25), np.bool_(True), domain=weft)
    yield single("DropoutGrad", (3, 4), mask, np.float32(0.25), np.bool_(False), domain=weft)
    yield single("Dropout", (3, 4), np.float32(0.25), np.bool_(False), n_out=2)


def make(case, seed):
    """The model of a single operation, and its feeds."""
    op, inputs, n_out, domain, attrs = case
    rng = np.random.default_rng(seed)
    names, feeds, inits, infos = [], {}, [], []
    for i, spec in enumerate(inputs):
        if spec is None:
            names.append("")
            continue
        names.append(f"x{i}")
        if isinstance(spec, list):
            inits.append(numpy_helper.from_array(np.array(spec, np.int64), names[-1]))
            continue
        if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], tuple):
            spec = draw(rng, *spec)
        elif isinstance(spec, tuple):
            spec = draw(rng, spec)
        value = np.asarray(spec)
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(helper.make_tensor_value_info(names[-1], kind, value.shape))
        feeds[names[-1]] = value
    outputs = [f"y{i}" for i in range(n_out)]
    graph = helper.make_graph([helper.make_node(op, names, outputs, domain=domain, **attrs)], "one",
                              infos, [onnx.ValueInfoProto(name=o) for o in outputs], inits)
    opsets = [helper.make_opsetid("", 20 if op == "Gelu" else 18), helper.make_opsetid(weft_ops.DOMAIN, 1),
              helper.make_opsetid(ML, 2)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def same(got, want, tolerance):
    want = np.asarray(want)
    assert got.dtype == want.dtype, f"{got.dtype}, not {want.dtype}"
    assert got.shape == want.shape, f"{got.shape}, not {want.shape}"
    if want.dtype.kind != "f":
        assert np.array_equal(got, want), f"{got}\nnot {want}"
        return
    rtol, atol = tolerance
    assert np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True), \
        f"off by {np.nanmax(np.abs(got.astype(float) - want.astype(float)))}"


def check_single(weft, folder, case, seed):
    model, feeds = make(case, seed)
    path = os.path.join(folder, "one.onnx")
    onnx.save(model, path)
    with np.errstate(all="ignore"):
        want = ReferenceEvaluator(model, new_ops=weft_ops.OPS).run(None, feeds)
    alone = None
    for threads in THREADS:
        got = weft.run(path, feeds, threads)
        assert isinstance(got, dict), got[1]
        alone = alone or got
        for name, value in zip((o.name for o in model.graph.output), want):
            assert case[0] in CUT_PRODUCTS or got[name].tobytes() == alone[name].tobytes(), "other bits with other threads"
            # A sum's rounding grows with its terms: a product adds up to 784 here, the gradient of a
            # norm's scale 70 of about 0.6 each, whose worst case in blocks of 32 is 9e-5.
            near = 3e-4 if case[0] in PRODUCTS else 1e-5 if case[0] in NORM_GRADIENTS else 2e-6
            same(got[name], value, (2e-5, near))


def check_gradients(weft, tool, folder, case, seed):
    model, _, feeds = case.model(seed)
    y = onnx_gradients.evaluate(model, feeds, np.float64(1))["y"]
    r = np.random.default_rng(seed + 1).uniform(0.5, 1.5, y.shape)
    for value in model.graph.input:
        if value.name == "r":
            value.CopyFrom(helper.make_tensor_value_info("r", TensorProto.DOUBLE, y.shape))
    source, out = os.path.join(folder, "case.onnx"), os.path.join(folder, "grad.onnx")
    onnx.save(model, source)
    done = subprocess.run([tool, "grad", source, out, "loss"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.strip()
    want = onnx_gradients.evaluate(onnx.load(out), feeds, r)
    got = weft.run(out, {**feeds, "r": r})
    assert isinstance(got, dict), got[1]
    assert set(got) == set(want)
    # The reference makes Gelu's constants in f32.
    tolerance = (1e-7, 1e-8) if "tanh" in case.name else (1e-9, 1e-11)
    for name, value in want.items():
        same(got[name], value, tolerance)


def check_point(weft, tool, folder, case, r, want):
    model, _, _ = case.model(0)
    for value in model.graph.input:
        if value.name == "r":
            value.CopyFrom(helper.make_tensor_value_info("r", TensorProto.DOUBLE, np.shape(r)))
    source, out = os.path.join(folder, "case.onnx"), os.path.join(folder, "grad.onnx")
    onnx.save(model, source)
    done = subprocess.run([tool, "grad", source, out, "loss"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.strip()
    got = weft.run(out, {"r": np.asarray(r)})
    assert isinstance(got, dict), got[1]
    for name, value in want.items():
        same(got["grad/" + name], value, (1e-9, 1e-11))


def check_model(weft, tool, folder, path):
    name = os.path.basename(path).split(".")[0] + ".npz"
    data = np.load(os.path.join(os.path.dirname(path), name))
    feeds = {k[6:]: data[k] for k in data.files if k.startswith("input.")}
    out = os.path.join(folder, "model.onnx")
    done = subprocess.run([tool, "grad", path, out, "loss"], capture_output=True, text=True)
    if done.returncode == UNSUPPORTED:
        return done.stderr.strip()
    assert done.returncode == 0, done.stderr.strip()
    for threads in THREADS:
        got = weft.run(out, feeds, threads)
        assert isinstance(got, dict), got[1]
        for key in data.files:
            kind, _, name = key.partition(".")
            if kind == "grad":
                same(weft_ops.gradient(got, name, data.files), data[key], (2e-4, 2e-6))
            elif kind == "output":
                same(got[name], data[key], (2e-5, 2e-6))
    return None


def check_edge(weft, on_cpu, folder, case, seed, refused=False):
    model, feeds = make(case, seed)
    path = os.path.join(folder, "one.onnx")
    onnx.save(model, path)
    want, got = on_cpu.run(path, feeds), weft.run(path, feeds)
    if refused:
        assert isinstance(want, tuple) and got == want, f"{got}\nnot {want}"
        return
    assert isinstance(want, dict), want[1]
    assert isinstance(got, dict), got[1]
    for name, value in want.items():
        same(got[name], value, (1e-6, 1e-6) if case[0] in device_edges.NEAR else (0, 0))


tools = []  # that may run
absent = []  # what there is nothing to check without


def gelus():
    for form in ("none", "tanh"):
        yield single("Gelu", np.linspace(-6, 6, 403, dtype=np.float32), approximate=form)


def all_checks(weft, tool, folder):
    """(name, what checks it)"""
    for seed, case in enumerate([*singles(), *weft_fused.sums(single), *weft_fused.attentions(single), *gelus()]):
        text = f"{case[0]} {[np.shape(i) if isinstance(i, np.ndarray) else i for i in case[1]]}" \
               f" {case[4]}"
        yield text, lambda c=case, s=seed: check_single(weft, folder, c, s)
    for seed, case in enumerate(onnx_gradients.cases()):
        yield "gradient of " + case.name, \
            lambda c=case, s=seed: check_gradients(weft, tool, folder, c, s)
    for case, r, want in onnx_gradients.points():
        yield "gradient of " + case.name, \
            lambda c=case, r=r, w=want: check_point(weft, tool, folder, c, r, w)
    if "WEFT_TEST_DEVICE" in os.environ:
        on_cpu = Weft(weft.tool, folder, {k: v for k, v in os.environ.items() if k != "WEFT_TEST_DEVICE"})
        for seed, case in enumerate(device_edges.singles(single)):
            yield f"{case[0]} on the device and the CPU, case {seed} {case[4]}", \
                lambda c=case, s=seed: check_edge(weft, on_cpu, folder, c, s)
        for seed, case in enumerate(device_edges.refused(single)):
            yield f"{case[0]} that is refused, case {seed}", \
                lambda c=case, s=seed: check_edge(weft, on_cpu, folder, c, s, refused=True)
    default = os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared")
    models = os.path.join(os.environ.get("WEFT_SHARED", default), "models")
    if not os.path.isdir(models):
        print(f"skipped: no models in {models}; set WEFT_SHARED to run them too")
        absent.append(models)
        return
    for name in sorted(os.listdir(models)):
        if name.endswith(".onnx"):
            yield name, lambda p=os.path.join(models, name): check_model(weft, tool, folder, p)


def main(plan_tool, onnx_tool):
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        weft = Weft(plan_tool, folder)
        for name, check in all_checks(weft, onnx_tool, folder):
            if not re.search(os.environ.get("WEFT_TEST_CASES", ""), name):
                continue
            count += 1
            try:
                said = check()
                if said:
                    print(f"unsupported  {name}: {said}")
            except Exception as wrong:  # one bad case must not hide the next
                failed += 1
                print(f"FAILED  {name}: {type(wrong).__name__}: {wrong}")
        for tool in tools:
            if tool.close() != 0:
                failed += 1
                print(f"FAILED  the end of {tool.tool}: {tool.last_words()}")
    print(f"{count - failed} of {count} checks")
    return 1 if failed else 77 if absent else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

# SPDX-License-Identifier: Apache-2.0
"""Cases of convolution, pooling, normalisation, resizing and recurrence, for onnx_gradients.py and
kernels.py."""
import numpy as np


def convolutions():
    """(name, shape of x, shape of w, attributes)"""
    yield "plain", (2, 3, 5, 6), (4, 3, 3, 3), {}
    yield "1d", (2, 3, 9), (4, 3, 3), dict(strides=[2], pads=[1, 0], dilations=[2])
    yield "3d", (1, 2, 4, 3, 5), (2, 2, 2, 3, 2), dict(strides=[2, 1, 2], pads=[1, 1, 0, 0, 1, 1])
    yield "groups", (2, 4, 5, 5), (6, 2, 3, 3), dict(group=2, pads=[1, 1, 1, 1])
    yield "depthwise", (2, 3, 6, 5), (3, 1, 3, 3), dict(group=3, pads=[1, 1, 1, 1], strides=[2, 1])
    yield "multiplier", (2, 3, 5, 5), (6, 1, 3, 3), dict(group=3)
    yield "pointwise", (2, 3, 4, 5), (4, 3, 1, 1), {}
    yield "asymmetric", (1, 2, 5, 6), (2, 2, 2, 3), dict(pads=[0, 2, 1, 1], strides=[1, 2])
    yield "dilated", (1, 2, 7, 8), (3, 2, 3, 2), dict(dilations=[2, 3], pads=[2, 1, 0, 2])
    yield "same upper", (1, 2, 5, 6), (2, 2, 3, 2), dict(auto_pad="SAME_UPPER", strides=[2, 2])
    yield "same lower", (1, 2, 5, 6), (2, 2, 2, 4), dict(auto_pad="SAME_LOWER", strides=[1, 2])
    yield "valid", (1, 2, 5, 6), (2, 2, 2, 4), dict(auto_pad="VALID")


def transposed():
    yield "plain", (2, 3, 3, 4), (3, 4, 3, 3), {}
    yield "1d", (2, 3, 4), (3, 2, 3), dict(strides=[2], pads=[1, 0], dilations=[2])
    yield "3d", (1, 2, 2, 3, 2), (2, 2, 2, 3, 2), dict(strides=[2, 1, 2], pads=[1, 1, 0, 0, 1, 1])
    yield "groups", (2, 4, 3, 3), (4, 3, 3, 3), dict(group=2, pads=[1, 1, 1, 1], strides=[2, 2])
    yield "depthwise", (2, 3, 3, 3), (3, 1, 2, 2), dict(group=3, strides=[2, 2])
    yield "output_padding", (1, 2, 3, 3), (2, 3, 3, 3), dict(
        strides=[2, 3], output_padding=[1, 2], pads=[1, 1, 1, 1])
    yield "output_shape", (1, 2, 3, 3), (2, 3, 3, 3), dict(strides=[3, 2], output_shape=[10, 8])
    yield "same", (1, 2, 3, 3), (2, 3, 3, 3), dict(strides=[2, 2], auto_pad="SAME_UPPER")


def poolings():
    yield "1d", (2, 3, 8), dict(kernel_shape=[3], strides=[2])
    yield "2d", (2, 3, 6, 7), dict(kernel_shape=[2, 2], strides=[2, 2])
    yield "padded", (1, 2, 6, 7), dict(kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    yield "ceil", (1, 2, 6, 7), dict(kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 1],
                                     ceil_mode=1)
    yield "3d", (1, 2, 4, 5, 4), dict(kernel_shape=[2, 3, 2], strides=[2, 2, 1])
    yield "same", (1, 2, 5, 6), dict(kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER")
    yield "dilated", (1, 2, 7, 6), dict(kernel_shape=[2, 3], dilations=[3, 2])


def gradients(Case, node):
    for symbolic in (False, True):
        s = " symbolic" if symbolic else ""
        for name, x, w, attrs in convolutions():
            yield Case(f"Conv {name}{s}", [x, w, w[:1]], node("Conv", "w0 w1 w2", **attrs),
                       symbolic=symbolic)
        for name, x, w, attrs in transposed():
            b = (w[1] * attrs.get("group", 1),)
            yield Case(f"ConvTranspose {name}{s}", [x, w, b],
                       node("ConvTranspose", "w0 w1 w2", **attrs), symbolic=symbolic)
        for name, x, attrs in poolings():
            yield Case(f"MaxPool {name}{s}", [x], node("MaxPool", "w0", **attrs), symbolic=symbolic)
            yield Case(f"LpPool {name}{s}", [x], node("LpPool", "w0", p=3, **attrs),
                       symbolic=symbolic)
            for count in (0, 1) if name != "dilated" else ():  # of opset 19: in the node suite
                yield Case(f"AveragePool {name} {count}{s}", [x],
                           node("AveragePool", "w0", count_include_pad=count, **attrs),
                           symbolic=symbolic)
        for op in ("GlobalAveragePool", "GlobalMaxPool"):
            for shape in ((2, 3, 4), (2, 3, 4, 3), (2, 2, 2, 3, 2)):
                yield Case(f"{op} {shape}{s}", [shape], node(op, "w0"), symbolic=symbolic)
        yield from norm_gradients(Case, node, s, symbolic)


def norm_gradients(Case, node, s, symbolic):
    positive = np.array([0.5, 1.5, 2.0])
    for shape in ((4, 3), (4, 3, 5), (2, 3, 2, 4)):
        moments = {"m": np.array([0.1, -0.2, 0.3]), "v": positive}
        yield Case(f"BatchNormalization {shape}{s}", [shape, (3,), (3,)],
                   node("BatchNormalization", "w0 w1 w2 m v"), consts=moments, symbolic=symbolic)
        yield Case(f"BatchNormalization in training {shape}{s}", [shape, (3,), (3,)],
                   node("BatchNormalization", "w0 w1 w2 m v", "y rm rv", training_mode=1),
                   consts=moments, symbolic=symbolic)
        yield Case(f"BatchNormalizationTrain {shape}{s}", [shape, (3,), (3,)],
                   node("BatchNormalizationTrain", "w0 w1 w2", domain="ai.weft", epsilon=0.1),
                   symbolic=symbolic)
        if len(shape) > 2:
            yield Case(f"InstanceNormalization {shape}{s}", [shape, (3,), (3,)],
                       node("InstanceNormalization", "w0 w1 w2"), symbolic=symbolic)
    for scale in (2, 4):
        yield Case(f"GroupNormalization {scale} scales{s}", [(2, 4, 3, 2), (scale,), (scale,)],
                   node("GroupNormalization", "w0 w1 w2", num_groups=2), symbolic=symbolic)
    for shape, axis in (((3, 5), -1), ((2, 3, 4), -2), ((2, 3, 4), 2), ((2, 3), 0)):
        at = axis % len(shape)
        yield Case(f"LayerNormalization {shape} {axis}{s}", [shape, shape[at:], shape[at:]],
                   node("LayerNormalization", "w0 w1 w2", axis=axis), symbolic=symbolic)
        yield Case(f"LayerNormalization without bias {shape} {axis}{s}", [shape, shape[at:]],
                   node("LayerNormalization", "w0 w1", axis=axis), symbolic=symbolic)


def norms(single):
    for shape in ((4, 3), (4, 3, 5), (2, 3, 20, 24), (7, 130, 4, 4)):
        c = (shape[1],)
        mean, var = np.full(c, 0.5, np.float32), np.full(c, 2.0, np.float32)
        yield single("BatchNormalization", shape, c, c, mean, var, epsilon=0.01)
        yield single("BatchNormalization", shape, c, c, mean, var, n_out=3, training_mode=1,
                     momentum=0.75)
        yield single("BatchNormalizationTrain", shape, c, c, n_out=3, domain="ai.weft")
        yield single("BatchNormalizationGrad", shape, shape, c, n_out=3, training_mode=1,
                     domain="ai.weft")
        yield single("BatchNormalizationGrad", shape, shape, c, mean, var, n_out=3,
                     domain="ai.weft")
        if len(shape) > 2:
            yield single("InstanceNormalization", shape, c, c)
            yield single("GroupNormalizationGrad", shape, shape, c, n_out=3, domain="ai.weft")
    for scale in (4, 32):
        yield single("GroupNormalization", (3, 32, 9, 11), (scale,), (scale,), num_groups=4)
        yield single("GroupNormalizationGrad", (3, 32, 9, 11), (3, 32, 9, 11), (scale,), n_out=3,
                     num_groups=4, domain="ai.weft")
    for shape, axis in (((3, 5), -1), ((6, 300, 40), -2), ((70, 384), 1)):
        row = shape[axis % len(shape):]
        yield single("LayerNormalization", shape, row, row, axis=axis, n_out=3)
        yield single("LayerNormalizationGrad", shape, shape, row, axis=axis, n_out=3,
                     domain="ai.weft")
        yield single("RMSNormalizationGrad", shape, shape, row, axis=axis, n_out=2,
                     domain="ai.weft")


def singles(single):
    yield from norms(single)
    for name, x, w, attrs in convolutions():
        yield single("Conv", x, w, (w[0],), **attrs)
        yield single("Conv", x, w, **attrs)
    for x, w, attrs in (((3, 16, 33, 20), (24, 16, 3, 3), dict(pads=[1, 1, 1, 1])),
                        ((2, 3, 64, 65), (8, 3, 7, 7), dict(pads=[3, 3, 3, 3], strides=[2, 2])),
                        ((2, 32, 30, 31), (32, 1, 3, 3), dict(pads=[1, 1, 1, 1], group=32)),
                        ((2, 64, 14, 14), (128, 64, 1, 1), dict(strides=[2, 2])),
                        ((1, 300, 40, 100), (8, 300, 3, 3), {}),
                        ((0, 3, 5, 5), (4, 3, 3, 3), {})):
        yield single("Conv", x, w, **attrs)
    for name, x, w, attrs in transposed():
        yield single("ConvTranspose", x, w, (w[1] * attrs.get("group", 1),), **attrs)
    for name, x, attrs in poolings():
        for dtype in (np.float32, np.float64):
            yield single("MaxPool", (x, dtype), **attrs)
            if name != "dilated":
                yield single("AveragePool", (x, dtype), **attrs)
        yield single("LpPool", x, **attrs)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape in ((2, 3, 4), (2, 3, 17, 19), (2, 2, 2, 3, 2), (1, 1, 200, 200)):
            yield single(op, shape)

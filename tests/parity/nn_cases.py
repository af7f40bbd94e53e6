# SPDX-License-Identifier: Apache-2.0
"""Cases of convolution, pooling, normalisation, resizing and recurrence, for onnx_gradients.py and
kernels.py."""
import numpy as np

import weft_nn


def convolutions():
    """(name, shape of x, shape of w, attributes)"""
    yield "plain", (2, 3, 5, 6), (4, 3, 3, 3), {}
    yield "1d", (2, 3, 9), (4, 3, 3), dict(strides=[2], pads=[1, 0], dilations=[2])
    yield "3d", (1, 2, 4, 3, 5), (2, 2, 2, 3, 2), dict(strides=[2, 1, 2], pads=[1, 1, 0, 0, 1, 1])
    yield "groups", (2, 4, 5, 5), (6, 2, 3, 3), dict(group=2, pads=[1, 1, 1, 1])
    yield "depthwise", (2, 3, 6, 5), (3, 1, 3, 3), dict(group=3, pads=[1, 1, 1, 1], strides=[2, 1])
    yield "depthwise of one", (2, 3, 4, 5), (3, 1, 1, 1), dict(group=3)
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
    yield "depthwise of one", (2, 3, 4, 5), (3, 1, 1, 1), dict(group=3)
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
        yield from recurrent_gradients(Case, node, s, symbolic)
        yield from resize_gradients(Case, node, s, symbolic)


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
    for size in (3, 4):
        yield Case(f"LRN {size}{s}", [(2, 5, 3, 2)],
                   node("LRN", "w0", size=size, alpha=0.5, bias=1.5), symbolic=symbolic)
    for scale in (2, 4):
        yield Case(f"GroupNormalization {scale} scales{s}", [(2, 4, 3, 2), (scale,), (scale,)],
                   node("GroupNormalization", "w0 w1 w2", num_groups=2), symbolic=symbolic)
    for shape, axis in (((3, 5), -1), ((2, 3, 4), -2), ((2, 3, 4), 2), ((2, 3), 0)):
        at = axis % len(shape)
        yield Case(f"LayerNormalization {shape} {axis}{s}", [shape, shape[at:], shape[at:]],
                   node("LayerNormalization", "w0 w1 w2", axis=axis), symbolic=symbolic)
        yield Case(f"LayerNormalization without bias {shape} {axis}{s}", [shape, shape[at:]],
                   node("LayerNormalization", "w0 w1", axis=axis), symbolic=symbolic)


def recurrences():
    """(operation, gates, name, attributes)"""
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        yield op, gates, "forward", {}
        yield op, gates, "reverse", dict(direction="reverse")
        yield op, gates, "bidirectional", dict(direction="bidirectional")
        yield op, gates, "batch first", dict(direction="bidirectional", layout=1)
        yield op, gates, "clip", dict(clip=0.6)
    yield "GRU", 3, "linear", dict(linear_before_reset=1)
    yield "GRU", 3, "linear both", dict(linear_before_reset=1, direction="bidirectional")
    yield "RNN", 1, "relu", dict(activations=["Relu", "Tanh"], direction="bidirectional")


def recurrent_inputs(op, gates, attrs, steps=4, batch=3, size=2, hidden=3):
    """Shapes of X, W, R, B, initial_h (and initial_c, P)."""
    dirs, first = 2 if attrs.get("direction") == "bidirectional" else 1, attrs.get("layout")
    state = (batch, dirs, hidden) if first else (dirs, batch, hidden)
    shapes = [(batch, steps, size) if first else (steps, batch, size),
              (dirs, gates * hidden, size), (dirs, gates * hidden, hidden),
              (dirs, 2 * gates * hidden), state]
    return shapes + ([state, (dirs, 3 * hidden)] if op == "LSTM" else [])


def recurrent_gradients(Case, node, s, symbolic):
    lens = {"l": np.array([4, 2, 3], np.int32)}
    for op, gates, name, attrs in recurrences():
        shapes = recurrent_inputs(op, gates, attrs)
        rest = " w5 w6" if op == "LSTM" else ""
        a = dict(attrs, hidden_size=3)
        if symbolic and name not in ("forward", "batch first"):
            continue
        yield Case(f"{op} {name}{s}", shapes, node(op, f"w0 w1 w2 w3 l w4{rest}", **a), consts=lens,
                   symbolic=symbolic)
        if not symbolic:
            yield Case(f"{op} {name} without lengths", shapes[:3], node(op, "w0 w1 w2", **a))
    if not symbolic:
        # Gradients of the last states, and of all outputs at once.
        for op, gates, outs in (("LSTM", 4, "a y b"), ("LSTM", 4, "a b y"), ("GRU", 3, "a y"),
                                ("RNN", 1, "a y")):
            yield Case(f"{op} states {outs}", recurrent_inputs(op, gates, {}),
                       node(op, "w0 w1 w2 w3 l w4" + (" w5 w6" if op == "LSTM" else ""), outs,
                            hidden_size=3), consts=lens)
        yield Case("LSTM all outputs", recurrent_inputs("LSTM", 4, {}),
                   node("LSTM", "w0 w1 w2 w3 l w4 w5 w6", "a b c", hidden_size=3),
                   node("ReduceSum", "a s", "d", keepdims=0), node("Add", "b c", "e"),
                   node("Mul", "d e"), consts=dict(lens, s=np.array([0])))


def resizes():
    """(sizes or scales, attributes)"""
    for by in (dict(sizes=np.array([1, 1, 7, 5])), dict(sizes=np.array([1, 1, 2, 3])),
               dict(scales=np.array([1, 1, 2, 1.5], np.float32))):
        for how in ("half_pixel", "align_corners", "asymmetric"):
            for rounding in ("floor", "ceil", "round_prefer_floor")[how != "half_pixel" and 2:]:
                yield by, dict(mode="nearest", coordinate_transformation_mode=how,
                               nearest_mode=rounding)
            for mode in ("linear", "cubic"):
                yield by, dict(mode=mode, coordinate_transformation_mode=how)
    yield dict(sizes=np.array([6, 9])), dict(mode="linear", axes=[3, 2])
    for by in (dict(sizes=np.array([1, 1, 2, 3])), dict(scales=np.array([1, 1, 0.6, 1.5], np.float32))):
        for mode, outside in (("linear", 0), ("linear", 1), ("cubic", 0), ("cubic", 1)):
            yield by, dict(mode=mode, antialias=1, exclude_outside=outside)
    for mode in ("nearest", "linear", "cubic"):
        yield dict(sizes=np.array([1, 1, 3, 5]), roi=np.array([0, 0, 0.2, -0.3, 1, 1, 0.8, 0.9])), \
            dict(mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
                 extrapolation_value=2.0)


def resize_gradients(Case, node, s, symbolic):
    for by, attrs in resizes():
        roi = "roi" if "roi" in by else "|"
        text = node("Resize", f"w0 {roi} | sizes" if "sizes" in by else "w0 | scales", **attrs)
        text.input[:] = ["" if i == "|" else i for i in text.input]
        yield Case(f"Resize {by} {attrs}{s}", [(1, 1, 4, 4)], text, consts=by,
                   symbolic=symbolic and "sizes" in by)


def norms(single):
    yield single("LRN", (2, 7, 5, 4), size=3, alpha=0.5)
    yield single("LRNGrad", (2, 7, 5, 4), (2, 7, 5, 4), size=4, alpha=0.5, domain="ai.weft")
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
    for shape, axis in (((3, 5), -1), ((6, 300, 40), -2), ((70, 384), 1), ((300, 24), -1), ((21, 768), -1),
                        ((19, 1000), -1), ((5, 1040), -1), ((3, 8188), -1)):
        row = shape[axis % len(shape):]
        yield single("LayerNormalization", shape, row, row, axis=axis, n_out=3)
        yield single("LayerNormalizationGrad", shape, shape, row, axis=axis, n_out=3,
                     domain="ai.weft")
        yield single("RMSNormalizationGrad", shape, shape, row, axis=axis, n_out=2,
                     domain="ai.weft")


def kept(single):
    """The forms that keep their activations, and gradients that take what was kept."""
    lens, rng = np.array([4, 0, 3], np.int32), np.random.default_rng(7)
    for op, gates, name, attrs in recurrences():
        if op == "RNN" or name == "clip":
            continue
        lstm = op == "LSTM"
        given = [rng.normal(0, 0.5, v).astype(np.float32)
                 for v in recurrent_inputs(op, gates, attrs)]
        given.insert(4, lens)
        yield single(op + "Keep", *given, n_out=5 if lstm else 4, domain="ai.weft", hidden_size=3,
                     **attrs)
        y, *states, activations, beside = weft_nn.recurrent_kept(op, given, attrs)
        upstream = [rng.normal(0, 1, v.shape).astype(np.float32) for v in [y] + states]
        yield single(op + "Grad", *upstream, *given, y, activations, beside, domain="ai.weft",
                     n_out=7 if lstm else 5, hidden_size=3, **attrs)


def resized(single):
    x, roi = (1, 1, 4, 5), np.array([0, 0, 0.25, -0.25, 1, 1, 0.75, 0.875], np.float32)
    for dtype in (np.float32, np.float64, np.uint8, np.int32, np.int64):
        for sizes in ([1, 1, 7, 3], [1, 1, 4, 5], [1, 1, 1, 12]):
            yield single("Resize", (x, dtype), None, None, sizes)
    for mode in ("nearest", "linear", "cubic"):
        yield single("Resize", (2, 3, 6, 5), None, None, [2, 3, 11, 2], mode=mode, antialias=mode != "nearest")
        yield single("ResizeGrad", (2, 3, 11, 2), (2, 3, 6, 5), None, None, [2, 3, 11, 2], mode=mode,
                     antialias=mode != "nearest", domain="ai.weft")
        # The roi is not known before the run; once it goes backwards.
        for given in (roi, np.flip(roi.reshape(2, 4), 0).ravel()):
            yield single("ResizeGrad", (1, 1, 3, 6), x, given, None, [1, 1, 3, 6], mode=mode,
                         coordinate_transformation_mode="tf_crop_and_resize", domain="ai.weft")
            yield single("Resize", x, given, None, [1, 1, 3, 6], mode=mode, extrapolation_value=2.0,
                         coordinate_transformation_mode="tf_crop_and_resize")


def small_products(single):
    for dtype in (np.float32, np.float64):
        for shape in ((3, 3), (4, 1, 1), (2, 3, 7, 7)):
            yield single("Det", (shape, dtype))
        # Pivots that are equal, that are 0, and a NaN.
        yield single("Det", np.array([[[0, 2], [3, 0]], [[1, 2], [-1, 4]], [[0, 1], [0, 2]],
                                      [[1, np.nan], [2, 3]]], dtype))
        x = np.array([[1, 3, 3, -1], [-np.inf, -np.inf, -np.inf, -np.inf], [2, 2, 2, 2]], dtype)
        yield single("Hardmax", x)
        yield single("Hardmax", x, axis=0)
    a, b = ((5, 40), np.uint8), ((40, 33), np.uint8)
    yield single("MatMulInteger", a, b)
    yield single("MatMulInteger", a, b, np.array(3, np.uint8), np.array(5, np.uint8))
    yield single("MatMulInteger", a, b, None, np.arange(33, dtype=np.uint8))
    # More than an int32 holds: 255 * 255 * 40000 wraps.
    yield single("MatMulInteger", np.full((1, 40000), 255, np.uint8), np.full((40000, 2), 255, np.uint8))
    for dtype in (np.float64, np.int32, np.int64, np.bool_, np.uint8):
        labels = (np.arange(50) % 3 == 0).astype(dtype)
        yield single("ScoreKeys", (50,), labels, domain="ai.weft", logits=1)
        yield single("ScoreKeys", ((50,), np.float64), labels, domain="ai.weft")


def max_pool_gradients(single):
    """Of windows that are tiles, that are apart with elements between them, and that overlap; most have
    several elements that equal the largest."""
    rng = np.random.default_rng(11)
    windows = [(x, attrs) for _, x, attrs in poolings()]
    for shape, kernel, stride, pad in (((3, 5, 8, 12), 2, 2, 0), ((3, 5, 9, 13), 2, 2, 0), ((2, 3, 10, 9), 2, 3, 1),
                                       ((2, 3, 9, 12), 3, 3, 0), ((2, 3, 11, 11), 3, 4, 1), ((2, 3, 15, 14), 3, 2, 1),
                                       ((2, 3, 6, 7), 2, 1, 0), ((2, 2, 12, 8), 4, 4, 0)):
        windows.append((shape, dict(kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)))
    for shape, attrs in windows:
        x = np.round(2 * rng.normal(0, 1.5, shape)).astype(np.float32) / 2
        window = weft_nn.pool_window(x, **attrs)
        padded = window.pad(x, -np.inf)
        y = np.max([padded[at] for _, at in window.taps()], axis=0)
        yield single("MaxPool", x, **attrs)
        yield single("MaxPoolGrad", rng.normal(0, 1, y.shape).astype(np.float32), x, y, domain="ai.weft", **attrs)


def singles(single):
    yield from norms(single)
    for op, gates, name, attrs in recurrences():
        x, w, r, b, *states = recurrent_inputs(op, gates, attrs, 7, 5, 33, 20)
        small = [(np.random.default_rng(7).normal(0, 0.2, v)).astype(np.float32) for v in (w, r, b)]
        yield single(op, x, *small, np.array([7, 0, 3, 5, 1], np.int32), *states,
                     n_out=3 if op == "LSTM" else 2, hidden_size=20, **attrs)
    # Enough work for several parts of the batch, which threads take through all steps.
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        x, w, r, b, *states = recurrent_inputs(op, gates, {}, 6, 37, 32, 96)
        small = [(np.random.default_rng(7).normal(0, 0.1, v)).astype(np.float32) for v in (w, r, b)]
        yield single(op, x, *small, np.arange(37, dtype=np.int32) % 7, *states,
                     n_out=3 if op == "LSTM" else 2, hidden_size=96)
    yield from kept(single)
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
        yield single("MaxPool", (x, np.uint8), **attrs)
    yield from max_pool_gradients(single)
    yield from resized(single)
    yield from small_products(single)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        for shape in ((2, 3, 4), (2, 3, 17, 19), (2, 2, 2, 3, 2), (1, 1, 200, 200)):
            yield single(op, shape)

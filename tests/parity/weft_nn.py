# SPDX-License-Identifier: Apache-2.0
"""The plain meaning in numpy of weft's own operations of convolution, pooling, normalisation and
recurrence, and of those of ONNX where its reference evaluator is slow or knows fewer forms.
"""
import numpy as np
from onnx.reference.op_run import OpRun


class Weft(OpRun):
    op_domain = "ai.weft"


class Window:
    """Where the window of a convolution or pooling reads: tap by tap, slices of the padded input."""

    def __init__(self, size, kernel, strides=None, dilations=None, pads=None, auto_pad=None,
                 ceil_mode=0, outputs=None):
        n = len(size)
        self.size, self.kernel = list(size), list(kernel)
        self.strides, self.dilations = list(strides or [1] * n), list(dilations or [1] * n)
        self.reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        pads = list(pads or [0] * 2 * n)
        self.before, self.after, self.out = pads[:n], pads[n:], list(outputs or [0] * n)
        for i in range(n):
            if outputs:
                pass
            elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
                self.out[i] = -(-size[i] // self.strides[i])
                total = max((self.out[i] - 1) * self.strides[i] + self.reach[i] - size[i], 0)
                small, large = total // 2, total - total // 2
                self.before[i], self.after[i] = (
                    (small, large) if auto_pad == "SAME_UPPER" else (large, small))
            else:
                span = size[i] + self.before[i] + self.after[i] - self.reach[i]
                self.out[i] = span // self.strides[i] + 1
                if ceil_mode and span % self.strides[i] and \
                        self.out[i] * self.strides[i] < size[i] + self.before[i]:
                    self.out[i] += 1
        # Room behind for windows that reach past what was padded.
        self.room = [max((o - 1) * s + r - b, z) for o, s, r, b, z in zip(
            self.out, self.strides, self.reach, self.before, size)]

    def pad(self, x, value=0):
        lead = x.ndim - len(self.size)
        wide = [(0, 0)] * lead + [(b, r - z) for b, r, z in zip(self.before, self.room, self.size)]
        return np.pad(x, wide, constant_values=value)

    def crop(self, padded):
        return padded[(...,) + tuple(slice(b, b + z) for b, z in zip(self.before, self.size))]

    def taps(self):
        for tap in np.ndindex(*self.kernel):
            yield tap, (...,) + tuple(
                slice(t * d, t * d + (o - 1) * s + 1, s)
                for t, d, o, s in zip(tap, self.dilations, self.out, self.strides))


def conv_forward(window, x, w, group):
    padded, y = window.pad(x), 0
    g = padded.reshape(x.shape[0], group, x.shape[1] // group, *padded.shape[2:])
    wg = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    for tap, at in window.taps():
        y = y + np.einsum("ngc...,gmc->ngm...", g[at], wg[(...,) + tap])
    return y.reshape(x.shape[0], w.shape[0], *window.out).astype(x.dtype)


def conv_data(window, y, w, group):
    wg = w.reshape(group, w.shape[0] // group, *w.shape[1:])
    yg = y.reshape(y.shape[0], group, y.shape[1] // group, *y.shape[2:])
    x = window.pad(np.zeros((y.shape[0], group, w.shape[1], *window.size), y.dtype))
    for tap, at in window.taps():
        x[at] += np.einsum("ngm...,gmc->ngc...", yg, wg[(...,) + tap])
    return window.crop(x).reshape(y.shape[0], group * w.shape[1], *window.size)


def conv_weights(window, y, x, shape, group):
    padded = window.pad(x)
    xg = padded.reshape(x.shape[0], group, x.shape[1] // group, *padded.shape[2:])
    yg = y.reshape(y.shape[0], group, y.shape[1] // group, *y.shape[2:])
    w = np.zeros((group, shape[0] // group, *shape[1:]), y.dtype)
    for tap, at in window.taps():
        w[(...,) + tap] = np.einsum("ngms,ngcs->gmc", yg.reshape(*yg.shape[:3], -1),
                                    xg[at].reshape(*xg.shape[:3], -1))
    return w.reshape(shape)


def conv_window(x, w, auto_pad=None, dilations=None, kernel_shape=None, pads=None, strides=None):
    return Window(x.shape[2:], w.shape[2:], strides, dilations, pads, auto_pad)


def transposed_window(x, w, auto_pad=None, dilations=None, kernel_shape=None, output_padding=None,
                      output_shape=None, pads=None, strides=None):
    n = x.ndim - 2
    plain = Window(x.shape[2:], w.shape[2:], strides, dilations, pads, outputs=x.shape[2:])
    more = output_padding or [0] * n
    full = [(z - 1) * s + r + m
            for z, s, r, m in zip(x.shape[2:], plain.strides, plain.reach, more)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not output_shape:
        output_shape = [z * s for z, s in zip(x.shape[2:], plain.strides)]
    if output_shape:
        total = [max(f - o, 0) for f, o in zip(full, output_shape)]
        before = [t // 2 if auto_pad == "SAME_UPPER" else t - t // 2 for t in total]
        after = [t - b for t, b in zip(total, before)]
        size = list(output_shape)
    else:
        before, after = plain.before, plain.after
        size = [f - b - a for f, b, a in zip(full, before, after)]
    return Window(size, w.shape[2:], strides, dilations, before + after, outputs=x.shape[2:])


class Conv(OpRun):
    """onnx's own reference loops over elements and knows fewer forms."""
    op_domain = ""

    def _run(self, x, w, b=None, group=None, **attrs):
        y = conv_forward(conv_window(x, w, **attrs), x, w, group or 1)
        return (y if b is None else y + b.reshape(-1, *[1] * (x.ndim - 2)),)


class ConvDataGrad(Weft):
    def _run(self, dy, w, x, group=None, **attrs):
        return (conv_data(conv_window(x, w, **attrs), dy, w, group or 1),)


class ConvWeightGrad(Weft):
    def _run(self, dy, x, w, group=None, **attrs):
        return (conv_weights(conv_window(x, w, **attrs), dy, x, w.shape, group or 1),)


class ConvTranspose(OpRun):
    op_domain = ""

    def _run(self, x, w, b=None, group=None, **attrs):
        y = conv_data(transposed_window(x, w, **attrs), x, w, group or 1)
        return (y if b is None else y + b.reshape(-1, *[1] * (x.ndim - 2)),)


class ConvTransposeDataGrad(Weft):
    def _run(self, dy, w, x, group=None, **attrs):
        return (conv_forward(transposed_window(x, w, **attrs), dy, w, group or 1),)


class ConvTransposeWeightGrad(Weft):
    def _run(self, dy, x, w, group=None, **attrs):
        return (conv_weights(transposed_window(x, w, **attrs), x, dy, w.shape, group or 1),)


def pool_window(x, kernel_shape=None, auto_pad=None, ceil_mode=None, dilations=None, pads=None,
                strides=None, **_):
    return Window(x.shape[2:], kernel_shape or x.shape[2:], strides, dilations, pads, auto_pad,
                  ceil_mode)


def pool_shares(window, x, count_include_pad):
    """1 / how many taps of each output count."""
    if count_include_pad:
        return 1 / np.prod(window.kernel)
    inside = window.pad(np.ones(x.shape[2:]))
    return 1 / np.maximum(sum(inside[at] for _, at in window.taps()), 1)


class AveragePool(OpRun):
    op_domain = ""

    def _run(self, x, count_include_pad=None, **attrs):
        window = pool_window(x, **attrs)
        padded = window.pad(x)
        y = sum(padded[at] for _, at in window.taps()) * pool_shares(window, x, count_include_pad)
        return (y.astype(x.dtype),)


class AveragePoolGrad(Weft):
    def _run(self, dy, x, count_include_pad=None, **attrs):
        window = pool_window(x, **attrs)
        dx = window.pad(np.zeros_like(x))
        for _, at in window.taps():
            dx[at] += dy * pool_shares(window, x, count_include_pad)
        return (window.crop(dx).astype(x.dtype),)


class MaxPool(OpRun):
    """onnx's own places SAME_LOWER's padding elsewhere."""
    op_domain = ""

    def _run(self, x, storage_order=None, **attrs):
        window = pool_window(x, **attrs)
        padded = window.pad(x, -np.inf)
        return (np.max([padded[at] for _, at in window.taps()], axis=0),)


class GlobalMaxPool(OpRun):
    """onnx's own knows two spatial axes."""
    op_domain = ""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class MaxPoolGrad(Weft):
    def _run(self, dy, x, y, storage_order=None, **attrs):
        window = pool_window(x, **attrs)
        padded, dx = window.pad(x, -np.inf), window.pad(np.zeros_like(x))
        left = np.ones(y.shape, bool)
        for _, at in window.taps():
            hit = left & (padded[at] == y)
            dx[at] += np.where(hit, dy, 0)
            left &= ~hit
        return (window.crop(dx),)


class LpPool(OpRun):
    op_domain = ""

    def _run(self, x, p=None, **attrs):
        window = pool_window(x, **attrs)
        padded = np.abs(window.pad(x)) ** (p or 2)
        y = sum(padded[at] for _, at in window.taps()) ** (1 / (p or 2))
        return (y.astype(x.dtype),)


class LpPoolGrad(Weft):
    def _run(self, dy, x, y, p=None, **attrs):
        window, p = pool_window(x, **attrs), p or 2
        padded, dx = window.pad(x), window.pad(np.zeros_like(x))
        safe = np.where(y == 0, 1, y)
        for _, at in window.taps():
            dx[at] += dy * np.sign(padded[at]) * (np.abs(padded[at]) / safe) ** (p - 1)
        return (window.crop(dx),)


def per_channel(values, x):
    return values.reshape(-1, *[1] * (x.ndim - 2))


class BatchNormalizationTrain(Weft):
    def _run(self, x, scale, bias, epsilon=None):
        epsilon = 1e-5 if epsilon is None else epsilon
        axes = tuple(i for i in range(x.ndim) if i != 1)
        mean, var = x.mean(axis=axes), x.var(axis=axes)
        inv = 1 / np.sqrt(var + epsilon)
        y = (x - per_channel(mean, x)) * per_channel(inv * scale, x) + per_channel(bias, x)
        return (y.astype(x.dtype), mean, var)


class BatchNormalizationGrad(Weft):
    def _run(self, dy, x, scale, mean=None, var=None, epsilon=None, training_mode=None):
        epsilon = 1e-5 if epsilon is None else epsilon
        dtype, axes = x.dtype, tuple(i for i in range(x.ndim) if i != 1)
        dy, x, scale = wide(dy, x, scale)
        if mean is None:
            mean, var = x.mean(axis=axes), x.var(axis=axes)
        inv = per_channel(1 / np.sqrt(var + epsilon), x)
        hat = (x - per_channel(mean, x)) * inv
        dscale, dbias, g = (dy * hat).sum(axis=axes), dy.sum(axis=axes), dy
        if training_mode:
            g = dy - (per_channel(dbias, x) + hat * per_channel(dscale, x)) / (x.size / x.shape[1])
        return in_doubles(dtype, (g * inv * per_channel(scale, x), dscale, dbias))


def grouped(x, groups, epsilon):
    rows = x.reshape(x.shape[0], groups, -1)
    mean, var = rows.mean(axis=2, keepdims=True), rows.var(axis=2, keepdims=True)
    inv = 1 / np.sqrt(var + (1e-5 if epsilon is None else epsilon))
    return ((rows - mean) * inv).reshape(x.shape), inv


def to_channels(values, x):
    return per_channel(np.repeat(values, x.shape[1] // len(values)), x)


class GroupNormalization(OpRun):
    """onnx's own knows a scale for each group, or for each channel, by opset."""
    op_domain = ""

    def _run(self, x, scale, bias, epsilon=None, num_groups=None, stash_type=None):
        hat, _ = grouped(x, num_groups, epsilon)
        return ((hat * to_channels(scale, x) + to_channels(bias, x)).astype(x.dtype),)


class GroupNormalizationGrad(Weft):
    def _run(self, dy, x, scale, epsilon=None, num_groups=None):
        groups, dtype = num_groups or x.shape[1], x.dtype
        dy, x, scale = wide(dy, x, scale)
        hat, inv = grouped(x, groups, epsilon)
        g = (dy * to_channels(scale, x)).reshape(x.shape[0], groups, -1)
        h = hat.reshape(g.shape)
        dx = inv * (g - g.mean(axis=2, keepdims=True) - h * (g * h).mean(axis=2, keepdims=True))
        parts = [v.reshape(x.shape[0], len(scale), -1).sum(axis=(0, 2)) for v in (dy * hat, dy)]
        return in_doubles(dtype, (dx.reshape(x.shape), *parts))


def norm_row(x, axis, epsilon, rms):
    axes = tuple(range((-1 if axis is None else axis) % x.ndim, x.ndim))
    mean = 0 if rms else x.mean(axis=axes, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    inv = 1 / np.sqrt(var + (1e-5 if epsilon is None else epsilon))
    return axes, (x - mean) * inv, inv


def norm_row_grad(dy, x, scale, axis, epsilon, rms):
    axes, hat, inv = norm_row(x, axis, epsilon, rms)
    g = dy * scale
    dx = g - hat * (g * hat).mean(axis=axes, keepdims=True)
    if not rms:
        dx = dx - g.mean(axis=axes, keepdims=True)
    lead = tuple(range(axes[0]))
    return tuple(v.astype(x.dtype) for v in (
        inv * dx, (dy * hat).sum(axis=lead).reshape(scale.shape),
        dy.sum(axis=lead).reshape(scale.shape)))


def wide(*values):
    return [v.astype(np.float64) for v in values]


def in_doubles(dtype, values):
    """Rounded once: a reference that sums in f32 is no nearer than what it is held against."""
    return tuple(v.astype(dtype) for v in values)


class LayerNormalizationGrad(Weft):
    def _run(self, dy, x, scale, axis=None, epsilon=None):
        return in_doubles(x.dtype, norm_row_grad(*wide(dy, x, scale), axis, epsilon, False))


class RMSNormalization(OpRun):
    """Of opset 23."""
    op_domain = ""

    def _run(self, x, scale, axis=None, epsilon=None, stash_type=None):
        return ((norm_row(x, axis, epsilon, True)[1] * scale).astype(x.dtype),)


class RMSNormalizationGrad(Weft):
    def _run(self, dy, x, scale, axis=None, epsilon=None):
        return in_doubles(x.dtype, norm_row_grad(*wide(dy, x, scale), axis, epsilon, True)[:2])


def recurrent(kind, x, w, r, b=None, lens=None, h0=None, c0=None, p=None, activations=None,
              clip=None, direction=None, layout=None, linear_before_reset=None, kept=None,
              **_):
    """Y, Y_h and Y_c, step by step; every direction, of complex numbers too. kept: two arrays that
    take the activations and what lies beside them."""
    if layout:
        x = x.swapaxes(0, 1)
        h0, c0 = (None if v is None else v.swapaxes(0, 1) for v in (h0, c0))
    steps, batch, _ = x.shape
    dirs, hidden = r.shape[0], r.shape[2]
    gates = w.shape[1] // hidden
    kinds = [v.dtype for v in (x, w, r, b, h0, c0, p) if v is not None]
    y = np.zeros((steps, dirs, batch, hidden), np.result_type(*kinds))
    yh, yc = np.zeros(y.shape[1:], y.dtype), np.zeros(y.shape[1:], y.dtype)

    def cut(v):
        return v if not clip else np.where(np.abs(v.real) > clip, np.sign(v.real) * clip, v)

    def sigmoid(v):
        return 1 / (1 + np.exp(-cut(v)))

    def tanh(v):
        return np.tanh(cut(v))

    for d in range(dirs):
        relu = activations and activations[d].lower() == "relu"
        wb, rb = (np.zeros(gates * hidden),) * 2 if b is None else np.split(b[d], 2)
        wx, rh, wb, rb = np.split(w[d], gates), np.split(r[d], gates), np.split(wb, gates), \
            np.split(rb, gates)
        pi, po, pf = np.zeros((3, hidden)) if p is None else np.split(p[d], 3)
        for n in range(batch):
            h = np.zeros(hidden, y.dtype) if h0 is None else h0[d, n]
            c = np.zeros(hidden, y.dtype) if c0 is None else c0[d, n]
            times = range(steps if lens is None else lens[n])
            for t in reversed(times) if direction == "reverse" or d == 1 else times:
                g = [wx[k] @ x[t, n] + wb[k] for k in range(gates)]
                if kind == "RNN":
                    v = g[0] + rh[0] @ h + rb[0]
                    h = np.where(v.real > 0, cut(v), 0) if relu else tanh(v)
                elif kind == "LSTM":
                    v = [g[k] + rh[k] @ h + rb[k] for k in range(4)]
                    i, f, n_ = sigmoid(v[0] + pi * c), sigmoid(v[2] + pf * c), tanh(v[3])
                    c = f * c + i * n_
                    o = sigmoid(v[1] + po * c)
                    h, made = o * tanh(c), ((i, o, f, n_), c)
                else:
                    z, q = (sigmoid(g[k] + rh[k] @ h + rb[k]) for k in range(2))
                    beside = rh[2] @ h + rb[2] if linear_before_reset else q * h
                    if linear_before_reset:
                        v = tanh(g[2] + q * beside)
                    else:
                        v = tanh(g[2] + rh[2] @ beside + rb[2])
                    h, made = (1 - z) * v + z * h, ((z, q, v), beside)
                y[t, d, n] = h
                if kept:
                    kept[0][d, t, n], kept[1][d, t, n] = np.concatenate(made[0]), made[1]
            yh[d, n], yc[d, n] = h, c
    if layout:
        return y.transpose(2, 0, 1, 3), yh.swapaxes(0, 1), yc.swapaxes(0, 1)
    return y, yh, yc


def recurrent_grad(kind, upstream, inputs, attrs):
    """By the complex step: exact, of whatever recurrent() says."""
    tiny, grads = 1e-30, []
    for k, value in enumerate(inputs):
        if k == 4:
            continue
        if value is None:
            grads.append(np.zeros(0, inputs[0].dtype))
            continue
        grad = np.zeros(value.shape)
        for at in np.ndindex(*value.shape):
            moved = value.astype(np.complex128)
            moved[at] += 1j * tiny
            made = recurrent(kind, *inputs[:k], moved, *inputs[k + 1:], **attrs)
            grad[at] = sum((u * v.imag).sum() for u, v in zip(upstream, made) if u is not None) \
                / tiny
        grads.append(grad.astype(value.dtype))
    return tuple(grads)


class Recurrent(OpRun):
    """onnx's own know one direction and no lengths."""
    op_domain = ""

    def _run(self, *inputs, **attrs):
        made = recurrent(type(self).__name__, *inputs, **attrs)
        return tuple(v.astype(inputs[0].dtype) for v in made[:len(self.output)])


class LSTM(Recurrent):
    pass


class GRU(Recurrent):
    pass


class RNN(Recurrent):
    pass


class LSTMGrad(Weft):
    def _run(self, *inputs, **attrs):
        return recurrent_grad("LSTM", inputs[:3], inputs[3:11], attrs)[:len(self.output)]


class GRUGrad(Weft):
    def _run(self, *inputs, **attrs):
        return recurrent_grad("GRU", inputs[:2], inputs[2:8], attrs)[:len(self.output)]


class RNNGrad(Weft):
    def _run(self, *inputs, **attrs):
        return recurrent_grad("RNN", inputs[:2], inputs[2:8], attrs)[:len(self.output)]


def recurrent_kept(kind, inputs, attrs):
    """What the operation gives, and the activations and what lies beside them."""
    steps, batch = inputs[0].shape[:2][::-1 if attrs.get("layout") else 1]
    dirs, rows, hidden = inputs[2].shape
    kept = [np.zeros((dirs, steps, batch, n), inputs[0].dtype) for n in (rows, hidden)]
    made = recurrent(kind, *inputs, **attrs, kept=kept)
    return [v.astype(inputs[0].dtype) for v in made[:3 if kind == "LSTM" else 2]] + kept


class LSTMKeep(Weft):
    def _run(self, *inputs, **attrs):
        return tuple(recurrent_kept("LSTM", inputs, attrs))


class GRUKeep(Weft):
    def _run(self, *inputs, **attrs):
        return tuple(recurrent_kept("GRU", inputs, attrs))


class ResizeGrad(Weft):
    """By the matrix of each axis."""

    def _run(self, dy, x, roi=None, scales=None, sizes=None, **attrs):
        for axis in range(x.ndim):
            n = x.shape[axis]
            matrix = resize_matrix(axis, n, dy.shape[axis], roi, scales, x.ndim, **attrs)
            dy = np.moveaxis(np.tensordot(np.moveaxis(dy, axis, -1), matrix, 1), -1, axis)
        return (dy.astype(x.dtype),)


def resize_matrix(axis, n, out, roi, scales, rank, axes=None, mode=None, nearest_mode=None,
                  coordinate_transformation_mode=None, cubic_coeff_a=None, antialias=0,
                  exclude_outside=0, **_):
    """[out, n]"""
    listed = list(range(rank)) if axes is None else [a % rank for a in axes]
    scale, matrix = out / n, np.zeros((out, n))
    if axis in listed and scales is not None and scales.size:
        scale = float(scales[listed.index(axis)])
    a = -0.75 if cubic_coeff_a is None else cubic_coeff_a
    squeeze = min(scale, 1) if antialias else 1
    reach = int(np.ceil((1 if mode == "linear" else 2) / squeeze)) + 1
    for o in range(out):
        how = coordinate_transformation_mode or "half_pixel"
        if how == "tf_crop_and_resize":
            start, end = roi[axis], roi[rank + axis]
            at = (start + end) * (n - 1) / 2
            if out > 1:
                at = start * (n - 1) + o * (end - start) * (n - 1) / (out - 1)
            if at < 0 or at > n - 1:
                continue
        elif n == out and scale == 1:
            at = o
        elif how == "align_corners":
            at = o * (n - 1) / (scale * n - 1)
        elif how == "asymmetric":
            at = o / scale
        else:
            at = (o + 0.5) / scale - 0.5
        if (mode or "nearest") == "nearest":
            i = {"floor": np.floor(at), "ceil": np.ceil(at), "round_prefer_ceil": np.floor(at + 0.5)
                 }.get(nearest_mode, np.ceil(at - 0.5))
            matrix[o, int(np.clip(i, 0, n - 1))] += 1
            continue
        for i in range(int(np.floor(at)) - reach, int(np.floor(at)) + reach + 1):
            d = abs(at - i) * squeeze
            if exclude_outside and not 0 <= i < n:
                continue
            if mode == "linear":
                w = max(0, 1 - d)
            elif d <= 1:
                w = (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
            else:
                w = a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a if d < 2 else 0
            matrix[o, int(np.clip(i, 0, n - 1))] += w
        matrix[o] /= matrix[o].sum()
    return matrix


def lrn_sums(x, alpha, beta, bias, size):
    alpha, beta, bias = (d if v is None else float(v)
                         for d, v in ((1e-4, alpha), (0.75, beta), (1.0, bias)))
    window = np.array([[c - (size - 1) // 2 <= k <= c + size // 2 for k in range(x.shape[1])]
                       for c in range(x.shape[1])], float)
    s = bias + alpha / size * np.einsum("ck,nk...->nc...", window, x * x)
    return window, s, alpha, beta


class LRN(OpRun):
    """onnx's own goes over as many channels as there are images."""
    op_domain = ""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        _, s, _, beta = lrn_sums(x, alpha, beta, bias, size)
        return ((x * s ** -beta).astype(x.dtype),)


class LpNormalization(OpRun):
    """onnx's own takes no absolute values."""
    op_domain = ""

    def _run(self, x, axis=None, p=None):
        norm = np.linalg.norm(x, 2 if p is None else p, -1 if axis is None else axis, keepdims=True)
        return (x / norm,)


class MeanVarianceNormalization(OpRun):
    """onnx's own is a function of float32, as is AffineGrid."""
    op_domain = ""

    def _run(self, x, axes=None):
        axes = tuple(axes)
        return ((x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1e-9),)


class AffineGrid(OpRun):
    op_domain = ""

    def _run(self, theta, size, align_corners=None):
        sides = [np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1
                 for n in size[2:]]
        places = list(np.meshgrid(*sides, indexing="ij"))[::-1] + [np.ones(size[2:])]
        places = np.stack(places, -1)
        return (np.einsum("nrk,...k->n...r", theta, places),)


class LRNGrad(Weft):
    def _run(self, dy, x, alpha=None, beta=None, bias=None, size=None):
        window, s, alpha, beta = lrn_sums(x, alpha, beta, bias, size)
        t = np.einsum("ck,nc...->nk...", window, dy * x * s ** (-beta - 1))
        return ((dy * s ** -beta - 2 * alpha * beta / size * x * t).astype(x.dtype),)


OPS = [Conv, ConvDataGrad, ConvTranspose, ConvTransposeDataGrad, ConvTransposeWeightGrad,
       ConvWeightGrad, AveragePool, AveragePoolGrad, GlobalMaxPool, LpPool, LpPoolGrad,
       MaxPool, MaxPoolGrad, BatchNormalizationGrad, BatchNormalizationTrain, GroupNormalization,
       GroupNormalizationGrad, LayerNormalizationGrad, RMSNormalization, RMSNormalizationGrad,
       LSTM, LSTMGrad, LSTMKeep, GRU, GRUGrad, GRUKeep, RNN, RNNGrad, ResizeGrad, LRN, AffineGrid,
       LpNormalization, MeanVarianceNormalization, LRNGrad]

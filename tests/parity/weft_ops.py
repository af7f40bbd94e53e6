# SPDX-License-Identifier: Apache-2.0
"""The plain meaning of weft's own operations in numpy, for onnx's reference evaluator.

common/graph/op.h says in words what these say in formulas. They let a gradient graph run without any
kernel of weft, so that the graph itself is tested.
"""
import itertools
import math

import numpy as np
import weft_fused
import weft_nn
from onnx.reference.op_run import OpRun

DOMAIN = "ai.weft"


class Weft(OpRun):
    op_domain = DOMAIN


class Choose(Weft):
    def _run(self, condition, *values):
        n = len(values) // 2
        return values[:n] if condition else values[n:]


class SumToLike(Weft):
    def _run(self, x, ref):
        lead = x.ndim - ref.ndim
        axes = tuple(range(lead)) + tuple(
            lead + i for i, d in enumerate(ref.shape) if d == 1 and x.shape[lead + i] != 1)
        return (x.sum(axis=axes, keepdims=True).reshape(ref.shape),)


class ReluGrad(Weft):
    def _run(self, dy, y):
        return (np.where(y > 0, dy, 0).astype(dy.dtype),)


class SigmoidGrad(Weft):
    def _run(self, dy, y):
        return (dy * y * (1 - y),)


class TanhGrad(Weft):
    def _run(self, dy, y):
        return (dy * (1 - y * y),)


erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


class CurveGrad(Weft):
    """dx = dy slope(x), in double, with the attributes of the forward operation."""

    def _run(self, dy, x, **attrs):
        given = {k: v for k, v in attrs.items() if v is not None}
        return ((dy * self.slope(x.astype(np.float64), **given)).astype(dy.dtype),)


class CeluGrad(CurveGrad):
    def slope(self, x, alpha=1.0):
        return np.where(x > 0, 1, np.exp(np.minimum(x, 0) / alpha))


class EluGrad(CurveGrad):
    def slope(self, x, alpha=1.0):
        return np.where(x > 0, 1, alpha * np.exp(np.minimum(x, 0)))


class GeluGrad(CurveGrad):
    def slope(self, x, approximate="none"):
        if approximate == "tanh":
            t = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))
            return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * np.sqrt(2 / np.pi) * (
                1 + 3 * 0.044715 * x * x)
        return 0.5 * (1 + erf(x / np.sqrt(2))) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


class HardSigmoidGrad(CurveGrad):
    def slope(self, x, alpha=np.float32(0.2), beta=0.5):
        line = float(alpha) * x + beta
        return np.where((line > 0) & (line < 1), float(alpha), 0)


class HardSwishGrad(CurveGrad):
    def slope(self, x):
        line = float(np.float32(1 / 6)) * x + 0.5
        return np.where(line < 0, 0, np.where(line > 1, 1, 2 * line - 0.5))


class LeakyReluGrad(CurveGrad):
    def slope(self, x, alpha=np.float32(0.01)):
        return np.where(x > 0, 1, float(alpha))


class MishGrad(CurveGrad):
    def slope(self, x):
        t = np.tanh(softplus(x))
        return t + x * (1 - t * t) * sigmoid(x)


class SeluGrad(CurveGrad):
    def slope(self, x, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875):
        return np.where(x > 0, gamma, gamma * alpha * np.exp(np.minimum(x, 0)))


class ShrinkGrad(CurveGrad):
    def slope(self, x, bias=0.0, lambd=0.5):
        return (np.abs(x) > lambd).astype(np.float64)


class SoftplusGrad(CurveGrad):
    def slope(self, x):
        return sigmoid(x)


class SoftsignGrad(CurveGrad):
    def slope(self, x):
        return 1 / (1 + np.abs(x)) ** 2


class SwishGrad(CurveGrad):
    def slope(self, x, alpha=1.0):
        s = sigmoid(alpha * x)
        return s * (1 + alpha * x * (1 - s))


class Swish(OpRun):
    """ONNX's own, of opset 24: later than the evaluator's."""
    op_domain = ""

    def _run(self, x, alpha=1.0):
        return ((x * sigmoid((1.0 if alpha is None else alpha) * x)).astype(x.dtype),)


class ThresholdedReluGrad(CurveGrad):
    def slope(self, x, alpha=1.0):
        return (x > alpha).astype(np.float64)


class SoftmaxGrad(Weft):
    def _run(self, dy, y, axis=-1):
        return (y * (dy - (dy * y).sum(axis=axis, keepdims=True)),)


class LogSoftmaxGrad(Weft):
    def _run(self, dy, y, axis=-1):
        return (dy - np.exp(y) * dy.sum(axis=axis, keepdims=True),)


def label_weights(x, labels, weights, ignore_index):
    """Weight of each label, 0 where it is ignored, and the labels made safe to index with."""
    kept = np.ones(labels.shape, bool) if ignore_index is None else labels != ignore_index
    safe = np.where(kept, labels, 0)
    per_class = np.ones(x.shape[1], x.dtype) if weights is None else weights
    return np.where(kept, per_class[safe], 0).astype(x.dtype), safe


def label_scale(dloss, weight, reduction):
    if reduction == "none":
        return dloss * weight
    return dloss * weight / (weight.sum() if reduction == "mean" else 1)


def one_hot(labels, x):
    return np.moveaxis(np.eye(x.shape[1], dtype=x.dtype)[labels], -1, 1)


class SoftmaxCrossEntropyGrad(Weft):
    def _run(self, dloss, log_prob, labels, weights=None, ignore_index=None, reduction=None):
        weight, safe = label_weights(log_prob, labels, weights, ignore_index)
        scale = np.expand_dims(label_scale(dloss, weight, reduction or "mean"), 1)
        return (((np.exp(log_prob) - one_hot(safe, log_prob)) * scale).astype(log_prob.dtype),)


class NegativeLogLikelihoodLossGrad(Weft):
    def _run(self, dloss, x, labels, weights=None, ignore_index=None, reduction=None):
        weight, safe = label_weights(x, labels, weights, ignore_index)
        scale = np.expand_dims(label_scale(dloss, weight, reduction or "mean"), 1)
        return ((-one_hot(safe, x) * scale).astype(x.dtype),)


class GatherGrad(Weft):
    def _run(self, dy, ids, data, axis=0):
        axis = (axis or 0) % data.ndim
        dx = np.zeros_like(np.moveaxis(data, axis, 0))
        rows = dy.reshape(data.shape[:axis] + (-1,) + data.shape[axis + 1:])
        np.add.at(dx, ids.reshape(-1), np.moveaxis(rows, axis, 0))
        return (np.moveaxis(dx, 0, axis),)


class EmbeddingBag(Weft):
    def _run(self, table, ids, weights=None, mode=None):
        rows = np.where((ids >= 0)[..., None], table[np.maximum(ids, 0)], 0)
        if mode != "max":
            return ((rows if weights is None else rows * weights[..., None]).sum(-2),)
        rows = np.where((ids >= 0)[..., None], rows, -np.inf).max(-2, initial=-np.inf)
        return (np.where((ids >= 0).any(-1)[..., None], rows, 0).astype(table.dtype),)


class TableRows(Weft):
    """First values are those of a constant: tests/cluster/unbounded_models.py has the random ones."""

    def _run(self, table, row_ids, ids, bags=None, distribution=None, dtype=None, numbers=None, seed=None,
             stream=None):
        assert not distribution
        at = {int(id): i for i, id in enumerate(row_ids)}
        rows = np.full((ids.size, table.shape[1]), numbers[0], table.dtype)
        if dtype == 16:  # bfloat16: the upper half, rounded to the nearest
            rows = ((rows.view(np.uint32) + 0x8000) & 0xffff0000).view(np.float32)
        places = np.arange(ids.size).reshape(ids.shape)
        if bags:
            rows[ids.reshape(-1) < 0] = 0
            places = np.where(ids < 0, -1, places)
        for i, id in enumerate(ids.reshape(-1)):
            if int(id) in at and not (bags and id < 0):
                rows[i] = table[at[int(id)]]
        return rows, places


class EmbeddingBagGrad(Weft):
    def _run(self, dy, ids, table, weights=None, mode=None):
        dtable = np.zeros_like(table)
        for bag in np.ndindex(ids.shape[:-1]):
            named = np.flatnonzero(ids[bag] >= 0)
            if mode == "max" and len(named):
                rows = ids[bag][named[table[ids[bag][named]].argmax(0)]]
                dtable[rows, np.arange(table.shape[1])] += dy[bag]
            for k in named if mode != "max" else ():
                dtable[ids[bag][k]] += dy[bag] * (1 if weights is None else weights[bag][k])
        return (dtable,)


class EmbeddingBagWeightsGrad(Weft):
    def _run(self, dy, ids, table):
        rows = np.where((ids >= 0)[..., None], table[np.maximum(ids, 0)], 0)
        return ((rows * dy[..., None, :]).sum(-1),)


class SliceGrad(Weft):
    def _run(self, dy, x, starts, ends, axes=None, steps=None):
        dx = np.zeros_like(x)
        axes = range(len(starts)) if axes is None else axes
        steps = np.ones_like(starts) if steps is None else steps
        where = [slice(None)] * x.ndim
        for a, start, end, step in zip(axes, starts, ends, steps):
            size = x.shape[a]
            if step < 0 and end < -size:
                end = None
            where[a] = slice(start, end, step)
        dx[tuple(where)] = dy
        return (dx,)


class TileGrad(Weft):
    def _run(self, dy, x):
        dx = dy.reshape(sum(((d // s, s) for d, s in zip(dy.shape, x.shape)), ()))
        return (dx.sum(axis=tuple(range(0, 2 * x.ndim, 2))),)


class PadGrad(Weft):
    def _run(self, dy, x, pads, axes=None, mode=None):
        axes = range(x.ndim) if axes is None else axes
        before, after = [0] * x.ndim, [0] * x.ndim
        for i, axis in enumerate(axes):
            before[axis], after[axis] = pads[i], pads[i + len(pads) // 2]
        # Where each element of dy came from: the places of x, padded the same way.
        places = np.arange(x.size).reshape(x.shape)
        where = tuple(slice(max(-b, 0), d - max(-a, 0)) for b, a, d in zip(before, after, x.shape))
        if mode in (None, "constant"):
            places = places[where]
            places = np.pad(places, [(max(b, 0), max(a, 0)) for b, a in zip(before, after)],
                            constant_values=-1)
        else:
            places = np.pad(places, [(max(b, 0), max(a, 0)) for b, a in zip(before, after)], mode)
            places = places[tuple(slice(max(-b, 0), d - max(-a, 0))
                                  for b, a, d in zip(before, after, places.shape))]
        dx = np.zeros(x.size, x.dtype)
        np.add.at(dx, places[places >= 0], dy[places >= 0])
        return (dx.reshape(x.shape),)


class GatherNDGrad(Weft):
    def _run(self, dy, ids, data, batch_dims=None):
        dx, batch = np.zeros_like(data), batch_dims or 0
        for at in np.ndindex(*ids.shape[:-1]):
            np.add.at(dx, at[:batch] + tuple(ids[at]), dy[at])
        return (dx,)


class DepthToSpaceGrad(Weft):
    def _run(self, dy, blocksize=None, mode=None):
        n, c, h, w = dy.shape
        b = blocksize
        x = dy.reshape(n, c, h // b, b, w // b, b)
        order = (0, 1, 3, 5, 2, 4) if mode == "CRD" else (0, 3, 5, 1, 2, 4)
        return (x.transpose(order).reshape(n, c * b * b, h // b, w // b),)


class DropoutGrad(Weft):
    def _run(self, dy, mask, ratio=None, training_mode=None):
        if training_mode is None or not training_mode:
            return (dy,)
        ratio = 0.5 if ratio is None else ratio
        return (np.where(mask, dy / (1 - ratio), 0).astype(dy.dtype),)


class SigmoidCrossEntropy(Weft):
    def _run(self, x, z, reduction=None):
        loss = np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))
        if reduction == "none":
            return (loss,)
        return ((loss.sum() if reduction == "sum" else loss.mean()).astype(x.dtype),)


class SigmoidCrossEntropyGrad(Weft):
    def _run(self, dloss, x, z, reduction=None):
        scale = dloss / (x.size if (reduction or "mean") == "mean" else 1)
        return (((1 / (1 + np.exp(-x)) - z) * scale).astype(x.dtype),)


class CorrectCount(Weft):
    def _run(self, scores, labels, k=None, threshold=None):
        if k is not None:
            own = np.take_along_axis(scores, labels[:, None], 1)
            hits = (scores > own).sum(axis=1) < k
        elif threshold is None:
            hits = scores.argmax(axis=1) == labels
        else:
            hits = (scores.reshape(-1) > threshold) == (labels.reshape(-1) > 0.5)
        return (np.array(hits.sum(), np.int64),)


class ScoreKeys(Weft):
    def _run(self, scores, labels, logits=0):
        x = np.array(scores, np.float64)
        if not logits:
            with np.errstate(divide="ignore", invalid="ignore"):
                x = np.where(x <= 0, -np.inf, np.where(x >= 1, np.inf, np.log(x / (1 - x))))
        bits = (x.astype(np.float32) + np.float32(0)).view(np.uint32).astype(np.int64)
        ascending = np.where(bits >> 31, 0xFFFFFFFF - bits, bits + (1 << 31))
        return ((ascending >> 8) * 2 + (labels > 0.5),)


class Pad(OpRun):
    """onnx's own cannot crop."""

    def _run(self, x, pads, value=None, axes=None, mode=None):
        axes = range(x.ndim) if axes is None else axes
        before, after = [0] * x.ndim, [0] * x.ndim
        for i, axis in enumerate(axes):
            before[axis], after[axis] = pads[i], pads[i + len(pads) // 2]
        mode = mode or "constant"
        more = [(max(b, 0), max(a, 0)) for b, a in zip(before, after)]
        fill = {"constant_values": 0 if value is None else value.item()}
        x = np.pad(x, more, mode, **(fill if mode == "constant" else {}))
        return (x[tuple(slice(max(-b, 0), d - max(-a, 0))
                        for b, a, d in zip(before, after, x.shape))],)


def reflected(x, size, aligned):
    low, high = (0, size - 1) if aligned else (-0.5, size - 0.5)
    if high <= low:
        return 0 * x
    while not low <= x.real <= high:
        x = 2 * low - x if x.real < low else 2 * high - x
    return x


def grid_taps(place, size, aligned, mode, padding):
    """(index, weight) of each tap along an axis, of a place that may have an imaginary part."""
    x = (place + 1) * (size - 1) / 2 if aligned else ((place + 1) * size - 1) / 2
    if mode == "nearest":
        x = np.rint(x.real) + 0 * x
    if padding == "border":
        x = x if 0 <= x.real <= size - 1 else 0 * place + min(max(x.real, 0), size - 1)
        x = complex(x.real, x.imag if 0 < x.real < size - 1 else 0) if np.iscomplexobj(x) else x
    elif padding == "reflection":
        x = reflected(x, size, aligned)
    first = int(np.floor(x.real))
    t, a = x - first, -0.75
    if mode == "nearest":
        weights = [1.0]
    elif "cubic" in mode:
        first -= 1
        far = [((a * u - 5 * a) * u + 8 * a) * u - 4 * a for u in (t + 1, 2 - t)]
        near = [((a + 2) * u - (a + 3)) * u * u + 1 for u in (t, 1 - t)]
        weights = [far[0], near[0], near[1], far[1]]
    else:
        weights = [1 - t, t]
    for i, weight in enumerate(weights, first):
        if padding == "reflection":
            i = int(reflected(np.float64(i), size, aligned))
        elif padding == "border":
            i = min(max(i, 0), size - 1)
        if 0 <= i < size:
            yield i, weight


def grid_elements(x, grid, at, options):
    taps = [list(grid_taps(g, size, *options)) for g, size in zip(grid[at][::-1], x.shape[2:])]
    for picked in itertools.product(*taps):
        yield tuple(p[0] for p in picked), np.prod([p[1] for p in picked])


def grid_sample(x, grid, options):
    y = np.zeros(x.shape[:2] + grid.shape[1:-1], np.result_type(x, grid))
    for at in np.ndindex(*grid.shape[:-1]):
        for element, weight in grid_elements(x, grid, at, options):
            y[(at[0], slice(None)) + at[1:]] += x[(at[0], slice(None)) + element] * weight
    return y


class GridSample(OpRun):
    """onnx's own has places in float32."""

    def _run(self, x, grid, align_corners=None, mode=None, padding_mode=None):
        options = (bool(align_corners), mode or "linear", padding_mode or "zeros")
        return (grid_sample(x, grid.astype(np.float64), options).astype(x.dtype),)


class GridSampleGrad(Weft):
    """By a step along the imaginary axis, which takes no digits away."""

    def _run(self, dy, x, grid, align_corners=None, mode=None, padding_mode=None):
        options = (bool(align_corners), mode or "linear", padding_mode or "zeros")
        dx, dgrid, step = np.zeros(x.shape), np.zeros(grid.shape), 1e-30
        grid = grid.astype(np.float64)
        for at in np.ndindex(*grid.shape[:-1]):
            for element, weight in grid_elements(x, grid, at, options):
                dx[(at[0], slice(None)) + element] += dy[(at[0], slice(None)) + at[1:]] * weight
        for i in range(grid.shape[-1]):
            moved = grid.astype(np.complex128)
            moved[..., i] += step * 1j
            dgrid[..., i] = (dy * grid_sample(x, moved, options).imag / step).sum(axis=1)
        return dx.astype(x.dtype), dgrid.astype(x.dtype)


class GatherElements(OpRun):
    """onnx's own wants equal sizes of the axes but one."""

    def _run(self, data, ids, axis=None):
        axis = (axis or 0) % data.ndim
        data = data[tuple(slice(None) if i == axis else slice(0, d)
                          for i, d in enumerate(ids.shape))]
        return (np.take_along_axis(data, ids % data.shape[axis], axis),)


class ScatterElements(OpRun):
    """onnx's own forgets what lies there when it multiplies, and wants equal sizes."""

    def _run(self, data, ids, updates, axis=None, reduction=None):
        y, axis = data.copy(), (axis or 0) % data.ndim
        fn = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        for at in np.ndindex(*ids.shape):
            to = at[:axis] + (ids[at],) + at[axis + 1:]
            y[to] = fn[reduction](y[to], updates[at]) if reduction in fn else updates[at]
        return (y,)


class ReverseSequence(OpRun):
    """onnx's own fails for a sequence of no steps."""

    def _run(self, x, lens, batch_axis=None, time_axis=None):
        batch = 1 if batch_axis is None else batch_axis
        y = np.moveaxis(x, batch, 0).copy()
        for b, n in enumerate(lens):
            y[b, :n] = y[b, :n][::-1]
        return (np.moveaxis(y, 0, batch),)


class OneHot(OpRun):
    """onnx's own wants a scalar depth."""

    def _run(self, ids, depth, values, axis=None):
        depth = int(np.asarray(depth).item())
        hit = (np.where(ids < 0, ids + depth, ids)[..., None] == np.arange(depth))
        hit = np.moveaxis(hit, -1, -1 if axis is None else axis)
        return (np.where(hit, values[1], values[0]).astype(values.dtype),)


OPS = [CeluGrad, Choose, EluGrad, GeluGrad, HardSigmoidGrad, HardSwishGrad, LeakyReluGrad, MishGrad, SeluGrad,
       ShrinkGrad, SoftplusGrad, SoftsignGrad, Swish, SwishGrad, ThresholdedReluGrad,
       SumToLike, ReluGrad, SigmoidGrad, TanhGrad, SoftmaxGrad, LogSoftmaxGrad,
       SoftmaxCrossEntropyGrad, NegativeLogLikelihoodLossGrad, GatherGrad, EmbeddingBag, EmbeddingBagGrad, TableRows,
       EmbeddingBagWeightsGrad, SliceGrad, DropoutGrad,
       TileGrad, PadGrad, GatherNDGrad, DepthToSpaceGrad, GridSampleGrad,
       SigmoidCrossEntropy, SigmoidCrossEntropyGrad, CorrectCount, ScoreKeys]
OPS += weft_fused.OPS + weft_nn.OPS
# ONNX's, where onnx's own evaluator falls short of its specification.
OPS += [GatherElements, GridSample, OneHot, Pad, ReverseSequence, ScatterElements]


def gradient(got, name, known):
    """The gradient of a variable among results; `known` are the keys of all that PyTorch has. Of two
    names that one tied weight has, PyTorch's exporters write either."""
    if "grad/" + name in got:
        return got["grad/" + name]
    others = [n for n in got if n.startswith("grad/") and "grad." + n[5:] not in known]
    assert len(others) == 1, f"{name} may be any of {others}"
    return got[others[0]]

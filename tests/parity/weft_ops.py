# SPDX-License-Identifier: Apache-2.0
"""The plain meaning of weft's own operations in numpy, for onnx's reference evaluator.

common/graph/op.h says in words what these say in formulas. They let a gradient graph run without any
kernel of weft, so that the graph itself is tested.
"""
import numpy as np
from onnx.reference.op_run import OpRun

DOMAIN = "ai.weft"


class Weft(OpRun):
    op_domain = DOMAIN


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


OPS = [SumToLike, ReluGrad, SigmoidGrad, TanhGrad, SoftmaxGrad, LogSoftmaxGrad,
       SoftmaxCrossEntropyGrad, NegativeLogLikelihoodLossGrad, GatherGrad, SliceGrad, DropoutGrad,
       SigmoidCrossEntropy, SigmoidCrossEntropyGrad, CorrectCount, ScoreKeys]

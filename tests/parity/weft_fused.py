# SPDX-License-Identifier: Apache-2.0
"""The plain meaning of weft's fused operations in numpy, their kernels' cases and gradients."""
import numpy as np
from onnx.reference.op_run import OpRun

DOMAIN = "ai.weft"


class Fused(OpRun):
    op_domain = DOMAIN


class Linear(Fused):
    def _run(self, x, w, bias=None, y=None, activation=None, transB=None):
        result = x @ (w.T if transB else w)
        result = result if bias is None else result + bias
        if activation == "ReluGrad":
            result = np.where(y > 0, result, 0)
        return ((np.maximum(result, 0) if activation == "Relu" else result).astype(x.dtype),)


STEPS = {
    "Abs": np.abs, "Add": np.add, "Div": np.divide, "Exp": np.exp, "Mul": np.multiply, "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x, "Relu": lambda x: np.maximum(x, 0),
    "ReluGrad": lambda dy, y: np.where(y > 0, dy, 0), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "SigmoidGrad": lambda dy, y: dy * y * (1 - y), "Sqrt": np.sqrt, "Sub": np.subtract, "Tanh": np.tanh,
    "TanhGrad": lambda dy, y: dy * (1 - y * y),
}


class Chain(Fused):
    def _run(self, *inputs, args=None, steps=None):
        values = list(inputs)
        for i, step in enumerate(steps):
            values.append(STEPS[step](*(values[a] for a in args[2 * i:2 * i + 2] if a >= 0)))
        shape = np.broadcast_shapes(*(x.shape for x in inputs))
        return (np.broadcast_to(values[-1], shape).astype(inputs[0].dtype),)


def turned(x):
    return np.swapaxes(x, -1, -2)


def scores_of(q, k, mask, fill, scale, trans, is_causal):
    scores = (1 if scale is None else scale) * (q @ (k if trans else turned(k)))
    if is_causal:
        scores = np.where(np.arange(scores.shape[-1]) > np.arange(scores.shape[-2])[:, None], -np.inf, scores)
    if mask is not None and mask.dtype == bool:
        scores = np.where(mask, -np.inf if fill is None else fill, scores)
    elif mask is not None:
        scores = scores + mask
    return scores


def probabilities(*scored):
    scores = scores_of(*scored)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def heads_first(last, *tensors):
    return [np.swapaxes(x, -2, -3) if last else x for x in tensors]


class DotAttention(Fused):
    def _run(self, q, k, v, mask=None, causal=None, fill=None, headsLast=None, scale=None, transK=None):
        q, k, v = heads_first(headsLast, q, k, v)
        scores = scores_of(q, k, mask, fill, scale, transK, causal)
        y = (probabilities(q, k, mask, fill, scale, transK, causal) @ v).astype(q.dtype)
        top = scores.max(axis=-1)
        sums = (np.log(np.exp(scores - top[..., None]).sum(axis=-1)) + top).astype(q.dtype)
        return *heads_first(headsLast, y), sums


class DotAttentionGrad(Fused):
    def _run(self, dy, q, k, v, mask=None, causal=None, fill=None, headsLast=None, scale=None, transK=None):
        dy, q, k, v = heads_first(headsLast, dy, q, k, v)
        p = probabilities(q, k, mask, fill, scale, transK, causal)
        dp = dy @ turned(v)
        ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * (1 if scale is None else scale)
        if mask is not None and mask.dtype == bool:
            ds = np.where(mask, 0, ds)
        dk = turned(q) @ ds if transK else turned(ds) @ q
        found = ds @ (turned(k) if transK else k), dk, turned(p) @ dy
        return tuple(heads_first(headsLast, *(d.astype(q.dtype) for d in found)))


class Product(Fused):
    def _run(self, a, b, sums=None, transA=None, transB=None):
        y = ((turned(a) if transA else a) @ (turned(b) if transB else b)).astype(a.dtype)
        return (y, (a if sums == "a" else b).sum(axis=0, dtype=a.dtype)) if sums else (y,)


OPS = [Chain, DotAttention, DotAttentionGrad, Linear, Product]


def causal(t):
    return np.triu(np.ones((t, t), bool), 1)


def cases(single):
    """For kernels.py, whose `single` makes one."""
    for dtype in (np.float32, np.float64):
        for x, n in (((3, 4), 5), ((2, 3, 70), 33), ((7,), 4), ((4, 130, 64), 200)):
            for trans in (0, 1):
                w = ((n, x[-1]) if trans else (x[-1], n), dtype)
                yield single("Linear", (x, dtype), w, domain=DOMAIN, transB=trans)
                yield single("Linear", (x, dtype), w, ((n,), dtype), domain=DOMAIN, transB=trans,
                             activation="Relu")
                for bias in (None, ((n,), dtype)):
                    yield single("Linear", (x, dtype), w, bias, ((*x[:-1], n), dtype), domain=DOMAIN, transB=trans,
                                 activation="ReluGrad")
        for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((6, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
                     ((2, 1, 70, 33), (3, 33, 40)), ((1, 3, 4), (1, 4, 2)), ((0, 3, 4), (4, 5))):
            for trans_a, trans_b in ((0, 1), (1, 0), (1, 1)):
                left = (*a[:-2], a[-1], a[-2]) if trans_a else a
                right = (*b[:-2], b[-1], b[-2]) if trans_b else b
                yield single("Product", (left, dtype), (right, dtype), domain=DOMAIN, transA=trans_a,
                             transB=trans_b)
        for shape, other in (((3, 4), (4,)), ((5, 7, 300), (1, 300)), ((33, 100), ()), ((4000,), (1,)),
                             ((0, 3), (3,))):
            for op in sorted(STEPS):
                two = op.endswith("Grad") or op in ("Add", "Div", "Mul", "Sub")
                yield single("Chain", (shape, dtype), (other, dtype), domain=DOMAIN,
                             steps=["Mul", "Abs", "Add", op],
                             args=[0, 1, 2, -1, 1 if op == "Div" else 0, 3, 3, 4 if two else -1])
        for heads, t, s, d, e in (((2,), 3, 4, 5, 6), ((2, 3), 70, 70, 16, 16), ((1, 2), 130, 65, 8, 3)):
            q, k, v = ((*heads, t, d), dtype), ((*heads, s, d), dtype), ((*heads, s, e), dtype)
            dy, turned_k = ((*heads, t, e), dtype), ((*heads, d, s), dtype)
            bias = ((t, s), dtype)
            masks = [[], [bias], [((*heads, 1, s), dtype)]]
            if t == s:
                masks += [[causal(t)], [np.where(causal(t), -np.inf, 0).astype(dtype)]]
            for mask in masks:
                yield single("DotAttention", q, k, v, *mask, domain=DOMAIN, scale=0.5)
                yield single("DotAttentionGrad", dy, q, turned_k, v, *mask, domain=DOMAIN, transK=1,
                             n_out=3)
                yield single("DotAttentionGrad", dy, q, k, v, *mask, domain=DOMAIN, scale=0.25,
                             n_out=3)
            everything = np.ones((t, 1), bool)
            yield single("DotAttention", q, k, v, everything, domain=DOMAIN, fill=-1e9)
            yield single("DotAttentionGrad", dy, q, k, v, everything, domain=DOMAIN, fill=-1e9, n_out=3)


def sums(single):
    """For kernels.py, at its end: a case's number is its seed."""
    for dtype in (np.float32, np.float64):
        for m, k, n in ((3, 4, 5), (70, 300, 33), (1, 1, 1), (2, 5000, 3), (3, 0, 4), (0, 3, 4)):
            for of, trans_a, trans_b in (("a", 1, 0), ("a", 1, 1), ("b", 0, 0), ("b", 1, 0)):
                yield single("Product", ((k, m) if trans_a else (m, k), dtype),
                             ((n, k) if trans_b else (k, n), dtype), n_out=2, domain=DOMAIN, sums=of,
                             transA=trans_a, transB=trans_b)


def attentions(single):
    """Likewise: attention whose mask is an attribute, whose heads lie side by side, and that gives its sums."""
    for dtype in (np.float32, np.float64):
        for heads, t, s, d, e in (((2,), 3, 4, 5, 6), ((2, 3), 70, 70, 16, 16), ((1, 2), 130, 65, 8, 3), ((2, 2, 1), 5, 3, 4, 2)):
            q, k, v, dy = (((*heads, rows, size), dtype) for rows, size in ((t, d), (s, d), (s, e), (t, e)))
            yield single("DotAttention", q, k, v, domain=DOMAIN, causal=1, scale=0.5, n_out=2)
            yield single("DotAttentionGrad", dy, q, ((*heads, d, s), dtype), v, domain=DOMAIN, causal=1, transK=1, n_out=3)
            yield single("DotAttentionGrad", dy, q, k, v, domain=DOMAIN, causal=1, scale=0.25, n_out=3)
            if len(heads) == 1:
                continue
            last = [((*heads[:-1], rows, heads[-1], size), dtype) for rows, size in ((t, e), (t, d), (s, d), (s, e))]
            for mask in ([], [((t, s), dtype)], [((*heads, 1, s), dtype)]):
                yield single("DotAttention", *last[1:], *mask, domain=DOMAIN, headsLast=1, scale=0.5, n_out=2)
                yield single("DotAttentionGrad", *last, *mask, domain=DOMAIN, headsLast=1, scale=0.25, n_out=3)


def gradients(case, node):
    """For onnx_gradients.py."""
    q, k, turned_k, v = (2, 3, 4), (2, 5, 4), (2, 4, 5), (2, 5, 3)
    mask = {"m": np.arange(15).reshape(3, 5) % 4 == 1}
    for symbolic in (False, True):
        yield case("DotAttention", [q, k, v], node("DotAttention", "w0 w1 w2", domain=DOMAIN, scale=0.5),
                   symbolic=symbolic)
    yield case("DotAttention turned", [q, turned_k, v],
               node("DotAttention", "w0 w1 w2", domain=DOMAIN, transK=1))
    yield case("DotAttention masked", [q, k, v], node("DotAttention", "w0 w1 w2 m", domain=DOMAIN),
               consts=mask)
    yield case("DotAttention causal", [q, k, v], node("DotAttention", "w0 w1 w2", domain=DOMAIN, causal=1))
    yield case("DotAttention, heads last", [(2, 3, 5, 4), (2, 6, 5, 4), (2, 6, 5, 3)],
               node("DotAttention", "w0 w1 w2", domain=DOMAIN, headsLast=1))
    yield case("DotAttention filled", [q, k, v],
               node("DotAttention", "w0 w1 w2 m", domain=DOMAIN, fill=-1.0), consts=mask)

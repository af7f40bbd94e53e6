# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of products, and sums over axes."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, i64, node, of


@of("MatMul")
def matmul(luck, op):
    m, k, n = luck.ints(3, 1, 4)
    batch = luck.dims(0, 2, 3)
    a = [k] if luck.chance(0.15) else luck.part(batch) + [m, k]
    b = [k] if luck.chance(0.15) else luck.part(batch) + [k, n]
    return Case([luck.apart(a), luck.apart(b)], node(op, "w0 w1"))


@of("Gemm")
def gemm(luck, op):
    m, k, n = luck.ints(3, 1, 5)
    ta, tb = luck.int(0, 1), luck.int(0, 1)
    weights = [luck.apart([k, m] if ta else [m, k]), luck.apart([n, k] if tb else [k, n])]
    if luck.chance(0.7):
        weights.append(luck.apart(luck.part([m, n])))
    return Case(weights, node(op, "w0 w1 w2" if len(weights) == 3 else "w0 w1", transA=ta, transB=tb,
                              alpha=luck.number(0.3, 2), beta=luck.number(0.3, 2)))


@of("Einsum")
def einsum(luck, op):
    letters = "abcdi"
    size = {c: luck.int(1, 3) for c in letters}
    terms = ["".join(luck.rng.permutation(list(letters))[:luck.int(0 if i else 1, 3)])
             for i in range(luck.int(1, 2))]
    used = sorted(set("".join(terms)))
    out = "".join(luck.rng.permutation(used)[:luck.int(0, len(used))]) if used else ""
    shapes = [[size[c] for c in t] for t in terms]
    if luck.chance(0.25):
        lead = luck.dims(1, 2, 3)
        parts = [luck.part(lead) for _ in terms]
        shapes = [p + s for p, s in zip(parts, shapes)]
        terms, out = ["..." + t for t in terms], "..." + out
    equation = ",".join(terms) + "->" + out
    return Case([luck.apart(s) for s in shapes],
                node(op, " ".join(f"w{i}" for i in range(len(terms))), equation=equation))


@of("DotAttention")
def dot_attention(luck, op):
    t, s, d, e = luck.ints(4, 1, 4)
    lead, turned = luck.dims(0, 2, 2), luck.int(0, 1)
    q, k, v = lead + [t, d], lead + ([d, s] if turned else [s, d]), lead + [s, e]
    consts, attrs = {}, dict(transK=turned, scale=luck.number(0.3, 1.5))
    kind = luck.int(0, 2)
    if kind == 1:
        m = luck.rng.random([t, s]) < 0.4
        m[:, 0] = False  # a row that is all masked has no gradient to be compared
        consts["m"] = m
        if luck.chance(0.3):
            attrs["fill"] = -1e4
    elif kind == 2:
        consts["m"] = luck.apart(luck.part([t, s]))
    return Case([luck.apart(q), luck.apart(k), luck.apart(v)],
                node(op, "w0 w1 w2" + (" m" if consts else ""), domain=DOMAIN, **attrs), **consts)


@of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduce(luck, op):
    shape = luck.dims(0, 4, 3)
    x = luck.apart(shape)
    if op in ("ReduceLogSum", "ReduceProd", "ReduceL2"):
        x = np.abs(x) + 0.3
    keep = luck.pick([None, 0, 1])
    if not shape or luck.chance(0.2):
        noop = luck.pick([None, 1]) if op in ("ReduceSum", "ReduceMean") else None
        return Case([x], node(op, "w0", keepdims=keep, noop_with_empty_axes=noop))
    axes = luck.axes(len(shape))
    if luck.chance(0.2) and op != "ReduceSum":
        return Case([x], node(op, "w0", keepdims=keep, axes=axes), opset=13)
    return Case([x], node(op, "w0 a", keepdims=keep), a=i64(*axes))


@of("CumSum")
def cum_sum(luck, op):
    shape = luck.dims(1, 4)
    return Case([luck.apart(shape)], node(op, "w0 a", exclusive=luck.int(0, 1),
                                          reverse=luck.int(0, 1)), a=np.int64(luck.axis(len(shape))))


@of("Softmax", "LogSoftmax")
def softmax(luck, op):
    shape = luck.dims(1, 4)
    axis = luck.axis(len(shape)) if luck.chance(0.8) else None
    if luck.chance(0.25) and op == "Softmax":  # a mask
        m = np.where(luck.rng.random(shape) < 0.3, -np.inf, 0.0)
        m[np.isinf(m).all(axis=-1 if axis is None else axis, keepdims=True) & np.isinf(m)] = 0
        return Case([luck.apart(shape)], node("Add", "w0 m", "a"), node(op, "a", axis=axis), m=m)
    return Case([luck.apart(shape)], node(op, "w0", axis=axis))

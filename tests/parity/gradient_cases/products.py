# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of products, and sums over axes."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, i64, node, of


@of("MatMul")
def matmul(random, op):
    m, k, n = random.ints(3, 1, 4)
    batch = random.dims(0, 2, 3)
    a = [k] if random.chance(0.15) else random.part(batch) + [m, k]
    b = [k] if random.chance(0.15) else random.part(batch) + [k, n]
    return Case([random.apart(a), random.apart(b)], node(op, "w0 w1"))


@of("Gemm")
def gemm(random, op):
    m, k, n = random.ints(3, 1, 5)
    ta, tb = random.int(0, 1), random.int(0, 1)
    weights = [random.apart([k, m] if ta else [m, k]), random.apart([n, k] if tb else [k, n])]
    if random.chance(0.7):
        weights.append(random.apart(random.part([m, n])))
    return Case(weights, node(op, "w0 w1 w2" if len(weights) == 3 else "w0 w1", transA=ta, transB=tb,
                              alpha=random.number(0.3, 2), beta=random.number(0.3, 2)))


@of("Einsum")
def einsum(random, op):
    letters = "abcdi"
    size = {c: random.int(1, 3) for c in letters}
    terms = ["".join(random.rng.permutation(list(letters))[:random.int(0 if i else 1, 3)])
             for i in range(random.int(1, 2))]
    used = sorted(set("".join(terms)))
    out = "".join(random.rng.permutation(used)[:random.int(0, len(used))]) if used else ""
    shapes = [[size[c] for c in t] for t in terms]
    if random.chance(0.25):
        lead = random.dims(1, 2, 3)
        parts = [random.part(lead) for _ in terms]
        shapes = [p + s for p, s in zip(parts, shapes)]
        terms, out = ["..." + t for t in terms], "..." + out
    equation = ",".join(terms) + "->" + out
    return Case([random.apart(s) for s in shapes],
                node(op, " ".join(f"w{i}" for i in range(len(terms))), equation=equation))


@of("DotAttention")
def dot_attention(random, op):
    t, s, d, e = random.ints(4, 1, 4)
    lead, turned = random.dims(0, 2, 2), random.int(0, 1)
    q, k, v = lead + [t, d], lead + ([d, s] if turned else [s, d]), lead + [s, e]
    consts, attrs = {}, dict(transK=turned, scale=random.number(0.3, 1.5))
    kind = random.int(0, 2)
    if kind == 1:
        m = random.rng.random([t, s]) < 0.4
        m[:, 0] = False  # a row that is all masked has no gradient to be compared
        consts["m"] = m
        if random.chance(0.3):
            attrs["fill"] = -1e4
    elif kind == 2:
        consts["m"] = random.apart(random.part([t, s]))
    return Case([random.apart(q), random.apart(k), random.apart(v)],
                node(op, "w0 w1 w2" + (" m" if consts else ""), domain=DOMAIN, **attrs), **consts)


@of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
    "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduce(random, op):
    shape = random.dims(0, 4, 3)
    x = random.apart(shape)
    if op in ("ReduceLogSum", "ReduceProd", "ReduceL2"):
        x = np.abs(x) + 0.3
    keep = random.pick([None, 0, 1])
    if not shape or random.chance(0.2):
        noop = random.pick([None, 1]) if op in ("ReduceSum", "ReduceMean") else None
        return Case([x], node(op, "w0", keepdims=keep, noop_with_empty_axes=noop))
    axes = random.axes(len(shape))
    if random.chance(0.2) and op != "ReduceSum":
        return Case([x], node(op, "w0", keepdims=keep, axes=axes), opset=13)
    return Case([x], node(op, "w0 a", keepdims=keep), a=i64(*axes))


@of("CumSum")
def cum_sum(random, op):
    shape = random.dims(1, 4)
    return Case([random.apart(shape)], node(op, "w0 a", exclusive=random.int(0, 1),
                                          reverse=random.int(0, 1)), a=np.int64(random.axis(len(shape))))


@of("Softmax", "LogSoftmax")
def softmax(random, op):
    shape = random.dims(1, 4)
    axis = random.axis(len(shape)) if random.chance(0.8) else None
    if random.chance(0.25) and op == "Softmax":  # a mask
        m = np.where(random.rng.random(shape) < 0.3, -np.inf, 0.0)
        m[np.isinf(m).all(axis=-1 if axis is None else axis, keepdims=True) & np.isinf(m)] = 0
        return Case([random.apart(shape)], node("Add", "w0 m", "a"), node(op, "a", axis=axis), m=m)
    return Case([random.apart(shape)], node(op, "w0", axis=axis))

# SPDX-License-Identifier: Apache-2.0
"""The gradient of each operation over cases drawn from a seed, in float64 and by weft's kernels.

    gradient_properties.py GRADIENT_TOOL [--seeds N] [--first SEED] [--op NAME] [--keep FOLDER]

An operation of the registry that has a gradient and no generator here is a failure. A case that fails
prints the command that repeats it. onnx_gradients.py holds the same gradient graphs against onnx's
evaluator; here it is shapes, axes, broadcasts and attributes that nobody thought of.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

DOMAIN = "ai.weft"
SEEDS = 20  # cases of each operation when nothing else is said
CHUNK = 100  # models to one run of the tool


class Case:
    """Variables w0, w1... [float64 arrays], nodes that lead from them to "y", constants by name.
    `fixed`: dimensions of variables must be known before the run."""

    def __init__(self, weights, *nodes, opset=18, fixed=False, **consts):
        self.weights, self.nodes, self.opset, self.consts = weights, nodes, opset, consts
        self.fixed = fixed

    def model(self, symbolic):
        inits = [numpy_helper.from_array(np.asarray(w, np.float64), f"w{i}")
                 for i, w in enumerate(self.weights)]
        inits += [numpy_helper.from_array(np.asarray(v), k) for k, v in self.consts.items()]
        nodes, inputs, rename = [], [], {}
        for i, w in enumerate(self.weights if symbolic and not self.fixed else []):
            inputs.append(helper.make_tensor_value_info(
                f"in_w{i}", TensorProto.DOUBLE, [f"w{i}_{k}" for k in range(np.ndim(w))]))
            nodes.append(helper.make_node("Add", [f"w{i}", f"in_w{i}"], [f"sym_w{i}"]))
            rename[f"w{i}"] = f"sym_w{i}"
        for n in self.nodes:
            n.input[:] = [rename.get(i, i) for i in n.input]
            nodes.append(n)
        graph = helper.make_graph(nodes, "case", inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
                                  inits)
        model = helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", self.opset), helper.make_opsetid(DOMAIN, 1)])
        helper.set_model_props(model, {f"weft.variable.w{i}": "trainable"
                                       for i in range(len(self.weights))})
        return model


def node(op, inputs, outputs="y", domain="", **attrs):
    """Words of inputs, "-" for one that is absent; attributes that are None are left out."""
    return helper.make_node(op, ["" if i == "-" else i for i in inputs.split()], outputs.split(),
                            domain=domain, **{k: v for k, v in attrs.items() if v is not None})


def i64(*values):
    return np.array(values, np.int64)


class Luck:
    """What generators draw from."""

    def __init__(self, rng):
        self.rng = rng

    def int(self, low, high):
        """low <= n <= high"""
        return int(self.rng.integers(low, high + 1))

    def chance(self, p=0.5):
        return bool(self.rng.random() < p)

    def pick(self, values):
        return values[self.int(0, len(values) - 1)]

    def ints(self, n, low, high):
        return [self.int(low, high) for _ in range(n)]

    def dims(self, low=1, high=4, most=4):
        """A shape of low to high axes."""
        return self.ints(self.int(low, high), 1, most)

    def apart(self, shape, low=-1.5, high=1.5):
        """Numbers that are all different, and none within 0.0005 of a number of two digits: away
        from ties and from where attributes of two digits put corners."""
        n = int(np.prod(shape))
        steps = int(round((high - low) * 100))
        if n > steps:  # too many for that grid
            return self.rng.permutation(n).reshape(shape) / n * (high - low) + low + 0.0007
        grid = self.rng.permutation(steps)[:n]
        return (low + (grid + self.rng.uniform(0.1, 0.9, n)) / 100).reshape(shape)

    def number(self, low, high):
        """Of two digits."""
        return round(float(self.rng.uniform(low, high)), 2)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, least=1):
        """Some axes in any order, some of them counted from the end."""
        chosen = self.rng.permutation(rank)[:self.int(min(least, rank), rank)]
        return [int(a) - rank * self.chance() for a in chosen]

    def part(self, shape):
        """A shape that broadcasts to this one."""
        cut = shape[self.int(0, len(shape)):] if self.chance(0.3) else shape
        return [1 if self.chance(0.25) else d for d in cut]

    def below(self, shape, *limits):
        """int64 indices [*shape, len(limits)], some of them negative."""
        rows = [self.rng.integers(-n, n, shape) for n in limits]
        return np.stack(rows, -1).astype(np.int64)


GENERATORS = {}


def of(*ops):
    def add(function):
        for op in ops:
            GENERATORS[op] = lambda luck, op=op: function(luck, op)
        return function
    return add


# ---- element by element ----

CURVES = {
    "Abs": {}, "Neg": {}, "Exp": {}, "Relu": {}, "Sigmoid": {}, "Tanh": {}, "Identity": {}, "Sin": {},
    "Cos": {}, "Sinh": {}, "Cosh": {}, "Asinh": {}, "Atan": {}, "Erf": {}, "Softplus": {},
    "Softsign": {}, "Mish": {}, "HardSwish": {}, "Celu": {"alpha": (0.3, 2)},
    "Elu": {"alpha": (0.3, 2)}, "Selu": {"alpha": (0.5, 2), "gamma": (0.5, 2)},
    "LeakyRelu": {"alpha": (0.01, 0.5)}, "HardSigmoid": {"alpha": (0.1, 0.6), "beta": (0.2, 0.8)},
    "ThresholdedRelu": {"alpha": (0.1, 1.5)}, "Swish": {"alpha": (0.3, 2)},
    "Shrink": {"lambd": (0.2, 1.5), "bias": (-0.5, 0.5)},
}
RANGES = {"Log": (0.3, 2.3), "Sqrt": (0.3, 2.3), "Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9),
          "Atanh": (-0.9, 0.9), "Acosh": (1.1, 3.1), "Tan": (-1.2, 1.2), "Reciprocal": (0.4, 2.4)}


@of(*CURVES, *RANGES)
def curve(luck, op):
    low, high = RANGES.get(op, (-4, 4))
    attrs = {k: luck.number(*r) for k, r in CURVES.get(op, {}).items() if luck.chance(0.7)}
    return Case([luck.apart(luck.dims(0, 4), low, high)], node(op, "w0", **attrs),
                opset=23 if op == "Swish" else 18)


@of("Gelu")
def gelu(luck, op):
    way = luck.pick([None, "none", "tanh"])
    return Case([luck.apart(luck.dims(0, 4), -4, 4)], node(op, "w0", approximate=way), opset=20)


@of("Cast", "CastLike")
def cast(luck, op):
    w = luck.apart(luck.dims(0, 3))
    if op == "Cast":
        return Case([w], node(op, "w0", to=TensorProto.DOUBLE))
    return Case([w], node(op, "w0 k"), k=np.float64(1))


@of("Clip")
def clip(luck, op):
    low, high = luck.number(-1.5, 0), luck.number(0, 1.5)
    bounds = luck.pick(["lo hi", "lo", "- hi", ""])
    consts = {k: np.float64(v) for k, v in (("lo", low), ("hi", high)) if k in bounds}
    return Case([luck.apart(luck.dims(0, 3))], node(op, "w0 " + bounds), **consts)


@of("Dropout")
def dropout(luck, op):
    w = luck.apart(luck.dims(1, 3))
    if luck.chance():
        return Case([w], node(op, "w0"))
    return Case([w], node(op, "w0 r t", seed=luck.int(0, 9)), r=np.float32(luck.number(0, 0.8)),
                t=np.bool_(luck.chance(0.7)))


@of("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu")
def two(luck, op):
    shape = luck.dims(0, 4, 3)
    a, b = luck.part(shape), luck.part(shape)
    if op == "PRelu":
        a = shape
    x, z = luck.apart(a), luck.apart(b)
    if op == "Div":
        z = np.sign(z) * (0.4 + np.abs(z))
    if op == "Pow":
        x = 0.4 + np.abs(x)
        if luck.chance(0.3):  # an exponent that is a constant, and a power of negative numbers
            return Case([luck.apart(a)], node(op, "w0 p"), p=np.float64(luck.int(1, 4)))
    if op == "Mod":
        z = 2 + np.abs(z) / 4
        return Case([x, z], node(op, "w0 w1", fmod=1))
    if luck.chance(0.1) and op != "PRelu":
        return Case([x], node(op, "w0 w0")) if op != "Div" else Case([z], node(op, "w0 w0"))
    return Case([x, z], node(op, "w0 w1"))


@of("Max", "Min", "Sum", "Mean")
def several(luck, op):
    shape = luck.dims(0, 3, 3)
    parts = [luck.part(shape) for _ in range(luck.int(1, 4))]
    all_of_them, at, weights = luck.apart([sum(int(np.prod(p)) for p in parts)]), 0, []
    for p in parts:
        n = int(np.prod(p))
        weights.append(all_of_them[at:at + n].reshape(p))
        at += n
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(parts)))))


@of("Where")
def where(luck, op):
    shape = luck.dims(1, 3, 3)
    return Case([luck.apart(luck.part(shape)), luck.apart(luck.part(shape))], node(op, "c w0 w1"),
                c=luck.rng.random(luck.part(shape)) < 0.5)


@of("Choose")
def choose(luck, op):
    """Pairs of one shape; the condition follows from a weight, so that it is not known before."""
    n = luck.int(1, 2)
    shapes = [luck.dims(0, 3, 3) for _ in range(n)]
    weights = [luck.apart(s) for s in shapes + shapes]
    outs = " ".join(f"o{i}" for i in range(n))
    at = luck.int(0, n - 1)
    return Case(weights, node("ReduceSum", "w0", "t", keepdims=0), node("Greater", "t k", "c"),
                node(op, "c " + " ".join(f"w{i}" for i in range(2 * n)), outs, domain=DOMAIN),
                node("Identity", f"o{at}"), fixed=True, k=np.float64(luck.pick([-99, 99])))


@of("SumToLike")
def sum_to_like(luck, op):
    shape = luck.dims(1, 4, 3)
    ref = luck.part(shape)
    return Case([luck.apart(shape)], node(op, "w0 r", domain=DOMAIN), r=np.zeros(ref))


# ---- products ----

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


# ---- sums over axes ----

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


# ---- movers ----

@of("Reshape")
def reshape(luck, op):
    shape = luck.dims(1, 4)
    n, target = int(np.prod(shape)), []
    while n > 1 and len(target) < 4:
        d = luck.pick([d for d in range(1, n + 1) if n % d == 0])
        target.append(d)
        n //= d
    target.append(n)
    for i in range(min(len(target), len(shape))):
        if target[i] == shape[i] and luck.chance():
            target[i] = 0
    if luck.chance():
        target[luck.int(0, len(target) - 1)] = -1
    return Case([luck.apart(shape)], node(op, "w0 s"), s=i64(*target))


@of("Flatten")
def flatten(luck, op):
    shape = luck.dims(1, 4)
    return Case([luck.apart(shape)], node(op, "w0", axis=luck.int(-len(shape), len(shape))))


@of("Transpose")
def transpose(luck, op):
    shape = luck.dims(0, 5, 3)
    perm = [int(p) for p in luck.rng.permutation(len(shape))]
    return Case([luck.apart(shape)], node(op, "w0", perm=perm if shape and luck.chance(0.8) else None))


@of("Squeeze", "Unsqueeze")
def squeeze(luck, op):
    shape = luck.dims(0, 3)
    ones = sorted(int(a) for a in luck.rng.permutation(len(shape) + 2)[:2])
    full = list(shape)
    for a in ones:
        full.insert(a, 1)
    axes = i64(*(a - len(full) * luck.chance() for a in ones))
    if op == "Unsqueeze":
        return Case([luck.apart(shape)], node(op, "w0 a"), a=axes)
    if luck.chance(0.2):
        return Case([luck.apart(full)], node(op, "w0"), fixed=True)
    return Case([luck.apart(full)], node(op, "w0 a"), a=axes)


@of("Expand")
def expand(luck, op):
    shape = luck.dims(1, 4, 3)
    return Case([luck.apart(luck.part(shape))], node(op, "w0 s"), s=i64(*luck.part(shape)))


@of("Tile")
def tile(luck, op):
    shape = luck.dims(1, 3, 3)
    return Case([luck.apart(shape)], node(op, "w0 r"), r=i64(*luck.ints(len(shape), 1, 3)))


@of("Concat")
def concat(luck, op):
    shape, n = luck.dims(1, 3), luck.int(1, 4)
    axis = luck.axis(len(shape))
    weights = []
    for _ in range(n):
        shape[axis] = luck.int(1, 3)
        weights.append(luck.apart(shape))
    words = [f"w{luck.int(0, n - 1)}" for _ in range(n)] if luck.chance(0.2) else \
        [f"w{i}" for i in range(n)]
    return Case(weights, node(op, " ".join(words), axis=axis))


@of("Split")
def split(luck, op):
    shape, n = luck.dims(1, 3), luck.int(1, 3)
    axis = luck.axis(len(shape))
    sizes = luck.ints(n, 1, 3)
    outs = [f"o{i}" for i in range(n)]
    some = [outs[int(i)] for i in luck.rng.permutation(n)[:luck.int(1, n)]]
    last = node("Concat", " ".join(some), axis=axis)
    if luck.chance(0.3):  # in equal parts, the last one shorter
        each = luck.int(1, 3)
        shape[axis] = each * (n - 1) + luck.int(1, each) if n > 1 else luck.int(1, 4)
        if -(-shape[axis] // -(-shape[axis] // n)) == n:
            return Case([luck.apart(shape)], node(op, "w0", " ".join(outs), axis=axis, num_outputs=n),
                        last)
    shape[axis] = sum(sizes)
    return Case([luck.apart(shape)], node(op, "w0 s", " ".join(outs), axis=axis), last, s=i64(*sizes))


@of("Slice")
def slice_(luck, op):
    shape = luck.dims(1, 4)
    axes = luck.axes(len(shape))
    starts, ends, steps = [], [], []
    for a in axes:
        d, step = shape[a], luck.pick([1, 1, 2, 3, -1, -2])
        first = luck.int(0, d - 1)
        last = luck.int(first + 1, d) if step > 0 else luck.int(-1, first - 1)
        if last == d and luck.chance(0.3):
            last = 2**63 - 1
        elif last == -1:
            last = luck.pick([-d - 1, -2**63 + 1])
        elif luck.chance(0.3) and last < d:
            last -= d
        starts.append(first - d * luck.chance(0.3))
        ends.append(last)
        steps.append(step)
    return Case([luck.apart(shape)], node(op, "w0 b e a t"), b=i64(*starts), e=i64(*ends),
                a=i64(*axes), t=i64(*steps))


@of("Gather")
def gather(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    ids = luck.below(luck.dims(0, 2, 3), shape[axis])[..., 0]
    return Case([luck.apart(shape)], node(op, "w0 i", axis=axis),
                i=ids.astype(luck.pick([np.int64, np.int32])))


@of("GatherElements")
def gather_elements(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    wanted = [luck.int(1, d) for d in shape]
    wanted[axis] = luck.int(1, 4)
    return Case([luck.apart(shape)], node(op, "w0 i", axis=axis),
                i=luck.below(wanted, shape[axis])[..., 0])


@of("GatherND")
def gather_nd(luck, op):
    shape = luck.dims(1, 4, 3)
    lead = luck.int(0, len(shape) - 1)
    depth = luck.int(1, len(shape) - lead)
    ids = luck.below(shape[:lead] + luck.dims(0 if lead else 1, 2, 3), *shape[lead:lead + depth])
    return Case([luck.apart(shape)], node(op, "w0 i", batch_dims=lead), i=ids)


@of("ScatterElements")
def scatter_elements(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    wanted = [luck.int(1, d) for d in shape]
    if luck.chance():
        ids = luck.below(wanted, shape[axis])[..., 0]
        reduction = "add"
    else:  # places must not repeat
        order = luck.rng.permutation(shape[axis])[:wanted[axis]]
        view = [1] * len(shape)
        view[axis] = -1
        ids, reduction = np.broadcast_to(order.reshape(view), wanted).astype(np.int64), None
        ids = ids - shape[axis] * luck.int(0, 1)
    return Case([luck.apart(shape), luck.apart(wanted)],
                node(op, "w0 i w1", axis=axis, reduction=reduction), i=ids)


@of("ScatterND")
def scatter_nd(luck, op):
    shape = luck.dims(1, 3)
    depth = luck.int(1, len(shape))
    places = int(np.prod(shape[:depth]))
    if luck.chance():
        n, reduction = luck.int(1, 4), "add"
        flat = luck.rng.integers(0, places, n)
    else:
        n, reduction = luck.int(1, min(places, 4)), None
        flat = luck.rng.permutation(places)[:n]
    ids = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    return Case([luck.apart(shape), luck.apart([n] + shape[depth:])],
                node(op, "w0 i w1", reduction=reduction), i=ids)


@of("Pad")
def pad(luck, op):
    shape = luck.ints(luck.int(1, 3), 2, 4)
    mode = luck.pick([None, "constant", "reflect", "edge", "wrap"])
    axes = luck.axes(len(shape)) if luck.chance(0.4) else list(range(len(shape)))
    pads = [[], []]
    for a in axes:
        most = shape[a] - 1 if mode == "reflect" else shape[a] if mode == "wrap" else 3
        crop = luck.chance(0.2) and mode in (None, "constant")
        pads[0].append(-1 if crop else luck.int(0, most))
        pads[1].append(luck.int(0, most))
    consts = dict(p=i64(*pads[0], *pads[1]))
    words = "w0 p"
    if mode in (None, "constant") and luck.chance(0.4):
        words, consts["v"] = words + " v", np.float64(0.5)
    if axes != list(range(len(shape))):
        words = (words if "v" in consts else words + " -") + " a"
        consts["a"] = i64(*axes)
    return Case([luck.apart(shape)], node(op, words, mode=mode), **consts)


@of("CenterCropPad")
def center_crop_pad(luck, op):
    shape = luck.dims(1, 3)
    axes = luck.axes(len(shape)) if luck.chance() else None
    n = len(axes) if axes else len(shape)
    return Case([luck.apart(shape)], node(op, "w0 z", axes=axes), z=i64(*luck.ints(n, 1, 6)))


@of("Trilu")
def trilu(luck, op):
    shape = luck.dims(2, 4)
    attrs = dict(upper=luck.pick([None, 0, 1]))
    if luck.chance(0.3):
        return Case([luck.apart(shape)], node(op, "w0", **attrs))
    return Case([luck.apart(shape)], node(op, "w0 k", **attrs), k=np.int64(luck.int(-4, 4)))


@of("DepthToSpace", "SpaceToDepth")
def depth_and_space(luck, op):
    b, (n, c, h, w) = luck.int(1, 3), luck.ints(4, 1, 2)
    if op == "DepthToSpace":
        return Case([luck.apart([n, c * b * b, h, w])],
                    node(op, "w0", blocksize=b, mode=luck.pick([None, "DCR", "CRD"])))
    return Case([luck.apart([n, c, h * b, w * b])], node(op, "w0", blocksize=b))


@of("ReverseSequence")
def reverse_sequence(luck, op):
    shape = luck.dims(2, 4)
    time = luck.int(0, 1)
    lens = i64(*luck.ints(shape[1 - time], 1, shape[time]))
    return Case([luck.apart(shape)], node(op, "w0 l", time_axis=time, batch_axis=1 - time), l=lens)


@of("TopK")
def top_k(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    return Case([luck.apart(shape)], node(op, "w0 k", "y i", axis=axis, largest=luck.int(0, 1)),
                k=i64(luck.int(1, shape[axis])))


# ---- convolution and pooling ----

def spatial(luck, transposed=False):
    """Extents, kernel, and attributes that fit them, for 1 to 3 axes."""
    n = luck.pick([1, 2, 2, 3])
    kernel = luck.ints(n, 1, 3)
    strides, dilations = luck.ints(n, 1, 2), luck.ints(n, 1, 2)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    extents = [luck.int(1, 3) if transposed else r + luck.int(0, 3) for r in reach]
    attrs = dict(kernel_shape=kernel, strides=strides, dilations=dilations)
    if luck.chance(0.2):
        attrs["auto_pad"] = luck.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif luck.chance(0.7):
        pads = [luck.int(0, k - 1) for k in kernel + kernel]
        if transposed:  # the result must not be empty
            pads = [min(p, (e - 1) * s // 2) for p, e, s in zip(pads, extents * 2, strides * 2)]
        attrs["pads"] = pads
    return extents, kernel, attrs


@of("Conv")
def conv(luck, op):
    extents, kernel, attrs = spatial(luck)
    group = luck.pick([1, 1, 2, 3])
    each_in, each_out = luck.int(1, 2), luck.int(1, 2)
    weights = [luck.apart([luck.int(1, 2), group * each_in] + extents),
               luck.apart([group * each_out, each_in] + kernel)]
    if luck.chance():
        weights.append(luck.apart([group * each_out]))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), group=group,
                              **attrs))


@of("ConvTranspose")
def conv_transpose(luck, op):
    extents, kernel, attrs = spatial(luck, transposed=True)
    group = luck.pick([1, 1, 2])
    each_in, each_out = luck.int(1, 2), luck.int(1, 2)
    if "auto_pad" not in attrs and luck.chance(0.4):
        attrs["output_padding"] = [luck.int(0, max(s, d) - 1)
                                   for s, d in zip(attrs["strides"], attrs["dilations"])]
    weights = [luck.apart([luck.int(1, 2), group * each_in] + extents),
               luck.apart([group * each_in, each_out] + kernel)]
    if luck.chance():
        weights.append(luck.apart([group * each_out]))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), group=group,
                              **attrs))


@of("MaxPool", "AveragePool", "LpPool")
def pool(luck, op):
    extents, _, attrs = spatial(luck)
    x = luck.apart([luck.int(1, 2), luck.int(1, 2)] + extents)
    opset = 19
    if luck.chance(0.3) and "auto_pad" not in attrs:
        attrs["ceil_mode"] = 1
    if op == "AveragePool":
        attrs["count_include_pad"] = luck.pick([None, 0, 1])
    if op == "LpPool":
        attrs["p"], opset = luck.int(1, 3), 18
        x = np.sign(x) * (np.abs(x) + 0.2)
    return Case([x], node(op, "w0", **attrs), opset=opset)


@of("GlobalAveragePool", "GlobalMaxPool")
def global_pool(luck, op):
    return Case([luck.apart(luck.dims(3, 5, 3))], node(op, "w0"))


@of("Resize")
def resize(luck, op):
    n = luck.pick([1, 2, 2, 3])
    extents = luck.ints(n, 1, 4)
    mode = luck.pick(["nearest", "linear", "cubic"] if n == 2 else ["nearest", "linear"])
    attrs = dict(mode=mode, coordinate_transformation_mode=luck.pick(
        ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]))
    if mode == "nearest":
        attrs["nearest_mode"] = luck.pick(["floor", "ceil", "round_prefer_floor",
                                           "round_prefer_ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = luck.pick([None, -0.5])
        attrs["exclude_outside"] = luck.int(0, 1)
    shape = luck.ints(2, 1, 2) + extents
    if luck.chance():
        return Case([luck.apart(shape)], node(op, "w0 - - z", **attrs),
                    z=i64(*shape[:2], *luck.ints(n, 1, 6)))
    scales = np.array([1, 1] + [luck.pick([0.5, 1, 1.5, 2, 2.3]) for _ in range(n)], np.float32)
    scales[2:] = np.maximum(scales[2:], 1 / np.array(extents))
    return Case([luck.apart(shape)], node(op, "w0 - s", **attrs), s=scales)


@of("GridSample")
def grid_sample(luck, op):
    n = luck.pick([2, 2, 3])
    mode = luck.pick(["linear", "nearest", "cubic"] if n == 2 else ["linear", "nearest"])
    batch, extents = luck.int(1, 2), luck.ints(n, 2, 4)
    grid = luck.rng.uniform(-1.4, 1.4, [batch] + luck.ints(n, 1, 3) + [n])
    return Case([luck.apart([batch, luck.int(1, 2)] + extents), grid],
                node(op, "w0 w1", mode=mode, align_corners=luck.int(0, 1),
                     padding_mode=luck.pick(["zeros", "border", "reflection"])), opset=20)


# ---- norms ----

@of("LayerNormalization", "RMSNormalization")
def row_norm(luck, op):
    shape = luck.dims(1, 4)
    axis = luck.axis(len(shape))
    row = shape[axis % len(shape):]
    while np.prod(row) < 2:  # the norm of one number is 0 and its slope nothing
        shape[-1] = row[-1] = luck.int(2, 4)
    weights = [luck.apart(shape), luck.apart(row)]
    if op == "LayerNormalization" and luck.chance(0.7):
        weights.append(luck.apart(row))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), axis=axis,
                              epsilon=luck.pick([None, 1e-3, 0.1])),
                opset=23 if op == "RMSNormalization" else 18)


@of("BatchNormalization", "BatchNormalizationTrain")
def batch_norm(luck, op):
    shape = [luck.int(2, 4), luck.int(1, 3)] + luck.dims(0, 2, 3)
    c = shape[1]
    weights = [luck.apart(shape), luck.apart([c]), luck.apart([c])]
    epsilon = luck.pick([1e-3, 0.1])
    if op == "BatchNormalizationTrain":
        return Case(weights, node(op, "w0 w1 w2", domain=DOMAIN, epsilon=epsilon))
    consts = dict(m=luck.apart([c]), v=0.5 + np.abs(luck.apart([c])))
    if luck.chance():
        return Case(weights, node(op, "w0 w1 w2 m v", "y a b", training_mode=1, epsilon=epsilon),
                    **consts)
    return Case(weights, node(op, "w0 w1 w2 m v", epsilon=epsilon), **consts)


@of("InstanceNormalization", "GroupNormalization")
def channel_norm(luck, op):
    groups, each = luck.int(1, 3), luck.int(1, 2)
    c = groups * each
    shape = [luck.int(1, 2), c] + luck.ints(luck.int(1, 2), 2, 3)
    if op == "InstanceNormalization":
        return Case([luck.apart(shape), luck.apart([c]), luck.apart([c])],
                    node(op, "w0 w1 w2", epsilon=luck.pick([None, 0.1])))
    new = luck.chance()
    n = c if new else groups
    return Case([luck.apart(shape), luck.apart([n]), luck.apart([n])],
                node(op, "w0 w1 w2", num_groups=groups, epsilon=luck.pick([None, 0.1])),
                opset=21 if new else 18)


@of("LRN")
def lrn(luck, op):
    return Case([luck.apart(luck.dims(3, 4))],
                node(op, "w0", size=luck.int(1, 5), alpha=luck.number(0.1, 1),
                     beta=luck.number(0.3, 1), bias=luck.number(0.5, 2)))


# ---- losses ----

@of("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def label_loss(luck, op):
    n, c, rest = luck.int(1, 4), luck.int(1, 4), luck.dims(0, 2, 3)
    labels = luck.rng.integers(0, c, [n] + rest).astype(luck.pick([np.int64, np.int32]))
    consts, attrs = dict(l=labels), {}
    if luck.chance(0.4):
        attrs["ignore_index"] = luck.pick([-1, 0, c - 1])
        if attrs["ignore_index"] == -1:
            labels[luck.rng.random(labels.shape) < 0.3] = -1
        if (labels == attrs["ignore_index"]).all():
            attrs, consts["l"] = {}, np.abs(labels)  # the mean of nothing has no slope
    if luck.chance(0.4):
        consts["k"] = luck.rng.uniform(0.5, 2, c)
    return Case([luck.apart([n, c] + rest)],
                node(op, "w0 l" + (" k" if "k" in consts else ""),
                     reduction=luck.pick([None, "mean", "sum", "none"]), **attrs), **consts)


@of("SigmoidCrossEntropy")
def sigmoid_loss(luck, op):
    shape = luck.dims(1, 3)
    return Case([luck.apart(shape, -4, 4)],
                node(op, "w0 z", domain=DOMAIN, reduction=luck.pick([None, "mean", "sum", "none"])),
                z=luck.rng.random(luck.part(shape)))


# ---- recurrence ----

@of("LSTM", "GRU", "RNN")
def recurrent(luck, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch, size, hidden = luck.ints(4, 1, 3)
    direction = luck.pick([None, "forward", "reverse", "bidirectional"])
    dirs, first = 2 if direction == "bidirectional" else 1, luck.int(0, 1)
    state = [batch, dirs, hidden] if first else [dirs, batch, hidden]
    shapes = [[batch, steps, size] if first else [steps, batch, size],
              [dirs, gates * hidden, size], [dirs, gates * hidden, hidden]]
    words, consts = ["w0", "w1", "w2"], {}

    def optional(shape, p=0.6):
        if not luck.chance(p):
            words.append("-")
            return
        words.append(f"w{len(shapes)}")
        shapes.append(shape)

    optional([dirs, 2 * gates * hidden])
    words.append("l" if luck.chance(0.4) else "-")
    if words[-1] == "l":
        consts["l"] = np.array(luck.ints(batch, 1, steps), np.int32)
    optional(state)
    if op == "LSTM":
        optional(state)
        optional([dirs, 3 * hidden], 0.4)
    attrs = dict(hidden_size=hidden, direction=direction, layout=first)
    if op == "GRU":
        attrs["linear_before_reset"] = luck.int(0, 1)
    outs = luck.pick(["y", "a y", "a b y"] if op == "LSTM" else ["y", "a y"])
    while words[-1] == "-":
        words.pop()
    return Case([luck.apart(s, -0.9, 0.9) for s in shapes], node(op, " ".join(words), outs, **attrs),
                **consts)


# ---- running them ----

def draw(op, seed):
    luck = Luck(np.random.default_rng([seed, zlib.crc32(op.encode())]))
    case = GENERATORS[op](luck)
    return case.model(symbolic=luck.chance(0.3))


def run(tool, paths):
    """{path: what is wrong} of those that fail; a crash is the fault of the first without a line."""
    done = subprocess.run([tool, "check", *paths], capture_output=True, text=True, check=False)
    failed, seen, worst = {}, set(), 0.0
    for line in done.stdout.splitlines():
        if line.startswith("ok "):
            _, error, path = line.split(" ", 2)
            worst = max(worst, float(error))
        else:
            path, why = line[5:].split(": ", 1)
            failed[path] = why
        seen.add(path)
    left = [p for p in paths if p not in seen]
    if left:
        failed[left[0]] = f"the tool ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
        more, more_worst = run(tool, left[1:]) if left[1:] else ({}, 0.0)
        failed.update(more)
        worst = max(worst, more_worst)
    return failed, worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--op")
    parser.add_argument("--keep")
    args = parser.parse_args()
    rows = subprocess.run([args.tool, "ops"], capture_output=True, text=True, check=True).stdout
    registered = {line.split()[1] for line in rows.splitlines()}
    bad = 0
    for op in sorted(registered - set(GENERATORS)):
        bad += 1
        print(f"FAILED  {op}: has a gradient, and no generator in {os.path.basename(__file__)}")
    ops = [args.op] if args.op else sorted(registered & set(GENERATORS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        names = {}
        for op in ops:
            for seed in range(args.first, args.first + args.seeds):
                path = os.path.join(folder, f"{op}-{seed}.onnx")
                onnx.save(draw(op, seed), path)
                names[path] = (op, seed)
        paths, worst = list(names), 0.0
        for i in range(0, len(paths), CHUNK):
            failed, error = run(args.tool, paths[i:i + CHUNK])
            worst = max(worst, error)
            for path, why in failed.items():
                op, seed = names[path]
                bad += 1
                print(f"FAILED  {op}: {why}\n        repeat: {sys.executable} {sys.argv[0]} "
                      f"{args.tool} --op {op} --first {seed} --seeds 1 --keep .")
    print(f"{len(paths) - bad} of {len(paths)} cases of {len(ops)} operations, largest error {worst:.2g}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

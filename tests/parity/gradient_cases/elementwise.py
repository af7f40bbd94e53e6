# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of operations element by element."""
import numpy as np
from onnx import TensorProto

from gradient_cases.case import Case, DOMAIN, node, of


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
def curve(random, op):
    low, high = RANGES.get(op, (-4, 4))
    attrs = {k: random.number(*r) for k, r in CURVES.get(op, {}).items() if random.chance(0.7)}
    return Case([random.apart(random.dims(0, 4), low, high)], node(op, "w0", **attrs),
                opset=23 if op == "Swish" else 18)


@of("Gelu")
def gelu(random, op):
    way = random.pick([None, "none", "tanh"])
    return Case([random.apart(random.dims(0, 4), -4, 4)], node(op, "w0", approximate=way), opset=20)


@of("Cast", "CastLike")
def cast(random, op):
    w = random.apart(random.dims(0, 3))
    if op == "Cast":
        return Case([w], node(op, "w0", to=TensorProto.DOUBLE))
    return Case([w], node(op, "w0 k"), k=np.float64(1))


@of("Clip")
def clip(random, op):
    low, high = random.number(-1.5, 0), random.number(0, 1.5)
    bounds = random.pick(["lo hi", "lo", "- hi", ""])
    consts = {k: np.float64(v) for k, v in (("lo", low), ("hi", high)) if k in bounds}
    return Case([random.apart(random.dims(0, 3))], node(op, "w0 " + bounds), **consts)


@of("Dropout")
def dropout(random, op):
    w = random.apart(random.dims(1, 3))
    if random.chance():
        return Case([w], node(op, "w0"))
    return Case([w], node(op, "w0 r t", seed=random.int(0, 9)), r=np.float32(random.number(0, 0.8)),
                t=np.bool_(random.chance(0.7)))


@of("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu")
def two(random, op):
    shape = random.dims(0, 4, 3)
    a, b = random.part(shape), random.part(shape)
    if op == "PRelu":
        a = shape
    x, z = random.apart(a), random.apart(b)
    if op == "Div":
        z = np.sign(z) * (0.4 + np.abs(z))
    if op == "Pow":
        x = 0.4 + np.abs(x)
        if random.chance(0.3):  # an exponent that is a constant, and a power of negative numbers
            return Case([random.apart(a)], node(op, "w0 p"), p=np.float64(random.int(1, 4)))
    if op == "Mod":
        z = 2 + np.abs(z) / 4
        return Case([x, z], node(op, "w0 w1", fmod=1))
    if random.chance(0.1) and op != "PRelu":
        return Case([x], node(op, "w0 w0")) if op != "Div" else Case([z], node(op, "w0 w0"))
    return Case([x, z], node(op, "w0 w1"))


@of("Max", "Min", "Sum", "Mean")
def several(random, op):
    shape = random.dims(0, 3, 3)
    parts = [random.part(shape) for _ in range(random.int(1, 4))]
    all_of_them, at, weights = random.apart([sum(int(np.prod(p)) for p in parts)]), 0, []
    for p in parts:
        n = int(np.prod(p))
        weights.append(all_of_them[at:at + n].reshape(p))
        at += n
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(parts)))))


@of("Where")
def where(random, op):
    shape = random.dims(1, 3, 3)
    return Case([random.apart(random.part(shape)), random.apart(random.part(shape))], node(op, "c w0 w1"),
                c=random.rng.random(random.part(shape)) < 0.5)


@of("Choose")
def choose(random, op):
    """Pairs of one shape; the condition follows from a weight, so that it is not known before."""
    n = random.int(1, 2)
    shapes = [random.dims(0, 3, 3) for _ in range(n)]
    weights = [random.apart(s) for s in shapes + shapes]
    outs = " ".join(f"o{i}" for i in range(n))
    at = random.int(0, n - 1)
    return Case(weights, node("ReduceSum", "w0", "t", keepdims=0), node("Greater", "t k", "c"),
                node(op, "c " + " ".join(f"w{i}" for i in range(2 * n)), outs, domain=DOMAIN),
                node("Identity", f"o{at}"), fixed=True, k=np.float64(random.pick([-99, 99])))


@of("SumToLike")
def sum_to_like(random, op):
    shape = random.dims(1, 4, 3)
    ref = random.part(shape)
    return Case([random.apart(shape)], node(op, "w0 r", domain=DOMAIN), r=np.zeros(ref))

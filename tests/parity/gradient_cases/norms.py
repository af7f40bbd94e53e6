# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of normalizations."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, node, of


@of("LayerNormalization", "RMSNormalization")
def row_norm(random, op):
    shape = random.dims(1, 4)
    axis = random.axis(len(shape))
    row = shape[axis % len(shape):]
    while np.prod(row) < 2:  # the norm of one number is 0 and its slope nothing
        shape[-1] = row[-1] = random.int(2, 4)
    weights = [random.apart(shape), random.apart(row)]
    if op == "LayerNormalization" and random.chance(0.7):
        weights.append(random.apart(row))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), axis=axis,
                              epsilon=random.pick([None, 1e-3, 0.1])),
                opset=23 if op == "RMSNormalization" else 18)


@of("BatchNormalization", "BatchNormalizationTrain")
def batch_norm(random, op):
    shape = [random.int(2, 4), random.int(1, 3)] + random.dims(0, 2, 3)
    c = shape[1]
    weights = [random.apart(shape), random.apart([c]), random.apart([c])]
    epsilon = random.pick([1e-3, 0.1])
    if op == "BatchNormalizationTrain":
        return Case(weights, node(op, "w0 w1 w2", domain=DOMAIN, epsilon=epsilon))
    consts = dict(m=random.apart([c]), v=0.5 + np.abs(random.apart([c])))
    if random.chance():
        return Case(weights, node(op, "w0 w1 w2 m v", "y a b", training_mode=1, epsilon=epsilon),
                    **consts)
    if random.chance():  # statistics that are computed, as of a batch, have gradients
        return Case(weights + [random.apart([c]), random.apart([c])], node("Neg", "w3", "m"),
                    node("Exp", "w4", "v"), node(op, "w0 w1 w2 m v", epsilon=epsilon))
    return Case(weights, node(op, "w0 w1 w2 m v", epsilon=epsilon), **consts)


@of("InstanceNormalization", "GroupNormalization")
def channel_norm(random, op):
    groups, each = random.int(1, 3), random.int(1, 2)
    c = groups * each
    shape = [random.int(1, 2), c] + random.ints(random.int(1, 2), 2, 3)
    if op == "InstanceNormalization":
        return Case([random.apart(shape), random.apart([c]), random.apart([c])],
                    node(op, "w0 w1 w2", epsilon=random.pick([None, 0.1])))
    new = random.chance()
    n = c if new else groups
    return Case([random.apart(shape), random.apart([n]), random.apart([n])],
                node(op, "w0 w1 w2", num_groups=groups, epsilon=random.pick([None, 0.1])),
                opset=21 if new else 18)


@of("LRN")
def lrn(random, op):
    return Case([random.apart(random.dims(3, 4))],
                node(op, "w0", size=random.int(1, 5), alpha=random.number(0.1, 1),
                     beta=random.number(0.3, 1), bias=random.number(0.5, 2)))

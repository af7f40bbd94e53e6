# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of normalizations."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, node, of


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

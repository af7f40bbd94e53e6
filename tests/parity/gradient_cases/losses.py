# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of losses."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, node, of


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

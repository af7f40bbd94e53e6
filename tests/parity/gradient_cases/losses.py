# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of losses."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, node, of


@of("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def label_loss(random, op):
    n, c, rest = random.int(1, 4), random.int(1, 4), random.dims(0, 2, 3)
    labels = random.rng.integers(0, c, [n] + rest).astype(random.pick([np.int64, np.int32]))
    consts, attrs = dict(l=labels), {}
    if random.chance(0.4):
        attrs["ignore_index"] = random.pick([-1, 0, c - 1])
        if attrs["ignore_index"] == -1:
            labels[random.rng.random(labels.shape) < 0.3] = -1
        if (labels == attrs["ignore_index"]).all():
            attrs, consts["l"] = {}, np.abs(labels)  # the mean of nothing has no slope
    if random.chance(0.4):
        consts["k"] = random.rng.uniform(0.5, 2, c)
    return Case([random.apart([n, c] + rest)],
                node(op, "w0 l" + (" k" if "k" in consts else ""),
                     reduction=random.pick([None, "mean", "sum", "none"]), **attrs), **consts)


@of("SigmoidCrossEntropy")
def sigmoid_loss(random, op):
    shape = random.dims(1, 3)
    return Case([random.apart(shape, -4, 4)],
                node(op, "w0 z", domain=DOMAIN, reduction=random.pick([None, "mean", "sum", "none"])),
                z=random.rng.random(random.part(shape)))

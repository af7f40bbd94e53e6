# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning-rate schedules, with Keras's names and options (docs/jobs.md).

    >>> from weft import optimizers
    >>> optimizers.Adam(1e-3, clipnorm=1.0)
    adam(learning_rate=0.001, clipnorm=1.0)
    >>> optimizers.SGD(optimizers.CosineDecay(0.1, 1000))
    sgd(learning_rate=cosine_decay(initial_learning_rate=0.1, decay_steps=1000))
"""
from __future__ import annotations

from ._items import Family, Kind

_FAMILY = Family("optimizer", """
SGD: sgd learning_rate
Adagrad: adagrad learning_rate
Adadelta: adadelta learning_rate
RMSprop: rmsprop learning_rate
Adam: adam learning_rate
AdamW: adamw learning_rate
Adamax: adamax learning_rate
Nadam: nadam learning_rate
Lamb: lamb learning_rate
Lion: lion learning_rate
Ftrl: ftrl learning_rate
ExponentialDecay: exponential_decay initial_learning_rate decay_steps decay_rate
InverseTimeDecay: inverse_time_decay initial_learning_rate decay_steps decay_rate
PolynomialDecay: polynomial_decay initial_learning_rate decay_steps
PiecewiseConstantDecay: piecewise_constant_decay boundaries values
CosineDecay: cosine_decay initial_learning_rate decay_steps
CosineDecayRestarts: cosine_decay_restarts initial_learning_rate first_decay_steps
""")


def __getattr__(name: str) -> Kind:
    return _FAMILY.find(name)


def __dir__() -> list[str]:
    return sorted(_FAMILY.kinds)

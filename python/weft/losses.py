# SPDX-License-Identifier: Apache-2.0
"""Losses, with Keras's names and options (docs/jobs.md, "Loss functions").

    >>> from weft import losses
    >>> losses.Huber(delta=2.0)
    huber(delta=2.0)
"""
from __future__ import annotations

from ._items import Family, Kind

_FAMILY = Family("loss", """
BinaryCrossentropy: binary_crossentropy from_logits label_smoothing
BinaryFocalCrossentropy: binary_focal_crossentropy apply_class_balancing alpha gamma
CategoricalCrossentropy: categorical_crossentropy from_logits label_smoothing
SparseCategoricalCrossentropy: sparse_categorical_crossentropy from_logits ignore_class
MeanSquaredError: mean_squared_error
MeanAbsoluteError: mean_absolute_error
MeanAbsolutePercentageError: mean_absolute_percentage_error
MeanSquaredLogarithmicError: mean_squared_logarithmic_error
Huber: huber delta
LogCosh: log_cosh
Hinge: hinge
SquaredHinge: squared_hinge
CategoricalHinge: categorical_hinge
KLDivergence: kl_divergence
Poisson: poisson
CosineSimilarity: cosine_similarity
""")


def __getattr__(name: str) -> Kind:
    return _FAMILY.find(name)


def __dir__() -> list[str]:
    return sorted(_FAMILY.kinds)

# SPDX-License-Identifier: Apache-2.0
"""Metrics, with Keras's names and options (docs/jobs.md, "Metrics").

    >>> from weft import metrics
    >>> metrics.TopKCategoricalAccuracy(3)
    top_k_categorical_accuracy(k=3)
"""
from __future__ import annotations

from ._items import Family, Kind

_FAMILY = Family("metric", """
Accuracy: accuracy
BinaryAccuracy: binary_accuracy
CategoricalAccuracy: categorical_accuracy
SparseCategoricalAccuracy: sparse_categorical_accuracy
TopKCategoricalAccuracy: top_k_categorical_accuracy k
SparseTopKCategoricalAccuracy: sparse_top_k_categorical_accuracy k
AUC: auc
Precision: precision thresholds
Recall: recall thresholds
F1Score: f1_score average threshold
LogLoss: log_loss
Perplexity: perplexity
RootMeanSquaredError: root_mean_squared_error
R2Score: r2_score
MeanSquaredError: mean_squared_error
MeanAbsoluteError: mean_absolute_error
""")


def __getattr__(name: str) -> Kind:
    return _FAMILY.find(name)


def __dir__() -> list[str]:
    return sorted(_FAMILY.kinds)

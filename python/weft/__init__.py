# SPDX-License-Identifier: Apache-2.0
"""weft: neural networks trained from Python, by libweft.

    >>> import numpy as np, weft
    >>> x = np.random.default_rng(1).normal(size=(256, 4)).astype("float32")
    >>> y = x.argmax(axis=1)
    >>> model = weft.Model.from_layers([weft.Input([4]), weft.layers.Dense(16, activation="relu"),
    ...                                 weft.layers.Dense(4)])
    >>> model.compile(optimizer=weft.optimizers.Adam(learning_rate=0.01),
    ...               loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    >>> history = model.fit(x, y, epochs=20, batch_size=32, verbose=0)
    >>> history.history["accuracy"][-1] > 0.9
    True
    >>> model.predict(x[:5]).shape
    (5, 4)

Names and options are Keras's. Nothing but this file is loaded until it is used.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import callbacks, errors, layers, losses, metrics, optimizers
    from .cluster import Cluster
    from .errors import Error
    from .history import History
    from .layers import Input
    from .model import Model
    from .session import Session

__version__ = "0.1.0"
__all__ = ["Cluster", "Error", "History", "Input", "Model", "Session", "callbacks", "errors",
           "layers", "losses", "metrics", "optimizers"]

_HOMES = {"Cluster": "cluster", "Error": "errors", "History": "history", "Input": "layers",
          "Model": "model", "Session": "session"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module("." + _HOMES[name], __name__), name)
    if name in __all__:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"weft has no {name!r}; there are {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__ + ["__version__"])

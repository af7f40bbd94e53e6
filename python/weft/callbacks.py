# SPDX-License-Identifier: Apache-2.0
"""Callbacks of `fit`: those that libweft has, with Keras's names, and `Callback` for one's own.

    >>> from weft import callbacks
    >>> callbacks.EarlyStopping(patience=3, restore_best_weights=True)
    early_stopping(patience=3, restore_best_weights=True)
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._items import Family, Kind

if TYPE_CHECKING:
    from .model import Model

_FAMILY = Family("callback", """
EarlyStopping: early_stopping monitor
ReduceLROnPlateau: reduce_lr_on_plateau monitor
ModelCheckpoint: model_checkpoint
TerminateOnNaN: terminate_on_nan
""")


class Callback:
    """Called while a model trains, in the thread that called `fit`, which waits for it meanwhile.
    `self.model.stop_training = True` ends the training at one of the next steps. `logs` are losses
    and metrics by name; those of an evaluation begin with "val_". The model's weights are those
    before `fit` until it returns.

    >>> class Least(Callback):
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         self.model.stop_training = logs["loss"] < 0.1
    """

    model: "Model"

    def set_model(self, model: "Model") -> None:
        """Called before all others."""
        self.model = model

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Before the first step."""

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """After the last step; not after an error."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """After an epoch, counted from 0, and its evaluation."""


def __getattr__(name: str) -> Kind:
    return _FAMILY.find(name)


def __dir__() -> list[str]:
    return sorted([*_FAMILY.kinds, "Callback"])

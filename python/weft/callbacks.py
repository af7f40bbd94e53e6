# SPDX-License-Identifier: Apache-2.0
"""Callbacks of `fit`: those that libweft has, with Keras's names, and `Callback` for one's own.

    >>> from weft import callbacks
    >>> callbacks.EarlyStopping(patience=3, restore_best_weights=True)
    early_stopping(patience=3, restore_best_weights=True)
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._items import Family, Item, Kind

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
    `self.model.stop_training = True` ends the training at one of the next steps, and so does an
    exception: the model then has the weights of that step, and `fit` raises it. `logs` are losses
    and metrics by name; those of an evaluation begin with "val_". From the first step to the last,
    methods of the model that read or change its weights raise Unsupported. The methods below are
    all that are called: `fit` refuses a callback with Keras's hooks of batches.

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

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """As an epoch begins, counted from 0. The training may be some steps further."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """After an epoch, counted from 0, and its evaluation."""


# Hooks of Keras's for batches: the training reports epochs, and not each step.
_NEVER = [f"on_{word}batch_{end}" for word in ("", "train_", "test_", "predict_")
          for end in ("begin", "end")] + [
    f"on_{word}_{end}" for word in ("test", "predict") for end in ("begin", "end")]
_SCORES = ("acc", "auc", "precision", "recall", "f1", "r2")  # more is better, as in libweft


def settle(given: Any, first_epoch: int) -> tuple[list[Callback], list[Item]]:
    """One's own callbacks, and those of libweft, of what `fit` is given: a list, or one alone.
    `first_epoch`: where Keras's numbers of epochs begin."""
    own: list[Callback] = []
    items: list[Item] = []
    for c in [] if given is None else given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(c, dict) and len(c) == 1:
            c = Item(*next(iter(c.items())))
        elif isinstance(c, str):
            c = Item(_FAMILY.kinds[c].kind if c in _FAMILY.kinds else c)
        if isinstance(c, Item):
            if c.kind != "terminate_on_nan":  # libweft does so of itself
                items.append(_settled(c, first_epoch))
        elif isinstance(c, Callback):
            for name in _NEVER:
                if hasattr(c, name):
                    raise errors.Unsupported(
                        f"{type(c).__name__}.{name} would never be called",
                        "there are on_epoch_begin, on_epoch_end, on_train_begin and on_train_end",
                        "WEFT_UNSUPPORTED")
            own.append(c)
        elif isinstance(c, Kind) or (isinstance(c, type) and issubclass(c, Callback)):
            raise errors.WrongType(f"callbacks: {c.__name__} is a class",
                                   f"call it: {c.__name__}()")
        else:
            raise errors.WrongType(
                f"callbacks: a {type(c).__module__}.{type(c).__name__} is none of weft's",
                "give those of weft.callbacks, or a class that inherits weft.callbacks.Callback")
    return own, items


def _settled(item: Item, first_epoch: int) -> Item:
    options = dict(item.options)
    monitor = options.get("monitor")
    if isinstance(monitor, str) and options.get("mode", "auto") == "auto" and any(
            s in monitor.lower() for s in _SCORES):  # libweft looks for small letters
        options["mode"] = "max"
    if first_epoch and options.get("start_from_epoch"):
        options["start_from_epoch"] = max(0, options["start_from_epoch"] - first_epoch)
    return Item(item.kind, options)


def __getattr__(name: str) -> Kind:
    return _FAMILY.find(name)


def __dir__() -> list[str]:
    return sorted([*_FAMILY.kinds, "Callback"])

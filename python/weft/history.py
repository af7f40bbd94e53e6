# SPDX-License-Identifier: Apache-2.0
"""What a training was like, epoch by epoch."""
from __future__ import annotations

import csv
import os
from typing import Any

from . import errors

# Columns of a run's history that are no loss or metric.
NOT_METRICS = ("epoch", "step", "generation", "elapsed_s", "learning_rate")


class History:
    """`history`: a list per loss and metric ("loss", "val_loss", ...), an entry per epoch; `epoch`:
    their numbers, from 0.

    >>> h = History()
    >>> h.add(0, {"loss": 0.5, "val_loss": 0.7})
    >>> h.history["val_loss"]
    [0.7]
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self.history: dict[str, list[float]] = {}

    def add(self, epoch: int, logs: dict[str, float]) -> None:
        """Adds an epoch."""
        for name, value in logs.items():
            self.history.setdefault(name, [float("nan")] * len(self.epoch)).append(value)
        self.epoch.append(epoch)
        for values in self.history.values():
            values.extend([float("nan")] * (len(self.epoch) - len(values)))

    def plot(self, *names: str, ax: Any = None) -> Any:
        """Draws the curves (of `names`; else all, losses and metrics in two pictures) with
        matplotlib, and returns its axes."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise errors.Unsupported("History.plot needs matplotlib, which is not installed",
                                     "pip install matplotlib", "WEFT_UNSUPPORTED") from None
        for name in names:
            if name not in self.history:
                raise errors.NotFound(f"the history has no {name!r}",
                                      f"it has: {', '.join(self.history) or 'no epoch'}",
                                      "WEFT_NOTFOUND")
        groups = [list(names)] if names else [
            g for g in ([n for n in self.history if n.endswith("loss")],
                        [n for n in self.history if not n.endswith("loss")]) if g]
        if ax is None:
            _, ax = plt.subplots(1, max(len(groups), 1), squeeze=False)
            ax = ax[0]
        axes = list(ax) if hasattr(ax, "__len__") else [ax] * len(groups)
        for group, one in zip(groups, axes):
            for name in group:
                one.plot([e + 1 for e in self.epoch], self.history[name], label=name)
            one.set_xlabel("epoch")
            one.legend()
        return axes


def read_epochs(path: str) -> list[dict[str, float]]:
    """The rows of a run's history.csv that are whole; none where there is no file yet."""
    if not os.path.exists(path):
        return []
    with open(path, newline="") as f:
        text = f.read()
    rows = csv.reader(text[:text.rfind("\n") + 1].splitlines())
    head = next(rows, [])
    return [{name: float(v) for name, v in zip(head, row) if v != ""} for row in rows
            if len(row) == len(head)]

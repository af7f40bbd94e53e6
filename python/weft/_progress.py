# SPDX-License-Identifier: Apache-2.0
"""The line that says how far a training is, in a terminal or a notebook."""
from __future__ import annotations

import shutil
import sys
import time
from typing import Any, TextIO

from . import errors

WIDTH = 24


def _numbers(logs: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in logs.items())


class Progress:
    """verbose 0: nothing; 1: a bar that moves, and a line per epoch; 2: a line per epoch."""

    def __init__(self, verbose: int, epochs: int, out: TextIO | None = None):
        self.verbose, self.epochs, self.out = verbose, epochs, out or sys.stdout
        self.began, self.width, self.shown = time.monotonic(), 0, 0.0

    def _write(self, line: str, end: str) -> None:
        if end == "":  # a line that wraps could not be written over
            line = line[:shutil.get_terminal_size().columns - 1]
        self.out.write("\r" + line.ljust(self.width) + end)
        self.width = len(line) if end == "" else 0
        self.out.flush()

    def move(self, r: dict[str, Any]) -> None:
        """Shows a report of a training that goes on."""
        now = time.monotonic()
        if self.verbose != 1 or r["state"] != "running" or now - self.shown < 0.1:
            return
        self.shown = now
        full = min(WIDTH, int(WIDTH * r["part"]))
        self._write(f"epoch {max(r['epoch'], 1)}/{self.epochs} [{'=' * full:{WIDTH}}] "
                    f"{r['samples_per_sec']:,.0f} records/s  {_numbers(r['metrics'])}", "")

    def epoch(self, number: int, logs: dict[str, float]) -> None:
        """Shows an epoch, counted from 0, that is over."""
        if self.verbose:
            self._write(f"epoch {number + 1}/{self.epochs}  {_numbers(logs)}", "\n")

    def end(self) -> None:
        """Leaves the line."""
        if self.width:
            self._write("", "")
            self.width = 0


def settle(verbose: Any) -> int:
    """What "auto" is: a bar where a person looks, else a line per epoch."""
    if verbose in (0, 1, 2):
        return int(verbose)
    if verbose != "auto":
        raise errors.Invalid(f"verbose is {verbose!r}", 'give 0, 1, 2 or "auto"')
    return 1 if "ipykernel" in sys.modules or sys.stdout.isatty() else 2

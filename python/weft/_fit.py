# SPDX-License-Identifier: Apache-2.0
"""weft_fit in a thread of its own, and its reports in the thread of the caller.

The thread is there for two reasons: subnormal numbers are zero in it and not in the caller's, and
Ctrl-C is met between two reports, never within a call of libweft.
"""
from __future__ import annotations

import ctypes
import queue
import threading
from typing import Any, Callable

from . import _lib
from ._job import Job, plain_errors
from ._tensor import List

REPORT_MS = 100


def _metrics(n: int, rows: Any) -> dict[str, float]:
    return {rows[i].name.decode(): rows[i].value for i in range(n)}


class Training:
    """One call of weft_fit. `interrupted`: Ctrl-C was pressed; `number`: of the run, 0 before it has
    one."""

    def __init__(self, job: Job, folder: str, checkpoint_dir: str, threads: int,
                 device: str | None, temporary: bool, optimizer: List | None):
        self.job = job
        self.callback = _lib.REPORT(self._report)
        self.options = _lib.CFitOptions(
            folder.encode(), checkpoint_dir.encode(), threads, 0, REPORT_MS, self.callback, None,
            device.encode() if device else None, int(temporary),
            optimizer.handle.pointer if optimizer else None)
        self.optimizer = optimizer  # stays as long as it is lent
        self.reports: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.answered = threading.Event()
        self.stop = self.interrupted = False
        self.number = 0
        self.error: BaseException | None = None
        self.ended: BaseException | None = None

    def _report(self, _arg: Any, p: Any) -> int:
        """In the training's thread: hands a report over and waits until it was looked at."""
        r = p.contents
        self.number = r.run
        self.answered.clear()
        self.reports.put({"state": r.state.decode(), "step": r.step, "epoch": r.epoch,
                          "part": r.part, "samples_per_sec": r.samples_per_sec,
                          "metrics": _metrics(r.n_metrics, r.metrics)})
        while not self.stop and not self.answered.wait(0.2):
            pass
        return int(self.stop)

    def _train(self) -> None:
        try:
            with plain_errors():
                _lib.call("fit", self.job.handle, ctypes.byref(self.options), None)
        except BaseException as e:  # raised again by the caller's thread
            self.ended = e
        self.reports.put(None)

    def run(self, look: Callable[[dict[str, Any]], bool]) -> None:
        """Trains; `look` gets each report, and says whether to stop. Raises what `look` raised, or
        how the training failed; Stopped after a stop."""
        thread = threading.Thread(target=self._train, name="weft.fit")
        thread.start()
        r: dict[str, Any] | None = {}
        while r is not None:
            try:
                r = self.reports.get()
                if r is not None and not self.stop and look(r):
                    self.stop = True
            except KeyboardInterrupt:
                self.stop = self.interrupted = True
                r = {}
            except BaseException as e:
                self.error, self.stop = e, True
            self.answered.set()
        thread.join()
        if self.error:
            raise self.error
        if self.ended:
            raise self.ended

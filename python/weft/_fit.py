# SPDX-License-Identifier: Apache-2.0
"""weft_fit in a thread of its own, and its reports in the thread of the caller.

The thread is there for two reasons: subnormal numbers are zero in it and not in the caller's, and
Ctrl-C is met between two reports, never within a call of libweft.
"""
from __future__ import annotations

import ctypes
import os
import queue
import re
import threading
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _lib, _progress, errors
from ._job import Job, plain_errors
from ._tensor import List
from .callbacks import Callback
from .history import NOT_METRICS, read_epochs

if TYPE_CHECKING:
    from .model import Model

REPORT_MS = 100


def _metrics(n: int, rows: Any) -> dict[str, float]:
    return {rows[i].name.decode(): rows[i].value for i in range(n)}


class Training:
    """One call of weft_fit. `interrupted`: Ctrl-C was pressed; `error`: what `look` raised;
    `number`: of the run, 0 before it has one."""

    def __init__(self, job: Job, folder: str, checkpoint_dir: str, threads: int,
                 device: str | None, temporary: bool, optimizer: List | None):
        self.job = job
        self.callback = _lib.REPORT(self._report)
        self.options = _lib.CFitOptions(
            folder.encode(), checkpoint_dir.encode(), threads, 0, REPORT_MS, self.callback, None,
            _lib.encoded(device, "device") if device else None, int(temporary),
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
        except errors.Error as e:  # raised again by the caller's thread
            self.ended = self._plain(e)
        except BaseException as e:
            self.ended = e
        self.reports.put(None)

    def _plain(self, e: errors.Error) -> errors.Error:
        """NaN is an error of its own kind; the step to replay goes with the journal's folder."""
        message = re.sub(r"; replay: weft grad \S+", "", e.message)
        hint = re.sub(r"^replay: weft grad [^;]+; ", "", e.hint)
        if re.match(r"the (loss|gradient)\b.* is (NaN|infinite)", message):
            return errors.NumericError(message, hint, "WEFT_NUMERIC")
        return type(e)(message, hint, e.code)

    def run(self, look: Callable[[dict[str, Any]], bool]) -> None:
        """Trains; `look` gets each report, and says whether to stop. Raises how the training
        failed; Stopped after a stop. Where `look` raised, the training stops as after Ctrl-C."""
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
        if self.ended:
            raise self.ended


class Watch:
    """Looks at the reports of a training: epochs that are over, the bar, callbacks. Numbers of
    epochs begin with `first`."""

    def __init__(self, model: Model, folder: str, own: Sequence[Callback],
                 bar: _progress.Progress, first: int):
        self.model, self.own, self.bar, self.first = model, own, bar, first
        self.jobs = os.path.join(folder, "jobs")
        self.logs: dict[str, float] = {}
        self.begun = 0  # epochs of which callbacks know that they began

    def look(self, report: dict[str, Any] | None) -> bool:
        """Whether to stop. None: the training is over."""
        history = self.model.history
        assert history is not None
        runs = os.listdir(self.jobs) if os.path.isdir(self.jobs) else []  # one: the folder is new
        rows = [r for run in runs for r in read_epochs(os.path.join(self.jobs, run, "history.csv"))]
        for row in rows[len(history.epoch):]:
            self._begin(len(history.epoch) + 1)
            number = int(row["epoch"]) - 1 + self.first
            self.logs = {k: v for k, v in row.items() if k not in NOT_METRICS}
            history.add(number, self.logs)
            self.bar.epoch(number, self.logs)
            for c in self.own:
                c.on_epoch_end(number, dict(self.logs))
        if report is not None:
            if report["state"] == "running":
                self._begin(min(report["epoch"], len(history.epoch) + 1))
            self.bar.move({**report, "epoch": max(report["epoch"], 1) + self.first})
        return self.model.stop_training

    def _begin(self, count: int) -> None:
        while self.begun < count:
            self.begun += 1
            for c in self.own:
                c.on_epoch_begin(self.first + self.begun - 1, {})

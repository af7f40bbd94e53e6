# SPDX-License-Identifier: Apache-2.0
"""weft_fit in a thread of its own, and its reports in the thread of the caller.

The thread is there for two reasons: subnormal numbers are zero in it and not in the caller's, and
Ctrl-C is met between two reports, never within a call of libweft.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import queue
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _lib, _progress, errors
from ._job import Job, plain_errors
from ._tensor import List
from .callbacks import Callback
from .history import NOT_METRICS, read_epochs

if TYPE_CHECKING:
    from .model import Model

REPORT_MS = 100
EXIT_S = 60.0  # the longest that the interpreter's end waits for a step of a daemon thread
AFTER_S = 5.0  # and then for callbacks, weights and files

_under_way: set["Training"] = set()
_ended = threading.Event()


def _metrics(n: int, rows: Any) -> dict[str, float]:
    return {rows[i].name.decode(): rows[i].value for i in range(n)}


class Training:
    """One call of weft_fit. `interrupted`: Ctrl-C was pressed; `error`: what `look` raised;
    `number`: of the run, 0 before it has one; `lock`: the model's, which its caller holds."""

    def __init__(self, job: Job, folder: str, checkpoint_dir: str, threads: int,
                 device: bytes | None, temporary: bool, optimizer: List | None, lock: Any):
        self.job, self.lock = job, lock
        self.callback = _lib.REPORT(self._report)
        self.options = _lib.CFitOptions(
            folder.encode(), checkpoint_dir.encode(), threads, 0, REPORT_MS, self.callback, None,
            device, int(temporary), optimizer.handle.pointer if optimizer else None)
        self.optimizer = optimizer  # stays as long as it is lent
        self.reports: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.answered = threading.Event()
        self.stop = self.interrupted = False
        self.number = 0
        self.error: BaseException | None = None
        self.ended: BaseException | None = None
        self.thread: threading.Thread | None = None

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
        if _ended.is_set() and threading.current_thread().daemon:
            threading.Event().wait()  # for the end of the process
        # A thread that is no daemon would be waited for before _end_all can stop it.
        self.thread = thread = threading.Thread(target=self._train, name="weft.fit", daemon=True)
        _under_way.add(self)
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

    def close(self) -> None:
        """Its caller has the weights."""
        _under_way.discard(self)


@atexit.register
def _end_all() -> None:
    """Stops what daemon threads train, and waits until they have left `fit`: threads of libweft
    must not run on while the process is torn down. Other threads have ended by now."""
    _ended.set()
    mine = [t for t in list(_under_way) if t.job.handle.pid == os.getpid()]
    for t in mine:
        t.stop = True
        t.answered.set()
    with contextlib.suppress(KeyboardInterrupt):  # who presses Ctrl-C does not want to wait
        until = time.monotonic() + EXIT_S
        for t in mine:
            if t.thread is not None and t.thread.is_alive():
                t.thread.join(max(0.0, until - time.monotonic()))
        until = time.monotonic() + AFTER_S
        for t in mine:  # and keeps the lock: the thread begins nothing new with the model
            t.lock.acquire(timeout=max(0.0, until - time.monotonic()))


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

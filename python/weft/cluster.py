# SPDX-License-Identifier: Apache-2.0
"""Clusters of weft, and jobs on them, through the command `weft`.

    import weft
    with weft.Cluster("cluster.yaml").up() as cluster:
        run = cluster.train("examples/digits.yaml")
        for report in run:
            print(report["step"], report["metrics"])
        model = run.model()

The command is the one that WEFT_EXECUTABLE names, else `weft` on the PATH. It has to be of the
release that the cluster's tasks are of.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any, Iterator

from . import errors
from .history import NOT_METRICS, History

if TYPE_CHECKING:
    from .model import Model

_ENDS = {2: errors.Invalid, 3: errors.Unsupported, 5: errors.Stopped}
_OVER = ("done", "failed", "stopped")
POLL_S = 0.2


def _executable() -> str:
    said = os.environ.get("WEFT_EXECUTABLE")
    found = shutil.which(said or "weft")
    if not found:
        raise errors.NotFound(f"WEFT_EXECUTABLE is {said}, and no program is there" if said else
                              "there is no command weft on the PATH",
                              "install weft, or set WEFT_EXECUTABLE=BUILD/cmd/weft",
                              "WEFT_NOTFOUND")
    return os.path.abspath(found)


def _existing(path: str | os.PathLike[str]) -> str:
    full = os.path.abspath(os.fspath(path))
    if not os.path.exists(full):
        raise errors.NotFound(f"there is no file {full}", "correct the path", "WEFT_NOTFOUND")
    return full


class Cluster:
    """The cluster of a cluster.yaml (docs/cluster.md). `with` takes it down at the end."""

    def __init__(self, path: str | os.PathLike[str] = "cluster.yaml"):
        self.path = _existing(path)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, kind: Any, *ended: Any) -> None:
        try:
            self.down()
        except errors.Error:
            if kind is None:  # else the error of the body is the one to be seen
                raise

    def run(self, *words: str, about: bool = True) -> str:
        """What a command says. `about`: it is told of the cluster by --cluster. Raises by its exit
        code, with its sentence."""
        more = ["--cluster", self.path] if about else []
        done = subprocess.run([_executable(), *words, *more], capture_output=True, text=True,
                              cwd=os.path.dirname(self.path))
        if done.returncode == 0:
            return done.stdout
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
        message, _, hint = re.sub(r"^weft: ", "", said[-1]).partition("; ")
        raise _ENDS.get(done.returncode, errors.Error)(message, hint, "WEFT_INVALID")

    def up(self, timeout: float = 20) -> "Cluster":
        """Starts the tasks of this host that are not up, and returns when all are ready."""
        self.run("up", self.path, "--if-down", "--timeout", str(int(timeout)), about=False)
        return self

    def down(self) -> None:
        """Stops the jobs with a checkpoint, and ends the tasks."""
        self.run("down", self.path, about=False)

    def status(self) -> dict[str, Any]:
        """The tasks and the jobs, as `weft status --json` has them."""
        return json.loads(self.run("status", "--json"))

    def train(self, job: str | os.PathLike[str], *, name: str | None = None, resume: bool = False,
              settings: dict[str, Any] | None = None) -> "Run":
        """Gives the cluster a job file as a new run, and returns at once; the run can be iterated.
        settings: in place of those of the file, by dotted keys: {"optimizer.learning_rate": 0.01}."""
        words = ["submit", _existing(job)]
        words += ["--resume"] if resume else []
        words += ["--name", name] if name else []
        for key, value in (settings or {}).items():
            words += ["--set", f"{key}={json.dumps(value) if isinstance(value, bool) else value}"]
        said = self.run(*words)
        found = re.search(r"job (\S+#\d+) is submitted", said)
        if not found:
            raise errors.Error(f"`weft submit` names no run: {said.strip()}",
                               "take the command of the package's release")
        return Run(self, found.group(1))


class Run:
    """A run of a job, as "digits#2". Iterating gives reports (dicts with "state", "step", "epoch",
    "metrics", "eval" and the rest of `weft status JOB --json`) until it is over, and raises when it
    failed or was stopped."""

    def __init__(self, cluster: Cluster, name: str):
        self.cluster, self.name = cluster, name

    def status(self) -> dict[str, Any]:
        """How far it is."""
        return json.loads(self.cluster.run("status", self.name, "--json"))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        before: Any = None
        while True:
            now = self.status()
            mark = (now["state"], now["step"], now["eval_epoch"])
            if mark != before:
                yield now
            before = mark
            if now["state"] in _OVER:
                break
            time.sleep(POLL_S)
        if now["state"] != "done":
            kind = errors.Stopped if now["state"] == "stopped" else errors.Error
            raise kind(f"job {self.name} {now['state']}: {now['reason']}", now["hint"])

    def wait(self) -> History:
        """Waits until it is done. Raises when it failed or was stopped."""
        for _ in self:
            pass
        return self.history()

    def history(self) -> History:
        """Losses and metrics of its epochs so far."""
        import csv
        rows = csv.reader(self.cluster.run("history", self.name, "--csv").splitlines())
        head, out = next(rows, []), History()
        for row in rows:
            values = {k: float(v) for k, v in zip(head, row) if v}
            out.add(int(values["epoch"]) - 1,
                    {k: v for k, v in values.items() if k not in NOT_METRICS})
        return out

    def stop(self) -> None:
        """Stops it after the current step, with a checkpoint."""
        self.cluster.run("stop", self.name)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes its model, with the weights of the newest checkpoint, as an ONNX file."""
        self.cluster.run("export", self.name, "-o", os.path.abspath(os.fspath(path)))

    def model(self) -> "Model":
        """The model with the weights of the newest checkpoint."""
        from .convert import with_folder
        from .model import Model
        folder = tempfile.mkdtemp(prefix="weft-model-")
        try:
            path = os.path.join(folder, "model.onnx")
            self.export(path)
            return with_folder(Model({"onnx": path}), folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

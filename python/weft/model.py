# SPDX-License-Identifier: Apache-2.0
"""Models that are trained, evaluated and run, with the methods of Keras's."""
from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from . import _lib, _progress, data, errors
from ._fit import Training
from ._items import spec
from ._job import Job, plain_errors
from ._tensor import List, View, to_array
from .callbacks import Callback
from .data import Arrays
from .history import NOT_METRICS, History, read_epochs
from .layers import Input

if TYPE_CHECKING:
    import numpy as np

BATCH_SIZE = 32  # Keras's default
IN_MEMORY = 8 << 20  # bytes of variables of a model whose temporary files lie in memory


class Model:
    """A model with its weights. Made by `from_layers`, `from_onnx`, `from_torch` or `from_keras`.

    Threads: methods of one model wait for each other. Processes: a model is of use in the process
    that made it; in a child that was forked its methods raise Unsupported.
    """

    def __init__(self, source: dict[str, Any], seed: int = 0, origin: Any = None,
                 folder: str | None = None):
        self._source, self._seed, self._origin, self._folder = source, seed, origin, folder
        self._lock = threading.RLock()
        self._compiled: dict[str, Any] = {}
        self._fits = 0
        self._optimizer: List | None = None  # its state, for the next fit
        self.stop_training = False
        self.history: History | None = None
        self._handle = self._open()
        self.input_names = [p["name"] for p in self._ports(_lib.INPUT)]
        self.output_names = [p["name"] for p in self._ports(_lib.OUTPUT)]

    def __del__(self) -> None:
        folder = getattr(self, "_folder", None)
        if folder and getattr(self, "_pid", None) == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)

    # ---- making one ----

    @classmethod
    def from_layers(cls, layers: Sequence[Any], *, outputs: Sequence[str] | None = None,
                    seed: int = 0) -> "Model":
        """A model of `weft.Input`s and `weft.layers`, each of which takes the output of the one
        before it unless it has the option `inputs`. `outputs`: the names of the layers whose outputs
        the model has; the last one. `seed`: of the first weights.

        >>> import weft
        >>> m = weft.Model.from_layers([weft.Input([28, 28, 1]), weft.layers.Flatten(),
        ...                             weft.layers.Dense(10, activation="softmax")])
        >>> m.count_params()
        7850
        """
        inputs = [x for x in layers if isinstance(x, Input)]
        rest = [x for x in layers if not isinstance(x, Input)]
        if not inputs or not rest:
            raise errors.Invalid("a model needs an input and layers",
                                 "begin the list with weft.Input(shape of a record)")
        source: dict[str, Any] = {"input": {i.name: i.spec() for i in inputs},
                                  "layers": [spec(x, "layers") for x in rest]}
        if outputs:
            source["outputs"] = list(outputs)
        return cls(source, seed)

    @classmethod
    def from_onnx(cls, path: str | os.PathLike[str], *, freeze: Sequence[str] = ()) -> "Model":
        """The model of an ONNX file, which has to stay where it is while the model is used.
        `freeze`: patterns of names of variables that are not to be trained."""
        full = os.path.abspath(os.fspath(path))
        if not os.path.exists(full):
            raise errors.NotFound(f"there is no file {full}", "correct the path", "WEFT_NOTFOUND")
        source: dict[str, Any] = {"onnx": full}
        if freeze:
            source["freeze"] = list(freeze)
        return cls(source)

    @classmethod
    def from_torch(cls, module: Any, example_inputs: Any, *,
                   input_names: Sequence[str] | None = None,
                   output_names: Sequence[str] | None = None) -> "Model":
        """A torch.nn.Module, exported as it is trained (python/weft_export.py). example_inputs: a
        tensor, or a tuple of them, as the module takes it. The module stays as it is:
        `module.load_state_dict(model.state_dict())` puts trained weights into it."""
        from .convert import exported
        return exported(cls, module, example_inputs, input_names, output_names)

    @classmethod
    def from_keras(cls, model: Any, example_inputs: Any = None) -> "Model":
        """A keras.Model, exported as it is trained (python/weft_export.py). example_inputs: as the
        model takes them; zeros of its inputs' shapes. `model.copy_to(keras_model)` puts trained
        weights into it."""
        from .convert import exported, keras_inputs
        return exported(cls, model, keras_inputs(model, example_inputs), None, None)

    def _content(self, **more: Any) -> dict[str, Any]:
        """What all jobs of this model say."""
        source = dict(self._source)
        freeze = {"freeze": source.pop("freeze")} if "freeze" in source else {}
        return {"job": "fit", "model": source, "optimizer": "sgd", "batch": 1, **freeze, **more}

    def _open(self) -> _lib.Handle:
        """The model for inference. A file may compute its loss itself; another needs one."""
        self._pid = os.getpid()
        import numpy as np
        nothing = {"x": np.zeros(1, "float32")}
        handle = _lib.Handle("model")
        failed: errors.Error | None = None
        for loss in [{}, {"loss": "mean_squared_error"}]:
            try:
                job = Job(self._content(seed=self._seed, **loss), nothing)
                with plain_errors():
                    _lib.call("model_of_job", job.handle, None, handle.out())
                return handle
            except errors.Error as e:
                failed = failed or e
                last = e
        raise last

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The model is the caller's alone. In a child process the lock may be held for ever."""
        self._handle.check()
        with self._lock:
            yield

    # ---- what it has ----

    def _ports(self, kind: int) -> list[dict[str, Any]]:
        c, out = _lib.library(), []
        for i in range(c.weft_model_count(self._handle, kind)):
            p = _lib.CPort()
            _lib.call("model_port", self._handle, kind, i, ctypes.byref(p))
            out.append({"name": p.name.decode(), "shape": list(p.shape[:max(p.rank, 0)]),
                        "trainable": bool(p.trainable)})
        return out

    def _variables(self) -> Arrays:
        """Copies of all variables."""
        out = {}
        for p in self._ports(_lib.VARIABLE):
            t = ctypes.POINTER(_lib.CTensor)()
            _lib.call("model_weight", self._handle, p["name"].encode(), ctypes.byref(t))
            out[p["name"]] = to_array(t.contents, None).copy()
            _lib.library().weft_tensor_free(ctypes.byref(t))
        return out

    def count_params(self) -> int:
        """The number of all numbers of its variables."""
        import math
        with self._locked():
            return sum(math.prod(p["shape"]) for p in self._ports(_lib.VARIABLE))

    def summary(self) -> None:
        """Prints inputs, outputs and variables."""
        with self._locked():
            for word, kind in (("input", _lib.INPUT), ("output", _lib.OUTPUT),
                               ("variable", _lib.VARIABLE)):
                for p in self._ports(kind):
                    shape = "x".join("?" if n < 0 else str(n) for n in p["shape"]) or "scalar"
                    frozen = "  (not trained)" if kind == _lib.VARIABLE and not p["trainable"] else ""
                    print(f"{word:9} {p['name']:40} {shape}{frozen}")
            print(f"{self.count_params():,} parameters")

    def state_dict(self) -> dict[str, Any]:
        """The weights by name: arrays, and for a model of a torch module the tensors that
        `module.load_state_dict` takes, with what the module has beside."""
        with self._locked():
            arrays = self._variables()
        if self._origin is None:
            return arrays
        return self._origin.state_dict(arrays)

    def set_weights(self, weights: dict[str, Any]) -> None:
        """Puts weights in place by name; those that are not named stay."""
        with self._locked():
            arrays = List.of({k: data.as_array(v, k) for k, v in weights.items()})
            _lib.call("model_set_weights", self._handle, arrays.handle)

    def copy_to(self, model: Any) -> None:
        """Puts the weights into a torch module or Keras model of the same names and shapes."""
        from .convert import copy_into
        copy_into(self.state_dict() if self._origin is None else self._variables(), model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as an ONNX file, or its weights as a safetensors file, by the end of the
        name."""
        name = os.fspath(path)
        ends = {".onnx": "model_write", ".safetensors": "model_save"}
        function = ends.get(os.path.splitext(name)[1])
        if function is None:
            raise errors.Invalid(f"{name}: weft writes .onnx (the model) and .safetensors (its "
                                 "weights)", "give the file one of these endings")
        with self._locked():
            _lib.call(function, self._handle, name.encode())

    # ---- training ----

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, *, loss_weights: Any = None,
                metrics: Any = None, compute: str | None = None) -> None:
        """Says how the model is trained: names, or `weft.optimizers`, `weft.losses` and
        `weft.metrics`; by output as a dict, or as a list in the order of `output_names`. Losses go
        by the model's end: with a softmax or sigmoid the outputs are probabilities, else logits.
        loss None: an ONNX file computes its own. compute: "bfloat16" and others of docs/jobs.md.

        >>> import weft
        >>> m = weft.Model.from_layers([weft.Input([2]), weft.layers.Dense(1)])
        >>> m.compile("adm", "mse")
        Traceback (most recent call last):
        weft.errors.Invalid: unknown optimizer "adm"; did you mean "adam"?
        """
        said = {"optimizer": spec(optimizer, "optimizer"), "loss": self._by_output(loss, "loss"),
                "loss_weights": self._by_output(loss_weights, "loss_weights"),
                "metrics": spec(metrics, "metrics"), "compute": compute}
        compiled = {k: v for k, v in said.items() if v is not None}
        with self._locked():
            import numpy as np
            fields = {n: np.zeros(1, "float32") for n in [*self.input_names, *self._labels(compiled)]}
            job = Job(self._content(**self._answers(compiled)), fields)
            with plain_errors():
                _lib.call("job_check", job.handle)
            self._compiled, self._optimizer = compiled, None

    def _by_output(self, value: Any, what: str) -> Any:
        if isinstance(value, (list, tuple)):
            if len(value) != len(self.output_names):
                raise errors.Invalid(f"{what} has {len(value)} entries, and the model "
                                     f"{len(self.output_names)} outputs",
                                     f"they are: {', '.join(self.output_names)}")
            value = dict(zip(self.output_names, value))
        if isinstance(value, dict) and len(self.output_names) == 1 and what == "loss" and (
                list(value) == self.output_names):
            value = value[self.output_names[0]]
        return spec(value, what)

    def _labels(self, compiled: dict[str, Any]) -> list[str]:
        """The fields of the labels: "y", or the names of the outputs that have a loss."""
        loss = compiled.get("loss")
        if loss is None:
            return []
        if isinstance(loss, dict) and set(loss) <= set(self.output_names):
            return [self._free(n) for n in loss]
        return [self._free("y")]

    def _free(self, name: str) -> str:
        return name if name not in self.input_names else name + "_label"

    def _answers(self, compiled: dict[str, Any]) -> dict[str, Any]:
        """The keys of a job file that say how labels and losses go together."""
        labels = self._labels(compiled)
        if not labels:
            return dict(compiled)
        loss = compiled["loss"]
        if isinstance(loss, dict) and set(loss) <= set(self.output_names):
            return {**compiled, "labels": dict(zip(loss, labels))}
        return {**compiled, "labels": labels[0]}

    def _fields(self, x: Any, y: Any, weight: Any) -> Arrays:
        """All arrays of a data set by field."""
        labels = self._labels(self._compiled)
        if labels:
            fields = data.named(x, self.input_names, "x")
            if y is None:
                raise errors.Invalid("there are no labels (y), and the loss needs them", "give y")
            outputs = [n.removesuffix("_label") if n not in self.output_names else n for n in labels]
            ys = data.named(y, outputs if len(labels) > 1 else labels, "y")
            ys = dict(zip(labels, ys.values()))
            data.check_finite(ys, "labels")
            fields.update(ys)
        elif isinstance(x, dict):
            fields = {n: data.as_array(v, f"x[{n!r}]") for n, v in x.items()}
        else:
            raise errors.Invalid("the file computes its own loss",
                                 "give x as a dict of all inputs, labels too")
        if weight is not None:
            fields["sample_weight"] = data.as_array(weight, "sample_weight")
        data.check_counts(fields)
        return fields

    def _need_compiled(self) -> None:
        if "optimizer" not in self._compiled:
            raise errors.Invalid("the model was not compiled",
                                 'model.compile("adam", "mean_squared_error") comes first')

    @contextlib.contextmanager
    def _workplace(self, checkpoint_dir: str | os.PathLike[str] | None) -> Iterator[tuple[str, str]]:
        """A folder for the journal, which goes again, and one for checkpoints."""
        folder = tempfile.mkdtemp(prefix="weft-fit-", dir=_memory_for(4 * self.count_params()))
        try:
            yield folder, os.fspath(checkpoint_dir or os.path.join(folder, "checkpoints"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
            verbose: Any = "auto", callbacks: Sequence[Any] | None = None,
            validation_split: float = 0.0, validation_data: Any = None, shuffle: bool = True,
            class_weight: dict[int, float] | None = None, sample_weight: Any = None,
            steps_per_epoch: int | None = None, *, seed: int | None = None, threads: int = 0,
            device: str | None = None,
            checkpoint_dir: str | os.PathLike[str] | None = None) -> History:
        """Trains from the model's present weights, and leaves the trained ones in it, so a second
        `fit` goes on, with the optimizer's state too (moments, the step of a schedule): that begins
        anew with `compile`.

        x, y, sample_weight: arrays; of several inputs or outputs a dict by name, or a list; tables
            of pandas or Arrow; or x alone a generator or loader of (x, y) or (x, y, sample_weight)
            (weft.data: it is gathered into memory first; `steps_per_epoch` says how many batches).
            Arrays are read where they are: change none while it trains.
        batch_size: 32. validation_data: (x, y) or (x, y, sample_weight). validation_split: the share
            at the end that is held out.
        callbacks: `weft.callbacks`. verbose: 0, 1 (a bar), 2 (a line per epoch) or "auto".
        seed: of the order of records and of dropout; None: the number of fits so far, so that the
            same calls give the same weights.
        threads: 0: one per processor. device: "cuda:0"; None: the cpu.
        checkpoint_dir: where checkpoints stay; None: they go when it is done.

        Ctrl-C ends it at a step; the weights are those of that step, and KeyboardInterrupt goes on.
        """
        with self._locked():
            self._need_compiled()
            if data.is_batches(x):
                if batch_size is None:
                    batch_size = getattr(x, "batch_size", None)
                x, y, sample_weight = data.gather(x, steps_per_epoch)
            train = self._fields(x, y, sample_weight)
            held: Arrays | None = None
            share: dict[str, Any] = {"shuffle": bool(shuffle)}
            if validation_data is not None:
                held = self._fields(*_parts(validation_data))
                if ("sample_weight" in held) != ("sample_weight" in train):
                    held = _even(held, train)
            elif validation_split:
                share["validation_split"] = float(validation_split)
            if validation_data is None and not validation_split and any(
                    getattr(c, "kind", "terminate_on_nan") != "terminate_on_nan"
                    for c in callbacks or []):
                raise errors.Invalid("callbacks look at the evaluation, and there is none",
                                     "give validation_data or validation_split")
            own = [c for c in callbacks or [] if isinstance(c, Callback)]
            items = [c for c in callbacks or [] if not isinstance(c, Callback)]
            content = self._content(
                **self._answers(self._compiled), data=share,
                **{"batch": _batch(batch_size), "epochs": int(epochs),
                   "seed": self._fits if seed is None else int(seed)})
            if "sample_weight" in train:
                content["sample_weight"] = "sample_weight"
            if class_weight:
                content["class_weight"] = {int(k): float(v) for k, v in class_weight.items()}
            if items:
                content["callbacks"] = spec(items, "callbacks")
            return self._fit(content, train, held, own, _progress.Progress(
                _progress.settle(verbose), epochs), threads, device, checkpoint_dir)

    def _fit(self, content: dict[str, Any], train: Arrays, held: Arrays | None,
             own: Sequence[Callback], bar: _progress.Progress, threads: int, device: str | None,
             checkpoint_dir: Any) -> History:
        self.history, self.stop_training = History(), False
        with self._workplace(checkpoint_dir) as (folder, checkpoints):
            begin = os.path.join(folder, "begin.safetensors")
            _lib.call("model_save", self._handle, begin.encode())
            if os.path.getsize(begin) > 64:  # else it has no variables
                content["weights"] = {"file": begin, "strict": False}
            job = Job(content, train, held)
            training = Training(job, folder, checkpoints, threads, device, checkpoint_dir is None,
                                self._optimizer)
            watch = _Watch(self, folder, own, bar)
            for c in own:
                c.set_model(self)
                c.on_train_begin({})
            try:
                training.run(watch.look)
                self._take(job, checkpoints, training.number)
            except errors.Stopped:  # as was asked for: by Ctrl-C or by a callback
                with contextlib.suppress(errors.NotFound):  # before the first step
                    self._take(job, checkpoints, training.number)
            finally:
                bar.end()
            watch.look(None)
        self._fits += 1
        if training.interrupted:
            raise KeyboardInterrupt
        for c in own:
            c.on_train_end(watch.logs)
        return self.history

    def _take(self, job: Job, checkpoints: str, run: int) -> None:
        """The weights of the newest checkpoint of a run become the model's, and its optimizer that
        of the next fit."""
        found, optimizer = List(), List()
        _lib.library().weft_job_set_run(job.handle, run)
        _lib.call("job_state", job.handle, checkpoints.encode(), _lib.STEP_NEWEST,
                  found.handle.out(), optimizer.handle.out())
        mine = {p["name"] for p in self._ports(_lib.VARIABLE)}
        self.set_weights({n: a for n, a in found.items() if n in mine})
        self._optimizer = optimizer

    # ---- evaluation and inference ----

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None,
                 sample_weight: Any = None, *, return_dict: bool = False, threads: int = 0) -> Any:
        """Loss and metrics on data, which is given as to `fit`: a number, a list (the loss first), or
        a dict by name."""
        with self._locked():
            self._need_compiled()
            if data.is_batches(x):
                x, y, sample_weight = data.gather(x)
            fields = self._fields(x, y, sample_weight)
            content = self._content(**self._answers(self._compiled),
                                    **{"batch": _batch(batch_size)})
            if "sample_weight" in fields:
                content["sample_weight"] = "sample_weight"
            job = Job(content, fields, fields)
            result = _lib.CEvaluation()
            weights = List.of(self._variables())
            with plain_errors():
                _lib.call("job_evaluate", job.handle, weights.handle,
                          ctypes.byref(_lib.CRunOptions(threads=threads)), ctypes.byref(result))
        values = {m.name.decode(): m.value for m in result.metrics[:result.n_metrics]}
        if return_dict:
            return values
        return list(values.values()) if len(values) > 1 else next(iter(values.values()))

    def predict(self, x: Any, batch_size: int | None = None, *, threads: int = 0,
                device: str | None = None) -> Any:
        """The outputs for records: an array, or a list of them in the order of `output_names`.
        batch_size: records of one run; None: as many as are there, up to 1024."""
        with self._locked():
            if data.is_batches(x):
                x = data.gather(x)[0]
            fields = data.named(x, self.input_names, "x")
            data.check_counts(fields)
            views = {n: View(self._as_input(n, a), n) for n, a in fields.items()}
            feeds = (_lib.CFeed * len(views))(*(
                _lib.CFeed(n.encode(), v.pointer(), b"x") for n, v in views.items()))
            options = _lib.CRunOptions(threads=threads, batch=batch_size or 1024,
                                       device=device.encode() if device else None)
            out = List()
            _lib.call("model_predict", self._handle, len(views), feeds, ctypes.byref(options),
                      out.handle.out())
        found = [a for _, a in out.items()]
        return found[0] if len(found) == 1 else found

    def _as_input(self, name: str, array: "np.ndarray") -> "np.ndarray":
        """In the dtype that the input has."""
        from ._tensor import DTYPES
        p = _lib.CPort()
        for i in range(len(self.input_names)):
            _lib.call("model_port", self._handle, _lib.INPUT, i, ctypes.byref(p))
            if p.name.decode() == name:
                break
        wanted = next((n for n, k in DTYPES.items() if k == p.dtype), array.dtype.name)
        shape = list(p.shape[1:max(p.rank, 1)])
        if all(n > 0 for n in shape) and [n for n in shape if n > 1] == [
                n for n in array.shape[1:] if n > 1]:
            array = array.reshape([array.shape[0], *shape])  # [n] is taken as [n, 1], as by fit
        return array.astype(wanted, copy=False)


class _Watch:
    """Looks at the reports of a training: epochs that are over, the bar, callbacks."""

    def __init__(self, model: Model, folder: str, own: Sequence[Callback],
                 bar: _progress.Progress):
        self.model, self.own, self.bar = model, own, bar
        self.jobs = os.path.join(folder, "jobs")
        self.logs: dict[str, float] = {}

    def look(self, report: dict[str, Any] | None) -> bool:
        """Whether to stop. None: the training is over."""
        history = self.model.history
        assert history is not None
        runs = os.listdir(self.jobs) if os.path.isdir(self.jobs) else []  # one: the folder is new
        rows = [r for run in runs for r in read_epochs(os.path.join(self.jobs, run, "history.csv"))]
        for row in rows[len(history.epoch):]:
            number = int(row["epoch"]) - 1
            self.logs = {k: v for k, v in row.items() if k not in NOT_METRICS}
            history.add(number, self.logs)
            self.bar.epoch(number, self.logs)
            for c in self.own:
                c.on_epoch_end(number, dict(self.logs))
        if report is not None:
            self.bar.move(report)
        return self.model.stop_training


def _memory_for(size: int) -> str | None:
    """The folder of Linux that lies in memory, for the temporary files of a small model, or None: on
    a disk the folders alone of a fit take longer to make and remove than its first steps. TMPDIR
    goes before."""
    folder = "/dev/shm"
    if "TMPDIR" in os.environ or size > IN_MEMORY or not os.access(folder, os.W_OK | os.X_OK):
        return None
    room = os.statvfs(folder)
    return folder if room.f_bavail * room.f_frsize > 16 * IN_MEMORY else None


def _batch(size: int | None) -> int:
    return BATCH_SIZE if size is None else int(size)


def _parts(value: Any) -> tuple[Any, Any, Any]:
    if data.is_batches(value):
        return data.gather(value)
    if not isinstance(value, (tuple, list)) or not 2 <= len(value) <= 3:
        raise errors.Invalid("validation_data is no (x, y)", "give (x, y) or (x, y, sample_weight)")
    return (*value, None)[:3]  # type: ignore[return-value]


def _even(held: Arrays, train: Arrays) -> Arrays:
    """Weights of records for both data sets or for none: where one lacks them, they are 1."""
    import numpy as np
    if "sample_weight" in held:
        raise errors.Invalid("validation_data has weights of records, and the training data none",
                             "give sample_weight for both")
    n = next(iter(held.values())).shape[0]
    return {**held, "sample_weight": np.ones(n, train["sample_weight"].dtype)}

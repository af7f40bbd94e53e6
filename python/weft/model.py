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

from . import _lib, _progress, callbacks as callbacks_, data, errors
from ._compile import Compiled, by_number, check_records, refuse, whole
from ._fit import Training, Watch
from ._items import Item, spec
from ._job import Job, plain_errors
from ._tensor import List, View
from .callbacks import Callback
from .data import Arrays
from .history import History
from .layers import Input
from .weights import Weights

if TYPE_CHECKING:
    import numpy as np

BATCH_SIZE = 32  # Keras's default
IN_MEMORY = 8 << 20  # bytes of variables of a model whose temporary files lie in memory


class Model(Weights):
    """A model with its weights. Made by `from_layers`, `from_onnx`, `from_torch` or `from_keras`.

    Threads: methods of one model wait for each other. Processes: a model is of use in the process
    that made it; in a child that was forked its methods raise Unsupported.
    """

    def __init__(self, source: dict[str, Any], seed: int = 0, origin: Any = None):
        self._source, self._seed, self._origin = source, seed, origin
        self._lock = threading.RLock()
        self._compiled: Compiled | None = None
        self._fits = 0
        self._optimizer: List | None = None  # its state, for the next fit
        self.stop_training = False
        self.history: History | None = None
        self._handle = self._open()
        self.input_names = [p["name"] for p in self._ports(_lib.INPUT)]
        self.output_names = [p["name"] for p in self._ports(_lib.OUTPUT)]

    # ---- making one ----

    @classmethod
    def from_layers(cls, layers: Sequence[Any], *, outputs: str | Sequence[str] | None = None,
                    seed: int = 0) -> "Model":
        """A model of `weft.Input`s and `weft.layers`, each of which takes the output of the one
        before it unless it has the option `inputs`. `outputs`: the names of the layers whose
        outputs the model has; the last one. `seed`: of the first weights.

        >>> import weft
        >>> m = weft.Model.from_layers([weft.Input([28, 28, 1]), weft.layers.Flatten(),
        ...                             weft.layers.Dense(10, activation="softmax")])
        >>> m.count_params()
        7850
        """
        if isinstance(layers, (Item, Input)) or not hasattr(layers, "__iter__"):
            raise errors.WrongType(f"from_layers got {layers!r}",
                                   "give a list: [weft.Input([4]), weft.layers.Dense(3)]")
        layers = list(layers)  # a generator is walked once
        inputs = [x for x in layers if isinstance(x, Input)]
        rest = [x for x in layers if not isinstance(x, Input)]
        if not inputs or not rest:
            raise errors.Invalid("a model needs an input and layers",
                                 "begin the list with weft.Input(shape of a record)")
        for at, i in enumerate(inputs):
            if i.name in [other.name for other in inputs[:at]]:
                raise errors.Invalid(f'two inputs have the name "{i.name}"', "give each one of its "
                                     f'own: weft.Input({i.shape}, name="x{at + 1}")')
        source: dict[str, Any] = {"input": {i.name: i.spec() for i in inputs},
                                  "layers": [spec(x, "layers") for x in rest]}
        if outputs:
            source["outputs"] = [outputs] if isinstance(outputs, str) else list(outputs)
        return cls(source, seed)

    @classmethod
    def from_onnx(cls, path: str | os.PathLike[str], *, freeze: str | Sequence[str] = ()
                  ) -> "Model":
        """The model of an ONNX file, which has to stay where it is while the model is used.
        `freeze`: patterns of names of variables that are not to be trained, or one."""
        full = os.path.abspath(os.fspath(path))
        if not os.path.exists(full):
            raise errors.NotFound(f"there is no file {full}", "correct the path", "WEFT_NOTFOUND")
        source: dict[str, Any] = {"onnx": full}
        if freeze:
            source["freeze"] = [freeze] if isinstance(freeze, str) else list(freeze)
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

    def _open(self, weights: dict[str, Any] | None = None) -> _lib.Handle:
        """The model for inference, with the weights of a file. A model file may compute its loss
        itself; another needs one."""
        import numpy as np
        nothing = {"x": np.zeros(1, "float32")}
        handle = _lib.Handle("model")
        more = {"weights": weights} if weights else {}
        failed: errors.Error | None = None
        for loss in [{}, {"loss": "mean_squared_error"}]:
            try:
                job = Job(self._content(seed=self._seed, **loss, **more), nothing)
                with plain_errors():
                    _lib.call("model_of_job", job.handle, None, handle.out())
                return handle
            except errors.Error as e:
                failed = failed or e
                last = e
        raise last

    # ---- training ----

    def compile(self, optimizer: Any = "rmsprop", loss: Any = None, loss_weights: Any = None,
                metrics: Any = None, weighted_metrics: Any = None, *,
                compute: str | None = None) -> None:
        """Says how the model is trained: names as Keras writes them, or `weft.optimizers`,
        `weft.losses` and `weft.metrics`. For several outputs, losses, their weights and metrics are
        dicts by name, or lists in the order of `output_names` (None: the output is not trained); a
        loss alone is that of the first output. Losses go by the model's end: with a softmax or
        sigmoid the outputs are probabilities, else logits. loss None: an ONNX file computes its
        own. A metric that is a name is reported under it. weighted_metrics: weft has none. compute:
        "bfloat16" and others of docs/jobs.md.

        >>> import weft
        >>> m = weft.Model.from_layers([weft.Input([2]), weft.layers.Dense(1)])
        >>> m.compile("adm", "mse")
        Traceback (most recent call last):
        weft.errors.Invalid: unknown optimizer "adm"; did you mean "adam"?
        """
        refuse("weighted_metrics", weighted_metrics, "give metrics, which count each record once")
        with self._locked("compile"):
            import numpy as np
            if loss is None and "layers" in self._source:
                raise errors.Invalid("compile got no loss", 'give one: loss="mean_squared_error"')
            compiled = Compiled(self.input_names, self.output_names, optimizer, loss, loss_weights,
                                metrics, compute)
            fields = {n: np.zeros(1, "float32")
                      for n in [*self.input_names, *compiled.labels.values()]}
            job = Job(self._content(**compiled.keys), fields)
            with plain_errors():
                _lib.call("job_check", job.handle)
            self._compiled, self._optimizer = compiled, None

    def _need_compiled(self) -> Compiled:
        if self._compiled is None:
            raise errors.Invalid("the model was not compiled",
                                 'model.compile("adam", "mean_squared_error") comes first')
        return self._compiled

    def _fields(self, x: Any, y: Any, weight: Any, where: str = "") -> Arrays:
        """All arrays of a data set by field."""
        fields = self._need_compiled().fields(x, y, weight)
        check_records(fields, self._ports(_lib.INPUT), where)
        return fields

    @contextlib.contextmanager
    def _workplace(self, checkpoint_dir: str | os.PathLike[str] | None
                   ) -> Iterator[tuple[str, str]]:
        """A folder for the journal, which goes again, and one for checkpoints."""
        folder = tempfile.mkdtemp(prefix="weft-fit-", dir=_memory_for(4 * self.count_params()))
        try:
            yield folder, os.fspath(checkpoint_dir or os.path.join(folder, "checkpoints"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fit(self, x: Any = None, y: Any = None, batch_size: int | None = None, epochs: int = 1,
            verbose: Any = "auto", callbacks: Any = None, validation_split: float = 0.0,
            validation_data: Any = None, shuffle: bool | None = None,
            class_weight: dict[int, float] | None = None, sample_weight: Any = None,
            initial_epoch: int = 0, steps_per_epoch: int | None = None,
            validation_steps: None = None, validation_batch_size: None = None,
            validation_freq: int = 1, *, seed: int | None = None, threads: int = 0,
            device: str | None = None,
            checkpoint_dir: str | os.PathLike[str] | None = None) -> History:
        """Trains from the model's present weights, and leaves the trained ones in it, so a second
        `fit` goes on, with the optimizer's state too (moments, the step of a schedule): that begins
        anew with `compile`.

        x, y, sample_weight: arrays; of several inputs or outputs a dict by name, or a list; tables
            of pandas or Arrow; or x alone a generator or loader of (x, y) or (x, y, sample_weight)
            (weft.data: it is gathered into memory first; `steps_per_epoch` says how many batches).
            Of several outputs sample_weight is by output too, or one array for all. Arrays are read
            where they are: change none while it trains.
        batch_size: 32; where x gives batches, a loader's own, or else the size of the first.
        shuffle: whether each epoch has the records in another order; None: those of arrays, and of
            a DataLoader whose sampler draws at random, but not those of other batches.
        validation_data: (x, y) or (x, y, sample_weight). validation_split: the share at the end
            that is held out.
        callbacks: `weft.callbacks`, in a list, or one. verbose: 0, 1 (a bar), 2 (a line per epoch)
            or "auto".
        initial_epoch: the number of the first epoch, from 0: `epochs - initial_epoch` are trained.
        validation_steps, validation_batch_size, validation_freq: Keras's, which weft has not: it
            evaluates after each epoch, all records, in batches that change no result.
        seed: of the order of records and of dropout; None: the number of fits so far, so that the
            same calls give the same weights.
        threads: 0: one per processor. device: "cuda:0"; None: the cpu.
        checkpoint_dir: where checkpoints stay; None: they go when it is done.

        Ctrl-C ends it at a step; the weights are those of that step, and KeyboardInterrupt goes on.
        So does an exception of a callback. After NaN, as after any failure of the training itself,
        the step's own weights cannot be had: the model has those of the newest checkpoint, which
        the callback ModelCheckpoint writes after each epoch; without it, those before `fit`.
        """
        refuse("validation_steps", validation_steps, "give fewer records as validation_data")
        refuse("validation_batch_size", validation_batch_size,
               "leave it out: the evaluation's result does not depend on its batches")
        refuse("validation_freq", validation_freq, "leave it out: each epoch is evaluated", 1)
        first, last = whole(initial_epoch, "initial_epoch", 0), whole(epochs, "epochs", 0)
        own, items = callbacks_.settle(callbacks, first)
        bar = _progress.Progress(_progress.settle(verbose), last)
        with self._locked("fit"):
            compiled = self._need_compiled()
            if data.is_batches(x):
                _alone(y, sample_weight)
                if shuffle is None:
                    shuffle = data.draws(x)
                said = getattr(x, "batch_size", None)
                x, y, sample_weight, first_size = data.gather(x, _steps(steps_per_epoch))
                if batch_size is None:
                    batch_size = said or first_size
                steps_per_epoch = None
            train = self._fields(x, y, sample_weight)
            held: Arrays | None = None
            share: dict[str, Any] = {"shuffle": shuffle is None or bool(shuffle)}
            if validation_data is not None:
                held = compiled.even(
                    self._fields(*_parts(validation_data), "validation_data: "), train)
            elif validation_split:
                share["validation_split"] = float(validation_split)
            elif items:
                raise errors.Invalid("callbacks look at the evaluation, and there is none",
                                     "give validation_data or validation_split")
            content = self._content(
                **compiled.keys, **compiled.weight_key(train), data=share,
                **{"batch": _batch(batch_size), "epochs": last - first,
                   "seed": self._fits if seed is None else whole(seed, "seed", 0)})
            _check_steps(steps_per_epoch, train, content)
            if class_weight is not None:
                by_class = by_number(class_weight)
                if by_class:
                    content["class_weight"] = by_class
            if items:
                content["callbacks"] = spec(items, "callbacks")
            self.history, self.stop_training = History(), False
            if first >= last:  # as in Keras: nothing is to do
                return self.history
            return self._fit(content, train, held, own, bar, first, _threads(threads),
                             _device(device), checkpoint_dir)

    def _fit(self, content: dict[str, Any], train: Arrays, held: Arrays | None,
             own: Sequence[Callback], bar: _progress.Progress, first: int, threads: int,
             device: bytes | None, checkpoint_dir: Any) -> History:
        assert self.history is not None
        with self._workplace(checkpoint_dir) as (folder, checkpoints):
            begin = os.path.join(folder, "begin.safetensors")
            _lib.call("model_save", self._handle, begin.encode())
            if os.path.getsize(begin) > 64:  # else it has no variables
                content["weights"] = {"file": begin, "strict": False}
            job = Job(content, train, held)
            training = Training(job, folder, checkpoints, threads, device, checkpoint_dir is None,
                                self._optimizer, self._lock)
            watch = Watch(self, folder, own, bar, first)
            for c in own:
                c.set_model(self)
                c.on_train_begin({})
            self._training = True
            try:
                try:
                    training.run(watch.look)
                    self._take(job, checkpoints, training.number)
                except errors.Stopped:  # as was asked for: by Ctrl-C or by a callback
                    with contextlib.suppress(errors.NotFound):  # before the first step
                        self._take(job, checkpoints, training.number)
                except errors.Error:
                    with contextlib.suppress(errors.Error):  # there may be no checkpoint
                        self._take(job, checkpoints, training.number)
                    if training.error is None:  # a callback's exception was before it
                        raise
                self._fits += 1
                if training.error is None:
                    watch.look(None)
            finally:
                self._training = False
                training.close()
                bar.end()
        if training.error is not None:
            raise training.error
        if training.interrupted:
            raise KeyboardInterrupt
        for c in own:
            c.on_train_end(watch.logs)
        return self.history

    def _take(self, job: Job, checkpoints: str, run: int) -> None:
        """The weights of the newest checkpoint of a run become the model's, and its optimizer that
        of the next fit."""
        if run == 0:  # which would be the newest run, another one
            raise errors.NotFound("the training ended before it had a run", "", "WEFT_NOTFOUND")
        found, optimizer = List(), List()
        _lib.library().weft_job_set_run(job.handle, run)
        _lib.call("job_state", job.handle, checkpoints.encode(), _lib.STEP_NEWEST,
                  found.handle.out(), optimizer.handle.out())
        mine = {p["name"] for p in self._ports(_lib.VARIABLE)}
        self._put({n: a for n, a in found.items() if n in mine})
        self._optimizer = optimizer

    # ---- evaluation and inference ----

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None,
                 verbose: Any = "auto", sample_weight: Any = None, steps: int | None = None,
                 callbacks: None = None, return_dict: bool = False, *, threads: int = 0) -> Any:
        """Loss and metrics on data, which is given as to `fit`: a number, a list (the loss first),
        or a dict by name. verbose: Keras's, of no effect, as there is no bar. steps: how many
        batches of a generator are taken. callbacks: Keras's; weft has none here."""
        with self._locked("evaluate"):
            compiled = self._need_compiled()
            _like_keras(verbose, callbacks)
            if data.is_batches(x):
                _alone(y, sample_weight)
                x, y, sample_weight, _ = data.gather(x, _steps(steps, "steps"))
            else:
                refuse("steps of arrays", steps, "give fewer records")
            fields = self._fields(x, y, sample_weight)
            content = self._content(**compiled.keys, **compiled.weight_key(fields),
                                    **{"batch": _batch(batch_size)})
            job = Job(content, fields, fields)
            result = _lib.CEvaluation()
            weights = List.of(self._variables())
            options = _lib.CRunOptions(threads=_threads(threads))
            with plain_errors():
                _lib.call("job_evaluate", job.handle, weights.handle, ctypes.byref(options),
                          ctypes.byref(result))
        values = {m.name.decode(): m.value for m in result.metrics[:result.n_metrics]}
        if return_dict:
            return values
        return list(values.values()) if len(values) > 1 else next(iter(values.values()))

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = "auto",
                steps: int | None = None, callbacks: None = None, *, threads: int = 0,
                device: str | None = None) -> Any:
        """The outputs for records: an array, or a list of them in the order of `output_names`.
        batch_size: records of one run; None: as many as are there, up to 1024. verbose, steps,
        callbacks: as of `evaluate`."""
        with self._locked("predict"):
            _like_keras(verbose, callbacks)
            if data.is_batches(x):
                x = data.gather(x, _steps(steps, "steps"))[0]
            else:
                refuse("steps of arrays", steps, "give fewer records")
            fields = data.named(x, self.input_names, "x")
            data.check_counts(fields)
            check_records(fields, self._ports(_lib.INPUT))
            views = {n: View(self._as_input(n, a), n) for n, a in fields.items()}
            feeds = (_lib.CFeed * len(views))(*(
                _lib.CFeed(n.encode(), v.pointer(), b"x") for n, v in views.items()))
            options = _lib.CRunOptions(threads=_threads(threads),
                                       batch=_batch(batch_size, 1024),
                                       device=_device(device))
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


def _memory_for(size: int) -> str | None:
    """The folder of Linux that lies in memory, for the temporary files of a small model, or None: on
    a disk the folders alone of a fit take longer to make and remove than its first steps. TMPDIR
    goes before."""
    folder = "/dev/shm"
    if "TMPDIR" in os.environ or size > IN_MEMORY or not os.access(folder, os.W_OK | os.X_OK):
        return None
    room = os.statvfs(folder)
    return folder if room.f_bavail * room.f_frsize > 16 * IN_MEMORY else None


def _batch(size: int | None, default: int = BATCH_SIZE) -> int:
    return default if size is None else whole(size, "batch_size")


def _threads(count: int) -> int:
    return whole(count, "threads", 0, 256)  # libweft's limit, before C cuts the number


def _device(name: str | None) -> bytes | None:
    if name == "":
        raise errors.Invalid("device is empty", 'give "cpu" or "cuda:0", or leave it out')
    return None if name is None else _lib.encoded(name, "device")


def _steps(steps: int | None, what: str = "steps_per_epoch") -> int | None:
    return None if steps is None else whole(steps, what)


def _alone(y: Any, sample_weight: Any) -> None:
    """Batches have all parts in them."""
    for word, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise errors.Invalid(f"{word} is given beside batches",
                                 "have each batch be (x, y) or (x, y, sample_weight)")


def _check_steps(steps: int | None, train: Arrays, content: dict[str, Any]) -> None:
    """steps_per_epoch of arrays is either what an epoch has anyway, or refused."""
    if steps is None:
        return
    share = 1 - content["data"].get("validation_split", 0)
    records = int(next(iter(train.values())).shape[0] * share)  # cut as libweft does
    if whole(steps, "steps_per_epoch") != -(-records // content["batch"]):
        raise errors.Unsupported(
            "steps_per_epoch is for generators, and an epoch of arrays has all of their records",
            f"give as many as an epoch should have: x[:{steps * content['batch']}]",
            "WEFT_UNSUPPORTED")


def _like_keras(verbose: Any, callbacks: Any) -> None:
    _progress.settle(verbose)
    refuse("callbacks of evaluate and predict", callbacks or None, "leave them out")


def _parts(value: Any) -> tuple[Any, Any, Any]:
    if data.is_batches(value):
        return data.gather(value)[:3]
    if not isinstance(value, (tuple, list)) or not 2 <= len(value) <= 3:
        raise errors.Invalid("validation_data is no (x, y)", "give (x, y) or (x, y, sample_weight)")
    return (*value, None)[:3]  # type: ignore[return-value]

# SPDX-License-Identifier: Apache-2.0
"""The weights of a model: read, set, and in files."""
from __future__ import annotations

import contextlib
import ctypes
import difflib
import math
import os
import threading
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from . import _lib, data, errors
from ._job import plain_errors
from ._tensor import DTYPES, List, to_array
from .data import Arrays

if TYPE_CHECKING:
    import numpy as np


class Weights:
    """What `Model` has of its weights."""

    _handle: _lib.Handle
    _lock: threading.RLock
    _origin: Any
    _training = False  # a fit is under way, so the weights are those before it

    @contextlib.contextmanager
    def _locked(self, method: str = "") -> Iterator[None]:
        """The model is the caller's alone. In a child process the lock may be held for ever.
        `method`: one that a callback cannot call."""
        self._handle.check()
        with self._lock:
            if method and self._training:
                raise errors.Unsupported(
                    f"a callback called model.{method}(), while the model is in training",
                    "call it in on_train_end or after fit; callbacks.ModelCheckpoint with "
                    "checkpoint_dir keeps weights of epochs", "WEFT_UNSUPPORTED")
            yield

    def _ports(self, kind: int) -> list[dict[str, Any]]:
        c, out = _lib.library(), []
        dtypes = {k: n for n, k in DTYPES.items()}
        for i in range(c.weft_model_count(self._handle, kind)):
            p = _lib.CPort()
            _lib.call("model_port", self._handle, kind, i, ctypes.byref(p))
            out.append({"name": p.name.decode(), "shape": list(p.shape[:max(p.rank, 0)]),
                        "trainable": bool(p.trainable), "dtype": dtypes.get(p.dtype)})
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
        with self._locked():
            return sum(math.prod(p["shape"]) for p in self._ports(_lib.VARIABLE))

    def summary(self) -> None:
        """Prints inputs, outputs and variables."""
        with self._locked():
            for word, kind in (("input", _lib.INPUT), ("output", _lib.OUTPUT),
                               ("variable", _lib.VARIABLE)):
                for p in self._ports(kind):
                    shape = "x".join("?" if n < 0 else str(n) for n in p["shape"]) or "scalar"
                    frozen = kind == _lib.VARIABLE and not p["trainable"]
                    print(f"{word:9} {p['name']:40} {shape}{'  (not trained)' if frozen else ''}")
            print(f"{self.count_params():,} parameters")

    def state_dict(self) -> dict[str, Any]:
        """The weights by name: arrays, and for a model of a torch module the tensors that
        `module.load_state_dict` takes, with what the module has beside."""
        with self._locked("state_dict"):
            arrays = self._variables()
        if self._origin is None:
            return arrays
        return self._origin.state_dict(arrays)

    def get_weights(self) -> list["np.ndarray"]:
        """The weights as a list, in the order of `summary`: that of the layers."""
        with self._locked("get_weights"):
            return list(self._variables().values())

    def set_weights(self, weights: Mapping[str, Any] | Sequence[Any]) -> None:
        """Puts weights in place: by name, and those that are not named stay; or all of them as a
        list in the order of `get_weights`. They get the dtypes of the model's. Of a torch module's
        state_dict, entries that are no variables of the model (`num_batches_tracked`) are left out.

        >>> import weft
        >>> m = weft.Model.from_layers([weft.Input([2]), weft.layers.Dense(1)])
        >>> m.set_weights([[[1], [2]], [3]])
        >>> m.state_dict()["dense/kernel"].tolist()
        [[1.0], [2.0]]
        """
        with self._locked("set_weights"):
            self._put(weights)

    def _put(self, weights: Any) -> None:
        mine = {p["name"]: p["dtype"] for p in self._ports(_lib.VARIABLE)}
        if isinstance(weights, (list, tuple)):
            if len(weights) != len(mine):
                raise errors.Invalid(f"{len(weights)} weights, and the model has {len(mine)}",
                                     "give as many as get_weights() does, or a dict by name")
            weights = dict(zip(mine, weights))
        if not isinstance(weights, Mapping):
            raise errors.WrongType(f"set_weights got a {type(weights).__name__}",
                                   "give a dict by name, or a list in the order of get_weights(); "
                                   "load_weights(path) reads a file")
        arrays: Arrays = {}
        for name, value in weights.items():
            if self._origin is not None and name not in mine:
                first = self._origin.first.get(name, name)
                if first not in mine and name in self._origin.state:
                    continue  # a counter or constant, which the exported model has not
                if first != name and first in weights:
                    continue  # a second name of the same parameter
                name = first
            if name not in mine:
                near = difflib.get_close_matches(str(name), mine, 1, 0.5)
                raise errors.NotFound(f"the model has no weight {name!r}",
                                      f"did you mean {near[0]!r}?" if near
                                      else "state_dict() has the names", "WEFT_NOTFOUND")
            array, dtype = data.as_array(value, name), mine[name]
            if dtype and array.dtype.name != dtype:
                if array.dtype.kind == "f" and not dtype.startswith("float"):
                    raise errors.ShapeError(
                        f"weight {name!r} is {dtype}, and the array {array.dtype}",
                        f'convert it: array.astype("{dtype}")', "WEFT_SHAPE")
                array = array.astype(dtype)
            arrays[name] = array
        held = List.of(arrays)
        with plain_errors():
            _lib.call("model_set_weights", self._handle, held.handle)

    def copy_to(self, model: Any) -> None:
        """Puts the weights into a torch module or Keras model of the same names and shapes."""
        from .convert import copy_into
        with self._locked("copy_to"):
            arrays = self._variables()
        copy_into(arrays, model)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as an ONNX file, or its weights as a safetensors file, by the end of the
        name. The ONNX file is for inference: it has no Dropout, noise and regularizers, so training
        goes on with a model that is made as this one was, and `load_weights`."""
        name = os.fspath(path)
        ends = {".onnx": "model_write", ".safetensors": "model_save"}
        function = ends.get(os.path.splitext(name)[1])
        if function is None:
            raise errors.Invalid(f"{name}: weft writes .onnx (the model) and .safetensors (its "
                                 "weights)", "give the file one of these endings")
        with self._locked("save"):
            try:
                _lib.call(function, self._handle, name.encode())
            except errors.NotFound:
                folder = os.path.dirname(os.path.abspath(name))
                if not os.path.isdir(folder):
                    raise
                raise errors.SystemRefused(f"no file can be made in {folder}",
                                           "write to another folder", "WEFT_IO") from None

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Puts the weights of a safetensors file in place, as `save` writes them."""
        full = os.path.abspath(os.fspath(path))
        if not full.endswith(".safetensors"):
            raise errors.Invalid(f"{full}: load_weights reads .safetensors",
                                 "an ONNX file is opened with weft.Model.from_onnx(path)")
        if not os.path.exists(full):
            raise errors.NotFound(f"there is no file {full}", "correct the path", "WEFT_NOTFOUND")
        with self._locked("load_weights"):
            theirs = Weights()
            theirs._handle = self._open({"file": full})
            self._put(theirs._variables())

    def _open(self, weights: dict[str, Any] | None = None) -> _lib.Handle:
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise errors.Unsupported("a model is neither copied nor pickled",
                                 "make another one in the same way, and put the weights in: "
                                 'again.set_weights(model.get_weights()); model.save("m.onnx") '
                                 "keeps it for predictions, without Dropout and regularizers",
                                 "WEFT_UNSUPPORTED")

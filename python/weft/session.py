# SPDX-License-Identifier: Apache-2.0
"""Sessions on a cluster of weft: variables that every session of the cluster sees, and graphs that
its workers compute.

    import weft
    a = weft.Session("127.0.0.1:7711")      # the address of any task: the master, a ps or a worker
    b = weft.Session("127.0.0.1:7712")
    a.variable("v", 0.0)
    a.assign("v", 3)
    assert b.read("v") == 3                 # through another task
    assert b.assign_add("v", 2) == 5
    assert a.read("v") == 5
"""
from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import numbers
import os
import threading
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from . import _lib, errors
from ._tensor import DTYPES, List, View, as_array, to_array

if TYPE_CHECKING:
    import numpy as np

_PLAIN = (bool, int, float, list, tuple)
_LONGEST_S = 86400.0


class Session:
    """A session at a task of a cluster. `address`: "HOST:PORT", "tcp://HOST:PORT" or "ipc://PATH".
    `container`: whose variables are meant; sessions of one container share them. `timeout`: of each
    call, in seconds.

    Variables live on the parameter servers until they are removed or the server that has them ends;
    training jobs have their own. A task that is away for less than the timeout is not noticed, and
    a change is made once, however often it had to be sent. After `weft.errors.Timeout` a change may
    have been made or not; the session can be used again.

    Threads: calls of one session wait for each other. Processes: a session is of use in the process
    that opened it; in a child that was forked its methods raise Unsupported.
    """

    def __init__(self, address: str, *, container: str = "", timeout: float = 10.0):
        if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
            raise errors.WrongType(f"the timeout is {timeout!r}", "give a number of seconds")
        if not 0 < timeout <= _LONGEST_S:  # NaN is neither
            raise errors.Invalid(f"a timeout of {timeout} s",
                                 f"give a number above 0, {_LONGEST_S} at most")
        self._lock = threading.RLock()  # of the handle: who closes it waits for a call under way
        self._dtypes: dict[str, str] = {}  # of variables
        self._inputs: dict[str, str] = {}  # dtypes of inputs of the graph, where they are known
        self._handle = _lib.Handle("session")
        options = _lib.CSessionOptions(_lib.encoded(container, "container"),
                                       max(1, int(timeout * 1000)))
        _lib.call("session_open", _lib.encoded(address, "address"), ctypes.byref(options),
                  self._handle.out())

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *ended: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session; the variables stay."""
        if self._handle.pointer:
            self._handle.check()
            with self._lock:
                _lib.library().weft_session_free(self._handle.out())

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise errors.Unsupported("a session is neither copied nor pickled",
                                 "open another one, at the address of any task of the cluster",
                                 "WEFT_UNSUPPORTED")

    @property
    def task(self) -> str:
        """The task that it was opened at, as "ps 1"."""
        text = ctypes.create_string_buffer(64)
        with self._used():
            _lib.library().weft_session_task(self._handle, text, len(text))
        return text.value.decode()

    # ---- variables ----

    def variable(self, name: str, value: Any) -> None:
        """Makes a variable with a first value; one that is there keeps its value. Python's numbers
        are float32 or int64. Raises ShapeError when it is there with another dtype or shape."""
        array = _plain(name, value, "")
        self._call("create", name, array)
        self._dtypes[name] = array.dtype.name

    def assign(self, name: str, value: Any) -> None:
        """Gives a variable another value of its shape. Arrays have to have its dtype; Python's numbers
        get it, where they fit. Raises NotFound, with the nearest name, ShapeError, and Invalid for
        numbers that do not fit."""
        self._change("assign", name, value)

    def assign_add(self, name: str, value: Any) -> "np.ndarray":
        """Adds to a variable and returns it. Of several sessions that add at the same time none is
        lost. Raises as `assign` does."""
        return self._change("assign_add", name, value, gives=True)

    def read(self, name: str) -> "np.ndarray":
        """The value of a variable. Raises NotFound."""
        array = self._call("read", name, gives=True)
        self._dtypes[name] = array.dtype.name
        return array

    def remove(self, name: str) -> None:
        """Removes a variable. Raises NotFound."""
        self._call("remove", name)
        self._dtypes.pop(name, None)

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        """The handle is this thread's. In a child that was forked nobody would give the lock back."""
        self._handle.check()
        with self._lock:
            if not self._handle.pointer:
                raise errors.Invalid("the session is closed", "open another one")
            yield

    def _call(self, what: str, name: str, array: "np.ndarray | None" = None,
              gives: bool = False) -> Any:
        out = ctypes.POINTER(_lib.CTensor)()
        words: list[Any] = [self._handle, _lib.encoded(name, "the name of a variable")]
        if array is not None:
            view = View(array, name)
            words.append(view.pointer())
        with self._used():
            _lib.call("session_" + what, *words, *([ctypes.byref(out)] if gives else []))
        if not gives:
            return None
        try:
            return to_array(out.contents, out).copy()
        finally:
            _lib.library().weft_tensor_free(ctypes.byref(out))

    def _change(self, what: str, name: str, value: Any, gives: bool = False) -> Any:
        try:
            return self._call(what, name, self._like(name, value), gives)
        except errors.ShapeError:
            if not isinstance(value, _PLAIN):
                raise
            self._dtypes.pop(name, None)  # another session may have made it anew
            return self._call(what, name, self._like(name, value), gives)

    def _like(self, name: str, value: Any) -> "np.ndarray":
        _lib.encoded(name, "the name of a variable")
        if isinstance(value, _PLAIN) and name not in self._dtypes:
            self.read(name)
        return _plain(name, value, self._dtypes.get(name, ""))

    # ---- graphs ----

    def extend(self, model: Any) -> None:
        """Adds an ONNX model: a path, its bytes, or an onnx.ModelProto. Models meet by the names of
        their values. Its trained initializers, and those that an operation Read, Assign or AssignAdd
        of the domain "ai.weft" takes first, become variables of the cluster."""
        with self._used():
            if isinstance(model, (str, os.PathLike)):
                _lib.call("session_extend_file", self._handle, os.fsencode(model))
            elif hasattr(model, "graph") or isinstance(model, (bytes, bytearray, memoryview)):
                data = model.SerializeToString() if hasattr(model, "graph") else bytes(model)
                _lib.call("session_extend", self._handle, data, len(data))
            else:
                raise errors.WrongType(f"the model is {model!r}, of {type(model).__name__}",
                                       "give the path of an ONNX file, its bytes or an onnx.ModelProto")
        self._inputs.update(_input_dtypes(model))

    def run(self, fetches: str | Sequence[str] | None = None,
            feeds: Mapping[str, Any] | None = None,
            targets: str | Sequence[str] = ()) -> Any:
        """Has a worker compute what the fetches and targets need. Variables are read as it begins,
        and assignments made as it ends. Returns the value of a fetch that is a string, a list for a
        list of them, and None without fetches. `targets`: values or nodes to be run, of which
        nothing comes back. Raises NotFound for a name that is not there, ShapeError, Invalid for an
        input that is not fed, and Timeout, with key and sender, for a Recv of which nothing came.
        Python's numbers get the dtype of the input, where it is known: of an onnx.ModelProto, and
        where the package onnx is installed. Else they are float32 or int64."""
        names, ends = _encoded(fetches, "fetches"), _encoded(targets, "targets")
        views = self._fed(feeds or {})
        given = (_lib.CFeed * len(views))(*(
            _lib.CFeed(n, v.pointer(), b"the feed") for n, v in views.items()))
        out = List()
        try:
            with self._used():
                _lib.call("session_run", self._handle, len(views), given, len(names),
                          _strings(names), len(ends), _strings(ends), out.handle.out())
        except errors.ShapeError as e:
            hint = e.hint or "give arrays of the inputs' dtypes and shapes"
            raise errors.ShapeError(e.message, hint, e.code) from None
        except errors.Invalid:
            self._refuse_variables(feeds or {})
            raise
        found = [array.copy() for _, array in out.items()]
        if fetches is None:
            return None
        return found[0] if isinstance(fetches, str) else found

    def _fed(self, feeds: Mapping[str, Any]) -> dict[bytes, View]:
        if not isinstance(feeds, collections.abc.Mapping):
            raise errors.WrongType(f"feeds is of {type(feeds).__name__}",
                                   "give a dict of arrays by the names of inputs")
        out = {}
        for name, value in feeds.items():
            encoded = _lib.encoded(name, "the name of a feed")
            out[encoded] = View(_plain(name, value, self._inputs.get(name, "")), name)
        return out

    def _refuse_variables(self, feeds: Mapping[str, Any]) -> None:
        """A graph may have an input of a variable's name, so this is asked when a run failed."""
        for name in feeds:
            if name not in self._inputs and self._has(name):
                raise errors.Invalid(f"{name!r} is a variable, and only inputs are fed",
                                     "give it a value with assign") from None

    def _has(self, name: str) -> bool:
        try:
            self.read(name)
        except errors.Error:
            return False
        return True


def _plain(name: str, value: Any, dtype: str) -> "np.ndarray":
    """An array as it is, and Python's numbers in a dtype that holds them; "": float32 for those
    with a fraction."""
    import numpy as np
    array = as_array(value, name)
    if not isinstance(value, _PLAIN):
        return array
    dtype = dtype or array.dtype.name.replace("float64", "float32")
    with np.errstate(all="ignore"):  # of what does not fit
        new = array.astype(dtype)
    if array.dtype.kind == new.dtype.kind == "f":  # rounding is no loss, infinity is
        lost = np.isfinite(array) & ~np.isfinite(new)
    else:
        lost = new != array
    if lost.any():
        raise errors.Invalid(f"{name!r} is {dtype}, and {array[lost][0]} does not fit into it",
                             "give numbers that this dtype has")
    return new


def _input_dtypes(model: Any) -> dict[str, str]:
    """Of the inputs of an ONNX model, as far as they can be known here."""
    if not hasattr(model, "graph"):
        try:
            import onnx
        except ImportError:
            return {}
        if isinstance(model, (str, os.PathLike)):
            with open(model, "rb") as f:
                model = f.read()
        model = onnx.load_model_from_string(bytes(model))
    kinds = {number: name for name, number in DTYPES.items()}
    variables = {i.name for i in model.graph.initializer}
    return {i.name: kinds[i.type.tensor_type.elem_type] for i in model.graph.input
            if i.type.tensor_type.elem_type in kinds and i.name not in variables}


def _encoded(names: Any, what: str) -> list[bytes]:
    if names is None:
        return []
    if isinstance(names, str) or not isinstance(names, collections.abc.Iterable):
        names = [names]
    return [_lib.encoded(n, f"a name of {what}") for n in names]


def _strings(names: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * len(names))(*names)

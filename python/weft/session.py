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

import ctypes
import os
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from . import _lib, errors
from ._tensor import List, View, as_array, to_array

if TYPE_CHECKING:
    import numpy as np

_PLAIN = (bool, int, float, list, tuple)


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
        if timeout <= 0:
            raise errors.Invalid(f"a timeout of {timeout} s", "give a number above 0")
        self._dtypes: dict[str, str] = {}
        self._handle = _lib.Handle("session")
        options = _lib.CSessionOptions(container.encode(), max(1, int(timeout * 1000)))
        _lib.call("session_open", address.encode(), ctypes.byref(options), self._handle.out())

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *ended: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session; the variables stay."""
        if self._handle.pointer:
            self._handle.check()
            _lib.library().weft_session_free(self._handle.out())

    @property
    def task(self) -> str:
        """The task that it was opened at, as "ps 1"."""
        text = ctypes.create_string_buffer(64)
        self._use()
        _lib.library().weft_session_task(self._handle, text, len(text))
        return text.value.decode()

    # ---- variables ----

    def variable(self, name: str, value: Any) -> None:
        """Makes a variable with a first value; one that is there keeps its value. Python's numbers
        are float32 or int64. Raises ShapeError when it is there with another dtype or shape."""
        array = as_array(value, name)
        if isinstance(value, _PLAIN) and array.dtype == "float64":
            array = array.astype("float32")
        self._call("create", name, array)
        self._dtypes[name] = array.dtype.name

    def assign(self, name: str, value: Any) -> None:
        """Gives a variable another value of its shape. Arrays have to have its dtype; Python's numbers
        get it. Raises NotFound, with the nearest name, and ShapeError."""
        self._call("assign", name, self._like(name, value))

    def assign_add(self, name: str, value: Any) -> "np.ndarray":
        """Adds to a variable and returns it. Of several sessions that add at the same time none is
        lost. Raises as `assign` does."""
        return self._call("assign_add", name, self._like(name, value), gives=True)

    def read(self, name: str) -> "np.ndarray":
        """The value of a variable. Raises NotFound."""
        array = self._call("read", name, gives=True)
        self._dtypes[name] = array.dtype.name
        return array

    def remove(self, name: str) -> None:
        """Removes a variable. Raises NotFound."""
        self._call("remove", name)
        self._dtypes.pop(name, None)

    def _use(self) -> None:
        self._handle.check()
        if not self._handle.pointer:
            raise errors.Invalid("the session is closed", "open another one")

    def _call(self, what: str, name: str, array: "np.ndarray | None" = None,
              gives: bool = False) -> Any:
        self._use()
        out = ctypes.POINTER(_lib.CTensor)()
        words: list[Any] = [self._handle, name.encode()]
        if array is not None:
            view = View(array, name)
            words.append(view.pointer())
        _lib.call("session_" + what, *words, *([ctypes.byref(out)] if gives else []))
        if not gives:
            return None
        try:
            return to_array(out.contents, out).copy()
        finally:
            _lib.library().weft_tensor_free(ctypes.byref(out))

    def _like(self, name: str, value: Any) -> "np.ndarray":
        array = as_array(value, name)
        if not isinstance(value, _PLAIN):
            return array
        if name not in self._dtypes:
            self.read(name)
        return array.astype(self._dtypes[name])

    # ---- graphs ----

    def extend(self, model: Any) -> None:
        """Adds an ONNX model: a path, its bytes, or an onnx.ModelProto. Models meet by the names of
        their values. Its trained initializers, and those that an operation Read, Assign or AssignAdd
        of the domain "ai.weft" takes first, become variables of the cluster."""
        self._use()
        if isinstance(model, (str, os.PathLike)):
            _lib.call("session_extend_file", self._handle, os.fsencode(model))
            return
        data = model.SerializeToString() if hasattr(model, "SerializeToString") else bytes(model)
        _lib.call("session_extend", self._handle, data, len(data))

    def run(self, fetches: str | Sequence[str] | None = None,
            feeds: Mapping[str, Any] | None = None,
            targets: str | Sequence[str] = ()) -> Any:
        """Has a worker compute what the fetches and targets need. Variables are read as it begins,
        and assignments made as it ends. Returns the value of a fetch that is a string, a list for a
        list of them, and None without fetches. `targets`: values or nodes to be run, of which
        nothing comes back. Raises NotFound for a name that is not there, ShapeError, Invalid for an
        input that is not fed, and Timeout, with key and sender, for a Recv of which nothing came."""
        self._use()
        names = [fetches] if isinstance(fetches, str) else list(fetches or ())
        ends = [targets] if isinstance(targets, str) else list(targets)
        views = {n: View(as_array(v, n), n) for n, v in (feeds or {}).items()}
        given = (_lib.CFeed * len(views))(*(
            _lib.CFeed(n.encode(), v.pointer(), b"the feed") for n, v in views.items()))
        out = List()
        _lib.call("session_run", self._handle, len(views), given, len(names), _strings(names),
                  len(ends), _strings(ends), out.handle.out())
        found = [array.copy() for _, array in out.items()]
        if fetches is None:
            return None
        return found[0] if isinstance(fetches, str) else found


def _strings(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*(n.encode() for n in names))

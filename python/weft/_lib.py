# SPDX-License-Identifier: Apache-2.0
"""libweft through ctypes: its structs, its functions, its errors (lib/weft.h is the reference).

ctypes lets go of the interpreter's lock for the time of each call.
"""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)
from typing import Any

from . import errors

MAX_RANK = 8
MAX_METRICS = 64
STEP_NEWEST = -1
INPUT, OUTPUT, VARIABLE = 1, 2, 3


class CError(Structure):
    _fields_ = [("code", c_int), ("message", c_char * 1024), ("hint", c_char * 256),
                ("name", c_char * 256)]


class CTensor(Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("rank", c_int32), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("owner", c_void_p)]


class CFeed(Structure):
    _fields_ = [("name", c_char_p), ("tensor", POINTER(CTensor)), ("origin", c_char_p)]


class CRunOptions(Structure):
    _fields_ = [("seed", c_uint64), ("threads", c_uint32), ("memory_limit", c_size_t),
                ("batch", c_uint64), ("warn", c_void_p), ("arg", c_void_p), ("device", c_char_p)]


class CPort(Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("rank", c_int32),
                ("shape", c_int64 * MAX_RANK), ("trainable", c_int)]


class CMetric(Structure):
    _fields_ = [("name", c_char * 64), ("value", c_double)]


class CEvaluation(Structure):
    _fields_ = [("records", c_uint64), ("n_metrics", c_uint32), ("metrics", CMetric * MAX_METRICS)]


class CReport(Structure):
    _fields_ = [("state", c_char_p), ("run", c_uint32), ("step", c_uint64), ("epoch", c_uint32),
                ("epochs", c_uint32), ("part", c_double), ("samples_per_sec", c_double),
                ("n_metrics", c_uint32), ("metrics", CMetric * MAX_METRICS), ("n_eval", c_uint32),
                ("eval", CMetric * MAX_METRICS), ("eval_epoch", c_uint32), ("checkpoint", c_int64)]


class CSessionOptions(Structure):
    _fields_ = [("container", c_char_p), ("timeout_ms", c_uint32)]


REPORT = CFUNCTYPE(c_int, c_void_p, POINTER(CReport))


class CFitOptions(Structure):
    _fields_ = [("folder", c_char_p), ("checkpoint_dir", c_char_p), ("threads", c_uint32),
                ("resume", c_int), ("report_ms", c_uint32), ("report", REPORT), ("arg", c_void_p),
                ("device", c_char_p), ("temporary", c_int), ("optimizer", c_void_p)]


_OUT = POINTER(c_void_p)
_ERROR = POINTER(CError)
# name: (result, arguments); functions with the result c_int are those that can fail.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "process_settings": (None, []),
    "code_name": (c_char_p, [c_int]),
    "list_new": (c_int, [_OUT, _ERROR]),
    "list_add": (c_int, [c_void_p, c_char_p, POINTER(CTensor), _ERROR]),
    "list_count": (c_size_t, [c_void_p]),
    "list_name": (c_char_p, [c_void_p, c_size_t]),
    "list_tensor": (POINTER(CTensor), [c_void_p, c_size_t]),
    "list_free": (None, [_OUT]),
    "model_of_job": (c_int, [c_void_p, c_void_p, _OUT, _ERROR]),
    "model_free": (None, [_OUT]),
    "model_count": (c_size_t, [c_void_p, c_int]),
    "model_port": (c_int, [c_void_p, c_int, c_size_t, POINTER(CPort), _ERROR]),
    "model_predict": (c_int, [c_void_p, c_size_t, POINTER(CFeed), POINTER(CRunOptions), _OUT,
                              _ERROR]),
    "model_weight": (c_int, [c_void_p, c_char_p, POINTER(POINTER(CTensor)), _ERROR]),
    "model_set_weights": (c_int, [c_void_p, c_void_p, _ERROR]),
    "model_write": (c_int, [c_void_p, c_char_p, _ERROR]),
    "model_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "tensor_free": (None, [POINTER(POINTER(CTensor))]),
    "job_parse": (c_int, [c_char_p, c_size_t, c_char_p, _OUT, _ERROR]),
    "job_set_run": (None, [c_void_p, c_uint32]),
    "job_check": (c_int, [c_void_p, _ERROR]),
    "job_free": (None, [_OUT]),
    "job_feed": (c_int, [c_void_p, c_char_p, POINTER(CTensor), _ERROR]),
    "job_weights": (c_int, [c_void_p, c_char_p, c_int64, c_void_p, c_void_p, _OUT, _ERROR]),
    "job_state": (c_int, [c_void_p, c_char_p, c_int64, _OUT, _OUT, _ERROR]),
    "job_evaluate": (c_int, [c_void_p, c_void_p, POINTER(CRunOptions), POINTER(CEvaluation),
                             _ERROR]),
    "session_open": (c_int, [c_char_p, POINTER(CSessionOptions), _OUT, _ERROR]),
    "session_free": (None, [_OUT]),
    "session_task": (None, [c_void_p, c_char_p, c_size_t]),
    "session_create": (c_int, [c_void_p, c_char_p, POINTER(CTensor), _ERROR]),
    "session_assign": (c_int, [c_void_p, c_char_p, POINTER(CTensor), _ERROR]),
    "session_assign_add": (c_int, [c_void_p, c_char_p, POINTER(CTensor),
                                   POINTER(POINTER(CTensor)), _ERROR]),
    "session_read": (c_int, [c_void_p, c_char_p, POINTER(POINTER(CTensor)), _ERROR]),
    "session_remove": (c_int, [c_void_p, c_char_p, _ERROR]),
    "session_extend": (c_int, [c_void_p, c_char_p, c_size_t, _ERROR]),
    "session_extend_file": (c_int, [c_void_p, c_char_p, _ERROR]),
    "session_run": (c_int, [c_void_p, c_size_t, POINTER(CFeed), c_size_t, POINTER(c_char_p),
                            c_size_t, POINTER(c_char_p), _OUT, _ERROR]),
    "fit": (c_int, [c_void_p, POINTER(CFitOptions), POINTER(CReport), _ERROR]),
}


def find() -> str:
    """The path of libweft.so: WEFT_LIBRARY, or the one in the package."""
    said = os.environ.get("WEFT_LIBRARY")
    if said:
        return said
    own = sorted(pathlib.Path(__file__).parent.glob("libweft.so*"))
    if own:
        return str(own[0])
    raise errors.NotFound("there is no libweft.so in the package weft",
                          "pip install ./python, or set WEFT_LIBRARY=BUILD/lib/libweft.so",
                          "WEFT_NOTFOUND")


@functools.cache
def library() -> ctypes.CDLL:
    """libweft, loaded once."""
    path = find()
    try:
        c = ctypes.CDLL(path)
    except OSError as e:
        raise errors.SystemRefused(
            f"{path} cannot be loaded: {e}",
            "install the libraries that it needs (docs/python.md lists them)", "WEFT_IO") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        f = getattr(c, "weft_" + name, None)
        if f is None:
            raise errors.Unsupported(f"{path} has no function weft_{name}",
                                     "take a libweft of the same release as the package")
        f.restype, f.argtypes = result, arguments
    # What concerns OpenBLAS and malloc is for the whole process. That subnormal numbers are zero is
    # for a thread and those that it starts: this one ends, and that of the caller stays as it is.
    settings = threading.Thread(target=c.weft_process_settings)
    settings.start()
    settings.join()
    return c


def encoded(name: Any, what: str) -> bytes:
    """A name as C takes it. Raises WrongType for what is no string, and Invalid for one that C
    would cut."""
    if not isinstance(name, str):
        raise errors.WrongType(f"{what} is {name!r}, of {type(name).__name__}", "give a string")
    try:
        text = name.encode()
    except UnicodeEncodeError as e:
        raise errors.Invalid(f"{what} is {name!r}, which is no text in UTF-8",
                             "leave the surrogates out") from e
    _refuse_nul(text)
    return text


def _refuse_nul(text: bytes) -> None:
    if b"\0" in text:
        raise errors.Invalid(f"{text.decode(errors='replace')!r} has a character NUL",
                             "leave it out: names end there")


def call(name: str, *arguments: Any) -> None:
    """Calls a function that can fail; raises its error."""
    c = library()
    kinds = _FUNCTIONS[name][1]
    for argument, after in zip(arguments, kinds[1:]):
        if isinstance(argument, Handle):  # ctypes would wrap what _as_parameter_ raises
            argument.check()
        elif isinstance(argument, bytes) and after is not c_size_t:  # else data, with their size
            _refuse_nul(argument)
    error = CError()
    code = getattr(c, "weft_" + name)(*arguments, ctypes.byref(error))
    if code:
        raise errors.of_code(c.weft_code_name(code).decode(),
                             error.message.decode(errors="replace"),
                             error.hint.decode(errors="replace"))


class Handle:
    """A handle of libweft, freed with its owner, and of use in the process that made it alone: its
    threads are not there in a child that was forked."""

    def __init__(self, kind: str):
        self.kind, self.pointer, self.pid = kind, c_void_p(), os.getpid()

    def __del__(self, getpid: Any = os.getpid, byref: Any = ctypes.byref,
                library: Any = library) -> None:
        # Bound here: at the interpreter's end the globals of modules may be None already.
        if self.pointer and self.pid == getpid():
            getattr(library(), f"weft_{self.kind}_free")(byref(self.pointer))

    @property
    def _as_parameter_(self) -> c_void_p:
        return self.pointer

    def out(self) -> Any:
        """For an argument `out`."""
        return ctypes.byref(self.pointer)

    def check(self) -> None:
        """Raises in a child process."""
        if self.pid != os.getpid():
            raise errors.Unsupported(
                f"this {self.kind} was made in process {self.pid}, and process {os.getpid()} is its "
                "child: threads of libweft do not survive a fork",
                'make it anew in the child, or start processes with multiprocessing\'s "spawn"',
                "WEFT_UNSUPPORTED")

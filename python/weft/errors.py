# SPDX-License-Identifier: Apache-2.0
"""Errors of weft: one sentence, what is wrong and where, and a hint, what to do about it.

    >>> import weft
    >>> try:
    ...     weft.Model.from_onnx("none.onnx")
    ... except weft.Error as e:
    ...     print(type(e).__name__, "none.onnx" in e.message)
    NotFound True
"""
from __future__ import annotations


class Error(Exception):
    """`message`: what is wrong; `hint`: what to do, or ""; `code`: libweft's, as "WEFT_SHAPE"."""

    def __init__(self, message: str, hint: str = "", code: str = "WEFT_INVALID"):
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message, self.hint, self.code = message, hint, code


class Invalid(Error, ValueError):
    """A value that cannot be right, or values that contradict each other."""


class ShapeError(Error, ValueError):
    """Shapes or dtypes do not go together."""


class WrongType(Error, TypeError):
    """An argument is of a type that weft does not take."""


class NotFound(Error, LookupError):
    """A file or name is not there."""


class Unsupported(Error, NotImplementedError):
    """weft does not do this."""


class OutOfMemory(Error, MemoryError):
    """Memory, or a stated limit on it, is used up."""


class SystemRefused(Error, OSError):
    """The system refused: disk, permissions, another process."""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class NumericError(Error, ArithmeticError):
    """NaN or infinity where none may be."""


class Stopped(Error):
    """Ended on request before it was done."""


class Timeout(Error, TimeoutError):
    """A task of a cluster has not answered in time."""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


_CLASSES = {"WEFT_NOMEM": OutOfMemory, "WEFT_FULL": OutOfMemory, "WEFT_INVALID": Invalid,
            "WEFT_USAGE": Invalid, "WEFT_MISMATCH": Invalid, "WEFT_CORRUPT": Invalid,
            "WEFT_SHAPE": ShapeError, "WEFT_NOTFOUND": NotFound, "WEFT_UNSUPPORTED": Unsupported,
            "WEFT_IO": SystemRefused, "WEFT_EXISTS": SystemRefused, "WEFT_NUMERIC": NumericError,
            "WEFT_STOPPED": Stopped, "WEFT_TIMEOUT": Timeout}


def of_code(code: str, message: str, hint: str) -> Error:
    """The exception for an error of libweft."""
    return _CLASSES.get(code, Error)(message, hint, code)

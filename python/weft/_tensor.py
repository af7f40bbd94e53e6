# SPDX-License-Identifier: Apache-2.0
"""Arrays of Python and tensors of libweft, without a copy where their layouts allow it."""
from __future__ import annotations

import collections.abc
import ctypes
from typing import TYPE_CHECKING, Any, Iterator

from . import _lib, errors

if TYPE_CHECKING:
    import numpy as np

# numpy's names of the dtypes that libweft has, and ONNX's numbers.
DTYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}
_WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64",
          "uint64": "int64"}


def as_array(value: Any, what: str) -> "np.ndarray":
    """Anything that holds numbers as an array of a dtype of libweft's: numpy's arrays, what has the
    buffer protocol, DLPack (torch, jax, cupy on the host), pandas, Arrow (tables of them: columns
    side by side), lists. Strides stay as they are; only what has another dtype or byte order is
    copied.

    >>> import numpy as np
    >>> a = np.zeros((4, 6), "float32")[:, ::2]
    >>> np.shares_memory(as_array(a, "x"), a)
    True
    """
    import numpy as np

    if hasattr(value, "detach"):  # of torch: one with a gradient gives no memory
        value = value.detach()
        if str(getattr(value, "device", "cpu")) != "cpu":
            value = value.cpu()
        if hasattr(value, "resolve_neg"):  # views whose memory has the other sign
            value = value.resolve_conj().resolve_neg()
    table = columns(value)
    if isinstance(value, np.ndarray):
        array = _unmasked(value, what) if isinstance(value, np.ma.MaskedArray) else value
    elif table is not None:
        array = _side_by_side(value, table, what)
    elif hasattr(value, "to_numpy"):
        array = _of_column(value, what)
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array_interface__"):
        try:
            array = np.from_dlpack(value)
        except (RuntimeError, BufferError, TypeError) as e:
            raise errors.WrongType(f"{what}: its memory cannot be read ({e})",
                                   "convert it to float32 on the cpu") from None
    else:
        _refuse_indexed(value, what)
        try:
            array = np.asarray(value)
        except ValueError as e:
            raise errors.ShapeError(f"{what}: it is no array ({e})",
                                    "give rows of one length", "WEFT_SHAPE") from None
    return _settle_dtype(array, what)


def _unmasked(value: Any, what: str) -> "np.ndarray":
    """The numbers of a masked array of numpy's, if none is masked."""
    import numpy as np
    masked = np.ma.getmaskarray(value)
    if masked.any():
        at = int(np.argwhere(masked)[0][0]) if masked.ndim else 0
        raise errors.Invalid(f"{what}: record {at} is masked, {int(masked.sum())} numbers are in all",
                             "leave such records out, or fill them: array.filled(0)")
    return value.data


def columns(table: Any) -> list[tuple[str, Any]] | None:
    """The columns of a table of Arrow or pandas with their names; None: it is none."""
    if hasattr(table, "column_names") and hasattr(table, "column"):  # of Arrow
        return [(n, table.column(n)) for n in table.column_names]
    if hasattr(table, "columns") and hasattr(table, "to_numpy"):  # of pandas
        pairs = table.items() if hasattr(table, "items") else ((n, table[n]) for n in table.columns)
        return [(str(n), column) for n, column in pairs]
    return None


def _side_by_side(table: Any, pairs: list[tuple[str, Any]], what: str) -> "np.ndarray":
    """pandas has mixed and nullable columns as Python's objects, so each is taken by itself;
    columns of one dtype of numpy's are one array already."""
    import numpy as np
    kinds = {getattr(column, "dtype", None) for _, column in pairs}
    if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype):
        return np.asarray(table.to_numpy())
    if not pairs:
        raise errors.Invalid(f"{what}: the table has no columns", "give it one for each number")
    return np.column_stack([as_array(column, f"{what}, column {n!r}") for n, column in pairs])


def _of_column(column: Any, what: str) -> "np.ndarray":
    """A column of pandas, or an array of Arrow. Its nulls have no number."""
    import numpy as np
    nullable = getattr(getattr(column, "dtype", None), "numpy_dtype", None)  # of pandas
    if nullable is not None or isinstance(getattr(column, "null_count", None), int):
        nulls = np.asarray(column.isna() if nullable is not None else column.is_null())
        if nulls.any():
            raise errors.Invalid(f"{what}: record {int(nulls.argmax())} is null, "
                                 f"{int(nulls.sum())} of {len(nulls)} are in all",
                                 "leave such records out, or fill them")
    try:
        if nullable is not None:
            return np.asarray(column.to_numpy(nullable))
        return np.asarray(column if hasattr(column, "null_count") else column.to_numpy())
    except (TypeError, ValueError, NotImplementedError) as e:
        raise errors.WrongType(f"{what}: {type(column).__name__} is no array of numbers ({e})",
                               "convert it to numbers first: " + ", ".join(DTYPES)) from None


def _refuse_indexed(value: Any, what: str) -> None:
    """numpy asks what it does not know for items until one fails, which may be for ever."""
    known = isinstance(value, (collections.abc.Sequence, collections.abc.Mapping)) or any(
        hasattr(value, name) for name in ("__array__", "__array_interface__", "__array_struct__"))
    if not known and hasattr(value, "__getitem__") and hasattr(value, "__len__") and (
            not _is_buffer(value)):
        raise errors.WrongType(
            f"{what}: a {type(value).__name__} gives items by index, and is no array",
            "give arrays, or batches: torch.utils.data.DataLoader(it, batch_size=32) of a data set of "
            "records, keras.utils.PyDataset for one of batches")


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _settle_dtype(array: "np.ndarray", what: str) -> "np.ndarray":
    name = array.dtype.newbyteorder("=").name
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if name in _WIDER:
        if name == "uint64" and array.size and int(array.max()) > 2**63 - 1:
            raise errors.Invalid(f"{what}: {int(array.max())} does not fit into int64",
                                 "hash or renumber such ids")
        return array.astype(_WIDER[name])
    if name in DTYPES:
        size = array.dtype.itemsize
        if array.ctypes.data % size or any(s % size for s in array.strides):
            return array.copy()
        return array
    if array.dtype == object:
        raise errors.WrongType(f"{what}: its dtype is object, so its elements are Python's objects "
                               f"({_kinds(array)})",
                               'give numbers of one dtype: array.astype("float32"), rows of one '
                               "length, no None")
    raise errors.WrongType(f"{what}: weft takes no {array.dtype}",
                           "convert it to numbers first: " + ", ".join(DTYPES))


def _kinds(array: "np.ndarray") -> str:
    kinds = {type(v).__name__ for v in array.ravel()[:1000]}
    return ", ".join(sorted(kinds)[:4])


class View:
    """A weft_tensor over an array, which it keeps."""

    def __init__(self, array: "np.ndarray", what: str):
        if array.ndim > _lib.MAX_RANK:
            raise errors.ShapeError(f"{what} has {array.ndim} axes; weft takes up to "
                                    f"{_lib.MAX_RANK}", "reshape it", "WEFT_SHAPE")
        size = array.dtype.itemsize
        self.array = array
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // size for s in array.strides))
        self.c = _lib.CTensor(array.ctypes.data, DTYPES[array.dtype.name], array.ndim, self.shape,
                              None if array.flags.c_contiguous else self.strides, None)

    def pointer(self) -> Any:
        return ctypes.pointer(self.c)


class _Memory:
    """Elements of a tensor of libweft as numpy sees them; what they are of is kept."""

    def __init__(self, t: _lib.CTensor, owner: Any):
        import numpy as np
        dtype = np.dtype(next(n for n, k in DTYPES.items() if k == t.dtype))
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "typestr": dtype.str, "data": (t.data or 0, False),
            "shape": tuple(t.shape[i] for i in range(t.rank))}


def to_array(t: _lib.CTensor, owner: Any) -> "np.ndarray":
    """The elements of a tensor that lives as long as `owner`; not copied."""
    import numpy as np
    names = {k: n for n, k in DTYPES.items()}
    if t.dtype not in names:
        raise errors.Unsupported("a tensor of bfloat16 has no dtype in numpy",
                                 "cast it to float32 in the model")
    shape = tuple(t.shape[i] for i in range(t.rank))
    if 0 in shape:
        return np.zeros(shape, names[t.dtype])
    return np.asarray(_Memory(t, owner))


class List:
    """A weft_list: tensors by name."""

    def __init__(self) -> None:
        self.handle = _lib.Handle("list")

    @classmethod
    def of(cls, arrays: dict[str, "np.ndarray"]) -> "List":
        new = cls()
        _lib.call("list_new", new.handle.out())
        for name, array in arrays.items():
            view = View(as_array(array, name), name)
            _lib.call("list_add", new.handle, _lib.encoded(name, "a name"), view.pointer())
        return new

    def items(self) -> Iterator[tuple[str, "np.ndarray"]]:
        c = _lib.library()
        for i in range(c.weft_list_count(self.handle)):
            yield (c.weft_list_name(self.handle, i).decode(),
                   to_array(c.weft_list_tensor(self.handle, i).contents, self.handle))

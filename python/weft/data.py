# SPDX-License-Identifier: Apache-2.0
"""Data of `fit`, `evaluate` and `predict` as arrays by name.

Arrays, tensors and columns are taken where they are. Generators and loaders (PyTorch's DataLoader,
Keras's PyDataset, tf.data) are gathered once, before the first step, into arrays of at most
`LIMIT_BYTES`: each epoch then has the same records, so random augmentation in a loader happens once.
"""
from __future__ import annotations

import itertools
import numbers
import os
import re
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from . import errors
from ._tensor import as_array, columns

if TYPE_CHECKING:
    import numpy as np

Arrays = dict[str, "np.ndarray"]

# The most bytes that a generator or loader may fill: half of the machine's memory.
LIMIT_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def is_batches(x: Any) -> bool:
    """Whether it gives batches one by one, and is no array.

    >>> is_batches(iter([])), is_batches([1, 2]), is_batches({"x": [1]})
    (True, False, False)
    """
    if hasattr(x, "__next__") or hasattr(x, "as_numpy_iterator"):
        return True
    if hasattr(x, "__array_interface__") or hasattr(x, "to_numpy") or hasattr(x, "__dlpack__"):
        return False
    return (hasattr(x, "dataset") and hasattr(x, "batch_size") and hasattr(x, "__iter__")) or (
        hasattr(x, "on_epoch_end") and hasattr(x, "__getitem__") and hasattr(x, "__len__"))


def draws(batches: Any) -> bool:
    """Whether it is a DataLoader whose sampler draws records at random."""
    sampler = getattr(batches, "sampler", None)  # one of a batch_sampler goes before
    sampler = getattr(getattr(batches, "batch_sampler", None), "sampler", sampler)
    return getattr(sampler, "shuffle", False) is True or any(  # of DistributedSampler
        "Random" in kind.__name__ for kind in type(sampler).__mro__)


def gather(batches: Any, steps: int | None = None) -> tuple[Any, Any, Any, int]:
    """All batches (x, y, sample_weight) of a generator or loader, or the first `steps`, as one each,
    and the number of records of the first batch; what they do not have is None. A batch is x, (x,),
    (x, y) or (x, y, sample_weight); each of these is an array, a dict of arrays, or a tuple or list
    of arrays, which comes back as a tuple.

    >>> x, y, w, n = gather(iter([([[1.0]], [0]), ([[2.0]], [1])]))
    >>> x.tolist(), y.tolist(), w, n
    ([[1.0], [2.0]], [0, 1], None, 1)
    """
    if steps is not None and (not isinstance(steps, numbers.Integral) or steps < 1):
        raise errors.Invalid(f"steps_per_epoch is {steps!r}, and an epoch has at least one step",
                             "give the number of batches of an epoch, or leave it out")
    kind = type(batches).__name__
    held, size, parts = 0, 0, []
    for i, batch in enumerate(itertools.islice(_each(batches), steps)):
        three = _three(batch)
        for word, part, first in zip(_PARTS, three, parts[0] if parts else three):
            if _form(part, word) != _form(first, word):
                raise errors.Invalid(
                    f"batch {i + 1} of the {kind} has {_form(part, word)}, and batch 1 has "
                    f"{_form(first, word)}", "give all batches the same parts")
        n = _records(three, f"batch {i + 1} of the {kind}")
        size = size or n
        held += sum(a.nbytes for p in three for a in _arrays(p))
        if held > LIMIT_BYTES:
            raise errors.OutOfMemory(
                f"the batches of {kind} hold more than {LIMIT_BYTES} bytes after "
                f"{i + 1}",
                "say how many make an epoch (steps_per_epoch), or raise weft.data.LIMIT_BYTES; data "
                "that no memory holds is for a job file (docs/data.md)", "WEFT_NOMEM")
        parts.append(three)
    if not parts:
        raise errors.Invalid(f"{kind} gives no batch",
                             "a generator that was used up gives nothing again: make a new one")
    x, y, w = (_join([p[k] for p in parts]) for k in range(3))
    return x, y, w, size


_PARTS = ("x", "y", "sample_weight")


def _form(part: Any, word: str) -> str:
    """What a part has to be in all batches, in words."""
    if part is None:
        return f"no {word}"
    if isinstance(part, dict):
        return f"a dict of {', '.join(sorted(map(str, part)))} for {word}"
    return f"{len(part)} arrays for {word}" if isinstance(part, tuple) else f"one array for {word}"


def _each(batches: Any) -> Iterable[Any]:
    if hasattr(batches, "as_numpy_iterator"):
        return batches.as_numpy_iterator()
    if hasattr(batches, "__iter__") or hasattr(batches, "__next__"):
        return batches
    return (batches[i] for i in range(len(batches)))


def _three(batch: Any) -> tuple[Any, Any, Any]:
    if isinstance(batch, (tuple, list)):
        if not 1 <= len(batch) <= 3:
            raise errors.Invalid(f"a batch of {len(batch)} parts",
                                 "give (x, y) or (x, y, sample_weight); several inputs are a "
                                 "dict or a tuple of arrays")
        x, y, w = (*batch, None, None)[:3]
    else:
        x, y, w = batch, None, None
    return tuple(_own(p) for p in (x, y, w))  # type: ignore[return-value]


def _own(part: Any) -> Any:
    """A copy: loaders may use their memory again."""
    if isinstance(part, dict):
        return {k: _own(v) for k, v in part.items()}
    # Lists of numbers are one array, and so are lists of numbers of numpy's, which have no axes.
    if isinstance(part, (tuple, list)) and part and all(getattr(v, "shape", ()) for v in part):
        return tuple(_own(v) for v in part)
    return None if part is None else as_array(part, "a batch").copy()


def _arrays(part: Any) -> list["np.ndarray"]:
    """All of a part."""
    if isinstance(part, dict):
        part = tuple(part.values())
    if isinstance(part, tuple):
        return [a for v in part for a in _arrays(v)]
    return [] if part is None else [part]


def _records(batch: Sequence[Any], what: str) -> int:
    """How many a batch has. One record, without a batch's axis, has other numbers in its parts."""
    counts = [(word, a.shape[0] if a.ndim else None)
              for word, part in zip(_PARTS, batch) for a in _arrays(part)]
    first = counts[0][1] if counts else 0
    for word, n in counts:
        if n is None or n != first:
            said = " and ".join(
                ("a single number" if m is None else f"{m} row{'s' * (m != 1)}") + f" for {w}"
                for w, m in dict.fromkeys((counts[0], (word, n))))
            raise errors.ShapeError(
                f"{what} has {said}: it is a single record, or its parts do not go together",
                "give batches: dataset.batch(32) of tf.data, DataLoader(data, batch_size=32)",
                "WEFT_SHAPE")
    return first or 0


def _join(parts: Sequence[Any]) -> Any:
    import numpy as np
    if parts[0] is None:
        return None
    if isinstance(parts[0], dict):
        return {k: _join([p[k] for p in parts]) for k in parts[0]}
    if isinstance(parts[0], tuple):
        return tuple(_join(arrays) for arrays in zip(*parts))
    try:
        return np.concatenate(parts)
    except ValueError as e:
        raise errors.ShapeError(f"batches do not go together: {e}",
                                "records of all batches have one shape", "WEFT_SHAPE") from None


def named(x: Any, names: Sequence[str], what: str) -> Arrays:
    """Arrays by the names of what takes them: from a dict, from a table of pandas or Arrow (its
    columns by name, or, for a single name that is no column, all of them side by side), from a
    tuple in the order of the names, or from one array.

    >>> import numpy as np
    >>> sorted(named({"a": [1.0], "b": [2]}, ["a", "b"], "x"))
    ['a', 'b']
    >>> named(np.zeros((3, 2)), ["x"], "x")["x"].shape
    (3, 2)
    """
    table = dict(columns(x) or ())
    if table and (len(names) > 1 or names[0] in table):
        x = {name: table[name] for name in names if name in table}
    if isinstance(x, dict):
        lacking = [n for n in names if n not in x]
        extra = [n for n in x if n not in names]
        if lacking or extra:
            raise errors.Invalid(
                f"{what} has " + (f"no {lacking[0]!r}" if lacking else
                                  f"{extra[0]!r}, which the model has not"),
                f"the model has: {', '.join(names)}")
        return {n: as_array(x[n], f"{what}[{n!r}]") for n in names}
    if len(names) > 1:
        if not isinstance(x, (list, tuple)) or len(x) != len(names):
            raise errors.Invalid(f"{what} is for {len(names)}: {', '.join(names)}",
                                 "give a dict by these names, or as many arrays in their order")
        return {n: as_array(v, f"{what}[{n!r}]") for n, v in zip(names, x)}
    if isinstance(x, (list, tuple)) and len(x) == 1 and hasattr(x[0], "shape") and x[0].shape:
        x = x[0]
    return {names[0]: as_array(x, what)}


def check_finite(arrays: Arrays, what: str) -> None:
    """That there is no NaN: of labels it would make every weight NaN."""
    import numpy as np
    for name, a in arrays.items():
        if a.dtype.kind != "f":
            continue
        bad = np.isnan(a)
        if bad.any():
            at = int(np.argwhere(bad)[0][0])
            raise errors.NumericError(
                f"{what} {name!r}: record {at} is NaN, {int(bad.sum())} numbers are in all",
                "leave such records out, or fill them", "WEFT_NUMERIC")


def check_counts(arrays: Arrays) -> int:
    """The number of records, which all have."""
    counts = {name: (a.shape[0] if a.ndim else None) for name, a in arrays.items()}
    for name, n in counts.items():
        if n is None:
            raise errors.ShapeError(f"{name!r} is a single number and no records",
                                    "give it a first axis, one entry a record", "WEFT_SHAPE")
        if n == 0:
            raise errors.Invalid(f"{name!r} holds no records")
    if len(set(counts.values())) > 1:
        raise errors.ShapeError("the arrays have different numbers of records: " + ", ".join(
            f"{name!r} {n}" for name, n in counts.items()), "", "WEFT_SHAPE")
    return next(iter(counts.values())) or 0


def keys(prefix: str, arrays: Arrays) -> dict[str, str]:
    """Names in memory for fields, of letters that libweft allows there."""
    return {name: f"{prefix}{i}." + re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:40]
            for i, name in enumerate(arrays)}

# SPDX-License-Identifier: Apache-2.0
"""data.py LIBWEFT - arrays, tables and batches as fit, evaluate and predict take them.

Tables of pandas and Arrow, and tensors of PyTorch, where these are installed.
"""
import importlib
import itertools
import os
import subprocess
import sys

import kit

kit.set_up(sys.argv[1])
kit.need("numpy")
import numpy as np  # noqa: E402
import weft  # noqa: E402
from weft import data, layers  # noqa: E402
from weft._tensor import as_array  # noqa: E402

X = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
Y = X[:, :2] * 2


def module(name):
    """A package that may be missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print("no", name, "here")
        return None


def small():
    m = weft.Model.from_layers([weft.Input([4]), layers.Dense(2)])
    m.compile("adam", "mse")
    return m


def batches(n=8):
    return ((X[i:i + n], Y[i:i + n]) for i in range(0, 64, n))


def test_batches_have_the_same_parts():
    w = np.ones(32)
    first, second = (X[:32], Y[:32]), (X[32:], Y[32:])
    for given, text in (
            ([first, (*second, w)], "batch 2 of the list_iterator has one array for sample_weight, "
                                    "and batch 1 has no sample_weight"),
            ([(*first, w), second], "batch 2 of the list_iterator has no sample_weight"),
            ([(X,), first], "batch 2 of the list_iterator has one array for y"),
            ([first, first, X], "batch 3 of the list_iterator has no y"),
            ([({"a": X}, Y), ({"b": X}, Y)], "has a dict of b for x, and batch 1 has a dict of a"),
            ([((X, X), Y), ((X, X, X), Y)], "has 3 arrays for x, and batch 1 has 2")):
        kit.raises(weft.errors.Invalid, text, lambda: data.gather(iter(given)))


def test_steps_are_taken_and_no_more():
    taken = []
    endless = (taken.append(i) or (X[:8], Y[:8]) for i in itertools.count())
    small().fit(endless, steps_per_epoch=3, verbose=0)
    assert len(taken) == 3, taken
    for steps in (0, -1, 1.5):
        kit.raises(weft.errors.Invalid, f"steps_per_epoch is {steps}",
                   lambda: data.gather(batches(), steps))
    assert len(data.gather(batches(), np.int64(2))[0]) == 16


def test_batches_of_several_inputs():
    a, b = weft.Input([4], name="a"), weft.Input([4], name="b")
    m = weft.Model.from_layers([a, b, layers.Concatenate(inputs=["a", "b"]), layers.Dense(2)])
    m.compile("adam", "mse")
    for kind in (tuple, list):
        m.fit(((kind((x, -x)), y) for x, y in batches()), verbose=0)
        assert np.array_equal(m.predict(iter([(kind((X, -X)),)])), m.predict({"a": X, "b": -X}))
    x, y, _ = data.gather(iter([((X[:3], X[3:6]), (Y[:3], Y[:3]))] * 2))
    assert [v.shape for v in x + y] == [(6, 4), (6, 4), (6, 2), (6, 2)], x
    # One array each: rows of numbers, labels that are numbers of Python's or numpy's.
    for rows in ([[1.0, 2.0], [3.0, 4.0]], ([1.0, 2.0], [3.0, 4.0])):
        x, y, _ = data.gather(iter([(rows, (0, 1)), (rows, [np.int64(0), np.int64(1)])]))
        assert x.shape == (4, 2) and y.tolist() == [0, 1, 0, 1], (x, y)


def test_tables_of_pandas():
    pd = module("pandas")
    if not pd:
        return
    m = small()
    table = pd.DataFrame(X, columns=list("abcd"))
    assert np.shares_memory(as_array(table, "x"), table.to_numpy())
    for column, kind in (("d", "bool"), ("c", "boolean"), ("b", "Int64"), ("a", "Float64"),
                         ("a", "int8")):
        mixed = table.copy()
        mixed[column] = (mixed[column] > 0).astype(kind)
        plain = mixed.astype("float32").to_numpy()
        assert np.array_equal(m.predict(mixed), m.predict(plain)), (column, kind)
    assert np.array_equal(m.predict(table.convert_dtypes()), m.predict(X))
    labels = pd.Series([1, 0, 2], dtype="Int64")
    assert as_array(labels, "y").dtype == "int64"
    mixed = table.convert_dtypes()
    mixed.loc[[5, 9], "b"] = pd.NA
    kit.raises(weft.errors.Invalid, "x, column 'b': record 5 is null, 2 of 64 are in all",
               lambda: m.predict(mixed))
    kit.raises(weft.errors.Invalid, "y: record 1 is null",
               lambda: m.fit(X[:3], pd.Series([1, None, 2], dtype="Int64"), verbose=0))
    mixed = table.assign(d=["one"] * 64)
    kit.raises(weft.errors.WrongType, "x, column 'd'", lambda: m.predict(mixed))


def test_arrays_of_arrow():
    pa = module("pyarrow")
    if not pa:
        return
    flags = [True, False, True]
    for make in (pa.array, lambda v: pa.chunked_array([v[:2], v[2:]])):
        assert as_array(make(flags), "y").tolist() == flags
        assert as_array(make([1.5, 2.5, 3.5]), "y").tolist() == [1.5, 2.5, 3.5]
        for given in ([0, 7, None], [True, False, None]):
            kit.raises(weft.errors.Invalid, "y: record 2 is null, 1 of 3 are in all",
                       lambda: as_array(make(given), "y"))
        kit.raises(weft.errors.WrongType, "y: ", lambda: as_array(make(["a", "b", "c"]), "y"))
    floats = pa.array(X[:, 0])
    assert np.shares_memory(as_array(floats, "x"), floats.to_numpy())
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3] > 0})
    plain = np.column_stack([X[:, :3], X[:, 3] > 0])
    assert np.array_equal(small().predict(table).shape, (64, 2))
    assert np.array_equal(as_array(table, "x"), plain)
    table = pa.table({"a": [1.0, None], "b": [1.0, 2.0]})
    kit.raises(weft.errors.Invalid, "x, column 'a': record 1 is null", lambda: as_array(table, "x"))


def test_views_of_torch_with_another_sign():
    torch = module("torch")
    if not torch:
        return
    t = torch.complex(torch.ones(1, 4), torch.ones(1, 4)).conj().imag
    assert t.is_neg() and as_array(t, "x").tolist() == [[-1.0] * 4]


kit.run(globals(), sys.argv[2] if len(sys.argv) > 2 else None)

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


def weights_after(*given, **options):
    m = small()
    m.fit(*given, verbose=0, epochs=2, **options)
    return m.get_weights()[0].tolist()


class Loader:
    """As PyTorch's DataLoader, as far as it is asked."""

    def __init__(self, sampler=None, batch_size=None, batch_sampler=None):
        self.dataset, self.batch_size = X, batch_size
        self.sampler, self.batch_sampler = sampler, batch_sampler

    def __iter__(self):
        return batches(8)


def test_batches_are_taken_as_they_come():
    """In their size, where batch_size is not given, and in their order, where they are not drawn."""
    class PyDataset:
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return X[8 * i:8 * i + 8], Y[8 * i:8 * i + 8]

        def on_epoch_end(self):
            pass

    class Ordered:
        pass

    class WeightedRandomSampler(Ordered):
        pass

    class Distributed:
        shuffle = True

    class Batches:
        sampler = WeightedRandomSampler()

    eight = weights_after(X, Y, batch_size=8, shuffle=False)
    drawn = weights_after(X, Y, batch_size=8)
    assert eight != drawn
    for given in (batches(8), PyDataset(), Loader(), Loader(Ordered()), Loader(batch_size=8)):
        assert weights_after(given) == eight, given
    for given in (Loader(WeightedRandomSampler()), Loader(Distributed(), 8),
                  Loader(Ordered(), batch_sampler=Batches())):
        assert weights_after(given) == drawn, given
        assert weights_after(given, shuffle=False) == eight, given
    assert weights_after(batches(8), shuffle=True) == drawn
    assert weights_after(Loader(batch_size=16)) == weights_after(batches(16)) != eight
    assert weights_after(batches(8), batch_size=16) == weights_after(batches(16))
    assert weights_after(batches(8), steps_per_epoch=4) == weights_after(
        X[:32], Y[:32], batch_size=8, shuffle=False)
    uneven = iter([(X[:8], Y[:8]), (X[8:20], Y[8:20]), (X[20:], Y[20:])])
    assert weights_after(uneven) == eight


def test_nothing_is_given_beside_batches():
    m = small()
    was = m.get_weights()[0]
    for call in (m.fit, m.evaluate):
        for given, word in (({"y": Y}, "y"), ({"sample_weight": np.ones(64)}, "sample_weight")):
            kit.raises(ValueError, f"{word} is given beside batches",
                       lambda c=call, g=given: c(batches(), **g))
    assert np.array_equal(was, m.get_weights()[0])


def test_records_are_no_batches():
    for given, text in (
            ([(X[0], Y[0])], "batch 1 of the list_iterator has 4 rows for x and 2 rows for y: it is "
                             "a single record"),
            ([(X[0], 3.0)], "has 4 rows for x and a single number for y"),
            ([(2.0, 3.0)], "has a single number for x"),
            ([(X, Y), (X[1:], Y)], "batch 2 of the list_iterator has 63 rows for x"),
            ([(X, Y, np.ones(1))], "and 1 row for sample_weight")):
        e = kit.raises(weft.errors.ShapeError, text, lambda: small().fit(iter(given), verbose=0))
        assert "dataset.batch(32)" in e.hint


def test_batches_of_several_inputs():
    a, b = weft.Input([4], name="a"), weft.Input([4], name="b")
    m = weft.Model.from_layers([a, b, layers.Concatenate(inputs=["a", "b"]), layers.Dense(2)])
    m.compile("adam", "mse")
    for kind in (tuple, list):
        m.fit(((kind((x, -x)), y) for x, y in batches()), verbose=0)
        assert np.array_equal(m.predict(iter([(kind((X, -X)),)])), m.predict({"a": X, "b": -X}))
    x, y, *_ = data.gather(iter([((X[:3], X[3:6]), (Y[:3], Y[:3]))] * 2))
    assert [v.shape for v in x + y] == [(6, 4), (6, 4), (6, 2), (6, 2)], x
    # One array each: rows of numbers, labels that are numbers of Python's or numpy's.
    for rows in ([[1.0, 2.0], [3.0, 4.0]], ([1.0, 2.0], [3.0, 4.0])):
        x, y, *_ = data.gather(iter([(rows, (0, 1)), (rows, [np.int64(0), np.int64(1)])]))
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


def test_masked_arrays():
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, bool))
    assert np.shares_memory(as_array(masked, "x"), X)
    masked[5, 1] = masked[7, 0] = np.ma.masked
    m = small()
    for call in (lambda: m.fit(masked, Y, verbose=0), lambda: m.predict(masked),
                 lambda: m.predict(iter([masked]))):
        kit.raises(weft.errors.Invalid, "record 5 is masked, 2 numbers are in all", call)
    assert np.array_equal(m.predict(masked.filled(0)).shape, (64, 2))


def test_views_of_torch_with_another_sign():
    torch = module("torch")
    if not torch:
        return
    t = torch.complex(torch.ones(1, 4), torch.ones(1, 4)).conj().imag
    assert t.is_neg() and as_array(t, "x").tolist() == [[-1.0] * 4]


kit.run(globals(), sys.argv[2] if len(sys.argv) > 2 else None)

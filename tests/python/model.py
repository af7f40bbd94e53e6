# SPDX-License-Identifier: Apache-2.0
"""model.py LIBWEFT [TEST] - weft.Model: what it learns beside numpy, what it takes, what it refuses."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kit

kit.set_up(sys.argv[1])
kit.need("numpy")
import numpy as np  # noqa: E402
import weft  # noqa: E402
from weft import callbacks, layers  # noqa: E402

RNG = np.random.default_rng(1)
X = RNG.normal(size=(96, 4)).astype("float32")
Y = X[:, :3].argmax(axis=1)


def dense(seed=0):
    m = weft.Model.from_layers([weft.Input([4]), layers.Dense(8, activation="tanh"), layers.Dense(3)],
                               seed=seed)
    m.compile(weft.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return m


def weights_of(m):
    s = {k: v.astype("float64") for k, v in m.state_dict().items()}
    return [s["dense/kernel"], s["dense/bias"], s["dense_1/kernel"], s["dense_1/bias"]]


def gradients(weights, rows, labels):
    """Of the mean crossentropy, in float64."""
    a, b, c, d = weights
    hidden = np.tanh(rows @ a + b)
    scores = hidden @ c + d
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(rows)), labels] -= 1
    p /= len(rows)
    back = (p @ c.T) * (1 - hidden**2)
    return rows.T @ back, back.sum(axis=0), hidden.T @ p, p.sum(axis=0)


def by_numpy(weights, x, y, batch, epochs, rate):
    """Gradient descent, in float64, records in their order."""
    x = x.astype("float64")
    for _ in range(epochs):
        for at in range(0, len(x), batch):
            g = gradients(weights, x[at:at + batch], y[at:at + batch])
            weights = [w - rate * d for w, d in zip(weights, g)]
    return weights


class NumpyAdam:
    """Kingma and Ba 2015, Algorithm 1, in the order of section 2's end, with Keras's epsilon."""

    def __init__(self, weights, rate):
        self.w, self.rate, self.t = list(weights), rate, 0
        self.m, self.v = [0 * w for w in weights], [0 * w for w in weights]

    def epoch(self, x, y, batch):
        x = x.astype("float64")
        for at in range(0, len(x), batch):
            self.t += 1
            rate = self.rate(self.t) * (1 - 0.999**self.t)**0.5 / (1 - 0.9**self.t)
            for i, g in enumerate(gradients(self.w, x[at:at + batch], y[at:at + batch])):
                self.m[i] = 0.9 * self.m[i] + 0.1 * g
                self.v[i] = 0.999 * self.v[i] + 0.001 * g * g
                self.w[i] = self.w[i] - rate * self.m[i] / (self.v[i]**0.5 + 1e-7)


def test_fit_is_gradient_descent():
    m = dense()
    want = by_numpy(weights_of(m), X, Y, 16, 3, 0.1)
    history = m.fit(X, Y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    for got, w in zip(weights_of(m), want):
        assert np.abs(got - w).max() < 1e-5, np.abs(got - w).max()
    hidden = np.tanh(X @ want[0] + want[1])
    scores = hidden @ want[2] + want[3]
    assert np.abs(m.predict(X) - scores).max() < 1e-5
    loss = np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(96), Y])
    accuracy = np.mean(scores.argmax(axis=1) == Y)
    found = m.evaluate(X, Y, return_dict=True)
    assert abs(found["loss"] - loss) < 1e-5 and abs(found["accuracy"] - accuracy) < 1e-9, found
    assert history.epoch == [0, 1, 2] and set(history.history) == {"loss", "accuracy"}


def test_a_second_fit_goes_on():
    once, twice = dense(), dense()
    once.fit(X, Y, batch_size=16, epochs=4, shuffle=False, verbose=0)
    twice.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    twice.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    for a, b in zip(weights_of(once), weights_of(twice)):
        assert np.array_equal(a, b)


def with_adam(rate=0.01):
    m = dense()
    m.compile(weft.optimizers.Adam(rate), "sparse_categorical_crossentropy")
    return m


def fit(m, *records, epochs=1):
    for n in records:
        m.fit(X[:n], Y[:n], batch_size=16, epochs=epochs, shuffle=False, verbose=0)
    return weights_of(m)


def test_the_optimizer_goes_on_until_compile():
    for rate, at in ((0.01, lambda t: 0.01),
                     (weft.optimizers.InverseTimeDecay(0.05, decay_steps=4, decay_rate=0.5),
                      lambda t: 0.05 / (1 + 0.5 * (t - 1) / 4))):
        once = fit(with_adam(rate), 96, epochs=3)
        for a, b in zip(once, fit(with_adam(rate), 96, 96, 96)):
            assert np.array_equal(a, b)
        m = with_adam(rate)
        want = NumpyAdam(weights_of(m), at)
        for n in (96, 40, 16, 96):  # of other sizes too
            want.epoch(X[:n], Y[:n], 16)
            for a, b in zip(fit(m, n), want.w):
                assert np.abs(a - b).max() < 1e-5, np.abs(a - b).max()
        before = weights_of(m)
        m.compile(weft.optimizers.Adam(rate), "sparse_categorical_crossentropy")
        anew = NumpyAdam(before, at)
        anew.epoch(X, Y, 16)
        want.epoch(X, Y, 16)
        assert max(np.abs(a - b).max() for a, b in zip(want.w, anew.w)) > 1e-3
        for a, b in zip(fit(m, 96), anew.w):
            assert np.abs(a - b).max() < 1e-5, np.abs(a - b).max()


def test_a_fit_that_ends_early_leaves_its_optimizer():
    class Stops(callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            if epoch == 1:
                raise KeyError("a callback")

    m, same = with_adam(), with_adam()
    fit(m, 96)
    fit(same, 96)
    before = weights_of(m)
    kit.raises(KeyError, "a callback", lambda: m.fit(
        X, Y, batch_size=16, epochs=10**6, shuffle=False, verbose=0, callbacks=[Stops()]))
    assert not np.array_equal(before[0], weights_of(m)[0]) and m.history.epoch == [0, 1]
    same.set_weights(m.state_dict())
    m.compile(weft.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    same.compile(weft.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    for a, b in zip(fit(m, 96), fit(same, 96)):
        assert np.array_equal(a, b)
    kit.raises(weft.Error, "NaN", lambda: m.fit(np.full_like(X, np.nan), Y, verbose=0))
    for a, b in zip(fit(m, 96), fit(same, 96)):
        assert np.array_equal(a, b)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    kit.raises(KeyboardInterrupt, "", lambda: fit(m, 96, epochs=10**6))
    assert all(np.isfinite(w).all() for w in fit(m, 96))


def test_seeds():
    assert not np.array_equal(weights_of(dense(1))[0], weights_of(dense(2))[0])
    runs = []
    for seed in (7, 7, 8):
        m = dense()
        m.fit(X, Y, batch_size=16, seed=seed, verbose=0)
        runs.append(weights_of(m)[0])
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_any_layout_and_dtype():
    wide = np.repeat(X, 2, axis=1)
    alike = {"strided": wide[:, ::2], "fortran": np.asfortranarray(X), "float64": X.astype("float64"),
             "big endian": X.astype(">f4"), "backwards": np.ascontiguousarray(X[::-1])[::-1],
             "memoryview": memoryview(X)}
    unaligned = np.zeros(X.nbytes + 1, "uint8")[1:].view("float32").reshape(X.shape)
    unaligned[:] = X
    alike["unaligned"] = unaligned
    if hasattr(np, "from_dlpack"):
        class Lender:
            def __dlpack__(self, **options):
                return X.__dlpack__(**options)

            def __dlpack_device__(self):
                return X.__dlpack_device__()
        alike["dlpack"] = Lender()
    want = None
    for name, x in {"itself": X, **alike}.items():
        for kind in ("int64", "int32", "uint8", "int8", "uint16"):
            m = dense()
            m.fit(x, Y.astype(kind), batch_size=16, verbose=0)
            got = weights_of(m)[0]
            want = got if want is None else want
            assert np.array_equal(got, want), (name, kind)
        assert np.array_equal(m.predict(x), m.predict(X)), name


def test_arrays_are_not_copied():
    from weft import _tensor
    columns = np.zeros((8, 6), "float32")[:, ::2]
    assert np.shares_memory(_tensor.as_array(columns, "x"), columns)
    assert _tensor.View(columns, "x").c.data == columns.ctypes.data


def test_several_inputs_and_outputs():
    m = weft.Model.from_layers(
        [weft.Input([4], name="a"), weft.Input([1], name="b", dtype="int64"),
         layers.Embedding(10, 4, inputs="b"), layers.Flatten(name="e"),
         layers.Concatenate(inputs=["a", "e"], name="both"), layers.Dense(3, name="p"),
         layers.Dense(1, name="q", inputs="both")], outputs=["p", "q"])
    m.compile("adam", {"p": "sparse_categorical_crossentropy", "q": "mse"},
              metrics={"p": ["accuracy"]})
    h = m.fit({"a": X, "b": Y}, {"p": Y, "q": X[:, 0]}, epochs=2, verbose=0)
    assert set(h.history) == {"loss", "p_loss", "q_loss", "p_accuracy"}
    p, q = m.predict([X, Y])
    assert p.shape == (96, 3) and q.shape == (96, 1)
    e = m.evaluate([X, Y], [Y, X[:, 0]], return_dict=True)
    assert abs(e["q_loss"] - np.mean((q[:, 0] - X[:, 0])**2)) < 1e-5
    m.compile("adam", ["sparse_categorical_crossentropy", "mse"])
    kit.raises(weft.Error, "has no 'b'", lambda: m.predict({"a": X}))
    kit.raises(weft.Error, "x is for 2: a, b", lambda: m.predict(X))


def test_validation_and_weights():
    m = dense()
    h = m.fit(X, Y, validation_split=0.25, epochs=2, verbose=0)
    assert abs(h.history["val_loss"][-1] - m.evaluate(X[72:], Y[72:])[0]) < 1e-5
    h = m.fit(X, Y, validation_data=(X[:50], Y[:50]), epochs=2, verbose=0)
    assert abs(h.history["val_accuracy"][-1] - m.evaluate(X[:50], Y[:50])[1]) < 1e-9
    doubled, single = dense(), dense()
    by_weight = np.where(Y == 1, 2.0, 1.0).astype("float32")
    single.fit(X, Y, batch_size=16, class_weight={1: 2.0}, verbose=0)
    doubled.fit(X, Y, batch_size=16, sample_weight=by_weight, verbose=0)
    assert np.allclose(weights_of(doubled)[0], weights_of(single)[0], atol=1e-6)
    assert not np.allclose(weights_of(doubled)[0], weights_of(dense())[0], atol=1e-3)


def test_callbacks():
    class Second(callbacks.Callback):
        seen = []

        def on_epoch_end(self, epoch, logs=None):
            self.seen.append((epoch, sorted(logs)))
            self.model.stop_training = epoch >= 1

    m = dense()
    h = m.fit(X, Y, epochs=100000, verbose=0, callbacks=[Second()])
    assert 2 <= len(h.epoch) < 100000 and Second.seen[0] == (0, ["accuracy", "loss"])

    class Boom(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise RuntimeError("boom")

    kit.raises(RuntimeError, "boom", lambda: m.fit(X, Y, epochs=3, verbose=0, callbacks=[Boom()]))
    m.predict(X)
    early = callbacks.EarlyStopping(monitor="val_loss", patience=1, restore_best_weights=True)
    m = dense()
    h = m.fit(X, Y, epochs=300, verbose=0, validation_data=(X[:20], 2 - Y[:20]), callbacks=[early])
    assert len(h.epoch) < 300
    best = min(h.history["val_loss"])
    assert abs(m.evaluate(X[:20], 2 - Y[:20])[0] - best) < 1e-5
    kit.raises(weft.Error, "there is none", lambda: m.fit(X, Y, callbacks=[early], verbose=0))

    class AtOnce(callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.model.stop_training = True

    m.fit(X, Y, epochs=10**6, verbose=0, callbacks=[AtOnce()])  # before there is any checkpoint
    assert len(m.history.epoch) < 10**6 and np.isfinite(m.predict(X)).all()


def test_generators():
    m, n = dense(), dense()
    m.fit(((X[i:i + 32], Y[i:i + 32]) for i in range(0, 96, 32)), batch_size=16, verbose=0)
    n.fit(X, Y, batch_size=16, shuffle=False, verbose=0)
    assert np.array_equal(weights_of(m)[0], weights_of(n)[0])

    def forever():
        while True:
            yield X[:8], Y[:8]

    m.fit(forever(), steps_per_epoch=3, verbose=0)
    was, weft.data.LIMIT_BYTES = weft.data.LIMIT_BYTES, 10000
    kit.raises(weft.Error, "more than 10000 bytes", lambda: m.fit(forever(), verbose=0))
    weft.data.LIMIT_BYTES = was
    kit.raises(weft.Error, "gives no batch", lambda: m.fit(iter([]), verbose=0))

    class ByIndex:  # which numpy would never stop to ask
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return X[:8], Y[:8]

    kit.raises(TypeError, "a ByIndex gives items by index", lambda: m.fit(ByIndex(), verbose=0))


def test_tables():
    class Table:  # of Arrow, as far as it is asked
        column_names = ["b", "a"]

        def column(self, name):
            return {"a": X[:, 0], "b": X[:, 1]}[name]

    m = weft.Model.from_layers([weft.Input([1], name="a"), weft.Input([1], name="b"),
                                layers.Concatenate(inputs=["a", "b"]), layers.Dense(1)])
    want = m.predict({"a": X[:, 0], "b": X[:, 1]})
    wide = dense()
    assert np.array_equal(m.predict(Table()), want)
    try:
        import pandas
        import pyarrow
    except ImportError:
        print("no pandas and pyarrow here")
        return
    frame = pandas.DataFrame({"b": X[:, 1], "a": X[:, 0], "other": "word"})
    assert np.array_equal(m.predict(frame), want)
    assert np.array_equal(m.predict(pyarrow.Table.from_pandas(frame)), want)
    four = pandas.DataFrame(X, columns=list("pqrs"))
    wide.fit(four, pandas.Series(Y), batch_size=16, verbose=0)
    same = dense()
    same.fit(pyarrow.Table.from_pandas(four), pyarrow.table({"y": Y}), batch_size=16, verbose=0)
    assert np.array_equal(weights_of(wide)[0], weights_of(same)[0])
    kit.raises(weft.Error, "dtype is object",
               lambda: wide.predict(frame[["a", "b", "other", "other"]]))


def test_bad_data():
    m = dense()
    cases = [
        (weft.Error, "dtype is object", (X, Y.astype(object))),
        (TypeError, "dtype is object", (X, Y.astype(object))),
        (weft.Error, "weft takes no <U", (X, Y.astype(str))),
        (ArithmeticError, "record 3 is NaN", (X, np.where(np.arange(96) == 3, np.nan, 0.0))),
        (weft.Error, "record 2 has the label 3", (X, np.where(np.arange(96) == 2, 3, Y))),
        (ValueError, "'x' 95, 'y' 96", (X[1:], Y)),
        (weft.Error, "float32[3]", (X[:, :3], Y)),
        (weft.Error, "it is no array", ([[1.0], [1.0, 2.0]], Y)),
        (weft.Error, "holds no records", (X[:0], Y[:0])),
        (weft.Error, "no labels", (X, None)),
        (weft.Error, "the model has: x", ({"z": X}, Y)),
        (weft.Error, "does not fit into int64", (X, np.full(96, 2**63, "uint64")))]
    for kind, text, (x, y) in cases:
        kit.raises(kind, text, lambda x=x, y=y: m.fit(x, y, verbose=0))
    for kind, text, x in [(weft.Error, "float32[3]", X[:, :3]),
                          (weft.Error, "1, 1, 1]", np.zeros([1] * 9, "float32"))]:
        kit.raises(kind, text, lambda x=x: m.predict(x))
    m.fit(X, Y, verbose=0)  # and it is as it was


def test_bad_names():
    m = dense()
    for optimizer, loss, metrics, text in [
            ("adm", "mse", None, 'did you mean "adam"'), ("adam", "mze", None, '"mze"'),
            ("adam", "mse", ["acuracy"], 'did you mean "accuracy"'),
            ({"adam": {"lr": 1}}, "mse", None, 'did you mean "learning_rate"'),
            (object(), "mse", None, "none of weft's")]:
        kit.raises(weft.Error, text, lambda: m.compile(optimizer, loss, metrics=metrics))
    kit.raises(AttributeError, "did you mean 'Conv2D'", lambda: layers.Conv2d)
    kit.raises(weft.Error, 'did you mean "dense"',
               lambda: weft.Model.from_layers([weft.Input([4]), "dens"]))
    kit.raises(weft.Error, 'did you mean "units"',
               lambda: weft.Model.from_layers([weft.Input([4]), layers.Dense(unis=3)]))
    kit.raises(weft.Error, "needs an input", lambda: weft.Model.from_layers([layers.Dense(3)]))
    fresh = weft.Model.from_layers([weft.Input([4]), layers.Dense(3)])
    kit.raises(weft.Error, "not compiled", lambda: fresh.fit(X, Y))
    kit.raises(weft.Error, "there is no file", lambda: weft.Model.from_onnx("none.onnx"))


def test_all_names_are_known():
    """What libweft says of each kind without options is never that there is no such kind."""
    def said(call):
        try:
            call()
            return ""
        except weft.Error as e:
            return str(e)

    m = dense()
    tried = 0
    for name, kind in layers._FAMILY.kinds.items():
        text = said(lambda k=kind: weft.Model.from_layers([weft.Input([8, 4]), k.kind]))
        assert "unknown" not in text, (name, text)
        tried += 1
    for module, compiled in [
            (weft.losses, lambda k: m.compile("sgd", k)),
            (weft.metrics, lambda k: m.compile("sgd", "categorical_crossentropy", metrics=[k]))]:
        for name, kind in module._FAMILY.kinds.items():
            text = said(lambda k=kind, c=compiled: c(k.kind))
            assert "unknown" not in text and "neither" not in text, (name, text)
            tried += 1
    for name, kind in weft.optimizers._FAMILY.kinds.items():
        item = (weft.optimizers.SGD({kind.kind: {"nothing": 1}}) if kind.positional[0] != "learning_rate"
                else kind(0.1))
        text = said(lambda i=item: m.compile(i, "mse"))
        assert "unknown optimizer" not in text and "unknown schedule" not in text, (name, text)
        assert ("nothing" in text) == (kind.positional[0] != "learning_rate"), (name, text)
        tried += 1
    assert tried > 100, tried
    kit.raises(weft.Error, "unknown", lambda: m.compile("sgd", "mse", metrics=["nothing"]))


def test_recurrent_and_nested():
    m = weft.Model.from_layers([
        weft.Input([5, 4]), layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.TimeDistributed(layers.Dense(2)), layers.Flatten(),
        layers.Dense(3, kernel_regularizer={"l2": 0.01})])
    assert m.predict(np.zeros((2, 5, 4), "float32")).shape == (2, 3)


def test_files():
    m = dense()
    m.fit(X, Y, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "m.onnx")
        m.save(path)
        again = weft.Model.from_onnx(path)
        assert np.array_equal(again.predict(X), m.predict(X))
        again.compile("adam", "sparse_categorical_crossentropy")
        again.fit(X, Y, verbose=0)
        m.save(os.path.join(folder, "m.safetensors"))
        kit.raises(weft.Error, ".safetensors", lambda: m.save("m.h5"))
        kept = pathlib.Path(folder, "kept")
        m.fit(X, Y, verbose=0, checkpoint_dir=kept)
        again = m.fit(X, Y, verbose=0, epochs=2, checkpoint_dir=kept)
        assert again.epoch == [0, 1]
        assert len(list(kept.glob("fit#[12]/step-*/manifest.json"))) == 2
        trained = weights_of(m)[0]
        from safetensors.numpy import load_file
        (newest,) = kept.glob("fit#2/step-*/shard-*.safetensors")
        assert np.array_equal(load_file(newest)["dense/kernel"], trained.astype("float32"))
    for folder in (tempfile.gettempdir(), "/dev/shm"):
        before = set(pathlib.Path(folder).glob("weft-*"))
        m.fit(X, Y, verbose=0)
        assert set(pathlib.Path(folder).glob("weft-fit-*")) <= before


def test_subnormal_numbers_are_zero():
    """A mean whose gradient has become zero does not decay into numbers that cost a processor a hundred
    cycles each."""
    from safetensors.numpy import load_file
    x = X.copy()
    x[:, 0] = 0
    m = with_adam()
    fit(m, 96)
    with tempfile.TemporaryDirectory() as folder:
        m.fit(x, Y, batch_size=16, epochs=200, verbose=0, checkpoint_dir=folder)  # 0.9**1200
        (newest,) = pathlib.Path(folder).glob("fit#1/step-*/shard-*.safetensors")
        means = load_file(newest)["dense/kernel/momentum"]
    decayed = np.abs(means[0])
    assert decayed.max() < 1e-30 and ((decayed == 0) | (decayed >= 1.17549435e-38)).all(), means


def test_interrupt():
    m = dense()
    was = m.predict(X)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    kit.raises(KeyboardInterrupt, "", lambda: m.fit(X, Y, epochs=10**6, verbose=0))
    assert time.monotonic() - began < 30
    assert not np.array_equal(m.predict(X), was) and m.history.epoch
    m.fit(X, Y, verbose=0)


def test_fork():
    m = dense()
    m.predict(X)
    child = os.fork()
    if child == 0:
        try:
            kit.raises(weft.Error, "its child", lambda: m.predict(X))
            kit.raises(weft.Error, "its child", lambda: m.fit(X, Y, verbose=0))
            anew = dense()
            anew.fit(X, Y, verbose=0)
            os._exit(0)
        except BaseException as e:
            print("in the child:", e, flush=True)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    m.predict(X)


def test_threads():
    m, found, failed = dense(), [], []

    def guarded(work):
        def run():
            try:
                found.append(work())
            except Exception as e:
                failed.append(e)
        return threading.Thread(target=run)
    threads = [guarded(lambda: m.predict(X).shape) for _ in range(6)]
    threads += [guarded(lambda: m.fit(X, Y, epochs=3, verbose=0).epoch) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and len(found) == 8, failed


def at_exit(work, more=""):
    """How a process ends, and how long that takes, whose main thread is done while another fits.
    Its temporary files have to be gone."""
    code = f"""
import os, threading, time
import numpy as np, weft, weft._fit
from weft import callbacks, layers
m = weft.Model.from_layers([weft.Input([64]), layers.Dense(64), layers.Dense(8)])
m.compile("adam", "mse")
x, y = np.ones((4096, 64), "float32"), np.ones((4096, 8), "float32")
runs = threading.Event()
class Told(callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        runs.set()
        {work}
def fit(epochs):
    m.fit(x, y, epochs=epochs, verbose=0, callbacks=Told())
{more or "threading.Thread(target=fit, args=[10**6], daemon=True).start()"}
runs.wait()
open(os.environ["TMPDIR"] + ".ended", "w").write(str(time.monotonic()))
"""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder, "temporary")
        place.mkdir()
        env = dict(os.environ, PYTHONPATH=str(kit.SOURCE / "python"), TMPDIR=str(place))
        done = subprocess.run([sys.executable, "-c", code], env=env, timeout=60, text=True,
                              capture_output=True)
        took = time.monotonic() - float(place.with_suffix(".ended").read_text())
        return done.returncode, done.stderr, took, len(list(place.iterdir()))


def test_the_interpreter_ends_while_a_daemon_thread_fits():
    for _ in range(3):
        code, said, took, left = at_exit("pass")
        assert (code, said, left) == (0, "", 0) and took < 20, (code, said, took, left)
    # A thread that is no daemon is waited for, and trains to its end.
    code, said, took, left = at_exit("time.sleep(0.2); print(epoch)",
                                     "threading.Thread(target=fit, args=[4]).start()")
    assert (code, said, left) == (0, "", 0) and took > 0.6, (code, said, took, left)
    # A callback that never returns holds nothing up for ever, nor does Ctrl-C.
    code, said, took, left = at_exit("weft._fit.AFTER_S = 0.1; time.sleep(10**6)")
    assert (code, said) == (0, "") and took < 20, (code, said, took)
    code, said, took, left = at_exit("weft._fit.AFTER_S = 50; weft._fit._ended.wait(); "
                                     "time.sleep(0.3); os.kill(os.getpid(), 2); time.sleep(10**6)")
    assert (code, said) == (0, "") and took < 20, (code, said, took)


def test_history():
    m = dense()
    h = m.fit(X, Y, epochs=2, validation_split=0.25, verbose=0)
    assert h is m.history
    try:
        import matplotlib
    except ImportError:
        kit.raises(weft.Error, "pip install matplotlib", h.plot)
        return
    matplotlib.use("Agg")
    assert len(h.plot()) == 2


def test_recurrent_operations_are_saved_with_steps_first():
    """Of a file with layout 1, which onnxruntime has not: outputs and first states keep their names and shapes."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        print("no onnx and onnxruntime here")
        return
    from onnx import TensorProto, helper, numpy_helper
    batch, steps, inputs, units = 4, 5, 2, 3
    with tempfile.TemporaryDirectory() as folder:
        for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
            shapes = {"w": (2, gates * units, inputs), "r": (2, gates * units, units), "b": (2, 2 * gates * units),
                      "h": (batch, 2, units)}
            node = helper.make_node(op, ["x", "w", "r", "b", "", "h"], ["y", "last"], hidden_size=units, layout=1,
                                    direction="bidirectional")
            info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (
                ("x", (batch, steps, inputs)), ("y", (batch, steps, 2, units)), ("last", (batch, 2, units)))]
            graph = helper.make_graph([node], "g", info[:1], info[1:], [
                numpy_helper.from_array(RNG.normal(size=s).astype("float32"), n) for n, s in shapes.items()])
            first, second = os.path.join(folder, "a.onnx"), os.path.join(folder, "b.onnx")
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), first)
            model = weft.Model.from_onnx(first)
            model.save(second)
            x = RNG.normal(size=(batch, steps, inputs)).astype("float32")
            theirs = onnxruntime.InferenceSession(second).run(["y", "last"], {"x": x})
            for ours, other in zip(model.predict(x, batch_size=batch), theirs):
                assert np.allclose(ours, other, atol=1e-5), op


kit.run(globals(), sys.argv[2] if len(sys.argv) > 2 else None)

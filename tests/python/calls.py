# SPDX-License-Identifier: Apache-2.0
"""calls.py LIBWEFT [TEST] - methods of weft.Model called as Keras's are: names, arguments by
output, callbacks, weights, and what each refuses."""
import copy
import io
import os
import pickle
import sys
import tempfile
import types

import kit

kit.set_up(sys.argv[1])
kit.need("numpy")
import numpy as np  # noqa: E402
import weft  # noqa: E402
from weft import _progress, callbacks, layers  # noqa: E402

RNG = np.random.default_rng(1)
X = RNG.normal(size=(64, 4)).astype("float32")
Y = X[:, :2] * 2
ONES = np.ones(64)


def dense(units=2, **options):
    m = weft.Model.from_layers([weft.Input([4]), layers.Dense(units, name="output")])
    m.compile("adam", "mse", **options)
    return m


def two():
    return weft.Model.from_layers([weft.Input([4], name="a"), layers.Dense(2, name="p"),
                                   layers.Dense(2, name="q", inputs="a")], outputs=["p", "q"])


def keys(m, **options):
    m.compile("sgd", **options)
    y = Y if len(m.output_names) == 1 else [Y, Y]
    return list(m.fit(X, y, verbose=0).history)


def test_metrics_keep_the_names_given():
    m = dense()
    for metrics, names in [
            (["mae"], ["mae"]), (["MSE"], ["MSE"]), (["mae", "mae"], ["mae", "mae_1"]),
            ([weft.metrics.MeanAbsoluteError()], ["mean_absolute_error"]),
            ([weft.metrics.MeanAbsoluteError(name="q")], ["q"]), ([["mae"]], ["mae"]),
            ({"output": ["mae"]}, ["mae"]), ({"output": "mae"}, ["mae"])]:
        assert keys(m, loss="mse", metrics=metrics) == ["loss", *names], metrics
    for name in ("epoch", "step", "learning_rate", "loss", "val_x"):
        kit.raises(weft.Error, f'the name "{name}"', lambda n=name: keys(
            m, loss="mse", metrics=[weft.metrics.MeanAbsoluteError(name=n)]))
    m.compile("adam", "mse", metrics=["mae"])
    h = m.fit(X, Y, validation_split=0.25, epochs=2, verbose=0,
              callbacks=callbacks.EarlyStopping("val_mae"))
    assert list(h.history) == ["loss", "mae", "val_loss", "val_mae"]
    m = weft.Model.from_layers([weft.Input([4]), layers.Dense(1, activation="sigmoid")])
    m.compile("sgd", "bce", metrics=["AUC"])  # of which more is better
    h = m.fit(X, X[:, 0] > 0, validation_split=0.25, epochs=9, verbose=0, batch_size=8,
              callbacks=callbacks.EarlyStopping("val_AUC", patience=8, restore_best_weights=True))
    got = m.evaluate(X[48:], X[48:, 0] > 0, return_dict=True)["AUC"]
    assert abs(got - max(h.history["val_AUC"])) < 1e-6


def test_by_output():
    m = dense()
    assert keys(m, loss={"output": "mse"}, loss_weights=0.5, metrics=["mae"]) == ["loss", "mae"]
    plain = m.evaluate(X, Y, return_dict=True)
    assert abs(plain["loss"] - np.mean((m.predict(X) - Y)**2) / 2) < 1e-5
    for y in (Y, [Y], {"output": Y}, {"y": Y}):
        for weight in (0 * ONES, {"output": 0 * ONES}, [0 * ONES], 0 * ONES[:, None]):
            assert m.evaluate(X, y, sample_weight=weight)[0] == 0
    m = two()
    both = {"loss": ["mse", "mse"]}
    for metrics, names in [([["mae"], ["mse"]], ["p_mae", "q_mse"]), ({"p": ["mae"]}, ["p_mae"]),
                           (["mae", "mse"], ["p_mae", "q_mse"]), ([None, ["mae"]], ["q_mae"])]:
        assert keys(m, **both, metrics=metrics) == ["loss", "p_loss", "q_loss", *names], metrics
    for weight in ({"q": 0 * ONES}, [ONES, 0 * ONES], [None, 0 * ONES]):
        found = m.evaluate(X, [Y, Y], sample_weight=weight, return_dict=True)
        assert found["q_loss"] == 0 and found["p_loss"] > 0
    m.fit(X, [Y, Y], sample_weight={"p": ONES}, validation_data=(X, [Y, Y]), verbose=0)
    assert keys(m, loss=[None, "mse"], metrics=[None, ["mae"]]) == ["loss", "mae"]
    p, q = m.predict(X)
    for y in ([0 * Y, Y], {"p": 0 * Y, "q": Y}, {"q": Y}):
        assert abs(m.evaluate(X, y)[0] - np.mean((q - Y)**2)) < 1e-5
    for text, options in [
            ("loss has 1 entries", {"loss": ["mse"]}),
            ("no output has a loss", {"loss": [None, None]}),
            ("not by output", {**both, "loss_weights": 0.5}),
            ("compile got one loss", {"loss": "mse"}),
            ("metrics: the model has no output 'z'; it has p, q",
             {**both, "metrics": {"z": ["mae"]}}),
            ("no output 'z'", {**both, "metrics": {"z": "mae"}}),
            ("no output 'z'", {"loss": "mse", "metrics": {"z": weft.metrics.AUC()}}),
            ("loss: the model has no output 'pp'; it has p, q",
             {"loss": {"pp": "mse", "q": "mse"}}),
            ("no output 'pp'", {"loss": {"pp": "mse"}}),
            ("loss_weights: the model has no output 'z'", {**both, "loss_weights": {"z": 1.0}})]:
        kit.raises(weft.Error, text, lambda o=options: keys(m, **o))
    m.compile("sgd", {"huber": {"delta": 2.0}}, metrics={"mean_absolute_error": {"name": "q"}})
    m.compile("sgd", **both)
    kit.raises(weft.Error, "sample_weight has 'z'",
               lambda: m.fit(X, [Y, Y], sample_weight={"z": ONES}, verbose=0))


def test_compile_takes_and_refuses():
    m = dense()
    for name in ("Adam", "SGD", "RMSprop", "AdamW", "ADAM", "rmsProp",
                 weft.optimizers.Adam(name="a")):
        m.compile(name, "MSE", None, ["mae"])
    for kind, text, call in [
            (TypeError, "call it: Adam()", lambda: m.compile(weft.optimizers.Adam, "mse")),
            (TypeError, "no Python functions as losses", lambda: m.compile("adam", lambda a, b: 0)),
            (TypeError, "no Python functions as metrics",
             lambda: m.compile("adam", "mse", metrics=[len])),
            (TypeError, "optimizer: None", lambda: m.compile(None, "mse")),
            (ValueError, "optimizer: {} is none of weft's; give a name", lambda: m.compile({}, "mse")),
            (ValueError, "loss: {} is none of weft's; give a name", lambda: m.compile("sgd", {})),
            (weft.Error, "compile got no loss", lambda: m.compile("adam")),
            (NotImplementedError, "weighted_metrics",
             lambda: m.compile("adam", "mse", weighted_metrics=["mae"]))]:
        kit.raises(kind, text, call)
        kit.raises(weft.Error, text, call)


def test_inputs():
    for kind, text, call in [
            (TypeError, "weft.Input([4])", lambda: weft.Input(4)),
            (ValueError, "None in the shape", lambda: weft.Input((None, 3))),
            (ValueError, 'two inputs have the name "x"', lambda: weft.Model.from_layers(
                [weft.Input([4]), weft.Input([8]), layers.Dense(2)]))]:
        kit.raises(kind, text, call)
    assert weft.Input((4,), np.float32).dtype == "float32"
    assert weft.Input([4], np.dtype("int64")).dtype == "int64"
    assert weft.Model.from_layers([weft.Input([4]), layers.Dense(2, name="foo")],
                                  outputs="foo").output_names == ["foo"]


def test_what_layers_are_not():
    def of(**options):
        return weft.Model.from_layers([weft.Input([4]), layers.Dense(3, **options)])

    def kind(name, module):
        return type(name, (), {"__module__": module})

    def relu(x):
        return x

    for text, call in [
            ("Dense is a class; call it: Dense()",
             lambda: weft.Model.from_layers([weft.Input([4]), layers.Dense])),
            ("no Python functions; give its name: \"relu\"", lambda: of(activation=relu)),
            ('as "relu"', lambda: of(activation=lambda x: x)),
            ('give its name: "he_normal", or with options: {"he_normal"', lambda: of(
                kernel_initializer=kind("HeNormal", "keras.src.initializers.random")())),
            ('give its name: "l1_l2"', lambda: of(
                kernel_regularizer=kind("L1L2", "keras.src.regularizers")())),
            ("none of weft's; give weft.layers.Dense(...)", lambda: weft.Model.from_layers(
                [weft.Input([4]), kind("Dense", "keras.src.layers")()])),
            ("give weft.optimizers.CosineDecay(...)", lambda: dense().compile(
                weft.optimizers.SGD(kind("CosineDecay", "keras.src")()), "mse")),
            ("none of weft's; give a name, or one of weft.layers", lambda: of(activation=object())),
            ("give a list: [weft.Input([4]), weft.layers.Dense(3)]",
             lambda: weft.Model.from_layers(layers.Dense(3))),
            ("give a list", lambda: weft.Model.from_layers(3))]:
        kit.raises(weft.errors.WrongType, text, call)
    assert weft.Model.from_layers(
        each for each in [weft.Input([4]), layers.Dense(3)]).count_params() == 15


def test_numbers_that_do_not_fit():
    m = weft.Model.from_layers([weft.Input([1], dtype="uint8"), layers.Dense(1)])
    m.compile("sgd", "mse")
    y = np.zeros((2, 1), "float32")
    for x, text in (([[300], [1]], "holds 300"), ([[-1], [1]], "holds -1"), ([[0.0], [1e9]], "holds 1000000000.0")):
        for call in (lambda: m.predict(np.array(x)), lambda: m.evaluate(np.array(x), y),
                     lambda: m.fit(np.array(x), y, verbose=0)):
            kit.raises(ValueError, text, call)
    assert m.predict(np.array([[255], [0]])).shape == (2, 1)


def test_validation_data_that_is_wrong():
    """Whether the training is over before that is known, or not."""
    for _ in range(10):
        m = dense()
        m.compile("adam", "sparse_categorical_crossentropy")
        kit.raises(ValueError, "validation data: y: record 0 has the label 7", lambda: m.fit(
            X, np.zeros(64, int), epochs=2, validation_data=(X, np.full(64, 7)), verbose=0))


def test_a_fit_that_fails_takes_no_weights_of_another():
    labels = np.zeros(64, int)
    with tempfile.TemporaryDirectory() as d:
        for wrong in ({"y": labels + 7}, {"y": labels, "validation_data": (X, labels + 7)}):
            m = dense()
            m.compile("adam", "sparse_categorical_crossentropy")
            m.fit(X, labels, verbose=0, checkpoint_dir=d)
            m.set_weights([np.zeros((4, 2)), np.zeros(2)])
            kit.raises(ValueError, "has the label 7",
                       lambda: m.fit(X, verbose=0, checkpoint_dir=d, **wrong))
            assert not any(w.any() for w in m.get_weights())


def test_classes_weigh_in_training_alone():
    m = dense()
    m.compile("sgd", "sparse_categorical_crossentropy")
    classes = (X[:, 0] > 0).astype(int)
    found = m.fit(X, classes, validation_data=(X, classes), class_weight={0: 1.0, 1: 5.0}, verbose=0)
    assert abs(found.history["val_loss"][0] - m.evaluate(X, classes)) < 1e-6
    was = m.get_weights()[0]
    for kind, text, given in [
            (TypeError, "give a dict", "balanced"), (TypeError, "the class 'cat'", {"cat": 2.0}),
            (TypeError, "the class 0.5", {0.5: 9.0, 0: 1.0}), (TypeError, "the class -1", {-1: 2.0}),
            (TypeError, "the class nan", {np.nan: 2.0}), (TypeError, "the class None", {None: 1}),
            (TypeError, "of class 0 is None; give a number", {0: None}),
            (TypeError, "of class 1 is 'a'", {0: 1, 1: "a"}),
            (ValueError, "of class 0 is nan", {0: np.nan}),
            (ValueError, "of class 0 is inf", {0: np.inf}), (ValueError, "is -1.0; give", {0: -1})]:
        for error in (kind, weft.Error):
            kit.raises(error, text, lambda g=given: m.fit(X, classes, class_weight=g, verbose=0))
    assert np.array_equal(was, m.get_weights()[0])
    losses = set()
    for given in ({0: 3.0}, {"0": 3}, {0.0: 3}, {np.int64(0): np.float32(3)}, {False: 3.0}):
        m.set_weights({"output/kernel": was, "output/bias": [0, 0]})
        m.fit(X, classes, class_weight=given, verbose=0, seed=1)
        losses.add(m.history.history["loss"][0])
    assert len(losses) == 1


def test_arguments():
    m = dense()
    assert m.predict(X, 32, 0).shape == m.predict(X, verbose="auto", steps=None).shape == (64, 2)
    assert m.evaluate(X, Y, 32, 0, 0 * ONES) == 0
    assert m.predict(iter([X[:8], X[8:]]), steps=1).shape == (8, 2)
    assert m.fit(X, Y, verbose=0, epochs=5, initial_epoch=3).epoch == [3, 4]
    assert not m.fit(X, Y, verbose=0, epochs=3, initial_epoch=3).history
    m.fit(X, Y, verbose=0, batch_size=8, steps_per_epoch=8, validation_freq=1)
    for name in ("validation_steps", "validation_batch_size", "validation_freq"):
        kit.raises(NotImplementedError, name, lambda n=name: m.fit(X, Y, **{n: 2}))
    kit.raises(NotImplementedError, "x[:16]", lambda: m.fit(X, Y, batch_size=8, steps_per_epoch=2))
    for name, value, kind in [("threads", -1, ValueError), ("threads", 2**40, ValueError),
                              ("threads", 2**32 + 1, ValueError), ("batch_size", -1, ValueError),
                              ("batch_size", 0, ValueError), ("batch_size", 1.9, TypeError),
                              ("verbose", 7, ValueError), ("verbose", "no", ValueError)]:
        options = {name: value}
        for call in (lambda: m.fit(X, Y, **options), lambda: m.evaluate(X, Y, **options),
                     lambda: m.predict(X, **options)):
            kit.raises(kind, f"{name} is {value!r}", call)
    kit.raises(TypeError, "give a dict", lambda: m.fit(X, Y, class_weight="balanced", verbose=0))
    for call in (lambda: m.fit(X, Y, device="", verbose=0), lambda: m.predict(X, device="")):
        kit.raises(ValueError, "device is empty", call)
    assert m.predict(X, device="cpu").shape == (64, 2)
    kit.raises(TypeError, "epochs is 1.5", lambda: m.fit(X, Y, epochs=1.5, verbose=0))
    for call in (lambda: m.fit(X[:, :3], Y, verbose=0), lambda: m.predict(X[:, :3]),
                 lambda: m.evaluate(X[:, :3], Y),
                 lambda: m.fit(X, Y, validation_data=(X[:, :3], Y), verbose=0)):
        kit.raises(weft.errors.ShapeError, 'a record of "x" is float32[3]', call)
    kit.raises(weft.errors.ShapeError, "one number a record",
               lambda: m.fit(X, Y, sample_weight=np.ones((64, 2)), verbose=0))
    for call in (lambda: m.fit(X, Y[:, :1], verbose=0), lambda: m.evaluate(X, Y[:, :1])):
        kit.raises(weft.errors.ShapeError, 'a record of the labels "y"', call)
    m.compile("adam", "categorical_crossentropy")
    e = kit.raises(weft.errors.ShapeError, "class numbers",
                   lambda: m.fit(X, (X[:, 0] > 0).astype(int), verbose=0))
    assert "map" not in e.hint and "sparse_categorical_crossentropy" in e.hint, e


class Raises(callbacks.Callback):
    def __init__(self, at):
        self.at = at

    def on_epoch_end(self, epoch, logs=None):
        if epoch == self.at:
            raise OSError("the disk is full")


def test_a_callback_that_raises_keeps_the_training():
    m, same = dense(), dense()
    kit.raises(OSError, "disk is full", lambda: m.fit(
        X, Y, epochs=3, verbose=0, callbacks=[Raises(2)]))  # after the last step
    same.fit(X, Y, epochs=3, verbose=0)
    assert np.array_equal(m.get_weights()[0], same.get_weights()[0])
    was = m.evaluate(X, Y)
    kit.raises(OSError, "disk is full", lambda: m.fit(
        X, Y, epochs=10**6, verbose=0, callbacks=Raises(50)))
    assert m.evaluate(X, Y) < was and m.history.epoch == list(range(51))
    m.fit(X, Y, verbose=0)


def test_nan():
    o = weft.optimizers
    for own, kept in (([], False), ([callbacks.ModelCheckpoint()], True)):
        m = weft.Model.from_layers([weft.Input([4]), layers.Dense(2)])
        m.compile(o.SGD(o.PiecewiseConstantDecay([10], [0.01, 1e30])), "mse")
        was = m.get_weights()[0]
        e = kit.raises(weft.errors.NumericError, "the loss is", lambda: m.fit(
            X, Y, epochs=100, verbose=0, validation_data=(X, Y),
            callbacks=[*own, callbacks.TerminateOnNaN()]))
        assert "weft-fit-" not in str(e) and "on_nan" not in str(e), e
        assert np.array_equal(was, m.get_weights()[0]) != kept
        assert np.isfinite(m.get_weights()[0]).all()


def test_hooks():
    class Told(callbacks.Callback):
        told = []

        def on_train_begin(self, logs=None):
            self.told.append("begin")

        def on_epoch_begin(self, epoch, logs=None):
            self.told.append(("begins", epoch))

        def on_epoch_end(self, epoch, logs=None):
            self.told.append(("ends", epoch))

        def on_train_end(self, logs=None):
            self.told.append(self.model.get_weights()[0].shape)  # it has the trained ones by now

    m = dense()
    m.fit(X, Y, verbose=0, epochs=4, initial_epoch=2, callbacks=Told())
    assert Told.told == ["begin", ("begins", 2), ("ends", 2), ("begins", 3), ("ends", 3), (4, 2)]
    m.fit(X, Y, verbose=0, callbacks=callbacks.TerminateOnNaN())
    for hook in ("on_batch_end", "on_train_batch_begin", "on_test_begin"):
        kind = type("Own", (callbacks.Callback,), {hook: lambda *given: None})
        kit.raises(NotImplementedError, f"Own.{hook} would never", lambda k=kind: m.fit(
            X, Y, verbose=0, callbacks=[k()]))
    for call in (lambda: m.fit(X, Y), lambda: m.set_weights([]), lambda: m.compile("adam", "mse"),
                 lambda: m.save("m.onnx"), m.state_dict, lambda: m.predict(X)):
        class Within(callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                call()
        kit.raises(NotImplementedError, "a callback called", lambda: m.fit(
            X, Y, verbose=0, callbacks=[Within()]))
    for wrong in (callbacks.EarlyStopping, Told):
        kit.raises(TypeError, "call it:", lambda: m.fit(X, Y, callbacks=[wrong], verbose=0))
    kit.raises(TypeError, "none of weft's", lambda: m.fit(X, Y, callbacks=[3], verbose=0))


def test_weights():
    m, n = dense(), dense()
    m.fit(X, Y, verbose=0)
    n.set_weights(m.get_weights())
    assert np.array_equal(n.predict(X), m.predict(X))
    for kind in ("float16", "float64", "int32"):
        n.set_weights({"output/kernel": np.ones((4, 2), kind)})
        assert n.state_dict()["output/kernel"].tolist() == [[1, 1]] * 4
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.safetensors")
        m.save(path)
        n.load_weights(path)
        assert np.array_equal(n.predict(X), m.predict(X))
        kit.raises(weft.errors.ShapeError, "float32[4, 3]", lambda: dense(3).load_weights(path))
        kit.raises(weft.errors.NotFound, "there is no file", lambda: n.load_weights(path[1:]))
        kit.raises(weft.Error, "from_onnx", lambda: n.load_weights("m.onnx"))
    for kind, text, weights in [
            (ValueError, "the model has 2", [1]), (TypeError, "load_weights(path)", "a"),
            (TypeError, "a dict by name", 3),
            (LookupError, "did you mean 'output/kernel'", {"output/kernal": 1}),
            (weft.errors.ShapeError, "float32[2, 4]", [np.ones((2, 4)), np.zeros(2)])]:
        kit.raises(kind, text, lambda w=weights: n.set_weights(w))
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        kit.raises(weft.errors.Unsupported, "again.set_weights(model.get_weights())",
                   lambda k=make: k(m))


def test_files():
    m = dense()
    kit.raises(OSError, "no file can be made in /proc", lambda: m.save("/proc/m.onnx"))
    with tempfile.TemporaryDirectory() as folder:
        kit.raises(LookupError, "there is no folder", lambda: m.save(folder + "/none/m.onnx"))
        path = os.path.join(folder, "m.onnx")
        m.save(path)
        for freeze in ("output/k*", ["output/k*"]):
            frozen = weft.Model.from_onnx(path, freeze=freeze)
            frozen.compile("sgd", "mse")
            frozen.fit(X, Y, verbose=0)
            assert np.array_equal(frozen.get_weights()[0], m.get_weights()[0])


def test_a_session_is_not_copied():
    session = weft.Session.__new__(weft.Session)
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        kit.raises(weft.errors.Unsupported, "a session is neither", lambda k=make: k(session))


def test_training_goes_on_from_saved_weights():
    def make(seed):
        m = weft.Model.from_layers([
            weft.Input([4]), layers.Dense(8, kernel_regularizer="l2"), layers.BatchNormalization(),
            layers.Dropout(0.5), layers.Dense(2)], seed=seed)
        m.compile("sgd", "mse")
        return m

    def losses(m):
        return m.fit(X, Y, epochs=2, seed=7, verbose=0).history["loss"]

    m, of_file, of_onnx = make(0), make(1), make(2)
    m.fit(X, Y, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.safetensors")
        m.save(path)
        of_file.load_weights(path)
        path = os.path.join(folder, "m.onnx")
        m.save(path)
        of_onnx.set_weights(weft.Model.from_onnx(path).state_dict())
    assert losses(of_file) == losses(of_onnx) == losses(m)


def test_weights_of_a_torch_module():
    """Of a state_dict, second names and what the model has not are left out, others refused."""
    m = dense()
    m._origin = types.SimpleNamespace(  # as convert.TorchOrigin
        first={"tied": "output/kernel", "output/kernel": "output/kernel"},
        state={"num_batches_tracked": 0})
    m.set_weights({"tied": np.ones((4, 2)), "num_batches_tracked": 3})
    m.set_weights({"output/kernel": np.ones((4, 2)), "tied": 0, "output/bias": np.zeros(2)})
    for name in ("output/kernal", "other", "2.num_batches_tracked"):
        kit.raises(weft.errors.NotFound, f"no weight '{name}'", lambda n=name: m.set_weights(
            {"output/bias": np.ones(2), n: np.zeros((4, 2))}))
    kit.raises(LookupError, "did you mean 'output/bias'", lambda: m.set_weights({"output/bais": 0}))
    m._origin = None
    assert [w.tolist() for w in m.get_weights()] == [[[1, 1]] * 4, [0, 0]]


def test_the_bar_is_no_wider_than_the_terminal():
    was, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "40"
    try:
        out = io.StringIO()
        bar = _progress.Progress(1, 9, out)
        bar.shown = -1.0
        bar.move({"state": "running", "epoch": 3, "part": 0.5, "samples_per_sec": 1e6,
                  "metrics": {"loss": 1.0, "accuracy": 0.5}})
        said = out.getvalue()
        assert len(said) == 40 and said.startswith("\repoch 3/9"), said
    finally:
        os.environ.pop("COLUMNS")
        if was is not None:
            os.environ["COLUMNS"] = was


def test_history_has_no_such_key():
    h = dense().fit(X, Y, verbose=0)
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib here")
        return
    matplotlib.use("Agg")
    kit.raises(weft.errors.NotFound, "it has: loss", lambda: h.plot("val_loss"))


kit.run(globals(), sys.argv[2] if len(sys.argv) > 2 else None)

# SPDX-License-Identifier: Apache-2.0
"""frameworks.py LIBWEFT - models of PyTorch and Keras trained by weft, and their weights back.

Runs in the interpreter that WEFT_KERAS_PYTHON names, else in this one. exit 77: no PyTorch there.
"""
import collections
import os
import subprocess
import sys
import tempfile
import warnings

PYTHON = os.environ.get("WEFT_KERAS_PYTHON")
if PYTHON and os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(
        os.path.dirname(os.path.dirname(PYTHON))):
    os.execv(PYTHON, [PYTHON, *sys.argv])

import kit  # noqa: E402

kit.set_up(sys.argv[1])
kit.need("numpy", "torch", "onnx")
os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import torch  # noqa: E402
import weft  # noqa: E402
import weft.errors  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(1)
X = torch.randn(256, 1, 8, 8)
Y = X[:, 0, 0, :3].argmax(1)


def convolutional():
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                         nn.Dropout(0.2), nn.Linear(144, 3))


def outputs(net, x):
    net.eval()
    with torch.no_grad():
        return net(x).numpy()


def test_torch_there_and_back():
    net = convolutional()
    was = {k: v.clone() for k, v in net.state_dict().items()}
    m = weft.Model.from_torch(net, X[:2])
    assert np.abs(m.predict(X) - outputs(net, X)).max() < 1e-5
    net.train()
    m.compile(weft.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    m.fit(X, Y, epochs=8, batch_size=32, verbose=0)
    assert all(torch.equal(was[k], v) for k, v in net.state_dict().items())
    net.load_state_dict(m.state_dict())
    assert np.abs(m.predict(X) - outputs(net, X)).max() < 1e-5
    assert (outputs(net, X).argmax(1) == Y.numpy()).mean() > 0.8


def test_training_is_torchs():
    """SGD from the same weights over the same batches: weft's weights beside PyTorch's."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 3))
    x = X.reshape(256, 64)
    m = weft.Model.from_torch(net, x[:2])
    m.compile(weft.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy")
    m.fit(x, Y, epochs=2, batch_size=32, shuffle=False, verbose=0)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    for _ in range(2):
        for at in range(0, 256, 32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[at:at + 32]), Y[at:at + 32]).backward()
            optimizer.step()
    for name, value in m.state_dict().items():
        assert (value - net.state_dict()[name]).abs().max() < 1e-5, name


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(64, 64)
            self.b = nn.Linear(64, 64)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(torch.tanh(self.a(x)))

    net = Tied()
    x = X.reshape(256, 64)
    m = weft.Model.from_torch(net, x[:2])
    m.compile("adam", "mse")
    m.fit(x, x, verbose=0)
    net.load_state_dict(m.state_dict())
    assert np.abs(m.predict(x) - outputs(net, x)).max() < 1e-5


def test_loaders():
    set_of = torch.utils.data.TensorDataset(X, Y)
    m, n = (weft.Model.from_torch(convolutional(), X[:2]) for _ in range(2))
    for model, data in ((m, [torch.utils.data.DataLoader(set_of, batch_size=32)]), (n, [X, Y])):
        model.compile("adam", "sparse_categorical_crossentropy")
        model.fit(*data, shuffle=False, verbose=0)
    for name, value in m.state_dict().items():
        assert torch.equal(value, n.state_dict()[name]), name


def test_tensors_are_not_copied():
    from weft import _tensor
    assert _tensor.as_array(X, "x").ctypes.data == X.data_ptr()
    with_gradient = X.clone().requires_grad_()
    assert _tensor.as_array(with_gradient, "x").ctypes.data == with_gradient.data_ptr()


def test_what_cannot_be_exported():
    class Sorted(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(64, 64)

        def forward(self, x):
            return torch.linalg.svdvals(self.l(x).reshape(-1, 8, 8))

    e = kit.raises(weft.Error, "Sorted cannot be exported",
                   lambda: weft.Model.from_torch(Sorted(), X.reshape(256, 64)[:2]))
    assert e.hint and isinstance(e, NotImplementedError), e
    kit.raises(weft.Error, "", lambda: weft.Model.from_torch(object(), X))


def test_pages():
    blocks = [b for b in kit.python_of("README.md") + kit.python_of("docs/python.md") if "torch" in b]
    assert len(blocks) == 2
    for block in blocks:
        kit.run_block(block)


def test_keras():
    try:
        import keras
    except ImportError:
        print("no Keras here")
        return
    keras.utils.set_random_seed(1)
    net = keras.Sequential([keras.Input((64,), name="x"), keras.layers.Dense(16, "relu", name="a"),
                            keras.layers.BatchNormalization(name="n"),
                            keras.layers.Dense(3, name="b")])
    x = X.reshape(256, 64).numpy()
    m = weft.Model.from_keras(net)
    assert np.abs(m.predict(x) - np.asarray(net.predict(x, verbose=0))).max() < 1e-5
    m.compile("adam", "sparse_categorical_crossentropy")
    m.fit(x, Y, epochs=3, verbose=0)
    m.copy_to(net)
    assert np.abs(m.predict(x) - np.asarray(net.predict(x, verbose=0))).max() < 1e-5


def test_keras_goes_on_with_its_optimizer_as_weft_does():
    try:
        import keras
    except ImportError:
        print("no Keras here")
        return
    keras.utils.set_random_seed(1)
    net = keras.Sequential([keras.Input((64,), name="x"), keras.layers.Dense(8, "tanh", name="a"),
                            keras.layers.Dense(3, name="b")])
    x, y = X.reshape(256, 64).numpy(), Y.numpy()
    m = weft.Model.from_keras(net)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for _ in range(2):  # compile begins anew, in both
        net.compile(keras.optimizers.Adam(0.001), loss)
        m.compile(weft.optimizers.Adam(0.001), "sparse_categorical_crossentropy")
        for n in (256, 96, 256):
            net.fit(x[:n], y[:n], batch_size=32, shuffle=False, verbose=0)
            m.fit(x[:n], y[:n], batch_size=32, shuffle=False, verbose=0)
            ours = list(m.state_dict().values())
            for theirs in net.get_weights():
                apart = min(np.abs(theirs - o).max() for o in ours if o.shape == theirs.shape)
                assert apart < 1e-6, apart


def reads(f):
    """A module whose forward is f(layer, x)."""
    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(64, 4)
            self.register_buffer("steps", torch.tensor(2))

        def forward(self, x):
            return f(self, x)
    return Reads()


def converted(make):
    """The model that make() gives, and what it warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = make()
    return model, [str(w.message).partition("not kept: ")[2] for w in found
                   if "not kept: " in str(w.message)]


def test_values_that_decide_are_refused():
    x = X.reshape(256, 64)[:2]
    for f in (lambda m, x: m.a(x) if x.sum() > 0 else -m.a(x),
              lambda m, x: m.a(x) * int(x[0, 0]),
              lambda m, x: m.a(x) * x.max().item(),
              lambda m, x: m.a(x) if m.a.weight.sum() > 0 else -m.a(x),
              lambda m, x: m.a(x) if torch.rand(()) > 0.5 else -m.a(x),
              lambda m, x: torch.from_numpy(np.sin(m.a(x).detach().numpy()))):
        e = kit.raises(weft.errors.Unsupported, "makes a Python number",
                       lambda: weft.Model.from_torch(reads(f), x))
        assert f"{__file__}:{f.__code__.co_firstlineno}" in e.message and "where" in e.hint, e


def test_sizes_may_decide():
    def forward(m, x):
        assert x.shape[1] == 64 and x.dim() == 2
        x = x.reshape(x.size(0), int(x.shape[1]))
        for _ in range(int(m.steps)):
            x = x * 0.5
        return m.a(x) if x.shape[1] > 3 else x

    net = reads(forward)
    x = X.reshape(256, 64)
    m = weft.Model.from_torch(net, x[:2])
    assert np.abs(m.predict(x) - outputs(net, x)).max() < 1e-5


def test_batch_norm_without_momentum():
    net = nn.Sequential(nn.Linear(64, 4), nn.BatchNorm1d(4, momentum=None))
    x = X.reshape(256, 64)[:2]
    kit.raises(weft.errors.Unsupported, 'BatchNorm1d "1" has momentum=None',
               lambda: weft.Model.from_torch(net, x))


def test_half_precision():
    for dtype in (torch.float16, torch.bfloat16):
        e = kit.raises(weft.errors.Unsupported, f"'weight' is {str(dtype)[6:]}",
                       lambda: weft.Model.from_torch(nn.Linear(4, 2).to(dtype), torch.zeros(2, 4)))
        assert ".float()" in e.hint, e


def test_messages():
    x = X.reshape(256, 64)[:2]

    class Svd(nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[1]

    e = kit.raises(weft.errors.Unsupported, "", lambda: weft.Model.from_torch(Svd(), x))
    assert "operator 'aten::linalg_svd'" in e.message and "\\x1b" not in repr(e), repr(e)
    assert "neither" not in e.message and "\n" not in e.message, e
    net = nn.Linear(64, 2)
    kit.raises(weft.errors.WrongType, "example_inputs is a dict",
               lambda: weft.Model.from_torch(net, {"x": x}))
    kit.raises(weft.errors.WrongType, "example_inputs[0]",
               lambda: weft.Model.from_torch(net, ("words",)))
    m = weft.Model.from_torch(net, x)
    kit.raises(weft.errors.WrongType, "int is neither", lambda: m.copy_to(3))
    kit.raises(weft.errors.WrongType, "Linear is no model of Keras",
               lambda: weft.Model.from_keras(net))


def test_an_interpreter_ends_without_a_word():
    """Models of the main module are freed when the globals of other modules may be gone."""
    of_layers = "weft.Model.from_layers([weft.Input([4]), weft.layers.Dense(2)])"
    of_torch = "weft.Model.from_torch(torch.nn.Linear(2, 2), torch.zeros(2, 2))"
    for module, model in (("tensorflow", of_layers), ("torch", of_torch)):
        code = f"import weft\ntry:\n    import {module}\nexcept ImportError:\n    pass\nm = {model}"
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, PYTHONPATH=str(kit.SOURCE / "python"), TMPDIR=folder,
                       KERAS_BACKEND=module)
            done = subprocess.run([sys.executable, "-c", code], env=env, text=True,
                                  capture_output=True)
            assert done.returncode == 0 and "ignored" not in done.stderr, done.stderr
            assert not [n for n in os.listdir(folder) if n.startswith("weft-")]


def test_penalties_of_keras_are_refused():
    try:
        import keras
    except ImportError:
        print("no Keras here")
        return

    class Adds(keras.layers.Layer):
        def call(self, x):
            self.add_loss(keras.ops.sum(x))
            return x

    dense, x = keras.layers.Dense, np.zeros((2, 4), "float32")
    cases = [(dense(2, **{word: of}, name="a"), f'{word} of Dense "a"') for word, of in (
        ("kernel_regularizer", "l2"), ("bias_regularizer", "l1"), ("activity_regularizer", "l2"),
        ("kernel_constraint", "non_neg"))]
    cases += [(keras.layers.LSTM(2, recurrent_regularizer="l2"), "_regularizer of LSTM"),
              (Adds(name="a"), 'add_loss of Adds "a"')]
    for layer, text in cases:
        shape = (3, 4) if isinstance(layer, keras.layers.LSTM) else (4,)
        net = keras.Sequential([keras.Input(shape), layer, dense(2)])
        kit.raises(weft.errors.Unsupported, text, lambda: weft.Model.from_keras(net))
    net = keras.Sequential([dense(2, kernel_regularizer="l2")])
    kit.raises(weft.errors.Unsupported, "kernel_regularizer", lambda: weft.Model.from_keras(net, x))


RANDOM = {"1": nn.Dropout1d(0.5), "2": nn.Dropout2d(0.5), "3": nn.Dropout3d(0.5),
          "alpha": nn.AlphaDropout(0.5), "feature": nn.FeatureAlphaDropout(0.5),
          "leaky": nn.RReLU(0.1, 0.9)}


def test_layers_that_would_be_random_in_inference():
    for name, layer in RANDOM.items():
        net = nn.Sequential()
        net.add_module(name, layer)
        x = torch.zeros({"1": (2, 3, 4), "3": (2, 3, 4, 4, 4)}.get(name, (2, 3, 4, 4)))
        e = kit.raises(weft.errors.Unsupported, f'{type(layer).__name__} "{name}"',
                       lambda: weft.Model.from_torch(net, x))
        assert "use Dropout" in e.hint, e
    net = reads(lambda m, x: nn.functional.dropout(m.a(x), 0.5, m.training))
    net.unused, net.none = nn.AlphaDropout(0.5), nn.AlphaDropout(0.0)
    weft.Model.from_torch(net, X.reshape(256, 64)[:2])


def test_without_onnxruntime_weft_compares():
    x = X.reshape(256, 64)[:2]
    was = sys.modules.get("onnxruntime")
    sys.modules["onnxruntime"] = None  # as if it were not installed
    try:
        for f in (lambda m, x: m.a(x + torch.randn_like(x) if m.training else x),
                  lambda m, x: nn.functional.dropout2d(m.a(x).reshape(-1, 2, 2, 1), 0.5, m.training)):
            kit.raises(weft.errors.Unsupported, "outputs differ from the model's",
                       lambda: weft.Model.from_torch(reads(f), x))
        net = convolutional()
        assert np.abs(weft.Model.from_torch(net, X[:2]).predict(X) - outputs(net, X)).max() < 1e-5
    finally:
        del sys.modules["onnxruntime"]
        if was:
            sys.modules["onnxruntime"] = was


def test_default_arguments_are_constants():
    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(64, 3)

    class Flag(Base):
        def forward(self, x, flag=True):
            return self.a(x) if flag else x

    class Scale(Base):
        def forward(self, x, k=3):
            return self.a(x) * k

    class Several(Base):
        def forward(self, x, k=None, return_dict=False, *, half=0.5):
            out = self.a(x) * half
            return {"out": out} if return_dict else out

    x = X.reshape(256, 64)
    for net in (Flag(), Scale(), Several()):
        m = weft.Model.from_torch(net, x[:2])
        assert m.input_names == ["x"] and "forward" not in vars(net)
        assert np.abs(m.predict(x) - outputs(net, x)).max() < 1e-5
    m = weft.Model.from_torch(Scale(), (x[:2], torch.ones(2, 1)))  # a default that is not needed
    assert m.input_names == ["x", "k"], m.input_names


def test_an_input_without_effect():
    class Second(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(64, 3)

        def forward(self, u, x):
            return self.a(x)

    x = X.reshape(256, 64)
    m, lost = converted(lambda: weft.Model.from_torch(Second(), (x[:2] * 3, x[:2])))
    assert m.input_names == ["x"] and lost == ['the input "u", which does not reach an output'], lost
    kit.raises(weft.errors.Unsupported, "no input of the model reaches an output",
               lambda: weft.Model.from_torch(reads(lambda m, x: m.a(x.data)), x[:2]))


def test_embeddings():
    ids = torch.zeros(2, 3, dtype=torch.int64)

    def lost(**options):
        net = nn.Sequential(nn.Embedding(5, 2, **options), nn.Flatten(), nn.Linear(6, 1))
        return converted(lambda: weft.Model.from_torch(net, ids))[1]

    assert not lost()
    found = lost(padding_idx=3, scale_grad_by_freq=True)
    assert len(found) == 2 and found[1].startswith('scale_grad_by_freq of Embedding "0"'), found
    assert found[0] == 'padding_idx of Embedding "0"; weft trains row 3, too', found


def test_names_are_checked():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(64, 3), nn.Linear(64, 1)

        def forward(self, x):
            return self.a(x), self.b(x)

    def model(**names):
        return weft.Model.from_torch(Two(), X.reshape(256, 64)[:2], **names)

    for text, names in (("has 2 outputs", ["a"]), ("has 2 outputs", ["a", "b", "c"]),
                        ("is one string, 'ab'", "ab"), ('"a" is given twice', ["a", "a"]),
                        ('"x" is given twice', ["x", "b"]), ("has ' '", ["a", " "]),
                        ("has 1, which", [1, 2])):
        kit.raises(weft.errors.Invalid, text, lambda: model(input_names=["x"], output_names=names))
    for text, names in (("has 1 input", ["a", "b"]), ("has 1 input", []), ("one string", "x"),
                        ("has None", [None])):
        kit.raises(weft.errors.Invalid, text, lambda: model(input_names=names))
    kit.raises(weft.errors.Invalid, '"x" is given twice', lambda: model(output_names=["x", "y"]))
    m = model(input_names=["u"], output_names=["p", "q"])
    assert m.input_names == ["u"] and m.output_names == ["p", "q"]


def test_outputs_have_their_keys():
    pair = collections.namedtuple("pair", "logits hidden")
    x = X.reshape(256, 64)
    for f, names in ((lambda m, x: {"reg": m.a(x), "cls": m.a(x) * 2}, ["reg", "cls"]),
                     (lambda m, x: pair(m.a(x), m.a(x) * 2), ["logits", "hidden"]),
                     (lambda m, x: {"x": m.a(x), "y": m.a(x)}, ["output_0", "output_1"]),
                     (lambda m, x: (m.a(x), {"y": m.a(x)}), ["output_0", "output_1"])):
        m = weft.Model.from_torch(reads(f), x[:2])
        assert m.output_names == names, m.output_names
    m = weft.Model.from_torch(reads(lambda m, x: {"a": m.a(x)}), x[:2], output_names=["b"])
    assert m.output_names == ["b"]


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


@torch.no_grad()
def without_gradients(m, x):
    return m.a(x)


def in_a_block(m, x):
    with torch.no_grad():
        h = m.a(x)
    return torch.tanh(h) * m.a(x)


def looked_at(m, x):
    """Keeps numbers that do not reach the output."""
    h = m.a(x)
    m.seen = h.detach()
    with torch.no_grad():
        m.share = (h > 0).float().mean()
    return h


def straight_through(m, x):
    h = m.a(x)
    return h + (h.round() - h).detach()


def test_stopped_gradients_are_told():
    x = X.reshape(256, 64)[:2]
    for f, what in ((straight_through, "detach() at"), (in_a_block, "torch.no_grad() at"),
                    (lambda m, x: without_gradients(m, x) + m.a(x), "torch.no_grad() at"),
                    (lambda m, x: m.a(x) + x @ m.a.weight.data.T, ".data at"),
                    (lambda m, x: Reversed.apply(m.a(x)), 'the backward of "Reversed"')):
        _, lost = converted(lambda: weft.Model.from_torch(reads(f), x))
        assert len(lost) == 1 and what in lost[0], lost
        assert "Reversed" in what or __file__ in lost[0], lost
    for f in (lambda m, x: torch.tanh(m.a(x)).detach() * m.b, lambda m, x: without_gradients(m, x) * m.b):
        net = reads(f)
        net.b = nn.Parameter(torch.ones(4))
        _, lost = converted(lambda: weft.Model.from_torch(net, x))
        assert len(lost) == 2 and lost[1].startswith('that "a.weight", "a.bias" are not trained'), lost


def test_gradients_that_flow_are_not_told():
    from torch.nn.utils import parametrizations
    from torch.utils.checkpoint import checkpoint

    def frozen(m, x):
        m.a.requires_grad_(False)
        return without_gradients(m, x) * 2

    class Inner(nn.Module):
        def __init__(self, inner, call):
            super().__init__()
            self.inner, self.call, self.o = inner, call, nn.Linear(8, 2)

        def forward(self, x):
            return self.o(self.call(self.inner, x))

    def first(inner, x):
        return inner(x)[0]

    linear, frozen_norm = nn.Linear(64, 8), nn.BatchNorm1d(8).eval()
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    nets = [convolutional(), nn.Sequential(linear, frozen_norm, nn.LayerNorm(8), nn.PReLU()),
            nn.Sequential(parametrizations.weight_norm(nn.Linear(64, 8)), nn.Linear(8, 2)),
            nn.Sequential(parametrizations.spectral_norm(nn.Linear(64, 8)), nn.Linear(8, 2)),
            reads(frozen), reads(looked_at), reads(lambda m, x: m.a(x.detach()) * m.steps),
            reads(lambda m, x: checkpoint(m.a, x, use_reentrant=False))]
    for net in nets:
        x = X[:2] if isinstance(net[0] if isinstance(net, nn.Sequential) else net, nn.Conv2d) else (
            X.reshape(256, 64)[:2])
        state = {k: v.clone() for k, v in net.state_dict().items()}
        _, lost = converted(lambda: weft.Model.from_torch(net, x))
        assert not lost, (net, lost)
        assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items()), net
    for net in (Inner(nn.LSTM(8, 8, 2, batch_first=True), first),
                Inner(nn.GRU(8, 8, batch_first=True), first),
                Inner(attention, lambda a, x: a(x, x, x)[0]),
                nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1),
                nn.Sequential(nn.Flatten(1), nn.Linear(64, 2))):
        _, lost = converted(lambda: weft.Model.from_torch(net, X[:2, 0]))
        assert not lost, (net, lost)


def keras_here():
    try:
        import keras
    except ImportError:
        print("no Keras here")
        return None
    keras.utils.set_random_seed(1)
    return keras


def keras_model(keras, call, **layers):
    class Called(keras.Model):
        def __init__(self):
            super().__init__()
            self.a, self.b = keras.layers.Dense(8), keras.layers.Dense(2)
            for name, layer in layers.items():
                setattr(self, name, layer)

        def call(self, x, training=False):
            return call(self, x)
    return Called()


def test_keras_layers_that_are_never_in_training():
    keras = keras_here()
    if not keras:
        return
    x, y = X.reshape(256, 64).numpy(), np.zeros((256, 2), "float32")
    norm, drop = keras.layers.BatchNormalization, keras.layers.Dropout

    def base():
        return keras.Sequential([keras.layers.Dense(8), norm(), drop(0.5)])

    nets = [keras_model(keras, lambda m, x: m.b(m.n(m.a(x), training=False)), n=norm()),
            keras_model(keras, lambda m, x: m.b(m.n(m.a(x), training=False)), n=drop(0.9)),
            keras_model(keras, lambda m, x: m.b(m.n(x, training=False)), n=base())]
    for net in nets:
        m, lost = converted(lambda: weft.Model.from_keras(net, x[:2]))
        net.compile(keras.optimizers.SGD(0.0), "mse")
        m.compile(weft.optimizers.SGD(0.0), "mse")
        for _ in range(2):
            ours = m.fit(x, y, batch_size=256, verbose=0).history["loss"][0]
            theirs = net.fit(x, y, batch_size=256, verbose=0).history["loss"][0]
            assert abs(ours - theirs) < 1e-5 and not lost, (ours, theirs, lost)
        assert np.abs(m.predict(x) - net.predict(x, verbose=0)).max() < 1e-5
    net = keras_model(keras, lambda m, x: m.b(m.n(m.a(x), training=True) + m.n(m.a(x), training=False)),
                      n=norm(name="both"))
    kit.raises(weft.errors.Unsupported, '"both" is called with training=False and without',
               lambda: weft.Model.from_keras(net, x[:2]))
    net = keras_model(keras, lambda m, x: m.b(m.n(m.a(x))), n=drop(0.9))
    m = weft.Model.from_keras(net, x[:2])  # in training, as ever
    m.compile(weft.optimizers.SGD(0.0), "mse")
    losses = [m.fit(x, y, batch_size=256, verbose=0).history["loss"][0] for _ in range(2)]
    assert losses[0] != losses[1], losses


def test_keras_augmentation_is_named():
    keras = keras_here()
    if not keras:
        return
    layers = keras.layers
    augment = [layers.RandomFlip(), layers.RandomRotation(0.2), layers.RandomZoom(0.1),
               layers.RandomContrast(0.2), layers.RandomTranslation(0.1, 0.1),
               layers.RandomBrightness(0.1), layers.RandomCrop(8, 8)]
    net = keras.Sequential([keras.Input((8, 8, 3)), *augment, layers.Rescaling(0.5), layers.Flatten(),
                            layers.Dense(2)])
    _, lost = converted(lambda: weft.Model.from_keras(net))
    assert lost == [f'{type(layer).__name__} "{layer.name}"' for layer in augment], lost


def test_keras_stopped_gradients_are_told():
    keras = keras_here()
    if not keras:
        return
    x, stop = X.reshape(256, 64).numpy(), keras.ops.stop_gradient
    norms = [keras.layers.LayerNormalization(), keras.layers.GroupNormalization(2),
             keras.layers.BatchNormalization(), keras.layers.Activation("silu")]

    def through(m, x):
        x = m.a(x)
        for layer in norms:
            x = layer(x)
        return m.b(x)

    _, lost = converted(lambda: weft.Model.from_keras(keras_model(keras, through, norms=norms), x[:2]))
    assert not lost, lost
    a = keras.Input((64,))
    for net, lines in (
            (keras_model(keras, lambda m, x: m.b(stop(m.a(x)) + m.a(x))), 1),
            (keras_model(keras, lambda m, x: m.b(stop(m.a(x)))), 2),
            (keras.Model(a, keras.layers.Dense(2)(stop(keras.layers.Dense(8, name="d")(a)))), 2)):
        _, lost = converted(lambda: weft.Model.from_keras(net, x[:2]))
        assert len(lost) == lines and "of gradients by stop_gradient" in lost[0], lost
        assert lines == 1 or 'kernel", "' in lost[1] and "are not trained" in lost[1], lost
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf
        own = tf.custom_gradient(lambda x: (tf.identity(x), lambda g: -g))
        net = keras_model(keras, lambda m, x: m.b(own(m.a(x))))
        _, lost = converted(lambda: weft.Model.from_keras(net, x[:2]))
        assert len(lost) == 1 and "custom_gradient gives at" in lost[0], lost


def test_keras_normalization():
    keras = keras_here()
    if not keras:
        return
    x = X.reshape(256, 64).numpy() * 3
    adapted = keras.layers.Normalization()
    adapted.adapt(x)
    for layer in (adapted, keras.layers.Normalization(mean=1.0, variance=2.0)):
        net = keras.Sequential([keras.Input((64,)), layer, keras.layers.Dense(2)])
        m, lost = converted(lambda: weft.Model.from_keras(net))
        assert not lost and len(m.state_dict()) == 2, (lost, list(m.state_dict()))
        assert np.abs(m.predict(x) - net.predict(x, verbose=0)).max() < 1e-5


def test_keras_inputs_of_a_dict():
    keras = keras_here()
    if not keras:
        return
    a, b = keras.Input((6,), name="a"), keras.Input((4,), name="b")
    h = keras.layers.Concatenate()([keras.layers.Dense(4)(a), b])
    net = keras.Model({"b": b, "a": a}, keras.layers.Dense(2)(h))
    x = {"b": np.ones((3, 4), "float32"), "a": np.full((3, 6), 2, "float32")}
    for example in (None, x, (x["a"], x["b"])):
        m = weft.Model.from_keras(net, example)
        assert m.input_names == ["a", "b"], m.input_names
        assert np.abs(m.predict(x) - net.predict(x, verbose=0)).max() < 1e-5
    called = keras_model(keras, lambda m, x: m.a(x["v"]) + m.b2(x["u"]), b2=keras.layers.Dense(8))
    m = weft.Model.from_keras(called, {"v": x["a"], "u": x["b"]})
    assert m.input_names == ["v", "u"], m.input_names
    kit.raises(weft.errors.Invalid, 'example_inputs has no "b"',
               lambda: weft.Model.from_keras(net, {"a": x["a"]}))
    kit.raises(weft.errors.Invalid, "example_inputs are 1, and the inputs of the model 2",
               lambda: weft.Model.from_keras(net, x["a"]))


def test_keras_says_what_is_wrong():
    keras = keras_here()
    if not keras:
        return
    net = keras.Sequential([keras.Input((64,)), keras.layers.Dense(2, name="d")])
    e = kit.raises(weft.errors.Unsupported, "to have value 64, but received input with shape (2, 5)",
                   lambda: weft.Model.from_keras(net, np.zeros((2, 5), "float32")))
    assert "Exception encountered" not in e.message, e


def test_on_tensorflow():
    """The tests of Keras, on its other backend."""
    import importlib.util
    if os.environ["KERAS_BACKEND"] != "torch" or not all(
            importlib.util.find_spec(m) for m in ("keras", "tensorflow", "tf2onnx")):
        print("no TensorFlow here")
        return
    done = subprocess.run([sys.executable, __file__, sys.argv[1], "keras"], text=True,
                          env=dict(os.environ, KERAS_BACKEND="tensorflow"), capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


kit.run(dict(globals()), sys.argv[2] if len(sys.argv) > 2 else None)

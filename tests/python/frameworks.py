# SPDX-License-Identifier: Apache-2.0
"""frameworks.py LIBWEFT - models of PyTorch and Keras trained by weft, and their weights back.

Runs in the interpreter that WEFT_KERAS_PYTHON names, else in this one. exit 77: no PyTorch there.
"""
import os
import subprocess
import sys
import tempfile

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
        model.fit(*data, verbose=0)
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


kit.run(dict(globals()), sys.argv[2] if len(sys.argv) > 2 else None)

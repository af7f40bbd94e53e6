# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch and Keras, exported by python/weft_export.py, train in weft as in the framework.

From the same weights, over the same 20 batches with SGD, each loss is the framework's to 1e-4; the
trained weights come back by name and are the framework's. Dropout is in the file too, and has a rate
of 0 while losses are compared. Deep models have smooth activations here: at the kink of a ReLU the
last bit decides on a gradient, and after some steps of ResNet-18 with ReLU PyTorch in float32 and
PyTorch in float64 have losses that are 0.2 apart. And of the same models, exported as the
frameworks do by default, each loss of structure is warned of.

Runs in the interpreter that WEFT_KERAS_PYTHON names (else this one), once for each framework that
is there: --group GROUP.

usage: frameworks.py WEFT [GROUP]
exit 77: skipped, no framework is there
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = {"torch": "torch", "tensorflow": "keras tensorflow tf2onnx", "keras_torch": "keras torch"}
STEPS, BATCH, RATE, MOST = 20, 8, 0.02, 1e-4
MOST_STATISTIC = 1e-2  # PyTorch's running variance is that of n / (n - 1)
JOB = """job: {name}
model: {{onnx: {name}.onnx}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{{input}: {name}.x.npy, y: {name}.y.npy}}
  shuffle: false
  split_records: {records}
batch: {batch}
epochs: 1
optimizer: {{sgd: {{learning_rate: {rate}}}}}
checkpoint: {{every_steps: 1000}}
"""


def has(modules):
    return all(importlib.util.find_spec(m) for m in ["numpy", "onnx", "onnxruntime", *modules.split()])


# ---- in the interpreter with the frameworks ----

class Case:
    """A model, its 20 batches, and what a default export of it must be warned of. `make` takes the
    rate of Dropout; `ops`: how many of these the file must have when that is not 0."""

    def __init__(self, name, make, x, classes, warnings, **ops):
        import numpy as np
        self.name, self.make, self.x, self.warnings, self.ops = name, make, x, warnings, ops
        self.y = np.random.default_rng(5).integers(0, classes, len(x)).astype(np.int64)


def images(side, channels, last=False):
    import numpy as np
    shape = (side, side, channels) if last else (channels, side, side)
    return np.random.default_rng(3).normal(size=(STEPS * BATCH, *shape)).astype(np.float32)


def ids(n, most=50, dtype="int64"):
    import numpy as np
    return np.random.default_rng(4).integers(0, most, (STEPS * BATCH, n)).astype(dtype)


def torch_cases():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
            self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
            self.shortcut = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False),
                                          nn.BatchNorm2d(o)) if stride > 1 else nn.Identity()

        def forward(self, x):
            y = self.bn2(self.conv2(nn.functional.silu(self.bn1(self.conv1(x)))))
            return nn.functional.silu(y + self.shortcut(x))

    class ResNet18(nn.Module):
        def __init__(self, _, width=8):
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
            blocks, i = [], width
            for k in range(4):
                blocks += [Block(i, width << k, 1 if k == 0 else 2), Block(width << k, width << k, 1)]
                i = width << k
            self.layers, self.fc = nn.Sequential(*blocks), nn.Linear(i, 10)

        def forward(self, x):
            return self.fc(self.layers(nn.functional.silu(self.bn(self.conv(x)))).mean((2, 3)))

    def cnn(rate):
        return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
                             nn.Dropout(rate), nn.Linear(16 * 49, 10))

    class Transformer(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=rate, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.fc = nn.Linear(16, 3)

        def forward(self, x):
            return self.fc(self.encoder(self.embed(x)).mean(1))

    class Tied(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.embed, self.mix = nn.Embedding(50, 16), nn.Linear(16, 16)
            self.head = nn.Linear(16, 50, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(torch.tanh(self.mix(self.embed(x).mean(1))))

    class Lstm(nn.Module):
        def __init__(self, _):
            super().__init__()
            self.embed, self.lstm = nn.Embedding(50, 8), nn.LSTM(8, 12, batch_first=True)
            self.fc = nn.Linear(12, 3)

        def forward(self, x):
            return self.fc(self.lstm(self.embed(x))[0][:, -1])

    folded = {"script": "no BatchNormalization in the file", "dynamo": "no BatchNormalization in the file"}
    return [
        Case("resnet18", ResNet18, images(32, 3), 10, folded, BatchNormalization=20),
        Case("cnn", cnn, images(14, 1), 10, folded, BatchNormalization=2, Dropout=1),
        Case("transformer", Transformer, ids(7), 3,
             {"script": "belong to several layers", "dynamo": "belong to several layers"},
             Dropout=8, LayerNormalization=4),
        Case("tied", Tied, ids(7), 50, {"script": "is a transposed copy of"}),
        Case("lstm", Lstm, ids(7), 3, {"script": "names that the exporter made up",
                                       "dynamo": "names that the exporter made up"}, LSTM=1),
    ]


class TorchSide:
    cases = staticmethod(torch_cases)

    def make(self, case, rate=0.0):
        import torch
        torch.manual_seed(0)
        return case.make(rate)

    def reference(self, model, case):
        """The losses of 20 steps; the model is trained by them."""
        import torch
        model.train()
        sgd, losses = torch.optim.SGD(model.parameters(), RATE), []
        for at in range(0, len(case.x), BATCH):
            x, y = torch.from_numpy(case.x[at:at + BATCH]), torch.from_numpy(case.y[at:at + BATCH])
            sgd.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            sgd.step()
            losses.append(loss.item())
        return losses

    def default_exports(self, model, case, folder):
        """As most people write it: {label: file}."""
        import torch
        x = torch.from_numpy(case.x[:2])
        files = {"script": folder / "default.script.onnx", "dynamo": folder / "default.dynamo.onnx"}
        torch.onnx.export(model, (x,), str(files["script"]), dynamo=False, input_names=["x"],
                          dynamic_axes={"x": {0: "batch"}})
        torch.onnx.export(model, (x,), str(files["dynamo"]), dynamo=True, input_names=["x"],
                          dynamic_shapes=({0: torch.export.Dim("batch")},), verbose=False)
        return files


def keras_cases():
    import keras
    from keras import layers as L

    def cnn(rate):
        return keras.Sequential([
            keras.Input((14, 14, 1)), L.Conv2D(8, 3, padding="same", name="c1"),
            L.BatchNormalization(name="b1"), L.Activation("silu"), L.MaxPooling2D(),
            L.Conv2D(16, 3, padding="same", activation="silu", name="c2"),
            L.Flatten(), L.Dropout(rate), L.Dense(32, activation="silu", name="d1"),
            L.BatchNormalization(name="b2"), L.Dense(10, name="out")])

    def table(_):
        x = keras.Input((4,), dtype="int32", name="ids")
        y = L.LayerNormalization(name="ln")(L.Flatten()(L.Embedding(50, 8, name="embed")(x)))
        return keras.Model(x, L.Dense(3)(L.Dense(16, activation="relu")(y)))

    default = {"default": "no BatchNormalization in the file"}
    return [Case(f"keras_cnn_{keras.backend.backend()}", cnn, images(14, 1, True), 10, default,
                 BatchNormalization=2, Dropout=1),
            Case(f"keras_table_{keras.backend.backend()}", table, ids(4, dtype="int32"), 3,
                 {"default": "names that the exporter made up"} if keras.backend.backend() == "tensorflow"
                 else {})]


class KerasSide:
    cases = staticmethod(keras_cases)

    def make(self, case, rate=0.0):
        import keras
        keras.backend.clear_session()  # counts names from the beginning
        keras.utils.set_random_seed(0)
        return case.make(rate)

    def reference(self, model, case):
        import keras
        model.compile(keras.optimizers.SGD(RATE), keras.losses.SparseCategoricalCrossentropy(True))
        losses = []
        for at in range(0, len(case.x), BATCH):
            model.reset_metrics()
            losses.append(float(model.train_on_batch(case.x[at:at + BATCH], case.y[at:at + BATCH])))
        return losses

    def default_exports(self, model, case, folder):
        if not case.warnings:  # Keras on PyTorch cannot export this one by itself
            return {}
        model(case.x[:2])
        model.export(str(folder / "default.onnx"), format="onnx", verbose=False)
        return {"default": folder / "default.onnx"}


def variables(model):
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    import weft_export
    return {v.name: (v.kind, v.value) for v, _ in weft_export._route(model).slots(model)}


def play(weft, side, case, folder):
    """Exports, trains, loads back. Returns the row of the table; raises AssertionError."""
    import numpy as np
    import weft_export
    model = side.make(case)
    first = variables(model)
    report = weft_export.export(model, case.x[:2], str(folder / f"{case.name}.onnx"), quiet=True)
    assert not report.lost, report
    for name, (_, value) in variables(model).items():
        assert np.array_equal(value, first[name][1]), f"the export changed {name}"
    np.save(folder / f"{case.name}.x.npy", case.x)
    np.save(folder / f"{case.name}.y.npy", case.y)
    says = run(weft, folder, "graph", f"{case.name}.onnx")
    assert "warning" not in says, says
    name = report.lines[0].split("inputs ")[1].split("[")[0]
    (folder / "job.yaml").write_text(JOB.format(name=case.name, input=name, records=STEPS * BATCH,
                                                batch=BATCH, rate=RATE))
    run(weft, folder, "train", "--local", "job.yaml", losses=folder / "losses")
    ours = [float.fromhex(line.split()[5]) for line in (folder / "losses").read_text().splitlines()]
    theirs = side.reference(model, case)
    assert len(ours) == STEPS, ours
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    assert worst < MOST, f"{case.name}: {ours} and {theirs}"

    run(weft, folder, "export", case.name, "-o", "trained.onnx")
    fresh = side.make(case)
    back = weft_export.load(fresh, str(folder / "trained.onnx"), quiet=True)
    assert not back.lost, back
    trained, loaded = variables(model), variables(fresh)
    off = {"trainable": 0.0, "statistic": 0.0}
    for name, (kind, value) in trained.items():
        off[kind] = max(off[kind], float(np.abs(value - loaded[name][1]).max()))
    moved = max(float(np.abs(value - first[name][1]).max()) for name, (_, value) in trained.items())
    assert off["trainable"] < MOST < moved and off["statistic"] < MOST_STATISTIC, (off, moved)
    read = weft_export.read_weights(str(folder / "trained.onnx"))
    for name, (_, value) in loaded.items():  # exactly what the file has
        assert name not in read or np.array_equal(read[name], value), name
    return [case.name, str(len(trained)), f"{ours[0]:.4f}", f"{ours[-1]:.4f}", f"{worst:.0e}",
            f"{off['trainable']:.0e}", f"{off['statistic']:.0e}"]


def check_structure(side, case, folder):
    """What training needs is in the file."""
    import onnx
    import weft_export
    path = str(folder / "structure.onnx")
    weft_export.export(side.make(case, 0.25), case.x[:2], path, quiet=True)
    ops = [node.op_type for node in onnx.load(path).graph.node]
    for op, n in case.ops.items():
        assert ops.count(op) == n, f"{case.name}: {ops.count(op)} {op}, not {n}"


def play_default(weft, side, case, folder):
    """The default exports of the model: {label: how many warnings}."""
    found = {}
    for label, path in side.default_exports(side.make(case), case, folder).items():
        said = [line for line in run(weft, folder, "graph", str(path)).splitlines()
                if line.startswith("warning: ")]
        part = case.warnings.get(label)
        assert not part or any(part in line for line in said), f"{case.name} {label}: {said}"
        found[label] = len(said)
    return ", ".join(f"{label}: {n}" for label, n in found.items()) or "-"


def run(weft, folder, *args, losses=None):
    env = dict(os.environ, **({"WEFT_LOSS_LOG": str(losses)} if losses else {}))
    done = subprocess.run([weft, *args], cwd=folder, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, f"weft {' '.join(args)}: {done.returncode}\n{done.stdout}"
    return done.stdout


def play_group(weft, group):
    import contextlib
    import io
    import logging
    import warnings
    os.environ["KERAS_BACKEND"] = {"tensorflow": "tensorflow"}.get(group, "torch")
    os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["CUDA_VISIBLE_DEVICES"] = "3", ""
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    side = TorchSide() if group == "torch" else KerasSide()
    for case in side.cases():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            row = play(weft, side, case, folder)
            check_structure(side, case, folder)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                defaults = play_default(weft, side, case, folder)
            print(("{:24}" + "{:>7}{:>9}{:>9}" + "{:>8}" * 3 + "  {}").format(*row, defaults), flush=True)


# ---- here ----

def main():
    weft = os.path.abspath(sys.argv[1])
    python = os.environ.get("WEFT_KERAS_PYTHON", sys.executable)
    groups, failed, played = sys.argv[2:] or list(GROUPS), 0, 0
    print(f"{'model':24}{'names':>7}{'first':>9}{'last':>9}{'losses':>8}{'weights':>8}{'stats':>8}  "
          "warnings of default exports")
    for group in groups:
        if subprocess.run([python, __file__, "--has", GROUPS[group]]).returncode != 0:
            print(f"skipped: {group}: {python} has no {GROUPS[group]} with onnx and onnxruntime")
            continue
        played += 1
        failed += subprocess.run([python, __file__, "--group", group, weft]).returncode != 0
    sys.exit(1 if failed else 0 if played else 77)


if sys.argv[1] == "--has":
    sys.exit(0 if has(sys.argv[2]) else 1)
elif sys.argv[1] == "--group":
    play_group(sys.argv[3], sys.argv[2])
else:
    main()

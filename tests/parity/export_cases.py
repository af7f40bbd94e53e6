# SPDX-License-Identifier: Apache-2.0
"""Corners of python/weft_export.py with PyTorch: frozen parts, both exporters, losses in the module,
checkpoints, and what it refuses.

Runs in the interpreter that WEFT_KERAS_PYTHON names (else this one).

usage: export_cases.py WEFT
exit 77: skipped, PyTorch is not there
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = os.environ.get("WEFT_KERAS_PYTHON", sys.executable)
if PYTHON != sys.executable and "--here" not in sys.argv:
    sys.exit(subprocess.run([PYTHON, __file__, *sys.argv[1:], "--here"]).returncode)
for module in ("numpy", "onnx", "onnxruntime", "onnxscript", "torch"):
    if not importlib.util.find_spec(module):
        print(f"skipped: {PYTHON} has no {module}")
        sys.exit(77)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

sys.path.insert(0, str(HERE.parent.parent / "python"))
import weft_export  # noqa: E402

WEFT = os.path.abspath(sys.argv[1])
JOB = """job: small
model: {onnx: small.onnx}
loss: sparse_categorical_crossentropy
data: {format: npy, train: {x: x.npy, y: y.npy}}
batch: 16
epochs: 2
optimizer: {adam: {learning_rate: 0.01}}
slice_bytes: 16384
"""


def export(model, x, folder, **more):
    path = str(folder / "small.onnx")
    return weft_export.export(model, x, path, quiet=True, **more), onnx.load(path)


def weft(folder, *args):
    done = subprocess.run([WEFT, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    return done.stdout


def kinds(proto):
    return {p.key[len(weft_export.PREFIX):]: p.value for p in proto.metadata_props}


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.Tanh(), nn.Linear(64, 3))


def refused(call, *parts):
    try:
        call()
    except (weft_export.ExportError, ValueError) as e:
        assert all(p in str(e) for p in parts), e
        return
    raise AssertionError("it was not refused")


def what_is_frozen_in_the_module_is_frozen_in_weft(folder):
    model = net().train()
    model[0].weight.requires_grad = False
    model[1].eval()
    _, proto = export(model, torch.zeros(2, 6), folder)
    assert model.training and not model[1].training
    found = kinds(proto)
    assert found["0.weight"] == "frozen" and found["1.running_mean"] == "frozen", found
    assert found["0.bias"] == "trainable" and found["1.weight"] == "trainable", found
    train(folder)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    weft_export.load(model, str(folder / "out.onnx"), quiet=True)
    for name, value in model.state_dict().items():
        frozen = name == "0.weight" or name.startswith(("1.running", "1.num"))
        assert torch.equal(value, before[name]) == frozen, name


def train(folder):
    x = np.random.default_rng(1).normal(size=(128, 6)).astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", x[:, :3].argmax(1))
    onnx_file = onnx.load(folder / "small.onnx")
    name = onnx_file.graph.input[0].name
    (folder / "job.yaml").write_text(JOB.replace("{x: x.npy", f"{{{name}: x.npy"))
    weft(folder, "train", "--local", "job.yaml")
    weft(folder, "export", "small", "-o", "out.onnx")


def a_checkpoint_loads_as_the_exported_file_does(folder):
    export(net(), torch.zeros(2, 6), folder)
    train(folder)
    newest = sorted((folder / ".weft/checkpoints").glob("*/step-*"))[-1]
    one, other, shards = net(), net(), {}
    weft_export.load(one, str(folder / "out.onnx"), quiet=True)
    report = weft_export.load(other, str(newest), quiet=True)
    assert not report.lost, report
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
        assert torch.equal(a, b), name
    for path in newest.glob("*.safetensors"):
        shards.update(weft_export.read_weights(str(path)))
    assert any(np.array_equal(v.ravel(), one[3].bias.detach()) for v in shards.values()), list(shards)


def a_model_that_cannot_be_traced_goes_through_dynamo(folder):
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x, y):
            out = self.net(x)
            return nn.functional.smooth_l1_loss(out, y), out

    report, proto = export(WithLoss(), (torch.zeros(2, 6), torch.ones(2, 3)), folder,
                           output_names=["loss", "out"])
    assert any("dynamo" in line for line in report.lines), report
    assert kinds(proto)["net.1.running_var"] == "statistic", kinds(proto)
    said = weft(folder, "graph", "small.onnx")
    assert "inputs x[batch,6], y[batch,3]" in said and "warning" not in said, said


def what_does_not_fit_is_refused_and_changes_nothing(folder):
    model = net()
    export(model, torch.zeros(2, 6), folder)
    wider = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.Tanh(), nn.Linear(64, 4))
    before = {k: v.clone() for k, v in wider.state_dict().items()}
    refused(lambda: weft_export.load(wider, str(folder / "small.onnx"), quiet=True),
            '"3.weight" is float32[4, 64]', "float32[3, 64]")
    assert all(torch.equal(v, before[k]) for k, v in wider.state_dict().items())
    other = nn.Sequential(nn.Linear(6, 64))
    report = weft_export.load(other, str(folder / "small.onnx"), quiet=True)
    assert report.lost and "no place for" in report.lost[0], report
    refused(lambda: weft_export.export([1], 1, "x.onnx"), "neither a torch.nn.Module nor a keras.Model")

    class Random(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 3)

        def forward(self, x):
            return self.fc(x) + torch.rand(3)

    before = (folder / "small.onnx").read_bytes()
    refused(lambda: export(Random(), torch.zeros(2, 6), folder), "differ from the model's")
    assert (folder / "small.onnx").read_bytes() == before


def the_model_is_afterwards_what_it_was(folder):
    model = net().eval()
    before, seed = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    report, _ = export(model, torch.zeros(1, 6), folder)
    assert not model.training and torch.equal(seed, torch.get_rng_state())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not report.lost and "1 BatchNormalization" in str(report), report


def what_is_not_kept_is_in_the_report(folder):
    class Stops(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.a = nn.Embedding(7, 6, padding_idx=2), nn.Linear(6, 3)
            self.b = nn.Linear(3, 3)

        def forward(self, ids, scale=2.0):
            h = self.a(self.e(ids)).detach()
            return {"last": self.b(h) * scale}

    report, proto = export(Stops(), torch.zeros(2, 4, dtype=torch.int64), folder)
    assert [o.name for o in proto.graph.output] == ["last"], report
    assert [i.name for i in proto.graph.input] == ["ids"], report
    told = ("padding_idx of Embedding \"e\"", f"detach() at {__file__}", '"e.weight", "a.weight"')
    assert len(report.lost) == 3, report
    for text in told:
        assert any(text in line for line in report.lost), (text, report)


def arguments_are_checked_before_anything_is_written(folder):
    x, path = torch.zeros(2, 6), folder / "small.onnx"
    for names, text in (("out", "is one string"), (["a", "b"], "has 1 output"), ([""], "is no name"),
                        (["input"], "given twice")):
        refused(lambda: export(net(), x, folder, input_names=["input"], output_names=names), text)
    refused(lambda: export(net(), {"x": x}, folder), "example_inputs is a dict")
    refused(lambda: export(nn.Sequential(nn.Linear(6, 3), nn.AlphaDropout(0.5)), x, folder),
            'AlphaDropout "1" would be random')
    assert not path.exists()


for test in (what_is_frozen_in_the_module_is_frozen_in_weft, a_checkpoint_loads_as_the_exported_file_does,
             a_model_that_cannot_be_traced_goes_through_dynamo,
             what_does_not_fit_is_refused_and_changes_nothing, the_model_is_afterwards_what_it_was,
             what_is_not_kept_is_in_the_report, arguments_are_checked_before_anything_is_written):
    with tempfile.TemporaryDirectory() as name:
        test(pathlib.Path(name))
    print("ok    ", test.__name__)

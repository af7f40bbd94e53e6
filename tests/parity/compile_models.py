# SPDX-License-Identifier: Apache-2.0
"""The compiler against PyTorch, onnx and onnxruntime, on models that PyTorch exported.

For each file: every stage of the train, eval and infer graphs passes onnx's checker; gradients equal
PyTorch's; thirty steps of gradient descent follow PyTorch's losses; the inference form computes in
onnxruntime what PyTorch computed; and a file without its loss trains as the one with it.

usage: compile_models.py COMPILE_TOOL    (WEFT_SHARED: the folder that holds models/)
exit 77: skipped, the reference data or a library is not there
"""

import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnx.utils
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get("WEFT_SHARED", ROOT.parent / "shared")) / "models"
NAMES = [
    "mlp_784_128_10",
    "linear_regression_mse",
    "logistic_regression_bce",
    "loss_weighted_ignore",
    "shared_weight_twice",
    "matrix_factorisation",
    "deepfm",
    "dlrm",
]
# What Keras calls the loss that the file has inside.
FUNCTIONS = {
    "mlp_784_128_10": "sparse_categorical_crossentropy",
    "linear_regression_mse": "mse",
    "logistic_regression_bce": "binary_crossentropy",
}


def tool(*args):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{args[0]}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def inputs_of(reference, folder):
    """Writes each input as raw bytes and gives the tool's words for them."""
    words = []
    for key in reference.files:
        if not key.startswith("input."):
            continue
        path = folder / key
        path.write_bytes(np.ascontiguousarray(reference[key]).tobytes())
        words.append(f"{key[6:]}={'x'.join(map(str, reference[key].shape))}:{path}")
    return words


def check_stages(model, loss, folder):
    for mode in ("train", "eval", "infer"):
        stages = folder / mode
        stages.mkdir()
        tool("stages", model, mode, loss, stages)
        files = sorted(stages.glob("*.onnx"))
        assert len(files) >= 14, f"{len(files)} stages"
        for file in files:
            try:
                onnx.checker.check_model(onnx.load(file), full_check=False)
            except Exception as error:
                raise AssertionError(f"{mode}/{file.name}: {error}") from error
    return folder / "infer" / "schedule.onnx"


def close(name, ours, theirs, tolerance=2e-5):
    scale = max(1e-3, float(np.abs(theirs).max(initial=0.0)))
    worst = float(np.abs(ours - theirs).max(initial=0.0)) / scale
    assert worst < tolerance, f"{name}: off by {worst:.3g} of {scale:.3g}"
    return worst


def check_gradients(model, loss, reference, folder):
    folder.mkdir()
    seen = set()
    worst = 0.0
    for line in tool("grad", model, loss, folder, *inputs_of(reference, folder)).splitlines():
        label, path = line.rsplit(" ", 1)
        seen.add(label)
        theirs = reference["loss" if label == "loss" else f"grad.{label}"] if (
            label == "loss" or f"grad.{label}" in reference.files) else None
        if theirs is None:
            assert path == "zero", f"{label}: PyTorch has no gradient for it"
            continue
        ours = (np.zeros_like(theirs) if path == "zero"
                else np.fromfile(path, theirs.dtype).reshape(theirs.shape))
        worst = max(worst, close(label, ours, theirs))
    for key in reference.files:
        assert not key.startswith("grad.") or key[5:] in seen, f"no gradient {key[5:]}"
    return worst


def check_descent(model, loss, reference, folder):
    if "curve.sgd" not in reference.files:
        return
    curve = reference["curve.sgd"]
    lines = tool("train", model, loss, folder, 0.05, len(curve), *inputs_of(reference, folder))
    close("curve.sgd", np.array([float(x) for x in lines.split()]), curve, 1e-4)


def check_inference(file, reference):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    feeds = {i.name: reference[f"input.{i.name}"] for i in session.get_inputs()}
    assert "y" not in feeds, "inference asks for labels"
    names = [o.name for o in session.get_outputs()]
    assert names == ["out"], f"outputs {names}"
    close("out", session.run(None, feeds)[0], reference["out"])


def without_loss(model, folder):
    """The same model as a plain export has it: up to `out`, no labels, no loss."""
    path = folder / "plain.onnx"
    onnx.utils.extract_model(str(model), str(path), ["x"], ["out"], check_model=False)
    return path


class Reference(dict):
    """A dict that answers as numpy's archive does."""

    @property
    def files(self):
        return list(self)


KERAS = {
    "net.1.weight": "sequential/dense/Cast/ReadVariableOp:0",
    "net.1.bias": "sequential/dense/Add/ReadVariableOp:0",
    "net.3.weight": "sequential/dense_1/Cast/ReadVariableOp:0",
    "net.3.bias": "sequential/dense_1/Add/ReadVariableOp:0",
}


def as_keras_writes_it(path):
    """The MLP as Keras's exporter has it: weights [in, out], MatMul and Add, Softmax, opset 15."""
    weights = {w.name: onnx.numpy_helper.to_array(w)
               for w in onnx.load(MODELS / "mlp_784_128_10.script.onnx").graph.initializer}
    initializers = [onnx.numpy_helper.from_array(np.ascontiguousarray(weights[name].T), keras)
                    for name, keras in KERAS.items()]
    node = onnx.helper.make_node
    names = list(KERAS.values())
    nodes = [
        node("MatMul", ["keras_tensor", names[0]], ["sequential/dense/MatMul:0"]),
        node("Add", ["sequential/dense/MatMul:0", names[1]], ["sequential/dense/Add:0"]),
        node("Relu", ["sequential/dense/Add:0"], ["sequential/dense/Relu:0"]),
        node("MatMul", ["sequential/dense/Relu:0", names[2]], ["sequential/dense_1/MatMul:0"]),
        node("Add", ["sequential/dense_1/MatMul:0", names[3]], ["sequential/dense_1/Add:0"]),
        node("Softmax", ["sequential/dense_1/Add:0"], ["output_0"]),
    ]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "keras",
        [value("keras_tensor", onnx.TensorProto.FLOAT, ["unk__11", 784])],
        [value("output_0", onnx.TensorProto.FLOAT, ["unk__12", 10])], initializers)
    onnx.save(onnx.helper.make_model(
        graph, producer_name="tf2onnx", opset_imports=[onnx.helper.make_opsetid("", 15)]), path)


def check_keras():
    reference = np.load(MODELS / "mlp_784_128_10.npz")
    theirs = {
        "input.keras_tensor": reference["input.x"].reshape(-1, 784),
        "input.y": reference["input.y"],
        "loss": reference["loss"],
    }
    for name, keras in KERAS.items():
        theirs[f"grad.{keras}"] = np.ascontiguousarray(reference[f"grad.{name}"].T)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model = folder / "keras.onnx"
        as_keras_writes_it(model)
        check_stages(model, "sparse_categorical_crossentropy", folder)
        tool("attach", model, "sparse_categorical_crossentropy", folder / "attached.onnx")
        worst = check_gradients(folder / "attached.onnx", "loss", Reference(theirs),
                                folder / "grad")
    print(f"ok   the MLP as Keras writes it: gradients within {worst:.1e}")


def check(model, reference):
    name = model.name.split(".")[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        infer = check_stages(model, "loss", folder)
        check_inference(infer, reference)
        worst = check_gradients(model, "loss", reference, folder / "grad")
        check_descent(model, "loss", reference, folder / "grad")
        if name in FUNCTIONS and not (name.startswith("linear") and ".script" in model.name):
            plain = without_loss(model, folder)
            (folder / "plain").mkdir()
            check_stages(plain, FUNCTIONS[name], folder / "plain")
            train = folder / "plain" / "train-local.onnx"
            tool("attach", plain, FUNCTIONS[name], train)
            check_gradients(train, "loss", reference, folder / "plain-grad")
    print(f"ok   {model.name}: gradients within {worst:.1e}")


def main():
    if not MODELS.is_dir():
        print(f"skipped: no reference models at {MODELS} (set WEFT_SHARED)")
        sys.exit(77)
    failed = 0
    try:
        check_keras()
    except AssertionError as error:
        failed += 1
        print(f"FAIL the MLP as Keras writes it: {error}")
    for name in NAMES:
        reference = np.load(MODELS / f"{name}.npz")
        for model in sorted(MODELS.glob(f"{name}.*.onnx")):
            try:
                check(model, reference)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {model.name}: {error}")
    sys.exit(1 if failed else 0)


TOOL = sys.argv[1]
main()

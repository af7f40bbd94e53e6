# SPDX-License-Identifier: Apache-2.0
"""Models exported from PyTorch, through weft and back.

    onnx_models.py ONNX_TOOL

For each model of $WEFT_SHARED/models that weft has the operations for: the file that weft writes
passes onnx's checker and gives the same outputs in onnxruntime; the gradient graph that weft builds,
run by onnx's reference evaluator with the formulas of weft_ops.py, gives PyTorch's gradients.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import weft_ops  # noqa: E402

UNSUPPORTED = 3


def run(tool, *args):
    done = subprocess.run([tool, *args], capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


def close(got, want):
    return np.allclose(got, want, rtol=2e-4, atol=2e-6)


def check_copy(tool, path, out, feeds):
    """Outputs of the original and of weft's copy, in onnxruntime."""
    code, said = run(tool, "copy", path, out)
    if code != 0:
        return code, said
    onnx.checker.check_model(out, full_check=True)
    first = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    second = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    assert [o.name for o in first.get_outputs()] == [o.name for o in second.get_outputs()]
    assert [i.name for i in first.get_inputs()] == [i.name for i in second.get_inputs()]
    for a, b in zip(first.run(None, feeds), second.run(None, feeds)):
        # To the last bits: onnxruntime fuses other nodes where constants are initializers.
        assert np.allclose(a, b, rtol=1e-6, atol=1e-6), "outputs differ from the original's"
    names = {i.name for i in onnx.load(path).graph.initializer}
    assert names <= {i.name for i in onnx.load(out).graph.initializer} | unused(path)
    again = out + ".again"
    assert run(tool, "copy", out, again) == (0, "")
    assert open(out, "rb").read() == open(again, "rb").read(), "a second trip changes the file"
    return 0, ""


def unused(path):
    graph = onnx.load(path).graph
    used = {name for node in graph.node for name in node.input} | {o.name for o in graph.output}
    return {i.name for i in graph.initializer} - used


def check_gradients(tool, path, out, feeds, want):
    assert run(tool, "grad", path, out, "loss") == (0, ""), "no gradient graph"
    onnx.checker.check_model(out)
    evaluator = ReferenceEvaluator(out, new_ops=weft_ops.OPS)
    got = dict(zip(evaluator.output_names, evaluator.run(None, feeds)))
    for name, value in want.items():
        grad = weft_ops.gradient(got, name, ["grad." + known for known in want])
        assert grad.shape == value.shape, f"{name}: {grad.shape} and not {value.shape}"
        assert close(grad, value), f"{name}: off by {np.abs(grad - value).max()}"
    count = sum(name.startswith("grad/") for name in got)
    assert count == len(want), f"{count} gradients, PyTorch has {len(want)}"
    return len(want)


def main(tool):
    default = os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared")
    models = os.path.join(os.environ.get("WEFT_SHARED", default), "models")
    if not os.path.isdir(models):
        print(f"skipped: no models in {models}; set WEFT_SHARED")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(models)):
            if not name.endswith(".onnx"):
                continue
            path, out = os.path.join(models, name), os.path.join(folder, name)
            data = np.load(os.path.join(models, name.split(".")[0] + ".npz"))
            feeds = {k[6:]: data[k] for k in data.files if k.startswith("input.")}
            want = {k[5:]: data[k] for k in data.files if k.startswith("grad.")}
            try:
                code, said = check_copy(tool, path, out, feeds)
                if code == UNSUPPORTED:
                    print(f"unsupported  {said}")
                    continue
                assert code == 0, said
                count = check_gradients(tool, path, out, feeds, want)
                print(f"ok           {name}: {count} gradients")
            except Exception as wrong:  # one bad model must not hide the next
                failed += 1
                print(f"FAILED       {name}: {type(wrong).__name__}: {wrong}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

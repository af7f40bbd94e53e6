# SPDX-License-Identifier: Apache-2.0
"""compute: float16: the scale of the loss, and the steps that it costs.

    float16.py WEFT PLUGIN [TEST...]

PLUGIN is loaded instead of weft-cuda.so: its GPUs are the host's own (tests/cuda/plugin.c).
"""
import os
import re
import sys

from losses import cluster_with_data, losses, saved_weights
from weftlib import check, main, needs

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper, save  # noqa: E402

PLUGIN = os.path.abspath(sys.argv.pop(2))
RECORDS, BATCH, EPOCHS = 3200, 32, 2
STEPS = RECORDS // BATCH * EPOCHS
JOB = """
job: half
model:
  input: {{x: [64]}}
  layers:
    - dense: {{units: 64, activation: tanh}}
    - dense: {{units: 64, activation: relu}}
    - dense: {{units: 10}}
loss: {{output: sparse_categorical_crossentropy}}
loss_weights: {{output: {weight}}}
data: {{format: npy, train: {{x: x.npy, y: y.npy}}}}
batch: {batch}
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: 0.02, momentum: 0.9{sgd}}}}}
consistency: {{mode: async, pipeline: 0}}
strategy: {strategy}
seed: 7
{more}
"""


def half_cluster(weft, gpus=("cuda:0",), ps=0):
    c = cluster_with_data(weft, ps, RECORDS, 64)
    c.env.update(WEFT_CUDA=PLUGIN, WEFT_CUDA_HOST="")
    c.devices = {0: list(gpus)}
    c.resize(ps)
    return c


def scales_of(c):
    log = c.read(os.path.join(".weft", "logs", "worker-0.log"))
    return [float(s) for s in re.findall(r" worker\.loss_scale step=\d+ scale=(\S+)", log)]


def trained(weft, more="compute: float16", gpus=("cuda:0",), ps=0, strategy=None, bad=None, sgd="", weight="1", code=0):
    """What a job gives: losses, weights, the scales that its worker logged, the steps left out, and stderr."""
    with half_cluster(weft, gpus, ps) as c:
        if bad is not None:
            x = np.load(c.path("x.npy"))
            x[bad] = np.nan
            np.save(c.path("x.npy"), x)
        kind = strategy or ("parameter_server" if ps else "local")
        c.write("half.yaml", JOB.format(batch=BATCH, epochs=EPOCHS, strategy=kind, more=more, sgd=sgd, weight=weight))
        c.must("up")
        said = c.must("train", "half.yaml", code=code).err
        log = c.read(os.path.join(".weft", "logs", "worker-0.log"))
        dropped = (c.job("half") or {}).get("dropped_steps")
        return ([float.fromhex(loss) for _, loss in losses(c)], None if code else saved_weights(c, "half"), scales_of(c),
                dropped, said, log)


def a_scale_that_is_too_large_falls(weft):
    """Steps whose gradients overflow are left out; what is trained then is near to float32."""
    want = trained(weft, "", gpus=["cpu"])
    check(not want[2] and want[3] == 0, f"{want[2:4]}")
    for kinds in dict(), dict(ps=1), dict(gpus=("cuda:0", "cuda:1"), strategy="mirrored"), \
            dict(sgd=", gradient_accumulation_steps: 2"), dict(sgd=", global_clipnorm: 100"):
        got = trained(weft, "compute: float16\nloss_scale: {initial_scale: 16777216}", **kinds)
        check(got[2] and got[2] == [2.0 ** (23 - i) for i in range(len(got[2]))], f"{kinds}: {got[2]}")
        check(got[3] == len(got[2]), f"{kinds}: {got[3]} steps were left out, and the scale fell to {got[2]}")
        for name, value in got[1].items():
            check(np.isfinite(value).all(), f"{kinds}: {name}")
        check(np.mean(got[0][-20:]) < 0.5 * np.mean(got[0][:20]), f"{kinds}: {got[0][:20]} to {got[0][-20:]}")
        if not kinds.get("sgd"):
            check(abs(np.mean(got[0][-50:]) - np.mean(want[0][-50:])) < 0.05, f"{kinds}: {got[0][-50:]}\n{want[0][-50:]}")


def a_scale_grows_until_it_is_too_large(weft):
    got = trained(weft, "compute: float16\nloss_scale: {initial_scale: 1, dynamic_growth_steps: 3}")
    changes = np.diff(np.log2([1, *got[2]]))
    check(got[2][:5] == [2, 4, 8, 16, 32] and set(changes) == {1, -1}, f"{got[2]}")
    check(got[3] == (changes < 0).sum(), f"{got[3]} steps were left out: {got[2]}")
    check(np.mean(got[0][-20:]) < 0.5 * np.mean(got[0][:20]), f"{got[0]}")


def a_small_gradient_is_not_lost(weft):
    """Gradients of a loss in the millions of its weight's size vanish in float16 without a scale."""
    plain, scaled = (trained(weft, f"compute: float16\nloss_scale: {{initial_scale: {s}, dynamic_growth_steps: 1000000}}"
                             , weight="0.0000001")[1] for s in (1, 1 << 24))
    want = trained(weft, "", gpus=["cpu"], weight="0.0000001")[1]
    moved = {name: np.abs(value - want[name]).max() for name, value in plain.items() if "momentum" in name}
    near = {name: np.abs(value - want[name]).max() for name, value in scaled.items() if "momentum" in name}
    size = {name: np.abs(want[name]).max() for name in near}
    check(near and all(near[n] < 0.05 * size[n] for n in near), f"{near} of {size}")
    check(any(moved[n] > 0.2 * size[n] for n in moved), f"{moved} of {size}")


def what_no_scale_can_mend_is_said(weft):
    """A loss that is NaN, and gradients that are so at the scale 1: the derivative of a root of 0."""
    for on_nan in "stop", "skip":
        got = trained(weft, f"compute: float16\non_nan: {on_nan}", bad=slice(0, RECORDS, 100),
                      code=on_nan == "stop")
        check("the loss is NaN at step" in got[4] if on_nan == "stop" else EPOCHS <= got[3] <= RECORDS // 100 * EPOCHS and not got[2],
              f"{on_nan}: {got[2:5]}")
    node, info = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["y"]), node("Sqrt", ["y"], ["r"]), node("ReduceMean", ["r"], ["loss"], keepdims=0)],
        "root", [info("x", TensorProto.FLOAT, ["n", 64])], [info("loss", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(np.ones((64, 1), np.float32), "w")])
    with half_cluster(weft) as c:
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), c.path("root.onnx"))
        np.save(c.path("x.npy"), np.zeros((RECORDS, 64), np.float32))
        c.write("root.yaml", "job: root\nmodel: {onnx: root.onnx}\nloss: loss\nbatch: 32\ndata: {format: npy, train: {x: x.npy}}\n"
                "optimizer: {sgd: {learning_rate: 0.1}}\ncompute: float16\nloss_scale: {initial_scale: 1024}\n")
        c.must("up")
        said = c.must("train", "root.yaml", code=1).err
        check('NaN in the gradient of "w" at step 11 ' in said, said)
        check(scales_of(c) == [2.0 ** i for i in range(9, -1, -1)], f"{scales_of(c)}")


def a_processor_computes_float32(weft):
    """Equal bits, no scale, and a word in the log."""
    want, got = (trained(weft, more, gpus=["cpu"]) for more in ("", "compute: float16"))
    check(got[0] == want[0] and not got[2] and got[3] == 0, f"{got[2:4]}")
    for name, value in want[1].items():
        check((got[1][name] == value).all(), name)
    check('compute.float32 why="GPUs alone compute in float16"' in got[5], got[5][-2000:])


def a_scale_without_float16_is_refused(weft):
    for more, word in (("loss_scale: {initial_scale: 4}", "write compute: float16 beside it"),
                       ("compute: float16\nloss_scale: {initial_scale: 0}", "initial_scale"),
                       ("compute: float16\nloss_scale: {growth: 7}", "growth")):
        said = trained(weft, more, gpus=["cpu"], code=2)
        check(word in said[4] and "half.yaml:" in said[4], said[4])


main([a_scale_that_is_too_large_falls, a_scale_grows_until_it_is_too_large, a_small_gradient_is_not_lost,
      what_no_scale_can_mend_is_said, a_processor_computes_float32, a_scale_without_float16_is_refused])

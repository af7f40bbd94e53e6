# SPDX-License-Identifier: Apache-2.0
"""Running statistics of BatchNormalization in a job: the file has the inference form, as exporters
write it, and both layers share one pair of running values, as exporters let equal ones become one.
"""
from weftlib import Cluster, check, main, needs

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RECORDS, CLASSES = 512, 3
JOB = """job: norm
model: {{onnx: norm.onnx}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, label: y.npy}}
  eval: {{x: x.npy, label: y.npy}}
  split_records: 64
batch: 32
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: {rate}}}}}
checkpoint: {{every_steps: 40, keep: 9}}
seed: 1
"""


def node(op, inputs, output, **attrs):
    return helper.make_node(op, inputs.split(), [output], name=output, **attrs)


def write(c, epochs, rate):
    rng = np.random.default_rng(3)
    weights = {
        "conv.w": rng.normal(size=(4, 2, 3, 3), scale=0.3), "conv.b": rng.normal(size=4),
        "scale1": np.ones(4), "bias1": np.zeros(4), "scale2": np.ones(4), "bias2": np.zeros(4),
        "mean": np.zeros(4), "var": np.ones(4),
        "fc.w": rng.normal(size=(CLASSES, 4)), "fc.b": np.zeros(CLASSES)}
    nodes = [
        node("Conv", "x conv.w conv.b", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c scale1 bias1 mean var", "n1"),
        node("Relu", "n1", "r"),
        node("BatchNormalization", "r scale2 bias2 mean var", "n2", momentum=0.75),
        node("GlobalAveragePool", "n2", "p"), node("Flatten", "p", "f"),
        node("Gemm", "f fc.w fc.b", "scores", transB=1)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "norm", [info("x", TensorProto.FLOAT, ["batch", 2, 6, 6])],
        [info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                producer_name="pytorch"), c.path("norm.onnx"))
    x = rng.normal(size=(RECORDS, 2, 6, 6), loc=0.5).astype(np.float32)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), x.mean(axis=(1, 2, 3)).argsort().argsort() * CLASSES // RECORDS)
    c.write("norm.yaml", JOB.format(epochs=epochs, rate=rate))
    return weights, x


def exported(c):
    c.must("export", "norm", "-o", "out.onnx")
    model = onnx.load(c.path("out.onnx"))
    onnx.checker.check_model(model)
    check(all(n.op_type != "BatchNormalizationTrain" for n in model.graph.node), "not inference")
    return {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}


def convolve(weights, x):
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(np.einsum("nchw,mc->nmhw", wide[:, :, i:i + 6, j:j + 6], weights["conv.w"][:, :, i, j])
               for i in range(3) for j in range(3)) + weights["conv.b"].reshape(1, -1, 1, 1)


def the_running_values_become_those_of_the_data(weft):
    with Cluster(weft, workers=2) as c:
        weights, x = write(c, epochs=6, rate=1e-7)
        c.must("train", "norm.yaml")
        got = exported(c)
        y = convolve(weights, x)
        for name, want in {"n1/running_mean": y.mean(axis=(0, 2, 3)),
                           "n1/running_var": y.var(axis=(0, 2, 3))}.items():
            check(np.allclose(got[name], want, rtol=0.1, atol=0.1), f"{name}: {got[name]}, {want}")
        hat = (y - y.mean(axis=(0, 2, 3), keepdims=True)) / y.std(axis=(0, 2, 3), keepdims=True)
        relu = np.maximum(hat, 0)
        check(np.allclose(got["n2/running_mean"], relu.mean(axis=(0, 2, 3)), atol=0.1), "n2")


def the_running_values_move_by_the_momentum(weft):
    """One worker, weights that stand still: after k steps the first values weigh momentum^k."""
    with Cluster(weft, workers=1) as c:
        weights, x = write(c, epochs=1, rate=1e-9)
        c.must("train", "norm.yaml")
        got, steps = exported(c), RECORDS // 32
        y = convolve(weights, x)
        relu = np.maximum((y - y.mean(axis=(0, 2, 3), keepdims=True)) / y.std(axis=(0, 2, 3),
                                                                           keepdims=True), 0)
        for name, data, first, momentum in (("n1/running_var", y.var(axis=(0, 2, 3)), 1, 0.9),
                                            ("n1/running_mean", y.mean(axis=(0, 2, 3)), 0, 0.9),
                                            ("n2/running_var", relu.var(axis=(0, 2, 3)), 1, 0.75)):
            old = momentum ** steps
            want = old * first + (1 - old) * data
            check(np.allclose(got[name], want, rtol=0.04, atol=0.02), f"{name}: {got[name]}, {want}")


def a_recovery_brings_the_running_values_back(weft):
    with Cluster(weft, workers=1) as c:
        write(c, epochs=8, rate=0.1)
        c.must("train", "norm.yaml")
        whole = exported(c)
        first = int(c.checkpoints("norm")[0].split("-")[1])
        c.must("recover", "norm", "--from", str(first))
        again = exported(c)
        check(whole.keys() == again.keys(), "other variables")
        for name in whole:
            check(np.array_equal(whole[name], again[name]), f"{name} differs after a recovery")


main([the_running_values_become_those_of_the_data, the_running_values_move_by_the_momentum,
      a_recovery_brings_the_running_values_back])

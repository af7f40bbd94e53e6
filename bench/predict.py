#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft predict beside onnxruntime: a file of records in, a file of outputs out, on the same cores.

predict.py [--weft build/cmd/weft] [--data DIR] [--repeats 5] [--times 20]

Trains nothing: a perceptron 784-128-10 and LeNet-5's shapes with random weights, written as ONNX, on the
images of MNIST in DIR (train-images-idx3-ubyte.gz), --times after each other, as a float32 npy file. onnxruntime
reads the file by numpy.load with mmap_mode, runs batches of 256, and numpy.save writes the outputs: its
program takes its turn with weft predict, each a process of its own, timed from start to end. Prints
medians, least and most of records/s, and the ratio; and where weft's time goes, by its --threads 1.
"""
import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

THEIRS = """
import sys, numpy as np, onnxruntime as ort
o = ort.SessionOptions(); o.intra_op_num_threads = int(sys.argv[4])
s = ort.InferenceSession(sys.argv[1], o)
x = np.load(sys.argv[2], mmap_mode="r")
y = [s.run(None, {"x": np.ascontiguousarray(x[i:i + 256])})[0] for i in range(0, len(x), 256)]
np.save(sys.argv[3], np.concatenate(y))
"""


def weights(rng, *shape):
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def save(path, nodes, shape, tensors):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
                          [numpy_helper.from_array(v, k) for k, v in tensors.items()])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def perceptron(path, rng):
    node = helper.make_node
    save(path, [node("Flatten", ["x"], ["f"]), node("Gemm", ["f", "w1", "b1"], ["h"], transB=1), node("Relu", ["h"], ["r"]),
                node("Gemm", ["r", "w2", "b2"], ["z"], transB=1), node("Softmax", ["z"], ["y"], axis=-1)], [1, 28, 28],
         {"w1": weights(rng, 128, 784), "b1": weights(rng, 128), "w2": weights(rng, 10, 128), "b2": weights(rng, 10)})


def lenet(path, rng):
    node = helper.make_node
    save(path, [node("Conv", ["x", "c1"], ["a"], pads=[2, 2, 2, 2]), node("Relu", ["a"], ["ar"]),
                node("MaxPool", ["ar"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                node("Conv", ["p", "c2"], ["b"]), node("Relu", ["b"], ["br"]),
                node("MaxPool", ["br"], ["q"], kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", ["q"], ["f"]),
                node("Gemm", ["f", "w1", "b1"], ["h"], transB=1), node("Relu", ["h"], ["r"]),
                node("Gemm", ["r", "w2", "b2"], ["z"], transB=1), node("Softmax", ["z"], ["y"], axis=-1)], [1, 28, 28],
         {"c1": weights(rng, 6, 1, 5, 5), "c2": weights(rng, 16, 6, 5, 5), "w1": weights(rng, 120, 400),
          "b1": weights(rng, 120), "w2": weights(rng, 10, 120), "b2": weights(rng, 10)})


def images(folder, path, times):
    with gzip.open(os.path.join(folder, "train-images-idx3-ubyte.gz")) as f:
        x = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (len(x) * times, 1, 28, 28))
    for i in range(times):
        out[i * len(x):(i + 1) * len(x)] = x / np.float32(255)
    out.flush()
    return len(out)


def timed(words):
    began = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def line(name, records, seconds):
    rates = [records / s for s in seconds]
    print(f"  {name:24} {statistics.median(rates):10.0f} records/s  ({min(rates):.0f} to {max(rates):.0f})")
    return statistics.median(rates)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weft", default="build/cmd/weft")
    p.add_argument("--data", default=os.path.join(os.environ.get("WEFT_SHARED", "."), "data", "mnist"))
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--times", type=int, default=20)
    a = p.parse_args()
    weft, cores = os.path.abspath(a.weft), len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as d:
        records = images(a.data, f"{d}/x.npy", a.times)
        print(f"{records} images, {cores} cores")
        for model in (perceptron, lenet):
            onnx_path = f"{d}/{model.__name__}.onnx"
            model(onnx_path, np.random.default_rng(0))
            ours = [weft, "predict", onnx_path, "--input", f"x={d}/x.npy", "-o", f"{d}/ours.npy"]
            theirs = [sys.executable, "-c", THEIRS, onnx_path, f"{d}/x.npy", f"{d}/theirs.npy", str(cores)]
            times = {"weft": [], "onnxruntime": [], "weft --threads 1": [], "weft, csv": []}
            for _ in range(a.repeats):
                times["weft"].append(timed(ours))
                times["onnxruntime"].append(timed(theirs))
                times["weft --threads 1"].append(timed([*ours, "--threads", "1"]))
                times["weft, csv"].append(timed([*ours[:-1], f"{d}/ours.csv"]))
            if not np.allclose(np.load(f"{d}/ours.npy"), np.load(f"{d}/theirs.npy"), atol=1e-4):
                sys.exit(f"{model.__name__}: the outputs differ")
            print(model.__name__)
            rates = {name: line(name, records, seconds) for name, seconds in times.items()}
            print(f"  weft / onnxruntime: {rates['weft'] / rates['onnxruntime']:.2f}")


if __name__ == "__main__":
    main()

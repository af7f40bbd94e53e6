# SPDX-License-Identifier: Apache-2.0
"""codec: gradients and weights in fewer bytes train to the same accuracy, and status says what they saved."""
from weftlib import Cluster, check, main, needs

needs("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import small  # noqa: E402

# Wide enough for slices of 1024 numbers and more: the kernels, and not the biases.
WIDE = [("units: 32", "units: 512"), ("slice_bytes: 1024", "slice_bytes: 16384")]


def coded(codec, more=()):
    return WIDE + [("seed: 1", f"codec: {codec}\nseed: 1")] + list(more)


def train(c, name, change, epochs=4):
    small.write_job(c, name, epochs=epochs, change=change)
    c.must("train", f"{name}.yaml")
    return c.job(name)


def every_codec_trains_as_float32_does(weft):
    rows = [
        # codec, bytes of float32 that are pushed at most
        ("bf16", 0.56), ("f16", 0.56), ("int8", 0.32), ("{push: topk, ratio: 0.05}", 0.16),
        ("{push: int8, pull: bf16}", 0.32), ("{pull: f16}", 1.0),
    ]
    with Cluster(weft) as c:
        c.must("up")
        plain = train(c, "plain", WIDE)
        check(plain["codec"] is None, str(plain["codec"]))
        check(plain["eval"]["accuracy"] > 0.9, str(plain["eval"]))
        for i, (codec, most) in enumerate(rows):
            job = train(c, f"coded{i}", coded(codec))
            said = job["codec"]
            print(f"     {codec}: {job['eval']['accuracy']:.3f}, float32 {plain['eval']['accuracy']:.3f}, "
                  f"{said['ratio']:.3f} of the bytes")
            check(job["eval"]["accuracy"] > plain["eval"]["accuracy"] - 0.02, f"{codec}: {job['eval']}")
            check(said["ratio"] <= most and said["f32_bytes"] > 0, f"{codec}: {said}")
        shown = c.must("status", "coded4").out
        check("push int8, pull bf16" in shown and "of gradients in" in shown, shown)


def weights_of(c, name):
    c.must("export", name, "-o", f"{name}.onnx")
    graph = onnx.load(c.path(f"{name}.onnx")).graph
    return {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}


def one_worker_gives_the_same_bits_each_time(weft):
    codecs = ('[{match: "dense/*", push: int8}, {push: topk, ratio: 0.02, pull: bf16}]')
    found = []
    for _ in range(2):
        with Cluster(weft, workers=1) as c:
            c.must("up")
            train(c, "same", coded(codecs, [("batch: 8", "batch: 16")]), epochs=2)
            found.append(weights_of(c, "same"))
    for name, values in found[0].items():
        check(np.array_equal(values, found[1][name]), f"{name} differs")


def synchronous_steps_are_coded_too(weft):
    with Cluster(weft, workers=3) as c:
        c.must("up")
        job = train(c, "bsp", coded("int8", [
            ("\nseed: 1", "\nconsistency: {mode: bsp, pipeline: 1}\nseed: 1")]), epochs=12)
        check(job["eval"]["accuracy"] > 0.9, str(job["eval"]))
        check(job["codec"]["ratio"] < 0.32, str(job["codec"]))


def a_stopped_job_goes_on_with_another_codec(weft):
    with Cluster(weft, workers=1) as c:
        small.write_job(c, epochs=30, change=coded("bf16"))
        c.must("up")
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 100, "trains")
        c.must("stop", "small")
        c.end_of(training)
        c.must("recover", "small", "--set", "codec=int8", "--set", "epochs=8")
        job = c.job("small")
        check(job["state"] == "done" and job["codec"]["push"] == "int8", str(job))
        check(job["eval"]["accuracy"] > 0.95, str(job["eval"]))


def a_killed_worker_costs_no_more_than_its_residual(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=25, change=coded("int8"))
        c.must("up")
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 100, "trains")
        c.kill("worker/0")
        c.until_job("small", lambda j: j["step"] > 300, "goes on")
        c.kill("ps/1")
        check(c.end_of(training).code == 0, str(c.end_of(training)))
        job = c.job("small")
        check(job["eval"]["accuracy"] > 0.95 and job["generation"] > 1, str(job))


ROWS = """job: rows
model:
  input: {ids: {shape: [1], dtype: int64}}
  layers:
    - embedding: {input_dim: 200, output_dim: 256, name: e}
    - flatten: {}
    - dense: {units: 2}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data: {format: npy, train: {ids: ids.npy, y: y.npy}, eval: {ids: ids.npy, y: y.npy}}
batch: 64
epochs: 5
optimizer: {adagrad: {learning_rate: 0.1}}
slice_bytes: 1048576
tables: ["e/*"]
seed: 1
codec: """


def rows_of_tables_travel_as_halves(weft):
    with Cluster(weft) as c:
        ids = np.random.default_rng(3).integers(0, 200, (2048, 1))
        np.save(c.path("ids.npy"), ids)
        np.save(c.path("y.npy"), (ids[:, 0] * 7 % 11 % 2).astype(np.int64))
        c.write("rows.yaml", ROWS + "{push: bf16, pull: f16}\n")
        c.must("up")
        c.must("train", "rows.yaml")
        job = c.job("rows")
        check(job["eval"]["accuracy"] > 0.99, str(job["eval"]))
        check(job["codec"]["ratio"] < 0.55, str(job["codec"]))
        c.write("rows.yaml", ROWS + "[{match: e/*, push: int8}]\n")
        said = c.must("train", "rows.yaml", code=2).err
        check("rows.yaml:17: codec: " in said and "bf16 or f16" in said, said)


def nan_is_found_behind_a_codec(weft):
    with Cluster(weft) as c:
        small.write_job(c, change=coded("int8", [("\nseed: 1", "\non_nan: skip\nseed: 1")]))
        x = np.load(c.path("x.npy"))
        x[100, 3] = np.nan
        np.save(c.path("x.npy"), x)
        c.write("small.yaml", c.read("small.yaml").replace("  eval: {x: x.npy, y: y.npy}\n", ""))
        c.must("up")
        c.must("train", "small.yaml")
        check(c.job("small")["dropped_steps"] == 2, str(c.job("small")))
        said = c.must("train", "small.yaml", "--set", "on_nan=stop", code=1).err
        check("is NaN at step" in said, said)


main([every_codec_trains_as_float32_does, one_worker_gives_the_same_bits_each_time,
      rows_of_tables_travel_as_halves, nan_is_found_behind_a_codec, synchronous_steps_are_coded_too, a_stopped_job_goes_on_with_another_codec,
      a_killed_worker_costs_no_more_than_its_residual])

# SPDX-License-Identifier: Apache-2.0
"""Criteo's layout against a reader of its own; the layers that multiply features against differences
of the loss; and examples/deepfm-criteo.yaml, step by step, against PyTorch.

PyTorch runs in an interpreter of its own, which WEFT_KERAS_PYTHON names, as this file with the words
`--torch FOLDER`.

usage: recommenders.py WEFT LIBWEFT.SO    (the first two)
       recommenders.py WEFT               (the last)
exit 77: skipped, a library or the data is not there
"""
import ctypes
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("WEFT_SHARED", os.path.join(HERE, "..", "..", "..", "shared"))
CRITEO = os.path.abspath(os.path.join(SHARED, "data", "criteo-sample", "train.csv"))
BINS = 5000
MASK = (1 << 64) - 1

DATA = f"""
  format: csv
  schema: criteo
  train: {CRITEO}
  map: {{ids: [{{hash: {{bins: {BINS}, columns: separate}}}}]}}
"""

# ---- Criteo's layout, read by Python alone ----

FLIP = 0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE  # of XXH3's secret
ODD = 0x9FB21C651E98DF25
GAMMA = 0x9E3779B97F4A7C15


def xxh3(text):
    """XXH3 of 64 bits, of nothing and of 4 to 8 bytes (xxhash.h, XXH3_len_0to16_64b)."""
    if not text:
        return 0x2D06800538D394C2
    h = int.from_bytes(text[-4:], "little") + (int.from_bytes(text[:4], "little") << 32) ^ FLIP
    h ^= (h << 49 | h >> 15) & MASK ^ (h << 24 | h >> 40) & MASK
    h = h * ODD & MASK
    h = (h ^ (h >> 35) + len(text)) * ODD & MASK
    return h ^ h >> 28


def mix(z):
    """The finaliser of splitmix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def bin_of(text):
    return mix(mix(xxh3(text) + GAMMA & MASK)) % BINS


def read_criteo():
    with open(CRITEO, "rb") as f:
        rows = [line.rstrip(b"\n").split(b"\t") for line in f]
    assert {len(row) for row in rows} == {40}
    return {"numbers": np.array([[math.log1p(max(float(v or 0), 0)) for v in row[1:14]]
                               for row in rows], np.float32),
            "ids": np.array([[k * BINS + bin_of(v) for k, v in enumerate(row[14:])]
                             for row in rows]),
            "y": np.array([[float(row[0])] for row in rows], np.float32)}


# ---- the same, as weft reads it ----

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("owner", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024),
                ("hint", ctypes.c_char * 256), ("name", ctypes.c_char * 256)]


JOB = f"""job: criteo
model: {{input: {{numbers: [13]}}, layers: [dense: 1]}}
loss: binary_crossentropy
data:{DATA}batch: 64
optimizer: sgd
"""


def read_by_weft(lib, field, dtype, code):
    job, out, error = ctypes.c_void_p(), ctypes.POINTER(Tensor)(), Error()
    text = JOB.encode()
    done = lib.weft_job_parse(text, ctypes.c_size_t(len(text)), None, ctypes.byref(job),
                              ctypes.byref(error))
    done = done or lib.weft_job_records(job, None, field.encode(), CRITEO.encode(), code,
                                        ctypes.byref(out), ctypes.byref(error))
    assert done == 0, error.message.decode()
    t = out.contents
    shape = [t.shape[i] for i in range(t.rank)]
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made = np.frombuffer(ctypes.string_at(t.data, size), dtype).reshape(shape).copy()
    lib.weft_tensor_free(ctypes.byref(out))
    lib.weft_job_free(ctypes.byref(job))
    return made


def criteo_is_read_as_python_reads_it(library):
    lib, want = ctypes.CDLL(library), read_criteo()
    for field, dtype, code in (("numbers", np.float32, 1), ("ids", np.int64, 7), ("y", np.float32, 1)):
        got = read_by_weft(lib, field, dtype, code).reshape(want[field].shape)
        wrong = np.abs(got - want[field]) > (1e-6 * want[field] if field == "numbers" else 0)
        assert not wrong.any(), f"{field}: first at {np.argwhere(wrong)[0]}"
    records = len(want["y"])
    assert records == 7200 and 0.1 < want["y"].mean() < 0.4
    print(f"{records} records of 40 columns are as an independent reader has them")


# ---- gradients ----

def run(weft, *words, **env):
    done = subprocess.run([weft, *map(str, words)], capture_output=True, text=True,
                          env=dict(os.environ, **env))
    assert done.returncode == 0, f"weft {words[0]}: exit {done.returncode}: {done.stderr.strip()}"


LAYER = """job: layer
model:
  input: {{ids: {{shape: [4], dtype: int64}}, x: [3]}}
  layers:
    - embedding: {{input_dim: 5, output_dim: 3, inputs: ids}}
    - {}: {{{}inputs: [embedding, x]}}
loss: mse
data: {{format: npy, train: {{ids: ids.npy, x: x.npy, y: y.npy}}}}
batch: 3
optimizer: sgd
"""


def gradients_are_those_of_differences(weft, at, kind, options, width):
    import onnx
    from onnx import numpy_helper
    rng = np.random.default_rng(7)
    (at / "layer.yaml").write_text(LAYER.format(kind, options))
    fed = {"ids": rng.integers(0, 5, (3, 4)), "x": rng.normal(size=(3, 3)).astype(np.float32),
           "y": rng.normal(size=(3, width)).astype(np.float32)}
    for name, value in fed.items():
        np.save(at / f"{name}.npy", value)
    words = [w for name in fed for w in ("--input", f"{name}={at}/{name}.npy")]
    run(weft, "graph", at / "layer.yaml", "--after", "loss", "-o", at / "loss.onnx")
    model = onnx.load(at / "loss.onnx")
    loss = model.graph.output[0].name
    (table,) = [i for i in model.graph.initializer if i.name == "embedding/embeddings"]
    rows = rng.normal(size=(5, 3)).astype(np.float32)

    def computed(rows, *command):
        table.CopyFrom(numpy_helper.from_array(rows, table.name))
        onnx.save(model, at / "loss.onnx")
        run(weft, *command, *words, "--output-dir", at / "out")

    def loss_of(rows):
        computed(rows, "run", at / "loss.onnx", "--fetch", loss)
        return float(np.load(at / "out" / f"{loss.replace('/', '_')}.npy"))

    computed(rows, "grad", at / "loss.onnx", "--loss", loss)
    got = np.load(at / "out" / "embedding_embeddings.npy")
    step = np.float32(1 / 64)
    for place in np.ndindex(rows.shape):
        near = [rows.copy(), rows.copy()]
        near[0][place] += step
        near[1][place] -= step
        want = (loss_of(near[0]) - loss_of(near[1])) / (2 * step)
        assert abs(got[place] - want) < 2e-3 * max(1, np.abs(got).max()), (kind, place, got, want)
    print(f"{kind}: the gradient is that of differences")


# ---- DeepFM ----

STEPS, BATCH = 200, 32


def deepfm_job():
    """The example with adagrad, whose epsilon frameworks put elsewhere and nobody notices, on records
    in the file's order."""
    with open(os.path.join(HERE, "..", "..", "examples", "deepfm-criteo.yaml"), encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"\.\./data/criteo-sample", os.path.dirname(CRITEO), text)
    text = re.sub(r"optimizer: .*", "optimizer: {adagrad: {learning_rate: 0.01}}", text)
    text = re.sub(r"(?m)^batch: .*", f"batch: {BATCH}", text)
    return re.sub(r"(?m)^data:\n", f"steps: {STEPS}\ndata:\n  shuffle: false\n"
                  f"  split_records: {STEPS * BATCH}\n", text)


def torch_side(folder):
    import torch
    given = np.load(folder / "given.npz")
    p = {k: torch.tensor(given[k], requires_grad=True) for k in given.files if "/" in k}
    x, ids, y = (torch.tensor(given[k]) for k in ("numbers", "ids", "y"))
    optimizer = torch.optim.Adagrad(p.values(), 0.01, initial_accumulator_value=0.1, eps=1e-7)
    losses = []

    def dense(name, h):
        return h @ p[f"{name}/kernel"] + p[f"{name}/bias"]

    for at in torch.arange(STEPS * BATCH).split(BATCH):
        v = p["vectors/embeddings"][ids[at]]
        pairs = torch.triu(v @ v.transpose(1, 2), 1).sum((1, 2))[:, None]
        h = torch.cat([v.flatten(1), x[at]], 1)
        for name in ("dense", "dense_1", "dense_2"):
            h = torch.relu(dense(name, h))
        z = dense("linear", x[at]) + p["weights/embeddings"][ids[at]].sum(1) + pairs + dense("deep", h)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.save(folder / "losses.npy", losses)


def deepfm_has_pytorchs_losses(weft, at, python):
    import onnx
    from onnx import numpy_helper
    (at / "deepfm.yaml").write_text(deepfm_job())
    run(weft, "graph", at / "deepfm.yaml", "--mode", "infer", "--after", "import", "-o", at / "m.onnx")
    first = {i.name: numpy_helper.to_array(i) for i in onnx.load(at / "m.onnx").graph.initializer
             if re.search("/(kernel|bias|embeddings)$", i.name)}
    np.savez(at / "given.npz", **first, **read_criteo())
    subprocess.run([python, __file__, "--torch", str(at)], check=True)
    run(weft, "train", "--local", at / "deepfm.yaml", WEFT_LOSS_LOG=str(at / "losses"))
    theirs = np.load(at / "losses.npy")
    ours = np.array([float.fromhex(line.split()[5])
                     for line in (at / "losses").read_text().splitlines()])
    assert ours.shape == theirs.shape, f"{len(ours)} and {len(theirs)} steps"
    worst = np.abs(ours - theirs).max()
    assert worst < 1e-4, f"losses differ by {worst:.2e}: {ours} {theirs}"
    print(f"DeepFM: {len(ours)} steps, {worst:.1e} at most between the losses and PyTorch's")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def main(weft, library=None):
    python = os.environ.get("WEFT_KERAS_PYTHON")
    if not os.path.exists(CRITEO):
        skip(f"there is no {CRITEO}; set WEFT_SHARED to the folder of reference data")
    try:
        import onnx  # noqa: F401
    except ImportError as missing:
        skip(missing)
    if not library and not python:
        skip("WEFT_KERAS_PYTHON names no interpreter with torch")
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        if not library:
            return deepfm_has_pytorchs_losses(weft, at, python)
        criteo_is_read_as_python_reads_it(library)
        for kind, options, width in (("factorization_machine", "", 1), ("dot_interaction", "", 10),
                                     ("dot_interaction", "self_interaction: true, ", 15)):
            gradients_are_those_of_differences(weft, at, kind, options, width)


if sys.argv[1] == "--torch":
    torch_side(pathlib.Path(sys.argv[2]))
else:
    main(*map(os.path.abspath, sys.argv[1:]))

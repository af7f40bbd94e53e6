# SPDX-License-Identifier: Apache-2.0
"""Tables whose values have fewer bits: bfloat16, float16, int8.

    table_types.py WEFT [TEST...]

They train nearly as in float32; a checkpoint has them in their type, from which a recovery goes on
bit for bit, another type goes on to the nearest, and an export has the numbers that it stands for.
"""
import json
import os
import signal

from losses import losses
from weftlib import Cluster, check, main, needs

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from safetensors import safe_open  # noqa: E402

RECORDS, USERS, ITEMS, BATCH, EPOCHS = 4096, 700, 300, 16, 3
STEPS = RECORDS // BATCH * EPOCHS
TYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "int8": "I8"}
# A bucket has 5 rows at most, and some had more.
LIMITS = ", rows: unbounded, max_rows: 320, evict: least_frequently_used, admit_after: 2, " \
         "admit: bloom, admit_bytes: 1000000"
JOB = """job: rows
model:
  input: {{user: {{shape: [1], dtype: int64}}, items: {{shape: [5], dtype: int64}}}}
  layers:
    - embedding: {{input_dim: {users}, output_dim: 7, inputs: user, name: users}}
    - flatten: {{name: flat_user}}
    - embedding: {{input_dim: 300, output_dim: 4, inputs: items, name: items_of}}
    - flatten: {{name: flat_items}}
    - concatenate: {{inputs: [flat_user, flat_items]}}
    - dense: {{units: 16, activation: relu}}
    - dense: {{units: 1}}
loss: binary_crossentropy
metrics: [auc]
data:
  format: npy
  train: {{user: user.npy, items: items.npy, y: y.npy}}
  eval: {{user: user.npy, items: items.npy, y: y.npy}}
batch: 16
epochs: {epochs}
optimizer: {{adagrad: {{learning_rate: 0.05}}}}
checkpoint: {{every_steps: 100, keep: 50}}
seed: 7
tables:
  - {{match: "users/*", dtype: {dtype}{rows}}}
  - {{match: "items_of/*", dtype: {dtype}}}
"""


def make(weft, dtype, unbounded=True, epochs=EPOCHS):
    c = Cluster(weft, ps=2, workers=1, more="dead_ms: 1000\nheartbeat_ms: 200")
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    rng = np.random.default_rng(5)
    user = np.minimum(rng.zipf(1.2, RECORDS) - 1, USERS - 1)
    items = rng.integers(0, ITEMS, (RECORDS, 5))
    taste, worth = rng.normal(size=USERS), rng.normal(size=ITEMS)
    np.save(c.path("user.npy"), user.astype(np.int64)[:, None])
    np.save(c.path("items.npy"), items.astype(np.int64))
    np.save(c.path("y.npy"), (taste[user] + worth[items].sum(1) > 0).astype(np.float32)[:, None])
    c.dtype = dtype
    write(c, dtype, unbounded, epochs)
    return c


def write(c, dtype, unbounded, epochs):
    c.write("rows.yaml", JOB.format(dtype=dtype, epochs=epochs,
                                    users="unbounded" if unbounded else USERS,
                                    rows=LIMITS if unbounded else ""))


def saved(c):
    """Tensors of the newest checkpoint: name -> (safetensors' type, shape, bytes)."""
    folder, out = c.saved("rows", c.checkpoints("rows")[-1]), {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        data = open(os.path.join(folder, name), "rb").read()
        head = int.from_bytes(data[:8], "little")
        entries = json.loads(data[8:8 + head])
        entries.pop("__metadata__")
        with safe_open(os.path.join(folder, name), "numpy") as f:
            check(sorted(f.keys()) == sorted(entries), "what the library finds")
            for key, e in entries.items():
                begin, end = e["data_offsets"]
                out[key] = e["dtype"], e["shape"], data[8 + head + begin:8 + head + end]
                if e["dtype"] != "BF16":  # numpy has no such type
                    check(f.get_tensor(key).tobytes() == out[key][2], key)
    return out


def as_floats(dtype, data):
    if dtype == "BF16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    kind = {"F32": np.float32, "F16": np.float16, "I8": np.int8}[dtype]
    return np.frombuffer(data, kind).astype(np.float32)


def whole(tensors, name, width):
    """All rows of a bounded table."""
    parts = {}
    for key in tensors:
        base, _, at = key.partition("#")
        if base == name:
            parts[int(at or 0)] = key
    rows = []
    for _, key in sorted(parts.items()):
        dtype, _, data = tensors[key]
        values = as_floats(dtype, data).reshape(-1, width)
        if dtype == "I8":
            scale = as_floats("F32", tensors[key.replace(name, name + "/scale")][2])
            values = values * scale[:, None]
        rows.append(values)
    return np.concatenate(rows)


def every_type_trains_nearly_as_float32(weft):
    found = {}
    for dtype, stored in TYPES.items():
        with make(weft, dtype) as c:
            c.must("train", "rows.yaml")
            log = losses(c)
            check(len(log) == STEPS, f"{len(log)} steps of {STEPS}")
            found[dtype] = np.mean([float.fromhex(loss) for _, loss in log[-100:]])
            values = {k: v for k, v in saved(c).items()
                      if k.split("#")[0] in ("users/embeddings", "items_of/embeddings")}
            check({v[0] for v in values.values()} == {stored}, f"{dtype}: {values.keys()}")
            shown = c.must("ckpt", "show", "rows").out
            line = [r for r in shown.split("\n") if "users/emb" in r][0]
            check(f" {dtype} " in line, line)
    for dtype, loss in found.items():
        check(abs(loss - found["float32"]) < 0.04 * found["float32"], f"losses: {found}")


def goes_on(weft, dtype, unbounded):
    with make(weft, dtype, unbounded, epochs=6) as c:
        c.must("up")
        c.must("train", "rows.yaml")
        all_of_it = losses(c)
    with make(weft, dtype, unbounded, epochs=6) as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["checkpoint"] and j["step"] > 300, "trains")
        os.kill(c.pid("ps/1"), signal.SIGKILL)
        job = c.until_job("rows", lambda j: j["state"] == "done", "ends")
        check(job["generation"] == 2, "goes back to its checkpoint")
        after = losses(c, 2)
        check(0 < len(after) < len(all_of_it) and after == all_of_it[-len(after):],
              f"{dtype}: other losses after the ps came back")


def a_job_goes_on_from_its_checkpoint(weft):
    goes_on(weft, "bfloat16", True)
    goes_on(weft, "int8", True)
    goes_on(weft, "int8", False)


def an_export_has_what_the_checkpoint_says(weft):
    for dtype in ("bfloat16", "float16", "int8"):
        with make(weft, dtype, unbounded=False, epochs=1) as c:
            c.must("train", "rows.yaml")
            tensors = saved(c)
            c.must("export", "rows", "-o", "m.onnx")
            arrays = [onnx.numpy_helper.to_array(t)
                      for t in onnx.load(c.path("m.onnx")).graph.initializer]
            for name, rows, width in (("users/embeddings", USERS, 7),
                                      ("items_of/embeddings", ITEMS, 4)):
                table = whole(tensors, name, width)
                check(table.shape == (rows, width), f"{name} {table.shape}")
                same = [a for a in arrays if a.shape == table.shape and np.array_equal(a, table)]
                check(len(same) == 1, f"{dtype}: {name} is in the model once")
            c.must("eval", "rows")


def a_table_may_change_its_type(weft):
    with make(weft, "float32", unbounded=False) as c:
        c.must("train", "rows.yaml")
        for dtype in ("int8", "bfloat16"):
            write(c, dtype, False, EPOCHS + 1 + (dtype == "bfloat16"))
            c.must("train", "rows.yaml", "--resume")
            values = [v for k, v in saved(c).items() if k.split("#")[0] == "users/embeddings"]
            check({v[0] for v in values} == {TYPES[dtype]}, f"{dtype}: {values[0][:2]}")
            log = [float.fromhex(r.split()[5]) for r in c.read("losses").splitlines()[-100:]]
            check(np.mean(log) < 0.6, f"{dtype}: a loss of {np.mean(log)}")


main([every_type_trains_nearly_as_float32, a_job_goes_on_from_its_checkpoint,
      an_export_has_what_the_checkpoint_says, a_table_may_change_its_type])

# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of unbounded tables, evaluated, asked for predictions and exported.

    unbounded_models.py WEFT [TEST...]

onnxruntime runs the exported models, and numpy says what they give.
"""
import json
import os

from unbounded import by_id, make, saved
from weftlib import check, main, needs

needs("numpy", "onnx", "onnxruntime", "safetensors")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from safetensors import safe_open  # noqa: E402

NOTE = "ids without a row get zeros in this file; in weft they have initial values of their own"
LATE = ", admit_after: 13, max_rows: 12800"


def ids_of(c, table):
    """Ids that have a row; numpy has not all types of the rows."""
    folder, ids = c.saved("rows", c.checkpoints("rows")[-1]), []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with safe_open(os.path.join(folder, name), framework="np") as shard:
                ids += [shard.get_tensor(key) for key in shard.keys() if key.startswith(table + "/ids#")]
    return np.concatenate(ids)


def evaluation(c):
    """With 9 digits."""
    got = json.loads(c.must("eval", "rows", "--json").out)
    return {name: got[name] for name in ("loss", "auc")}


def predicted(c, what, user, items):
    np.save(c.path("u.npy"), user)
    np.save(c.path("i.npy"), items)
    c.must("predict", what, "--input", "user=u.npy", "--input", "items=i.npy", "-o", "out.npy")
    return np.load(c.path("out.npy"))


def run_onnx(c, user, items):
    session = onnxruntime.InferenceSession(c.path("m.onnx"), providers=["CPUExecutionProvider"])
    return session.run(None, {"user": user, "items": items})[0]


def an_evaluation_gives_the_numbers_of_the_job(weft):
    """In all types of rows, and with ids that have none."""
    for dtype in ("float32", "bfloat16", "float16", "int8"):
        with make(weft, first="", limits=f", dtype: {dtype}{LATE}") as c:
            c.must("up")
            c.must("train", "rows.yaml")
            ids = ids_of(c, "users/embeddings")
            check(0 < len(ids) < len(np.unique(c.user)) - 50, f"{len(ids)} rows")
            want, got = c.job("rows")["eval"], evaluation(c)
            check(got == {name: float(f"{want[name]:.9g}") for name in got}, f"{dtype}: {got}, not {want}")


def first_values_are_those_of_training(weft):
    """Of two jobs that learn nothing, one has rows with their first values, the other none."""
    how = {"optimizer": "{sgd: {learning_rate: 1.0e-30}}", "epochs": 1}
    for first, dtype in (("", "float32"), (", embeddings_initializer: {truncated_normal: {stddev: 0.3}}", "bfloat16"),
                         (", embeddings_initializer: {uniform: {minval: 0.5, maxval: 2}}", "int8")):
        given = []
        for admit in (1, 1000000):
            with make(weft, first=first, limits=f", dtype: {dtype}, admit_after: {admit}", **how) as c:
                c.must("train", "rows.yaml")
                rows = len(ids_of(c, "users/embeddings"))
                check((rows > 0) == (admit == 1), f"{rows} rows")
                given.append(predicted(c, "rows", c.user[:200, None], c.items[:200]))
                out = c.must("export", "rows", "-o", "m.onnx").out
                check(("the mean of" if "minval" in first else NOTE) in out, out)
                if rows == 0:  # all ids have the one row that is there
                    alike = run_onnx(c, c.user[:200, None], c.items[:200])
                    check(np.ptp(alike) == 0 and np.ptp(given[1]) > 0, "outputs")
        check(np.array_equal(*given), f"{first}: outputs differ by {abs(given[0] - given[1]).max()}")


def table(path, name):
    """The rows of an exported table by their ids, and the one for all other ids."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    values = {v.name: onnx.numpy_helper.to_array(v) for v in model.graph.initializer}[name]
    encoder = [n for n in model.graph.node if n.op_type == "LabelEncoder" and name in n.name]
    attrs = {a.name: onnx.helper.get_attribute_value(a) for a in encoder[0].attribute}
    check(attrs["default_int64"] == len(values) - 1, attrs["default_int64"])
    check(not any(n.domain == "ai.weft" for n in model.graph.node), "operations of weft's own")
    at = dict(zip(attrs["keys_int64s"], attrs["values_int64s"]))
    check(len(at) == len(values) - 1, f"{len(at)} keys")
    return np.array(sorted(at)), values[[at[id] for id in sorted(at)]], values[-1]


def an_exported_model_gives_what_weft_does(weft):
    with make(weft, first="", limits=LATE) as c:
        c.must("train", "rows.yaml")
        line = c.must("export", "rows", "-o", "m.onnx").out.strip().split("\n")
        check(len(line) == 2 and line[1] == NOTE, line)
        state, held = saved(c), {}
        for name in ("users/embeddings", "items_of/embeddings"):
            ids, values, other = table(c.path("m.onnx"), name)
            check(np.array_equal(ids, by_id(state, name)[0]), f"ids of {name}")
            check(np.array_equal(values, by_id(state, name)[1]) and not other.any(), f"rows of {name}")
            held[name] = ids
        user = np.random.default_rng(3).choice(held["users/embeddings"], (301, 1))
        items = np.random.default_rng(4).choice(held["items_of/embeddings"], (301, 5))
        want = predicted(c, "rows", user, items)
        got = run_onnx(c, user, items)
        check(np.allclose(got, want, atol=1e-6), f"onnxruntime: {abs(got - want).max()}")
        check(np.array_equal(predicted(c, "m.onnx", user, items), want), "weft, of the file")
        user[::2], items[::3, 1] = -12345, 67
        ours, theirs = predicted(c, "m.onnx", user, items), run_onnx(c, user, items)
        check(np.allclose(ours, theirs, atol=1e-6), "ids without a row")
        check(abs(predicted(c, "rows", user, items) - ours)[::2].min() > 0, "first values")
        c.write("again.yaml", open(c.path("rows.yaml")).read().split("model:")[0].replace("rows", "again") + """
model: {onnx: m.onnx}
loss: binary_crossentropy
data: {format: npy, train: {user: user.npy, items: items.npy, y: y.npy}}
batch: 16
optimizer: {sgd: {learning_rate: 0.01}}
""")
        c.must("train", "again.yaml")
        check(c.checkpoints("again"), "the file trains as a bounded model")


def a_checkpoint_may_be_chosen(weft):
    with make(weft, first="", epochs=1) as c:
        c.must("train", "rows.yaml")
        shown = json.loads(c.must("eval", "rows", "--from", "100", "--json").out)
        check(shown["checkpoint"] == "step-00000100" and shown["loss"] > evaluation(c)["loss"], shown)
        line = c.must("train", "rows.yaml", "--local", code=1).err
        check("parameter servers" in line, line)


main([an_evaluation_gives_the_numbers_of_the_job, first_values_are_those_of_training,
      an_exported_model_gives_what_weft_does, a_checkpoint_may_be_chosen])

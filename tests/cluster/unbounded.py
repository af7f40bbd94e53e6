# SPDX-License-Identifier: Apache-2.0
"""Tables without bounds: rows of any ids, which come with the pushes that name them.

    unbounded.py WEFT [TEST...]

With first values of zero, losses are those of a bounded table whose rows the ids stand for, bit for
bit, whatever the ids are.
"""
import json
import os
import signal

from losses import losses
from weftlib import Cluster, check, main, needs, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

RECORDS, USERS, ITEMS, BATCH, EPOCHS = 4096, 700, 300, 16, 3
STEPS = RECORDS // BATCH * EPOCHS
JOB = """job: rows
model:
  input: {{user: {{shape: [1], dtype: int64}}, items: {{shape: [5], dtype: int64}}}}
  layers:
    - embedding: {{input_dim: {users}, output_dim: 6, inputs: user, name: users{first}}}
    - flatten: {{name: flat_user}}
    - embedding: {{input_dim: {items}, output_dim: 4, inputs: items, name: items_of{first}}}
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
optimizer: {optimizer}
consistency: {{mode: {mode}, pipeline: {pipeline}}}
checkpoint: {{every_steps: 100, keep: 50}}
seed: 7
tables:
  - {{match: "users/*"{limits}}}
  - {{match: "items_of/*"{limits}}}
"""
ADAGRAD = "{adagrad: {learning_rate: 0.05}}"
ZEROS = ", embeddings_initializer: zeros"


def random_ids(seed, n):
    """Distinct ids of all 64 bits, negative ones among them."""
    return np.unique(np.random.default_rng(seed).integers(-2**63, 2**63 - 1, 2 * n))[:2 * n:2][:n]


def make(weft, unbounded=True, optimizer=ADAGRAD, mode="async", pipeline=0, workers=1, ps=2, epochs=EPOCHS,
         first=ZEROS, limits=""):
    c = Cluster(weft, ps=ps, workers=workers, more="dead_ms: 1000\nheartbeat_ms: 200")
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    rng = np.random.default_rng(5)
    user = np.minimum(rng.zipf(1.2, RECORDS) - 1, USERS - 1)
    items = rng.integers(0, ITEMS, (RECORDS, 5))
    taste, worth = rng.normal(size=USERS), rng.normal(size=ITEMS)
    np.save(c.path("y.npy"), (taste[user] + worth[items].sum(1) > 0).astype(np.float32)[:, None])
    if unbounded:
        user, items = random_ids(1, USERS)[user], random_ids(2, ITEMS)[items]
        limits = ", rows: unbounded" + limits
    np.save(c.path("user.npy"), user.astype(np.int64)[:, None])
    np.save(c.path("items.npy"), items.astype(np.int64))
    c.user, c.items = user, items
    c.write("rows.yaml", JOB.format(
        users="unbounded" if unbounded else USERS, items="unbounded" if unbounded else ITEMS,
        optimizer=optimizer, mode=mode, pipeline=pipeline, epochs=epochs, first=first, limits=limits))
    return c


def saved(c, at=-1):
    """A checkpoint, by the names of its arrays, with those of all buckets put together."""
    folder = c.saved("rows", c.checkpoints("rows")[at])
    parts = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            parts.update(load_file(os.path.join(folder, name)))
    sums = {}
    for name in sorted(parts):
        sums.setdefault(name.split("#")[0], []).append(parts[name])
    return {name: np.concatenate(rows) if len(rows) > 1 else rows[0]
            for name, rows in sums.items()}


def run_of(weft, **how):
    with make(weft, **how) as c:
        c.must("train", "rows.yaml")
        return losses(c), saved(c), c


def by_id(state, table):
    order = np.argsort(state[table + "/ids"])
    return state[table + "/ids"][order], state[table][order]


def rows_of_any_ids_train_as_numbered_ones_do(weft):
    ours, state, c = run_of(weft)
    theirs = run_of(weft, unbounded=False)[0]
    check(len(ours) == STEPS, f"{len(ours)} steps of {STEPS}")
    differ = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    check(not differ, f"losses differ from step {differ[:1]} on")
    ids, values = by_id(state, "users/embeddings")
    check(np.array_equal(ids, np.unique(c.user)), "a row for each id that was named")
    check(values.shape == (len(ids), 6), f"values {values.shape}")


def workers_make_steps_together(weft):
    _, state, c = run_of(weft, mode="bsp", workers=2, first="")
    ids, values = by_id(state, "users/embeddings")
    check(np.array_equal(ids, np.unique(c.user)), "a row for each id that was named")
    check(abs(values).max() > 0.1, "rows are trained")


def first_values_go_by_the_id_alone(weft):
    """Whatever the number of ps, and the order in which ids come."""
    how = {"first": "", "optimizer": "{sgd: {learning_rate: 1.0e-30}}", "epochs": 1}
    one, two = run_of(weft, ps=1, **how)[1], run_of(weft, ps=3, workers=2, **how)[1]
    for table in ("users/embeddings", "items_of/embeddings"):
        (ids, values), (ids_2, values_2) = by_id(one, table), by_id(two, table)
        check(np.array_equal(ids, ids_2) and np.array_equal(values, values_2), table)
        check(0.02 < values.std() < 0.04 and abs(values).max() <= 0.05, "from -0.05 to 0.05")


def a_job_goes_on_from_its_checkpoint(weft):
    how = {"epochs": 8, "first": "",
           "limits": ", admit_after: 2, evict_after: 300, max_rows: 12800"}
    all_of_it = run_of(weft, **how)[0]
    with make(weft, **how) as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["checkpoint"] and j["step"] > 300, "trains")
        os.kill(c.pid("ps/1"), signal.SIGKILL)
        job = c.until_job("rows", lambda j: j["state"] == "done", "ends")
        check(job["generation"] == 2, "goes back to its checkpoint")
        after = losses(c, 2)
        check(0 < len(after) < len(all_of_it) and after == all_of_it[-len(after):],
              "other losses after the ps came back")


def a_run_of_another_day_goes_on(weft):
    whole = run_of(weft, first="")[0]
    with make(weft, first="", epochs=1) as c:
        c.must("train", "rows.yaml")
        job = open(c.path("rows.yaml")).read()
        c.write("rows.yaml", job.replace("epochs: 1", f"epochs: {EPOCHS}"))
        c.must("train", "rows.yaml", "--resume")
        after = losses(c, 2)
        check(after == whole[STEPS // EPOCHS:], "other losses after --resume")
        c.write("rows.yaml", job.replace("output_dim: 6", "output_dim: 7"))
        line = c.must("train", "rows.yaml", "--resume", code=1).err
        check('"users/embeddings" was' in line, line)


def rows_come_late_and_leave(weft):
    with make(weft, first="", limits=", admit_after: 3, evict_after: 5") as c:
        c.must("train", "rows.yaml")
        state = saved(c)
        ids, n = np.unique(c.user, return_counts=True)
        rare = ids[n == 1]
        check(len(rare) > 20, "some ids are named once an epoch")
        kept = state["users/embeddings/ids"]
        check(0 < len(kept) < len(ids) / 2, f"{len(kept)} rows of {len(ids)} ids")
        check(np.isin(rare, kept).mean() < 0.2, "ids that are rare have rows")
        shown = json.loads(c.must("ckpt", "show", "rows", "--json").out)
        table = [v for v in shown["variables"] if v["name"] == "users/embeddings"][0]
        check(table["rows"] == "unbounded", table)
        line = [r for r in c.must("ckpt", "show", "rows").out.split("\n") if "users/emb" in r][0]
        check(f"[{len(kept)}, 6]" in line or f"[{len(kept)},6]" in line, line)


def a_full_table_ends_the_job(weft):
    with make(weft, limits=", max_rows: 128, when_full: fail") as c:
        line = c.must("train", "rows.yaml", code=1).err.strip().split("\n")[-1]
        check("users/embeddings" in line or "items_of/embeddings" in line, line)
        check("may have 2" in line and "max_rows" in line, line)


def a_limit_in_bytes_holds_a_row_or_is_refused(weft):
    with make(weft, epochs=1, limits=", max_bytes: 12000000, evict: least_frequently_used") as c:
        c.must("train", "rows.yaml")
    with make(weft, limits=", max_bytes: 1000") as c:
        line = c.must("train", "rows.yaml", code=2).err.strip().split("\n")[-1]
        check("rows.yaml:" in line and "has 15 bytes, and a row of 6 elements needs more" in line, line)
    with make(weft, limits=", max_bytes: 1000000") as c:  # a slice reserves 80 KiB and more
        line = c.must("train", "rows.yaml", code=1).err.strip().split("\n")[-1]
        check("may take 15625 bytes" in line and "raise max_bytes" in line, line)


def rows_in_files_train_as_rows_in_memory_do(weft):
    """Two rows of a slice in memory, and the same bits as with all of them there."""
    how = {"first": "", "optimizer": "{adam: {learning_rate: 0.01}}"}
    theirs, their_state, _ = run_of(weft, **how)
    ours, our_state, _ = run_of(weft, limits=", max_rows: 128, when_full: disk", **how)
    check(ours == theirs, "other losses with rows in files")
    for table in ("users/embeddings", "items_of/embeddings"):
        order, other = (np.argsort(s[table + "/ids"]) for s in (our_state, their_state))
        names = [n for n in their_state if n.startswith(table)]
        check(len(names) == 4, f"{names}")
        for name in names:
            check(np.array_equal(our_state[name][order], their_state[name][other]), name)
        check(table + "/updated" in our_state, "the order of use is saved")


def a_table_in_files_goes_on_from_its_checkpoint(weft):
    how = {"epochs": 8, "first": "", "limits": ", max_bytes: 24000000, max_rows: 128, when_full: disk"}
    all_of_it = run_of(weft, **how)[0]
    with make(weft, **how) as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["checkpoint"] and j["step"] > 300, "trains")
        until(lambda: all(t["disk_bytes"] > 0 for t in c.status()["tasks"] if t["role"] == "ps"),
              "rows lie on disk")
        check("on disk" in c.must("status").out, "a ps says what lies on disk")
        folder = c.path(".weft", "rows")
        check(os.listdir(folder) == [], "files have no names")
        os.kill(c.pid("ps/1"), signal.SIGKILL)
        job = c.until_job("rows", lambda j: j["state"] == "done", "ends")
        check(job["generation"] == 2, "goes back to its checkpoint")
        after = losses(c, 2)
        check(0 < len(after) < len(all_of_it) and after == all_of_it[-len(after):],
              "other losses after the ps came back")


def a_table_may_go_to_files_later(weft):
    """And come back: what a run of another day has as its limit changes no loss."""
    limits = [", max_rows: 128, when_full: disk", "", ", max_rows: 640, when_full: disk"]
    whole = run_of(weft, first="")[0]
    with make(weft, first="", limits=limits[0]) as c:
        job = open(c.path("rows.yaml")).read()
        for epoch, limit in enumerate(limits):
            c.write("rows.yaml", job.replace(limits[0], limit).replace(f"epochs: {EPOCHS}", f"epochs: {epoch + 1}"))
            c.must("train", "rows.yaml", *(["--resume"] if epoch else []))
        after = losses(c, 3)
        check(len(after) == STEPS // EPOCHS and after == whole[-len(after):], "other losses")


def a_ps_that_can_make_no_files_says_so_at_once(weft):
    with make(weft, limits=", max_rows: 128, when_full: disk") as c:
        os.makedirs(c.path(".weft"), exist_ok=True)
        c.write(".weft/rows", "in the way")
        line = c.must("train", "rows.yaml", code=1).err.strip().split("\n")[-1]
        check(".weft/rows" in line and "setting up job" in line, line)


def workers_share_tables_and_may_die(weft):
    with make(weft, workers=3, optimizer="{adam: {learning_rate: 0.01}}", pipeline=1,
              epochs=12, first="") as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["step"] > 400, "trains")
        os.kill(c.pid("worker/1"), signal.SIGKILL)
        job = c.until_job("rows", lambda j: j["state"] == "done", "ends")
        check(job["metrics"]["auc"] > 0.9, f"AUC {job['metrics']}")
        check(job["generation"] == 1, "a worker's death costs nothing")


if __name__ == "__main__":
    main([rows_of_any_ids_train_as_numbered_ones_do, workers_make_steps_together,
          first_values_go_by_the_id_alone, a_job_goes_on_from_its_checkpoint,
          a_run_of_another_day_goes_on, rows_come_late_and_leave, a_full_table_ends_the_job,
          a_limit_in_bytes_holds_a_row_or_is_refused, rows_in_files_train_as_rows_in_memory_do,
          a_table_in_files_goes_on_from_its_checkpoint, a_table_may_go_to_files_later,
          a_ps_that_can_make_no_files_says_so_at_once, workers_share_tables_and_may_die])

# SPDX-License-Identifier: Apache-2.0
"""Embeddings as tables: a worker pulls and pushes the rows that its batches name.

    tables.py WEFT [TEST...]

With a rule that leaves rows of a zero gradient as they are, losses and weights are those of the same
job without tables, bit for bit.
"""
import os
import signal

from losses import losses
from weftlib import check, main, needs

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
from rows import BATCH, STEPS, alike, make, updates, weights, whole  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402


def run_of(weft, **how):
    with make(weft, **how) as c:
        c.must("train", "rows.yaml")
        return losses(c), weights(c)


def rows_train_as_whole_variables_do(weft):
    for pipeline in (0, 1):
        ours = run_of(weft, pipeline=pipeline)
        theirs = run_of(weft, pipeline=pipeline, tables=False)
        check(len(ours[0]) == STEPS, f"{len(ours[0])} steps of {STEPS}")
        differ = [i for i, (a, b) in enumerate(zip(ours[0], theirs[0])) if a != b]
        check(not differ, f"losses differ from step {differ[:1]} on")
        a, b = whole(ours[1]), whole(theirs[1])
        check(sum(v.size for v in a.values()) == sum(v.size for v in b.values()), "sizes")


def first_values_are_made_where_they_live(weft):
    """Neither the master nor its file of first values holds a row of a table."""
    rows = 4_000_000
    with make(weft, users=rows, epochs=1) as c:
        c.must("up")
        c.must("train", "rows.yaml")
        for task in ("master", "worker/0"):
            held = c.most_memory(task)
            check(held < rows * 6 * 4 / 2, f"{task} held {held} bytes")
        first = load_file(c.saved("rows", "initial.safetensors"))
        check(sorted(first) == ["dense/bias", "dense/kernel", "dense_1/bias", "dense_1/kernel"],
              str(sorted(first)))


def whether_a_split_comes_in_time_changes_nothing(weft):
    """With splits of four steps the next one is often not there when its rows could be asked for."""
    first, again = (run_of(weft, pipeline=1, split=4 * BATCH) for _ in range(2))
    check(len(first[0]) == STEPS and first[0] == again[0], "losses differ")


def a_job_of_tables_goes_on_from_its_checkpoint(weft):
    all_of_it = run_of(weft, epochs=8)[0]
    with make(weft, epochs=8) as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["checkpoint"] and j["step"] > 300, "trains")
        os.kill(c.pid("ps/1"), signal.SIGKILL)
        c.until_job("rows", lambda j: j["state"] == "done", "ends")
        after = losses(c, 2)
        check(0 < len(after) < len(all_of_it) and after == all_of_it[-len(after):],
              "other losses after the ps came back")


def workers_share_tables_and_may_die(weft):
    with make(weft, workers=3, optimizer="{adam: {learning_rate: 0.01}}", pipeline=1,
              epochs=12) as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["step"] > 400, "trains")
        os.kill(c.pid("worker/1"), signal.SIGKILL)
        job = c.until_job("rows", lambda j: j["state"] == "done", "ends")
        check(job["metrics"]["auc"] > 0.9, f"AUC {job['metrics']}")
        check(job["generation"] == 1, "a worker's death costs nothing")


def hits(c):
    return c.job("rows")["cache_hits"]


def cached_rows_are_those_that_were_pulled(weft):
    """With updates that change no weight, old rows are as good as new ones: losses are the same bits."""
    still = "{sgd: {learning_rate: 1e-30}}"
    for pipeline in (0, 1):
        with make(weft, cached=True, optimizer=still, pipeline=pipeline) as c:
            c.must("up")
            c.must("train", "rows.yaml")
            check(0.1 < hits(c) < 1, f"hits {hits(c)}")
            said = c.must("status", "rows").out
            check("of the rows of tables were cached" in said, said)
            ours = losses(c)
        check(ours == run_of(weft, optimizer=still, pipeline=pipeline)[0], "other losses")


def a_job_with_caches_goes_on_from_its_checkpoint(weft):
    """A checkpoint empties the caches; with splits of four steps it is at the same place in each run."""
    how = dict(epochs=8, cached=True, split=4 * BATCH)
    all_of_it = run_of(weft, **how)[0]
    with make(weft, **how) as c:
        c.must("up")
        c.must("submit", "rows.yaml")
        c.until_job("rows", lambda j: j["checkpoint"] and j["step"] > 300, "trains")
        os.kill(c.pid("ps/0"), signal.SIGKILL)
        job = c.until_job("rows", lambda j: j["state"] == "done", "ends")
        after = losses(c, 2)
        check(0 < len(after) < len(all_of_it) and after == all_of_it[-len(after):],
              "other losses after the ps came back")
        check(job["metrics"]["auc"] > 0.9, f"AUC {job['metrics']}")


def an_id_beyond_its_table_is_named(weft):
    with make(weft, users=600) as c:
        result = c.must("train", "rows.yaml", code=1)
        line = result.err.strip().split("\n")[-1]
        check('of the table "users/embeddings", which has rows 0 to 599' in line, line)
        check("record" in line and "input_dim" in line, line)


def two_workers_that_step_together_are_one_with_the_mean(weft):
    with make(weft, workers=2) as c:
        alike(c)
        c.must("up")
        c.must("train", "rows.yaml", "--set", "consistency.mode=bsp")
        together, n = weights(c), updates(c)
    check(STEPS // 2 <= n < STEPS, f"{n} updates of {STEPS} steps")
    with make(weft) as c:
        alike(c)
        c.must("up")
        c.must("train", "rows.yaml", "--set", f"steps={n}")
        alone = weights(c)
    differ = [k for k in set(together) | set(alone)
              if not np.array_equal(together.get(k), alone.get(k))]
    check(not differ, f"{n} updates: {differ}")


main([rows_train_as_whole_variables_do, cached_rows_are_those_that_were_pulled,
      a_job_with_caches_goes_on_from_its_checkpoint, first_values_are_made_where_they_live,
      whether_a_split_comes_in_time_changes_nothing,
      a_job_of_tables_goes_on_from_its_checkpoint, workers_share_tables_and_may_die,
      two_workers_that_step_together_are_one_with_the_mean, an_id_beyond_its_table_is_named])

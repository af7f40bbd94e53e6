# SPDX-License-Identifier: Apache-2.0
"""A worker with several threads computes two steps at once: with the bits of one after the other.

    steps_at_once.py WEFT [TEST...]

By itself a worker does so where steps take a millisecond and more; here WEFT_LONG_STEP_US has it do so
with short ones.
"""
import os
import re

from losses import cluster_with_data, losses, saved_weights
from stopped import Stopped
from weftlib import check, main, needs, one_sentence, until

needs("numpy")
import numpy as np  # noqa: E402

RECORDS, WIDTH, BATCH, EPOCHS, SPLIT = 4096, 64, 16, 3, 400
JOB = """
job: bits
model:
  input: {{x: [64]}}
  layers:
    - dense: {{units: 48, activation: relu}}
    - dropout: {{rate: 0.2}}
    - batch_normalization
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
  split_records: {split}
batch: {batch}
epochs: {epochs}
optimizer: {optimizer}
consistency: {{mode: async, pipeline: {pipeline}}}
checkpoint: {{every_steps: 90, keep: 50}}
slice_bytes: 4096
seed: 7
"""
ADAM = "{adam: {learning_rate: 0.001}}"
TABLES = """
job: bits
model:
  input: {{x: {{shape: [6], dtype: int64}}}}
  layers:
    - embedding: {{input_dim: 500, output_dim: 8, inputs: x, name: rows}}
    - flatten
    - dense: {{units: 24, activation: relu}}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
data: {{format: npy, train: {{x: ids.npy, y: y.npy}}, split_records: {split}}}
tables: ["rows/*"]
batch: {batch}
epochs: {epochs}
optimizer: {optimizer}
consistency: {{mode: async, pipeline: {pipeline}}}
checkpoint: {{every_steps: 90, keep: 50}}
seed: 7
"""


def make(weft, threads, pipeline=2, job=JOB, optimizer=ADAM, more="", long_us="0", epochs=EPOCHS, cluster=""):
    c = cluster_with_data(weft, 2, RECORDS, WIDTH)
    np.save(c.path("ids.npy"), np.random.default_rng(5).integers(0, 500, (RECORDS, 6)))
    c.env["WEFT_LONG_STEP_US"] = long_us
    text = re.sub(r"devices: \[", f"threads: {threads}, devices: [", c.read("cluster.yaml"))
    c.write("cluster.yaml", text + cluster)
    c.write("bits.yaml", job.format(batch=BATCH, epochs=epochs, split=SPLIT, pipeline=pipeline,
                                    optimizer=optimizer) + more)
    return c


def at_once(c):
    """Whether the worker's log says that it computes so."""
    return "worker.steps_at_once n=2" in c.read(os.path.join(".weft", "logs", "worker-0.log"))


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{len(a)} and {len(b)} steps, different from number {at} on: {a[at:at + 1]} {b[at:at + 1]}"


def run(weft, threads, **kinds):
    with make(weft, threads, **kinds) as c:
        c.must("train", "bits.yaml")
        check(at_once(c) == (threads > 1), f"{threads} threads: {c.logs()}")
        return losses(c), c.checkpoints("bits"), saved_weights(c, "bits")


def check_same(a, b, what):
    check(a[0] == b[0], f"{what}: {first_difference(a[0], b[0])}")
    check(a[1] == b[1], f"{what}: checkpoints {a[1]} and {b[1]}")
    for name, value in a[2].items():
        check(np.array_equal(value, b[2][name]), f"{what}: {name} differs")


def the_bits_are_those_of_one_after_the_other(weft):
    for pipeline, more in (1, 3), (2, 4):
        one = run(weft, 1, pipeline=pipeline)
        check(len(one[0]) >= RECORDS // BATCH * EPOCHS, f"{len(one[0])} steps")
        check_same(one, run(weft, 2, pipeline=pipeline), f"pipeline {pipeline}")
        check_same(one, run(weft, more, pipeline=pipeline), f"pipeline {pipeline}, {more} threads")


def rows_of_tables_are_those_of_one_after_the_other(weft):
    for pipeline in (1, 2):
        one = run(weft, 1, job=TABLES, pipeline=pipeline)
        check_same(one, run(weft, 2, job=TABLES, pipeline=pipeline), f"pipeline {pipeline}")


def a_recovered_run_goes_on_with_the_same_bits(weft):
    whole = run(weft, 2)[0]
    with make(weft, 2) as c:
        c.must("up")
        c.must("submit", "bits.yaml")
        until(lambda: c.checkpoints("bits") and len(losses(c)) > len(whole) // 2, "half of the steps and a checkpoint")
        c.kill_all()
        before = losses(c)
        check(before == whole[:len(before)], first_difference(before, whole))
        c.must("recover", "bits")
        after = losses(c, generation=2)
    start = len(whole) - len(after)
    check(0 < start <= len(before), f"it went on from step {start} of {len(before)}")
    check(after == whole[start:], first_difference(after, whole[start:]))


def a_step_that_fails_is_told_in_its_turn(weft):
    sentences = []
    for threads in (1, 2):
        with make(weft, threads) as c:
            x = np.load(c.path("x.npy"))
            x[1000] = np.inf
            np.save(c.path("x.npy"), x)
            c.must("up")
            said = c.must("train", "bits.yaml", code=1).err.strip().split("\n")[-1]
            sentences.append(re.sub(r"\S*/(jobs/\S*)", r"\1", one_sentence(said)))
    check(re.search(r"the loss is NaN at step \d+", sentences[0]), sentences[0])
    check(sentences[0] == sentences[1], "\n".join(sentences))


def where_it_would_not_help_steps_go_one_by_one(weft):
    for kinds in (dict(pipeline=0), dict(more="on_nan: skip\n"), dict(long_us="100000"),
                  dict(optimizer="{adam: {learning_rate: 0.001, gradient_accumulation_steps: 2}}")):
        with make(weft, 2, **kinds) as c:
            c.must("train", "bits.yaml")
            check(not at_once(c), f"{kinds}: {c.logs()}")


def thread_of(pid, name):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as f:
            if f.read().strip() == name:
                return int(thread)
    raise AssertionError(f"no thread {name} of process {pid}")


def a_thread_that_hangs_costs_its_worker_and_not_the_job(weft):
    with make(weft, 2, epochs=100000, cluster="dead_ms: 1000\nheartbeat_ms: 200\nstuck_ms: 3000\n") as c:
        c.must("up")
        c.must("submit", "bits.yaml")
        c.until_job("bits", lambda j: j["step"] > 200 and j["checkpoint"], "trains")
        check(at_once(c), c.logs())
        pid = c.pid("worker/0")
        with Stopped(thread_of(pid, "weft-step")):
            until(lambda: "stood still" in str(next(t for t in c.status()["tasks"]
                                                    if t["task"] == "worker/0")["last_end"]), "it is given up", 30)
        before = c.job("bits")["step"]
        c.until_job("bits", lambda j: j["state"] == "running" and j["step"] > before + 50, "trains on")
        c.must("stop", "bits")


main([the_bits_are_those_of_one_after_the_other, rows_of_tables_are_those_of_one_after_the_other,
      a_recovered_run_goes_on_with_the_same_bits, a_step_that_fails_is_told_in_its_turn,
      a_thread_that_hangs_costs_its_worker_and_not_the_job,
      where_it_would_not_help_steps_go_one_by_one])

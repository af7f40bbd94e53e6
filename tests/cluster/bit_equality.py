# SPDX-License-Identifier: Apache-2.0
"""Same seed, one worker: the same losses to the last bit, also across a recovery.

    bit_equality.py WEFT [TEST...]

The model has dropout, so that random numbers count too.
"""
from losses import cluster_with_data, losses
from weftlib import check, main, until

RECORDS, BATCH, EPOCHS = 8192, 8, 4
STEPS = RECORDS // BATCH * EPOCHS
JOB = """
job: bits
model:
  input: {{x: [64]}}
  layers:
    - dense: {{units: 48, activation: relu}}
    - dropout: {{rate: 0.2}}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  split_records: 1000
batch: {batch}
epochs: {epochs}
optimizer: {{adam: {{learning_rate: 0.001}}}}
consistency: {{mode: async, pipeline: {pipeline}}}
checkpoint: {{every_steps: 700, keep: 20}}
slice_bytes: 4096
seed: 7
"""


def make(weft, pipeline, ps=1):
    c = cluster_with_data(weft, ps, RECORDS, 64)
    c.write("bits.yaml", JOB.format(batch=BATCH, epochs=EPOCHS, pipeline=pipeline))
    return c


def undisturbed(weft, pipeline, ps=1):
    with make(weft, pipeline, ps) as c:
        c.must("train", "bits.yaml")
        rows = losses(c)
        check(len(rows) == len(set(rows)), "a batch was trained twice")
        return rows, c.checkpoints("bits")


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{len(a)} and {len(b)} steps, different from number {at} on: {a[at:at + 1]} {b[at:at + 1]}"


def two_runs_give_the_same_bits(weft):
    for pipeline in (0, 1):
        a, saved = undisturbed(weft, pipeline)
        b, saved_again = undisturbed(weft, pipeline)
        check(len(a) >= STEPS, f"{len(a)} steps of {STEPS}")
        check(a == b, f"pipeline {pipeline}: {first_difference(a, b)}")
        check(saved == saved_again, f"pipeline {pipeline}: checkpoints {saved} and {saved_again}")


def the_number_of_ps_changes_no_bit(weft):
    a, _ = undisturbed(weft, 1)
    b, _ = undisturbed(weft, 1, ps=2)
    check(a == b, first_difference(a, b))


def a_recovered_run_goes_on_with_the_same_bits(weft):
    for pipeline in (0, 1):
        whole, _ = undisturbed(weft, pipeline)
        with make(weft, pipeline) as c:
            c.must("up")
            c.must("submit", "bits.yaml")
            until(lambda: c.checkpoints("bits") and len(losses(c)) > STEPS // 2,
                  "half of the steps and a checkpoint")
            c.kill_all()
            before = losses(c)
            check(len(before) < len(whole), "the job was done before it was killed")
            check(before == whole[:len(before)], first_difference(before, whole))
            c.must("recover", "bits")
            after = losses(c, generation=2)
        start = len(whole) - len(after)
        check(0 < start <= len(before), f"it went on from step {start} of {len(before)}")
        check(after == whole[start:],
              f"pipeline {pipeline}: {first_difference(after, whole[start:])}")


main([two_runs_give_the_same_bits, the_number_of_ps_changes_no_bit,
      a_recovered_run_goes_on_with_the_same_bits])

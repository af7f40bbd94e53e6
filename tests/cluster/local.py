# SPDX-License-Identifier: Apache-2.0
"""One worker that holds its variables: weft train --local, and a cluster without ps.

    local.py WEFT [TEST...]

Losses and weights are those of a cluster of one ps and one worker, bit for bit.
"""
import os
import signal

from losses import cluster_with_data, losses, saved_weights
from weftlib import check, main, needs, until

needs("numpy", "safetensors")

RECORDS, BATCH, EPOCHS = 4096, 8, 4
STEPS = RECORDS // BATCH * EPOCHS
LONG = 40  # epochs of a job that is to be interrupted
LONG_STEPS = RECORDS // BATCH * LONG
JOB = """
job: alone
model:
  input: {{x: [64]}}
  layers:
    - dense: {{units: 48, activation: relu}}
    - batch_normalization
    - dropout: {{rate: 0.2}}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
batch: {batch}
epochs: {epochs}
optimizer: {optimizer}
callbacks:
  - reduce_lr_on_plateau: {{monitor: val_loss, mode: max, patience: 1, factor: 0.5}}
checkpoint: {{every_steps: 300, keep: 50}}
slice_bytes: 4096
seed: 7
"""
ADAM = "{adam: {learning_rate: 0.001, global_clipnorm: 1.0}}"
LAMB = "{lamb: {learning_rate: 0.001}}"


def make(weft, ps=1, epochs=EPOCHS, optimizer=ADAM):
    c = cluster_with_data(weft, ps, RECORDS, 64)
    c.write("alone.yaml", JOB.format(batch=BATCH, epochs=epochs, optimizer=optimizer))
    return c


def weights(c):
    return saved_weights(c, "alone")


def run_of(weft, *args, ps=1, optimizer=ADAM, epochs=EPOCHS):
    with make(weft, ps, optimizer=optimizer, epochs=epochs) as c:
        result = c.must("train", *args, "alone.yaml")
        return losses(c), weights(c), result


def check_same(ours, theirs):
    check(ours[0] == theirs[0], f"{len(ours[0])} and {len(theirs[0])} losses, not the same")
    check(ours[1].keys() == theirs[1].keys(), f"{sorted(ours[1])} and {sorted(theirs[1])}")
    for name in ours[1]:
        check((ours[1][name] == theirs[1][name]).all(), f"{name} is another")


def a_process_alone_computes_what_a_cluster_does(weft):
    for optimizer in (ADAM, LAMB):
        theirs = run_of(weft, optimizer=optimizer)
        ours = run_of(weft, "--local", optimizer=optimizer)
        check(len(ours[0]) == STEPS, f"{len(ours[0])} steps of {STEPS}")
        check_same(ours, theirs)
        check("next: weft export alone" in ours[2].out, ours[2].out)


def a_cluster_without_ps_does_too(weft):
    theirs = run_of(weft)
    with make(weft, ps=0) as c:
        c.must("train", "alone.yaml")
        check_same((losses(c), weights(c)), theirs)


def what_was_interrupted_goes_on_with_the_same_bits(weft):
    whole, end, _ = run_of(weft, "--local", epochs=LONG)
    with make(weft, epochs=LONG) as c:
        process = c.start("train", "--local", "alone.yaml")
        until(lambda: len(c.checkpoints("alone")) > 1 and len(losses(c)) > STEPS,
              "some epochs and checkpoints")
        process.send_signal(signal.SIGINT)
        result = c.end_of(process)
        check(result.code == 5 and "stopped" in result.out, str(result))
        check("next: weft train --local alone.yaml --resume" in result.out, result.out)
        before = losses(c)
        check(STEPS < len(before) < LONG_STEPS, f"{len(before)} steps before")
        c.must("train", "--local", "alone.yaml", "--resume")
        check(before + losses(c, 2) == whole, "other losses")
        ends = weights(c)
        check(all((ends[k] == end[k]).all() for k in end), "other weights")


def what_was_killed_goes_on_from_its_checkpoint(weft):
    whole, end, _ = run_of(weft, "--local", epochs=LONG)
    with make(weft, epochs=LONG) as c:
        process = c.start("train", "--local", "alone.yaml")
        until(lambda: len(c.checkpoints("alone")) > 1 and len(losses(c)) > STEPS,
              "some epochs and checkpoints")
        process.kill()
        c.end_of(process)
        again = "go on with: weft train --local alone.yaml --resume"
        check(f"hint           {again}\n" in c.must("status", "alone").out, c.run("status", "alone").out)
        refused = c.run("recover", "alone")
        check(refused.code == 1 and f"no cluster has trained alone#1; {again}" in refused.err, refused.err)
        c.must("train", "--local", "alone.yaml", "--resume")
        after = losses(c, 2)
        check(0 < len(after) < LONG_STEPS and after == whole[-len(after):], "other losses")
        ends = weights(c)
        check(all((ends[k] == end[k]).all() for k in end), "other weights")


def a_worker_that_dies_takes_the_job_back(weft):
    whole, end, _ = run_of(weft, "--local", epochs=LONG)
    with make(weft, ps=0, epochs=LONG) as c:
        c.must("up")
        c.must("submit", "alone.yaml")
        until(lambda: len(c.checkpoints("alone")) > 1 and len(losses(c)) > STEPS,
              "some epochs and checkpoints")
        c.kill("worker/0")
        c.until_job("alone", lambda j: j["state"] == "done", "the end of the job")
        after = losses(c, 2)
        check(0 < len(after) < LONG_STEPS and after == whole[-len(after):], "other losses")
        ends = weights(c)
        check(all((ends[k] == end[k]).all() for k in end), "other weights")


def the_same_job_goes_from_a_cluster_to_a_process_alone(weft):
    whole, end, _ = run_of(weft, "--local")
    with make(weft, epochs=2) as c:
        c.must("train", "alone.yaml")
        c.write("alone.yaml", JOB.format(batch=BATCH, epochs=EPOCHS, optimizer=ADAM))
        c.must("train", "--local", "alone.yaml", "--resume")
        ends = weights(c)
        check(all((ends[k] == end[k]).all() for k in end), "other weights")
        check(losses(c)[:STEPS // 2] == whole[:STEPS // 2], "other losses")


def a_job_that_a_cluster_has_ended_is_at_its_end_alone_too(weft):
    with make(weft) as c:
        c.must("train", "alone.yaml")
        last, ends = c.checkpoints("alone")[-1], weights(c)
        result = c.must("train", "--local", "alone.yaml")
        check("done:" in result.out, result.out)
        check(c.checkpoints("alone")[-1] == last, f"{c.checkpoints('alone')}")
        check(all((weights(c)[k] == ends[k]).all() for k in ends), "other weights")


def what_does_not_fit_is_said(weft):
    with make(weft) as c:
        text = c.read("alone.yaml")
        c.write("alone.yaml", text + "strategy: local\n")
        result = c.run("train", "alone.yaml")
        check(result.code != 0 and "strategy local wants at most 0 ps" in result.err, str(result))
        c.must("train", "--local", "alone.yaml")
        c.must("train", "--local", "alone.yaml")
        check(os.path.basename(c.saved("alone")) == "alone#2", c.saved("alone"))
    with make(weft, ps=0) as c:
        c.write("alone.yaml", text + "strategy: parameter_server\n")
        result = c.run("train", "alone.yaml")
        check(result.code != 0 and "wants at least 1 ps" in result.err, str(result))
        c.write("alone.yaml", text.replace("x.npy, y: y.npy", "no.npy, y: y.npy"))
        result = c.run("train", "--local", "alone.yaml")
        check(result.code != 0 and "there is no file" in result.err, str(result))


main([a_process_alone_computes_what_a_cluster_does, a_cluster_without_ps_does_too,
      what_was_interrupted_goes_on_with_the_same_bits, what_was_killed_goes_on_from_its_checkpoint,
      a_worker_that_dies_takes_the_job_back, the_same_job_goes_from_a_cluster_to_a_process_alone,
      a_job_that_a_cluster_has_ended_is_at_its_end_alone_too,
      what_does_not_fit_is_said])

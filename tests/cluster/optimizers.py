# SPDX-License-Identifier: Apache-2.0
"""Optimizers in whole jobs: schedules, accumulation, clipping, frozen and pre-trained weights.

    optimizers.py WEFT [TEST...]
"""
from losses import cluster_with_data, losses
import re

from weftlib import check, main, needs, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

RECORDS, EPOCHS = 4096, 4
JOB = """
job: opt
model:
  input: {{x: [32]}}
  layers:
    - dense: {{units: 24, activation: relu}}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  split_records: 1024
batch: {batch}
epochs: {epochs}
optimizer: {optimizer}
checkpoint: {{every_steps: 100, keep: 20}}
slice_bytes: 1024
seed: 7
{more}
"""


def make(weft, optimizer, batch=16, ps=1, epochs=EPOCHS, more=""):
    c = cluster_with_data(weft, ps, RECORDS, 32)
    c.write("opt.yaml", JOB.format(batch=batch, epochs=epochs, optimizer=optimizer, more=more))
    return c


def trained(weft, optimizer, **more):
    with make(weft, optimizer, **more) as c:
        c.must("train", "opt.yaml")
        return losses(c)


def numbers(rows):
    return np.array([float.fromhex(text) for _, text in rows])


COSINE = ("{adam: {learning_rate: {cosine_decay: {initial_learning_rate: 0.0, decay_steps: 600, "
          "warmup_steps: 100, warmup_target: 0.01}}, global_clipnorm: 1.0}}")


def accumulated_batches_are_one_large_batch(weft):
    one = numbers(trained(weft, "{sgd: {learning_rate: 0.1}}", batch=64))
    four = numbers(trained(weft, "{sgd: {learning_rate: 0.1, gradient_accumulation_steps: 4}}"))
    check(len(one) == len(four) == RECORDS * EPOCHS // 64, f"{len(one)} and {len(four)} steps")
    worst = np.abs(one - four).max()
    check(worst < 1e-4, f"losses differ by {worst}")


def a_recovered_run_goes_on_with_the_same_bits(weft):
    accumulated = COSINE.replace("{adam: {", "{adam: {gradient_accumulation_steps: 3, ")
    for optimizer in (COSINE, accumulated):
        epochs = 16
        whole = trained(weft, optimizer, batch=8, epochs=epochs)
        with make(weft, optimizer, batch=8, epochs=epochs) as c:
            c.must("up")
            c.must("submit", "opt.yaml")
            until(lambda: c.checkpoints("opt") and len(losses(c)) > len(whole) // 3,
                  "a third of the steps and a checkpoint")
            c.kill_all()
            check(len(losses(c)) < len(whole), "the job was done before it was killed")
            c.must("recover", "opt")
            after = losses(c, generation=2)
        check(0 < len(after) < len(whole) and after == whole[-len(after):],
              f"{optimizer}: {len(after)} of {len(whole)} steps after the recovery differ")


def lamb_gives_the_same_bits_with_any_number_of_ps(weft):
    a = trained(weft, "{lamb: {learning_rate: 0.01}}")
    b = trained(weft, "{lamb: {learning_rate: 0.01}}", ps=3)
    check(a == b, "3 ps change losses")
    check(numbers(a)[-1] < 0.6 * numbers(a)[0], f"{numbers(a)[0]} to {numbers(a)[-1]}")


def a_job_starts_from_weights_and_leaves_the_frozen(weft):
    rng = np.random.default_rng(1)
    weights = {"fc1.weight": rng.normal(size=(32, 24)).astype(np.float32) * 0.2,
               "dense/bias": np.full(24, 0.25, np.float32)}
    more = ("freeze: [\"dense/*\"]\nweights: {file: w.safetensors, strict: false, "
            "map: {dense/kernel: fc1.weight}}")
    with make(weft, "adam", more=more) as c:
        save_file(weights, c.path("w.safetensors"))
        told = c.must("train", "opt.yaml").err
        check("dense_1/kernel" in told, f"what did not fit is not told: {told}")
        c.must("export", "opt", "-o", c.path("out.onnx"))
        rows = numbers(losses(c))
        check(rows[-1] < 0.7 * rows[0], f"{rows[0]} to {rows[-1]}")
        shard = load_file(c.saved("opt", c.checkpoints("opt")[-1],
                                 "shard-00000-of-00001.safetensors"))
        check(not any(name.split("#")[0].startswith("dense/") for name in shard),
              f"a frozen variable is on a ps: {sorted(shard)}")
        import onnx
        from onnx import numpy_helper
        out = {i.name: numpy_helper.to_array(i)
               for i in onnx.load(c.path("out.onnx")).graph.initializer}
        check((out["dense/kernel"] == weights["fc1.weight"]).all(), "a frozen kernel has moved")
        check((out["dense/bias"] == weights["dense/bias"]).all(), "a frozen bias has moved")
    with make(weft, "adam", more="weights: w.safetensors") as c:
        save_file(weights, c.path("w.safetensors"))
        said = c.must("train", "opt.yaml", code=1).err
        check("weights:" in said and "opt.yaml:" in said, said)


CALLBACKS = """
callbacks:
  - reduce_lr_on_plateau: {factor: 0.5, patience: 1, min_delta: 0.02}
  - early_stopping: {patience: 2, restore_best_weights: true}
"""


def make_overfit(weft):
    """A job that soon gets worse on its evaluation: 256 records against noise."""
    c = make(weft, "{adam: {learning_rate: 0.02}}", batch=8, epochs=40, more=CALLBACKS)
    rng = np.random.default_rng(8)
    for name, n in (("x", 512), ("ex", 256)):
        x = rng.normal(size=(n, 32)).astype(np.float32)
        y = np.argmax(x[:, :10] + rng.normal(size=(n, 10)), axis=1).astype(np.int64)
        np.save(c.path(f"{name}.npy"), x)
        np.save(c.path(f"{name.replace('x', 'y')}.npy"), y)
    text = c.read("opt.yaml").replace("train: {x: x.npy, y: y.npy}",
                                      "train: {x: x.npy, y: y.npy}\n  eval: {x: ex.npy, y: ey.npy}")
    c.write("opt.yaml", text.replace("every_steps: 100", "every_steps: 30"))
    return c


def decisions(c):
    job = c.job("opt")
    words = ("job.epoch", "job.callback", "job.restores_best")
    # After a recovery within an epoch the mean of training is that of what was trained since.
    return [re.sub(r": loss \S+", ":", line) for line in job["events"] if line.startswith(words)], job


def callbacks_stop_training_and_restore_the_best(weft):
    with make_overfit(weft) as c:
        c.must("up")
        c.must("train", "opt.yaml")
        whole, job = decisions(c)
        evals = [float(line.split("val_loss ")[1].split()[0]) for line in whole if "job.epoch" in line]
        best = int(np.argmin(evals))
        check(any("learning rate" in line for line in whole), f"the rate stayed: {whole}")
        check(any("early stopping" in line for line in whole), f"it did not stop: {whole}")
        check(f"job.restores_best the weights after epoch {best + 1} are restored" in whole,
              f"the best of {evals} is not restored: {whole}")
        check(c.read(c.saved("opt", "best")) == c.read(c.saved("opt", "latest")),
              "the last checkpoint is not the best one")
        c.must("export", "opt", "--from", "best", "-o", c.path("best.onnx"))
        said = c.must("eval", "opt.yaml").out
        check(f"{evals[best]:.4f}"[:6] in said, f"{evals[best]} evaluated again: {said}")
        rows = losses(c)
    for moment in (0.2, 0.5):
        with make_overfit(weft) as c:
            c.must("up")
            c.must("submit", "opt.yaml")
            until(lambda: len(losses(c)) >= moment * len(rows), "its moment")
            c.kill_all()
            c.must("up")
            recovery = c.start("recover", "opt")
            result = c.end_of(recovery)
            check(result.code == 0 or "is done" in result.err, f"weft recover: {result}")
            after, _ = decisions(c)
            told = [line for line in after if "restores_best" not in line]
            decided = [line for line in whole if "restores_best" not in line]
            # Nothing is told again when the last decision had been made.
            check(not told or told == decided[-len(told):],
                  f"other decisions after a recovery: {told} for {whole}")
            check(c.read(c.saved("opt", "best")) == c.read(c.saved("opt", "latest")),
                  "the last checkpoint is not the best one")


def a_stopped_job_goes_on_with_other_numbers(weft):
    with make(weft, "{sgd: {learning_rate: 0.1}}", epochs=200) as c:
        c.must("up")
        c.must("submit", "opt.yaml")
        until(lambda: c.checkpoints("opt"), "a checkpoint")
        check("stop it first" in c.must("recover", "opt", "--set", "epochs=3", code=1).err,
              "a running job was changed")
        c.must("stop", "opt", code=0)
        c.until_job("opt", lambda j: j["state"] == "stopped", "stops")
        said = c.must("recover", "opt", "--set", "seed=2", code=2).err
        check("cannot change on the way" in said, said)
        said = c.must("recover", "opt", "--set", "optimizer.momentun=0.5", code=2).err
        check("did you mean" in said, said)
        epoch = c.job("opt")["epoch"]
        c.must("recover", "opt", "--set", f"epochs={epoch + 1}", "--set",
               "optimizer.learning_rate=0.001")
        job = c.job("opt")
        check(job["state"] == "done" and job["epochs"] == epoch + 1, f"{job}")
        check("learning_rate: 0.001" in job["set"], f"status shows {job['set']!r}")
        said = c.must("status", "opt").out
        check(re.search(r"^  set +epochs: ", said, re.M), f"weft status does not show it: {said}")
        import json
        with open(c.saved("opt", c.checkpoints("opt")[-1], "manifest.json"),
                  encoding="utf-8") as f:
            options = json.load(f)["options"]
        check(options["learning_rate"] == 0.001, f"{options}")


def a_step_with_nan_is_dropped_whole(weft):
    bad = "data has one record that is not a number"
    for on_nan, code in (("stop", 1), ("skip", 0)):
        with make(weft, "{adam: {clipnorm: 1.0}}", more=f"on_nan: {on_nan}") as c:
            x = np.load(c.path("x.npy"))
            x[1234, 5] = np.nan
            np.save(c.path("x.npy"), x)
            result = c.run("train", "opt.yaml")
            check(result.code == code, f"{bad}, on_nan: {on_nan}: {result}")
            if code:
                continue
            rows = numbers(losses(c))
            check(np.isnan(rows).sum() == EPOCHS, f"{np.isnan(rows).sum()} losses are NaN")
            check(rows[-1] < 0.7 * rows[0], f"{rows[0]} to {rows[-1]}")
            shard = load_file(c.saved("opt", c.checkpoints("opt")[-1],
                                     "shard-00000-of-00001.safetensors"))
            check(all(np.isfinite(v).all() for v in shard.values()), "NaN in the weights")


main([accumulated_batches_are_one_large_batch, a_recovered_run_goes_on_with_the_same_bits,
      lamb_gives_the_same_bits_with_any_number_of_ps,
      a_job_starts_from_weights_and_leaves_the_frozen,
      callbacks_stop_training_and_restore_the_best, a_stopped_job_goes_on_with_other_numbers,
      a_step_with_nan_is_dropped_whole])

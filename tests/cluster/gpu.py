# SPDX-License-Identifier: Apache-2.0
"""Workers on GPUs, which are the host's own (tests/cuda): they train as the cpu does, and what is wrong
with them is said.

    gpu.py WEFT PLUGIN [TEST...]

PLUGIN is loaded instead of weft-cuda.so; it is told by WEFT_CUDA_HOST what to do wrong (tests/cuda/plugin.c).
"""
import os
import re
import sys

from remote_device import job, write_data
from weftlib import Cluster, check, main, needs

needs("numpy")
import numpy as np  # noqa: E402

PLUGIN = os.path.abspath(sys.argv.pop(2))
JOB = """
job: digits
model:
  input: {x: [1, 12, 12]}
  layers:
    - flatten
    - dense: {units: 16, activation: relu}
    - dense: {units: 5}
loss: sparse_categorical_crossentropy
data: {format: npy, train: {x: x.npy, y: y.npy}, split_records: 250}
batch: 25
epochs: 4
optimizer: {sgd: {learning_rate: 0.05}}
seed: 1
"""


def cluster(weft, wrong="", plugin=PLUGIN, workers=1, gpu="cuda:0"):
    c = Cluster(weft, ps=1, workers=workers, env={"WEFT_CUDA": plugin, "WEFT_CUDA_HOST": wrong},
                devices=[[gpu]])
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    write_data(c)
    c.write("digits.yaml", JOB)
    return c


def losses_of(weft, text, gpu):
    with cluster(weft, gpu=gpu) as c:
        c.write("digits.yaml", text)
        c.must("train", "digits.yaml")
        rows = [line.split() for line in c.read("losses").splitlines()]
        return [r[:5] for r in rows], np.array([float.fromhex(r[5]) for r in rows])


def jobs_have_the_losses_of_the_cpu(weft):
    for text, pipeline in (JOB, 1), (job(0), 0), (job(0, ", gradient_accumulation_steps: 2"), 0):
        text = text.replace("job: remote", "job: digits")
        places, want = losses_of(weft, text, "cpu")
        places_there, got = losses_of(weft, text, "cuda:0")
        check(places == places_there, "the steps are others")
        check(len(want) > 20 and np.allclose(want, got, rtol=2e-3 if pipeline else 5e-4),
              f"{want[:40]}\n{got[:40]}")
    check((losses_of(weft, text, "cuda:1")[1] == got).all(), "the same seed has other losses")


def a_job_trains_on_a_gpu_without_a_cluster(weft):
    losses = []
    for device in "cpu", "cuda:1":
        with cluster(weft) as c:
            c.must("train", "--local", "--device", device, "digits.yaml")
            losses.append([float.fromhex(line.split()[5]) for line in c.read("losses").splitlines()])
            check(c.run("train", "--device", device, "digits.yaml").code == 2, "--device is for --local")
            failed = c.run("train", "--local", "--device", "cuda:2", "digits.yaml")
            check(failed.code == 3 and "this host has 2 GPUs" in failed.err, failed)
    check(np.allclose(losses[0], losses[1], rtol=5e-4), f"{losses}")


def said(weft, words, wrong="", **kinds):
    with cluster(weft, wrong, **kinds) as c:
        result = c.run("train", "digits.yaml")
        check(result.code == 1, f"{words}: {result}")
        check(re.search(words, result.err.strip().split("\n")[-1]), f"{words} is not in: {result}")


def what_is_wrong_with_a_gpu_is_said(weft):
    down = r"down for good: worker/0: .*"
    said(weft, down + r"cuda:0: this host has no NVIDIA GPU; use cpu", wrong="gpus=0")
    said(weft, down + r"cuda:2: this host has 2 GPUs; GPUs are numbered from 0", gpu="cuda:2")
    said(weft, down + r"the compute capability 7\.0, and weft needs 8\.0", wrong="major=7")
    said(weft, down + r"no NVIDIA driver, or one that is older.*; install a driver for CUDA 13",
         wrong="fail=count error=35")
    said(weft, down + r"cuda:0: weft-cuda\.so cannot be loaded: /nowhere\.so: cannot open",
         plugin="/nowhere.so")
    said(weft, r"job digits#1 failed: .*cuda:0 has no \d+ bytes left, which a step needs; .* makes "
         r"float32\[25, 144\], the largest tensor of it; a batch of 24 fits",
         wrong="fail=alloc error=2")


def a_batch_that_fits_is_named(weft):
    with cluster(weft, "memory=24000") as c:
        result = c.run("train", "digits.yaml")
        found = re.search(r"cuda:0 has no \d+ bytes left, .*; a batch of (\d+) fits", result.err)
        check(result.code == 1 and found, result)
        fits = int(found[1])
        check(1 <= fits < 25, f"{fits} of 25")
        c.must("train", "digits.yaml", "--set", f"batch={fits}")
        result = c.run("train", "digits.yaml", "--set", f"batch={fits + 1}")
        check(result.code == 1 and f"a batch of {fits} fits" in result.err, result)


def a_plugin_of_another_weft_is_refused(weft):
    said(weft, r"down for good: worker/0: .*libm\.so\.6 is none of weft \d", plugin="libm.so.6")


def a_gpu_that_fails_costs_the_job_a_worker(weft):
    """Its splits are given out again; its process is started anew, as often as any other."""
    with cluster(weft, "fail=copy after=150 error=79", workers=2) as c:
        result = c.must("train", "digits.yaml")
        check("done:" in result.out, result)
        check(re.search(r"worker/0: ended with exit code 1: .*cuda:0: .*\(CUDA error 79\); look for messages",
                        result.out + result.err), result)


def a_file_runs_on_a_gpu_as_on_the_cpu(weft):
    with cluster(weft) as c:
        c.must("train", "digits.yaml")
        c.must("export", "digits", "-o", "digits.onnx")
        for device in "cpu", "cuda:1":
            done = c.bare("run", "digits.onnx", "--input", "x=x.npy", "-o", device, "--device", device)
            check(done.code == 0, done)
        want, got = (np.load(c.path(d, "output.npy")) for d in ("cpu", "cuda:1"))
        check(want.shape == got.shape and np.allclose(want, got, rtol=1e-4, atol=1e-5), f"{want} {got}")
        done = c.bare("run", "digits.onnx", "--input", "x=x.npy", "-o", "d", "--device", "cuda:2")
        check(done.code == 3 and "this host has 2 GPUs" in done.err, done)


def memory_is_planned_without_a_gpu(weft):
    with cluster(weft, "gpus=0") as c:
        done = c.bare("graph", "digits.yaml", "--memory", "--device", "cuda:7")
        check(done.code == 0 and re.search(r"cuda:7 +\d.* of arena, constants and workspace", done.out), done)
        done = c.bare("graph", "digits.yaml", "--device", "cuda:7")
        check(done.code == 2 and "add --memory" in done.err, done)


main([jobs_have_the_losses_of_the_cpu, a_job_trains_on_a_gpu_without_a_cluster, a_file_runs_on_a_gpu_as_on_the_cpu, memory_is_planned_without_a_gpu, what_is_wrong_with_a_gpu_is_said, a_batch_that_fits_is_named,
      a_plugin_of_another_weft_is_refused,
      a_gpu_that_fails_costs_the_job_a_worker])

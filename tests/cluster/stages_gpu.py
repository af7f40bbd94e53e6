# SPDX-License-Identifier: Apache-2.0
"""A model that `place` divides among workers with GPUs, which are the host's own (tests/cuda).

    stages_gpu.py WEFT PLUGIN [TEST...]

One worker with all of the model on a GPU, which accumulates the gradients of as many batches as a step has
micro-batches, adds up the same numbers in the same order: its losses have the same bits.
"""
import os
import re
import sys

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
import stages_agree  # noqa: E402
import stages_predict  # noqa: E402
from losses import saved_weights  # noqa: E402
from predict_spread import content  # noqa: E402
from stages import AUTO, FOUR, TWO, check_same, losses, numbers, write_job  # noqa: E402

PLUGIN = os.path.abspath(sys.argv.pop(2))
GPU0, GPU1, CPU = ["cuda:0"], ["cuda:1"], ["cpu"]
STRICT = "\ndeterministic: true"  # a plan's algorithms are those that the library names first


def cluster(weft, devices, wrong=""):
    c = Cluster(weft, ps=0, workers=len(devices), devices=devices,
                env={"WEFT_CUDA": PLUGIN, "WEFT_CUDA_HOST": wrong})
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    return c


def trained(weft, how, devices, **kinds):
    with cluster(weft, devices) as c:
        write_job(c, how + STRICT, **kinds)
        c.must("up")
        said = c.must("train", "divided.yaml").out
        return losses(c), saved_weights(c, "divided"), re.findall(r"val_\w+ \S+", said)


def one_worker(weft, device, **kinds):
    return trained(weft, "strategy: local", [device], batch=4, accumulate=4, **kinds)


def check_close(ours, theirs, what):
    """As gpu.py holds jobs on a GPU to those of the CPU."""
    check(len(ours[0]) >= 200 and ours[0].keys() == theirs[0].keys(), f"{what}: {len(ours[0])} and {len(theirs[0])}")
    a, b = numbers(ours[0]), numbers(theirs[0])
    check(np.allclose(a, b, rtol=1e-3, atol=1e-5), f"{what}: losses differ by {np.abs(a - b).max()}")
    check((a != b).any(), f"{what}: all bits are the processor's")


def stages_on_gpus_have_the_bits_of_one_gpu(weft):
    """200 steps, some of them short, with an evaluation after each epoch; and the losses of the processor."""
    alone, cpu = one_worker(weft, GPU0), one_worker(weft, CPU)
    for how, devices in ((TWO, [GPU0, GPU1]), (TWO, [GPU0, GPU0]), (FOUR, [GPU1, GPU0, GPU1, GPU0]),
                         (AUTO, [GPU0, GPU1, GPU0])):
        ours = trained(weft, how, devices)
        check_same(ours, alone, f"{how} on {devices}")
        check(ours[2] == alone[2] and ours[2], f"{ours[2]} and {alone[2]}")
        check_close(ours, cpu, how)
    for how, devices in ((TWO, [GPU0, CPU]), (FOUR, [CPU, GPU0, CPU, GPU1])):
        check_close(trained(weft, how, devices), cpu, f"{how} on {devices}")


def gradients_are_clipped_on_a_gpu(weft):
    for more in ", clipnorm: 0.05", ", clipvalue: 0.002", ", global_clipnorm: 0.4":
        got = []
        for how, devices, kinds in (("strategy: local", [GPU0], {"batch": 4}), (TWO, [GPU0, GPU1], {})):
            with cluster(weft, devices) as c:
                write_job(c, how + STRICT, epochs=1, **kinds)
                accumulate = ", gradient_accumulation_steps: 4" if kinds else ""
                c.write("divided.yaml", c.read("divided.yaml").replace("0.003", "0.003" + more + accumulate))
                c.must("up")
                c.must("train", "divided.yaml")
                got.append((losses(c), saved_weights(c, "divided")))
        check_same(*got, more, 50)


COPIES = """job: divided
model:
  input: {{x: [12]}}
  layers:
    - dense: {{units: 64, activation: relu, name: block0}}
    - dense: {{units: 4, name: head}}
loss: sparse_categorical_crossentropy
data: {{format: npy, train: {{x: x.npy, y: y.npy}}}}
batch: 32
epochs: {epochs}
optimizer: {{adam: {{learning_rate: 0.003}}}}
seed: 1
place: {{"block0/*": worker/0, "head/*": worker/1}}
micro_batches: {micro}
"""


def values_are_copied_once_and_weights_never(weft):
    """What another epoch of 25 steps has a GPU's process copy: records or activations and labels in, gradients in or out;
    a word for each of two gradients of a step, and the loss of each micro-batch. No weights, and all from pinned memory."""
    for stage, devices in enumerate(([GPU0, CPU], [CPU, GPU0])):
        for micro in 1, 4:
            told = {}
            for epochs in 1, 2, 3:
                with cluster(weft, devices) as c:
                    c.env["WEFT_CUDA_HOST"] = "tell=" + c.path("told")
                    write_job(c, "")
                    c.write("divided.yaml", COPIES.format(micro=micro, epochs=epochs))
                    c.must("up")
                    c.must("train", "divided.yaml")
                    c.must("down")
                    told[epochs] = [int(n) for n in c.read("told").split()[:3]]
            more = [told[3][i] - told[2][i] for i in range(3)]
            check(more == [told[2][i] - told[1][i] for i in range(3)], f"stage {stage}: epochs differ: {told}")
            records, width, steps = 800, 4 * 64, 25
            want = ([records * (4 * 12 + width), records * width + steps * 2 * 4, 0] if stage == 0 else
                    [records * (width + 8), records * width + steps * (2 * 4 + micro * 4), 0])
            check(more == want, f"stage {stage}, {micro} micro-batches: {more} bytes in, out and by hand, not {want}")


def whoever_fails_the_losses_stay(weft):
    """A worker that is killed, and a GPU that fails: the job goes back to its newest checkpoint."""
    alone = one_worker(weft, GPU0, epochs=8, every_steps=50)
    with cluster(weft, [GPU0, GPU1, GPU0, GPU1]) as c:
        write_job(c, FOUR + STRICT, epochs=8, every_steps=50)
        c.must("up")
        training = c.start("train", "divided.yaml")
        for generation, task in enumerate(("worker/3", "worker/0"), 1):
            c.until_job("divided", lambda j: j["state"] == "running" and j["step"] > 60 * generation, "runs")
            c.kill(task)
            c.until_job("divided", lambda j: j["state"] == "running" and j["generation"] > generation,
                        f"goes back after the death of {task}")
        result = c.end_of(training, 120)
        check(result.code == 0, f"{result}")
        check_same((losses(c), saved_weights(c, "divided")), alone, "killed", 400)
    for devices in ([GPU0, CPU], [CPU, GPU0]):
        failing = f"worker/{devices.index(GPU0)}"
        with cluster(weft, devices, "fail=copy after=4000 error=79") as c:
            write_job(c, TWO + STRICT, epochs=4, every_steps=40)
            c.must("up")
            result = c.must("train", "divided.yaml", timeout=120)
            job = c.job("divided")
            check(job["state"] == "done" and job["generation"] >= 2 and job["step"] == 200, f"{job}")
            check(re.search(failing + r": ended with exit code 1: .*cuda:0: .*\(CUDA error 79\); look for messages",
                            result.out + result.err), result)
            check(len(losses(c)) == 200, f"{len(losses(c))} losses")


def a_gradient_that_is_no_number_is_named(weft):
    """Of a stage on a GPU as of one on a processor; losses are numbers."""
    said = set()
    for devices in [CPU, CPU], [GPU0, CPU], [GPU0, GPU1]:
        for micro in 1, 4:
            with cluster(weft, devices) as c:
                stages_agree.write_root(c, f"{stages_agree.ROOT}{micro}\non_nan: stop")
                c.must("up")
                said.add(one_sentence(c.must("train", "root.yaml", code=1).err.strip().split("\n")[-1]))
    check(len(said) == 1 and re.search(r'step \d+: stage 0 of 2, on worker/0: the gradient of "w" has NaN or infinity', *said),
          f"{said}")


def a_step_with_it_is_dropped_by_all_stages(weft):
    """The GPU of the other stage applies nothing of it; gradients of other steps are clipped by the norm of all."""
    def made(devices, how, options):
        with cluster(weft, devices) as c:
            stages_agree.write_root(c, how + "\non_nan: skip" + STRICT, ", global_clipnorm: 0.3" + options)
            c.must("up")
            c.must("train", "root.yaml")
            check(stages_agree.dropped(c, "root") == 2, f"{devices}: {stages_agree.dropped(c, 'root')} steps are dropped")
            return losses(c), saved_weights(c, "root")
    alone = made([GPU0], "strategy: local\nbatch: 2", ", gradient_accumulation_steps: 4")
    check_same(made([GPU0, GPU1], f"{stages_agree.ROOT}4", ""), alone, "GPUs", 64)
    for devices in [GPU0, CPU], [CPU, GPU1]:
        ours = made(devices, f"{stages_agree.ROOT}4", "")
        check(np.allclose(numbers(ours[0]), numbers(alone[0]), rtol=1e-5), f"{devices}: other losses")


def a_job_goes_on_anywhere(weft):
    """From its stages on GPUs to stages on processors, to one GPU, and back."""
    with cluster(weft, [GPU0, GPU1]) as c:
        write_job(c, TWO + STRICT, epochs=2)
        c.must("up")
        c.must("train", "divided.yaml")
        steps = ((([CPU, CPU]), "stages"), ([GPU0], "local"), ([GPU1, GPU0], "stages"))
        for epochs, (devices, strategy) in enumerate(steps, 3):
            c.must("down")
            c.devices, c.n_workers = dict(enumerate(devices)), len(devices)
            c.resize(0)
            c.must("up")
            c.must("recover", "divided", "--set", f"strategy={strategy}", "--set", f"epochs={epochs}")
            until(lambda: c.job("divided")["state"] == "done", "the job ends")
        got = numbers(losses(c))
    want = numbers(trained(weft, "strategy: local", [CPU], epochs=5, batch=16)[0])
    check(len(got) == 250 and np.isfinite(got).all() and got[-20:].mean() < 1.2 * want[-20:].mean(),
          f"{len(got)} losses, at last {got[-20:].mean()} and {want[-20:].mean()}")


def stages_on_gpus_predict(weft):
    """As one worker does that has all of the model on a GPU: in the same bits; on a processor, closely. All have the same
    weights, which processors have trained."""
    whole = 'place: {"block0/*": worker/0, "block1/*": worker/1}\nmicro_batches: 1'
    text = stages_predict.JOB.replace("  map:", "  split_records: 200\n  map:")  # else it depends on the cluster
    got = {}
    for name, how, devices in (("cpu", whole, [CPU, CPU]), ("gpus", whole, [GPU0, GPU1]),
                               ("both", whole, [CPU, GPU1]), ("one", "strategy: local", [GPU0])):
        with cluster(weft, devices) as c:
            stages_predict.write_job(c, how, text=text, records=1003)
            c.devices = {}
            c.resize(0)
            c.must("up")
            c.must("train", "divided.yaml")
            c.must("down")
            c.devices = dict(enumerate(devices))
            c.resize(0)
            c.must("up")
            c.must(*stages_predict.WORDS, "-o", "out.npy", "--spread")
            logs = [c.read(os.path.join(".weft", "logs", f"worker-{i}.log")) for i in range(len(devices))]
            check(name == "one" or re.search(r"job=predict\S* stage=1 of=2", logs[1]), f"{name}: no stages: {logs}")
            got[name] = content(c, "out.npy"), np.load(c.path("out.npy")), saved_weights(c, "divided")
    for name in "cpu", "gpus", "both":
        check(all((got[name][2][k] == got["one"][2][k]).all() for k in got["one"][2]), f"{name}: other weights")
    check(got["gpus"][0] == got["one"][0], "other bytes of stages on GPUs")
    for name in "gpus", "both":
        off = np.abs(got[name][1] - got["cpu"][1]).max()
        check(0 < off <= 1e-5, f"{name}: outputs differ by {off}")


def said(weft, devices, words, wrong="", code=1, how=TWO):
    with cluster(weft, devices, wrong) as c:
        write_job(c, how + STRICT, epochs=1)
        result = c.run("train", "divided.yaml")
        last = result.err.strip().split("\n")[-1]
        check(result.code == code and re.search(words, one_sentence(last)), f"{words} is not in: {result}")
        return last


def what_is_wrong_is_said(weft):
    down = r"down for good: worker/1: .*"
    said(weft, [CPU, ["cuda:2"]], down + r"cuda:2: this host has 2 GPUs; GPUs are numbered from 0")
    said(weft, [CPU, GPU0], down + r"cuda:0: this host has no NVIDIA GPU; use cpu", wrong="gpus=0")
    hint = "; give the stage fewer layers, take more micro_batches, or a device with more memory$"
    named = set()
    for after in range(60):
        with cluster(weft, [CPU, GPU0], f"fail=alloc after={after} error=2") as c:
            write_job(c, TWO + STRICT, epochs=1)
            result = c.run("train", "divided.yaml")
        if result.code == 0:
            break
        last = one_sentence(result.err.strip().split("\n")[-1])
        found = re.search(r"stage 1 of 2, on worker/1: .*cuda:0 has no (\d+) bytes left(.*)" + hint, last)
        check(found or "no memory left" in last, f"{after}: {result}")
        named.add(re.sub(r"\d+", "N", found[2]) if found else last)
    else:
        check(False, f"after {after} allocations it still fails: {named}")
    for words in ('the weights of "', 'the velocity of "', "which a step needs", "of a micro-batch"):
        check(any(words in n for n in named), f"{words}: {named}")


main([stages_on_gpus_have_the_bits_of_one_gpu, gradients_are_clipped_on_a_gpu, values_are_copied_once_and_weights_never,
      a_gradient_that_is_no_number_is_named, a_step_with_it_is_dropped_by_all_stages, whoever_fails_the_losses_stay, a_job_goes_on_anywhere, stages_on_gpus_predict, what_is_wrong_is_said])

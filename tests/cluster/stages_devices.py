# SPDX-License-Identifier: Apache-2.0
"""A model that `place` divides among the devices of workers, which compute at the same time.

    stages_devices.py WEFT PLUGIN [TEST...]

Stages are what they are on workers of their own: losses and weights have the same bits.
"""
import os
import re
import signal
import sys

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
import stages_predict  # noqa: E402
from losses import saved_weights  # noqa: E402
from predict_spread import content  # noqa: E402
from stages import FOUR, TWO, check_same, losses, one_worker, write_job  # noqa: E402

PLUGIN = os.path.abspath(sys.argv.pop(2))
STRICT = "\ndeterministic: true"
CPUS, GPUS, BOTH = ["cpu:0", "cpu:1"], ["cuda:0", "cuda:1"], ["cpu", "cuda:0"]


def cluster(weft, devices, threads=2, more="", wrong=""):
    """With so many threads for each worker."""
    c = Cluster(weft, ps=0, workers=len(devices), devices=devices, more=more,
                env={"WEFT_CUDA": PLUGIN, "WEFT_CUDA_HOST": wrong})
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    c.write("cluster.yaml", c.read("cluster.yaml").replace("devices:", f"threads: {threads}, devices:"))
    return c


def place(*homes):
    """The divisions of stages.py, on these homes in their order."""
    names = {2: TWO, 4: FOUR}[len(homes)]
    for i, home in enumerate(homes):
        names = re.sub(rf"worker/{i}(?=[,}}])", f"H{i}", names)
    for i, home in enumerate(homes):
        names = names.replace(f"H{i}", home)
    return names + STRICT


def trained(weft, how, devices, threads=2, **kinds):
    with cluster(weft, devices, threads) as c:
        write_job(c, how, **kinds)
        c.must("up")
        said = c.must("train", "divided.yaml").out
        return losses(c), saved_weights(c, "divided"), re.findall(r"val_\w+ \S+", said)


def devices_of_one_worker_have_the_bits_of_two_workers(weft):
    """200 steps with an evaluation after each epoch; processors, GPUs, and one of each."""
    alone = one_worker(weft)
    two = trained(weft, TWO + STRICT, [["cpu"], ["cpu"]])
    check_same(two, alone, "two workers")
    for how, threads in ((place("cpu:0", "cpu:1"), 2), (place("worker/0/cpu:0", "worker/0/cpu:1"), 1),
                         (place("worker/0/cpu", "cpu:1"), 3), ("place: auto\nmicro_batches: 4", 2)):
        ours = trained(weft, how, [CPUS], threads)
        check_same(ours, alone, how)
        check(ours[2] == two[2] and ours[2], f"{how}: {ours[2]} and {two[2]}")
    gpus = trained(weft, TWO + STRICT, [["cuda:0"], ["cuda:1"]])
    check_same(trained(weft, place("cuda:0", "cuda:1"), [GPUS]), gpus, "GPUs")
    check((trained(weft, place("cuda:0", "cuda:1"), [GPUS])[0] != alone[0]), "no GPU computes")
    check_same(trained(weft, place("cpu", "worker/0/cuda:0"), [BOTH]), trained(weft, TWO + STRICT, [["cpu"], ["cuda:0"]]),
               "a processor and a GPU")


def stages_of_one_worker_agree_on_a_step(weft):
    """Gradients are clipped by the norm of all stages, and one step of each epoch is dropped by all of them; stages on GPUs
    as on those of two workers."""
    kinds = {"clip": 0.6, "bad": 200}
    alone = one_worker(weft, "on_nan: skip", **kinds)
    homes = "worker/0/cpu:0", "worker/0/cpu:1", "worker/1/cpu:0", "worker/1/cpu:1"
    for how, devices in ((place("cpu:0", "cpu:1"), [CPUS]), (place(*homes), [CPUS, CPUS])):
        check_same(trained(weft, how + "\non_nan: skip", devices, **kinds), alone, how)
    gpus = trained(weft, TWO + STRICT + "\non_nan: skip", [["cuda:0"], ["cuda:1"]], **kinds)
    check_same(trained(weft, place("cuda:0", "cuda:1") + "\non_nan: skip", [GPUS], **kinds), gpus, "GPUs")
    check(gpus[0] != alone[0], "no GPU computes")


def workers_with_several_devices_go_together(weft):
    """Four stages on two workers; three on two. Whichever worker has the first stage, and how many stages."""
    alone = one_worker(weft)
    for how, devices in (
            (place("worker/0/cpu:0", "worker/0/cpu:1", "worker/1/cpu:0", "worker/1/cpu:1"), [CPUS, CPUS]),
            (place("worker/0", "worker/1/cpu:0", "worker/1/cpu:1", "worker/2"), [["cpu"], CPUS, ["cpu"]]),
            (place("worker/1/cpu:0", "worker/1/cpu:2", "worker/1/cpu:1", "worker/2/cpu:1"),
             [["cpu"], ["cpu:0", "cpu:2", "cpu:1"], CPUS]),
            ("place: auto\nmicro_batches: 4", [CPUS, ["cpu"]])):
        check_same(trained(weft, how, devices), alone, how)


def whoever_is_killed_the_losses_stay(weft):
    """Stages of one process are lost together."""
    alone = one_worker(weft, epochs=20, every_steps=50)
    for how, devices, tasks in (
            (place("cpu:0", "cpu:1"), [CPUS], ("worker/0", "worker/0")),
            (place("worker/0/cpu:0", "worker/0/cpu:1", "worker/1/cpu:0", "worker/1/cpu:1"), [CPUS, CPUS],
             ("worker/1", "worker/0"))):
        with cluster(weft, devices) as c:
            write_job(c, how, epochs=20, every_steps=50)
            c.must("up")
            training = c.start("train", "divided.yaml")
            for generation, task in enumerate(tasks, 1):
                c.until_job("divided", lambda j: j["state"] == "running" and j["step"] > 100 * generation, "runs")
                c.kill(task)
                c.until_job("divided", lambda j: j["state"] == "running" and j["generation"] > generation,
                            f"goes back after the death of {task}")
            result = c.end_of(training, 120)
            check(result.code == 0, f"{result}")
            check_same((losses(c), saved_weights(c, "divided")), alone, how, 1000)


def a_job_goes_from_devices_to_workers_and_is_told(weft):
    with cluster(weft, [CPUS]) as c:
        write_job(c, place("cpu:0", "cpu:1"), epochs=2)
        c.must("up")
        c.must("train", "divided.yaml")
        check(len([f for f in os.listdir(c.saved("divided", c.checkpoints("divided")[-1])) if f.endswith(".safetensors")]) == 2,
              "a file for each stage")
        got = [(s["worker"], s["device"]) for s in c.job("divided")["stages"]]
        check(got == [("worker/0", "cpu:0"), ("worker/0", "cpu:1")] and
              re.search(r"stages +worker/0/cpu:0 [^,]+, worker/0/cpu:1 ", c.must("status", "divided").out), f"{got}")
        c.must("recover", "divided", "--set", "strategy=local", "--set", "epochs=3")
        c.until_job("divided", lambda j: j["state"] == "done", "the end")
        c.must("recover", "divided", "--set", "strategy=stages", "--set", "epochs=4")
        c.until_job("divided", lambda j: j["state"] == "done" and j["step"] == 200, "the end")
        check(len(losses(c)) == 200, f"{len(losses(c))} losses")


def stages_on_devices_predict(weft):
    """With the bytes of one process; of GPUs, with those of two workers."""
    for how, devices in ((place("cpu:0", "cpu:1"), [CPUS]),
                         (place("worker/0/cpu:0", "worker/0/cpu:1", "worker/1/cpu:0", "worker/1/cpu:1"), [CPUS, CPUS]),
                         ("place: auto\nmicro_batches: 4", [CPUS, ["cpu"]])):
        with cluster(weft, devices) as c:
            stages_predict.write_job(c, how, records=1003)
            c.must("up")
            c.must("train", "divided.yaml")
            stages_predict.same(c, stages_predict.WORDS)
            stages_predict.same(c, [*stages_predict.WORDS[:4], "--batch", "1"], "single.npy", "single-one.npy")
    got, text = [], stages_predict.JOB.replace("  map:", "  split_records: 200\n  map:")
    for how, devices in ((place("cuda:0", "cuda:1"), [GPUS]), (TWO + STRICT, [["cuda:0"], ["cuda:1"]])):
        with cluster(weft, devices) as c:
            stages_predict.write_job(c, how, text, records=1003)
            c.must("up")
            c.must("train", "divided.yaml")
            c.must(*stages_predict.WORDS, "-o", "out.npy", "--spread")
            got.append(content(c, "out.npy"))
    check(got[0] == got[1], "GPUs of one worker have other bytes")


def over_tcp_and_with_short_batches(weft):
    """Messages of stages of other workers, with checksums, beside those of the same; batches of 6 records in 3 parts."""
    homes = "worker/0/cpu:0", "worker/0/cpu:1", "worker/1/cpu:0", "worker/1/cpu:1"
    alone = one_worker(weft)
    c = cluster(weft, [CPUS, CPUS], more="shared_memory: off\nchecksums: always\ndirect_connections: off")
    with c:
        write_job(c, place(*homes))
        c.must("up")
        c.must("train", "divided.yaml")
        check_same((losses(c), saved_weights(c, "divided")), alone, "over TCP")
    how = place("cpu:0", "cpu:1").replace("micro_batches: 4", "micro_batches: 3")
    two = TWO.replace("micro_batches: 4", "micro_batches: 3") + STRICT
    check_same(trained(weft, how, [CPUS], batch=6, epochs=1), trained(weft, two, [["cpu"], ["cpu"]], batch=6, epochs=1),
               "3 micro-batches", 130)


def a_process_alone_has_stages_too(weft):
    """With --local and devices alone in place: on processors and GPUs, stopped and resumed, and with stages that agree. Other
    places have no effect there, which is said."""
    kinds = {"epochs": 40, "every_steps": 5000, "clip": 0.6, "bad": 200}
    skip = "\non_nan: skip"
    gpus = trained(weft, TWO + STRICT, [["cuda:0"], ["cuda:1"]])
    for how, want, kinds in ((place("cpu:0", "cpu:1"), one_worker(weft), {}), (place("cuda:0", "worker/0/cuda:1"), gpus, {}),
                             (place("cpu:1", "cpu:0") + skip, one_worker(weft, "on_nan: skip", **kinds), kinds)):
        with cluster(weft, [["cpu"]]) as c:
            write_job(c, how, **kinds)
            training = c.start("train", "--local", "divided.yaml")
            if kinds:
                until(lambda: os.path.exists(c.path("losses")) and len(losses(c)) > 100, "some steps")
                training.send_signal(signal.SIGINT)
                result = c.end_of(training, 60)
                check(len(losses(c)) < 2000 and "--local" in result.out + result.err, f"it was not stopped: {result}")
                training = c.start("train", "--local", "--resume", "divided.yaml")
            result = c.end_of(training, 60)
            check(result.code == 0 and "no effect" not in result.err, f"{result}")
            check_same((losses(c), saved_weights(c, "divided")), want, how, 2000 if kinds else 200)
    whole = trained(weft, "strategy: local", [["cpu"]], epochs=1)
    for how, words in ((TWO, []), ("place: auto", []), (place("cpu:0", "cpu:1"), ["--device", "cpu"])):
        with cluster(weft, [["cpu"]]) as c:
            write_job(c, how, epochs=1)
            result = c.must("train", "--local", *words, "divided.yaml")
            check(re.search(r'^warning: divided\.yaml:\d+: "place" has no effect: --local is one worker, which trains the whole model',
                            result.err, re.M), f"{result}")
            check(losses(c) == whole[0], f"{how}: other losses than those of one worker")


def what_cannot_be_is_said(weft):
    def said(how, words, devices=(CPUS,), wrong="", code=2):
        """2: it is wrong in the job, which is said before anything is started."""
        with cluster(weft, list(devices), wrong=wrong) as c:
            write_job(c, how, epochs=1)
            result = c.run("train", "divided.yaml")
            last = one_sentence(result.err.strip().split("\n")[-1])
            check(result.code == code and re.search(words, last), f"{words} is not in: {result}")
            check(code == 1 or (re.match(r"weft: divided\.yaml:\d+: ", last) and not os.path.exists(c.path(".weft", "logs"))),
                  f"a cluster was started, or no line is named: {last}")
    said(place("cpu:0", "cpu:2"), r'place: "norm1/\*" is to be on cpu:2 of worker/0, which has cpu:0, cpu:1; list it under devices')
    said(place("worker/0/cpu:0", "worker/0/cuda:0"), r"is to be on cuda:0 of worker/0, which has cpu:0, cpu:1")
    said(place("cpu:0", "cpu:1"), r'is to be on cpu:0, and the cluster has 2 workers; write it as worker/0/cpu:0', (CPUS, CPUS))
    said(place("worker/0", "worker/0/cpu:0"), r"worker/0 and worker/0/cpu:0 are one device under two names")
    said(place("cpu:1", "cpu:0"), r'"norm1/\w+" is on worker/0/cpu:0, and what it is used with, .*, comes from '
         r"worker/0/cpu:1: values go from a device to those behind it in the list of the worker's devices alone")
    said(place("cpu:0", "worker/0/gpu"), r'divided\.yaml:\d+: "worker/0/gpu" names no device')
    said("place: auto", r"divides the model among workers and their devices, and there is one", (["cpu"],))
    said(place("cpu", "worker/0/cuda:0"), r"stage 1 of 2, on worker/0/cuda:0: .*cuda:0 has no \d+ bytes left.*; give the stage "
         "fewer layers", (BOTH,), wrong="fail=alloc after=3 error=2", code=1)


main([devices_of_one_worker_have_the_bits_of_two_workers, stages_of_one_worker_agree_on_a_step, workers_with_several_devices_go_together,
      whoever_is_killed_the_losses_stay, a_job_goes_from_devices_to_workers_and_is_told, stages_on_devices_predict,
      over_tcp_and_with_short_batches, a_process_alone_has_stages_too, what_cannot_be_is_said])

# SPDX-License-Identifier: Apache-2.0
"""Workers on GPUs, which are the host's own (tests/cuda): they train as the cpu does, and what is wrong
with them is said.

    gpu.py WEFT PLUGIN [TEST...]

PLUGIN is loaded instead of weft-cuda.so; it is told by WEFT_CUDA_HOST what to do wrong (tests/cuda/plugin.c).
"""
import os
import re
import sys
import tempfile

from losses import losses, saved_weights
from remote_device import RECORDS, job, write_data
from weftlib import Cluster, check, main, needs, until

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

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
# Variables of one worker: batch normalisation, batches of two sizes, evaluations and checkpoints; no
# convolution, for which the host's cuDNN names engines at random.
ALONE = """
job: alone
model:
  input: {{x: [1, 12, 12]}}
  layers:
    - flatten
    - dense: {{units: 16}}
    - batch_normalization
    - activation: relu
    - dropout: {{rate: 0.2}}
    - dense: {{units: 5}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
  split_records: 500
batch: 32
epochs: {epochs}
optimizer: {{{optimizer}}}
consistency: {{mode: async, pipeline: 0}}
checkpoint: {{every_steps: 20}}
seed: 7
"""
OPTIMIZERS = ("sgd: {learning_rate: 0.05}", "sgd: {learning_rate: 0.02, momentum: 0.9}",
              "adam: {learning_rate: 0.002, weight_decay: 0.01}",
              "sgd: {learning_rate: 0.05, clipnorm: 0.3}", "adam: {learning_rate: 0.002, global_clipnorm: 0.4}",
              "sgd: {learning_rate: 0.05, clipnorm: 0.3, gradient_accumulation_steps: 3}",
              "sgd: {learning_rate: 0.05, clipvalue: 0.01}")
STEPS = (RECORDS + 31) // 32  # of an epoch


def cluster(weft, wrong="", plugin=PLUGIN, workers=1, gpu="cuda:0", ps=1, transport="ipc"):
    c = Cluster(weft, ps=ps, workers=workers, transport=transport, env={"WEFT_CUDA": plugin, "WEFT_CUDA_HOST": wrong},
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


def alone(weft, wrong="", optimizer=OPTIMIZERS[0], epochs=2, ps=0, **kinds):
    c = cluster(weft, wrong, ps=ps, **kinds)
    c.write("alone.yaml", ALONE.format(optimizer=optimizer, epochs=epochs))
    return c


def results(c, **kinds):
    """Losses and weights, and what the evaluations gave."""
    said = c.must("train", "alone.yaml", **kinds).out
    return losses(c), saved_weights(c, "alone"), re.findall(r"val_accuracy \S+", said)


def check_same(ours, theirs, what):
    check(ours[0] == theirs[0], f"{what}: {len(ours[0])} and {len(theirs[0])} losses, not the same")
    check(ours[1].keys() == theirs[1].keys(), f"{what}: {sorted(ours[1])} and {sorted(theirs[1])}")
    for name in ours[1]:
        check((ours[1][name] == theirs[1][name]).all(), f"{what}: {name} is another")
    check(ours[2] == theirs[2], f"{what}: {ours[2]} and {theirs[2]}")


def variables_on_a_gpu_have_the_bits_of_those_of_a_ps(weft):
    """There the host updates them, for the same gradients."""
    for optimizer, more in *((o, "") for o in OPTIMIZERS), (OPTIMIZERS[2], "freeze: [dense/kernel]\n"):
        got = []
        for ps in 0, 1:
            with alone(weft, optimizer=optimizer, ps=ps) as c:
                c.write("alone.yaml", c.read("alone.yaml") + more)
                got.append(results(c))
        check(len(got[0][0]) == 2 * STEPS or "accumulation" in optimizer, f"{len(got[0][0])} steps")
        check(len(got[0][0]) > STEPS // 2 and got[0][2], f"{len(got[0][0])} steps, {got[0][2]}")
        check_same(*got, optimizer + more)


def variables_of_a_gpu_are_saved_and_go_on_anywhere(weft):
    """From a GPU to the cpu and back; and a worker that was killed goes on with the same bits."""
    for first, second in ("cuda:0", "cuda:1"), ("cpu", "cuda:0"), ("cuda:0", "cpu"):
        got = []
        for there in first, second:
            with alone(weft, optimizer=OPTIMIZERS[2], epochs=1, gpu=first) as c:
                c.must("train", "alone.yaml")
                c.write("cluster.yaml", c.read("cluster.yaml").replace(first, there))
                c.write("alone.yaml", ALONE.format(optimizer=OPTIMIZERS[2], epochs=2))
                c.must("train", "alone.yaml", "--resume")
                check(len(losses(c)) + len(losses(c, 2)) == 2 * STEPS, f"{first}, {there}: {losses(c)}")
                got.append(saved_weights(c, "alone"))
        exact = "cpu" not in (first, second)
        for name in got[0]:
            check((got[0][name] == got[1][name]).all() if exact else
                  np.allclose(got[0][name], got[1][name], rtol=1e-2, atol=2e-3), f"{first}, {second}: {name}")
    with alone(weft, epochs=8) as c:
        whole = results(c)
    with alone(weft, epochs=8) as c:
        c.must("up")
        c.must("submit", "alone.yaml")
        until(lambda: len(c.checkpoints("alone")) > 1 and len(losses(c)) > STEPS, "some checkpoints")
        c.kill("worker/0")
        c.until_job("alone", lambda j: j["state"] == "done", "the end of the job")
        after, ends = losses(c, 2), saved_weights(c, "alone")
        check(0 < len(after) < 8 * STEPS and after == whole[0][-len(after):], "other losses")
        check(all((ends[k] == whole[1][k]).all() for k in ends), "other weights")


def a_step_copies_its_batch_and_its_loss(weft):
    """And a word for each gradient, and the key of its random draws: no weights and no gradients."""
    for optimizer in OPTIMIZERS[0], OPTIMIZERS[3], OPTIMIZERS[-1]:
        check_copies(weft, optimizer)


def check_copies(weft, optimizer):
    told = {}
    for epochs in 1, 2, 3:
        with alone(weft, optimizer=optimizer, epochs=epochs) as c:
            c.env["WEFT_CUDA_HOST"] = "tell=" + c.path("told")
            text = c.read("alone.yaml").replace("  eval: {x: x.npy, y: y.npy}\n", "")
            # one split: the first batch of another comes ahead where the master has sent that one by then
            text = text.replace("split_records: 500", f"split_records: {STEPS * 32}")
            c.write("alone.yaml", text.replace("every_steps: 20", "every_steps: 100000"))
            c.must("train", "alone.yaml")
            told[epochs] = [int(c.read("told").split()[i]) for i in (0, 1, 4)]
    into, out, within = (told[3][i] - told[2][i] for i in (0, 1, 2))
    check([into, out] == [told[2][i] - told[1][i] for i in (0, 1)], f"{optimizer}: epochs differ: {told}")
    check(into == RECORDS * (4 * 144 + 8) + STEPS * 16, f"{into} bytes go in with {RECORDS} records")
    # batches that came ahead: all but the last of an epoch, which is smaller, and the one behind it
    check(within == (STEPS - 2) * 32 * (4 * 144 + 8), f"{within} bytes of {STEPS} steps were there ahead")
    # the loss and the number of right answers; and a word for each of eight gradients and statistics
    check(out <= STEPS * (4 + 8 + 4 * 8), f"{out} bytes come out of {STEPS} steps")


def weights_and_gradients_are_copied_without_the_host(weft):
    """Parameter servers' lie in memory of messages, which the GPU's worker pins where it is large. A GPU that
    refuses some costs time alone. And the GPU has work while gradients leave."""
    large, small = 4 * 144 * 512, 4 * (512 + 512 * 5 + 5)
    got = []
    for transport, epochs, wrong in ("shm", 1, ""), ("shm", 1, "fail=pin error=2 after=0 "), ("tcp", 4, ""):
        with cluster(weft, wrong, transport="ipc" if transport == "shm" else "tcp") as c:
            c.env.update(WEFT_CUDA_HOST=wrong + "tell=" + c.path("told"), WEFT_SHM="01"[transport == "shm"])
            text = JOB.replace("units: 16", "units: 512").replace("epochs: 4", f"epochs: {epochs}")
            c.write("digits.yaml", text + "consistency: {mode: async, pipeline: 0}\n")
            c.must("train", "digits.yaml")
            got.append(losses(c))
            steps = len(got[-1])
            into, out, by_hand, ahead, _ = (int(n) for n in c.read("told").split())
            check(ahead >= 3 * steps, f"{transport}: the GPU had work behind {ahead} gradients of {steps} steps")
            most = steps * 2 * small + (2 * large if wrong else 0)
            if transport == "tcp":  # its first messages, until a connection of weft's own is there, are ZeroMQ's
                most = (into + out) * 3 // 4
            check(min(into, out) > steps * large and 0 < by_hand <= most,
                  f"{transport}: of {into} and {out} bytes {by_hand} are copied by the host")
            said = c.read(os.path.join(".weft", "logs", "worker-0.log")).count(" net.not_pinned device=cuda:0 ")
            check(said == bool(wrong), f"{transport}: {said} lines of memory that is not pinned")
    check(got[0] and got[0] == got[1] == got[2][:len(got[0])], f"{got}")


def products_are_rounded_where_a_job_asks_for_it(weft):
    """TF32 has 11 significant bits. Without a GPU nothing is rounded, and the log says so."""
    got = {}
    for gpu in "cuda:0", "cpu":
        for more in "", "compute: tf32\n":
            with alone(weft, epochs=1, gpu=gpu) as c:
                c.write("alone.yaml", c.read("alone.yaml") + more)
                c.must("train", "alone.yaml")
                got[gpu, more] = np.array([float.fromhex(loss) for _, loss in losses(c)])
                said = c.read(os.path.join(".weft", "logs", "worker-0.log"))
                check(('compute.float32 why="GPUs alone compute in tf32"' in said) == (gpu == "cpu" and more != ""),
                      f"{gpu}, {more}: {said}")
    exact, rounded = got["cuda:0", ""], got["cuda:0", "compute: tf32\n"]
    check((exact != rounded).any() and np.allclose(exact, rounded, rtol=1e-2), f"{exact}\n{rounded}")
    check((got["cpu", ""] == got["cpu", "compute: tf32\n"]).all(), f"{got}")


def algorithms_are_chosen_once(weft):
    """The next job takes them from the folder, and a job can forbid it. The plug-in's have equal bits."""
    got, said = [], []
    with tempfile.TemporaryDirectory() as folder:
        for more in "", "", "deterministic: true\n":
            with alone(weft, epochs=1) as c:
                c.env["WEFT_CACHE"] = folder
                c.write("alone.yaml", c.read("alone.yaml") + more)
                c.must("train", "alone.yaml")
                got.append(losses(c))
                log = c.read(os.path.join(".weft", "logs", "worker-0.log"))
                said.append(re.findall(r"cuda\.chosen device=cuda:0 timed=(\d+) took_ms=\d+ kept=(\d+) built=\d+ built_ms=\d+", log))
    sums = [(sum(int(n) for n, _ in s), sum(int(n) for _, n in s)) for s in said]
    # two layers with two batches each and their gradients, and evaluations
    check(sums[0][0] >= 10 and sums[1] == (0, sum(sums[0])) and sums[2] == (0, 0), f"measured and kept: {said}")
    check(got[0] and got[0] == got[1] == got[2], f"{got}")


def bad_gradients(weft, on_nan, bad, ps, batches=1):
    """A job on a GPU whose gradient, and not its loss, is NaN where a record is zeros: it was said last."""
    node, info = helper.make_node, helper.make_tensor_value_info
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["y"]), node("Sqrt", ["y"], ["r"], name="root"),
         node("Mul", ["r", "v"], ["s"]), node("ReduceMean", ["s"], ["loss"], keepdims=0)], "root",
        [info("x", TensorProto.FLOAT, ["n", 4])], [info("loss", TensorProto.FLOAT, [])],
        [numpy_helper.from_array(np.ones((4, 1), np.float32), "w"),
         numpy_helper.from_array(np.float32(2), "v")])
    x = np.random.default_rng(1).uniform(0.5, 1.5, (256, 4)).astype(np.float32)
    x[bad] = 0
    with cluster(weft, ps=ps) as c:
        with open(c.path("root.onnx"), "wb") as f:
            f.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                      ir_version=8).SerializeToString())
        np.save(c.path("x.npy"), x)
        c.write("root.yaml", "job: root\nmodel: {onnx: root.onnx}\nloss: loss\nbatch: 8\nepochs: 2\n"
                "data: {format: npy, train: {x: x.npy}, split_records: 32}\nseed: 1\n"
                f"optimizer: {{sgd: {{learning_rate: 0.001, momentum: 0.5, gradient_accumulation_steps: {batches}}}}}\n"
                f"consistency: {{mode: async, pipeline: 0}}\non_nan: {on_nan}\n")
        c.must("up")
        said = c.must("train", "root.yaml", code=0 if on_nan == "skip" else 1).err.strip().split("\n")[-1]
        if on_nan != "skip":
            folder = re.search(r"replay: weft grad (\S+); ", said)[1]
            kept = np.load(os.path.join(folder, "weights", "w.npy"))
            result = c.bare("grad", folder)
            return said.replace(folder, "FOLDER"), kept, result.out
        return c.job("root")["dropped_steps"], saved_weights(c, "root")


def a_gradient_on_a_gpu_that_is_no_number_is_named(weft):
    """As that of a job whose variables a ps has: the sentence, the step that is kept and its replay."""
    theirs, ours = (bad_gradients(weft, "stop", [100], ps) for ps in (1, 0))
    check(re.search(r'NaN in the gradient of "w" at step \d+ \(worker/0, epoch 1, split \d, batch \d\); '
                    r"first bad value: \w+ ", ours[0]), ours[0])
    check(ours[0] == theirs[0] and ours[2] == theirs[2], f"{ours}\n{theirs}")
    check((ours[1] == theirs[1]).all() and (ours[1] != 1).any(), f"{ours}\n{theirs}")


def a_step_is_left_out_on_a_gpu(weft):
    for batches in 1, 2:
        theirs, ours = (bad_gradients(weft, "skip", [100, 177], ps, batches) for ps in (1, 0))
        check(ours[0] == theirs[0] == 4, f"{ours}\n{theirs}")
        for name, value in ours[1].items():
            check(np.isfinite(value).all() and (value == theirs[1][name]).all(), f"{name}: {value}, {theirs[1]}")


def memory_for_variables_is_asked_for_by_name(weft):
    """Allocations fail one after the other, until none does."""
    named, after = set(), 0
    while True:
        with alone(weft, f"fail=alloc after={after} error=2", optimizer=OPTIMIZERS[1], epochs=1) as c:
            result = c.run("train", "alone.yaml")
        if result.code == 0:
            break
        found = re.search(r'cuda:0 has no (\d+) bytes left for the (\w+) of "(\S+)"; lower the batch', result.err)
        check(found or re.search(r"cuda:0 has no \d+ bytes left|no memory left", result.err), result)
        if found:
            named.add((found[2], found[3], int(found[1])))
        after += 1
    for array in "weights", "momentum", "gradient":
        check((array, "dense/kernel", 4 * 144 * 16) in named, f"{array} of dense/kernel: {named}")
    check(("weights", "batch_normalization/moving_mean", 64) in named, f"{named}")


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
    job = JOB + "deterministic: true\n"  # algorithms take different workspace
    with cluster(weft, "memory=24000") as c:
        c.write("digits.yaml", job)
        result = c.run("train", "digits.yaml")
        found = re.search(r"cuda:0 has no \d+ bytes left, .*; a batch of (\d+) fits", result.err)
        check(result.code == 1 and found, result)
        fits = int(found[1])
        check(1 <= fits < 25, f"{fits} of 25")
        c.must("train", "digits.yaml", "--set", f"batch={fits}")
        result = c.run("train", "digits.yaml", "--set", f"batch={fits + 1}")
        check(result.code == 1 and f"a batch of {fits} fits" in result.err, result)
    with cluster(weft, "memory=45000", ps=0) as c: # with the variables, whose memory is taken later
        c.write("digits.yaml", job)
        result = c.run("train", "digits.yaml", "--set", "batch=200")
        found = re.search(r"cuda:0 has no \d+ bytes left, .*; a batch of (\d+) fits", result.err)
        check(result.code == 1 and found, result)
        result = c.run("train", "digits.yaml", "--set", f"batch={found[1]}")
        # The job begins; a plan for the short batch at its end may be too much.
        check(result.code == 0 or "failed: step" in result.err, result)
        result = c.run("train", "digits.yaml", "--set", f"batch={int(found[1]) + 1}")
        check(result.code == 1 and 'bytes left for the' in result.err, result)


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
        check("optimizer's slots" not in done.out, done)
        # A worker with the variables: 144 x 16 + 16 + 16 x 5 + 5 weights, their gradients, and a slot.
        text = c.read("digits.yaml").replace("0.05}", "0.05, momentum: 0.9}")
        for more in "", ", clipvalue: 1.0":
            c.write("digits.yaml", text.replace("momentum: 0.9", "momentum: 0.9" + more))
            alone = c.bare("graph", "digits.yaml", "--memory", "--ps", "0", "--device", "cuda:7")
            found = re.search(r"cuda:7 +(\S+ \S+)  of weights, gradients and the optimizer's slots", alone.out)
            check(alone.code == 0 and found and found[1] == "28.2 KiB", alone)
            sizes = [float(re.search(r"  arena +(\S+) KiB", d.out)[1]) for d in (done, alone)]
            check(sizes[1] < sizes[0], f"{sizes}: weights are not of the step's own memory")
        done = c.bare("graph", "digits.yaml", "--device", "cuda:7")
        check(done.code == 2 and "add --memory" in done.err, done)


def values_are_shown_as_a_gpu_keeps_them(weft):
    """What convolutions make is narrow there, and in a plan for it, which then is smaller."""
    layers = "".join("    - conv2d: {filters: 32, kernel_size: 5, padding: same, data_format: channels_first}\n"
                     "    - batch_normalization: {axis: 1}\n    - relu\n" for _ in range(3))
    with cluster(weft, "gpus=0") as c:
        c.write("digits.yaml", JOB.replace("    - flatten\n", layers + "    - flatten\n") + "compute: bfloat16\n")
        shown = {}
        for device in "cpu", "cuda:0":
            done = c.bare("graph", "digits.yaml", "--memory", "--values", "--ps", "0", "--device", device)
            kept = re.search(r"kept in bfloat16: (\d+) of \d+ values", done.out)
            check(done.code == 0 and kept, done)
            types = set(re.findall(r"^\S+ +(Conv|BatchNormalizationTrain) +(\w+)\[batch,", done.out, re.M))
            arena = re.search(r"  arena +(\S+) (MiB|KiB)", done.out)
            shown[device] = int(kept[1]), types, float(arena[1]) * (1024 if arena[2] == "MiB" else 1)
        cpu, gpu = shown["cpu"], shown["cuda:0"]
        check(("Conv", "float32") in cpu[1] and {kind for _, kind in gpu[1]} == {"bfloat16"}, f"{shown}")
        check(gpu[0] >= cpu[0] + 10 and gpu[2] < 0.75 * cpu[2], f"{shown}")


main([variables_on_a_gpu_have_the_bits_of_those_of_a_ps, variables_of_a_gpu_are_saved_and_go_on_anywhere, a_step_copies_its_batch_and_its_loss,
      weights_and_gradients_are_copied_without_the_host,
      products_are_rounded_where_a_job_asks_for_it, algorithms_are_chosen_once,
      a_gradient_on_a_gpu_that_is_no_number_is_named, a_step_is_left_out_on_a_gpu, memory_for_variables_is_asked_for_by_name,
      jobs_have_the_losses_of_the_cpu, a_job_trains_on_a_gpu_without_a_cluster, a_file_runs_on_a_gpu_as_on_the_cpu, memory_is_planned_without_a_gpu,
      values_are_shown_as_a_gpu_keeps_them, what_is_wrong_with_a_gpu_is_said, a_batch_that_fits_is_named,
      a_plugin_of_another_weft_is_refused,
      a_gpu_that_fails_costs_the_job_a_worker])

# SPDX-License-Identifier: Apache-2.0
"""A model that is divided among workers by `place`: the losses, checkpoints and weights are those of
one worker, whoever dies meanwhile.

One worker that accumulates the gradients of as many batches as a step has micro-batches adds up the
same numbers in the same order: its losses have the same bits.
"""
import os
import re
import resource

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "safetensors")
import numpy as np  # noqa: E402
import small  # noqa: E402
from losses import saved_weights  # noqa: E402

RECORDS, WIDTH, CLASSES = 800, 12, 4
MODEL = """job: divided
model:
  input: {{x: [12]}}
  layers:
    - dense: {{units: 24, activation: relu, name: block0}}
    - layer_normalization: {{name: norm0}}
    - dense: {{units: 24, activation: tanh, name: block1}}
    - dropout: {{rate: 0.1, name: drop}}
    - add: {{inputs: [drop, norm0], name: sum1}}
    - batch_normalization: {{name: norm1}}
    - dense: {{units: 24, activation: gelu, name: block2}}
    - add: {{inputs: [block2, norm0], name: sum2}}
    - dense: {{units: 4, name: head}}
loss: sparse_categorical_crossentropy
"""
JOB = MODEL + """metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
  split_records: 200
batch: {batch}
epochs: {epochs}
optimizer: {{adam: {{learning_rate: 0.003{accumulate}}}}}
checkpoint: {{every_steps: {every_steps}, keep: 3}}
seed: 1
{how}
"""
TWO = 'place: {"block0/*": worker/0, "norm1/*": worker/1}\nmicro_batches: 4'
FOUR = ('place: {"block0/*": worker/0, "block1/*": worker/1, "block2/*": worker/2, "head/*": worker/3}\n'
        "micro_batches: 4")
AUTO = "place: auto\nmicro_batches: 4"


def write_job(c, how, batch=16, epochs=4, every_steps=70, accumulate=0, plain=False, clip=0, bad=None):
    """clip: the global norm. bad: a record that has NaN."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(RECORDS, WIDTH)).astype(np.float32)
    np.save(c.path("y.npy"), x[:, :CLASSES].argmax(axis=1).astype(np.int64))
    if bad is not None:
        x[bad, 3] = np.nan
    np.save(c.path("x.npy"), x)
    more = f", gradient_accumulation_steps: {accumulate}" if accumulate else ""
    more += f", global_clipnorm: {clip}" if clip else ""
    text = JOB.format(how=how, batch=batch, epochs=epochs, every_steps=every_steps, accumulate=more)
    if plain:
        text = text.replace("batch_normalization", "layer_normalization").replace("rate: 0.1", "rate: 0")
    c.write("divided.yaml", text)
    c.env["WEFT_LOSS_LOG"] = c.path("losses")


def losses(c):
    """By epoch, split and step in it, of the newest generation that has made it."""
    return {(int(f[2]), int(f[3]), int(f[4])): f[5].lstrip("-") if "nan" in f[5] else f[5]
            for f in (line.split() for line in c.read("losses").splitlines())}


def trained(weft, how, workers=1, **kinds):
    with Cluster(weft, ps=0, workers=workers) as c:
        write_job(c, how, **kinds)
        c.must("up")
        out = c.must("train", "divided.yaml").out
        return losses(c), saved_weights(c, "divided"), out


def one_worker(weft, more="", **kinds):
    """Of the same arithmetic: 4 batches of 4 records to a step. more: lines of the job."""
    return trained(weft, "strategy: local\n" + more, batch=4, accumulate=4, **kinds)


def check_same(ours, theirs, what, steps=200):
    check(len(ours[0]) >= steps and ours[0].keys() == theirs[0].keys(),
          f"{what}: {len(ours[0])} and {len(theirs[0])} losses")
    for step in sorted(ours[0]):
        check(ours[0][step] == theirs[0][step],
              f"{what}: the loss of step {step} is {ours[0][step]}, and not {theirs[0][step]}")
    check(ours[1].keys() == theirs[1].keys(), f"{what}: {sorted(ours[1])} and {sorted(theirs[1])}")
    for name in ours[1]:
        check((ours[1][name] == theirs[1][name]).all(), f"{what}: other bits of {name}")


def stages_train_with_the_bits_of_one_worker(weft):
    """200 steps of 16 records, some of them short, with an evaluation after each epoch."""
    alone = one_worker(weft)
    for how, workers in ((TWO, 2), (FOUR, 4), (AUTO, 3)):
        ours = trained(weft, how, workers=workers)
        check_same(ours, alone, how)


def whoever_is_killed_the_losses_stay(weft):
    """The job goes back to its newest checkpoint, and makes the same steps again; a new master takes it over."""
    alone = one_worker(weft, epochs=40, every_steps=50)
    with Cluster(weft, ps=0, workers=4) as c:
        write_job(c, FOUR, epochs=40, every_steps=50)
        c.must("up")
        training = c.start("train", "divided.yaml")
        for generation, task in enumerate(("worker/3", "worker/1", "worker/0", "master"), 1):
            c.until_job("divided", lambda j: j["state"] == "running" and j["step"] > 100 * generation, "runs")
            begun = c.job("divided")["generation"]
            c.kill(task)
            if task != "master":
                c.until_job("divided", lambda j: j["state"] == "running" and j["generation"] > generation,
                            f"goes back after the death of {task}")
        result = c.end_of(training, 120)
        check(result.code == 0, f"{result}")
        job = c.job("divided")
        check(job["state"] == "done" and job["generation"] == begun >= 4, f"generation {begun} when the master died: {job}")
        check_same((losses(c), saved_weights(c, "divided")), alone, "killed", 2000)


def numbers(log):
    return np.array([float.fromhex(log[step]) for step in sorted(log)])


def stages_train_as_one_worker_with_the_whole_batch(weft):
    """A model without random numbers and statistics of batches, whose sums alone are in another order."""
    alone = trained(weft, "strategy: local", plain=True)
    ours = trained(weft, FOUR, workers=4, plain=True)
    check(len(alone[0]) == len(ours[0]) >= 200, f"{len(alone[0])} and {len(ours[0])} losses")
    apart = np.abs(numbers(alone[0]) - numbers(ours[0])).max()
    print(f"     {len(ours[0])} losses are within {apart:.1e} of those of one worker")
    check(apart < 1e-6, f"losses differ by {apart}")


def a_job_goes_on_in_one_worker_and_back(weft):
    """Its checkpoints are those of other strategies."""
    alone = trained(weft, "strategy: local", plain=True, epochs=6)
    with Cluster(weft, ps=0, workers=4) as c:
        write_job(c, FOUR, epochs=2, plain=True)
        c.must("up")
        c.must("train", "divided.yaml")
        files = [f for f in os.listdir(c.saved("divided", c.checkpoints("divided")[-1]))
                 if f.endswith(".safetensors")]
        check(len(files) == 4, f"a file for each stage: {files}")
        check([s["worker"] for s in c.job("divided")["stages"]] == [f"worker/{i}" for i in range(4)]
              and re.search(r"stages +worker/0 [^,]+, worker/1 ", c.must("status", "divided").out), c.job("divided"))
        for workers, strategy, epochs in ((1, "local", 4), (4, "stages", 6)):
            c.must("down")
            c.n_workers = workers
            c.resize(0)
            c.must("up")
            c.must("recover", "divided", "--set", f"strategy={strategy}", "--set", f"epochs={epochs}")
            until(lambda: c.job("divided")["state"] == "done", "the job ends")
        apart = np.abs(numbers(alone[0]) - numbers(losses(c))).max()
        check(len(losses(c)) == 300 and apart < 1e-6, f"losses differ by {apart}")
        weights = saved_weights(c, "divided")
        for name in weights:
            check(np.allclose(weights[name], alone[1][name], rtol=1e-4, atol=1e-5), f"{name} differs")


WIDE = 1792
PAIRS = 'place: {"block0/*": worker/0, "block2/*": worker/1, "block4/*": worker/2, "block6/*": worker/3}'
LAYERS = 8
LARGE = """job: {name}
model:
  input: {{x: [12]}}
  layers:
{layers}
    - dense: {{units: 4, name: head}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  split_records: 200
batch: {batch}
steps: 40
optimizer: {{adam: {{learning_rate: 0.0003{accumulate}}}}}
seed: 1
{how}
"""


def large_job(how, batch=8, accumulate="", name="large", wide=WIDE):
    layers = "\n".join(f"    - dense: {{units: {wide}, activation: relu, name: block{i}}}" for i in range(LAYERS))
    return LARGE.format(name=name, layers=layers, how=how, batch=batch, accumulate=accumulate)


def write_large_job(c, how, name="large", **kinds):
    c.write(f"{name}.yaml", large_job(how, name=name, **kinds))


def limit_memory(c, workers, more_bytes):
    """As an administrator's limit does: a worker may take so much beside what it has at rest."""
    for i in range(workers):
        pid = c.pid(f"worker/{i}")
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            has = int(next(line for line in f if line.startswith("VmData")).split()[1]) * 1024
        resource.prlimit(pid, resource.RLIMIT_DATA, (has + more_bytes, has + more_bytes))


def large_trained(weft, how, workers, limit=None, code=0, **kinds):
    """A smaller job goes before, so that the threads and links of a worker are there."""
    with Cluster(weft, ps=0, workers=workers) as c:
        write_job(c, "")
        write_large_job(c, PAIRS if workers > 1 else "strategy: local", name="small", wide=320)
        c.must("up")
        c.must("train", "small.yaml")
        write_large_job(c, how, **kinds)
        if limit:
            limit_memory(c, workers, limit)
        with open(c.path("losses"), "w", encoding="utf-8"):
            pass
        said = c.must("train", "large.yaml", code=code, timeout=120).err.strip()
        return losses(c), said.splitlines()[-1] if said else ""


def a_model_that_no_worker_may_hold_trains(weft):
    """The variables with their slots and gradients take 514 MB; a worker may have 300 beside what it has
    at rest, of which OpenBLAS takes 128 MiB."""
    limit = 300 << 20
    alone = {"batch": 2, "accumulate": ", gradient_accumulation_steps: 4"}
    wanted, _ = large_trained(weft, "strategy: local", 1, **alone)
    _, said = large_trained(weft, "strategy: local", 1, limit, 1, **alone)
    print(f"     {said}")
    check("memory" in one_sentence(said), said)
    for how in (PAIRS, "place: auto"):
        ours, _ = large_trained(weft, how, 4, limit)
        check(len(ours) == 40 and ours == wanted, f"{how}: {len(ours)} losses; {len(wanted)} wanted")
    _, said = large_trained(weft, 'place: {"block0/*": worker/0, "block7/*": worker/1}', 4, limit, 1)
    print(f"     {said}")
    check("stage 0 of 2, on worker/0: " in said and "memory" in said, said)
    _, said = large_trained(weft, 'place: {"block0/*": worker/0, "block1/*": worker/1}', 4, limit, 1)
    print(f"     {said}")
    check("stage 1 of 2, on worker/1: " in said and "memory" in said, said)


def over_tcp_and_beside_other_jobs(weft):
    """With checksums, without memory that processes share; links of other strategies are apart."""
    alone = one_worker(weft)
    with Cluster(weft, ps=0, workers=4, transport="tcp", more="shared_memory: off\nchecksums: always") as c:
        write_job(c, FOUR)
        c.must("up")
        c.must("train", "divided.yaml")
        with open(c.path("losses"), "w", encoding="utf-8"):
            pass
        small.write_job(c)
        c.must("train", "small.yaml")
        write_job(c, 'place: {"block0/*": worker/1, "block2/*": worker/3}\nmicro_batches: 4')
        with open(c.path("losses"), "w", encoding="utf-8"):
            pass
        c.must("train", "divided.yaml")
        check_same((losses(c), saved_weights(c, "divided")), alone, "over TCP")


def what_cannot_be_divided_is_said(weft):
    with Cluster(weft, ps=1, workers=2) as c:
        write_job(c, TWO)
        c.must("up")
        failed = one_sentence(c.must("train", "divided.yaml", code=2).err)
        check('"place" divides the model among workers' in failed and "the cluster has 1 ps" in failed, failed)
    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, FOUR)
        for words in ("train",), ("train", "--check"):  # before anything is started
            failed = one_sentence(c.must(*words, "divided.yaml", code=2).err)
            check(re.match(r'weft: divided\.yaml:\d+: place: "block2/\*" is to be on worker/2, and the cluster has 2 workers', failed),
                  failed)
            check(not os.path.exists(c.path(".weft", "logs")), "a cluster was started")
        c.must("up")
        failed = one_sentence(c.must("submit", "divided.yaml", code=2).err)
        check('"block2/*" is to be on worker/2' in failed, failed)
        write_job(c, TWO.replace("norm1", "nrm1"))
        failed = one_sentence(c.must("train", "divided.yaml", code=2).err)
        check('place: "nrm1/*" matches no variable of the model; there is "' in failed, failed)


if __name__ == "__main__":
    main([stages_train_with_the_bits_of_one_worker, stages_train_as_one_worker_with_the_whole_batch,
          whoever_is_killed_the_losses_stay, a_job_goes_on_in_one_worker_and_back,
          over_tcp_and_beside_other_jobs, what_cannot_be_divided_is_said, a_model_that_no_worker_may_hold_trains])

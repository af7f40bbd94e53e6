# SPDX-License-Identifier: Apache-2.0
"""weft predict --spread of a job that `place` divides: its stages are on the workers, and no process has the whole
model. The result has the bytes of one process with the same batch, whoever dies meanwhile.
"""
import os
import subprocess

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "onnx", "safetensors")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import stages  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from predict_spread import by_workers, content, parts  # noqa: E402
from stages import AUTO, FOUR, TWO  # noqa: E402

RECORDS, WIDTH = 4000, 12
JOB = stages.MODEL + """data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  map: {{x: [standardise]}}
batch: 16
steps: 100
optimizer: adam
checkpoint: {{every_steps: 40, keep: 9}}
seed: 1
{how}
"""
WORDS = ["predict", "divided", "--input", "x=rows.npy", "--batch", "32", "--split-records", "200"]


def write_job(c, how, text=JOB, records=RECORDS):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(800, WIDTH)).astype(np.float32)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), x[:, :4].argmax(axis=1).astype(np.int64))
    np.save(c.path("rows.npy"), rng.normal(size=(records, WIDTH)).astype(np.float32))
    c.write("divided.yaml", text.format(how=how))


def same(c, words, out="all.npy", one="one.npy"):
    """By stages, and by one process."""
    by_workers(c.run(*words, "-o", out, "--spread"))
    c.must(*words, "-o", one)
    files = ["/" + f for f in os.listdir(c.path(one))] if os.path.isdir(c.path(one)) else [""]
    for file in files:
        check(content(c, out + file) == content(c, one + file), f"{words}: other bytes in {out}{file}")


def stages_predict_what_one_process_does(weft):
    """The newest checkpoint, another one by its step, its folder; npy, csv and a folder; batches that do not divide the
    splits, and one that has all records."""
    for how, workers, ps in ((TWO, 2, 0), (FOUR, 4, 0), (AUTO, 3, 0)):
        with Cluster(weft, ps=ps, workers=workers) as c:
            write_job(c, how, records=1003)
            c.must("up")
            c.must("train", "divided.yaml")
            same(c, WORDS)
            same(c, [*WORDS, "--from", "40"], "early.npy", "early-one.npy")
            check(content(c, "early.npy") != content(c, "all.npy"), "the step makes no difference")
            same(c, ["predict", c.saved("divided", c.checkpoints("divided")[0]), *WORDS[2:]], "folder.npy", "folder-one.npy")
            same(c, WORDS, "all.csv", "one.csv")
            same(c, WORDS, "all", "one")
            same(c, [*WORDS[:4], "--batch", "5000"], "whole.npy", "whole-one.npy")
            same(c, [*WORDS[:4], "--batch", "1"], "single.npy", "single-one.npy")
            check([j["job"] for j in c.status()["jobs"]] == ["divided"], f"jobs are left: {c.status()['jobs']}")


def the_best_checkpoint_predicts(weft):
    """Which is not the newest one: the data of the evaluation have other labels, and each epoch makes it worse."""
    text = (JOB.replace("  map:", "  eval: {{x: x.npy, y: other.npy}}\n  map:").replace("steps: 100", "epochs: 4") +
            "callbacks: [model_checkpoint]\n")
    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, TWO, text=text, records=1003)
        np.save(c.path("other.npy"), 3 - np.load(c.path("y.npy")))
        c.must("up")
        c.must("train", "divided.yaml")
        best = c.read(os.path.relpath(c.saved("divided", "best"), c.folder)).strip()
        check(best != c.checkpoints("divided")[-1], f"the best of {c.checkpoints('divided')} is {best}")
        same(c, [*WORDS, "--from", "best"], "best.npy", "best-one.npy")
        same(c, WORDS)
        check(content(c, "best.npy") != content(c, "all.npy"), "the best one makes no difference")


def whoever_is_killed_it_goes_on(weft):
    """Stages and the master, one after the other, while splits are computed: no record is missing or there twice. Then the
    command and all else: given again it goes on where the parts end."""
    words = [*WORDS[:4], "--batch", "4", "--split-records", "64"]
    with Cluster(weft, ps=0, workers=4) as c:
        write_job(c, FOUR, records=60000)
        c.must("up")
        c.must("train", "divided.yaml")
        c.must(*words, "-o", "one.npy")
        p = c.start(*words, "-o", "all.npy", "--spread")
        for task in ("worker/2", "worker/0", "master", "worker/3"):
            had = len(parts(c, "all.npy"))
            until(lambda: len(parts(c, "all.npy")) > had + 5 or p.poll() is not None, f"parts before {task}")
            check(p.poll() is None, f"it ended before {task} was killed: {c.read('err0')}")
            c.kill(task)
        had = len(parts(c, "all.npy"))
        until(lambda: len(parts(c, "all.npy")) > had + 5, "parts after them")
        c.kill_all()
        check(not os.path.exists(c.path("all.npy")), "it is there before it is whole")
        have = len(parts(c, "all.npy"))
        told = by_workers(c.run(*words, "-o", "all.npy", "--spread")).err
        check(f"{have} of 938 parts of all.npy are there: it goes on" in told, told)
        check(content(c, "all.npy") == content(c, "one.npy"), "other bytes")


LARGE_WORDS = ["predict", "large", "--input", "x=x.npy", "--batch", "8"]


def limited(c, how, workers, limit):
    """Trains the large job, and a small one, whose prediction makes the threads and links that a worker has at rest."""
    write_job(c, FOUR if workers == 4 else "strategy: local")
    c.write("large.yaml", stages.large_job(how).replace("steps: 40", "steps: 3"))
    c.must("up")
    c.must("train", "divided.yaml")
    c.must("train", "large.yaml", timeout=120)
    c.must("down")
    c.must("up")
    c.must(*WORDS, "-o", "small.npy", "--spread")
    if limit:
        stages.limit_memory(c, workers, limit)


def small_command(c, limit, *words):
    """The command itself with so much memory."""
    return subprocess.run(["prlimit", f"--data={limit}", c.weft, *LARGE_WORDS, "--threads", "1", "-o", *words],
                          cwd=c.folder, env=dict(c.env, OPENBLAS_NUM_THREADS="1"), capture_output=True, text=True, check=False)


def a_model_that_no_worker_may_hold_predicts(weft):
    """Its variables take 103 MB, and those of a stage 26; a worker may have 100 beside what it has at rest."""
    limit = 100 << 20
    with Cluster(weft, ps=0, workers=1) as c:
        limited(c, "strategy: local", 1, limit)
        failed = c.must(*LARGE_WORDS, "-o", "all.npy", "--spread", code=1).err.strip().splitlines()[-1]
        print(f"     {failed}")
        check("memory" in one_sentence(failed), failed)
    for how in (stages.PAIRS, "place: auto"):
        with Cluster(weft, ps=0, workers=4) as c:
            limited(c, how, 4, limit)
            same(c, LARGE_WORDS)
            check(c.most_memory("master") < limit, f"the master has taken {c.most_memory('master')} bytes")
            done = small_command(c, limit, "less.npy", "--spread")
            check(done.returncode == 0 and content(c, "less.npy") == content(c, "one.npy"), str(done))
    with Cluster(weft, ps=0, workers=4) as c:
        limited(c, 'place: {"block0/*": worker/0, "block1/*": worker/1}', 4, limit)
        failed = c.must(*LARGE_WORDS, "-o", "all.npy", "--spread", code=1).err.strip().splitlines()[-1]
        print(f"     {failed}")
        check("stage 1 of 2, on worker/1: " in one_sentence(failed) and "memory" in failed, failed)
        failed = small_command(c, limit, "one.npy")
        print(f"     {failed.stderr.strip()}")
        check(failed.returncode == 1 and "memory" in failed.stderr and "add --spread" in one_sentence(failed.stderr),
              str(failed))


def over_tcp_and_beside_ps(weft):
    """With checksums and without memory that processes share; the ps of a cluster have nothing to do."""
    with Cluster(weft, ps=0, workers=2, transport="tcp", more="shared_memory: off\nchecksums: always") as c:
        write_job(c, TWO)
        c.must("up")
        c.must("train", "divided.yaml")
        same(c, WORDS)
        c.must("down")
        c.resize(1)
        c.must("up")
        same(c, WORDS, "more.npy")


ONNX = """job: divided
model: {{onnx: m.onnx}}
loss: sparse_categorical_crossentropy
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
batch: 16
steps: 20
optimizer: adam
freeze: ["V"]
{how}
"""


def tied_and_frozen_weights_are_there(weft):
    """Of an ONNX file: W is used by both stages, V is in no checkpoint, and neither is B, which is a constant."""
    rng = np.random.default_rng(3)
    made = {"W": rng.normal(size=(12, 32)), "V": rng.normal(size=(32, 12)), "H": rng.normal(size=(32, 4)) / 6}
    nodes = [helper.make_node("MatMul", ["x", "W"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]),
             helper.make_node("Constant", [], ["B"], value=numpy_helper.from_array(
                 rng.normal(size=(1024, 12)).astype(np.float32))),
             helper.make_node("ReduceSum", ["B", "zero"], ["s"], keepdims=1),
             helper.make_node("MatMul", ["b", "V"], ["c"]), helper.make_node("Add", ["c", "s"], ["d"]),
             helper.make_node("Tanh", ["d"], ["e"]), helper.make_node("MatMul", ["e", "W"], ["f"]),
             helper.make_node("MatMul", ["f", "H"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(a.astype(np.float32), k) for k, a in made.items()] +
        [numpy_helper.from_array(np.array([0]), "zero")])
    with Cluster(weft, ps=0, workers=2) as c:
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), c.path("m.onnx"))
        write_job(c, 'place: {"W": worker/0, "V": worker/1, "H": worker/1}\nmicro_batches: 4', text=ONNX)
        c.must("up")
        c.must("train", "divided.yaml")
        same(c, WORDS)
        left = [f for f in os.listdir(c.path("checkpoints")) if not f.startswith("divided")]
        check(not left, f"the prediction leaves {left}")


UNUSED = """job: two
model:
  input: {{x: [12]}}
  layers:
    - dense: {{units: 8, name: a}}
    - dense: {{units: 3, name: one}}
    - dense: {{units: 4, name: two, inputs: a}}
  outputs: [one, two]
loss: {{two: sparse_categorical_crossentropy}}
labels: {{two: y}}
data: {{format: npy, train: {{x: x.npy, y: y.npy}}}}
batch: 16
optimizer: sgd
{how}
"""


def what_the_loss_does_not_need_is_in_no_stage(weft):
    """A run keeps what it trains, and one process makes first values of the rest."""
    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, "place: auto", text=UNUSED)
        c.must("up")
        c.must("train", "divided.yaml")
        failed = one_sentence(c.must("predict", "two", "--input", "x=rows.npy", "-o", "out", "--spread", code=1).err)
        check('the run did not keep "one/' in failed and "predict without --spread" in failed, failed)
        c.must("predict", "two", "--input", "x=rows.npy", "-o", "whole")


def what_cannot_be_is_said(weft):
    with Cluster(weft, ps=0, workers=2) as c:
        write_job(c, TWO)
        c.must("up")
        c.must("train", "divided.yaml")
        words = ["predict", "divided", "-o", "a.npy", "--spread"]
        failed = one_sentence(c.must(*words, code=2).err)
        check('divided wants input "x"' in failed and "add --input x=FILE" in failed, failed)
        failed = one_sentence(c.must(*words, "--input", "z=rows.npy", code=2).err)
        check('has no input "z"' in failed, failed)
        failed = one_sentence(c.must(*words, "--input", "x=y.npy", code=1).err)
        check("1 columns, and 12 in the training data" in failed, failed)
        failed = one_sentence(c.must(*words, "--input", "x=none.npy", code=1).err)
        check("none.npy" in failed, failed)
        c.must("down")
        c.n_workers = 1
        c.resize(0)
        c.must("up")
        failed = one_sentence(c.must(*WORDS, "-o", "a.npy", "--spread", code=1).err)
        check('"norm1/*" is to be on worker/1, and the cluster has 1 worker' in failed, failed)
        c.must(*WORDS, "-o", "a.npy")


if __name__ == "__main__":
    main([stages_predict_what_one_process_does, the_best_checkpoint_predicts, whoever_is_killed_it_goes_on,
          tied_and_frozen_weights_are_there, over_tcp_and_beside_ps, what_the_loss_does_not_need_is_in_no_stage,
          what_cannot_be_is_said, a_model_that_no_worker_may_hold_predicts])

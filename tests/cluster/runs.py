# SPDX-License-Identifier: Apache-2.0
"""Each training of a job is a run with a number, checkpoints and a history of its own."""
import json
import os

import small
from weftlib import Cluster, check, main, one_sentence, until


def runs_of(c):
    return sorted(n for n in os.listdir(c.path(".weft", "jobs")) if n.startswith("small#"))


def a_job_is_trained_again_and_again(weft):
    with Cluster(weft) as c:
        small.write_job(c, change=[("seed: 1", "keep_runs: 2\nseed: 1")])
        c.must("train", "small.yaml")  # each starts a cluster and ends it
        result = c.must("train", "small.yaml", "--set", "epochs=1", "--set", "checkpoint.keep=1")
        check("checkpoints/small#2/step-00000064" in result.out, str(result))
        check("next: weft export small -o small.onnx" in result.out, str(result))
        check(runs_of(c) == ["small#1", "small#2"], str(runs_of(c)))
        check("step-00000128: 512 records" in c.must("eval", "small#1").out, "not that of run 1")
        check("step-00000064: 512 records" in c.must("eval", "small").out, "not the newest run")
        listed = json.loads(c.must("ckpt", "ls", "small#2", "--json").out)
        check([e["step"] for e in listed] == [64], str(listed))
        c.must("up")
        c.must("train", "small.yaml")
        check(runs_of(c) == ["small#2", "small#3"], f"keep_runs: 2, and there are {runs_of(c)}")
        check(sorted(os.listdir(c.path("checkpoints"))) == ["small#2", "small#3"], "checkpoints")
        names = [(j["job"], j["run"], j["name"]) for j in c.status()["jobs"]]
        check(names == [("small", 2, "small#2"), ("small", 3, "small#3")], str(names))
        c.must("down")


def what_is_under_way_is_not_trained_twice(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=100000)
        c.must("up")
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["state"] == "running", "runs")
        for words in (["submit", "small.yaml"], ["submit", "small.yaml", "--resume"]):
            result = c.must(*words, code=1)
            check("small#1 is running; follow it with: weft follow small#1" in one_sentence(result.err),
                  str(result))
        said = one_sentence(c.must("rm", "small", code=1).err)
        check("job small#1 is running; stop it first: weft stop small#1" in said, said)
        check(runs_of(c) == ["small#1"], str(runs_of(c)))
        c.must("submit", "small.yaml", "--name", "other", "--set", "epochs=1")
        following = c.start("follow", "other")
        c.must("stop", "small")
        result = c.end_of(following)
        check(result.code == 0 and "checkpoints/other#1/" in result.out, str(result))
        result = c.must("follow", "none", code=1)
        check("the master knows no job none" in one_sentence(result.err), str(result))
        c.must("submit", "small.yaml", "--set", "epochs=1")
        c.until_job("small", lambda j: j["run"] == 2 and j["state"] == "done", "trained again")
        c.must("down")


def a_failed_job_is_trained_again(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        c.must("up")
        result = c.must("train", "small.yaml", "--set", "optimizer.learning_rate=1e30", code=1)
        check("job small#1 failed: the loss is" in result.err, str(result))
        c.must("train", "small.yaml")
        states = [j["state"] for j in c.status()["jobs"]]
        check(states == ["failed", "done"], str(states))
        c.must("down")


def resume_refuses_another_model_before_it_changes_anything(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        c.must("train", "small.yaml")
        for change, says in (
                (("units: 32", "units: 24"),
                 'the variable "dense/kernel" was float32[16, 32], and is float32[16, 24]'),
                (("relu", "tanh"), "was Relu, and is Tanh"),
                (("    - dense: {units: 4}\n", "    - dense: {units: 4, use_bias: false}\n"),
                 'it had the variable "dense_1/bias" float32[4], and has it no longer')):
            small.write_job(c, change=[change])
            result = c.must("train", "small.yaml", "--resume", code=1)
            sentence = one_sentence(result.err)  # nothing was started
            check("small#1 was trained with another model: " in sentence and says in sentence,
                  sentence)
        check("step-00000128" in c.must("export", "small", "-o", "s.onnx").out, "cannot be exported")
        small.write_job(c, rate=0.01, epochs=3)
        c.must("train", "small.yaml", "--resume")
        check(runs_of(c) == ["small#1"] and c.checkpoints("small")[-1] == "step-00000192",
              str(c.checkpoints("small")))
        again = c.must("train", "small.yaml", "--resume").err
        check("small#1 is complete: all its epochs are trained" in again, again)
        check(c.must("recover", "small", code=1).err.count("weft export small#1 -o small.onnx") == 1,
              "recover of a job that is done")


def resume_keeps_the_records_of_an_epoch(weft):
    """Another order within an epoch would train some of its records twice, and others never."""
    with Cluster(weft) as c:
        for steps, within in (40, True), (64, False):  # of 64 in an epoch
            small.write_job(c, epochs=3)
            c.must("train", "small.yaml", "--set", f"steps={steps}")
            for key, old, new, code in (("seed", "seed: 1", "seed: 2", within),
                                        ("data.shuffle", "  split", "  shuffle: false\n  split", within),
                                        ("data.validation_split", "  eval: {x: x.npy, y: y.npy}", "  validation_split: 0.5", True)):
                small.write_job(c, epochs=3, change=[(old, new)])
                result = c.must("train", "small.yaml", "--resume", "--set", f"steps={steps}", code=int(code))
                check(not code or f'another "{key}" would give small#' in one_sentence(result.err), f"{steps}: {result}")
        small.write_job(c, change=[("seed: 1", "freeze: [dense/kernel]")])
        said = one_sentence(c.must("train", "small.yaml", "--resume", code=1).err)
        check('another model: the variable "dense/kernel" was trained, and is not now' in said, said)


def a_run_goes_on_with_what_it_has_made(weft):
    """Not with fewer steps, nor with an optimizer whose state it lacks; and one that "steps" ended is within its epoch."""
    with Cluster(weft) as c:
        small.write_job(c, epochs=1)
        c.must("up")
        c.must("train", "small.yaml", "--set", "steps=40")
        for words, says in ((["recover", "small", "--set", "steps=39"], 'small#1 has made 40 steps, and "steps" is to be 39'),
                            (["recover", "small", "--set", "optimizer.momentum=0.9"],
                             'needs "momentum" of each variable, and checkpoints of small#1 do not have it'),
                            (["train", "small.yaml", "--resume", "--set", "steps=39"], 'small#1 has made 40 steps, and "steps" is 39'),
                            (["train", "small.yaml", "--resume", "--set", "optimizer.momentum=0.9"],
                             'needs "momentum" of each variable')):
            said = c.run(*words)
            check(said.code in (1, 2) and says in one_sentence(said.err), str(said))
        check(c.job("small")["state"] == "done", str(c.job("small")))
        said = c.must("train", "small.yaml", "--resume").err
        check("begins from step 40; it continues in epoch 1\n" in said and "is complete" not in said, said)
        check(c.job("small")["step"] == 64, str(c.job("small")))
        said = c.must("recover", "small", "--from", "40", "--set", "steps=50").err  # fewer than there are now
        check(c.job("small")["step"] == 50, said)
        c.must("down")


def removed_is_gone_with_and_without_a_cluster(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=1)
        for _ in range(2):
            c.must("train", "small.yaml")
        c.must("train", "--local", "small.yaml")
        check(runs_of(c) == ["small#1", "small#2", "small#3"], str(runs_of(c)))
        c.must("rm", "small#1")
        check(runs_of(c) == ["small#2", "small#3"], str(runs_of(c)))
        c.must("up")
        check([j["name"] for j in c.status()["jobs"]] == ["small#2"], str(c.status()["jobs"]))
        check("2 runs of small removed" in c.must("rm", "small").out, "not two")
        check(not c.status()["jobs"], str(c.status()["jobs"]))
        until(lambda: runs_of(c) == [] and os.listdir(c.path("checkpoints")) == [],
                "the folders are gone")
        c.must("down")
        c.must("up")
        check(not c.status()["jobs"], "what was removed is back")
        c.must("train", "small.yaml")
        check(runs_of(c) == ["small#1"], str(runs_of(c)))
        for word, says in (("small#2", "there is no run small#2"), ("Small", "is no job's name"),
                           ("small#0", "is no job's name"), ("small#", "is no job's name")):
            result = c.run("rm", word)
            check(result.code and says in one_sentence(result.err), f"{word}: {result}")
        c.must("down")


def a_check_finds_what_training_would(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        result = c.must("train", "--check", "small.yaml")
        check("job small is valid: 676 parameters in 4 variables, 512 records, 512 for evaluation" in
              result.out, str(result))
        for change, code, says in (
                (("units: 4", "units: 3"), 1, "there are 3 classes"),
                (("[16]", "[15]"), 1, "float32[16]"),
                (("x: x.npy, y: y.npy}\n  eval", "x: y.npy, y: y.npy}\n  eval"), 1, '"x"'),
                (("sgd", "sdg"), 2, 'did you mean "sgd"'),
                (("slice_bytes: 1024", "callbacks: [early_stopping: {monitor: val_acuracy}]"), 2,
                 'did you mean "val_accuracy"'),
                (("[accuracy]", "[acuracy]"), 2, 'did you mean "accuracy"')):
            small.write_job(c, change=[change])
            for words in (["train", "small.yaml"], ["train", "--check", "small.yaml"]):
                result = c.must(*words, code=code)
                check(says in one_sentence(result.err), f"{change}: {result}")
        check(not os.path.exists(c.path(".weft")), "something was started")
        small.write_job(c)
        for change, says in (("epoch=1", 'did you mean "epochs"'), ("data.shufle=false", "shuffle"),
                             ("batch", "has no value"), ("batch=a b", "sets no number or word"),
                             ("batch=-1", "from 1 to"), ("optimizer.lr=1", "lr")):
            result = c.must("train", "small.yaml", "--set", change, code=2)
            check(says in one_sentence(result.err), f"{change}: {result}")
        result = c.must("train", "small.yaml", "--name", "No/Name", code=2)
        check("is no name for a job" in one_sentence(result.err), str(result))


main([a_job_is_trained_again_and_again, what_is_under_way_is_not_trained_twice,
      a_failed_job_is_trained_again, resume_refuses_another_model_before_it_changes_anything,
      resume_keeps_the_records_of_an_epoch, a_run_goes_on_with_what_it_has_made,
      removed_is_gone_with_and_without_a_cluster, a_check_finds_what_training_would])

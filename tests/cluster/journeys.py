# SPDX-License-Identifier: Apache-2.0
"""What a person types, from the first minute on, and what should be seen.

    journeys.py WEFT [TEST...]
"""
import json
import os
import pty
import re
import select
import signal
import subprocess

from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "onnx", "onnxruntime", "safetensors")
import ledger  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import small  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402


def says(text, pattern):
    check(re.search(pattern, text), f"{pattern!r} expected in:\n{text}")


def the_first_train_needs_no_cluster_file(weft):
    with Cluster(weft) as c:
        os.unlink(c.path("cluster.yaml"))
        small.write_job(c)
        result = c.bare("train", "small.yaml")
        check(result.code == 0, str(result))
        says(result.err, r"cluster local: 1 master, 2 ps, 2 workers")
        says(result.out, r"^done:  val_loss 0\.\d+  val_accuracy 0\.\d+ .*"
                         r"checkpoint \S+/small#1/step-\d{8}  next: weft export small -o small.onnx")
        check(not c.processes(), f"left: {c.processes()}")
        check(c.bare("export", "small", "-o", "small.onnx").code == 0, "the next step fails")
        result = c.bare("eval", "small")
        check(result.code == 0, str(result))


def a_cluster_by_hand(weft):
    with Cluster(weft) as c:
        c.must("up")
        check(len(c.processes()) == 6, f"a supervisor and five tasks, not {c.processes()}")
        result = c.must("up", code=1)
        says(one_sentence(result.err), r"is up already.*weft down")
        small.write_job(c, epochs=100000, every_steps=300)
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 100 and j["metrics"], "trains")
        says(c.must("status").out,
             r"(?s)TASK +STATE +PID.*ps/0 .*ps/1 .*worker/0 .*worker/1 .*"
             r"small#1 +running +\d+/100000 +\d+ .* loss \d\.\d+")
        picture = json.loads(c.must("status", "--json").out)
        check({t["task"]: t["pid"] for t in picture["tasks"]} ==
              {t: c.pid(t) for t in c.tasks() if t != "master"}, str(picture["tasks"]))
        check(json.loads(c.must("status", "small", "--json").out)["job"] == "small", "status JOB")
        says(c.must("logs", "ps/1").out, r"ps\.set_up job=small#1 generation=1")
        c.must("stop", "small")
        job = c.job("small")
        check(job["state"] == "stopped" and job["checkpoint"] == job["step"], str(job))
        says(one_sentence(c.must("stop", "small", code=1).err), "small#1 is stopped already")
        says(one_sentence(c.must("stop", "nobody", code=1).err), "no job named nobody")
        says(one_sentence(c.must("status", "nobody", code=1).err), "no job named nobody")
        c.must("down")
        check(not c.processes(), f"left: {c.processes()}")
        says(one_sentence(c.must("down", code=1).err), "is not up")
        c.must("up")
        says(c.must("status").out, rf"small#1 +stopped +\d+(/100000)? +{job['step']} ")
        says(c.must("status", "small").out,
             rf"job small#1  stopped  generation 1  epoch \d+(/100000)?  step {job['step']}\n"
             r"  reason +stopped on request\n")


def jobs_queue_and_a_following_train_hears_of_a_stop(weft):
    with Cluster(weft) as c:
        c.must("up")
        c.must("train", small.write_job(c, "before"))
        steps = c.job("before")["step"]
        for name in ("first", "second", "third"):
            small.write_job(c, name, epochs=100000 if name == "first" else 2)
        first = c.start("train", "first.yaml")
        c.until_job("first", lambda j: j["step"] > 100, "trains")
        check(c.job("before")["step"] == steps, "steps of one job count for another")
        for name in ("second", "third"):
            c.must("submit", f"{name}.yaml")
        check([j["state"] for j in c.status()["jobs"]] == ["done", "running", "queued", "queued"],
              str(c.status()["jobs"]))
        says(c.must("status", "third").out, "reason +waits for job first#1")
        c.must("stop", "second")
        c.must("stop", "first")
        result = c.end_of(first)
        check(result.code == 5, str(result))
        says(result.out, "^stopped:.*next: weft recover first")
        c.until_job("third", lambda j: j["state"] == "done", "is done")
        check(c.job("second")["state"] == "stopped", str(c.job("second")))


def jobs_in_a_row_are_alike(weft):
    """What a ps or a worker keeps of a job must not reach the next: cuts begin again at 1 there."""
    with Cluster(weft) as c:
        c.must("up")
        for name in ("first", "second", "third"):
            c.must("train", small.write_job(c, name))
            job = c.job(name)
            check(job["failed_checkpoints"] == 0 and job["checkpoints"] >= 3, str(job))
            check(job["step"] == 2 * small.RECORDS // 8, str(job))


def ctrl_c_stops_with_a_checkpoint(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=100000, every_steps=1000000)
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 200, "trains")
        os.kill(training.pid, signal.SIGINT)
        result = c.end_of(training)
        check(result.code == 5, str(result))
        says(result.err, "stopping small#1 with a checkpoint")
        says(result.out, r"^stopped:.*checkpoint \S+step-\d+  next: weft recover small")
        check(len(c.checkpoints("small")) == 1, str(c.checkpoints("small")))
        check(not c.processes(), f"left: {c.processes()}")


def ctrl_c_while_the_cluster_starts_leaves_none(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=100000, every_steps=1000000)
        training = c.start("train", "small.yaml")
        until(lambda: c.pid("master"), "the master")
        training.send_signal(signal.SIGINT)
        result = c.end_of(training)
        check(result.code == 5, str(result))
        says(result.err, "stopping small#1 with a checkpoint")
        check(not c.processes(), f"left: {c.processes()}")


def ctrl_c_twice_waits_for_nobody(weft):
    with Cluster(weft) as c:
        c.must("up")
        small.write_job(c, epochs=100000, every_steps=1000000)
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 20, "trains")
        master = c.pid("master")
        os.kill(master, signal.SIGSTOP)

        def ended():
            training.send_signal(signal.SIGINT)
            return training.poll() is not None

        until(ended, "the end of a train whose master says nothing", 20)
        os.kill(master, signal.SIGCONT)
        result = c.end_of(training)
        check(result.code == 5, str(result))
        says(one_sentence(result.err.splitlines()[-1]), "no longer following small#1.*weft follow")


def a_terminal_shows_a_bar(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=60)
        ours, theirs = pty.openpty()
        env = dict(c.env, TERM="xterm", COLUMNS="100")
        training = subprocess.Popen([c.weft, "train", "small.yaml", "--cluster",
                                     c.path("cluster.yaml")], cwd=c.folder, stdin=theirs,
                                    stdout=theirs, stderr=theirs, env=env)
        c.started.append(training)
        os.close(theirs)
        shown = b""

        def read():
            nonlocal shown
            if select.select([ours], [], [], 0.01)[0]:
                try:
                    shown += os.read(ours, 4096)
                except OSError:  # the other side is closed
                    return True
            return training.poll() is not None

        until(read, "the end of what the terminal shows")
        os.close(ours)
        check(training.wait() == 0, shown.decode())
        plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown.decode())
        says(plain, r"\repoch \d+/60 +━+╸?─+ .*samples/s  loss \d\.\d+.*ETA 0:\d\d")
        says(shown.decode(), r"done:  val_loss")


def recover_goes_back_to_a_chosen_step(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=10, every_steps=200)
        c.must("train", "small.yaml")
        first = int(c.checkpoints("small")[0].split("-")[1])
        says(c.must("recover", "small", code=1).err.splitlines()[-1], "job small#1 is done.*weft export")
        result = c.must("recover", "small", "--from", str(first))
        says(result.err, f"generation 2 begins from step {first}")
        says(result.out, "^done:")
        entries = json.loads(c.must("ckpt", "ls", "small", "--json").out)
        check(entries[0]["generation"] == 2 and entries[0]["complete"], str(entries))


def fewer_steps_than_are_made_change_nothing(weft):
    with Cluster(weft) as c:
        c.must("up")
        small.write_job(c, epochs=3, every_steps=1000)
        c.must("train", "small.yaml")
        master = c.pid("master")
        result = c.must("recover", "small", "--set", "steps=20", code=2)
        says(one_sentence(result.err), 'small#1 has made 192 steps, and "steps" is to be 20')
        check(c.job("small")["state"] == "done", str(c.job("small")))
        check(c.pid("master") == master, "another master")
        c.must("recover", "small", "--set", "steps=1000", "--set", "epochs=4")


def another_number_of_ps_takes_the_checkpoint_up(weft):
    """Counted by the ledger: nothing is lost or trained twice between 2, 3 and 1 ps."""
    with Cluster(weft) as c:
        # More epochs than are made by then; the last recovery sets how many it ends with.
        ledger.write_job(c.folder, 2048, epochs=100000, batch=4, split_records=64, every_steps=1000,
                         pipeline=1, seed=1)
        for ps in (2, 3):
            c.resize(ps)
            c.must("up")
            if ps == 2:
                c.must("submit", "ledger.yaml")
            else:
                recovery = c.start("recover", "ledger")
            at = c.until_job("ledger", lambda j: j["state"] == "running", "runs")["step"]
            c.until_job("ledger", lambda j: j["step"] > at + 2000, "trains")
            c.must("stop", "ledger")
            if ps == 3:
                check(c.end_of(recovery).code == 5, "the stopped recovery")
            c.must("down")
            shards = os.listdir(c.saved("ledger", c.checkpoints("ledger")[-1]))
            check(sum(name.startswith("shard-") for name in shards) == ps, str(shards))
        epochs = int(c.checkpoints("ledger")[-1].removeprefix("step-")) // 512 + 3
        c.resize(1)
        c.must("recover", "ledger", "--set", f"epochs={epochs}")
        c.must("export", "ledger", "-o", c.path("out.onnx"))
        counts = ledger.read_counts(c.path("out.onnx"))
        check((counts == epochs).all(), f"{counts.min()} to {counts.max()} times in {epochs}")


def checkpoints_are_made_by_the_clock(weft):
    with Cluster(weft) as c:
        c.must("up")
        small.write_job(c, epochs=100000, every_steps=1000000,
                        change=[("keep: 3", "every_seconds: 1, keep: 3")])
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["checkpoints"] >= 3, "has three checkpoints")
        c.must("stop", "small")
        says(c.must("ckpt", "ls", "small").out, r"(?s)step-\d{8}.*step-\d{8}.*step-\d{8}")


def checkpoints_read_well(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=6, every_steps=100)
        c.must("train", "small.yaml")
        names = c.checkpoints("small")
        check(len(names) == 3, f"keep: 3, not {names}")
        listed = c.must("ckpt", "ls", "small").out
        check(re.findall(r"step-\d{8}", listed) == names[::-1], listed)
        says(c.must("ckpt", "show", "small").out, r"(?s)generation 1  step 384 .*optimizer sgd")
        says(c.must("ckpt", "verify", "small").out, r"(?s)(ok   step-\d{8}  2 files verified.*){3}")
        # The safetensors library reads the shards; together they hold the model.
        folder = c.saved("small", names[-1])
        tensors = {}
        for name in os.listdir(folder):
            if name.endswith(".safetensors"):
                tensors.update(load_file(os.path.join(folder, name)))
        elements = sum(t.size for t in tensors.values())
        check(elements == 16 * 32 + 32 + 32 * 4 + 4, f"{elements} in {list(tensors)}")


def the_exported_model_answers_as_weft_does(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=5)
        c.must("up")
        c.must("train", "small.yaml")
        c.must("export", "small", "-o", c.path("out.onnx"))
        onnx.checker.check_model(onnx.load(c.path("out.onnx")), full_check=True)
        x, y = np.load(c.path("x.npy")), np.load(c.path("y.npy"))
        session = onnxruntime.InferenceSession(c.path("out.onnx"))
        theirs = session.run(None, {"x": x})[0]
        right = int((theirs.argmax(axis=1) == y).sum())
        check(c.job("small")["eval_counts"]["accuracy"] == [right, small.RECORDS],
              f"{right} by onnxruntime, {c.job('small')['eval_counts']}")
        result = c.bare("run", "out.onnx", "--input", "x=x.npy", "--output-dir", "ours")
        check(result.code == 0, str(result))
        name = session.get_outputs()[0].name.replace("/", "_").replace(":", "_")
        ours = np.load(c.path("ours", f"{name}.npy"))
        check(np.abs(ours - theirs).max() < 1e-5, f"weft run differs by {np.abs(ours - theirs).max()}")
        says(c.must("eval", "small").out, rf"accuracy {right / small.RECORDS:.4f}")


def every_stage_is_an_onnx_file(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        ledger.write_job(c.folder, 64, 1, 4, 16, 100, 1, 1)
        for job in ("small.yaml", "ledger.yaml"):
            summary = c.bare("graph", job, "--passes")
            check(summary.code == 0, str(summary))
            passes = [row.split()[0] for row in summary.out.split("AFTER IT\n")[1].splitlines()]
            check(passes[0] == "import" and passes[-1] == "schedule", str(passes))
            for mode in ("train", "eval", "infer"):
                for name in passes:
                    done = c.bare("graph", job, "--after", name, "--mode", mode, "-o", "stage.onnx")
                    check(done.code == 0, f"{job} {mode} {name}: {done}")
                    onnx.checker.check_model(onnx.load(c.path("stage.onnx")))


def every_command_explains_itself_with_an_example(weft):
    with Cluster(weft) as c:
        commands = re.findall(r"^  weft (\w+) ", c.bare("help").out, re.M)
        for name in ("up down train submit stop recover eval status logs graph run grad ckpt export "
                     "data version").split():
            check(name in commands, f"weft help does not name {name}")
        for name in commands:
            text = c.bare("help", name).out
            check(text.startswith(f"weft {name}"), text)
            check(re.search(rf"^  weft {name}\b", text, re.M), f"no example in:\n{text}")


def digits_are_drawn_the_same_for_the_same_seed(weft):
    with Cluster(weft) as c:
        for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
            done = c.bare("data", "digits", folder, "--seed", seed, "--train", "300", "--test", "60")
            check(done.code == 0, str(done))

        def content(folder):
            return {name: open(c.path(folder, name), "rb").read()
                    for name in sorted(os.listdir(c.path(folder)))}

        check(len(content("a")) == 5 and content("a") == content("b") != content("c"),
              str(list(content("a"))))
        says(c.bare("data", "peek", "a/train-images-idx3-ubyte.gz").out, r"300.*28")


main([the_first_train_needs_no_cluster_file, a_cluster_by_hand,
      jobs_queue_and_a_following_train_hears_of_a_stop, jobs_in_a_row_are_alike,
      ctrl_c_stops_with_a_checkpoint, ctrl_c_while_the_cluster_starts_leaves_none,
      ctrl_c_twice_waits_for_nobody, a_terminal_shows_a_bar,
      recover_goes_back_to_a_chosen_step, fewer_steps_than_are_made_change_nothing,
      another_number_of_ps_takes_the_checkpoint_up, checkpoints_are_made_by_the_clock,
      checkpoints_read_well,
      the_exported_model_answers_as_weft_does, every_stage_is_an_onnx_file,
      every_command_explains_itself_with_an_example, digits_are_drawn_the_same_for_the_same_seed])

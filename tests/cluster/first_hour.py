# SPDX-License-Identifier: Apache-2.0
"""A newcomer's first hour, typed as it is written: each command goes through a shell, in a folder like a
fresh checkout, and the answer has the shape that the documentation promises.

    first_hour.py WEFT [TEST...]

docs/quickstart.md has a test of its own (quickstart.py), docs/import.md too (tests/parity/import_doc.py).
"""
import glob
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

from weftlib import SLOWER, Cluster, check, main, needs, one_sentence, shared, until

needs("numpy", "onnx", "onnxruntime")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import small  # noqa: E402
import stranger  # noqa: E402

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def shell(c, line, code=0):
    """Types one line; gives what both streams show, in order."""
    path = os.path.dirname(c.weft) + ":" + os.environ["PATH"]
    done = subprocess.run(["sh", "-c", line], cwd=c.folder, env=dict(c.env, PATH=path), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120 * SLOWER)
    check(done.returncode == code, f"{line}: exit {code} expected, not {done.returncode}:\n{done.stdout}")
    return done.stdout


def in_terminal(c, line, columns=110):
    """The same in a terminal of so many columns."""
    path = os.path.dirname(c.weft) + ":" + os.environ["PATH"]
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(c.folder)
        os.execvpe("sh", ["sh", "-c", f"stty cols {columns}; exec {line}"],
                   dict(c.env, PATH=path, TERM="xterm"))
    shown = b""

    def read():
        nonlocal shown
        if select.select([screen], [], [], 0.05)[0]:
            try:
                shown += os.read(screen, 65536)
            except OSError:  # the other side is closed
                return True
        return False

    until(read, f"the end of {line}", 120)
    os.close(screen)
    _, status = os.waitpid(pid, 0)
    check(status == 0, f"{line}: status {status}\n{shown.decode()}")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def shows(text, pattern):
    found = re.search(pattern, text, re.M)
    check(found, f"{pattern!r} expected in:\n{text}")
    return found


def like_a_checkout(c):
    """examples/ and data/mnist are there, and no cluster.yaml."""
    os.unlink(c.path("cluster.yaml"))
    os.mkdir(c.path("examples"))
    for path in glob.glob(os.path.join(EXAMPLES, "*.yaml")):
        shutil.copy(path, c.path("examples"))
    os.mkdir(c.path("data"))


def doctor_says_what_is_there_and_what_to_type(weft):
    with Cluster(weft) as c:
        os.unlink(c.path("cluster.yaml"))
        text = shell(c, "weft doctor")
        check(all(re.match(r"(ok  |warn) ", line) for line in text.splitlines()), text)
        shows(text, r"ok   weft \d\.\d\.\d .*zeromq \d")
        shows(text, r"\d+ processors? .*openblas \d")
        shows(text, r"cuda")
        shows(text, r"open files limit \d+: enough for \d+ tasks")
        shows(text, r"weft train JOB\.yaml")


def the_first_train_of_real_data(weft):
    with Cluster(weft) as c:
        like_a_checkout(c)
        says = shell(c, "weft train examples/mnist.yaml", code=1)
        shows(one_sentence(says), r"train-images-idx3-ubyte\.gz.*weft data get mnist")
        os.symlink(shared("data", "mnist"), c.path("data", "mnist"))
        shows(shell(c, "weft data get mnist data/mnist"), r"train-images-idx3-ubyte\.gz")
        began = time.monotonic()
        text = in_terminal(c, "weft train examples/mnist.yaml")
        took = time.monotonic() - began
        shows(text, r"cluster local: 1 master, 2 ps, 2 workers")
        shows(text, r"epoch \d+/10 +━+.* samples/s  loss \d\.\d+  accuracy \d\.\d+  "
                    r"staleness p99 \d+  ETA 0:\d\d")
        shows(text, r"epoch 10/10: loss \d\.\d+  accuracy 0\.99\d+  val_loss \d\.\d+  val_accuracy 0\.9[78]\d+")
        shows(text, r"done: .*val_accuracy 0\.9[78]\d+ .*checkpoint \S*mnist-mlp#1/step-\d{8}")
        shows(text, r"next: weft export mnist-mlp -o mnist-mlp\.onnx")
        check(took < 60 * SLOWER, f"{took:.0f} s")
        shows(shell(c, "weft export mnist-mlp -o mnist-mlp.onnx"), r"mnist-mlp\.onnx")
        check(not c.processes(), f"left: {c.processes()}")


def a_pytorch_model(weft):
    with Cluster(weft) as c:
        os.symlink(shared("models", "resnet18_bn_train.script.onnx"), c.path("resnet.onnx"))
        given = np.load(shared("models", "resnet18_bn_train.npz"))
        np.save(c.path("x.npy"), np.repeat(given["input.x"], 8, axis=0))
        np.save(c.path("y.npy"), np.repeat(given["input.y"], 8, axis=0))
        c.write("resnet.yaml", "job: resnet\nmodel: {onnx: resnet.onnx}\nbatch: 4\n"
                "data: {format: npy, train: {x: x.npy, y: y.npy}}\noptimizer: {sgd: {learning_rate: 0.01}}\n")
        for line in ("weft graph resnet.yaml", "weft graph resnet.onnx"):
            shows(shell(c, line), r"opset 17 \(pytorch \S+\), 62 variables \(176 k parameters, .*\), "
                                  r"inputs x\[batch,3,16,16\].*; BatchNormalization in training mode: yes")
        shows(shell(c, "weft train resnet.yaml"), r"done: .*resnet#1/step-")
        shows(shell(c, "weft export resnet -o back.onnx"), r"back\.onnx")
        onnx.checker.check_model(onnx.load(c.path("back.onnx")), full_check=True)
        # The same architecture as an exporter writes it by default: for inference.
        model = onnx.load(c.path("resnet.onnx"))
        for node in model.graph.node:
            if node.op_type == "BatchNormalization":
                del node.output[1:]
                kept = [a for a in node.attribute if a.name != "training_mode"]
                del node.attribute[:]
                node.attribute.extend(kept)
        onnx.save(model, c.path("inference.onnx"))
        shows(shell(c, "weft graph inference.onnx"),
              r"warning: .*BatchNormalization is frozen and Dropout is absent.*docs/import\.md")


def everything_dies_and_the_newest_checkpoint_is_damaged(weft):
    with Cluster(weft) as c:
        os.unlink(c.path("cluster.yaml"))
        small.write_job(c, epochs=100000, every_steps=400)
        shell(c, "weft train --detach small.yaml")

        def saved():
            return sorted(glob.glob(c.path(".weft", "checkpoints", "small#1", "step-*", "manifest.json")))

        until(lambda: len(saved()) >= 3, "three checkpoints")
        os.kill(c.supervisor(), signal.SIGKILL)  # the kernel ends its tasks
        until(lambda: not c.processes(), "nothing is left")
        newest, before = [os.path.basename(os.path.dirname(p)) for p in saved()[:-3:-1]]
        shard = sorted(glob.glob(c.path(".weft", "checkpoints", "small#1", newest, "shard-*")))[-1]
        with open(shard, "r+b") as f:
            f.seek(-8, os.SEEK_END)
            byte = f.read(1)
            f.seek(-8, os.SEEK_END)
            f.write(bytes([byte[0] ^ 1]))
        recovery = subprocess.Popen([c.weft, "recover", "small"], cwd=c.folder, env=c.env, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        c.started.append(recovery)
        lines = []

        def told():
            lines.append(recovery.stdout.readline())
            return re.search(r"epoch \d+/100000 ", lines[-1])

        until(told, "progress of the recovered job")
        recovery.send_signal(signal.SIGINT)
        text = "".join(lines) + recovery.communicate()[0]
        shows(text, rf"{newest} passed over: shard-0000\d-of-0000\d\.safetensors: checksum differs")
        shows(text, rf"generation 2 .*{int(before[5:])}")
        shows(text, r"\d+ steps are lost")
        shows(text, r"stopped: .*next: weft recover small")


def what_is_lost_before_the_first_checkpoint_is_said(weft):
    with Cluster(weft) as c:
        c.write("early.yaml", "job: early\nmodel:\n  input: {x: [8]}\n  layers: [{dense: {units: 2}}]\nloss: mse\n"
                "data: {format: synthetic, records: 100000}\nbatch: 10\noptimizer: sgd\nepochs: 1000\n")
        c.must("up")
        training = c.start("train", "early.yaml")
        c.until_job("early", lambda job: job["step"] > 500, "steps")
        c.kill("ps/0")
        c.until_job("early", lambda job: job["generation"] == 2 and job["step"] > 0, "a second beginning")
        training.send_signal(signal.SIGINT)
        text = c.end_of(training).err
        shows(text, r"generation 2 begins from step 0; at least \d+ steps are lost; there was no checkpoint yet")
        shows(shell(c, "weft status early"), r"lost +at least [ \d]+ steps, by going back")


def the_best_checkpoint_is_exported(weft):
    with Cluster(weft) as c:
        os.unlink(c.path("cluster.yaml"))
        small.write_job(c, epochs=6)
        c.write("small.yaml", c.read("small.yaml") + "callbacks: [model_checkpoint: {save_best_only: true}]\n")
        shell(c, "weft train small.yaml")
        shows(shell(c, "weft ckpt ls small"), r"best")
        shell(c, "weft export small --from best -o best.onnx")
        onnx.checker.check_model(onnx.load(c.path("best.onnx")), full_check=True)
        x, y = np.load(c.path("x.npy")), np.load(c.path("y.npy"))
        out = onnxruntime.InferenceSession(c.path("best.onnx")).run(None, {"x": x})[0]
        says = shows(shell(c, "weft eval small --from best"), r"accuracy (0\.\d+)").group(1)
        check(says == f"{(out.argmax(axis=1) == y).mean():.4f}", says)
        shows(shell(c, "weft export small --from best -o best.onnx --int8 tables", code=3),
              r"not built yet; .*onnxruntime\.quantization")


def a_csv_file_is_looked_at_and_trained(weft):
    with Cluster(weft) as c:
        os.unlink(c.path("cluster.yaml"))
        rng = np.random.default_rng(3)
        price = rng.lognormal(2, 1, 2000).round(2)
        with open(c.path("train.csv"), "w", encoding="utf-8") as f:
            f.write("label,price,user\n")
            for i in range(2000):
                cell = "" if i % 50 == 9 else price[i]
                f.write(f"{int(price[i] > 8)},{cell},{rng.integers(500)}\n")
        text = shell(c, "weft data peek train.csv")
        shows(text, r"train\.csv  csv  2000 records  3 columns")
        shows(text, r"label +whole 0 to 1")
        shows(text, r"price +number .*empty in 40 records")
        lines = re.search(r"^in a job file:\n((?:  .*\n)+)", text, re.M).group(1)
        c.write("csv.yaml", "job: csv\nmodel:\n  input: {x: [2]}\n  layers: [dense: 1]\n"
                "loss: binary_crossentropy\nmetrics: [auc]\nbatch: 16\nepochs: 3\n"
                "optimizer: {adam: {learning_rate: 0.05}}\n" + re.sub("^  ", "", lines, flags=re.M))
        says = shows(shell(c, "weft train csv.yaml"), r"done: .*auc (0\.\d+)|epoch 3/3: .*auc (0\.\d+)")
        check(float(says.group(1) or says.group(2)) > 0.9, says.group())
        # A wrong column is found before a run is made or a cluster starts.
        c.write("wrong.yaml", c.read("csv.yaml").replace("job: csv", "job: wrong").replace("y: label", "y: user"))
        says = one_sentence(shell(c, "weft train wrong.yaml", code=1))
        shows(says, r"train\.csv:\d+: the label is \d+, and must be from 0 to 1")
        check(not os.path.exists(c.path(".weft", "jobs", "wrong#1")), "a run was made")
        shows(shell(c, "weft graph wrong.yaml", code=1), r"^weft: .*train\.csv:\d+: the label is \d+")


def a_loss_that_is_nan_is_kept_and_replayed(weft):
    with Cluster(weft) as c:
        os.unlink(c.path("cluster.yaml"))
        small.write_job(c)
        x = np.load(c.path("x.npy"))
        x[77, 3] = np.nan
        np.save(c.path("x.npy"), x)
        text = shell(c, "weft train small.yaml", code=1)
        shows(text, r"job small#1 failed: the loss is NaN at step \d+ \(worker/\d, epoch 1, split \d+, batch \d+\); "
                    r'the input "x" holds NaN already; record 77 of x\.npy')
        replay = shows(text, r"replay: (weft grad \S+/nan-\d+)").group(1)
        shows(shell(c, replay), r'the loss is NaN; the input "x" holds NaN already')
        kept = np.load(glob.glob(c.path(".weft", "jobs", "small#1", "nan-*", "inputs", "x.npy"))[0])
        check(np.isnan(kept).sum() == 1, "the kept inputs are those of the step")


def a_worker_of_a_newer_release_waits_and_the_job_goes_on(weft):
    with Cluster(weft, workers=1, transport="tcp", more="security: none") as c:
        text = c.read("cluster.yaml")
        c.write("cluster.yaml", text.replace("state_dir", "  - {address: 'tcp://10.255.255.1:7720'}\nstate_dir"))
        shows(one_sentence(shell(c, "weft up --timeout 1", code=1)), r"worker/1 .*weft up")
        small.write_job(c, epochs=100000)
        shell(c, "weft submit small.yaml")
        speaker = stranger.Speaker(int(c.ports[0].rpartition(":")[2]))
        newer = stranger.body((1, 2), (2, 2), (3, "test"), (stranger.ROLE_FIELD, stranger.WORKER),
                              (stranger.INDEX_FIELD, 1), (6, 4242), (7, stranger.MASTER), (8, 0), (9, "0.4.0"))
        speaker.say(stranger.HELLO_KIND, newer)
        _, refusal = speaker.hear(stranger.REFUSE_KIND)
        speaker.close()
        says = r"worker/1 \(weft 0\.4\.0\) speaks protocol 2 to 2, master \(weft [\d.]+\) speaks 1"
        shows(refusal.decode(errors="replace"), says)
        shows(refusal.decode(errors="replace"), "upgrade the master")
        shows(shell(c, "weft status"), rf"worker/1 +refused .*{says}; upgrade the master")
        step = c.job("small")["step"]
        c.until_job("small", lambda j: j["state"] == "running" and j["step"] > step, "goes on")
        shell(c, "weft down")


def what_is_not_built_names_what_to_use(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        c.write("replicas.yaml", c.read("small.yaml") + "replicas: 1\n")
        for line in ("weft scale ps=3", "weft serve mnist=.weft/export/mnist",
                     "weft serve route mnist stable=95 canary=5 --key header:x-user-id",
                     "weft serve promote mnist", "weft launch slurm --ps 4 --workers 12 ctr.yaml",
                     "weft launch kubernetes --image R/weft:0.3 ctr.yaml",
                     "weft keys init", "weft sweep ctr.yaml consistency.staleness=0,2,8,inf --steps 2000",
                     "weft trace JOB --steps 20 -o t.json",
                     "weft train replicas.yaml"):
            says = one_sentence(shell(c, line, code=3))
            check("not built yet; " in says, f"{line}: {says}")


main([doctor_says_what_is_there_and_what_to_type, the_first_train_of_real_data, a_pytorch_model,
      everything_dies_and_the_newest_checkpoint_is_damaged, a_csv_file_is_looked_at_and_trained,
      a_loss_that_is_nan_is_kept_and_replayed,
      what_is_lost_before_the_first_checkpoint_is_said, the_best_checkpoint_is_exported,
      a_worker_of_a_newer_release_waits_and_the_job_goes_on,
      what_is_not_built_names_what_to_use])

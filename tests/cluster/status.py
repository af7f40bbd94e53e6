# SPDX-License-Identifier: Apache-2.0
"""weft status: a cluster that is up, one that is not, losses and restarts, and the watched picture."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import small
from weftlib import Cluster, check, main, until


def says(text, pattern):
    check(re.search(pattern, text), f"{pattern!r} is not in:\n{text}")


def row(c, task):
    return next(line for line in c.must("status").out.split("\n") if line.startswith(task))


def jobs_are_shown_without_a_cluster(weft):
    with Cluster(weft) as c:
        says(c.must("status").out, r"^no cluster is up: nobody listens at ipc://.*weft up")
        small.write_job(c, epochs=2)
        c.must("train", "small.yaml")
        said = c.must("status").out
        says(said, r"JOB +STATE +EPOCH +STEP")
        says(said, r"small#1 +done +2/2 +128 .* step-00000128  loss \d\.\d{4}  val_loss \d\.\d{4}  "
                   r"val_accuracy \d\.\d{4}\nno cluster is up")
        said = c.must("status", "small").out
        says(said, r"^job small#1  done  generation 1  epoch 2/2  step 128\n")
        says(said, r"  elapsed +\d+:\d\d\n  learning rate +0.05\n  training +loss \d")
        says(said, r"checkpoint +/.*/checkpoints/small#1/step-00000128\n")
        says(said, r"\nepoch +step .*\n1 +64 .*\n2 +128 ")
        picture = json.loads(c.must("status", "--json").out)
        check(not picture["up"] and picture["jobs"][0]["eval"]["accuracy"] > 0, str(picture))
        check(json.loads(c.must("status", "--job", "small#1", "--json").out)["step"] == 128, "JSON")
        check("no job named none" in c.must("status", "none", code=1).err, "a job that is not there")
        c.must("up")  # the master knows less of what had ended before it
        said = c.must("status", "small").out
        says(said, r"epoch 2/2  step 128\n  elapsed.*\n.*\n  training +loss \d")
        c.must("down")


def what_was_killed_is_interrupted_and_says_how_to_go_on(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=100000, every_steps=50000, change=[("batch: 8", "batch: 1")], records=51200)
        c.must("up")
        c.must("submit", "small.yaml")
        # Far from the next checkpoint, which would leave nothing to be lost.
        c.until_job("small", lambda j: j["checkpoint"] and 128 < j["step"] - j["checkpoint"] < 20000, "trains")
        c.kill_all()
        says(c.must("status", "small").out,
             r"job small#1  interrupted .*\n  reason +every process had ended\n"
             r"  hint +go on with: weft recover small#1\n")
        following = c.start("recover", "small")
        said = until(lambda: re.search(r"generation 2 begins from step (\d+)(.*)",
                                       c.read(f"err{following.number}")), "it goes on")
        says(said.group(2), r"; at least \d+ steps? (is|are) lost; it continues in epoch \d+")
        lost = int(re.search(r"least (\d+)", said.group(2)).group(1))
        check(c.job("small")["undone_steps"] == lost, str(c.job("small")))
        says(c.must("status", "small").out, rf"  lost +at least {lost:,} steps".replace(",", " "))
        following.send_signal(signal.SIGINT)
        check(c.end_of(following).code == 5, "recover")


def however_a_job_is_stopped_its_followers_hear_it(weft):
    """By two signals at once, which nobody has time to answer between, and by weft down."""
    with Cluster(weft) as c:
        small.write_job(c, epochs=100000)
        c.must("up")
        training = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 100, "trains")
        training.send_signal(signal.SIGINT)
        training.send_signal(signal.SIGTERM)  # a second SIGINT may count as one with the first
        end = c.end_of(training)
        check(end.code == 5 and "stopping small#1" in end.err and "no longer following" in end.err, str(end))
        job = c.until_job("small", lambda j: j["state"] == "stopped", "is stopped all the same")
        check(job["checkpoint"], str(job))
        said = c.must("recover", "small", "--from", "3", "--set", "epochs=9", code=1).err
        check("no checkpoint at step 3" in said and c.job("small")["state"] == "stopped", said)
        recovery = c.start("recover", "small")
        c.until_job("small", lambda j: j["step"] > job["step"] + 100, "trains on")
        c.must("down")
        end = c.end_of(recovery)
        check(end.code == 5 and "stopped:" in end.out, str(end))


def many_runs_are_folded_and_what_runs_comes_first(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=1, change=[("seed: 1", "keep_runs: 20\nseed: 1")])
        c.must("up")
        for _ in range(12):
            c.must("train", "small.yaml")
        small.write_job(c, "long", epochs=100000)
        c.must("submit", "long.yaml")
        c.until_job("long", lambda j: j["state"] == "running", "runs")
        names = re.findall(r"^(\w+#\d+) ", c.must("status").out, re.M)
        check(names == ["long#1"] + [f"small#{i}" for i in range(12, 2, -1)], str(names))
        says(c.must("status").out, r"\nand 2 older: weft status --all\n")
        check("small#1 " in c.must("status", "--all").out, "--all")
        c.must("down", "--now")


def lose_a_worker_with_a_split(c):
    """Kills worker/1, again if it had none, as between two epochs; says how often it was killed."""
    for times in range(1, 6):
        c.kill("worker/1")
        until(lambda: re.search(rf"; {times} workers? w\w+ lost", c.must("status", "small").out), "it is lost")
        told = until(lambda: re.search(r"restarted \d:\d\d ago: killed by signal 9 \(Killed\)(.*)", row(c, "worker/1")),
                     "worker/1 is back")
        if "split" in told.group(1):
            return times
        before = c.until_job("small", lambda j: True, "trains")["step"]
        c.until_job("small", lambda j: j["step"] > before + 600, "trains on")
    raise AssertionError("worker/1 never had a split")


def a_restart_is_told_with_its_time_and_what_became_of_the_work(weft):
    with Cluster(weft) as c:
        # Epochs of a second or so, in eight splits: a worker is seldom without one.
        small.write_job(c, epochs=100000, every_steps=500, records=51200,
                        change=[("batch: 8", "batch: 1"), ("split_records: 64", "split_records: 6400")])
        c.must("up")
        train = c.start("train", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 200, "trains")
        until(lambda: re.search(r"ps/0 +serving .* [1-9][\d ]* updates/s +\d[\d.]* \w+ +-$", row(c, "ps/0")),
              "updates of ps/0")
        says(row(c, "master"), rf"serving +{c.pid('master')} ")
        times = lose_a_worker_with_a_split(c)
        until(lambda: re.search(r"restarted \d:\d\d ago: killed by signal 9 \(Killed\); \d splits? "
                                r"\(records [\d ]+ to [\d ]+\) given to worker/[01]", row(c, "worker/1")),
              "worker/1 is back, and its splits are given out")
        until(lambda: re.search(r"worker/1 restarted after \d+\.\d s", c.read(f"err{train.number}")),
              "weft train tells of it")
        lost = "1 worker was lost" if times == 1 else f"{times} workers were lost"
        says(c.must("status", "small").out, rf"  lost +no acknowledged update; {lost}")
        c.kill("ps/0")
        until(lambda: "generation 2 begins from step" in c.read(f"err{train.number}"), "it goes back")
        job = c.until_job("small", lambda j: j["generation"] == 2, "goes back")
        told = re.search(r"at least (\d+) step", c.read(f"err{train.number}"))
        check(job["undone_steps"] == (int(told.group(1)) if told else 0), str(job))
        before = c.pid("master")
        c.kill("master")
        until(lambda: c.pid("master") not in (None, before), "the master is back")
        after = c.until_job("small", lambda j: j["state"] == "running", "the new master goes on")
        check((after["undone_steps"], after["lost_workers"]) == (job["undone_steps"], job["lost_workers"]), f"{after}, and before {job}")
        train.send_signal(signal.SIGINT)
        check(c.end_of(train).code == 5, "train")
        c.must("down")


def watched(c, columns, condition):
    """weft status --watch in a terminal so wide, until condition(text so far); then Ctrl-C."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    env = {k: v for k, v in c.env.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    seen = b""
    with subprocess.Popen([c.weft, "status", "--watch"], cwd=c.folder, env=env, stdin=slave,
                          stdout=slave, stderr=slave, start_new_session=True) as p:
        os.close(slave)
        while not condition(seen):
            seen += os.read(master, 4096)
        p.send_signal(signal.SIGINT)
        try:
            while more := os.read(master, 4096):
                seen += more
        except OSError:  # the other end is closed
            pass
        check(p.wait() == 0, f"exit {p.returncode}")
    os.close(master)
    return seen.decode()


def the_picture_is_drawn_again_in_a_terminal_of_its_width(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=1)
        c.must("train", "small.yaml")
        said = watched(c, 40, lambda seen: seen.count(b"\033[H") >= 3)
        lines = re.sub(r"\033\[\d*[HJK]", "", said).replace("\r", "").split("\n")
        check(any(line.startswith("small#1") for line in lines), said)
        check(max(map(len, lines)) <= 40, said)
        piped = c.start("status", "--watch")
        until(lambda: "small#1" in c.read(f"out{piped.number}"), "a picture in a pipe")
        piped.send_signal(signal.SIGINT)
        result = c.end_of(piped)
        check(result.code == 0 and "\033" not in result.out, str(result))
        check("--watch is for people" in c.must("status", "--watch", "--json", code=2).err, "--json")


def logs_are_followed_by_role_and_across_a_new_file(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=1)
        c.must("train", "small.yaml")
        c.must("up")
        said = c.must("logs", "ps", "-n", "50").out
        check("== ps/0\n" in said and "== ps/1\n" in said and "worker" not in said, said)
        check("ps.set_up" not in said, f"lines of an earlier cluster: {said}")
        check(c.must("logs", "ps", "--all").out.count("ps.set_up") == 2, "--all")
        check("names no task" in c.must("logs", "psi", code=1).err, "a word that is no task")
        one, several = c.start("logs", "master", "-f"), c.start("logs", "-f")
        until(lambda: "view.new" in c.read(f"out{one.number}"), "what is there")
        c.must("train", "small.yaml")
        until(lambda: "job.state job=small#2 done" in c.read(f"out{one.number}"), "what is added")
        until(lambda: re.search(r"^worker/0   \S+ info worker/0 worker.started job=small#2",
                                c.read(f"out{several.number}"), re.M), "a task's line")
        log = c.path(".weft", "logs", "master-0.log")
        os.rename(log, log + ".1")
        with open(log, "w", encoding="utf-8") as f:
            f.write("a new file\n")
        until(lambda: "\na new file\n" in c.read(f"out{one.number}"), "the new file")
        with open(log, "w", encoding="utf-8") as f:
            f.write("cut\n")
        until(lambda: "\ncut\n" in c.read(f"out{one.number}"), "the file that was cut short")
        check(c.read(f"out{one.number}").count("job=small#2 done") == 1, "a line twice")
        for p in (one, several):
            p.send_signal(signal.SIGINT)
            check(c.end_of(p).code == 0, "logs -f")
        c.must("down")


def checkpoints_are_listed_with_their_epoch_and_numbers(weft):
    with Cluster(weft) as c:
        small.write_job(c, epochs=2)
        c.must("train", "small.yaml")
        best = c.must("ckpt", "ls", "small").out.split("\n")
        says(best[0], r"NAME +EPOCH +val_loss +val_accuracy +GEN +BYTES +CREATED +STATE")
        says(best[1], r"step-00000128 +2 +\d\.\d{4} +\d\.\d{4} +1 .* newest$")
        says(best[2], r"step-\d+ +[12]( \(\d+ %\))? +[-\d].* complete$")
        listed = json.loads(c.must("ckpt", "ls", "small", "--json").out)
        check(listed[0]["newest"] and listed[0]["epoch"] == 2 and listed[0]["part"] == 1 and
              0 < listed[0]["metrics"]["val_accuracy"] <= 1, str(listed))
        says(c.must("ckpt", "ls").out, r"small#1 +\d +step-00000128 +-")
        says(c.must("ckpt", "show", "small").out, r"\nepoch 2: all 512 records are trained")


main([jobs_are_shown_without_a_cluster, what_was_killed_is_interrupted_and_says_how_to_go_on,
      however_a_job_is_stopped_its_followers_hear_it, many_runs_are_folded_and_what_runs_comes_first,
      a_restart_is_told_with_its_time_and_what_became_of_the_work,
      the_picture_is_drawn_again_in_a_terminal_of_its_width,
      logs_are_followed_by_role_and_across_a_new_file,
      checkpoints_are_listed_with_their_epoch_and_numbers])

# SPDX-License-Identifier: Apache-2.0
"""Commands that share a cluster, and ends that nobody planned: signals, closed terminals, a full disk."""
import os
import re
import shutil
import signal

import small
from weftlib import Cluster, check, main, one_sentence, until


def lasts(c, name, **more):
    return small.write_job(c, name, epochs=100000, every_steps=100, **more)


def is_up(c):
    return bool(c.processes())


def a_signal_stops_the_job_with_a_checkpoint_and_ends_the_cluster(weft):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and is to stay so
    for number in (signal.SIGTERM, signal.SIGHUP):
        with Cluster(weft) as c:
            lasts(c, "long")
            train = c.start("train", "long.yaml")
            until(lambda: c.checkpoints("long"), "it trains")
            train.send_signal(number)
            result = c.end_of(train)
            check(result.code == 5 and "stopping long#1 with a checkpoint" in result.err, str(result))
            check("next: weft recover long#1" in result.out, str(result))
            until(lambda: not is_up(c), "nothing is left")


def the_last_of_two_ends_the_cluster(weft):
    with Cluster(weft) as c:
        lasts(c, "first")
        small.write_job(c, "second")
        first = c.start("train", "first.yaml")
        c.until_job("first", lambda j: j["state"] == "running", "runs")
        second = c.start("train", "second.yaml")
        c.until_job("second", lambda j: j["state"] == "queued", "is queued")
        until(lambda: "waiting for job first#1" in c.read(f"err{second.number}"), "what it waits for")
        first.send_signal(signal.SIGINT)
        check(c.end_of(first).code == 5, "first")
        result = c.end_of(second)
        check(result.code == 0 and "/second#1/" in result.out, str(result))
        until(lambda: not is_up(c), "nothing is left")


def stop_from_another_terminal_has_its_answer(weft):
    with Cluster(weft) as c:
        lasts(c, "long")
        train = c.start("train", "long.yaml")
        c.until_job("long", lambda j: j["state"] == "running", "runs")
        result = c.must("stop", "long")
        check("stopped:" in result.out, str(result))
        check(c.end_of(train).code == 5, "train")
        until(lambda: not is_up(c), "nothing is left")


def detached_goes_on_until_down_which_takes_a_checkpoint(weft):
    with Cluster(weft) as c:
        small.write_job(c, "long", epochs=100000, every_steps=1 << 40)
        result = c.must("train", "long.yaml", "--detach")
        check("job long#1 is submitted   follow it with: weft follow long" in result.out, str(result))
        check("stays up for job long#1" in result.err, str(result))
        job = c.until_job("long", lambda j: j["state"] == "running" and j["step"] > 50, "trains")
        check(not c.checkpoints("long"), "a checkpoint before it was asked for")
        small.write_job(c, "next")
        c.must("submit", "next.yaml")
        result = c.must("down")
        check("stopping long#1 with a checkpoint" in result.err and "cluster test is down" in result.out,
              str(result))
        saved = c.checkpoints("long")
        check(len(saved) == 1 and int(saved[0].split("-")[1]) >= job["step"], str(saved))
        c.must("up")
        states = {j["job"]: j["state"] for j in c.status()["jobs"]}
        check(states == {"long": "stopped", "next": "stopped"}, str(states))
        c.must("submit", "next.yaml", "--set", "epochs=100000")
        c.until_job("next", lambda j: j["state"] == "running" and j["run"] == 2, "runs")
        result = c.must("down", "--now")
        check("stopping" not in result.err, str(result))
        check(not is_up(c), "something is left")


def a_killed_command_leaves_the_cluster_to_the_next(weft):
    with Cluster(weft) as c:
        lasts(c, "long")
        train = c.start("train", "long.yaml")
        c.until_job("long", lambda j: j["state"] == "running", "runs")
        train.kill()
        train.wait()
        check(is_up(c), "the cluster went with it")
        follow = c.start("follow", "long")
        c.until_job("long", lambda j: j["step"] > 100, "trains on")
        follow.send_signal(signal.SIGINT)
        check(c.end_of(follow).code == 5, "follow")
        until(lambda: not is_up(c), "nothing is left")


def a_cluster_that_was_put_up_stays_up(weft):
    with Cluster(weft) as c:
        small.write_job(c)
        c.must("up")
        pids = set(c.processes())
        c.must("train", "small.yaml")
        c.must("stop", "small", code=1)
        check(set(c.processes()) == pids, "it went down")
        c.must("down")


def without_its_state_folder_a_cluster_is_named_and_ended(weft):
    for transport in ("ipc", "tcp", "local"):
        with Cluster(weft, transport="tcp" if transport == "local" else transport) as c:
            run = c.run
            if transport == "local":
                os.remove(c.path("cluster.yaml"))
                run = c.bare
            small.write_job(c)
            check(run("up").code == 0, "up")
            pids = set(c.processes()) | {c.supervisor()}
            shutil.rmtree(c.path(".weft"))
            for words in (["up"], ["train", "small.yaml"]):
                result = run(*words)
                said = one_sentence(result.err)
                named = {int(n) for n in re.search(r"processes ([0-9, ]+) still run", said)[1].split(",")}
                check(result.code == 1 and named == pids and "end them with: weft down" in said, said)
            result = run("down")
            check(result.code == 0 and "had lost its folder" in result.out, str(result))
            until(lambda: not c.processes(), "nothing is left")
            check(run("up").code == 0, "up again")
            check(run("train", "small.yaml").code == 0, "train")
            check(run("down").code == 0, "down")
            check("is not up on this host" in run("down").err, "twice down")


def a_lost_cluster_that_does_not_end_is_killed(weft):
    with Cluster(weft) as c:
        c.must("up")
        pids = set(c.processes())
        shutil.rmtree(c.path(".weft"))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        c.must("down", timeout=90)
        until(lambda: not c.processes(), "nothing is left")


main([a_signal_stops_the_job_with_a_checkpoint_and_ends_the_cluster, the_last_of_two_ends_the_cluster,
      stop_from_another_terminal_has_its_answer, detached_goes_on_until_down_which_takes_a_checkpoint,
      a_killed_command_leaves_the_cluster_to_the_next, a_cluster_that_was_put_up_stays_up,
      without_its_state_folder_a_cluster_is_named_and_ended, a_lost_cluster_that_does_not_end_is_killed])

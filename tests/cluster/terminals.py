# SPDX-License-Identifier: Apache-2.0
"""Commands that share a cluster, and ends that nobody planned: signals, closed terminals, a full disk."""
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import termios

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
        until(lambda: "epoch" in c.read(f"err{follow.number}"), "what it follows")
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


def an_orphan_of_a_removed_folder_ends_no_later_cluster(weft):
    """Its train ends while a cluster of the same folder, put up by hand, is up."""
    with Cluster(weft) as c:
        lasts(c, "long")
        train = c.start("train", "long.yaml")
        c.until_job("long", lambda j: j["state"] == "running", "runs")
        os.rename(c.path(".weft"), c.path("gone"))  # a job that writes would race with rmtree
        c.must("down")
        c.must("up")
        pids = {t["pid"] for t in c.status()["tasks"]}
        check(c.end_of(train).code == 1, "train")
        status = c.status()
        check(status["up"] and {t["pid"] for t in status["tasks"]} == pids, f"{pids}: {status}")
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


class Terminal:
    """A command on a terminal of so many columns."""

    def __init__(self, c, columns, *words):
        self.master, slave = os.openpty()
        self.resize(columns)
        env = dict(c.env, TERM="xterm", LC_ALL="C.UTF-8")
        env.pop("COLUMNS", None)
        self.process = subprocess.Popen([c.weft, *words], cwd=c.folder, env=env, stdin=slave,
                                        stdout=slave, stderr=slave)
        os.close(slave)

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self, done, what):
        """What it shows until done(text): without colours, each redraw of a line a line."""
        text = ""

        def look():
            nonlocal text
            try:
                text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # it has ended
                return True
            return done(text)
        until(look, what)
        return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\x1b[K", "\n").replace("\r", "")


def a_terminal_shows_what_it_has_room_for(weft):
    with Cluster(weft) as c:
        lasts(c, "long")
        t = Terminal(c, 130, "train", "long.yaml")
        wide = t.read(lambda text: text.count("samples/s") > 3, "a bar")
        bars = [line for line in wide.split("\n") if "samples/s" in line]
        check(bars and all("───" in b and len(b) <= 130 for b in bars[:-1]), str(bars))
        t.resize(44)
        t.read(lambda text: text.count("\x1b[K") > 8, "the next bars")
        narrow = t.read(lambda text: text.count("\x1b[K") > 20, "narrow bars")
        bars = [line for line in narrow.split("\n") if "samples/s" in line][1:-1]
        check(bars and all(len(b) <= 44 for b in bars), str(bars))
        t.process.send_signal(signal.SIGINT)
        end = t.read(lambda text: False, "the end")
        check(re.search(r"^next: weft recover long#1$", end, re.M), end)
        check(t.process.wait() == 5, "exit code")
        until(lambda: not is_up(c), "nothing is left")


def a_place_that_is_wrong_is_named(weft):
    with Cluster(weft, transport="tcp") as c, Cluster(weft, transport="tcp") as other:
        # Another folder's cluster at the same addresses.
        other.write("cluster.yaml", c.read("cluster.yaml"))
        c.must("up")
        result = other.must("status")
        check(f"this is that of {os.path.realpath(c.path('cluster.yaml'))}" in result.err, str(result))
        check("warning" not in c.must("status").err, "its own")
        said = one_sentence(other.must("up", code=1).err)
        check(f"end that cluster with: weft down {os.path.realpath(c.path('cluster.yaml'))}" in said, said)
        c.must("down")
        # A job that nobody knows starts no cluster.
        said = one_sentence(c.must("recover", "nosuch", code=1).err)
        check("no job named nosuch" in said, said)
        # Folders that cannot be made.
        for key in ("state_dir", "checkpoint_dir"):
            text = re.sub(f"(?m)^{key}: .*", f"{key}: cluster.yaml/x", c.read("cluster.yaml"))
            line = text.split("\n").index(f"{key}: cluster.yaml/x") + 1
            other.write("cluster.yaml", text)
            said = one_sentence(other.must("up", code=1).err)
            check(f"cluster.yaml:{line}: {key}: cannot make folder" in said, said)
        # A ps on a host that does not answer.
        c.write("cluster.yaml", c.read("cluster.yaml").replace(c.ports[2], "tcp://10.255.255.1:7711") +
                "security: none\n")
        said = one_sentence(c.must("up", "--timeout", "1", code=1).err)
        check('ps/1 at tcp://10.255.255.1:7711; on their host run "weft up"' in said and
              "until: weft down" in said, said)
        check(re.search(r"^ps/1 +missing +- ", c.must("status").out, re.M), c.must("status").out)
        c.must("down")


main([a_signal_stops_the_job_with_a_checkpoint_and_ends_the_cluster, the_last_of_two_ends_the_cluster,
      stop_from_another_terminal_has_its_answer, detached_goes_on_until_down_which_takes_a_checkpoint,
      a_killed_command_leaves_the_cluster_to_the_next, a_cluster_that_was_put_up_stays_up,
      an_orphan_of_a_removed_folder_ends_no_later_cluster,
      without_its_state_folder_a_cluster_is_named_and_ended, a_lost_cluster_that_does_not_end_is_killed,
      a_terminal_shows_what_it_has_room_for, a_place_that_is_wrong_is_named])

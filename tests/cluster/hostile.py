# SPDX-License-Identifier: Apache-2.0
"""A client that speaks the wire as a task does and is none: nothing that it says changes anything.

    hostile.py WEFT [TEST...]

A job of one worker has the same losses to the last bit with the client at work as without it, in one
generation, by the processes that were there before.
"""
import struct

from stranger import (CLIENT, DIED_KIND, FAULT_KIND, HELLO_KIND, MASTER, PS, PUSH_KIND, REFUSE_KIND,
                      REGISTER_KIND, RESET_KIND, WELCOME_KIND, WORKER, Speaker, body, hello,
                      part_table)
from weftlib import Cluster, check, main, needs, until

needs("numpy")
import small  # noqa: E402

EPOCHS = 150


def port_of(c, i):
    return int(c.ports[i].rsplit(":", 1)[1])


def make(weft):
    c = Cluster(weft, ps=1, workers=1, transport="tcp")
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    small.write_job(c, epochs=EPOCHS, every_steps=2000)
    return c


def losses(c):
    return [line.split()[2:] for line in c.read("losses").splitlines()]


def refused(port, role, index, to_role, **words):
    """Says hello as a task, and gives the connection after it was turned away."""
    s = Speaker(port)
    s.say(HELLO_KIND, hello(role, index, to_role), incarnation=777, sequence=1000, **words)
    _, why = s.hear(REFUSE_KIND)
    check(why, "a refusal without a reason")
    return s


def hello_for_a_task_in_use(c):
    for _ in range(50):
        refused(port_of(c, 0), WORKER, 0, MASTER).close()
        refused(port_of(c, 0), PS, 0, MASTER).close()
        refused(port_of(c, 1), WORKER, 0, PS).close()


def speaks_without_a_link(c):
    """As a task, of a link that nobody has given it: told so, and nothing else."""
    for port, role, to, kinds in ((port_of(c, 0), WORKER, MASTER, (REGISTER_KIND, FAULT_KIND)),
                                  (port_of(c, 0), PS, MASTER, (REGISTER_KIND, FAULT_KIND)),
                                  (port_of(c, 1), WORKER, PS, (PUSH_KIND,))):
        s = refused(port, role, 0, to)
        for kind in kinds:
            s.say(kind, body((1, 9), (2, "over")), incarnation=777, sequence=1001, job=1,
                  generation=1, map=1, view=1)
            s.hear(RESET_KIND)
        s.close()


def bad_pushes(c):
    """Pushes by a peer that is in no view: outside the frame, of another size, damaged, and right."""
    s = refused(port_of(c, 1), WORKER, 0, PS)
    data = struct.pack("<256f", *[1e6] * 256)
    tables = [part_table((0, 0, 512, 1024, 0)), part_table((0, 3, 0, 1024, 0)),
              part_table((0, 0, 1 << 63, 1024, 0)), part_table((0, 0, 0, 8, 0)),
              part_table((1 << 31, 0, 0, 1024, 0)), part_table((0, 0, 0, 1024, 99)),
              part_table((0, 0, 0, 1024, 0)), struct.pack("<II", 0xFFFFFFFF, 0)]
    for step, table in enumerate(tables * 20, 1):
        s.say(PUSH_KIND, table, [data], incarnation=777, sequence=1000 + step, step=step, job=1,
              generation=1, map=1, view=1)
        s.hear(RESET_KIND)
    s.close()


def forged_deaths(c):
    """Reports of deaths by a client, which anybody may be, that knows no session."""
    s = Speaker(port_of(c, 0))
    s.say(HELLO_KIND, hello(CLIENT, 0, MASTER), incarnation=778, sequence=2000)
    s.hear(WELCOME_KIND)
    sequence = 2000
    for task in c.tasks()[1:]:
        role, _, index = task.partition("/")
        for session in ("", "guessed"):
            for down in (0, 1):
                sequence += 1
                died = body((1, {"ps": PS, "worker": WORKER}[role]), (2, int(index)),
                            (3, c.pid(task)), (4, "killed"), (5, session), (6, down))
                s.say(DIED_KIND, died, incarnation=778, sequence=sequence)
    until(lambda: "death_refused" in c.read(".weft/logs/master-0.log"), "the master refuses")
    s.close()


ATTACKS = [hello_for_a_task_in_use, speaks_without_a_link, bad_pushes, forged_deaths]


def a_stranger_in_the_place_of_a_task_changes_nothing(weft):
    with make(weft) as c:
        c.must("train", "small.yaml")
        clean = losses(c)
    with make(weft) as c:
        c.must("up")
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 50, "trains")
        pids = {task: c.pid(task) for task in c.tasks()}
        for attack in ATTACKS:
            attack(c)
        check(c.job("small")["state"] == "running", f"the job was over too soon: {c.job('small')}")
        c.until_job("small", lambda j: j["state"] == "done", "ends")
        check(c.job("small")["generation"] == 1, str(c.job("small")))
        check({task: c.pid(task) for task in c.tasks()} == pids, "processes changed")
        check(losses(c) == clean, "the losses are others than without the stranger")


main([a_stranger_in_the_place_of_a_task_changes_nothing])

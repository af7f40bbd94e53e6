# SPDX-License-Identifier: Apache-2.0
"""Who is stuck is given up, and who takes long is not.

    progress.py WEFT [TEST...]

A main thread is stopped by ptrace while the other threads of its process go on, as in a deadlock: the
process lives, and its signs of life are regular.
"""
from stopped import Stopped
from weftlib import Cluster, check, main, needs, until

needs("numpy")
import numpy as np  # noqa: E402
import small  # noqa: E402

STUCK = "dead_ms: 1000\nheartbeat_ms: 200\nstuck_ms: 3000"


def task_row(c, name):
    return next(t for t in c.status()["tasks"] if t["task"] == name)


def a_main_thread_that_hangs_costs_its_task_and_not_the_job(weft):
    for name in ("worker/1", "ps/0"):
        with Cluster(weft, transport="tcp", more=STUCK) as c:
            small.write_job(c, epochs=100000, every_steps=100)
            c.must("up")
            c.must("submit", "small.yaml")
            c.until_job("small", lambda j: j["step"] > 200 and j["checkpoint"], "trains")
            pid = c.pid(name)
            with Stopped(pid):
                until(lambda: "stood still" in str(task_row(c, name)["last_end"]),
                      f"{name} is given up", 15)
                until(lambda: "task.stuck" in c.logs(), "another thread ends the process", 15)
            before = c.job("small")["step"]
            c.until_job("small", lambda j: j["state"] == "running" and j["step"] > before + 100,
                        "trains on")
            check(c.pid(name) != pid, "another process has the place")
            c.must("stop", "small")


def a_stuck_ps_is_named_by_those_who_wait_for_it(weft):
    with Cluster(weft, transport="tcp", more="stuck_ms: 60000") as c:
        small.write_job(c, epochs=100000, every_steps=100)
        c.must("up")
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["step"] > 200, "trains")
        with Stopped(c.pid("ps/1")):
            row = until(lambda: next((t for t in c.status()["tasks"]
                                      if t["waits"] and t["waits"]["for"] == "ps/1" and
                                      t["waits"]["since_s"] > 5), None), "a worker waits for ps/1", 20)
            check("step" in row["waits"]["what"] or "cut" in row["waits"]["what"], str(row))
            check("waits" in c.must("status").out and "for ps/1" in c.must("status").out, "weft status")
            until(lambda: "wait.long" in c.logs() and "for=ps/1" in c.logs(), "a line in the log", 20)
        before = c.job("small")["step"]
        c.until_job("small", lambda j: j["step"] > before + 100, "trains on")
        check(c.job("small")["generation"] == 1, "nobody was given up")
        c.must("stop", "small")


LONG = """job: long
model:
  input: {x: [1536]}
  layers:
    - dense: {units: 3072, activation: relu}
    - dense: {units: 3072, activation: relu}
    - dense: {units: 8}
loss: sparse_categorical_crossentropy
data: {format: synthetic, records: 32768, split_records: 32768}
batch: 4096
epochs: 1
optimizer: {sgd: {learning_rate: 0.001}}
seed: 1
"""


def a_step_of_seconds_costs_one_transfer(weft):
    with Cluster(weft, ps=2, workers=1, transport="tcp", more="stuck_ms: 10000") as c:
        c.write("long.yaml", LONG)
        c.must("up")
        c.must("submit", "long.yaml")
        job = c.until_job("long", lambda j: j["step"] >= 4, "four steps", 120)
        rows = c.status()["tasks"]
        rate = job["elapsed_s"] / job["step"]
        check(rate > 0.7, f"a step takes {rate:.1f} s: too fast to show anything")
        again = {t["task"]: t["links"] for t in rows if any(l["sent_again_bytes"] for l in t["links"])}
        check(not again, f"bytes were sent twice: {again}")
        check(all(t["last_end"] is None for t in rows), f"nobody is given up: {rows}")
        print(f"     a step takes {rate:.1f} s, and nothing is sent twice")


main([a_main_thread_that_hangs_costs_its_task_and_not_the_job,
      a_stuck_ps_is_named_by_those_who_wait_for_it, a_step_of_seconds_costs_one_transfer])

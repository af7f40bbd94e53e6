# SPDX-License-Identifier: Apache-2.0
"""Data that grows: files are put into a folder while a job trains them.

    new_files.py WEFT [TEST...]

The job is the ledger (ledger.py): its weights count how often each record was trained.
"""
import os

from weftlib import Cluster, check, main, needs, until

needs("numpy", "onnx")
import ledger  # noqa: E402
import numpy as np  # noqa: E402

RECORDS = 600
NEW_FILES = "{poll_seconds: 0.1, settle_seconds: 0.2%s}"
DATA = """data:
  format: csv
  train: in/part-*.csv
  new_files: %s
  schema: {id: int64}
  columns: {x: id}
  map: {x: [{one_hot: {classes: %d}}]}
  split_records: 16
"""


def prepare(c, idle=None, every_seconds=None, epochs=None):
    """The ledger's job, of csv files that are still to come."""
    ledger.write_job(c.folder, RECORDS, epochs or 1, batch=4, split_records=16,
                     every_steps=10 ** 6, pipeline=1, seed=3)
    text = c.read("ledger.yaml")
    begin, end = text.index("data:"), text.index("batch:")
    new_files = NEW_FILES % (f", idle_stop_seconds: {idle}" if idle else "")
    text = text[:begin] + DATA % (new_files, RECORDS) + text[end:]
    if not epochs:
        text = text.replace("epochs: 1\n", "")
    if every_seconds:
        text = text.replace("every_steps: 1000000", f"every_seconds: {every_seconds}")
    c.write("ledger.yaml", text)
    os.mkdir(c.path("in"))


def put(c, number, ids):
    """A file as a careful writer makes it: whole before it has its name."""
    hidden = c.write(f"in/_part-{number:04}.csv", "id\n" + "".join(f"{i}\n" for i in ids))
    os.rename(hidden, c.path("in", f"part-{number:04}.csv"))


def counts(c):
    c.must("export", "ledger", "-o", "out.onnx")
    return ledger.read_counts(c.path("out.onnx"))


def trained(n, more=lambda rounds: True):
    return lambda j: j["rounds"] and j["rounds"]["records"] == n and more(j["rounds"])


def is_waiting(rounds):
    return rounds["waits_for"].startswith("new files that match")


def files_that_appear_are_trained_once(weft):
    with Cluster(weft) as c:
        prepare(c)
        c.must("up")
        c.must("submit", "ledger.yaml")
        c.until_job("ledger", trained(0, is_waiting), "waits for its first file")
        check("new files that match" in c.must("status", "ledger").out, "status says what it lacks")
        put(c, 1, range(100))
        c.write("in/_part-0009.csv", "id\n599\n")
        c.until_job("ledger", trained(100, is_waiting), "has trained the first file")
        put(c, 3, range(200, 300))
        put(c, 2, range(100, 200))
        job = c.until_job("ledger", trained(300, is_waiting), "has trained three")
        check(job["rounds"]["files"] == 3, job["rounds"])
        c.must("stop", "ledger")
        got = counts(c)
        check((got[:300] == 1).all() and (got[300:] == 0).all(), got)
        history = c.must("history", "ledger").out
        check(len(history.strip().split("\n")) >= job["rounds"]["round"], history)


def nothing_is_lost_or_repeated_by_stop_recover_and_a_new_master(weft):
    with Cluster(weft) as c:
        prepare(c)
        c.must("up")
        c.must("submit", "ledger.yaml")
        put(c, 1, range(300))
        c.until_job("ledger", lambda j: j["rounds"] and j["rounds"]["records"] > 0, "trains")
        c.kill("master")
        put(c, 2, range(300, 340))
        c.until_job("ledger", lambda j: j["rounds"] and j["rounds"]["records"] > 0,
                    "trains under a new master")
        c.must("stop", "ledger")
        put(c, 3, range(340, 500))
        c.start("recover", "ledger")
        c.until_job("ledger", trained(500, is_waiting), "has trained all three")
        c.kill("master")
        put(c, 4, range(500, 600))
        c.until_job("ledger", trained(600, is_waiting), "has trained the fourth")
        c.must("stop", "ledger")
        got = counts(c)
        check((got == 1).all(), got)


def a_worker_that_dies_loses_no_record(weft):
    with Cluster(weft) as c:
        prepare(c)
        c.must("up")
        c.must("submit", "ledger.yaml")
        put(c, 1, range(400))
        c.until_job("ledger", lambda j: j["rounds"] and j["rounds"]["records"] > 0, "trains")
        c.kill("worker/0")
        c.until_job("ledger", trained(400, is_waiting), "has trained the first file")
        os.remove(c.path("in", "part-0001.csv"))  # trained, so it may go
        c.kill("worker/1")
        put(c, 2, range(400, 600))
        c.until_job("ledger", trained(600, is_waiting), "has trained the second file")
        c.must("stop", "ledger")
        got = counts(c)
        check((got >= 1).all() and got.sum() < RECORDS + 200, got)


def when_all_processes_die_the_last_checkpoint_knows_its_files(weft):
    with Cluster(weft) as c:
        prepare(c, every_seconds=1)
        c.must("up")
        c.must("submit", "ledger.yaml")
        put(c, 1, range(100))
        c.until_job("ledger", trained(100, is_waiting), "has trained the first file")
        until(lambda: c.checkpoints("ledger"), "a checkpoint by the clock")
        put(c, 2, range(100, 200))
        c.until_job("ledger", trained(200), "has trained the second file")
        c.kill_all()
        put(c, 3, range(200, RECORDS))
        c.must("up")
        c.start("recover", "ledger")
        c.until_job("ledger", trained(RECORDS, is_waiting), "has trained all files")
        c.must("stop", "ledger")
        got = counts(c)
        check((got == 1).all(), got)


def rounds_may_be_bounded(weft):
    with Cluster(weft) as c:
        prepare(c, idle=0.5)
        put(c, 1, range(RECORDS))
        c.must("train", "ledger.yaml")
        check((counts(c) == 1).all(), "an idle job is done")
    with Cluster(weft) as c:
        prepare(c, epochs=1)
        put(c, 1, range(RECORDS))
        c.must("train", "ledger.yaml")
        check((counts(c) == 1).all(), "epochs bound the rounds")
    with Cluster(weft) as c:
        prepare(c, idle=0.5)
        said = c.must("train", "ledger.yaml", code=1).err
        check("part-*.csv has appeared in 0.5 s; check the pattern" in said, said)


def steps_end_a_round_in_its_middle(weft):
    with Cluster(weft) as c:
        prepare(c)
        c.write("ledger.yaml", c.read("ledger.yaml").replace("batch: 4", "batch: 4\nsteps: 20"))
        put(c, 1, range(RECORDS))
        c.must("up")
        c.must("train", "ledger.yaml")
        check(counts(c).sum() == 80, "twenty steps of four records")
        path = c.path("in", "part-0001.csv")
        os.rename(path, path + ".away")
        gone = c.run("recover", "ledger", "--set", "steps=150")
        check(gone.code == 1 and "part-0001.csv is gone, of which" in gone.err, gone)
        put(c, 1, range(RECORDS - 1))
        changed = c.run("recover", "ledger", "--set", "steps=150")
        check(changed.code == 1 and "part-0001.csv has changed: it has" in changed.err, changed)
        put(c, 1, reversed(range(RECORDS)))
        changed = c.run("recover", "ledger", "--set", "steps=150")
        check(changed.code == 1 and "finds other content in the files of round 1" in changed.err,
              changed)
        os.rename(path + ".away", path)
        c.must("recover", "ledger", "--set", "steps=150")
        check((counts(c) == 1).all(), counts(c))


def bad_files_are_named(weft):
    with Cluster(weft) as c:
        prepare(c)
        c.must("up")
        c.must("submit", "ledger.yaml")
        put(c, 1, range(100))
        c.until_job("ledger", trained(100, is_waiting), "has trained the first file")
        c.write("in/part-0002.csv", "id\n100\nhundred\n")
        job = c.until_job("ledger", lambda j: j["state"] == "failed", "fails")
        check("part-0002.csv:3" in job["reason"], job["reason"])
        c.write("in/part-0002.csv", "id\n100\n101\n")
        c.start("recover", "ledger")
        c.until_job("ledger", trained(102, is_waiting), "goes on with the file as it is now")


if __name__ == "__main__":
    main([files_that_appear_are_trained_once,
          nothing_is_lost_or_repeated_by_stop_recover_and_a_new_master,
          a_worker_that_dies_loses_no_record,
          when_all_processes_die_the_last_checkpoint_knows_its_files, rounds_may_be_bounded,
          steps_end_a_round_in_its_middle, bad_files_are_named])

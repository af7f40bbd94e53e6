# SPDX-License-Identifier: Apache-2.0
"""Data as people have it at hand: the same records in other forms train the same model.

    data_forms.py WEFT [TEST...]

Every form is held against a job on plain npy files, loss by loss and bit for bit.
"""
import csv
import re

from losses import cluster_with_data, losses
from weftlib import check, main, needs

needs("numpy")
import numpy as np  # noqa: E402

RECORDS, WIDTH = 2000, 24
JOB = """
job: {name}
model:
  input: {{x: [24]}}
  layers: [{{dense: {{units: 10}}}}]
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data: {data}
batch: 32
epochs: 2
optimizer: {{sgd: {{learning_rate: 0.1}}}}
seed: 7
"""
ARRAYS = "{format: npy, train: {x: a.npy, y: b.npy}, eval: {x: c.npy, y: d.npy}}"


def evaluated(result):
    """loss and accuracy of the last evaluation, as the last line shows them."""
    found = re.search(r"loss (\S+)  accuracy (\S+) \(eval\)", result.out + result.err)
    check(found, f"no evaluation in {result}")
    return found.groups()


def outcome(c, name, data, *args):
    """The losses of all steps, and the last evaluation."""
    c.write(f"{name}.yaml", JOB.format(name=name, data=data))
    c.write("losses", "")
    result = c.must("train", *args, f"{name}.yaml")
    return losses(c), evaluated(result)


def cut_by_hand(c, records):
    """The files of ARRAYS: what Keras trains on, and what it validates on, with a fifth held out."""
    x, y = np.load(c.path("x.npy"))[:records], np.load(c.path("y.npy"))[:records]
    at = int(np.floor(records * (1 - 0.2)))
    for name, part in zip("abcd", (x[:at], y[:at], x[at:], y[at:])):
        np.save(c.path(f"{name}.npy"), part)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), y)
    return x, y


def a_validation_split_is_the_end_of_the_files(weft):
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        x, y = cut_by_hand(c, RECORDS - 3)
        want = outcome(c, "cut", ARRAYS, "--local")
        split = "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.2}"
        got = outcome(c, "split", split, "--local")
        check(got == want, f"evaluated {got[1]}, not {want[1]}; {len(got[0])} losses")
        got = outcome(c, "tasks", split)
        check(got == want, f"a cluster evaluated {got[1]}, not {want[1]}")
        again = c.must("eval", "tasks").out
        check(f"{len(x) - int(len(x) * 0.8)} records" in again and want[1][1] in again, again)
        with open(c.path("t.csv"), "w", encoding="ascii", newline="") as f:
            out = csv.writer(f)
            out.writerow([f"f{i}" for i in range(WIDTH)] + ["label"])
            out.writerows([*map(repr, map(float, r)), int(k)] for r, k in zip(x, y))
        columns = "columns: {x: [%s], y: label}" % ", ".join(f"f{i}" for i in range(WIDTH))
        plain = ARRAYS.replace("format: npy", "format: npy, shuffle: false")
        want = outcome(c, "unmixed", plain, "--local")
        got = outcome(c, "table", "{format: csv, shuffle: false, train: t.csv, %s, "
                      "validation_split: 0.2}" % columns, "--local")
        check(got == want, f"csv: evaluated {got[1]}, not {want[1]}")


def a_recovered_job_holds_out_the_same_records(weft):
    split = "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.2}"
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        cut_by_hand(c, RECORDS)
        want = outcome(c, "whole", ARRAYS, "--local")
        text = JOB.format(name="halved", data=split).replace("epochs: 2", "epochs: 1")
        c.write("halved.yaml", text + "checkpoint: {every_steps: 10}\n")
        c.must("up")
        c.must("train", "halved.yaml")
        c.write("losses", "")
        result = c.must("recover", "halved", "--set", "epochs=2")
        check(evaluated(result) == want[1], f"{evaluated(result)}, not {want[1]}")
        again = losses(c, generation=2)
        check(again == want[0][50:], f"{len(again)} losses after the recovery")


def a_split_that_leaves_nothing_is_refused(weft):
    with cluster_with_data(weft, 1, 3, WIDTH) as c:
        data = "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.9}"
        c.write("none.yaml", JOB.format(name="none", data=data))
        result = c.run("train", "--local", "none.yaml")
        check(result.code == 1, str(result))
        check("a validation_split of 0.9 leaves none for training" in result.err, result.err)


main([a_validation_split_is_the_end_of_the_files, a_recovered_job_holds_out_the_same_records,
      a_split_that_leaves_nothing_is_refused])

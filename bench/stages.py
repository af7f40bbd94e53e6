#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model that `place` divides into two stages of equal work, on two workers or two devices of one, beside one worker that
has all of it.

stages.py [--batch 512] [--micro 2,4,8] [--seconds 3] [--repeats 3] [--predict] [--json]

Stages have one thread each; the one worker has one thread, or two. All take the same micro-batches: one worker accumulates
the gradients of as many. While the pipeline fills and empties, stages wait for 1 / (M + 1) of a step: two stages make at
best 2 M / (M + 1) times the examples of one thread. Jobs on clusters that are up, in turns; all examples over the time
from the first step to the end. --predict measures weft predict --spread as well, by the time of the whole command, with
its start and the joining of parts taken away by a second command of half the records.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import numpy as np
from parameter_servers import Cluster

WIDE, INPUT, RECORDS = 1024, 64, 8192
JOB = """job: {name}
model:
  input: {{x: [64]}}
  layers:
    - dense: {{units: 1024, activation: relu, name: in}}
    - dense: {{units: 1024, activation: relu, name: h0}}
    - dense: {{units: 1024, activation: relu, name: h1}}
    - dense: {{units: 1024, activation: relu, name: h2}}
    - dense: {{units: 1024, activation: relu, name: h3}}
    - dense: {{units: 10, name: head}}
loss: sparse_categorical_crossentropy
data: {{format: npy, train: {{x: x.npy, y: y.npy}}}}
batch: {batch}
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: 0.01{accumulate}}}}}
seed: 1
{how}
"""
STAGES = {"stages": 'place: {"in/*": worker/0, "h2/*": worker/1}\nmicro_batches: ',
          "devices": 'place: {"in/*": "cpu:0", "h2/*": "cpu:1"}\nmicro_batches: '}


def prepare(c):
    rng = np.random.default_rng(1)
    np.save(os.path.join(c.folder.name, "x.npy"), rng.normal(size=(RECORDS, INPUT)).astype(np.float32))
    np.save(os.path.join(c.folder.name, "y.npy"), rng.integers(0, 10, RECORDS).astype(np.int64))


def train(c, name, batch, micro, epochs, way):
    divided = way in STAGES
    text = JOB.format(name=name, epochs=epochs, batch=batch if divided else batch // micro,
                      accumulate="" if divided else ", gradient_accumulation_steps: %d" % micro,
                      how=STAGES[way] + str(micro) if divided else "strategy: local")
    file = os.path.join(c.folder.name, name + ".yaml")
    with open(file, "w") as f:
        f.write(text)
    c.weft("train", file)
    job = [j for j in c.picture()["jobs"] if j["job"] == name][0]
    return RECORDS * epochs / job["elapsed_s"]


def predict(c, name, batch, records, spread):
    """Records/s behind the start."""
    spent = []
    for n in (records // 2, records):
        np.save(os.path.join(c.folder.name, "rows.npy"), np.zeros((n, INPUT), np.float32) + 1)
        began = time.monotonic()
        c.weft("predict", name, "--input", "x=rows.npy", "-o", "out.npy", "--batch", str(batch), "--threads", "1",
               *(["--spread"] if spread else []))
        spent.append(time.monotonic() - began)
    return (records - records // 2) / (spent[1] - spent[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--micro", default="2,4,8")
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--predict", action="store_true")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    rows = []
    load = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        one, two, stages, devices = (stack.enter_context(Cluster(0, *kind, devices=on)) for kind, on in (
            ((1, 1), ["cpu"]), ((1, 2), ["cpu"]), ((2, 1), ["cpu"]), ((1, 2), ["cpu:0", "cpu:1"])))
        ways = {"one": one, "two": two, "stages": stages, "devices": devices}
        for c in ways.values():
            prepare(c)
        for micro in map(int, a.micro.split(",")):
            rates = {what: [] for what in ways}
            guess = train(one, "warm%d" % micro, a.batch, micro, 1, "one")
            epochs = max(1, round(guess * a.seconds / RECORDS))
            for turn in range(a.repeats):
                for what, c in ways.items():
                    rates[what].append(train(c, "%s%d-%d" % (what, micro, turn), a.batch, micro, epochs, what))
            m = {k: statistics.median(v) for k, v in rates.items()}
            ideal = 2 * micro / (micro + 1) * m["one"]
            rows.append({"micro_batches": micro, "one_thread": m["one"], "two_threads": m["two"], "stages": m["stages"],
                         "devices": m["devices"], "ideal": ideal, "fraction": m["stages"] / ideal, "bubble": 1 / (micro + 1), "all": rates})
        predicted = None
        if a.predict:
            name = "%s%s-0" % ("stages", a.micro.split(",")[0])
            with open(os.path.join(stages.folder.name, name + ".yaml")) as f:
                text = f.read()
            with open(os.path.join(one.folder.name, name + ".yaml"), "w") as f:
                f.write(text.split("place:")[0] + "strategy: local\n")
            one.weft("train", os.path.join(one.folder.name, name + ".yaml"))
            both = [(predict(one, name, 128, 131072, True), predict(stages, name, 128, 131072, True))
                    for _ in range(a.repeats)]
            predicted = [statistics.median(x) for x in zip(*both)]
    if a.json:
        json.dump({"batch": a.batch, "rows": rows, "predicted": predicted, "load": [load, os.getloadavg()[0]]}, sys.stdout)
        print()
        return
    print("load before: %.2f" % load)
    print("| M, batch %d | one thread | two threads | two stages | on two devices | ideal | of the ideal |\n|---|---|---|---|---|---|---|" % a.batch)
    for r in rows:
        s, d = r["all"]["stages"], r["all"]["devices"]
        print("| %d | %.0f | %.0f | %.0f (%.0f-%.0f) | %.0f (%.0f-%.0f) | %.0f | %.2f |" % (
            r["micro_batches"], r["one_thread"], r["two_threads"], r["stages"], min(s), max(s), r["devices"], min(d), max(d),
            r["ideal"], r["fraction"]))
    if predicted:
        print("predicted, batch 128: %.0f records/s by one worker of one thread, %.0f by two stages: %.2f times" % (
            *predicted, predicted[1] / predicted[0]))
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()

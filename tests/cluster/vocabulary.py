# SPDX-License-Identifier: Apache-2.0
"""Words of a csv file are numbered as a Python reference numbers them, by every process and after a
recovery, whatever the training file holds by then.

    vocabulary.py WEFT [TEST...]
"""
import collections
import csv
import json
import os
import re
import subprocess

import weftlib

weftlib.needs("numpy", "onnx", "onnxruntime")

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

RECORDS, MOST = 1200, 20
# The empty one is no word; the one of three lines' bytes holds quotes and the delimiter.
USERS = ["ann", "Ann", 'a "b", c', "zoë", "日本", "", "17"] + [f"u{i}" for i in range(30)]
JOB = """job: words
model:
  input: {user: [], x: [1]}
  layers: [{embedding: {input_dim: 21, output_dim: 4, inputs: [user]}},
    {concatenate: {inputs: [embedding, x]}}, {dense: {units: 2}}]
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: csv
  train: t.csv
  eval: e.csv
  columns: {user: user, x: [x], y: y}
  map: {user: [{vocabulary: 20}]}
batch: 16
epochs: 4
seed: 4
checkpoint: {every_steps: 20}
optimizer: {adam: {learning_rate: 0.02}}
"""


def write(c, name, seed, others=()):
    """What the label is goes by the word alone."""
    rng = np.random.default_rng(seed)
    users = USERS + list(others)
    chance = 1 / np.arange(2, len(users) + 2)
    chosen = rng.choice(len(users), RECORDS, p=chance / chance.sum())
    rows = [(users[k], f"{x:.4f}", k % 2) for k, x in zip(chosen, rng.normal(0, 1, RECORDS))]
    with open(c.path(name), "w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows([("user", "x", "y")] + rows)
    return rows


def words_of(rows):
    """The reference: by count, then by the bytes."""
    counts = collections.Counter(row[0] for row in rows if row[0])
    return sorted(counts, key=lambda w: (-counts[w], w.encode()))[:MOST]


def arrays(rows, words):
    number = {word: i + 1 for i, word in enumerate(words)}
    return (np.array([number.get(row[0], 0) for row in rows], np.int64),
            np.array([[float(row[1])] for row in rows], np.float32),
            np.array([row[2] for row in rows]))


def metrics_of(scores, y):
    z = scores.astype(np.float64)
    loss = (np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]).mean()
    return f"loss {loss:.4f}  accuracy {(z.argmax(1) == y).mean():.4f}"


def learnt(c):
    newest = max((os.path.join(root, "manifest.json") for root, _, files in os.walk(c.folder)
                  if "manifest.json" in files), key=os.path.getmtime, default=None)
    weftlib.check(newest, f"no manifest under {c.folder}")
    with open(newest, encoding="utf-8") as f:
        return {row["field"]: row for row in json.load(f)["learnt"]}


def check_scores(c, words, rows):
    """weft eval and weft predict against the exported model, fed by the reference's numbers."""
    user, x, y = arrays(rows, words)
    weftlib.check(learnt(c)["user"]["words"] == words, f"{learnt(c)['user']['words']}, not {words}")
    c.must("export", "words", "-o", "m.onnx")
    model = onnxruntime.InferenceSession(c.path("m.onnx"))
    feeds = {i.name: {"user": user, "x": x}[i.name].astype(
        {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}[i.type])
        for i in model.get_inputs()}
    scores = model.run(None, feeds)[0]
    said = c.must("eval", "words").out
    weftlib.check(metrics_of(scores, y) in said, f"{metrics_of(scores, y)} in {said}")
    c.must("predict", "words", "--input", "user=e.csv", "--input", "x=e.csv", "-o", "p.npy")
    gap = np.abs(np.load(c.path("p.npy")) - scores).max()
    weftlib.check(gap < 1e-5, f"weft predict is off by {gap}")
    return (scores.argmax(1) == y).mean()


def words_are_those_of_the_training_data(weft):
    with weftlib.Cluster(weft, ps=2, workers=2) as c:
        c.write("job.yaml", JOB)
        words = words_of(write(c, "t.csv", 1))
        other = write(c, "e.csv", 2, ["stranger", "other"])
        c.must("up")
        c.must("train", "job.yaml")
        right = check_scores(c, words, other)
        weftlib.check(right > 0.8, f"the word says what the label is: accuracy {right}")

        # Other words are the most frequent ones in the training file by now.
        write(c, "t.csv", 3, [f"late{i}" for i in range(400)])
        check_scores(c, words, other)
        c.kill_all()
        c.must("up")
        c.must("recover", "words", "--set", "epochs=5")
        check_scores(c, words, other)
        os.remove(c.path("t.csv"))
        check_scores(c, words, other)


def words_of_a_file_are_kept_too(weft):
    with weftlib.Cluster(weft) as c:
        write(c, "t.csv", 1)
        other = write(c, "e.csv", 2)
        words = [w for w in reversed(USERS) if w][:MOST]
        c.write("words.txt", "\n".join(words) + "\n")
        c.write("job.yaml", JOB.replace("vocabulary: 20", "vocabulary: words.txt"))
        c.must("train", "--local", "job.yaml")
        os.remove(c.path("words.txt"))
        check_scores(c, words, other)


def mistakes_are_told(weft):
    with weftlib.Cluster(weft) as c:
        write(c, "t.csv", 1)
        write(c, "e.csv", 2)
        for code, says, *change in [
                (1, r"none\.txt", "vocabulary: 20", "vocabulary: none.txt"),
                (2, r"from 1 to 1048576", "vocabulary: 20", "vocabulary: 0"),
                (2, "put it first", "[{vocabulary: 20}]", "[log1p, {vocabulary: 20}]"),
                (2, "has a schema", "  map:", "  schema: {user: int64}\n  map:")]:
            c.write("job.yaml", JOB.replace(*change))
            said = weftlib.one_sentence(c.must("train", "--local", "job.yaml", code=code).err)
            weftlib.check(re.search(says, said), f"{says!r} in: {said}")


def peek(c, name):
    done = subprocess.run([c.weft, "data", "peek", name], cwd=c.folder, capture_output=True,
                          text=True, timeout=weftlib.DEADLINE_S * weftlib.SLOWER, check=True)
    return done.stdout


def what_peek_suggests_trains(weft):
    """Columns of too many words are fields of their own, by their words or hashed."""
    with weftlib.Cluster(weft) as c:
        rows = [row for row in write(c, "t.csv", 1) if row[0] != "17"]  # a number among them
        distinct = len({row[0] for row in rows if row[0]})
        with open(c.path("p.csv"), "wb") as f:
            f.write("user,x,amount,kind,y\n".encode())
            for i, (user, x, y) in enumerate(rows):
                user = '"' + user.replace('"', '""') + '"'
                f.write(f"{user},k{i},{x},{'ab'[i % 2]},{y}\n".encode())
        shown = peek(c, "p.csv")
        for says in (rf"user .* and more, {distinct} different, empty in \d+ records",
                     rf"x .* and more, {len(rows)} different",
                     r"columns: {x: \[amount, kind\], user: user, x_words: x, y: y}",
                     r"schema: {kind: \[a, b\]}",
                     rf"map: {{x: \[standardise\], user: \[{{vocabulary: {distinct}}}\], "
                     rf"x_words: \[{{vocabulary: {len(rows)}}}\]}}"):
            weftlib.check(re.search(says, shown), f"{says!r} in: {shown}")
        lines = re.search(r"in a job file:\n((?:  .*\n)+)", shown).group(1)
        head, tail = JOB[:JOB.index("data:")], JOB[JOB.index("batch:"):]
        head = head.replace("input_dim: 21", f"input_dim: {distinct + 1}").replace("[1]", "[2]")
        c.write("job.yaml", head + "labels: y\n" + re.sub("^  ", "", lines, flags=re.M) + tail)
        c.must("train", "--local", "job.yaml")

        # A word that is no UTF-8 is none of a vocabulary.
        with open(c.path("latin.csv"), "wb") as f:
            f.write(b"user,y\nJ\xf6rg,1\nann,0\n")
        shown = peek(c, "latin.csv")
        weftlib.check("{user: user, y: y}\n    map: {user: [{hash: 262144}]}" in shown, shown)


if __name__ == "__main__":
    weftlib.main([words_are_those_of_the_training_data, words_of_a_file_are_kept_too,
                  mistakes_are_told, what_peek_suggests_trains])

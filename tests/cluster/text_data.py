# SPDX-License-Identifier: Apache-2.0
"""Jobs that read plain text: lines with labels, and running text in windows.

    text_data.py WEFT [TEST...]

What a record's tokens are is written down here in Python; tests/parity/text_tokens.py has the
harder cases of that, and holds them against Keras.
"""
import collections
import gzip
import os
import re

import weftlib
from weftlib import check

weftlib.needs("numpy", "onnx", "onnxruntime")

import ledger  # noqa: E402
import new_files  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from vocabulary import learnt, peek  # noqa: E402

RECORDS, LENGTH = 900, 12
LINES = """job: lines
model:
  input: {{x: {{shape: [{length}], dtype: int64}}}}
  layers:
    - embedding: {{input_dim: 30, output_dim: 8, combiner: mean}}
    - dense: {{units: 2}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: text
  train: "t-*"
  eval: e.txt
  bags: [x]
  map: {{x: [{{text_vectorization: {{{options}, output_sequence_length: {length}}}}}]}}
batch: 16
epochs: 4
seed: 4
checkpoint: {{every_steps: 50}}
optimizer: {{adam: {{learning_rate: 0.02}}}}
"""
WINDOWS = """job: windows
model:
  input: {x: {shape: [8], dtype: int64}}
  layers:
    - embedding: {input_dim: 14, output_dim: 16}
    - conv1d: {filters: 32, kernel_size: 4, padding: causal, activation: relu}
    - dense: {units: 14}
loss: {sparse_categorical_crossentropy: {from_logits: true}}
metrics: [accuracy]
data:
  format: text
  train: [a.txt.gz, b.txt]
  validation_split: 0.2
  sequence_length: 8
  sequence_stride: 5
  map: {x: [{text_vectorization: {split: character, standardize: none}}]}
batch: 8
epochs: 6
seed: 1
optimizer: {adam: {learning_rate: 0.02}}
"""


def write_lines(c, names, seed, words):
    """What the label is goes by how many words of either sort there are."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(RECORDS):
        label = int(rng.integers(2))
        chance = np.where(np.arange(len(words)) % 2 == label, 3.0, 1.0) / np.arange(2, len(words) + 2)
        text = rng.choice(words, rng.integers(1, 20), p=chance / chance.sum())
        rows.append((label, " ".join(text)))
    part = -(-len(rows) // len(names))
    for i, name in enumerate(names):
        opened = gzip.open if name.endswith(".gz") else open
        with opened(c.path(name), "wt", encoding="utf-8", newline="") as f:
            f.writelines(f"{label}\t{text}\r\n" for label, text in rows[i * part:(i + 1) * part])
    return rows


def tokens(text):
    return re.sub(r"[^\w\s]", "", text.lower(), flags=re.ASCII).split()


def words_of(rows, most):
    counts = collections.Counter(word for _, text in rows for word in tokens(text))
    return sorted(sorted(counts, reverse=True), key=lambda w: -counts[w])[:most]


def scores_of(c, job, feed):
    c.must("export", job, "-o", "m.onnx")
    model = onnxruntime.InferenceSession(c.path("m.onnx"))
    return model.run(None, {model.get_inputs()[0].name: feed})[0]


def crossentropy(scores, y):
    z = scores.reshape(-1, scores.shape[-1]).astype(np.float64)
    return np.log(np.exp(z).sum(1)).mean() - z[np.arange(len(z)), y.ravel()].mean()


def check_lines(c, words, rows):
    """weft eval and weft predict against the exported model, fed by the reference's tokens."""
    check(learnt(c)["x"]["words"] == words, f"{learnt(c)['x']['words']}, not {words}")
    place = {word: i + 2 for i, word in enumerate(words)}
    x = np.full((len(rows), LENGTH), -1, np.int64)
    for i, (_, text) in enumerate(rows):
        ids = [place.get(word, 1) for word in tokens(text)][:LENGTH]
        x[i, :len(ids)] = ids
    y = np.array([label for label, _ in rows])
    scores = scores_of(c, "lines", x)
    want = f"loss {crossentropy(scores, y):.4f}  accuracy {(scores.argmax(1) == y).mean():.4f}"
    said = c.must("eval", "lines").out
    check(want in said, f"{want} in {said}")
    for name in ("e.txt", "new.txt"):  # new lines have no label
        c.must("predict", "lines", "--input", f"x={name}", "-o", "p.npy")
        gap = np.abs(np.load(c.path("p.npy")) - scores).max()
        check(gap < 1e-5, f"weft predict {name} is off by {gap}")
    return (scores.argmax(1) == y).mean()


def words_are_those_of_the_training_lines(weft):
    known = [f"w{i}" for i in range(20)] + ["The", "the", "don't", "Zoë", "--"]
    with weftlib.Cluster(weft, ps=2, workers=2) as c:
        c.write("job.yaml", LINES.format(length=LENGTH, options="max_tokens: 22"))
        words = words_of(write_lines(c, ["t-1.txt", "t-2.txt.gz"], 1, known), 20)
        rows = write_lines(c, ["e.txt"], 2, known + ["stranger"])
        c.write("new.txt", "".join(f"{text}\n" for _, text in rows))
        c.must("up")
        c.must("train", "job.yaml")
        right = check_lines(c, words, rows)
        check(right > 0.7, f"the words say what the label is: accuracy {right}")

        # Other words are the most frequent ones in the training files by now.
        write_lines(c, ["t-1.txt", "t-2.txt.gz"], 3, [f"late{i}" for i in range(40)])
        check_lines(c, words, rows)
        c.kill_all()
        c.must("up")
        c.must("recover", "lines", "--set", "epochs=5")
        check_lines(c, words, rows)


def words_of_a_file_are_kept_too(weft):
    known = [f"w{i}" for i in range(9)]
    with weftlib.Cluster(weft) as c:
        write_lines(c, ["t-1.txt"], 1, known)
        rows = write_lines(c, ["e.txt"], 2, known)
        c.write("new.txt", "".join(f"{text}\n" for _, text in rows))
        c.write("words.txt", "\n".join(reversed(known[1:])) + "\n")
        c.write("job.yaml", LINES.format(length=LENGTH, options="vocabulary: words.txt"))
        c.must("train", "--local", "job.yaml")
        os.remove(c.path("words.txt"))
        check_lines(c, known[:0:-1], rows)


def windows_are_predicted(weft):
    """A text of few sentences is learnt by heart; what is held out is the end of all windows."""
    texts = ["ab bac cab. " * 260, "a cab, abba! " * 240]
    with weftlib.Cluster(weft, ps=2, workers=2) as c:
        with gzip.open(c.path("a.txt.gz"), "wt", encoding="ascii") as f:
            f.write(texts[0])
        c.write("b.txt", texts[1])
        c.write("job.yaml", WINDOWS)
        c.must("up")
        c.must("train", "job.yaml")
        begins = [(text, b) for text in texts for b in range(0, len(text) - 8, 5)]
        kept = int(len(begins) * 0.8)
        counts = collections.Counter(letter for text, b in begins[:kept] for letter in text[b:b + 5])
        words = sorted(sorted(counts, reverse=True), key=lambda w: -counts[w])
        for field in "xy":
            check(learnt(c)[field]["words"] == words, f"{learnt(c)[field]['words']}, not {words}")
        place = {letter: i + 2 for i, letter in enumerate(words)}
        ids = [np.array([[place.get(letter, 1) for letter in text[b + move:b + move + 8]]
                         for text, b in begins[kept:]]) for move in (0, 1)]
        scores = scores_of(c, "windows", ids[0].astype(np.int64))
        right = (scores.argmax(-1) == ids[1]).mean()
        want = f"loss {crossentropy(scores, ids[1]):.4f}  accuracy {right:.4f}"
        said = c.must("eval", "windows").out
        check(want in said, f"{want} in {said}")
        check(right > 0.8, f"the text repeats itself: accuracy {right}")


def each_window_is_trained_once_an_epoch(weft):
    """The ledger (ledger.py) over windows of one word, also when a worker dies."""
    with weftlib.Cluster(weft) as c:
        ledger.write_job(c.folder, 602, 3, batch=4, split_records=16, every_steps=10 ** 6, pipeline=1, seed=3)
        for i in range(2):
            c.write(f"in-{i}.txt", "\n".join(f"n{n}" for n in range(i * 300, i * 300 + 300)) + " end")
        c.write("words.txt", "\n".join(f"n{n}" for n in range(600)) + "\n")
        text = c.read("ledger.yaml")
        begin, end = text.index("data:"), text.index("  split_records:")
        c.write("ledger.yaml", text[:begin] + """data:
  format: text
  train: in-*.txt
  sequence_length: 1
  columns: {x: text}
  map: {x: [{text_vectorization: {vocabulary: words.txt}}, {one_hot: {classes: 602}}, {reshape: [602]}]}
""" + text[end:])
        c.must("up")
        c.must("submit", "ledger.yaml")
        c.until_job("ledger", lambda j: j["state"] == "done", "is done")
        got = new_files.counts(c)
        check((got[2:] == 3).all() and (got[:2] == 0).all(), got)


def lines_that_appear_are_trained_once(weft):
    with weftlib.Cluster(weft) as c:
        new_files.prepare(c)
        c.write("words.txt", "\n".join(f"n{n}" for n in range(598)) + "\n")
        text = c.read("ledger.yaml")
        text = text.replace("csv\n  train: in/part-*.csv", "text\n  train: in/part-*.txt")
        text = text.replace("  schema: {id: int64}\n  columns: {x: id}\n", "  columns: {x: text}\n")
        text = text.replace("{one_hot: {classes: 600}}", "{text_vectorization: {vocabulary: words.txt, "
                            "output_sequence_length: 1}}, {one_hot: {classes: 600}}, {reshape: [600]}")
        c.write("ledger.yaml", text)
        c.must("up")
        c.must("submit", "ledger.yaml")
        for i in range(2):
            hidden = c.write(f"in/_{i}", "".join(f"n{n}\n" for n in range(i * 200, i * 200 + 200)))
            os.rename(hidden, c.path("in", f"part-{i}.txt"))
            c.until_job("ledger", new_files.trained(200 * (i + 1), new_files.is_waiting), "trains a file")
        c.must("stop", "ledger")
        got = new_files.counts(c)
        check((got[2:402] == 1).all() and got.sum() == 400, got)


def what_peek_suggests_trains(weft):
    with weftlib.Cluster(weft) as c:
        write_lines(c, ["t-1.txt"], 1, ["good film", "bad film", "the", "of it all", "and", "a one"])
        c.write("s.txt", "To be, or not to be:\n\nthat is the question.\n" * 30)
        heads = {"t-1.txt": ("embedding: {input_dim: 40, output_dim: 4}}, flatten, {dense: {units: 2}}]}", 17),
                 "s.txt": ("embedding: {input_dim: 40, output_dim: 4}}, {dense: {units: 40}}]}", 100)}
        for name, (layers, _) in heads.items():
            shown = peek(c, name)
            lines = re.search(r"in a job file:\n((?:  .*\n)+)", shown).group(1)
            length = re.search(r"sequence_length: (\d+)", lines).group(1)
            c.write("job.yaml", f"job: p{len(name)}\nmodel: {{input: {{x: {{shape: [{length}], dtype: int64}}}},\n"
                    f"  layers: [{{{layers}\nbatch: 4\noptimizer: adam\n"
                    "loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
                    + re.sub("^  ", "", lines, flags=re.M))
            c.must("train", "--local", "job.yaml")
        check(re.search(r"t-1.txt  text  900 lines\n  words +\d+, 10 different", peek(c, "t-1.txt")), "words")
        shown = peek(c, "s.txt")
        for says in (r"s.txt  text  90 lines, 30 empty\n  words +300, 8 different\n",
                     r"of a line +0 to 6 words, mean 3.333\n  characters  1230, 17 different\n",
                     r'line 1 +"To be, or not to be:"\n'):
            check(re.search(says, shown), f"{says} in {shown}")
        stats = c.bare("data", "stats", "s.txt").out
        check(re.search(r"words +whole +0 +6 +3.33333 .*\n.*\nword +words .* 8\n", stats), stats)


if __name__ == "__main__":
    weftlib.main([words_are_those_of_the_training_lines, words_of_a_file_are_kept_too, windows_are_predicted,
                  each_window_is_trained_once_an_epoch, lines_that_appear_are_trained_once,
                  what_peek_suggests_trains])

# SPDX-License-Identifier: Apache-2.0
"""Tokens of plain text against a reference in Python, and against Keras's TextVectorization.

The reference is written down here from what the documentation says. Keras runs in an interpreter of
its own, which WEFT_KERAS_PYTHON names, as this file with the words `--keras CASES`. The review
files are those of the reference data (WEFT_SHARED), or, where these are not there, lines that are
drawn here.

usage: text_tokens.py RECORDS_TOOL
exit 77: skipped, a library is not there
"""
import collections
import gzip
import json
import os
import random
import re
import string
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

JOB = """job: tokens
model: {{input: {{x: [8]}}, layers: [{{dense: {{units: 1}}}}]}}
loss: mse
optimizer: sgd
batch: 4
data:
  format: {format}
  train: {train}
  columns: {{x: text{label}}}
  {more}
  map: {{x: [{{text_vectorization: {{{options}}}}}]}}
"""
BLANKS = " \t\n\v\f\r"
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
STRIP = str.maketrans("", "", string.punctuation)

# ---- the reference ----


def tokens(text, split="whitespace", standardize="lower_and_strip_punctuation", **_):
    if standardize.startswith("lower"):
        text = text.translate(LOWER)
    if "strip" in standardize:
        text = text.translate(STRIP)
    if split == "bytes":
        return list(text.encode())
    if split == "character":
        return list(text)
    return [word for word in re.split(f"[{BLANKS}]+", text) if word]


def vocabulary(counted, max_tokens=None, **_):
    """The most frequent first, and of equally frequent ones the last in the order of bytes."""
    counts = collections.Counter(counted)
    words = sorted(counts, key=lambda w: w.encode(), reverse=True)
    words.sort(key=lambda w: -counts[w])
    return {word: i + 2 for i, word in enumerate(words[:max_tokens - 2 if max_tokens else None])}


def numbers(found, place, split="whitespace", **_):
    return found if split == "bytes" else [place.get(word, 1) for word in found]


def padded(rows, length):
    out = np.zeros((len(rows), length), np.int64)
    for i, row in enumerate(rows):
        out[i, :len(row[:length])] = row[:length]
    return out


# ---- what is read ----


def options_of(options):
    return ", ".join(f"{k}: {v}" for k, v in options.items())


def records(tool, job, field, path, code=0):
    run = subprocess.run([tool, job, field, path], capture_output=True, check=False)
    assert run.returncode == code, run.stderr.decode()
    if code:
        return run.stderr.decode()
    shape, _, data = run.stdout.partition(b"\n")
    return np.frombuffer(data, np.int64).reshape([int(n) for n in shape.split()])


def drawn_lines():
    rng = random.Random(3)
    words = ["The", "the", "film", "don't", "well-made", "über", "ÜBER", "日本語", "--", "a\tb", "10/10",
             "<br", "/>", "x\v\fy", "ß", "naïve."] + [f"w{i}" for i in range(60)]
    return [" ".join(rng.choices(words, k=rng.randrange(40))) for _ in range(600)] + ["", " ", "!?"]


def review_lines():
    path = os.path.join(os.environ.get("WEFT_SHARED", "/nowhere"), "data", "imdb", "train.tsv.gz")
    if not os.path.exists(path):
        return []
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
        return [next(f).rstrip("\n").split("\t", 1)[1] for _ in range(2000)]


def write(folder, name, lines, end="\n"):
    path = os.path.join(folder, name)
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="") as f:
        f.write(end.join(lines))
    return path


LINE_CASES = [
    dict(),
    dict(max_tokens=50),
    dict(standardize="lower"),
    dict(standardize="strip_punctuation", max_tokens=200),
    dict(standardize="none"),
    dict(split="character", standardize="none"),
    dict(split="character", max_tokens=20),
]


def lines_are_the_references(tool, folder, lines, keras):
    """Of two files; a line end is LF or CRLF, and the last line may have none."""
    half = len(lines) // 2
    write(folder, "a-1.txt.gz", lines[:half] + [""], "\r\n")
    write(folder, "a-2.txt", lines[half:])
    whole = write(folder, "whole.txt", lines)
    for case in LINE_CASES + [dict(split="bytes")]:
        options = dict(case, output_sequence_length=30)
        if case.get("split") == "bytes":
            case = dict(case, standardize="none")
        job = write(folder, "lines.yaml", [JOB.format(
            format="text", train="a-*", label="", more="validation_split: 0.5",
            options=options_of(options))])
        learnt = lines[:len(lines) // 2]
        found = [tokens(line, **case) for line in lines]
        words = {} if case.get("split") == "bytes" else vocabulary(
            [t for row in found[:len(learnt)] for t in row], **case)
        want = padded([numbers(row[:30], words, **case) for row in found], 30)
        got = records(tool, job, "x", whole)
        assert got.shape == want.shape, (case, got.shape, want.shape)
        assert (got == want).all(), (case, np.argwhere(got != want)[:3])
        if keras is not None and case.get("split") != "bytes":
            keras.append(dict(learn=learnt, lines=lines, options=options, want=got.tolist()))


def csv_has_the_same_tokens(tool, folder, lines):
    quoted = ['"' + line.replace('"', '""') + '"' for line in lines]
    csv = write(folder, "t.csv", ["text,label"] + [f"{line},1" for line in quoted])
    text = write(folder, "t.txt", [f"1\t{line}" for line in lines])
    rows = []
    for form, path in (("csv", csv), ("text", text)):
        job = write(folder, f"{form}.yaml", [JOB.format(
            format=form, train=path, label=", y: label", more="",
            options="max_tokens: 90, output_sequence_length: 25")])
        rows.append(records(tool, job, "x", path))
        labels = records(tool, job, "y", path)
        assert (labels.ravel() == 1).all() and len(labels) == len(lines), labels
    assert (rows[0] == rows[1]).all()


def a_model_says_how_many_tokens_it_reads(tool, folder):
    path = write(folder, "m.txt", ["a b c d e f g h i j", "", "1\ta\tb"])
    job = write(folder, "m.yaml", [JOB.format(
        format="text", train=path, label=", y: label", more="", options="max_tokens: 5")])
    got = records(tool, job, "x", path)
    assert got.tolist() == [[3, 2, 1, 1, 1, 1, 1, 1], [0] * 8, [3, 2] + [0] * 6], got


def windows_are_the_references(tool, folder, texts):
    """Of several files, the shortest of which has none."""
    rng = random.Random(5)
    for i, text in enumerate(texts):
        write(folder, f"w-{i}.txt" + ".gz" * (i % 2), [text])
    for split in ("bytes", "character", "whitespace"):
        for length, stride in ((7, None), (5, 2), (4, 9), (1, 1), (60, 1), (rng.randrange(2, 40), 11)):
            case = dict(split=split)
            if split != "bytes":
                case.update(standardize=rng.choice(("none", "lower_and_strip_punctuation")))
            shown = dict(case)
            if split == "bytes":
                case["standardize"] = "none"
            step = stride or length
            job = write(folder, "windows.yaml", [JOB.format(
                format="text", train="w-*", label=", y: next", options=options_of(shown),
                more=f"sequence_length: {length}" + (f"\n  sequence_stride: {stride}" if stride else ""))])
            found = [tokens(text, **case) for text in texts]
            begins = [range(0, max(len(f) - length, 0), step) for f in found]
            counted = [t for f, places in zip(found, begins) for b in places
                       for t in f[b:b + min(step, length + 1)]]
            words = vocabulary(counted) if split != "bytes" else {}
            for move, field in enumerate("xy"):
                want = [numbers(f[b + move:b + move + length], words, **case)
                        for f, places in zip(found, begins) for b in places]
                got = records(tool, job, field, os.path.join(folder, "w-*"))
                assert got.shape == (len(want), length), (split, length, stride, got.shape, len(want))
                assert (got == np.array(want)).all(), (split, length, stride, field)


def hashed_words_have_bins_of_their_own(tool, folder, lines):
    path = write(folder, "h.txt", lines)
    job = write(folder, "h.yaml", [JOB.format(
        format="text", train=path, label="", more="",
        options="hash: 1000, output_sequence_length: 40")])
    got = records(tool, job, "x", path)
    assert got.min() == 0 and got.max() < 1000
    bins = {}
    for row, line in zip(got, lines):
        words = tokens(line)[:40]
        assert (row[:len(words)] > 0).all() and (row[len(words):] == 0).all()
        for word, number in zip(words, row):
            assert bins.setdefault(word, number) == number, word
    assert len(set(bins.values())) > min(len(bins), 1000) / 3


def broken_text_is_refused(tool, folder):
    length = "output_sequence_length: 4"
    cases = [
        (b"ab\ncd\xe4x\n", "{split: character, %s}" % length, "", r"b.txt:2: byte 3 begins no character of UTF-8"),
        (b"ab\ncd\xe4x\n", "{split: character}", "sequence_length: 2", r"b.txt:2: byte 3 begins no"),
        (b"ab\ncd\xe4", "{split: character}", "sequence_length: 2", r"b.txt:2: byte 3 begins no"),
        (b"ab\ncd\xed\xa0\x80x\n", "{split: character}", "sequence_length: 2", r"b.txt:2: byte 3 begins no"),
        (b"ab\ncd\xe4x\n", "{%s}" % length, "", r'b.txt:2: .*is not UTF-8'),
        (b"a b c\n", "{}", "sequence_length: 3", r"b.txt: 3 tokens, and a window takes 4"),
        (b"", "{%s}" % length, "", r"b.txt holds no records"),
        (b"\n\n!\n", "{%s}" % length, "", r'text_vectorization: all of "x" is empty'),
        (b"x" * (2 << 20), "{%s}" % length, "", r"b.txt:1: a record of more than 1048576 bytes"),
        (b"x" * (2 << 20), "{}", "sequence_length: 1", r"b.txt:1: a word of more than 1048576 bytes"),
        (b"a" + b" " * (17 << 20) + b"b\n", "{}", "sequence_length: 1", r"b.txt:1: the window of 1 tokens"),
        (b"a\n", "{max_tokens: 2, %s}" % length, "", r'b.yaml:11: "max_tokens" must be a whole number from 3'),
        (b"a\n", "{split: bytes, max_tokens: 9, %s}" % length, "", r"split: bytes takes no max_tokens"),
        (b"a\n", "{split: bytes, standardize: lower, %s}" % length, "", r"takes bytes as they are"),
        (b"a\n", "{hash: 9, max_tokens: 9, %s}" % length, "", r"both hash and max_tokens"),
        (b"a\n", "{hash: 9, vocabulary: v.txt, %s}" % length, "", r"both hash and vocabulary"),
        (b"a\n", "{split: word, %s}" % length, "", r'b.yaml:11: unknown split "word"'),
        (b"a\n", "{vocabulary: twice.txt, %s}" % length, "", r'twice.txt:3: the word "a" is there twice'),
        (b"a\n", "{vocabulary: unk.txt, %s}" % length, "", r"unk.txt holds the word \[UNK\]"),
        (b"a\n", "{vocabulary: v.txt, max_tokens: 3, %s}" % length, "", r"v.txt holds 2 words, and max_tokens: 3"),
        (b"a b\n", "{%s}" % length, "sequence_length: 1", r"output_sequence_length, of windows"),
        (b"a\n", "{%s}" % length, "sequence_stride: 1", r'b.yaml:10: "sequence_stride" is for windows'),
        (b"a\n", "{%s}" % length, "header: true", r'"text" has no "header"'),
        (b"a\n", "{max_token: 3}", "", r'unknown option of text_vectorization "max_token"'),
    ]
    write(folder, "twice.txt", ["a", "b", "a"])
    write(folder, "unk.txt", ["[UNK]", "b"])
    write(folder, "v.txt", ["b", "a"])
    for content, options, more, says in cases:
        path = os.path.join(folder, "b.txt")
        with open(path, "wb") as f:
            f.write(content)
        label = ", y: next" if "sequence_length" in more else ", y: label"
        job = write(folder, "b.yaml", [JOB.format(
            format="text", train="b.txt", label=label, more=more, options=options[1:-1])])
        said = records(tool, job, "x", path, code=1)
        assert re.search(says, said) and said.count("\n") == 1, (says, said)
    with open(path, "wb") as f:
        f.write(b"1\ta\nb\nx\tc\n")
    job = write(folder, "b.yaml", [JOB.format(
        format="text", train="b.txt", label=", y: label", more="", options="hash: 5, " + length)])
    assert "b.txt:2: a line without a tab" in records(tool, job, "y", path, code=1)
    with open(path, "wb") as f:
        f.write(b"1\ta\nx\tc\n")
    assert 'b.txt:2: the label "x" is no whole number' in records(tool, job, "y", path, code=1)


# ---- Keras ----


def run_keras(path):
    import keras
    with open(path, encoding="utf-8") as f:
        cases = json.load(f)
    for case in cases:
        options = dict(case["options"])
        if options.get("standardize") == "none":
            options["standardize"] = None
        layer = keras.layers.TextVectorization(**options)
        layer.adapt(case["learn"])
        got = layer(case["lines"]).numpy()
        want = np.array(case["want"])
        assert got.shape == want.shape and (got == want).all(), (case["options"], np.argwhere(got != want)[:3])


def check_keras(folder, cases):
    python = os.environ.get("WEFT_KERAS_PYTHON")
    if not python:
        print("without Keras: set WEFT_KERAS_PYTHON to an interpreter that has it")
        return
    path = os.path.join(folder, "cases.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(cases, f)
    run = subprocess.run([python, __file__, "--keras", path], capture_output=True, text=True, check=False,
                         env=dict(os.environ, KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3"))
    assert run.returncode == 0, run.stderr[-2000:]
    print(f"as Keras has them: {len(cases)} cases")


def main():
    if sys.argv[1] == "--keras":
        run_keras(sys.argv[2])
        return
    tool, keras = os.path.abspath(sys.argv[1]), []
    with tempfile.TemporaryDirectory() as folder:
        for lines in filter(None, (drawn_lines(), review_lines())):
            lines_are_the_references(tool, folder, lines, keras)
            csv_has_the_same_tokens(tool, folder, lines)
            hashed_words_have_bins_of_their_own(tool, folder, lines)
        windows_are_the_references(tool, folder, [
            "\n".join(drawn_lines()[:40]), "tiny.", "\n".join(drawn_lines()[-20:]), "é", "a b c"])
        a_model_says_how_many_tokens_it_reads(tool, folder)
        broken_text_is_refused(tool, folder)
        check_keras(folder, keras)
    print("ok")


if __name__ == "__main__":
    main()

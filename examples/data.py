#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prepares a data set for the jobs beside this file: numpy arrays below data/NAME.

    data.py NAME... [--shared DIR] [--to DIR] [--records N] [--validate]

DIR of --shared holds the files as they were published, in DIR/data/NAME ($WEFT_SHARED unless
given). --records keeps the first N records for training and a quarter as many for evaluation: for a
quick look. --validate leaves the records for evaluation out and puts a fifth of the others in their
place: settings are chosen there, and judged afterwards on records that nobody looked at.
Needs numpy alone. A set whose files have no part for evaluation gives up a fifth (higgs: a fourth).
"""
import argparse
import csv
import gzip
import os
import re
import shutil
import sys
from collections import Counter

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS, LENGTH = 10_000, 200  # imdb: 0 pads, 1 is an unknown word
CONTEXT = 64                 # shakespeare


def lines(*path):
    opened = gzip.open if path[-1].endswith(".gz") else open
    with opened(os.path.join(*path), "rt", encoding="utf-8", newline="\n") as f:
        return f.read().splitlines()


def cut(fields, part=5):
    """One record in `part` is for evaluation."""
    n = len(next(iter(fields.values())))
    held = np.arange(n) % part == part - 1
    return ({k: v[~held] for k, v in fields.items()}, {k: v[held] for k, v in fields.items()})


def standard(train, test):
    """Both with mean 0 and variance 1 of the columns of `train`."""
    mean, std = train.mean(0), train.std(0) + 1e-6
    return ((train - mean) / std).astype(np.float32), ((test - mean) / std).astype(np.float32)


def iris(source):
    rows = list(csv.reader(lines(source, "iris.csv")[1:]))
    kinds = sorted({row[4] for row in rows})
    train, test = cut({"x": np.array([row[:4] for row in rows], np.float32),
                       "y": np.array([kinds.index(row[4]) for row in rows], np.uint8)})
    train["x"], test["x"] = standard(train["x"], test["x"])
    return train, test


def higgs(source):
    rows = np.array(list(csv.reader(lines(source, "higgs-test.csv"))), np.float32)
    train, test = cut({"x": rows[:, 1:], "y": rows[:, :1]}, 4)
    train["x"], test["x"] = standard(train["x"], test["x"])
    return train, test


def house_price(source):
    rows = np.array([row.split("\t") for row in lines(source, "house_price_train.txt")], np.float32)
    return cut({"x": rows[:, 1:], "y": rows[:, :1] - np.float32(12)})


def mnist(source):
    del source  # idx files, which weft reads as they are


def cifar10(source):
    def read(name):
        with gzip.open(os.path.join(source, name)) as f:
            rows = np.frombuffer(f.read(), np.uint8).reshape(-1, 3073)
        return {"x": rows[:, 1:].reshape(-1, 3, 32, 32), "y": rows[:, 0]}
    return read("train_4000.bin.gz"), read("test_1000.bin.gz")


def shakespeare(source):
    """Windows of 64 characters and the same one further; each training window begins where the one
    before it is half over: every character is seen with at least half a window before it."""
    with open(os.path.join(source, "input.txt"), encoding="utf-8") as f:
        text = f.read()
    place = {letter: i for i, letter in enumerate(sorted(set(text)))}
    ids = np.array([place[letter] for letter in text], np.uint8)
    at = len(ids) * 9 // 10

    def windows(part, step):
        begins = np.arange(0, len(part) - CONTEXT - 1, step)[:, None] + np.arange(CONTEXT)
        return {"x": part[begins], "y": part[begins + 1]}
    return windows(ids[:at], CONTEXT // 2), windows(ids[at:], CONTEXT)


def imdb(source):
    def read(name):
        rows = [row.split("\t", 1) for row in lines(source, name)]
        return [re.findall(r"[a-z']+", row[1].lower()) for row in rows], [row[0] for row in rows]
    (train, train_y), (test, test_y) = read("train.tsv.gz"), read("test.tsv.gz")
    counts = Counter(word for text in train for word in text)
    place = {word: i + 2 for i, (word, _) in enumerate(counts.most_common(WORDS - 2))}

    def fields(texts, labels):
        x = np.zeros((len(texts), LENGTH), np.int32)
        for i, text in enumerate(texts):  # the end of a review says most, and stands at the end
            ids = [place.get(word, 1) for word in text[-LENGTH:]]
            x[i, LENGTH - len(ids):] = ids
        return {"x": x, "y": np.array([[int(label)] for label in labels], np.float32)}
    return fields(train, train_y), fields(test, test_y)


SETS = {"cifar10": (cifar10, "cifar10-5k"), "higgs": (higgs, "higgs-sample"),
        "house-price": (house_price, "house-price"), "imdb": (imdb, "imdb"), "iris": (iris, "iris"),
        "mnist": (mnist, "mnist"), "shakespeare": (shakespeare, "tinyshakespeare")}


def within(name, train):
    """The records for training, cut in two. Windows of a text share letters with their neighbours,
    so there the last ones are held, but for the first of them."""
    if name != "shakespeare":
        return cut(train)
    at = len(train["x"]) * 4 // 5
    return {k: v[:at] for k, v in train.items()}, {k: v[at + 1:] for k, v in train.items()}


def prepare(name, shared, to, records=None, validate=False):
    """Writes to/NAME/train_FIELD.npy and eval_FIELD.npy; of mnist its four files as they are."""
    read, folder = SETS[name]
    source, target = os.path.join(shared, "data", folder), os.path.join(to, name)
    os.makedirs(target, exist_ok=True)
    parts = read(source)
    if parts is None:
        if validate:
            sys.exit(f"data.py: {name} is taken as it was published; --validate cannot cut it")
        for file in os.listdir(source):
            shutil.copyfile(os.path.join(source, file), os.path.join(target, file))
        return
    for part, fields in zip(("train", "eval"), within(name, parts[0]) if validate else parts):
        n = records if records is None or part == "train" else (records + 3) // 4
        for field, values in fields.items():
            np.save(os.path.join(target, f"{part}_{field}.npy"), np.ascontiguousarray(values[:n]))
        print(f"{target}: {part}, {len(values[:n])} records, " +
              ", ".join(f"{k} {v.dtype}{list(v.shape[1:])}" for k, v in fields.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="+", choices=sorted(SETS))
    parser.add_argument("--shared", default=os.environ.get("WEFT_SHARED"))
    parser.add_argument("--to", default=os.path.join(HERE, "..", "data"))
    parser.add_argument("--records", type=int)
    parser.add_argument("--validate", action="store_true")
    args = parser.parse_args()
    if not args.shared:
        sys.exit("data.py: where are the published files? give --shared DIR or set WEFT_SHARED")
    for name in args.name:
        prepare(name, args.shared, args.to, args.records, args.validate)


if __name__ == "__main__":
    main()

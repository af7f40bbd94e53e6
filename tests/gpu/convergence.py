# SPDX-License-Identifier: Apache-2.0
"""Jobs that learn something: digits, which weft draws, and characters of a text, which the archive may hold."""
import os

import models
import npy

NO_TEXT = "no text was packed"
CONTEXT = 64
GPT = {"of": "gpt", "batch": 32, "layers": 2, "width": 64, "heads": 4, "context": CONTEXT, "vocabulary": 65}
QUICK = {**GPT, "batch": 4, "layers": 1, "width": 8, "heads": 1}


def digits(data, quick):
    return f"""job: digits
model:
  input: {{x: [784]}}
  layers:
    - dense: {{units: 128, activation: relu}}
    - dense: {{units: 10}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: idx
  train: {{x: {data}/train-images-idx3-ubyte.gz, y: {data}/train-labels-idx1-ubyte.gz}}
  eval: {{x: {data}/t10k-images-idx3-ubyte.gz, y: {data}/t10k-labels-idx1-ubyte.gz}}
  map: {{x: [{{scale: 0.00392156862745098}}, {{reshape: [784]}}]}}
batch: 32
epochs: {1 if quick else 3}
optimizer: {{adam: {{learning_rate: 0.001}}}}
consistency: {{mode: async, pipeline: 0}}
seed: 1
"""


def text(data, quick):
    files = "\n".join(f"  {part}: {{{', '.join(f'{f}: {data}/{part}-{f}.npy' for f in 'xpy')}}}" for part in ("train", "eval"))
    return models.job("text", QUICK if quick else GPT, epochs=1, data=f"metrics: [accuracy]\ndata:\n  format: npy\n{files}",
                      optimizer="adam: {learning_rate: 0.002}") + "consistency: {mode: async, pipeline: 0}\n"


JOBS = {"digits": digits, "text": text}


def write_rows(path, rows):
    npy.write(path, "|u1", (len(rows), CONTEXT), b"".join(rows))


def write_windows(folder, part, ids):
    """Windows of characters, and the same one further."""
    begins = range(0, len(ids) - CONTEXT, CONTEXT)
    write_rows(f"{folder}/{part}-x.npy", [ids[i:i + CONTEXT] for i in begins])
    write_rows(f"{folder}/{part}-y.npy", [ids[i + 1:i + 1 + CONTEXT] for i in begins])
    write_rows(f"{folder}/{part}-p.npy", [bytes(range(CONTEXT))] * len(begins))


def make_data(name, folder, quick, packed, weft):
    """Writes a job's data. weft: runs it with words, and gives what ended. Why there are none, or ""."""
    if name == "digits":
        done = weft("data", "digits", folder, *(["--train", "400", "--test", "100"] if quick else
                                                ["--train", "12000", "--test", "2000"]))
        return "" if done.code == 0 else done.why()
    source = os.path.join(packed, "text.txt")
    if not os.path.exists(source):
        return NO_TEXT
    with open(source, encoding="utf-8") as f:
        letters = f.read()
    place = {letter: i for i, letter in enumerate(sorted(set(letters)))}
    ids = bytes(place[letter] for letter in letters)
    train, held = (32 * CONTEXT, 4 * CONTEXT) if quick else (len(ids) * 9 // 10, len(ids) // 10)
    os.mkdir(folder)
    write_windows(folder, "train", ids[:train + 1])
    write_windows(folder, "eval", ids[-held - 1:])
    return ""

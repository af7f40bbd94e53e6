# SPDX-License-Identifier: Apache-2.0
"""A job of a second or less on data of its own: 512 records of 16 numbers, 4 classes."""
import numpy as np

RECORDS, WIDTH, CLASSES = 512, 16, 4
JOB = """job: {name}
model:
  input: {{x: [16]}}
  layers:
    - dense: {{units: 32, activation: relu}}
    - dense: {{units: 4}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
  split_records: 64
batch: 8
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: {rate}}}}}
checkpoint: {{every_steps: {every_steps}, keep: 3}}
slice_bytes: 1024
seed: 1
"""


def write_data(c, records=RECORDS):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(records, WIDTH)).astype(np.float32)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), x[:, :CLASSES].argmax(axis=1).astype(np.int64))


def write_job(c, name="small", epochs=2, every_steps=40, rate=0.05, change=(), records=RECORDS):
    """Writes NAME.yaml and the data, and gives the file's name. `change`: pairs of an old and a new
    text."""
    text = JOB.format(name=name, epochs=epochs, every_steps=every_steps, rate=rate)
    for old, new in change:
        assert old in text, old
        text = text.replace(old, new)
    write_data(c, records)
    c.write(f"{name}.yaml", text)
    return f"{name}.yaml"

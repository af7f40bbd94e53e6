# SPDX-License-Identifier: Apache-2.0
"""Jobs whose model is a graph of layers: two inputs of ids and a concatenate; a small network of
convolutions with batch normalisation, a regularizer and two outputs."""
from weftlib import Cluster, check, main, needs

needs("numpy")
import numpy as np  # noqa: E402

TWO_INPUTS = """job: pairs
model:
  input: {user: {shape: [1], dtype: int64}, item: {shape: [1], dtype: int64}}
  layers:
    - embedding: {input_dim: 20, output_dim: 8, inputs: user}
    - flatten: {name: of_user}
    - embedding: {input_dim: 30, output_dim: 8, inputs: item}
    - flatten: {name: of_item}
    - concatenate: {inputs: [of_user, of_item]}
    - dense: {units: 16, activation: relu}
    - dense: 1
loss: mse
metrics: [mae]
data:
  format: npy
  train: {user: user.npy, item: item.npy, y: y.npy}
  eval: {user: user.npy, item: item.npy, y: y.npy}
  split_records: 128
batch: 32
epochs: 12
optimizer: {adam: {learning_rate: 0.005}}
seed: 1
"""

IMAGES = """job: images
model:
  input: {x: [8, 8, 1]}
  layers:
    - conv2d: {filters: 4, kernel_size: 3, kernel_regularizer: {l2: 0.0001}}
    - batch_normalization
    - activation: relu
    - max_pooling2d
    - flatten: {name: features}
    - dense: {units: 2, name: side}
    - dense: {units: 1, name: bright, inputs: features}
  outputs: [side, bright]
loss: {side: sparse_categorical_crossentropy, bright: mse}
metrics: {side: accuracy}
data:
  format: npy
  train: {x: x.npy, side: side.npy, bright: bright.npy}
  eval: {x: x.npy, side: side.npy, bright: bright.npy}
  split_records: 128
batch: 32
epochs: 4
optimizer: {adam: {learning_rate: 0.01}}
seed: 1
"""


def measured(text, name):
    """The number behind NAME in what `weft eval` says."""
    words = text.replace("=", " ").replace(",", " ").split()
    check(name in words, f"no {name} in {text}")
    return float(words[words.index(name) + 1])


def two_inputs_meet_in_a_concatenate(weft):
    rng = np.random.default_rng(1)
    with Cluster(weft) as c:
        user, item = rng.integers(0, 20, (1024, 1)), rng.integers(0, 30, (1024, 1))
        np.save(c.path("user.npy"), user)
        np.save(c.path("item.npy"), item)
        np.save(c.path("y.npy"), (user % 2 + item % 3).astype(np.float32))
        c.write("pairs.yaml", TWO_INPUTS)
        c.must("train", "pairs.yaml")
        said = c.must("eval", "pairs").out
        check(measured(said, "mean_absolute_error") < 0.05, said)


def images_have_two_outputs(weft):
    rng = np.random.default_rng(2)
    with Cluster(weft) as c:
        x = rng.random((768, 8, 8, 1)).astype(np.float32)
        side = rng.integers(0, 2, 768)
        x[side == 1, :, 4:] += 0.7
        x[side == 0, :, :4] += 0.7
        np.save(c.path("x.npy"), x)
        np.save(c.path("side.npy"), side)
        np.save(c.path("bright.npy"), x.mean(axis=(1, 2)))
        c.write("images.yaml", IMAGES)
        c.must("train", "images.yaml")
        said = c.must("eval", "images").out
        check(measured(said, "side_accuracy") > 0.9, said)


RECURRENT = """job: steps
model:
  input: {x: [6, 3]}
  layers:
    - lstm: {units: 5, return_sequences: true}
    - gru: {units: 4, return_sequences: true}
    - bidirectional: {layer: {lstm: {units: 2, return_sequences: true}}}
    - simple_rnn: {units: 3, activation: relu}
    - dense: 1
loss: mse
data: {format: npy, train: {x: x.npy, y: y.npy}}
batch: 8
epochs: 1
optimizer: {sgd: {learning_rate: 0.01}}
"""


def exported_steps_come_before_the_batch(weft):
    """The only layout that onnxruntime has; weft's layers compute with the other."""
    needs("onnxruntime")
    import onnxruntime
    rng = np.random.default_rng(3)
    with Cluster(weft) as c:
        x = rng.normal(size=(64, 6, 3)).astype(np.float32)
        np.save(c.path("x.npy"), x)
        np.save(c.path("y.npy"), x.sum((1, 2))[:, None])
        c.write("steps.yaml", RECURRENT)
        c.must("train", "steps.yaml", "--local")
        c.must("export", "steps", "-o", "m.onnx")
        c.must("predict", "steps", "--input", "x=x.npy", "-o", "p.npy")
        (got,) = onnxruntime.InferenceSession(c.path("m.onnx")).run(["output"], {"x": x})
        check(np.allclose(got, np.load(c.path("p.npy")), atol=1e-5), "onnxruntime has other numbers")


main([exported_steps_come_before_the_batch, two_inputs_meet_in_a_concatenate, images_have_two_outputs])

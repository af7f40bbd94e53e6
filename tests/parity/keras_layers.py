# SPDX-License-Identifier: Apache-2.0
"""Layers of `model:` against Keras 3 with the same weights: what comes out, the loss, and its
gradients of every variable.

Each case is the text of a model and the same model in Keras. `weft graph` makes the graph, whose
variables get random values; `weft run` and `weft grad` compute it. Keras runs in an interpreter of
its own, which WEFT_KERAS_PYTHON names, as this file with the words `--keras FOLDER`: it reads the
weights by name and writes what it makes of them.

usage: keras_layers.py WEFT [PATTERN]
exit 77: skipped, a library is not there
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

BATCH = 3


def case(name, shapes, layers, model, after="loss"):
    """shapes: of the inputs x, x1, ...; model(L, *inputs) in Keras, L is keras.layers. `after`: the
    pass whose graph is held against Keras; "mode" is the form of training."""
    if not isinstance(shapes, list):
        shapes = [shapes]
    return dict(name=name, shapes=shapes, layers=layers, model=model, after=after)


def one(name, shape, layer, of, **more):
    """A case of one layer: of(L) makes it."""
    return case(name, shape, [layer], lambda L, x: of(L)(x), **more)


def chain(name, shape, layers, of, **more):
    def model(L, x):
        for layer in of(L):
            x = layer(x)
        return x
    return case(name, shape, layers, model, **more)


ACTIVATIONS = """linear relu sigmoid tanh softmax log_softmax exponential elu selu celu gelu silu swish
softplus softsign mish leaky_relu relu6 hard_sigmoid hard_silu hard_swish hard_tanh hard_shrink
soft_shrink tanh_shrink log_sigmoid squareplus""".split()

# Layers are made in the order of the text: Keras counts their names so.

def regularized(L, x):
    from keras import regularizers as R
    x = L.Dense(3, kernel_regularizer="l2", bias_regularizer=R.L1(0.05))(x)
    return L.Dense(2, kernel_regularizer=R.L1L2(0.01, 0.02), activity_regularizer=R.L2(0.1))(x)


def two_inputs(L, x, y, z):
    x = L.Flatten()(L.Embedding(5, 3)(x))
    y = L.Flatten()(L.Embedding(5, 2)(y))
    x = L.Dense(4, activation="relu")(L.Concatenate()([x, y, z]))
    return L.Dense(1)(x)


def merged_images(L, x):
    a, b = L.Conv2D(3, 2)(x), L.Conv2D(3, 2)(x)
    a = L.Concatenate()([a, L.Add()([a, b])])
    return L.Concatenate(axis=1)([a, a])


def pairs_of(*vectors):
    """The dot product of each pair of vectors, and of each with itself, pair by pair."""
    from keras import ops
    rows = []
    for v in vectors:
        rows += [v] if len(v.shape) == 2 else [v[:, i] for i in range(v.shape[1])]
    return {(i, j): ops.sum(rows[i] * rows[j], axis=1, keepdims=True)
            for i in range(len(rows)) for j in range(i + 1)}


def factorized(L, ids, x):
    pairs = pairs_of(L.Embedding(5, 3)(ids), L.Dense(3)(x))
    return sum(v for (i, j), v in pairs.items() if j < i)


def interacting(self_interaction):
    def model(L, ids, x):
        pairs = pairs_of(L.Embedding(5, 3)(ids), L.Dense(3)(x))
        return L.Concatenate()([v for (i, j), v in pairs.items() if j < i + self_interaction])
    return model


CASES = [
    one("dense", (5,), "dense: {units: 4, activation: tanh}",
        lambda L: L.Dense(4, activation="tanh")),
    one("dense of three axes", (3, 5), "dense: {units: 4}", lambda L: L.Dense(4)),
    one("dense without bias", (5,), "dense: {units: 4, use_bias: false}",
        lambda L: L.Dense(4, use_bias=False)),
    *[one(f"activation {a}", (3, 5), f"dense: {{units: 4, activation: {a}}}",
          lambda L, a=a: L.Dense(4, activation=a)) for a in ACTIVATIONS],
    chain("relu options", (5,), ["dense: 6", "relu: {max_value: 0.5, negative_slope: 0.1}"],
          lambda L: [L.Dense(6), L.ReLU(max_value=0.5, negative_slope=0.1)]),
    chain("leaky_relu", (5,), ["dense: 6", "leaky_relu"],
          lambda L: [L.Dense(6), L.LeakyReLU()]),
    chain("elu", (5,), ["dense: 6", "elu: 0.7"], lambda L: [L.Dense(6), L.ELU(alpha=0.7)]),
    chain("prelu", (4, 4, 2), ["conv2d: {filters: 3, kernel_size: 2}", "prelu: {shared_axes: [1, 2]}"],
          lambda L: [L.Conv2D(3, 2), L.PReLU(shared_axes=[1, 2])]),
    chain("prelu of all", (4,), ["dense: 3", "prelu"], lambda L: [L.Dense(3), L.PReLU()]),
    chain("softmax of an axis", (4, 3), ["dense: 3", "softmax: {axis: 1}"],
          lambda L: [L.Dense(3), L.Softmax(axis=1)]),
    chain("softmax of an image", (4, 4, 2), ["conv2d: {filters: 3, kernel_size: 2}", "softmax"],
          lambda L: [L.Conv2D(3, 2), L.Softmax()]),
    chain("rescaling", (5,), ["rescaling: {scale: 0.5, offset: -1}", "dense: 2"],
          lambda L: [L.Rescaling(0.5, offset=-1), L.Dense(2)]),
    chain("shapes", (4, 6), ["reshape: [2, -1]", "permute: [2, 1]", "dense: 3", "flatten", "dense: 2",
                             "repeat_vector: 4", "dense: 2"],
          lambda L: [L.Reshape((2, -1)), L.Permute((2, 1)), L.Dense(3), L.Flatten(), L.Dense(2),
                     L.RepeatVector(4), L.Dense(2)]),

    one("conv1d", (9, 3), "conv1d: {filters: 4, kernel_size: 3}", lambda L: L.Conv1D(4, 3)),
    one("conv1d causal", (9, 3), "conv1d: {filters: 4, kernel_size: 3, padding: causal, dilation_rate: 2}",
        lambda L: L.Conv1D(4, 3, padding="causal", dilation_rate=2)),
    one("conv1d same", (9, 3), "conv1d: {filters: 4, kernel_size: 4, padding: same, strides: 2}",
        lambda L: L.Conv1D(4, 4, padding="same", strides=2)),
    one("conv2d", (6, 7, 2), "conv2d: {filters: 4, kernel_size: [3, 2], activation: relu}",
        lambda L: L.Conv2D(4, (3, 2), activation="relu")),
    one("conv2d same", (6, 7, 2), "conv2d: {filters: 4, kernel_size: 3, padding: same, strides: [2, 3]}",
        lambda L: L.Conv2D(4, 3, padding="same", strides=(2, 3))),
    one("conv2d groups", (6, 6, 4),
        "conv2d: {filters: 6, kernel_size: 3, groups: 2, dilation_rate: 2, use_bias: false}",
        lambda L: L.Conv2D(6, 3, groups=2, dilation_rate=2, use_bias=False)),
    one("conv2d softmax", (5, 5, 2), "conv2d: {filters: 3, kernel_size: 2, activation: softmax}",
        lambda L: L.Conv2D(3, 2, activation="softmax")),
    one("conv3d", (4, 5, 4, 2), "conv3d: {filters: 3, kernel_size: 2, padding: same}",
        lambda L: L.Conv3D(3, 2, padding="same")),
    one("conv1d_transpose", (5, 3), "conv1d_transpose: {filters: 2, kernel_size: 4, strides: 2}",
        lambda L: L.Conv1DTranspose(2, 4, strides=2)),
    one("conv2d_transpose", (4, 5, 3), "conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2}",
        lambda L: L.Conv2DTranspose(2, 3, strides=2)),
    one("conv2d_transpose same", (4, 5, 3),
        "conv2d_transpose: {filters: 2, kernel_size: [3, 4], strides: 2, padding: same}",
        lambda L: L.Conv2DTranspose(2, (3, 4), strides=2, padding="same")),
    one("conv2d_transpose wide strides", (4, 5, 3),
        "conv2d_transpose: {filters: 2, kernel_size: 2, strides: 3, padding: same}",
        lambda L: L.Conv2DTranspose(2, 2, strides=3, padding="same")),
    one("depthwise_conv2d", (6, 5, 3), "depthwise_conv2d: {kernel_size: 3, depth_multiplier: 2}",
        lambda L: L.DepthwiseConv2D(3, depth_multiplier=2)),
    one("depthwise_conv1d", (6, 3), "depthwise_conv1d: {kernel_size: 3, padding: same}",
        lambda L: L.DepthwiseConv1D(3, padding="same")),
    one("separable_conv2d", (6, 5, 3),
        "separable_conv2d: {filters: 4, kernel_size: 3, depth_multiplier: 2, padding: same}",
        lambda L: L.SeparableConv2D(4, 3, depth_multiplier=2, padding="same")),
    one("separable_conv1d", (6, 3), "separable_conv1d: {filters: 4, kernel_size: 3}",
        lambda L: L.SeparableConv1D(4, 3)),
    chain("channels first", (2, 6, 6),
          ["permute: [2, 3, 1]", "conv2d: {filters: 3, kernel_size: 3}", "permute: [3, 1, 2]",
           "max_pooling2d: {data_format: channels_first}", "flatten", "dense: 2"],
          lambda L: [L.Permute((2, 3, 1)), L.Conv2D(3, 3), L.Permute((3, 1, 2)),
                     L.Permute((2, 3, 1)), L.MaxPooling2D(), L.Permute((3, 1, 2)), L.Flatten(),
                     L.Dense(2)]),
    *[chain(f"{kind}_pooling{n}d {padding}", (7, 5, 6, 2)[3 - n:],
            [f"conv{n}d: {{filters: 3, kernel_size: 2}}",
             f"{kind}_pooling{n}d: {{pool_size: 2, padding: {padding}}}"],
            lambda L, kind=kind, n=n, padding=padding: [
                getattr(L, f"Conv{n}D")(3, 2),
                getattr(L, f"{kind.capitalize()}Pooling{n}D")(2, padding=padding)])
      for kind in ("max", "average") for n in (1, 2, 3) for padding in ("valid", "same")],
    chain("pooling strides", (8, 8, 2),
          ["conv2d: {filters: 3, kernel_size: 2}",
           "average_pooling2d: {pool_size: [3, 2], strides: [1, 2], padding: same}"],
          lambda L: [L.Conv2D(3, 2), L.AveragePooling2D((3, 2), strides=(1, 2), padding="same")]),
    *[chain(f"global_{kind}_pooling{n}d", (6, 5, 2)[2 - n:],
            [f"conv{n}d: {{filters: 3, kernel_size: 2}}", f"global_{kind}_pooling{n}d", "dense: 2"],
            lambda L, kind=kind, n=n: [getattr(L, f"Conv{n}D")(3, 2),
                                       getattr(L, f"Global{kind.capitalize()}Pooling{n}D")(),
                                       L.Dense(2)])
      for kind in ("max", "average") for n in (1, 2)],
    chain("global keepdims", (6, 5, 2),
          ["conv2d: {filters: 3, kernel_size: 2}", "global_average_pooling2d: {keepdims: true}",
           "conv2d: {filters: 2, kernel_size: 1}", "flatten"],
          lambda L: [L.Conv2D(3, 2), L.GlobalAveragePooling2D(keepdims=True), L.Conv2D(2, 1),
                     L.Flatten()]),
    chain("borders", (5, 6, 2),
          ["zero_padding2d: [[1, 2], [0, 3]]", "conv2d: {filters: 3, kernel_size: 2}",
           "cropping2d: [1, 2]", "up_sampling2d: {size: [2, 3]}", "zero_padding2d"],
          lambda L: [L.ZeroPadding2D(((1, 2), (0, 3))), L.Conv2D(3, 2), L.Cropping2D((1, 2)),
                     L.UpSampling2D((2, 3)), L.ZeroPadding2D()]),
    chain("borders of one axis", (6, 2),
          ["zero_padding1d: [1, 3]", "conv1d: {filters: 3, kernel_size: 2}", "cropping1d: [1, 0]",
           "up_sampling1d: 3"],
          lambda L: [L.ZeroPadding1D((1, 3)), L.Conv1D(3, 2), L.Cropping1D((1, 0)),
                     L.UpSampling1D(3)]),
    chain("bilinear", (4, 5, 2),
          ["conv2d: {filters: 3, kernel_size: 2}", "up_sampling2d: {interpolation: bilinear}"],
          lambda L: [L.Conv2D(3, 2), L.UpSampling2D(interpolation="bilinear")]),
    chain("conv chain", (8, 8, 2),
          ["conv2d: {filters: 4, kernel_size: 3}", "batch_normalization", "activation: relu",
           "max_pooling2d", "conv2d: {filters: 3, kernel_size: 2}", "flatten", "dense: 2"],
          lambda L: [L.Conv2D(4, 3), L.BatchNormalization(), L.Activation("relu"),
                     L.MaxPooling2D(), L.Conv2D(3, 2), L.Flatten(), L.Dense(2)]),

    chain("borders of three axes", (4, 5, 3, 2),
          ["zero_padding3d: [[1, 2], [0, 3], [1, 1]]", "conv3d: {filters: 3, kernel_size: 2}",
           "cropping3d: [1, 2, 1]", "up_sampling3d: {size: [2, 3, 1]}", "zero_padding3d"],
          lambda L: [L.ZeroPadding3D(((1, 2), (0, 3), (1, 1))), L.Conv3D(3, 2), L.Cropping3D((1, 2, 1)),
                     L.UpSampling3D((2, 3, 1)), L.ZeroPadding3D()]),
    one("conv3d_transpose", (3, 4, 3, 2), "conv3d_transpose: {filters: 2, kernel_size: 3, strides: 2}",
        lambda L: L.Conv3DTranspose(2, 3, strides=2)),
    *[chain(f"global_{kind}_pooling3d", (4, 5, 4, 2),
            ["conv3d: {filters: 3, kernel_size: 2}", f"global_{kind}_pooling3d", "dense: 2"],
            lambda L, kind=kind: [L.Conv3D(3, 2), getattr(L, f"Global{kind.capitalize()}Pooling3D")(),
                                  L.Dense(2)])
      for kind in ("max", "average")],
    # Outside of training they give what they take.
    chain("noise", (4, 3), ["dense: 3", "gaussian_noise: 0.5", "gaussian_dropout: 0.3", "alpha_dropout: 0.2",
                            "spatial_dropout1d: 0.5", "dense: 2"],
          lambda L: [L.Dense(3), L.GaussianNoise(0.5), L.GaussianDropout(0.3), L.AlphaDropout(0.2),
                     L.SpatialDropout1D(0.5), L.Dense(2)]),
    chain("noise in training", (4, 3),
          ["dense: 3", "gaussian_noise: 0.0", "gaussian_dropout: 0.0", "alpha_dropout: 0.0",
           "spatial_dropout1d: 0.0", "dense: 2"],
          lambda L: [L.Dense(3), L.GaussianNoise(0.0), L.GaussianDropout(0.0), L.AlphaDropout(0.0),
                     L.SpatialDropout1D(0.0), L.Dense(2)], after="mode"),
    chain("time_distributed", (4, 3), ["time_distributed: {layer: {dense: {units: 3, activation: tanh}}}",
                                       "flatten", "dense: {units: 2, name: dense_1}"],
          lambda L: [L.TimeDistributed(L.Dense(3, activation="tanh")), L.Flatten(), L.Dense(2)]),
    chain("time_distributed image", (2, 5, 5, 2),
          ["time_distributed: {layer: {conv2d: {filters: 3, kernel_size: 2}}}", "flatten", "dense: 2"],
          lambda L: [L.TimeDistributed(L.Conv2D(3, 2)), L.Flatten(), L.Dense(2)]),
    chain("time_distributed series", (2, 4, 3),
          ["time_distributed: {layer: {gru: {units: 3}}}", "flatten", "dense: 2"],
          lambda L: [L.TimeDistributed(L.GRU(3)), L.Flatten(), L.Dense(2)]),

    one("batch_normalization", (4,), "batch_normalization", lambda L: L.BatchNormalization()),
    one("batch_normalization in training", (4,), "batch_normalization: {epsilon: 0.01}",
        lambda L: L.BatchNormalization(epsilon=0.01), after="mode"),
    one("batch_normalization of images in training", (3, 4, 2), "batch_normalization",
        lambda L: L.BatchNormalization(), after="mode"),
    one("batch_normalization axis 1", (3, 4, 2), "batch_normalization: {axis: 1, scale: false}",
        lambda L: L.BatchNormalization(axis=1, scale=False)),
    chain("batch_normalization of a height", (4, 5, 2),
          ["conv2d: {filters: 3, kernel_size: 2}", "batch_normalization: {axis: 1, center: false}"],
          lambda L: [L.Conv2D(3, 2), L.BatchNormalization(axis=1, center=False)]),
    one("layer_normalization", (3, 5), "layer_normalization", lambda L: L.LayerNormalization()),
    one("layer_normalization of an image", (3, 4, 5), "layer_normalization: {center: false}",
        lambda L: L.LayerNormalization(center=False)),
    one("group_normalization", (3, 4, 6), "group_normalization: {groups: 3}",
        lambda L: L.GroupNormalization(groups=3)),
    one("group_normalization of channels", (3, 4, 6), "group_normalization: {groups: -1, scale: false}",
        lambda L: L.GroupNormalization(groups=-1, scale=False)),
    one("rms_normalization", (3, 5), "rms_normalization", lambda L: L.RMSNormalization()),
    chain("unit_normalization", (5,), ["dense: 4", "unit_normalization"],
          lambda L: [L.Dense(4), L.UnitNormalization()]),

    case("embedding", [((4,), "int64")], ["embedding: {input_dim: 7, output_dim: 3}"],
         lambda L, x: L.Embedding(7, 3)(x)),
    *[one(f"{kind} {flags}".strip(), (5, 3), f"{kind}: {{units: 4{flags and ', '}{flags}}}",
          lambda L, of=of, words=words: getattr(L, of)(4, **words))
      for kind, of in (("lstm", "LSTM"), ("gru", "GRU"), ("simple_rnn", "SimpleRNN"))
      for flags, words in (("", {}), ("return_sequences: true", {"return_sequences": True}),
                           ("go_backwards: true", {"go_backwards": True}),
                           ("return_sequences: true, go_backwards: true",
                            {"return_sequences": True, "go_backwards": True}),
                           ("use_bias: false", {"use_bias": False}))],
    one("gru before", (5, 3), "gru: {units: 4, reset_after: false}",
        lambda L: L.GRU(4, reset_after=False)),
    one("simple_rnn relu", (5, 3), "simple_rnn: {units: 4, activation: relu}",
        lambda L: L.SimpleRNN(4, activation="relu")),
    *[one(f"bidirectional {mode}", (5, 3),
          f"bidirectional: {{layer: {{lstm: {{units: 4, return_sequences: true}}}}, merge_mode: {mode}}}",
          lambda L, mode=mode: L.Bidirectional(L.LSTM(4, return_sequences=True), merge_mode=mode))
      for mode in ("concat", "sum", "mul", "ave")],
    one("bidirectional last", (5, 3), "bidirectional: {layer: {gru: {units: 4}}}",
        lambda L: L.Bidirectional(L.GRU(4))),

    one("attention", (5, 6), "multi_head_attention: {num_heads: 2, key_dim: 3}",
        lambda L: lambda x: L.MultiHeadAttention(2, 3)(x, x)),
    one("attention causal", (5, 6),
        "multi_head_attention: {num_heads: 2, key_dim: 3, value_dim: 4, use_bias: false, "
        "use_causal_mask: true}",
        lambda L: lambda x: L.MultiHeadAttention(2, 3, value_dim=4, use_bias=False)(
            x, x, use_causal_mask=True)),
    case("attention of two", [(5, 6), (4, 3)],
         ["multi_head_attention: {num_heads: 2, key_dim: 3, output_shape: 5, inputs: [x, x1]}"],
         lambda L, x, y: L.MultiHeadAttention(2, 3, output_shape=5)(x, y)),

    *[case(f"merge {kind}", [(4,), (4,), (4,)],
           ["dense: {units: 3, inputs: x}", "dense: {units: 3, inputs: x1}",
            "dense: {units: 3, inputs: x2}", f"{kind}: {{inputs: [dense, dense_1, dense_2]}}"],
           lambda L, x, y, z, of=of: getattr(L, of)()([L.Dense(3)(x), L.Dense(3)(y), L.Dense(3)(z)]))
      for kind, of in (("add", "Add"), ("multiply", "Multiply"), ("average", "Average"),
                       ("maximum", "Maximum"), ("minimum", "Minimum"),
                       ("concatenate", "Concatenate"))],
    case("merge subtract", [(4,), (4,)],
         ["dense: {units: 3, inputs: x}", "dense: {units: 3, inputs: x1}",
          "subtract: {inputs: [dense, dense_1]}"],
         lambda L, x, y: L.Subtract()([L.Dense(3)(x), L.Dense(3)(y)])),
    case("merge images", [(5, 5, 2)],
         ["conv2d: {filters: 3, kernel_size: 2, inputs: x}",
          "conv2d: {filters: 3, kernel_size: 2, inputs: x}",
          "add: {inputs: [conv2d, conv2d_1]}",
          "concatenate: {inputs: [conv2d, add]}",
          "concatenate: {inputs: [concatenate, concatenate], axis: 1}"],
         merged_images),
    *[case(f"dot {a} {axes} {n}", a,
           [f"dense: {{units: 3, inputs: x}}", f"dense: {{units: 3, inputs: x1}}",
            f"dot: {{axes: {axes}, normalize: {str(n).lower()}, inputs: [dense, dense_1]}}"],
           lambda L, x, y, axes=axes, n=n: L.Dot(axes=axes, normalize=n)(
               [L.Dense(3)(x), L.Dense(3)(y)]))
      for a, axes, n in (([(4,), (4,)], 1, False), ([(4,), (4,)], 1, True),
                         ([(5, 4), (6, 4)], 2, False), ([(5, 4), (5, 4)], 1, True),
                         ([(3, 4), (6, 4)], [1, 2], False), ([(5, 4), (4,)], [2, 1], False),
                         ([(4,), (5, 4)], [1, 2], False))],

    *[case(f"{name} {options}", [((4,), "int64"), (2,)],
           ["embedding: {input_dim: 5, output_dim: 3, inputs: x}", "dense: {units: 3, inputs: x1}",
            f"{name}: {{{options}inputs: [embedding, dense]}}"], model)
      for name, options, model in (
          ("factorization_machine", "", factorized),
          ("dot_interaction", "", interacting(False)),
          ("dot_interaction", "self_interaction: true, ", interacting(True)))],

    case("regularizers", [(4,)],
         ["dense: {units: 3, kernel_regularizer: l2, bias_regularizer: {l1: 0.05}}",
          "dense: {units: 2, kernel_regularizer: {l1_l2: {l1: 0.01, l2: 0.02}}, "
          "activity_regularizer: {l2: 0.1}}"],
         regularized),
    case("two inputs", [((1,), "int64"), ((1,), "int32"), (2,)],
         ["embedding: {input_dim: 5, output_dim: 3, inputs: x}", "flatten",
          "embedding: {input_dim: 5, output_dim: 2, inputs: x1}", "flatten",
          "concatenate: {inputs: [flatten, flatten_1, x2]}", "dense: {units: 4, activation: relu}",
          "dense: 1"],
         two_inputs),
]


def input_of(shape):
    """(dims, dtype) of an input."""
    return shape if isinstance(shape[0], tuple) else (shape, "float32")


# ---- the side of Keras ----

def our_name(path):
    """Keras's path of a weight as weft calls it."""
    path = re.sub(r"/(lstm|gru|simple_rnn)_cell/", "/", path)
    path = re.sub(r"/(forward|backward)_(lstm|gru|simple_rnn)/", r"/\1/", path)
    path = re.sub(r"^(time_distributed)/(?!kernel$|bias$)\w+/", r"\1/", path)
    path = re.sub(r"^(depthwise_conv\dd)/kernel", r"\1/depthwise_kernel", path)
    return path.replace("p_re_lu", "prelu")


def is_turned(name, w):
    """Kernels of convolutions, which those in the cases of time_distributed are too."""
    return w.ndim >= 3 and re.search("conv|time_distributed", name) and name.endswith("kernel")


def to_keras(name, w, shape):
    """A weight in Keras's layout: kernels of convolutions are turned."""
    if is_turned(name, w):
        w = np.moveaxis(w, (0, 1), (-1, -2))      # [..., in, out]
        if name.endswith("depthwise_kernel"):      # [..., 1, in * multiplier]
            return w.reshape(shape)
    return w


def to_weft(name, w, shape):
    if is_turned(name, w):
        if name.endswith("depthwise_kernel"):
            w = w.reshape(*w.shape[:-2], 1, -1)
        w = np.moveaxis(w, (-1, -2), (0, 1))
    return w.reshape(shape)


def keras_side(folder):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    import keras
    import tensorflow as tf
    for at in sorted(folder.iterdir()):
        keras.utils.clear_session()
        try:
            keras_case(CASES[int(at.name)], at, keras, tf)
        except (KeyError, TypeError, ValueError) as why:
            (at / "why.txt").write_text(f"{type(why).__name__}: {why}"[:400])


def keras_case(c, at, keras, tf):
    given = dict(np.load(at / "given.npz"))
    ins = [keras.Input(dims, dtype=dtype) for dims, dtype in map(input_of, c["shapes"])]
    model = keras.Model(ins, c["model"](keras.layers, *ins))
    for w in model.weights:
        name = our_name(w.path)
        w.assign(to_keras(name, given[name], tuple(w.shape)))
    x = [given[feed_name(i)] for i in range(len(ins))]
    with tf.GradientTape() as tape:
        out = model(x if len(x) > 1 else x[0], training=c["after"] == "mode")
        loss = tf.reduce_mean(tf.square(out - given["y"])) + sum(model.losses)
    wanted = model.trainable_weights
    got = {"out": out.numpy(), "loss": loss.numpy()}
    for w, g in zip(wanted, tape.gradient(loss, [w.value for w in wanted])):
        name = our_name(w.path)
        g = tf.convert_to_tensor(g).numpy()
        got["grad " + name] = to_weft(name, g, given[name].shape)
    np.savez(at / "keras.npz", **got)


# ---- the side of weft ----

def feed_name(i):
    return f"x{i}" if i else "x"


def weft(*words):
    done = subprocess.run([WEFT, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"weft {words[0]}: exit {done.returncode}: {done.stderr.strip()}"


def job_of(c):
    lines = "".join(f"    - {layer}\n" for layer in c["layers"])
    inputs = ", ".join(f"{feed_name(i)}: {{shape: {list(dims)}, dtype: {dtype}}}"
                       for i, (dims, dtype) in enumerate(map(input_of, c["shapes"])))
    fields = ", ".join(f"{feed_name(i)}: x.npy" for i in range(len(c["shapes"])))
    return f"""job: case
model:
  input: {{{inputs}}}
  layers:
{lines}loss: mse
data: {{format: npy, train: {{{fields}, y: y.npy}}}}
batch: 64
optimizer: sgd
"""


def prepare(c, at):
    """The graphs with random weights, and what is fed."""
    import onnx
    from onnx import numpy_helper
    rng = np.random.default_rng(len(c["name"]) + 3)
    (at / "job.yaml").write_text(job_of(c))
    given = {}
    for i, (dims, dtype) in enumerate(map(input_of, c["shapes"])):
        given[feed_name(i)] = (rng.normal(size=(BATCH, *dims)) if dtype == "float32" else
                               rng.integers(0, 5, (BATCH, *dims))).astype(dtype)
    weft("graph", at / "job.yaml", "--mode", "infer", "--after", "import", "-o", at / "out.onnx")
    weft("graph", at / "job.yaml", "--after", c["after"], "-o", at / "loss.onnx")
    out = onnx.load(at / "out.onnx")
    names = set()
    for i in out.graph.initializer:
        w = numpy_helper.to_array(i)
        if w.dtype == np.float32 and w.ndim and re.search(
                r"/(\w*kernel|bias|gamma|beta|scale|alpha|embeddings|moving_\w+)$", i.name):
            names.add(i.name)
            given[i.name] = (rng.uniform(0.5, 1.5, w.shape) if "variance" in i.name else
                             rng.normal(size=w.shape, scale=0.5)).astype(np.float32)
    for file in ("out.onnx", "loss.onnx"):
        model = onnx.load(at / file)
        for i in model.graph.initializer:
            if i.name in names:
                i.CopyFrom(numpy_helper.from_array(given[i.name], i.name))
        onnx.save(model, at / file)
    for name, value in given.items():
        if name not in names:
            np.save(at / f"{name}.npy", value)
    words = [w for i in range(len(c["shapes"])) for w in ("--input",
                                                          f"{feed_name(i)}={at}/{feed_name(i)}.npy")]
    weft("run", at / "out.onnx", *words, "--output-dir", at / "run")
    ours = {"out": np.load(at / "run" / "output.npy")}
    given["y"] = rng.normal(size=ours["out"].shape).astype(np.float32)
    np.save(at / "y.npy", given["y"])
    words += ["--input", f"y={at}/y.npy"]
    weft("run", at / "loss.onnx", *words, "--fetch", "loss" if c["after"] == "loss" else loss_name(at),
         "--output-dir", at / "run")
    weft("grad", at / "loss.onnx", "--loss", loss_name(at), *words, "--output-dir", at / "grad")
    ours["loss"] = np.load(at / "run" / f"{loss_name(at).replace('/', '_')}.npy")
    for name in names:
        file = at / "grad" / (name.replace("/", "_") + ".npy")
        if file.exists():
            ours["grad " + name] = np.load(file)
    np.savez(at / "given.npz", **given)
    return ours


def loss_name(at):
    import onnx
    return onnx.load(at / "loss.onnx").graph.output[0].name


def compare(c, ours, theirs):
    worst = 0.0
    for name, want in theirs.items():
        if name == "out" and c["after"] == "mode":
            continue
        assert name in ours, f"there is no {name}"
        got = ours[name]
        assert got.shape == want.shape, f"{name} is {got.shape} instead of {want.shape}"
        assert np.isfinite(got).all(), f"{name} is not finite"
        off = np.abs(got - want).max() / max(1.0, np.abs(want).max())
        assert off < 2e-5, f"{name} is off by {off:.3g}"
        worst = max(worst, off)
    return worst


def main():
    python = os.environ.get("WEFT_KERAS_PYTHON")
    try:
        import onnx  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    if not python:
        print("skipped: WEFT_KERAS_PYTHON names no interpreter with keras and tensorflow")
        sys.exit(77)
    failed, worst, done = 0, 0.0, {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for i, c in enumerate(CASES):
            if len(sys.argv) > 2 and sys.argv[2] not in c["name"]:
                continue
            at = folder / f"{i:03}"
            at.mkdir()
            try:
                done[i] = prepare(c, at)
            except AssertionError as why:
                failed += 1
                print(f"FAIL {c['name']}: {why}")
                subprocess.run(["rm", "-r", str(at)], check=True)
        ran = subprocess.run([python, __file__, "--keras", str(folder)], capture_output=True, text=True)
        if ran.returncode:
            print(ran.stderr[-3000:])
            sys.exit(1)
        for i, ours in done.items():
            at = folder / f"{i:03}"
            try:
                assert not (at / "why.txt").exists(), "Keras: " + (at / "why.txt").read_text()
                worst = max(worst, compare(CASES[i], ours, dict(np.load(at / "keras.npz"))))
            except AssertionError as why:
                failed += 1
                print(f"FAIL {CASES[i]['name']}: {why}")
    print(f"{len(done)} cases, worst {worst:.2g}, {failed} failed")
    sys.exit(1 if failed else 0)


if sys.argv[1] == "--keras":
    keras_side(pathlib.Path(sys.argv[2]))
else:
    WEFT = sys.argv[1]
    main()

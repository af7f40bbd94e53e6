# SPDX-License-Identifier: Apache-2.0
"""Layers of a model, with Keras's names and options (docs/jobs.md, "Layers").

    >>> from weft import layers
    >>> layers.Dense(10, activation="relu")
    dense(units=10, activation='relu')
    >>> layers.Conv2d
    Traceback (most recent call last):
    AttributeError: there is no layer 'Conv2d'; did you mean 'Conv2D'?

Two options more than in Keras: `name`, and `inputs`, the names of the layers or inputs that a layer
takes where these are not the layer before.
"""
from __future__ import annotations

from typing import Any, Sequence

from . import errors
from ._items import Family, Kind

_FAMILY = Family("layer", """
Dense: dense units
Activation: activation activation
ReLU: relu max_value
LeakyReLU: leaky_relu negative_slope
ELU: elu alpha
PReLU: prelu
Softmax: softmax axis
Rescaling: rescaling scale offset
Dropout: dropout rate
GaussianDropout: gaussian_dropout rate
AlphaDropout: alpha_dropout rate
SpatialDropout1D: spatial_dropout1d rate
SpatialDropout2D: spatial_dropout2d rate
SpatialDropout3D: spatial_dropout3d rate
GaussianNoise: gaussian_noise stddev
Flatten: flatten
Reshape: reshape target_shape
Permute: permute dims
RepeatVector: repeat_vector n
Conv1D: conv1d filters kernel_size
Conv2D: conv2d filters kernel_size
Conv3D: conv3d filters kernel_size
DepthwiseConv1D: depthwise_conv1d kernel_size
DepthwiseConv2D: depthwise_conv2d kernel_size
SeparableConv1D: separable_conv1d filters kernel_size
SeparableConv2D: separable_conv2d filters kernel_size
Conv1DTranspose: conv1d_transpose filters kernel_size
Conv2DTranspose: conv2d_transpose filters kernel_size
Conv3DTranspose: conv3d_transpose filters kernel_size
MaxPooling1D: max_pooling1d pool_size
MaxPooling2D: max_pooling2d pool_size
MaxPooling3D: max_pooling3d pool_size
AveragePooling1D: average_pooling1d pool_size
AveragePooling2D: average_pooling2d pool_size
AveragePooling3D: average_pooling3d pool_size
GlobalMaxPooling1D: global_max_pooling1d
GlobalMaxPooling2D: global_max_pooling2d
GlobalMaxPooling3D: global_max_pooling3d
GlobalAveragePooling1D: global_average_pooling1d
GlobalAveragePooling2D: global_average_pooling2d
GlobalAveragePooling3D: global_average_pooling3d
ZeroPadding1D: zero_padding1d padding
ZeroPadding2D: zero_padding2d padding
ZeroPadding3D: zero_padding3d padding
Cropping1D: cropping1d cropping
Cropping2D: cropping2d cropping
Cropping3D: cropping3d cropping
UpSampling1D: up_sampling1d size
UpSampling2D: up_sampling2d size
UpSampling3D: up_sampling3d size
BatchNormalization: batch_normalization axis
LayerNormalization: layer_normalization axis
GroupNormalization: group_normalization groups
RMSNormalization: rms_normalization axis
UnitNormalization: unit_normalization axis
Embedding: embedding input_dim output_dim
LSTM: lstm units
GRU: gru units
SimpleRNN: simple_rnn units
Bidirectional: bidirectional layer
TimeDistributed: time_distributed layer
MultiHeadAttention: multi_head_attention num_heads key_dim
Add: add
Subtract: subtract
Multiply: multiply
Average: average
Maximum: maximum
Minimum: minimum
Concatenate: concatenate axis
Dot: dot axes
FactorizationMachine: factorization_machine
DotInteraction: dot_interaction
""")


class Input:
    """An input of a model: the shape of one record, without the batch. `dtype`: a name, or numpy's.

    >>> Input([28, 28, 1]).name
    'x'
    """

    def __init__(self, shape: Sequence[int], dtype: Any = "float32", name: str = "x"):
        if isinstance(shape, str) or not hasattr(shape, "__iter__"):
            raise errors.WrongType(f"Input: the shape {shape!r} is no list or tuple",
                                   f"give the shape of one record: weft.Input([{shape}])")
        for n in shape:
            if not hasattr(n, "__index__") or int(n) < 1:
                raise errors.Invalid(f"Input: {n!r} in the shape {tuple(shape)}",
                                     "give the shape of one record, in whole numbers from 1")
        if not isinstance(dtype, str):
            dtype = getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype)
            dtype = {"float": "float32", "int": "int64"}.get(dtype, dtype)
        self.shape, self.dtype, self.name = [int(n) for n in shape], str(dtype), name

    def spec(self) -> dict[str, Any]:
        """As a job file has it."""
        return {"shape": self.shape, "dtype": self.dtype}


def __getattr__(name: str) -> Kind:
    return _FAMILY.find(name)


def __dir__() -> list[str]:
    return sorted([*_FAMILY.kinds, "Input"])

# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of convolutions, poolings and samplings."""
import numpy as np

from gradient_cases.case import Case, i64, node, of


def spatial(random, transposed=False):
    """Extents, kernel, and attributes that fit them, for 1 to 3 axes."""
    n = random.pick([1, 2, 2, 3])
    kernel = random.ints(n, 1, 3)
    strides, dilations = random.ints(n, 1, 2), random.ints(n, 1, 2)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    extents = [random.int(1, 3) if transposed else r + random.int(0, 3) for r in reach]
    attrs = dict(kernel_shape=kernel, strides=strides, dilations=dilations)
    if random.chance(0.2):
        attrs["auto_pad"] = random.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif random.chance(0.7):
        pads = [random.int(0, k - 1) for k in kernel + kernel]
        if transposed:  # the result must not be empty
            pads = [min(p, (e - 1) * s // 2) for p, e, s in zip(pads, extents * 2, strides * 2)]
        attrs["pads"] = pads
    return extents, kernel, attrs


@of("Conv")
def conv(random, op):
    extents, kernel, attrs = spatial(random)
    group = random.pick([1, 1, 2, 3])
    each_in, each_out = random.int(1, 2), random.int(1, 2)
    weights = [random.apart([random.int(1, 2), group * each_in] + extents),
               random.apart([group * each_out, each_in] + kernel)]
    if random.chance():
        weights.append(random.apart([group * each_out]))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), group=group,
                              **attrs))


@of("ConvTranspose")
def conv_transpose(random, op):
    extents, kernel, attrs = spatial(random, transposed=True)
    group = random.pick([1, 1, 2])
    each_in, each_out = random.int(1, 2), random.int(1, 2)
    if "auto_pad" not in attrs and random.chance(0.4):
        attrs["output_padding"] = [random.int(0, max(s, d) - 1)
                                   for s, d in zip(attrs["strides"], attrs["dilations"])]
    weights = [random.apart([random.int(1, 2), group * each_in] + extents),
               random.apart([group * each_in, each_out] + kernel)]
    if random.chance():
        weights.append(random.apart([group * each_out]))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), group=group,
                              **attrs))


@of("MaxPool", "AveragePool", "LpPool")
def pool(random, op):
    extents, _, attrs = spatial(random)
    x = random.apart([random.int(1, 2), random.int(1, 2)] + extents)
    opset = 19
    if random.chance(0.3) and "auto_pad" not in attrs:
        attrs["ceil_mode"] = 1
    if op == "AveragePool":
        attrs["count_include_pad"] = random.pick([None, 0, 1])
    if op == "LpPool":
        attrs["p"], opset = random.int(1, 3), 18
        x = np.sign(x) * (np.abs(x) + 0.2)
    return Case([x], node(op, "w0", **attrs), opset=opset)


@of("GlobalAveragePool", "GlobalMaxPool")
def global_pool(random, op):
    return Case([random.apart(random.dims(3, 5, 3))], node(op, "w0"))


@of("Resize")
def resize(random, op):
    n = random.pick([1, 2, 2, 3])
    extents = random.ints(n, 1, 4)
    mode = random.pick(["nearest", "linear", "cubic"] if n == 2 else ["nearest", "linear"])
    attrs = dict(mode=mode, coordinate_transformation_mode=random.pick(
        ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]))
    if mode == "nearest":
        attrs["nearest_mode"] = random.pick(["floor", "ceil", "round_prefer_floor",
                                           "round_prefer_ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = random.pick([None, -0.5])
        attrs["exclude_outside"] = random.int(0, 1)
    shape = random.ints(2, 1, 2) + extents
    if random.chance():
        return Case([random.apart(shape)], node(op, "w0 - - z", **attrs),
                    z=i64(*shape[:2], *random.ints(n, 1, 6)))
    scales = np.array([1, 1] + [random.pick([0.5, 1, 1.5, 2, 2.3]) for _ in range(n)], np.float32)
    scales[2:] = np.maximum(scales[2:], 1 / np.array(extents))
    return Case([random.apart(shape)], node(op, "w0 - s", **attrs), s=scales)


@of("GridSample")
def grid_sample(random, op):
    n = random.pick([2, 2, 3])
    mode = random.pick(["linear", "nearest", "cubic"] if n == 2 else ["linear", "nearest"])
    batch, extents = random.int(1, 2), random.ints(n, 2, 4)
    grid = random.rng.uniform(-1.4, 1.4, [batch] + random.ints(n, 1, 3) + [n])
    return Case([random.apart([batch, random.int(1, 2)] + extents), grid],
                node(op, "w0 w1", mode=mode, align_corners=random.int(0, 1),
                     padding_mode=random.pick(["zeros", "border", "reflection"])), opset=20)

# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of convolutions, poolings and samplings."""
import numpy as np

from gradient_cases.case import Case, i64, node, of


def spatial(luck, transposed=False):
    """Extents, kernel, and attributes that fit them, for 1 to 3 axes."""
    n = luck.pick([1, 2, 2, 3])
    kernel = luck.ints(n, 1, 3)
    strides, dilations = luck.ints(n, 1, 2), luck.ints(n, 1, 2)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    extents = [luck.int(1, 3) if transposed else r + luck.int(0, 3) for r in reach]
    attrs = dict(kernel_shape=kernel, strides=strides, dilations=dilations)
    if luck.chance(0.2):
        attrs["auto_pad"] = luck.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif luck.chance(0.7):
        pads = [luck.int(0, k - 1) for k in kernel + kernel]
        if transposed:  # the result must not be empty
            pads = [min(p, (e - 1) * s // 2) for p, e, s in zip(pads, extents * 2, strides * 2)]
        attrs["pads"] = pads
    return extents, kernel, attrs


@of("Conv")
def conv(luck, op):
    extents, kernel, attrs = spatial(luck)
    group = luck.pick([1, 1, 2, 3])
    each_in, each_out = luck.int(1, 2), luck.int(1, 2)
    weights = [luck.apart([luck.int(1, 2), group * each_in] + extents),
               luck.apart([group * each_out, each_in] + kernel)]
    if luck.chance():
        weights.append(luck.apart([group * each_out]))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), group=group,
                              **attrs))


@of("ConvTranspose")
def conv_transpose(luck, op):
    extents, kernel, attrs = spatial(luck, transposed=True)
    group = luck.pick([1, 1, 2])
    each_in, each_out = luck.int(1, 2), luck.int(1, 2)
    if "auto_pad" not in attrs and luck.chance(0.4):
        attrs["output_padding"] = [luck.int(0, max(s, d) - 1)
                                   for s, d in zip(attrs["strides"], attrs["dilations"])]
    weights = [luck.apart([luck.int(1, 2), group * each_in] + extents),
               luck.apart([group * each_in, each_out] + kernel)]
    if luck.chance():
        weights.append(luck.apart([group * each_out]))
    return Case(weights, node(op, " ".join(f"w{i}" for i in range(len(weights))), group=group,
                              **attrs))


@of("MaxPool", "AveragePool", "LpPool")
def pool(luck, op):
    extents, _, attrs = spatial(luck)
    x = luck.apart([luck.int(1, 2), luck.int(1, 2)] + extents)
    opset = 19
    if luck.chance(0.3) and "auto_pad" not in attrs:
        attrs["ceil_mode"] = 1
    if op == "AveragePool":
        attrs["count_include_pad"] = luck.pick([None, 0, 1])
    if op == "LpPool":
        attrs["p"], opset = luck.int(1, 3), 18
        x = np.sign(x) * (np.abs(x) + 0.2)
    return Case([x], node(op, "w0", **attrs), opset=opset)


@of("GlobalAveragePool", "GlobalMaxPool")
def global_pool(luck, op):
    return Case([luck.apart(luck.dims(3, 5, 3))], node(op, "w0"))


@of("Resize")
def resize(luck, op):
    n = luck.pick([1, 2, 2, 3])
    extents = luck.ints(n, 1, 4)
    mode = luck.pick(["nearest", "linear", "cubic"] if n == 2 else ["nearest", "linear"])
    attrs = dict(mode=mode, coordinate_transformation_mode=luck.pick(
        ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]))
    if mode == "nearest":
        attrs["nearest_mode"] = luck.pick(["floor", "ceil", "round_prefer_floor",
                                           "round_prefer_ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = luck.pick([None, -0.5])
        attrs["exclude_outside"] = luck.int(0, 1)
    shape = luck.ints(2, 1, 2) + extents
    if luck.chance():
        return Case([luck.apart(shape)], node(op, "w0 - - z", **attrs),
                    z=i64(*shape[:2], *luck.ints(n, 1, 6)))
    scales = np.array([1, 1] + [luck.pick([0.5, 1, 1.5, 2, 2.3]) for _ in range(n)], np.float32)
    scales[2:] = np.maximum(scales[2:], 1 / np.array(extents))
    return Case([luck.apart(shape)], node(op, "w0 - s", **attrs), s=scales)


@of("GridSample")
def grid_sample(luck, op):
    n = luck.pick([2, 2, 3])
    mode = luck.pick(["linear", "nearest", "cubic"] if n == 2 else ["linear", "nearest"])
    batch, extents = luck.int(1, 2), luck.ints(n, 2, 4)
    grid = luck.rng.uniform(-1.4, 1.4, [batch] + luck.ints(n, 1, 3) + [n])
    return Case([luck.apart([batch, luck.int(1, 2)] + extents), grid],
                node(op, "w0 w1", mode=mode, align_corners=luck.int(0, 1),
                     padding_mode=luck.pick(["zeros", "border", "reflection"])), opset=20)

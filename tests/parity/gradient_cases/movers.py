# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of operations that move elements."""
import numpy as np

from gradient_cases.case import Case, i64, node, of


@of("Reshape")
def reshape(luck, op):
    shape = luck.dims(1, 4)
    n, target = int(np.prod(shape)), []
    while n > 1 and len(target) < 4:
        d = luck.pick([d for d in range(1, n + 1) if n % d == 0])
        target.append(d)
        n //= d
    target.append(n)
    for i in range(min(len(target), len(shape))):
        if target[i] == shape[i] and luck.chance():
            target[i] = 0
    if luck.chance():
        target[luck.int(0, len(target) - 1)] = -1
    return Case([luck.apart(shape)], node(op, "w0 s"), s=i64(*target))


@of("Flatten")
def flatten(luck, op):
    shape = luck.dims(1, 4)
    return Case([luck.apart(shape)], node(op, "w0", axis=luck.int(-len(shape), len(shape))))


@of("Transpose")
def transpose(luck, op):
    shape = luck.dims(0, 5, 3)
    perm = [int(p) for p in luck.rng.permutation(len(shape))]
    return Case([luck.apart(shape)], node(op, "w0", perm=perm if shape and luck.chance(0.8) else None))


@of("Squeeze", "Unsqueeze")
def squeeze(luck, op):
    shape = luck.dims(0, 3)
    ones = sorted(int(a) for a in luck.rng.permutation(len(shape) + 2)[:2])
    full = list(shape)
    for a in ones:
        full.insert(a, 1)
    axes = i64(*(a - len(full) * luck.chance() for a in ones))
    if op == "Unsqueeze":
        return Case([luck.apart(shape)], node(op, "w0 a"), a=axes)
    if luck.chance(0.2):
        return Case([luck.apart(full)], node(op, "w0"), fixed=True)
    return Case([luck.apart(full)], node(op, "w0 a"), a=axes)


@of("Expand")
def expand(luck, op):
    shape = luck.dims(1, 4, 3)
    return Case([luck.apart(luck.part(shape))], node(op, "w0 s"), s=i64(*luck.part(shape)))


@of("Tile")
def tile(luck, op):
    shape = luck.dims(1, 3, 3)
    return Case([luck.apart(shape)], node(op, "w0 r"), r=i64(*luck.ints(len(shape), 1, 3)))


@of("Concat")
def concat(luck, op):
    shape, n = luck.dims(1, 3), luck.int(1, 4)
    axis = luck.axis(len(shape))
    weights = []
    for _ in range(n):
        shape[axis] = luck.int(1, 3)
        weights.append(luck.apart(shape))
    words = [f"w{luck.int(0, n - 1)}" for _ in range(n)] if luck.chance(0.2) else \
        [f"w{i}" for i in range(n)]
    return Case(weights, node(op, " ".join(words), axis=axis))


@of("Split")
def split(luck, op):
    shape, n = luck.dims(1, 3), luck.int(1, 3)
    axis = luck.axis(len(shape))
    sizes = luck.ints(n, 1, 3)
    outs = [f"o{i}" for i in range(n)]
    some = [outs[int(i)] for i in luck.rng.permutation(n)[:luck.int(1, n)]]
    last = node("Concat", " ".join(some), axis=axis)
    if luck.chance(0.3):  # in equal parts, the last one shorter
        each = luck.int(1, 3)
        shape[axis] = each * (n - 1) + luck.int(1, each) if n > 1 else luck.int(1, 4)
        if -(-shape[axis] // -(-shape[axis] // n)) == n:
            return Case([luck.apart(shape)], node(op, "w0", " ".join(outs), axis=axis, num_outputs=n),
                        last)
    shape[axis] = sum(sizes)
    return Case([luck.apart(shape)], node(op, "w0 s", " ".join(outs), axis=axis), last, s=i64(*sizes))


@of("Slice")
def slice_(luck, op):
    shape = luck.dims(1, 4)
    axes = luck.axes(len(shape))
    starts, ends, steps = [], [], []
    for a in axes:
        d, step = shape[a], luck.pick([1, 1, 2, 3, -1, -2])
        first = luck.int(0, d - 1)
        last = luck.int(first + 1, d) if step > 0 else luck.int(-1, first - 1)
        if last == d and luck.chance(0.3):
            last = 2**63 - 1
        elif last == -1:
            last = luck.pick([-d - 1, -2**63 + 1])
        elif luck.chance(0.3) and last < d:
            last -= d
        starts.append(first - d * luck.chance(0.3))
        ends.append(last)
        steps.append(step)
    return Case([luck.apart(shape)], node(op, "w0 b e a t"), b=i64(*starts), e=i64(*ends),
                a=i64(*axes), t=i64(*steps))


@of("Gather")
def gather(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    ids = luck.below(luck.dims(0, 2, 3), shape[axis])[..., 0]
    return Case([luck.apart(shape)], node(op, "w0 i", axis=axis),
                i=ids.astype(luck.pick([np.int64, np.int32])))


@of("GatherElements")
def gather_elements(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    wanted = [luck.int(1, d) for d in shape]
    wanted[axis] = luck.int(1, 4)
    return Case([luck.apart(shape)], node(op, "w0 i", axis=axis),
                i=luck.below(wanted, shape[axis])[..., 0])


@of("GatherND")
def gather_nd(luck, op):
    shape = luck.dims(1, 4, 3)
    lead = luck.int(0, len(shape) - 1)
    depth = luck.int(1, len(shape) - lead)
    ids = luck.below(shape[:lead] + luck.dims(0 if lead else 1, 2, 3), *shape[lead:lead + depth])
    return Case([luck.apart(shape)], node(op, "w0 i", batch_dims=lead), i=ids)


@of("ScatterElements")
def scatter_elements(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    wanted = [luck.int(1, d) for d in shape]
    if luck.chance():
        ids = luck.below(wanted, shape[axis])[..., 0]
        reduction = "add"
    else:  # places must not repeat
        order = luck.rng.permutation(shape[axis])[:wanted[axis]]
        view = [1] * len(shape)
        view[axis] = -1
        ids, reduction = np.broadcast_to(order.reshape(view), wanted).astype(np.int64), None
        ids = ids - shape[axis] * luck.int(0, 1)
    return Case([luck.apart(shape), luck.apart(wanted)],
                node(op, "w0 i w1", axis=axis, reduction=reduction), i=ids)


@of("ScatterND")
def scatter_nd(luck, op):
    shape = luck.dims(1, 3)
    depth = luck.int(1, len(shape))
    places = int(np.prod(shape[:depth]))
    if luck.chance():
        n, reduction = luck.int(1, 4), "add"
        flat = luck.rng.integers(0, places, n)
    else:
        n, reduction = luck.int(1, min(places, 4)), None
        flat = luck.rng.permutation(places)[:n]
    ids = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    return Case([luck.apart(shape), luck.apart([n] + shape[depth:])],
                node(op, "w0 i w1", reduction=reduction), i=ids)


@of("Pad")
def pad(luck, op):
    shape = luck.ints(luck.int(1, 3), 2, 4)
    mode = luck.pick([None, "constant", "reflect", "edge", "wrap"])
    axes = luck.axes(len(shape)) if luck.chance(0.4) else list(range(len(shape)))
    pads = [[], []]
    for a in axes:
        most = shape[a] - 1 if mode == "reflect" else shape[a] if mode == "wrap" else 3
        crop = luck.chance(0.2) and mode in (None, "constant")
        pads[0].append(-1 if crop else luck.int(0, most))
        pads[1].append(luck.int(0, most))
    consts = dict(p=i64(*pads[0], *pads[1]))
    words = "w0 p"
    if mode in (None, "constant") and luck.chance(0.4):
        words, consts["v"] = words + " v", np.float64(0.5)
    if axes != list(range(len(shape))):
        words = (words if "v" in consts else words + " -") + " a"
        consts["a"] = i64(*axes)
    return Case([luck.apart(shape)], node(op, words, mode=mode), **consts)


@of("CenterCropPad")
def center_crop_pad(luck, op):
    shape = luck.dims(1, 3)
    axes = luck.axes(len(shape)) if luck.chance() else None
    n = len(axes) if axes else len(shape)
    return Case([luck.apart(shape)], node(op, "w0 z", axes=axes), z=i64(*luck.ints(n, 1, 6)))


@of("Trilu")
def trilu(luck, op):
    shape = luck.dims(2, 4)
    attrs = dict(upper=luck.pick([None, 0, 1]))
    if luck.chance(0.3):
        return Case([luck.apart(shape)], node(op, "w0", **attrs))
    return Case([luck.apart(shape)], node(op, "w0 k", **attrs), k=np.int64(luck.int(-4, 4)))


@of("DepthToSpace", "SpaceToDepth")
def depth_and_space(luck, op):
    b, (n, c, h, w) = luck.int(1, 3), luck.ints(4, 1, 2)
    if op == "DepthToSpace":
        return Case([luck.apart([n, c * b * b, h, w])],
                    node(op, "w0", blocksize=b, mode=luck.pick([None, "DCR", "CRD"])))
    return Case([luck.apart([n, c, h * b, w * b])], node(op, "w0", blocksize=b))


@of("ReverseSequence")
def reverse_sequence(luck, op):
    shape = luck.dims(2, 4)
    time = luck.int(0, 1)
    lens = i64(*luck.ints(shape[1 - time], 1, shape[time]))
    return Case([luck.apart(shape)], node(op, "w0 l", time_axis=time, batch_axis=1 - time), l=lens)


@of("TopK")
def top_k(luck, op):
    shape = luck.dims(1, 3)
    axis = luck.axis(len(shape))
    return Case([luck.apart(shape)], node(op, "w0 k", "y i", axis=axis, largest=luck.int(0, 1)),
                k=i64(luck.int(1, shape[axis])))

# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of operations that move elements."""
import numpy as np

from gradient_cases.case import Case, DOMAIN, i64, node, of


@of("Reshape")
def reshape(random, op):
    shape = random.dims(1, 4)
    n, target = int(np.prod(shape)), []
    while n > 1 and len(target) < 4:
        d = random.pick([d for d in range(1, n + 1) if n % d == 0])
        target.append(d)
        n //= d
    target.append(n)
    for i in range(min(len(target), len(shape))):
        if target[i] == shape[i] and random.chance():
            target[i] = 0
    if random.chance():
        target[random.int(0, len(target) - 1)] = -1
    return Case([random.apart(shape)], node(op, "w0 s"), s=i64(*target))


@of("Flatten")
def flatten(random, op):
    shape = random.dims(1, 4)
    return Case([random.apart(shape)], node(op, "w0", axis=random.int(-len(shape), len(shape))))


@of("Transpose")
def transpose(random, op):
    shape = random.dims(0, 5, 3)
    perm = [int(p) for p in random.rng.permutation(len(shape))]
    return Case([random.apart(shape)], node(op, "w0", perm=perm if shape and random.chance(0.8) else None))


@of("Squeeze", "Unsqueeze")
def squeeze(random, op):
    shape = random.dims(0, 3)
    ones = sorted(int(a) for a in random.rng.permutation(len(shape) + 2)[:2])
    full = list(shape)
    for a in ones:
        full.insert(a, 1)
    axes = i64(*(a - len(full) * random.chance() for a in ones))
    if op == "Unsqueeze":
        return Case([random.apart(shape)], node(op, "w0 a"), a=axes)
    if random.chance(0.2):
        return Case([random.apart(full)], node(op, "w0"), fixed=True)
    return Case([random.apart(full)], node(op, "w0 a"), a=axes)


@of("Expand")
def expand(random, op):
    shape = random.dims(1, 4, 3)
    return Case([random.apart(random.part(shape))], node(op, "w0 s"), s=i64(*random.part(shape)))


@of("Tile")
def tile(random, op):
    shape = random.dims(1, 3, 3)
    return Case([random.apart(shape)], node(op, "w0 r"), r=i64(*random.ints(len(shape), 1, 3)))


@of("Concat")
def concat(random, op):
    shape, n = random.dims(1, 3), random.int(1, 4)
    axis = random.axis(len(shape))
    weights = []
    for _ in range(n):
        shape[axis] = random.int(1, 3)
        weights.append(random.apart(shape))
    words = [f"w{random.int(0, n - 1)}" for _ in range(n)] if random.chance(0.2) else \
        [f"w{i}" for i in range(n)]
    return Case(weights, node(op, " ".join(words), axis=axis))


@of("Split")
def split(random, op):
    shape, n = random.dims(1, 3), random.int(1, 3)
    axis = random.axis(len(shape))
    sizes = random.ints(n, 1, 3)
    outs = [f"o{i}" for i in range(n)]
    some = [outs[int(i)] for i in random.rng.permutation(n)[:random.int(1, n)]]
    last = node("Concat", " ".join(some), axis=axis)
    if random.chance(0.3):  # in equal parts, the last one shorter
        each = random.int(1, 3)
        shape[axis] = each * (n - 1) + random.int(1, each) if n > 1 else random.int(1, 4)
        if -(-shape[axis] // -(-shape[axis] // n)) == n:
            return Case([random.apart(shape)], node(op, "w0", " ".join(outs), axis=axis, num_outputs=n),
                        last)
    shape[axis] = sum(sizes)
    return Case([random.apart(shape)], node(op, "w0 s", " ".join(outs), axis=axis), last, s=i64(*sizes))


@of("Slice")
def slice_(random, op):
    shape = random.dims(1, 4)
    axes = random.axes(len(shape))
    starts, ends, steps = [], [], []
    for a in axes:
        d, step = shape[a], random.pick([1, 1, 2, 3, -1, -2])
        first = random.int(0, d - 1)
        last = random.int(first + 1, d) if step > 0 else random.int(-1, first - 1)
        if last == d and random.chance(0.3):
            last = 2**63 - 1
        elif last == -1:
            last = random.pick([-d - 1, -2**63 + 1])
        elif random.chance(0.3) and last < d:
            last -= d
        starts.append(first - d * random.chance(0.3))
        ends.append(last)
        steps.append(step)
    return Case([random.apart(shape)], node(op, "w0 b e a t"), b=i64(*starts), e=i64(*ends),
                a=i64(*axes), t=i64(*steps))


@of("Gather")
def gather(random, op):
    shape = random.dims(1, 3)
    axis = random.axis(len(shape))
    ids = random.below(random.dims(0, 2, 3), shape[axis])[..., 0]
    return Case([random.apart(shape)], node(op, "w0 i", axis=axis),
                i=ids.astype(random.pick([np.int64, np.int32])))


@of("EmbeddingBag")
def embedding_bag(random, op):
    rows, dim = random.int(1, 4), random.int(1, 3)
    shape = random.dims(1, 3, 3)
    ids = random.rng.integers(-2, rows, shape).astype(random.pick([np.int64, np.int32]))
    if random.chance(0.4):
        return Case([random.apart((rows, dim))], node(op, "w0 i", domain=DOMAIN, mode="max"), i=ids)
    if random.chance(0.3):
        return Case([random.apart((rows, dim))], node(op, "w0 i", domain=DOMAIN), i=ids)
    return Case([random.apart((rows, dim)), random.apart(shape)], node(op, "w0 i w1", domain=DOMAIN),
                i=ids)


@of("GatherElements")
def gather_elements(random, op):
    shape = random.dims(1, 3)
    axis = random.axis(len(shape))
    wanted = [random.int(1, d) for d in shape]
    wanted[axis] = random.int(1, 4)
    return Case([random.apart(shape)], node(op, "w0 i", axis=axis),
                i=random.below(wanted, shape[axis])[..., 0])


@of("GatherND")
def gather_nd(random, op):
    shape = random.dims(1, 4, 3)
    lead = random.int(0, len(shape) - 1)
    depth = random.int(1, len(shape) - lead)
    ids = random.below(shape[:lead] + random.dims(0 if lead else 1, 2, 3), *shape[lead:lead + depth])
    return Case([random.apart(shape)], node(op, "w0 i", batch_dims=lead), i=ids)


@of("ScatterElements")
def scatter_elements(random, op):
    shape = random.dims(1, 3)
    axis = random.axis(len(shape))
    wanted = [random.int(1, d) for d in shape]
    if random.chance():
        ids = random.below(wanted, shape[axis])[..., 0]
        reduction = "add"
    else:  # places must not repeat
        order = random.rng.permutation(shape[axis])[:wanted[axis]]
        view = [1] * len(shape)
        view[axis] = -1
        ids, reduction = np.broadcast_to(order.reshape(view), wanted).astype(np.int64), None
        ids = ids - shape[axis] * random.int(0, 1)
    return Case([random.apart(shape), random.apart(wanted)],
                node(op, "w0 i w1", axis=axis, reduction=reduction), i=ids)


@of("ScatterND")
def scatter_nd(random, op):
    shape = random.dims(1, 3)
    depth = random.int(1, len(shape))
    places = int(np.prod(shape[:depth]))
    if random.chance():
        n, reduction = random.int(1, 4), "add"
        flat = random.rng.integers(0, places, n)
    else:
        n, reduction = random.int(1, min(places, 4)), None
        flat = random.rng.permutation(places)[:n]
    ids = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    return Case([random.apart(shape), random.apart([n] + shape[depth:])],
                node(op, "w0 i w1", reduction=reduction), i=ids)


@of("Pad")
def pad(random, op):
    shape = random.ints(random.int(1, 3), 2, 4)
    mode = random.pick([None, "constant", "reflect", "edge", "wrap"])
    axes = random.axes(len(shape)) if random.chance(0.4) else list(range(len(shape)))
    pads = [[], []]
    for a in axes:
        most = shape[a] - 1 if mode == "reflect" else shape[a] if mode == "wrap" else 3
        crop = random.chance(0.2) and mode in (None, "constant")
        pads[0].append(-1 if crop else random.int(0, most))
        pads[1].append(random.int(0, most))
    consts = dict(p=i64(*pads[0], *pads[1]))
    words = "w0 p"
    if mode in (None, "constant") and random.chance(0.4):
        words, consts["v"] = words + " v", np.float64(0.5)
    if axes != list(range(len(shape))):
        words = (words if "v" in consts else words + " -") + " a"
        consts["a"] = i64(*axes)
    return Case([random.apart(shape)], node(op, words, mode=mode), **consts)


@of("CenterCropPad")
def center_crop_pad(random, op):
    shape = random.dims(1, 3)
    axes = random.axes(len(shape)) if random.chance() else None
    n = len(axes) if axes else len(shape)
    return Case([random.apart(shape)], node(op, "w0 z", axes=axes), z=i64(*random.ints(n, 1, 6)))


@of("Trilu")
def trilu(random, op):
    shape = random.dims(2, 4)
    attrs = dict(upper=random.pick([None, 0, 1]))
    if random.chance(0.3):
        return Case([random.apart(shape)], node(op, "w0", **attrs))
    return Case([random.apart(shape)], node(op, "w0 k", **attrs), k=np.int64(random.int(-4, 4)))


@of("DepthToSpace", "SpaceToDepth")
def depth_and_space(random, op):
    b, (n, c, h, w) = random.int(1, 3), random.ints(4, 1, 2)
    if op == "DepthToSpace":
        return Case([random.apart([n, c * b * b, h, w])],
                    node(op, "w0", blocksize=b, mode=random.pick([None, "DCR", "CRD"])))
    return Case([random.apart([n, c, h * b, w * b])], node(op, "w0", blocksize=b))


@of("ReverseSequence")
def reverse_sequence(random, op):
    shape = random.dims(2, 4)
    time = random.int(0, 1)
    lens = i64(*random.ints(shape[1 - time], 1, shape[time]))
    return Case([random.apart(shape)], node(op, "w0 l", time_axis=time, batch_axis=1 - time), l=lens)


@of("TopK")
def top_k(random, op):
    shape = random.dims(1, 3)
    axis = random.axis(len(shape))
    return Case([random.apart(shape)], node(op, "w0 k", "y i", axis=axis, largest=random.int(0, 1)),
                k=i64(random.int(1, shape[axis])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products and convolutions under `compute: bfloat16`, and products under `compute: float16` and `tf32`.

bfloat16.py PLAN_TOOL

Factors that are exact in bfloat16 must give what f32 gives, up to the rounding of sums; factors that
are not must come out elsewhere, near. On a processor without bfloat16 both give f32's bits, and the
second half is left out with a word. On GPUs products are looked at under float16 and tf32 in the same way, and attention
under float16; elsewhere these give f32's bits. Exit 77 where onnx is absent.
"""
import itertools
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx

    import kernels
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WEFT = "ai.weft"
# weft's own kernels of convolutions for GPUs compute in f32.
GPU = os.environ.get("WEFT_TEST_DEVICE", "").startswith("cuda")


def exact(rng, *shape):
    """Of 8 significant bits, as many as bfloat16 has."""
    return (rng.integers(-128, 129, shape) / 64).astype(np.float32)


def loose(rng, *shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def geometries():
    """Any: batch, channels, maps, extent, kernel, stride, dilation."""
    rng = np.random.default_rng(2)
    while True:
        n, size, k = rng.choice([1, 3, 16, 33, 64]), rng.integers(3, 14), rng.integers(1, 5)
        dilation = rng.integers(1, 3)
        if dilation * (k - 1) < size:
            yield n, rng.choice([1, 3, 16, 17, 33, 64]), rng.choice([16, 31, 48, 65]), size, k, rng.integers(1, 4), dilation


def convolutions(draw, rng):
    for n, c, m, size, k, stride, dilation in (*itertools.islice(geometries(), 12), (8, 16, 32, 4, 3, 1, 1), (8, 64, 512, 4, 3, 1, 1),
                                               (8, 512, 512, 4, 3, 1, 1), (16, 32, 48, 8, 3, 1, 1),
                                               (8, 32, 64, 14, 5, 1, 1), (8, 24, 40, 16, 3, 2, 1),
                                               (8, 64, 64, 32, 3, 1, 1), (6, 32, 32, 9, 3, 1, 2),
                                               (8, 32, 64, 8, 1, 1, 1), (8, 32, 64, 8, 1, 2, 1),
                                               (7, 32, 32, 6, 3, 1, 1), (4, 3, 64, 32, 3, 1, 1),
                                               (5, 1, 32, 28, 5, 1, 1), (64, 48, 40, 4, 3, 1, 1)):
        pad = dilation * (k - 1) // 2
        out = (size + 2 * pad - dilation * (k - 1) - 1) // stride + 1
        attrs = dict(kernel_shape=[k, k], strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4)
        x, w, dy = draw(rng, n, c, size, size), draw(rng, m, c, k, k), draw(rng, n, m, out, out)
        yield kernels.single("Conv", x, w, draw(rng, m), **attrs)
        yield kernels.single("ConvDataGrad", dy, w, x, domain=WEFT, **attrs)
        yield kernels.single("ConvWeightGrad", dy, x, w, domain=WEFT, **attrs)
        yield kernels.single("ConvTranspose", dy, w, draw(rng, c),
                             output_padding=[(size + 2 * pad - dilation * (k - 1) - 1) % stride] * 2, **attrs)


def products(draw, rng):
    for m, n, k in ((128, 96, 130), (300, 70, 65), (64, 1000, 33), (1024, 256, 200), (33, 4096, 64)):
        for a in (0, 1):
            for b in (0, 1):
                yield kernels.single("Gemm", draw(rng, *((k, m) if a else (m, k))),
                                     draw(rng, *((n, k) if b else (k, n))), draw(rng, n), transA=a, transB=b)
        yield kernels.single("MatMul", draw(rng, m, k), draw(rng, k, n))


def attentions(draw, rng):
    for heads, t, s, d in ((6, 130, 70, 24), (2, 64, 64, 64), (3, 33, 200, 40)):
        q, k, v = draw(rng, heads, t, d), draw(rng, heads, s, d), draw(rng, heads, s, d)
        for turned in (0, 1):
            keys = np.ascontiguousarray(k.transpose(0, 2, 1)) if turned else k
            yield kernels.single("DotAttention", q, keys, v, domain=WEFT, scale=0.2, transK=turned)
            yield kernels.single("DotAttentionGrad", q[:, :, :d], q, keys, v, domain=WEFT, n_out=3, scale=0.2,
                                 transK=turned)


def run(tool, folder, model, feeds, threads, compute):
    source, result = os.path.join(folder, "in"), os.path.join(folder, "out")
    with open(source, "wb") as f:
        f.write(kernels.pack(feeds))
    done = subprocess.run([tool, model, source, result, str(threads), compute], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(result, "rb") as f:
        return kernels.unpack(f.read())


def compare(tool, folder, case, compute):
    """The distance from f32, of the largest."""
    model, feeds = kernels.make(case, 0)
    path = os.path.join(folder, "one.onnx")
    onnx.save(model, path)
    worst = 0
    for threads in kernels.THREADS:
        want = run(tool, folder, path, feeds, threads, "float32")
        got = run(tool, folder, path, feeds, threads, compute)
        for name, value in want.items():
            assert got[name].shape == value.shape and np.isfinite(got[name]).all()
            worst = max(worst, np.abs(got[name] - value).max() / np.abs(value).max())
    return worst


def look_at_gpus_own(tool, compute, attends):
    """What GPUs alone round to: the number of checks, and of those that failed."""
    checks = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for draw, least, most in ((exact, 0, 2e-6), (loose, 1e-5 if GPU else 0, 2e-3 if GPU else 0)):
            rng = np.random.default_rng(3)
            more = attentions(draw, rng) if attends and draw is loose else ()
            for case in [*itertools.islice(products(draw, rng), 6), *more]:
                checks += 1
                far = compare(tool, folder, case, compute)
                if not least <= far <= most:
                    failed += 1
                    print("FAILED ", compute, case[0], [np.shape(v) for v in case[1]], case[4], f"off by {far:.2g}")
    return checks, failed


def main(tool):
    checks = failed = rounded = 0
    with tempfile.TemporaryDirectory() as folder:
        for draw, most in ((exact, 2e-6), (loose, 1e-2)):
            rng = np.random.default_rng(1)
            # Probabilities are never exact in bfloat16.
            more = attentions(draw, rng) if draw is loose else ()
            for case in [*(() if GPU else convolutions(draw, rng)), *products(draw, rng), *more]:
                checks += 1
                far = compare(tool, folder, case, "bfloat16")
                rounded += draw is loose and far > 1e-4
                if far > most:
                    failed += 1
                    print("FAILED ", case[0], [np.shape(v) for v in case[1]], case[4], f"off by {far:.2g}")
    if rounded == 0 and not GPU:
        print("this processor has no bfloat16: all was computed in f32")
    elif rounded < checks / 4:
        failed += 1
        print(f"FAILED  only {rounded} cases rounded their factors")
    for compute, attends in (("tf32", False), ("float16", True)):
        more, wrong = look_at_gpus_own(tool, compute, attends)
        checks, failed = checks + more, failed + wrong
    print(f"{checks - failed} of {checks} checks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

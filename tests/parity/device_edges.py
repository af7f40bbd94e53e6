# SPDX-License-Identifier: Apache-2.0
"""Cases whose results the reference leaves open, or has no random numbers for: what a device computes
must be what the CPU does."""
import numpy as np

INF = np.float32(np.inf)
WEFT = "ai.weft"
# ONNX's numbers: f32, u8, i32, i64, bool, f16, f64, bf16.
DTYPES = (1, 2, 6, 7, 9, 10, 11, 16)
# Operations whose functions another library computes, or that add up in another order; all others give
# the same bits.
NEAR = {"GRU", "GRUGrad", "LSTM", "LSTMGrad", "Pow", "RNN", "RNNGrad", "RandomNormal", "RandomNormalLike"}


def casts(single):
    floats = np.array([0, -0.0, INF, -INF, np.nan, 1e-30, 255, 256, -1, -0.5, 254.9999, 255.5, 2**31 - 1, 2**31,
                       -2**31, -2**31 - 256, 9.2e18, 9.3e18, -9.3e18, 65504, 65519.9, 65520, 1e38, 5.9e-8, 2.9e-8,
                       3e-8, 6.1e-5, 1 + 2.0**-10, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1.5, 2.5])
    ints = np.array([0, 1, -1, 255, 256, -129, 65519, 65520, 2**31 - 1, -2**31, 2**24 + 1])
    wide = np.array([2**63 - 1, -2**63, 2**53 + 1, 2**40 + 123])
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for to in DTYPES:
        for x in (floats.astype(np.float32), floats, ints.astype(np.int32), ints, wide, halves):
            yield single("Cast", x, to=to)


def whole(single):
    for dtype in (np.int32, np.int64):
        x = np.array([0, 1, -1, 2, -3, 7, 10**5, 2**31 - 1, -2**31, 46341, 3]).astype(dtype)
        for e in (0, 1, 2, 3, -1, -2, 31, 0.5, 2.5, 1e10):
            yield single("Pow", x, np.float64(e))
        for y in (0, -1, 3, -7, 2**31 - 1, -2**31):
            yield single("Div", x, dtype(y))
            yield single("Mod", x, dtype(y))
            yield single("Mod", x, dtype(y), fmod=1)
            yield single("PRelu", x, dtype(y))
    for dtype, width in ((np.uint8, 8), (np.int32, 32), (np.int64, 64)):
        x = np.arange(-128, 128).astype(dtype)
        for y in (0, 1, width - 1, width):
            for direction in ("LEFT", "RIGHT"):
                yield single("BitShift", x, dtype(y), direction=direction)


def powers(single):
    x = np.array([0, -0.0, INF, -INF, np.nan, 1, -1, 2, 3.5, -2.5, 1e-30], np.float32)
    for dtype in (np.float32, np.float64):
        for e in (2, 3, 0.5, -1, 0):
            yield single("Pow", x.astype(dtype), dtype(e))
            yield single("Pow", x.astype(dtype), np.full(x.shape, e, dtype))


def random(single):
    for dtype in (1, 11):
        for n in (0, 1, 5, 5001):
            yield single("RandomUniform", shape=[n], dtype=dtype, low=-3.0, high=4.0)
            yield single("RandomNormal", shape=[n], dtype=dtype, mean=1.5, scale=2.0)
        yield single("RandomUniform", shape=[9], dtype=dtype, seed=2.5)
        yield single("RandomUniformLike", (3, 7), dtype=dtype)
        yield single("RandomNormalLike", (3, 7), dtype=dtype)
    for dtype in (np.float32, np.float64):
        x = np.random.default_rng(4).random((37, 29)).astype(dtype)
        for to in (1, 2, 6, 7, 9, 11):
            yield single("Bernoulli", x, dtype=to)
        yield single("Bernoulli", x, seed=3.5)
        x[0, :5] = np.nan
        for ratio in (0.0, 0.25, 0.9):
            yield single("Dropout", x, dtype(ratio), np.bool_(True), n_out=2)
            yield single("Dropout", x, np.float64(ratio), np.bool_(True))
        yield single("Dropout", x, None, np.bool_(True), n_out=2)
        yield single("DropoutGrad", x, x > 0.5, dtype(1), np.bool_(True), domain=WEFT)


def counts(single):
    for dtype in (np.float32, np.float64):
        scores = np.random.default_rng(2).integers(0, 3, (3000, 7)).astype(dtype)  # with ties
        scores[5, 0] = scores[6, 3] = scores[8] = np.nan
        scores[7], scores[9, 2] = -INF, INF
        for labels in (np.int32, np.int64):
            label = np.random.default_rng(3).integers(-1, 8, 3000).astype(labels)
            yield single("CorrectCount", scores, label, domain=WEFT)
            for k in (1, 2, 7):
                yield single("CorrectCount", scores, label, domain=WEFT, k=k)
        hit = np.random.default_rng(3).integers(0, 2, 3000)
        for labels in (np.int64, np.float64, np.bool_):
            yield single("CorrectCount", scores[:, 0].copy(), hit.astype(labels), domain=WEFT, threshold=0.5)
        yield single("CorrectCount", np.zeros((0, 4), dtype), np.zeros(0, np.int64), domain=WEFT)


def branches(single):
    for dtype in (np.float32, np.float64, np.uint8, np.float16):
        for which in (False, True):
            yield single("Choose", np.bool_(which), ((3, 5), dtype), (700,), ((3, 5), dtype), (700,), n_out=2,
                         domain=WEFT)


def sequences(single):
    """Recurrent layers of nothing."""
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for steps, batch, size in ((0, 3, 2), (4, 0, 2), (4, 3, 0)):
            x, w, r, y, state = [(shape, np.float64) for shape in (
                (steps, batch, size), (1, gates * 3, size), (1, gates * 3, 3), (steps, 1, batch, 3), (1, batch, 3))]
            states = 3 if op == "LSTM" else 2
            yield single(op, x, w, r, n_out=states, hidden_size=3)
            yield single(op + "Grad", y, state, *[None] * (states - 2), x, w, r, *[None] * (states * 2 - 1), y,
                         n_out=3, domain=WEFT, hidden_size=3)


def refused(single):
    """What a kernel finds in its operands: the device reports it in the CPU's words."""
    for ratio in (np.float32(1.5), np.float64(-0.25), np.float32(np.nan)):
        yield single("Dropout", (3, 5), ratio, np.bool_(True))
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for lens in ([4, 5, -1], [-1, 4, 4]):
            yield single(op, (4, 3, 2), (1, gates * 3, 2), (1, gates * 3, 3), None, np.array(lens, np.int32),
                         hidden_size=3)
    for label in ([0, 4, -1], [3, -1, 9]):
        yield single("NegativeLogLikelihoodLoss", (3, 4), np.array(label))
        yield single("NegativeLogLikelihoodLossGrad", (), (3, 4), np.array(label), domain=WEFT)


def singles(single):
    for cases in (casts, whole, powers, random, counts, branches, sequences):
        yield from cases(single)

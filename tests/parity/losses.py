# SPDX-License-Identifier: Apache-2.0
"""Losses and weights of examples against forms written here with numpy.

Each case is a job file over a small ONNX model: `weft graph` attaches the loss, `weft run` computes
it, `weft grad` its gradients, which are held against finite differences of the numpy form. The forms
follow the definitions of Keras 3 (keras/src/losses/losses.py, reduction "sum_over_batch_size").

usage: losses.py WEFT [PATTERN]
exit 77: skipped, a library is not there
"""

import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

EPSILON = 1e-7
FEATURES = 6


# ---- the definitions, by labels y and predictions p; the last axis is gone afterwards ----

def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def log_softmax(z):
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def mse(y, p):
    return np.square(p - y).mean(-1)


def mae(y, p):
    return np.abs(p - y).mean(-1)


def mape(y, p):
    return 100 * np.abs((y - p) / np.maximum(np.abs(y), EPSILON)).mean(-1)


def msle(y, p):
    return np.square(np.log(np.maximum(p, EPSILON) + 1) -
                     np.log(np.maximum(y, EPSILON) + 1)).mean(-1)


def huber(delta):
    def form(y, p):
        d = np.abs(p - y)
        return np.where(d <= delta, d * d / 2, delta * d - delta * delta / 2).mean(-1)
    return form


def log_cosh(y, p):
    return (np.logaddexp(p - y, y - p) - np.log(2)).mean(-1)


def signs(y):
    return np.where(y == 0, -1, y)


def hinge(y, p):
    return np.maximum(1 - signs(y) * p, 0).mean(-1)


def squared_hinge(y, p):
    return np.square(np.maximum(1 - signs(y) * p, 0)).mean(-1)


def categorical_hinge(y, p):
    return np.maximum(((1 - y) * p).max(-1) - (y * p).sum(-1) + 1, 0)


def kl_divergence(y, p):
    y, p = np.clip(y, EPSILON, 1), np.clip(p, EPSILON, 1)
    return (y * np.log(y / p)).sum(-1)


def poisson(y, p):
    return (p - y * np.log(p + EPSILON)).mean(-1)


def cosine_similarity(y, p):
    def unit(x):
        return x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), EPSILON)
    return -(unit(y) * unit(p)).sum(-1)


def binary_logits(smoothing=0.0):
    def form(y, z):
        y = y * (1 - smoothing) + smoothing / 2
        return (y * softplus(-z) + (1 - y) * softplus(z)).mean(-1)
    return form


def binary_probabilities(y, p):
    p = np.clip(p, EPSILON, 1 - EPSILON)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


def focal(gamma, alpha=None):
    def form(y, z):
        p = 1 / (1 + np.exp(-z))
        right = y * p + (1 - y) * (1 - p)
        values = (1 - right) ** gamma * (y * softplus(-z) + (1 - y) * softplus(z))
        if alpha is not None:
            values = values * (y * alpha + (1 - y) * (1 - alpha))
        return values.mean(-1)
    return form


def categorical_logits(smoothing=0.0):
    def form(y, z):
        y = y * (1 - smoothing) + smoothing / z.shape[-1]
        return -(y * log_softmax(z)).sum(-1)
    return form


def categorical_probabilities(y, p):
    p = np.clip(p / p.sum(-1, keepdims=True), EPSILON, 1 - EPSILON)
    return -(y * np.log(p)).sum(-1)


def sparse_logits(y, z):
    return -np.take_along_axis(log_softmax(z), np.maximum(y, 0)[..., None], -1)[..., 0]


def sparse_probabilities(y, p):
    p = np.clip(p / p.sum(-1, keepdims=True), EPSILON, 1 - EPSILON)
    return -np.log(np.take_along_axis(p, y[..., None], -1)[..., 0])


# ---- cases: name, `loss:` of the job, form, labels, shape of a record's scores, and more ----

def numbers(rng, shape):
    return rng.normal(size=shape)


def positive(rng, shape):
    return rng.uniform(0.1, 3, size=shape)


def bits(rng, shape):
    return (rng.random(shape) < 0.4).astype(np.float64)


def one_hot(rng, shape):
    return np.eye(shape[-1])[rng.integers(0, shape[-1], shape[:-1])]


def distribution(rng, shape):
    y = rng.uniform(0.1, 1, size=shape)
    return y / y.sum(-1, keepdims=True)


def classes(rng, shape):
    return rng.integers(0, shape[-1], shape[:-1])


def some_ignored(rng, shape):
    y = classes(rng, shape)
    return np.where(rng.random(y.shape) < 0.3, -1, y)


def all_ignored(rng, shape):
    return np.full(shape[:-1], -1)


def case(name, loss, form, labels, shape=(3,), out="linear", scale=1.0, more="", weights=None,
         ignored=None, n=7):
    return dict(name=name, loss=loss, form=form, labels=labels, shape=shape, out=out, scale=scale,
                more=more, weights=weights, ignored=ignored, n=n)


def by_class(table):
    return lambda y: np.vectorize(lambda k: table.get(int(k), 1.0))(y)


SPARSE = "sparse_categorical_crossentropy"
CASES = [
    case("mse", "mse", mse, numbers),
    case("mse long", "mean_squared_error", mse, numbers, shape=(4, 2)),
    case("mae", "mae", mae, numbers),
    case("mape", "mape", mape, positive),
    case("msle", "mean_squared_logarithmic_error", msle, positive, out="softplus"),
    case("huber", "huber", huber(1.0), numbers, scale=2.0),
    case("huber delta", "{huber: {delta: 0.3}}", huber(0.3), numbers),
    case("log_cosh", "log_cosh", log_cosh, numbers),
    case("log_cosh far", "log_cosh", log_cosh, numbers, scale=1000.0),
    case("hinge", "hinge", hinge, bits),
    case("hinge signs", "hinge", hinge, lambda r, s: bits(r, s) * 2 - 1),
    case("squared_hinge", "squared_hinge", squared_hinge, bits),
    case("categorical_hinge", "categorical_hinge", categorical_hinge, one_hot),
    case("kl_divergence", "kl_divergence", kl_divergence, distribution, out="softmax"),
    case("poisson", "poisson", poisson, positive, out="softplus"),
    case("cosine_similarity", "cosine_similarity", cosine_similarity, numbers),
    case("binary", "binary_crossentropy", binary_logits(), bits),
    case("binary of one", "binary_crossentropy", binary_logits(), bits, shape=(1,)),
    case("binary far", "binary_crossentropy", binary_logits(), bits, scale=300.0),
    case("binary smoothed", "{binary_crossentropy: {label_smoothing: 0.2}}", binary_logits(0.2),
         bits),
    case("binary sigmoid", "binary_crossentropy",
         lambda y, p: binary_probabilities(y, p), bits, out="sigmoid"),
    case("binary softmax", "binary_crossentropy", binary_probabilities, bits, out="softmax"),
    case("binary probabilities", "{binary_crossentropy: {from_logits: false}}",
         binary_probabilities, bits, out="halves"),
    case("focal", "binary_focal_crossentropy", focal(2.0), bits),
    case("focal gamma", "{binary_focal_crossentropy: {gamma: 1.5, apply_class_balancing: true}}",
         focal(1.5, 0.25), bits),
    case("focal none", "{binary_focal_crossentropy: {gamma: 0}}", focal(0.0), bits),
    case("categorical", "categorical_crossentropy", categorical_logits(), one_hot),
    case("categorical far", "categorical_crossentropy", categorical_logits(), one_hot, scale=1e4),
    case("categorical smoothed", "{categorical_crossentropy: {label_smoothing: 0.1}}",
         categorical_logits(0.1), one_hot, shape=(5, 4)),
    case("categorical softmax", "categorical_crossentropy", categorical_probabilities, one_hot,
         out="softmax"),
    case("categorical sigmoid", "categorical_crossentropy", categorical_probabilities, one_hot,
         out="sigmoid"),
    case("sparse sigmoid", SPARSE, sparse_probabilities, classes, out="sigmoid"),
    case("categorical probabilities", "{categorical_crossentropy: {from_logits: false}}",
         categorical_probabilities, one_hot, out="softplus"),
    case("sparse", SPARSE, sparse_logits, classes),
    case("sparse of three axes", SPARSE, sparse_logits, classes, shape=(5, 4)),
    case("sparse far", SPARSE, sparse_logits, classes, scale=1e4),
    case("sparse probabilities", f"{{{SPARSE}: {{from_logits: false}}}}", sparse_probabilities,
         classes, out="softplus"),
    case("sparse ignore", f"{{{SPARSE}: {{ignore_class: -1}}}}", sparse_logits, some_ignored,
         ignored=-1),
    case("sparse ignore three axes", f"{{{SPARSE}: {{ignore_index: -1}}}}", sparse_logits,
         some_ignored, shape=(5, 4), ignored=-1),
    case("sparse ignore all", f"{{{SPARSE}: {{ignore_class: -1}}}}", sparse_logits, all_ignored,
         ignored=-1),
    case("sample_weight mse", "mse", mse, numbers, weights="sample"),
    case("sample_weight of one", "mse", mse, numbers, shape=(1,), weights="sample", n=1),
    case("sample_weight three axes", "mse", mse, numbers, shape=(4, 2), weights="sample"),
    case("sample_weight binary", "binary_crossentropy", binary_logits(), bits, weights="sample"),
    case("sample_weight categorical", "categorical_crossentropy", categorical_logits(), one_hot,
         weights="sample"),
    case("sample_weight sparse", SPARSE, sparse_logits, classes, weights="sample"),
    case("sample_weight sparse three axes", SPARSE, sparse_logits, classes, shape=(5, 4),
         weights="sample"),
    case("sample_weight ignore", f"{{{SPARSE}: {{ignore_class: -1}}}}", sparse_logits,
         some_ignored, ignored=-1, weights="sample"),
    case("class_weight sparse", SPARSE, sparse_logits, classes, more="class_weight: {0: 0.5, 2: 4}",
         weights=by_class({0: 0.5, 2: 4.0}), shape=(4,), n=11),
    case("class_weight ignore", f"{{{SPARSE}: {{ignore_class: -1}}}}", sparse_logits, some_ignored,
         more="class_weight: {0: 0.5}", weights=by_class({0: 0.5}), ignored=-1),
    case("class_weight categorical", "categorical_crossentropy", categorical_logits(), one_hot,
         more="class_weight: {1: 3}", weights=lambda y: by_class({1: 3.0})(y.argmax(-1))),
    case("class_weight binary", "binary_crossentropy", binary_logits(), bits, shape=(1,),
         more="class_weight: {0: 1.0, 1: 5.0}",
         weights=lambda y: by_class({1: 5.0})(y[..., 0])),
]


# ---- the model: out(x W + b), and the same with numpy ----

def activate(kind, z):
    if kind == "softmax":
        return np.exp(log_softmax(z))
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-z))
    if kind == "softplus":
        return softplus(z)
    if kind == "halves":  # probabilities that no Sigmoid makes
        return (np.tanh(z) + 1) / 2
    return z


def model(kind, shape, w, b, dtype):
    element = TensorProto.DOUBLE if dtype == np.float64 else TensorProto.FLOAT
    nodes = [helper.make_node("MatMul", ["x", "w"], ["xw"]),
             helper.make_node("Add", ["xw", "b"], ["out" if kind == "linear" else "z"])]
    constants = [numpy_helper.from_array(w.astype(dtype), "w"),
                 numpy_helper.from_array(b.astype(dtype), "b")]
    if kind == "halves":
        constants += [numpy_helper.from_array(np.array(v, dtype), n)
                      for n, v in (("one", 1), ("half", 0.5))]
        nodes += [helper.make_node("Tanh", ["z"], ["t"]), helper.make_node("Add", ["t", "one"], ["u"]),
                  helper.make_node("Mul", ["u", "half"], ["out"])]
        nodes = [helper.make_node("Constant", [], [c.name], value=c) for c in constants[2:]] + nodes
        constants = constants[:2]
    elif kind != "linear":
        nodes.append(helper.make_node(kind.capitalize(), ["z"], ["out"]))
    x = helper.make_tensor_value_info("x", element, ["n", *shape[:-1], FEATURES])
    y = helper.make_tensor_value_info("out", element, ["n", *shape])
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def weft(*words):
    done = subprocess.run([WEFT, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, f"weft {words[0]}: exit {done.returncode}: {done.stderr.strip()}"


def number_of(c, y, p, w):
    """The loss of a batch: what Keras makes of the values."""
    values = c["form"](y, p)
    counts = np.ones_like(values) if c["ignored"] is None else (y != c["ignored"]).astype(float)
    if w is not None:
        values = values * (w.reshape(w.shape + (1,) * (values.ndim - w.ndim)))
    return (values * counts).sum() / max(counts.sum(), 1)


def slopes(f, x, step=1e-5):
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        kept = x[i]
        x[i] = kept + step
        high = f()
        x[i] = kept - step
        grad[i] = (high - f()) / (2 * step)
        x[i] = kept
    return grad


def run_case(c, dtype, folder):
    rng = np.random.default_rng(len(c["name"]) + 7)
    x = rng.normal(size=(c["n"], *c["shape"][:-1], FEATURES)) * c["scale"]
    w = rng.normal(size=(FEATURES, c["shape"][-1]))
    b = rng.normal(size=c["shape"][-1])
    if dtype == np.float32:  # both sides start from the same numbers
        x, w, b = (v.astype(np.float32).astype(np.float64) for v in (x, w, b))
    y = c["labels"](rng, (c["n"], *c["shape"]))
    y = y.astype(np.float32).astype(np.float64) if y.dtype.kind == "f" else y
    each, feeds = None, {"x": x.astype(dtype), "y": y.astype(dtype) if y.dtype.kind == "f" else y}
    fields, more = "x: x.npy, y: y.npy", c["more"]
    if c["weights"] == "sample":
        each = np.round(rng.uniform(0, 3, c["n"]), 1).astype(np.float32).astype(np.float64)
        feeds["w_of"] = each.astype(dtype)
        fields, more = fields + ", w_of: w.npy", "sample_weight: w_of"
    elif c["weights"]:
        each = c["weights"](y)
    onnx.save(model(c["out"], c["shape"], w, b, dtype), folder / "m.onnx")
    (folder / "job.yaml").write_text(f"""job: case
model: {{onnx: m.onnx}}
loss: {c["loss"]}
{more}
data: {{format: npy, train: {{{fields}}}}}
batch: 64
optimizer: sgd
""")
    words = []
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        words += ["--input", f"{name}={folder / name}.npy"]
    weft("graph", folder / "job.yaml", "--after", "loss", "-o", folder / "loss.onnx")
    weft("run", folder / "loss.onnx", *words, "--output-dir", folder / "run")
    weft("grad", folder / "loss.onnx", "--loss", "loss", *words, "--output-dir", folder / "grad")

    def loss():
        return number_of(c, y, activate(c["out"], x @ w + b), each)

    want, got = loss(), float(np.load(folder / "run" / "loss.npy"))
    off = abs(got - want) / max(1.0, abs(want))
    assert off < (1e-10 if dtype == np.float64 else 2e-5), f"loss {got} instead of {want}"
    worst = 0.0
    for name, value in (("w", w), ("b", b)):
        theirs, ours = slopes(loss, value), np.load(folder / "grad" / f"{name}.npy")
        assert np.isfinite(ours).all(), f"the gradient of {name} is not finite"
        worst = max(worst, np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
    assert worst < (1e-6 if dtype == np.float64 else 2e-4), f"gradient off by {worst:.3g}"
    return off, worst


def main():
    failed, most = 0, {}
    for c in CASES:
        if len(sys.argv) > 2 and sys.argv[2] not in c["name"]:
            continue
        for dtype in (np.float64, np.float32):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    errors = run_case(c, dtype, pathlib.Path(folder))
                    most[dtype] = np.maximum(most.get(dtype, 0), errors)
                except AssertionError as why:
                    failed += 1
                    print(f"FAIL {c['name']} {dtype.__name__}: {why}")
    for dtype, (loss, gradient) in most.items():
        print(f"{dtype.__name__}: worst loss {loss:.2g}, worst gradient {gradient:.2g}")
    sys.exit(1 if failed else 0)


WEFT = sys.argv[1]
main()

# SPDX-License-Identifier: Apache-2.0
"""Models as scikit-learn's are exported train on, and are what onnxruntime says that they are.

    scikit_learn.py WEFT [TEST...]

The nodes of skl2onnx written by hand, with the loss held against onnxruntime's probabilities; and, where
scikit-learn and skl2onnx are there, models that these fitted on a few records.
"""

from weftlib import Cluster, check, main, needs

needs("numpy", "onnx", "onnxruntime")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

RECORDS, FEATURES = 1024, 6
JOB = """job: {name}
model: {{onnx: {name}.onnx}}
loss: {loss}
data:
  format: npy
  train: {{{feature}: x.npy, label: {labels}.npy}}
  eval: {{{feature}: x.npy, label: {labels}.npy}}
  split_records: 128
batch: 32
epochs: 3
optimizer: {{adam: {{learning_rate: 0.02}}}}
seed: 1
"""


def data(c):
    x = np.random.default_rng(3).normal(2, 3, (RECORDS, FEATURES)).astype(np.float32)
    labels = {"two": (x[:, 0] > x[:, 1]).astype(np.int64), "three": x[:, :3].argmax(1).astype(np.int64),
              "number": (x @ np.arange(FEATURES)).astype(np.float32)[:, None]}
    np.save(c.path("x.npy"), x)
    for name, y in labels.items():
        np.save(c.path(name + ".npy"), y)
    return x, labels


def loss_of(path, x, y, loss):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    out = [o for o in session.run(None, {session.get_inputs()[0].name: x}) if o.dtype == np.float32][0]
    if loss == "mse":
        return float(((out - y) ** 2).mean())
    return float(-np.log(np.clip(out[np.arange(len(y)), y], 1e-7, 1)).mean())  # as Keras holds it off 0


def train(c, name, model, labels, x, y, most=1.0):
    """Trains and exports; the loss that weft reached is that of the file, and less than `most` times
    that before."""
    onnx.save(model, c.path(name + ".onnx"))
    loss = "mse" if labels == "number" else "sparse_categorical_crossentropy"
    c.write(name + ".yaml", JOB.format(name=name, loss=loss, labels=labels,
                                       feature=model.graph.input[0].name))
    before = loss_of(c.path(name + ".onnx"), x, y, loss)
    c.must("train", name + ".yaml")
    c.must("export", name, "-o", name + "-out.onnx")
    onnx.checker.check_model(onnx.load(c.path(name + "-out.onnx")))
    told, reached = c.job(name)["eval"]["loss"], loss_of(c.path(name + "-out.onnx"), x, y, loss)
    check(abs(told - reached) < 1e-3 * (1 + reached), f"{name}: {told}, and onnxruntime has {reached}")
    check(reached < most * before, f"{name}: {reached} after {before}")
    print(f"     {name}: {before:.3f} to {reached:.3f}")


def linear(classes, **attrs):
    ml = lambda op, i, o, **kw: helper.make_node(op, [i], o, op, domain="ai.onnx.ml", **kw)  # noqa: E731
    info = helper.make_tensor_value_info
    nodes = [ml("Scaler", "X", ["z"], offset=[2.0] * FEATURES, scale=[1 / 3] * FEATURES),
             ml("LinearClassifier", "z", ["label", "p"], classlabels_ints=range(classes), **attrs),
             ml("Normalizer", "p", ["probabilities"], norm="L1")]
    graph = helper.make_graph(nodes, "linear", [info("X", TensorProto.FLOAT, ["n", FEATURES])],
                              [info("label", TensorProto.INT64, ["n"]),
                               info("probabilities", TensorProto.FLOAT, ["n", classes])])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)])


def linear_classifiers_train(weft):
    rng = np.random.default_rng(7)
    with Cluster(weft, ps=2, workers=1) as c:
        x, labels = data(c)
        c.must("up")
        w = [float(v) for v in rng.normal(size=FEATURES, scale=0.1)]
        train(c, "pair", linear(2, coefficients=[-v for v in w] + w, intercepts=[-0.5, 0.5],
                                post_transform="LOGISTIC"), "two", x, labels["two"], 0.6)
        for transform in ("SOFTMAX", "LOGISTIC"):
            w = [float(v) for v in rng.normal(size=3 * FEATURES, scale=0.1)]
            train(c, transform.lower(), linear(3, coefficients=w, intercepts=[0.0] * 3,
                                               post_transform=transform), "three", x, labels["three"], 0.6)


def what_scikit_learn_fitted_trains_on(weft):
    needs("sklearn", "skl2onnx")
    import warnings
    from skl2onnx import to_onnx
    from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    warnings.filterwarnings("ignore")
    models = [("logistic", LogisticRegression(), "two"),
              ("scaled", make_pipeline(StandardScaler(), LogisticRegression()), "three"),
              ("sgd", SGDClassifier(loss="log_loss", random_state=1), "two"),
              ("mlp", MLPClassifier(hidden_layer_sizes=(16,), random_state=1), "three"),
              ("line", LinearRegression(), "number"),
              ("net", make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(16,),
                                                                   random_state=1)), "number")]
    with Cluster(weft, ps=2, workers=1) as c:
        x, labels = data(c)
        c.must("up")
        for name, model, kind in models:
            noisy = labels[kind][:24].ravel() + (np.random.default_rng(1).normal(size=24)
                                                 if kind == "number" else 0)
            model.fit(x[:24], noisy)
            options = {id(model): {"zipmap": False}} if hasattr(model, "predict_proba") else None
            train(c, name, to_onnx(model, x[:1], options=options), kind, x, labels[kind])


main([linear_classifiers_train, what_scikit_learn_fitted_trains_on])

# SPDX-License-Identifier: Apache-2.0
"""What the tests of sessions share: they are called as X.py WEFT PROGRAM LIBWEFT [TEST...], where
PROGRAM is one in C on libweft."""
import contextlib
import os
import signal
import sys

import weftlib
from weftlib import Cluster, check

weftlib.needs("numpy", "onnx")
import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

PROGRAM, LIBRARY = sys.argv[2:4]
del sys.argv[2:4]
os.environ["WEFT_LIBRARY"] = os.path.abspath(LIBRARY)
sys.path.insert(0, os.path.join(weftlib.HERE, "..", "..", "python"))
import weft as package  # noqa: E402
import weft.session  # noqa: E402, F401
from weft import errors  # noqa: E402

FIRST_WORKER = 5  # among the addresses of a weftlib.Cluster


def up(weft, **how):
    return Cluster(weft, **{"ps": 2, "workers": 2, "transport": "tcp", **how})


def addresses(c):
    """Of all tasks, by their names."""
    workers = {f"worker {i}": c.ports[FIRST_WORKER + i] for i in range(c.n_workers)}
    return {"master": c.ports[0], **{f"ps {i}": c.ports[1 + i] for i in range(c.n_ps)}, **workers}


def session(c, task="master", **how):
    return package.Session(addresses(c)[task].removeprefix("tcp://"), **how)


def fails(kind, words, call):
    """The error of a call, which is of that kind and has the words in it."""
    try:
        call()
    except errors.Error as e:
        check(isinstance(e, kind), f"{kind.__name__} expected, not {type(e).__name__}: {e}")
        check(words in str(e), f'"{words}" is not in: {e}')
        return e
    raise AssertionError(f"no error with: {words}")


def make_model(nodes, inputs=(), outputs=(), **first):
    graph = helper.make_graph(
        nodes, "model", [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in first.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18),
                                                   helper.make_opsetid("ai.weft", 1)])


def of_weft(op, inputs, output, name=None):
    return helper.make_node(op, inputs, [output], domain="ai.weft", name=name or op)


W = np.arange(6, dtype="float32").reshape(2, 3)


def linear():
    """y = x w; `last` is y afterwards, and `count` counts the runs."""
    return make_model([helper.make_node("MatMul", ["x", "w"], ["y"]),
                       of_weft("Assign", ["last", "y"], "set", "keep"),
                       of_weft("AssignAdd", ["count", "one"], "counted")],
                      inputs=[("x", [4, 2])], outputs=[("y", [4, 3])], w=W,
                      last=np.zeros((4, 3), "float32"), count=np.int64(0), one=np.int64(1))


def on_worker(node, worker):
    node.doc_string = f"/job:worker/task:{worker}"
    return node


@contextlib.contextmanager
def stopped(c, task):
    pid = c.pid(task)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

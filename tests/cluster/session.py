# SPDX-License-Identifier: Apache-2.0
"""session.py WEFT TWO_SESSIONS LIBWEFT [TEST...] - sessions on a cluster of real processes: variables
that all of them see, graphs that workers compute, tasks that die, and what cannot be."""
import contextlib
import io
import itertools
import json
import os
import re
import resource
import subprocess
import textwrap
import threading
import time

import sessionlib
import weftlib
from sessionlib import (W, addresses, errors, fails, linear, make_model, of_weft, on_worker,
                        package, session, stopped, up)
from weftlib import check, until

import numpy as np
import onnx
from onnx import helper

# ---- tests ----

def two_sessions_through_any_two_tasks_see_each_other(weft):
    """In C."""
    with up(weft) as c:
        c.must("up")
        for a, b in itertools.permutations(addresses(c), 2):
            at = [addresses(c)[task].removeprefix("tcp://") for task in (a, b)]
            done = subprocess.run([sessionlib.PROGRAM, *at], capture_output=True, text=True, timeout=30)
            check(done.returncode == 0 and done.stdout == f"{a}, {b}\n", f"{a}, {b}: {done}")
            with session(c) as s:
                s.remove("v")


def two_sessions_in_python(weft):
    with up(weft, transport="ipc") as c:
        c.must("up")
        a, b = package.Session(c.ports[1]), package.Session(c.ports[2])
        check((a.task, b.task) == ("ps 0", "ps 1"), (a.task, b.task))
        a.variable("v", 0.0)
        a.assign("v", 3)
        check(b.read("v") == 3, b.read("v"))
        check(b.assign_add("v", 2) == 5, "assign_add")
        check(a.read("v") == 5, a.read("v"))
        a.close()
        check(b.read("v") == 5, "the variable stays")
        b.variable("v", 9.0)
        check(b.read("v") == 5, "and keeps its value")
        other = package.Session(c.ports[0], container="other")
        fails(errors.NotFound, 'no variable "v" of container "other"', lambda: other.read("v"))
        other.variable("v", np.arange(3))
        check(list(other.read("v")) == [0, 1, 2] and b.read("v") == 5, "containers are apart")


def a_graph_runs_on_the_worker_it_is_opened_at(weft):
    """Numbers are numpy's, whichever task the session was opened at."""
    with up(weft) as c:
        c.must("up")
        x = np.random.default_rng(1).normal(size=(4, 2)).astype("float32")
        for n, task in enumerate(addresses(c), start=1):
            s = session(c, task)
            s.extend(linear())
            y, kept, counted, w = s.run(["y", "set", "counted", "w"], {"x": x})
            check(np.abs(y - x @ W).max() < 1e-6 and (kept == y).all() and (w == W).all(), task)
            check(counted == n and s.read("count") == n, f"{task}: {counted}")
            check((s.read("last") == y).all(), task)
        s.assign("w", -W)
        check(np.abs(session_of(s, c).run("y", {"x": x}) + x @ W).max() < 1e-6, "w is read anew")
        check(s.run(targets=["keep"], feeds={"x": 2 * x}) is None, "targets give nothing")
        check(np.abs(s.read("last") + 2 * (x @ W)).max() < 1e-6, "and are run")
        check(s.run("counted") == n + 1 and s.read("count") == n + 1, "only what is needed")


def session_of(s, c):
    """Another session with the same graph, through another task."""
    new = session(c, "ps 1" if s.task != "ps 1" else "ps 0")
    new.extend(linear())
    return new


def models_of_any_size_are_extended_from_files(weft):
    """An exported network with its weights as variables; a second model takes what the first makes."""
    with up(weft) as c:
        c.must("up")
        rng = np.random.default_rng(2)
        v = {f"w{i}": rng.normal(size=(64, 64)).astype("float32") for i in range(40)}
        nodes = [helper.make_node("MatMul", [f"h{i}" if i else "x", f"w{i}"], [f"h{i + 1}"])
                 for i in range(40)]
        path = c.path("deep.onnx")
        onnx.save(make_model(nodes, [("x", [8, 64])], [("h40", [8, 64])], **v), path)
        s = session(c, "worker 1")
        s.extend(path)
        s.extend(make_model([helper.make_node("Tanh", ["h40"], ["end"])], [("h40", [8, 64])],
                            [("end", [8, 64])]))
        x = rng.normal(size=(8, 64)).astype("float32") / 1e30
        expected = x.astype("float64")
        for w in v.values():
            expected = expected @ w
        got = s.run([f"h{i}" for i in range(1, 41)] + ["end"], {"x": x})
        check(np.abs(got[39] / expected - 1).max() < 1e-3, "40 layers")
        check(np.abs(got[40] - np.tanh(got[39])).max() < 1e-6, "and what follows")


def a_graph_goes_from_worker_to_worker(weft):
    """Six layers on three workers in turn, two branches beside each other, and a change at the end: the
    numbers are numpy's, wherever the session is opened, and after a worker has started again."""
    rng = np.random.default_rng(3)
    v = {f"w{i}": rng.normal(size=(16, 16)).astype("float32") / 4 for i in range(6)}
    nodes = []
    for i in range(6):
        nodes += [on_worker(helper.make_node("MatMul", [f"h{i}" if i else "x", f"w{i}"], [f"p{i}"]), i % 3),
                  on_worker(helper.make_node("Tanh", [f"p{i}"], [f"h{i + 1}"]), i % 3)]
    nodes += [on_worker(helper.make_node("Neg", ["x"], ["a"]), 1),
              on_worker(helper.make_node("Abs", ["x"], ["b"]), 2),
              helper.make_node("Add", ["a", "b"], ["sum"]),
              of_weft("Assign", ["last", "h6"], "set"),
              of_weft("AssignAdd", ["count", "one"], "counted")]
    model = make_model(nodes, [("x", [8, 16])], [("h6", [8, 16])], last=np.zeros((8, 16), "float32"),
                       count=np.int64(0), one=np.int64(1), **v)
    x = rng.normal(size=(8, 16)).astype("float32")
    layers = [x]
    for w in v.values():
        layers.append(np.tanh(layers[-1] @ w))
    with up(weft, workers=3, more="dead_ms: 60000") as c:
        c.must("up")
        for n, task in enumerate(addresses(c), start=1):
            s = session(c, task)
            s.extend(model)
            got = s.run([f"h{i}" for i in range(1, 7)] + ["sum", "set", "counted", "w3"], {"x": x})
            check(all(np.abs(g - h).max() < 1e-5 for g, h in zip(got, layers[1:])), task)
            check(np.abs(got[6] - (np.abs(x) - x)).max() < 1e-6, task)
            check((got[7] == got[5]).all() and got[8] == n and (got[9] == v["w3"]).all(), task)
        check((s.read("last") == got[5]).all() and s.read("count") == n, "changes")
        s = session(c, "worker 0")
        s.extend(model)
        s.run("h6", {"x": x})
        c.kill("worker/1")
        check(np.abs(s.run("h6", {"x": x}) - layers[6]).max() < 1e-5, "by the next process")
        with stopped(c, "worker/2"):
            quick = session(c, "worker 0", timeout=1)
            quick.extend(model)
            fails(errors.Timeout, "worker 0: no answer from worker/2 at tcp://",
                  lambda: quick.run("h6", {"x": x}))
            check(np.abs(quick.run("h2", {"x": x}) - layers[2]).max() < 1e-5, "without that one")
        far = make_model([on_worker(helper.make_node("Neg", ["z"], ["n"]), 3)], [("z", [2])],
                         [("n", [2])])
        s.extend(far)
        fails(errors.NotFound, 'is placed on "/job:worker/task:3", and there are 3 workers',
              lambda: s.run("n", {"z": x[0, :2]}))


def sums_of_many_sessions_lose_nothing(weft):
    """Eight threads with sessions of their own, and four that share one; a run's sum too."""
    with up(weft) as c:
        c.must("up")
        tasks = itertools.cycle(addresses(c))
        first = session(c)
        first.variable("v", np.zeros(1000, "float64"))
        first.extend(linear())
        failed = []

        def add(s, how):
            try:
                for _ in range(50):
                    how(s)
            except BaseException as e:  # noqa: BLE001 - a thread's error is the test's
                failed.append(e)

        def adds(s):
            s.assign_add("v", np.ones(1000))

        def counts(s):
            s.run(targets="counted")

        shared = session(c)
        several = [session(c, next(tasks)) for _ in range(8)]
        for s in several[4:]:
            s.extend(linear())
        jobs = ([(s, adds) for s in several[:4] + [shared] * 4] + [(s, counts) for s in several[4:]])
        threads = [threading.Thread(target=add, args=job) for job in jobs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        check(not failed, failed)
        check((first.read("v") == 8 * 50).all(), first.read("v"))
        check(first.read("count") == 4 * 50, first.read("count"))


def a_task_that_dies_is_named_and_comes_back(weft):
    with up(weft, more="dead_ms: 60000") as c:
        c.must("up")
        s = session(c, "worker 0", timeout=10)
        s.extend(linear())
        x = np.ones((4, 2), "float32")
        s.run(targets=["keep", "counted"], feeds={"x": x})
        c.kill("worker/0")  # the supervisor starts another, and the call waits for it
        check(s.run("counted") == 2, "a run by the next process")
        check((s.read("last") == x @ W).all(), "variables outlive a worker")
        s = session(c, "ps 0", timeout=1.5)
        s.extend(linear())
        with stopped(c, "worker/0"):
            # One of the two workers computes for this session; after a failure it is the other.
            tried = [fails_at_worker(s) for _ in range(3)]
            check(sum(tried) <= 1 and not tried[2], tried)
            fails(errors.Timeout, "no answer from", lambda: session(c, "worker 0", timeout=0.5))
        with stopped(c, "ps/1"):
            names = [f"v{i}" for i in range(5)]
            away = [n for n in names if not made(s, n)]
            check(0 < len(away) < 5, away)
        for n in away:
            s.variable(n, 1.0)
            check(s.read(n) == 1, n)


def fails_at_worker(s):
    """Whether a run meets the worker that is away."""
    try:
        s.run("counted")
        return False
    except errors.Timeout as e:
        check("no answer from worker/0 at tcp://" in str(e), e)
        return True


def made(s, name):
    try:
        s.variable(name, 1.0)
        return True
    except errors.Timeout as e:
        check("no answer from ps/1 at tcp://" in str(e) and "1500 ms" in str(e), e)
        return False


def variables_end_with_their_ps(weft):
    with up(weft, ps=1) as c:
        c.must("up")
        s = session(c, "worker 0")
        s.extend(linear())
        s.assign("w", -W)
        c.kill("ps/0")
        fails(errors.NotFound, 'ps 0: there is no variable "w"', lambda: s.read("w"))
        fails(errors.NotFound, 'worker 0: ps 0: there is no variable "count"',
              lambda: s.run("count"))
        again = session(c, "master")
        again.extend(linear())
        check((again.read("w") == W).all() and s.run("count") == 0, "they are made anew")


def variables_are_in_the_status(weft):
    """Of all ps and containers, with those who use them."""
    with up(weft) as c:
        c.must("up")
        check("CONTAINER" not in c.must("status").out, "there are none")
        check(json.loads(c.must("status", "--json").out)["containers"] == [], "and no list")
        a, b = session(c), session(c, "ps 1")
        other = session(c, "worker 0", container="other")
        for i in range(4):
            a.variable(f"v{i}", np.zeros((2, i), "float32"))
        b.read("v1")
        other.variable("n", 7)
        other.variable("sp\x1b[31m ace", 1.0)
        until(lambda: sum(t.get("session_variables", 0) for t in
                          json.loads(c.must("status", "--json").out)["tasks"]) == 6, "all are counted")
        out = c.must("status").out
        rows = [re.split(r"  +", row) for row in out[out.index("CONTAINER"):].splitlines()]
        homes = [row[-1] for row in rows[1:]]
        check(rows[0] == ["CONTAINER", "SESSIONS", "VARIABLE", "DTYPE", "SHAPE", "BYTES", "PS"], rows)
        check(rows[1][:6] == ["-", "2", "v0", "float32", "[2, 0]", "0 B"], rows[1])
        check([row[1] for row in rows[2:5]] == ["v1", "v2", "v3"], rows)
        check(rows[5][:6] == ["other", "1", "n", "int64", "[]", "8 B"], rows[5])
        check(rows[6][1] == r"sp\x1b[31m ace" and len(rows) == 7, rows)
        check(set(homes) == {"ps/0", "ps/1"}, homes)
        picture = json.loads(c.must("status", "--json").out)
        check([(k["container"], k["sessions"], [v["name"] for v in k["variables"]])
               for k in picture["containers"]] ==
              [("", 2, ["v0", "v1", "v2", "v3"]), ("other", 1, ["n", r"sp\x1b[31m ace"])], picture)
        check(picture["containers"][0]["variables"][3] ==
              {"name": "v3", "dtype": "float32", "shape": [2, 3], "bytes": 24, "ps": homes[3]}, picture)
        for i in range(1200):
            a.variable(f"many{i:04}", 0.0)
        until(lambda: sum(t.get("session_variables", 0) for t in
                          json.loads(c.must("status", "--json").out)["tasks"]) == 1206, "all are counted")
        listed = json.loads(c.must("status", "--json").out)["containers"][0]["variables"]
        check([v["name"] for v in listed] == sorted(v["name"] for v in listed) and len(listed) == 1204,
              len(listed))
        check("1186 others; all of them: weft status --all" in c.must("status").out, "cut")
        check(" many1199 " in c.must("status", "--all").out, "uncut")
        with stopped(c, homes[0]):
            out = c.must("status").out
            check(f"the variables of sessions on {homes[0]} are not known: no answer from {homes[0]}" in out
                  and any(row.endswith(({"ps/0", "ps/1"} - {homes[0]}).pop())
                          for row in out[out.index("CONTAINER"):].splitlines()), out)
        other.remove("n")
        other.remove("sp\x1b[31m ace")
        until(lambda: [k["container"] for k in json.loads(c.must("status", "--json").out)["containers"]]
              == [""], "what is removed is not listed")


def a_job_trains_as_it_does_alone(weft):
    """Its losses are the same bits with and without sessions beside it, whose variables have the names
    of its own."""
    job = """job: small
model: {input: {x: [4]}, layers: [{dense: {units: 3, name: fc}}]}
loss: sparse_categorical_crossentropy
data: {format: synthetic, records: 256}
batch: 8
epochs: 800
optimizer: {adam: {learning_rate: 0.01}}
"""
    ends = []
    for beside in (False, True):
        with up(weft, ps=1, workers=1) as c:
            c.write("job.yaml", job)
            c.must("up")
            if beside:
                s = session(c, "worker 0")
                s.extend(linear())
                s.variable("fc/kernel", np.zeros((4, 3), "float32"))
                c.must("submit", "job.yaml")
                runs, x = 0, np.ones((4, 2), "float32")
                while not (c.job("small") or {"state": ""})["state"] == "done":
                    s.run(["y", "counted"], {"x": x})
                    runs += 1
                check(runs > 3 and s.read("count") == runs, runs)
                check((s.read("fc/kernel") == 0).all(), "a variable of a session is not the job's")
            else:
                c.must("train", "job.yaml")
            ends.append(c.job("small")["metrics"]["loss"])
    check(ends[0] == ends[1], ends)


def what_cannot_be_is_told(weft):
    with up(weft) as c:
        c.must("up")
        s = session(c, "worker 0")
        s.extend(linear())
        x = np.ones((4, 2), "float32")
        fails(errors.NotFound, 'did you mean "counted"?', lambda: s.run("conted"))
        fails(errors.NotFound, 'no value or node "nothing"', lambda: s.run(targets="nothing"))
        fails(errors.Invalid, "without fetches and targets", lambda: s.run())
        fails(errors.Unsupported, 'AssignAdd "n" (it is of another domain', lambda: s.extend(make_model(
            [helper.make_node("AssignAdd", ["w", "w"], ["o"], name="n")])))
        fails(errors.Invalid, 'wants input "x"', lambda: s.run("y"))
        fails(errors.Invalid, 'no input "z"', lambda: s.run("y", {"x": x, "z": x}))
        fails(errors.Invalid, "'w' is a variable, and only inputs are fed", lambda: s.run("y", {"x": x, "w": W}))
        fails(errors.ShapeError, 'input "x" is float32[4, 2]', lambda: s.run("y", {"x": x[:3]}))
        fails(errors.ShapeError, 'input "x" is float32[4, 2]',
              lambda: s.run("y", {"x": x.astype("float64")}))
        fails(errors.ShapeError, 'variable "w" is float32 [2, 3], and what is given is float32 [3]',
              lambda: s.assign("w", np.zeros(3, "float32")))
        fails(errors.ShapeError, "what is given is int64 [2, 3]",
              lambda: s.assign_add("w", W.astype("int64")))
        fails(errors.ShapeError, "what is given is float64 []",
              lambda: s.variable("w", np.zeros((), "float64")))
        fails(errors.NotFound, 'did you mean "last"?', lambda: s.read("lasst"))
        fails(errors.Invalid, "has 1 to 1000 bytes", lambda: s.read("x" * 1001))
        fails(errors.Invalid, "has 1 to 1000 bytes", lambda: s.variable("", 0.0))
        fails(errors.Error, "256 MiB", lambda: s.variable("large", np.zeros(2**26 + 1, "float32")))
        fails(errors.SystemRefused, 'a value "y" already', lambda: s.extend(linear()))
        fails(errors.Invalid, "the model", lambda: s.extend(b"not a model"))
        fails(errors.NotFound, "none.onnx", lambda: s.extend(c.path("none.onnx")))
        other = make_model([of_weft("Read", ["w"], "seen")], w=np.zeros((3, 3), "float32"))
        fails(errors.ShapeError, "float32[2, 3] in the session, and float32[3, 3] in the model",
              lambda: s.extend(other))
        fails(errors.ShapeError, "is float32 [2, 3], and what is given is float32 [3, 3]",
              lambda: session(c).extend(other))
        check(np.abs(s.run("y", {"x": x}) - x @ W).max() < 1e-6, "the session goes on")
        for address in ("", "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1"):  # known without asking anybody
            fails(errors.Invalid, "is no address", lambda: package.Session(address))
        fails(errors.Timeout, "no answer from any task at tcp://127.0.0.1:1 in 300 ms",
              lambda: package.Session("127.0.0.1:1", timeout=0.3))
        fails(errors.Invalid, "may have 200", lambda: session(c, container="c" * 201))
        for timeout in (0, -1.0, float("nan"), float("inf"), 4294967.4):
            fails(errors.Invalid, f"a timeout of {timeout} s", lambda: session(c, timeout=timeout))
        fails(errors.WrongType, "the timeout is", lambda: session(c, timeout="3"))
        fails(errors.Invalid, "no text in UTF-8", lambda: s.read("\udc80"))
        other = helper.make_graph([helper.make_node("Neg", ["x"], ["minus"])], "g", [on_input("x", [5], "DOUBLE")],
                                  [on_input("minus", [5], "DOUBLE")])
        fails(errors.ShapeError, '"x" is float32[4, 2] in the session, and float64[5] in the model',
              lambda: s.extend(helper.make_model(other, opset_imports=[helper.make_opsetid("", 18)])))
        s.close()
        fails(errors.Invalid, "is closed", lambda: s.read("w"))


def on_input(name, shape, dtype="FLOAT"):
    return helper.make_tensor_value_info(name, getattr(onnx.TensorProto, dtype), shape)


def branches_without_effect_alone(weft):
    """Both branches of an If are computed, so neither may change anything; where the condition is known one is left."""
    def model(condition, known):
        branches = [helper.make_graph([of_weft("Assign", ["v", "a"], "then_o")], "t", [], [on_input("then_o", [])]),
                    helper.make_graph([helper.make_node("Neg", ["a"], ["else_o"])], "e", [], [on_input("else_o", [])])]
        node = helper.make_node("If", ["c"], ["o"], then_branch=branches[0], else_branch=branches[1])
        start = [helper.make_tensor("v", onnx.TensorProto.FLOAT, [], [0.0])]
        inputs = [on_input("a", [])]
        if known:
            start.append(helper.make_tensor("c", onnx.TensorProto.BOOL, [], [condition]))
        else:
            inputs.append(on_input("c", [], "BOOL"))
        graph = helper.make_graph([node], "g", inputs, [on_input("o", [])], start)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.weft", 1)])

    with up(weft) as c:
        c.must("up")
        fails(errors.Unsupported, "Assign in a branch or loop whose condition is computed would be carried out",
              lambda: session(c).extend(model(False, known=False)))
        for condition in (False, True):
            s = session(c, container=str(condition))
            s.extend(model(condition, known=True))
            check(s.run("o", {"a": 5.0}) == (5 if condition else -5), "the other branch")
            check(not condition or s.read("v") == 5, "it is not assigned")


def who_closes_a_session_waits_for_calls(weft):
    with up(weft) as c:
        c.must("up")
        for _ in range(8):
            s, ended = session(c), []
            s.variable("v", 0.0)

            def add():
                try:
                    while True:
                        s.assign_add("v", 1)
                except errors.Error as e:
                    ended.append(e)

            threads = [threading.Thread(target=add) for _ in range(2)]
            for t in threads:
                t.start()
            until(lambda: s.read("v") > 20, "they add")
            s.close()
            for t in threads:
                t.join(10)
            check([type(e) for e in ended] == [errors.Invalid] * 2, str(ended))


def another_number_of_ps_ends_a_session(weft):
    """Names are divided among all ps: by another number of them they would be found elsewhere."""
    with up(weft) as c:
        c.must("up")
        s = session(c, "worker 0", timeout=10)
        s.variable("v", 1.0)
        c.must("down")
        c.resize(3)
        c.must("up")
        for call in (lambda: s.variable("v", 1.0), lambda: s.read("v")):
            fails(errors.Error, "the cluster has 3 ps now, and had 2 when the session was opened", call)
        fresh = session(c)
        fresh.variable("v", 2.0)
        check(fresh.read("v") == 2, "a new session")


def few_open_files_are_enough(weft):
    """1024, as most systems have it; and a task's address as the status shows it."""
    with up(weft) as c:
        c.must("up")
        shown = [t["address"] for t in json.loads(c.must("status", "--json").out)["tasks"]]
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limits[1]))
        try:
            for address in [*shown, f"{shown[0]}|ipc://{c.path('nobody')}"]:
                check(package.Session(address).read is not None, address)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def the_examples_of_documents_run(weft):
    """Those of the module and of the page for Python."""
    os.environ["WEFT_EXECUTABLE"] = os.path.abspath(weft)
    with up(weft) as c:
        c.must("up")
        text = package.session.__doc__.split("\n\n", 1)[1]
        at = [a.removeprefix("tcp://") for a in (c.ports[0], c.ports[1])]
        exec(textwrap.dedent(text).replace("127.0.0.1:7711", at[0]).replace("127.0.0.1:7712", at[1]),
             {})
        c.must("down")
        with open(os.path.join(weftlib.HERE, "..", "..", "docs", "python.md"), encoding="utf-8") as f:
            page = f.read()
        blocks = [b for b in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S) if "Session(" in b]
        check(len(blocks) == 1, blocks)
        before, said = os.getcwd(), io.StringIO()
        os.chdir(c.folder)
        try:
            with contextlib.redirect_stdout(said):
                exec(blocks[0], {})
        finally:
            os.chdir(before)
        check(said.getvalue() == "[1. 2. 3.]\n[1. 2. 4.]\n", said.getvalue())


def a_forked_child_opens_its_own(weft):
    with up(weft) as c:
        c.must("up")
        s = session(c)
        s.variable("v", 1.0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                fails(errors.Unsupported, "do not survive a fork", lambda: s.read("v"))
                own = session(c, "ps 1")
                code = 0 if own.assign_add("v", 1) == 2 else 2
            finally:
                os._exit(code)
        check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child")
        check(s.read("v") == 2, "the parent goes on")


def a_session_rests_for_longer_than_links_do(weft):
    """A ps forgets a client that has been silent for a while; the next call connects anew."""
    with up(weft, env={"WEFT_GONE_MS": "2000"}) as c:
        c.must("up")
        s = session(c, "ps 0")
        s.extend(linear())
        s.run(targets="counted")
        time.sleep(5)  # the silence itself
        check(s.run("counted") == 2 and s.read("count") == 2, "it was counted once each")


def a_cluster_without_ps_says_so(weft):
    with up(weft, ps=0, workers=2) as c:
        c.must("up")
        for task in ("master", "worker 1"):
            fails(errors.Unsupported, "has no ps", lambda task=task: session(c, task))


def workers_cost_nothing_while_nobody_asks(weft):
    with up(weft, workers=1, ps=1) as c:
        c.must("up")
        until(lambda: c.pid("worker/0"), "a worker")

        def ticks():
            with open(f"/proc/{c.pid('worker/0')}/stat", encoding="utf-8") as f:
                return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))

        time.sleep(1)  # what a start costs is over
        begun = ticks()
        time.sleep(3)  # the rest itself
        check(ticks() - begun < 15, f"{ticks() - begun} ticks of 10 ms in 3 s")


weftlib.main([two_sessions_through_any_two_tasks_see_each_other, two_sessions_in_python,
              a_graph_runs_on_the_worker_it_is_opened_at, models_of_any_size_are_extended_from_files,
              a_graph_goes_from_worker_to_worker, sums_of_many_sessions_lose_nothing, a_task_that_dies_is_named_and_comes_back,
              variables_end_with_their_ps, variables_are_in_the_status, a_job_trains_as_it_does_alone, what_cannot_be_is_told, branches_without_effect_alone,
          who_closes_a_session_waits_for_calls, few_open_files_are_enough, another_number_of_ps_ends_a_session,
              the_examples_of_documents_run, a_forked_child_opens_its_own, a_session_rests_for_longer_than_links_do,
              a_cluster_without_ps_says_so, workers_cost_nothing_while_nobody_asks])

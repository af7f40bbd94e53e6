# SPDX-License-Identifier: Apache-2.0
"""session_send.py WEFT SEND_RECV LIBWEFT [TEST...] - values that one run sends and another receives,
through workers of real processes; and sums that runs compute with."""
import itertools
import os
import subprocess
import threading
import time

import sessionlib
import weftlib
from sessionlib import (addresses, errors, fails, make_model, of_weft, on_worker, session, stopped,
                        up)
from stranger import CLIENT, HELLO_KIND, WELCOME_KIND, WORKER, Speaker, body, hello
from weftlib import check

import numpy as np
import onnx
from onnx import TensorProto, helper


TAKE_KIND = 102  # as in common/wire/grammar.h


def task(worker):
    return f"/job:worker/task:{worker}"


def send(key, value, to, output):
    return helper.make_node("Send", [value], [output], domain="ai.weft", name=output, key=key,
                            to=task(to))


def recv(key, output, source, shape=(3,), dtype=TensorProto.FLOAT):
    shape = {"shape": list(shape)} if shape else {}
    return helper.make_node("Recv", [], [output], domain="ai.weft", name=output, key=key,
                            **{"from": task(source)}, dtype=dtype, **shape)


def sender(to=1, key="k", shape=(3,)):
    return make_model([send(key, "x", to, "sent")], [("x", list(shape))])


def receiver(source=0, key="k", shape=(3,), dtype=TensorProto.FLOAT):
    return make_model([recv(key, "y", source, shape, dtype),
                       of_weft("AssignAdd", ["n", "one"], "received")],
                      n=np.int64(0), one=np.int64(1))


X = np.array([1, 2.5, -4], "float32")


def at(c, worker, model, **how):
    s = session(c, f"worker {worker}", **how)
    s.extend(model)
    return s


class Later(threading.Thread):
    """A call in a thread; its result or error is of interest later."""

    def __init__(self, call):
        super().__init__()
        self.call, self.value, self.error = call, None, None
        self.start()

    def run(self):
        try:
            self.value = self.call()
        except Exception as e:  # noqa: BLE001 - it is raised where it is wanted
            self.error = e

    def result(self):
        self.join()
        if self.error:
            raise self.error
        return self.value


# ---- tests ----

def a_program_in_c_sends_and_receives(weft):
    with up(weft) as c:
        c.must("up")
        onnx.save(sender(), c.path("send.onnx"))
        onnx.save(receiver(), c.path("recv.onnx"))
        a, b = (addresses(c)[f"worker {i}"].removeprefix("tcp://") for i in range(2))
        done = subprocess.run([sessionlib.PROGRAM, a, c.path("send.onnx"), b, c.path("recv.onnx")],
                              capture_output=True, text=True, timeout=30)
        check(done.returncode == 0 and done.stdout == "received\n", done)


def what_one_run_sends_another_receives(weft):
    """Later, at the same time, in order, once, and in the container of the two alone."""
    with up(weft) as c:
        c.must("up")
        a, b = at(c, 0, sender()), at(c, 1, receiver())
        for i in range(4):
            a.run(targets="sent", feeds={"x": i * X})
        for i in range(4):
            y, n = b.run(["y", "received"])
            check((y == i * X).all() and n == i + 1, (i, y, n))
        waits = Later(lambda: b.run("y"))
        time.sleep(0.3)  # so that it does wait
        a.run(targets="sent", feeds={"x": -X})
        check((waits.result() == -X).all(), waits.value)
        other = at(c, 1, receiver(), container="other", timeout=1)
        a.run(targets="sent", feeds={"x": 7 * X})
        fails(errors.Timeout, 'nothing came from worker 0 under key "k" in 800 ms',
              lambda: other.run("y"))
        check((b.run("y") == 7 * X).all(), "it was not the other container's")
        late = at(c, 1, receiver(), timeout=1)
        fails(errors.Timeout, 'worker 1: nothing came from worker 0 under key "k" in 800 ms',
              lambda: late.run("y"))
        check(b.read("n") == 4, "and a run that receives nothing changes nothing")


def a_task_may_send_to_itself_and_through_others(weft):
    """A session at one worker whose Send and Recv are placed on two others."""
    with up(weft, workers=3) as c:
        c.must("up")
        s = at(c, 0, sender(to=0))
        s.extend(make_model([recv("k", "y", 0)]))
        s.run(targets="sent", feeds={"x": X})
        check((s.run("y") == X).all(), "to itself")
        waits = at(c, 0, make_model([recv("k", "z", 0)]))
        later = Later(lambda: waits.run("z"))
        time.sleep(0.3)  # so that it does wait
        s.run(targets="sent", feeds={"x": 2 * X})
        check((later.result() == 2 * X).all(), "to itself, which waits")
        far = at(c, 0, make_model([on_worker(helper.make_node("Neg", ["x"], ["m"]), 0),
                                   on_worker(send("far", "m", 2, "gone"), 1),
                                   on_worker(recv("far", "come", 1), 2),
                                   helper.make_node("Abs", ["come"], ["end"])], [("x", [3])]))
        far.run(targets="gone", feeds={"x": X})
        check((far.run("end") == np.abs(X)).all(), "between two others")
        end, _ = far.run(["end", "come"], {"x": 3 * X}, targets=["gone"]), None
        check((end[0] == 3 * np.abs(X)).all() and (end[1] == -3 * X).all(), "and in one run")


def ping_pong_in_one_run(weft):
    """Each of two workers needs what the other sends before it can send what that one needs."""
    rounds, nodes = 6, []
    for i in range(rounds):
        here, there = i % 2, 1 - i % 2
        value = f"y{i - 1}" if i else "x"
        nodes += [on_worker(helper.make_node("Add", [value, value], [f"z{i}"]), here),
                  on_worker(send(f"round {i}", f"z{i}", there, f"s{i}"), here),
                  on_worker(recv(f"round {i}", f"y{i}", here), there)]
    model = make_model(nodes, [("x", [3])])
    with up(weft) as c:
        c.must("up")
        for name in addresses(c):
            s = session(c, name)
            s.extend(model)
            for k in (1, 2):
                y = s.run(f"y{rounds - 1}", {"x": k * X}, targets=[f"s{i}" for i in range(rounds)])
                check((y == k * X * 2**rounds).all(), (name, y))


def every_dtype_and_shape_goes(weft):
    cases = [("float32", (2, 3)), ("float64", (4,)), ("int64", ()), ("int32", (1, 1, 2)),
             ("uint8", (5,)), ("bool", (2,)), ("float16", (3,)), ("float32", (0, 3)),
             ("float32", (1 << 21,))]
    with up(weft) as c:
        c.must("up")
        rng = np.random.default_rng(4)
        for i, (dtype, shape) in enumerate(cases):
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            x = np.asarray(rng.normal(size=shape) * 9).astype(dtype)
            out = make_model([send(f"c{i}", "x", 1, "sent")])
            out.graph.input.append(helper.make_tensor_value_info("x", kind, list(shape)))
            at(c, 0, out).run(targets="sent", feeds={"x": x})
            y = at(c, 1, receiver(key=f"c{i}", shape=shape, dtype=kind)).run("y")
            check(y.dtype == x.dtype and y.shape == x.shape and (y == x).all(), (dtype, shape))


def what_cannot_be_received_is_told(weft):
    """Another shape or dtype leaves the value where it is; what is full says so."""
    more = "session_values: 3\nsession_values_mib: 1"
    with up(weft, more=more) as c:
        c.must("up")
        a, b = at(c, 0, sender()), at(c, 1, receiver())
        a.run(targets="sent", feeds={"x": X})
        wrong = at(c, 1, receiver(shape=(4,)))
        fails(errors.ShapeError, 'worker 1: worker 0: what was sent under key "k" is float32 [3], '
              'and the Recv wants float32 [4]', lambda: wrong.run("y"))
        ints = at(c, 1, receiver(dtype=TensorProto.INT64))
        fails(errors.ShapeError, "wants int64 [3]", lambda: ints.run("y"))
        check((b.run("y") == X).all(), "the value is still there")
        waits = Later(lambda: wrong.run("y"))
        time.sleep(0.3)  # so that it does wait
        a.run(targets="sent", feeds={"x": X})
        fails(errors.ShapeError, "wants float32 [4]", waits.result)
        check((b.run("y") == X).all(), "and so after a wait")
        for _ in range(3):
            a.run(targets="sent", feeds={"x": X})
        fails(errors.Error, 'worker 0: Send of key "k": 3 values were sent and not received; 3 may be',
              lambda: a.run(targets="sent", feeds={"x": X}))
        for _ in range(3):
            b.run("y")
        a.run(targets="sent", feeds={"x": X})
        large = at(c, 0, sender(shape=(1 << 18,), key="large"))
        fails(errors.Error, "and 1048576 more are to be; 1048576 may be",
              lambda: large.run(targets="sent", feeds={"x": np.zeros(1 << 18, "float32")}))
        for words, node in [("has a key of 0 bytes", recv("", "r0", 0)),
                            ("has a key of 1001 bytes", recv("k" * 1001, "r1", 0)),
                            ('is placed on "/job:worker/task:2", and there are 2 workers', recv("k", "r2", 2)),
                            ('is placed on "/job:worker/task:9"', send("k", "c", 9, "r3"))]:
            s = at(c, 0, make_model([helper.make_node("Neg", ["x"], ["c"]), node], [("x", [3])]))
            fails(errors.Error, words, lambda s=s, node=node: s.run(targets=node.output[0],
                                                                    feeds={"x": X}))
        plain = helper.make_node("Send", ["x"], ["s"], domain="ai.weft", name="s", key="k")
        s = at(c, 0, make_model([plain], [("x", [3])]))
        fails(errors.Invalid, 'Send "s" does not say the worker that may receive it',
              lambda: s.run(targets="s", feeds={"x": X}))
        fails(errors.ShapeError, "a negative size", lambda: at(c, 0, receiver(shape=(-1,))))
        fails(errors.Error, "dtype 77 is no type", lambda: at(c, 0, receiver(dtype=77)))


def what_a_failed_run_received_is_given_back(weft):
    """One that waits for two values and gets one; one whose assignment fails; but not what was passed on."""
    both = make_model([recv("k", "one", 0), recv("other", "two", 0), helper.make_node("Add", ["one", "two"], ["y"])])
    kept = make_model([recv("k", "r", 0), of_weft("Assign", ["v", "r"], "set")], v=np.zeros(3, "float32"))
    passes = make_model([recv("k", "r", 0), send("next", "r", 1, "passed"), recv("none", "never", 0)])
    with up(weft) as c:
        c.must("up")
        a = at(c, 0, sender())
        for model, fetches, error in ((both, "y", errors.Timeout), (kept, "set", errors.NotFound)):
            a.run(targets="sent", feeds={"x": X})
            b = at(c, 1, model, timeout=1)
            if model is kept:
                b.remove("v")
            fails(error, "", lambda b=b, fetches=fetches: b.run(fetches))
            check((at(c, 1, receiver(), timeout=5).run("y") == X).all(), f"{fetches}: the value is there again")
        a.run(targets="sent", feeds={"x": X})
        fails(errors.Timeout, '"none"', lambda: at(c, 1, passes, timeout=1).run(["passed", "never"]))
        check((at(c, 1, receiver(key="next", source=1), timeout=5).run("y") == X).all(), "it was passed on")
        fails(errors.Timeout, '"k"', lambda: at(c, 1, receiver(), timeout=1).run("y"))


def a_task_that_dies_takes_what_it_holds(weft):
    with up(weft, more="dead_ms: 60000") as c:
        c.must("up")
        a, b = at(c, 0, sender()), at(c, 1, receiver(), timeout=10)
        a.run(targets="sent", feeds={"x": X})
        check((b.run("y") == X).all(), "before")
        waits = Later(lambda: b.run("y"))
        time.sleep(0.5)  # so that it does wait
        begun = time.monotonic()
        c.kill("worker/0")
        fails(errors.NotFound, 'worker 1: worker 0 has started again while key "k" was awaited from '
              "it: what it held is lost", waits.result)
        check(time.monotonic() - begun < 7, "it is told before the run's time is over")
        a.run(targets="sent", feeds={"x": 2 * X})  # by the next process
        check((b.run("y") == 2 * X).all(), "afterwards")
        a.run(targets="sent", feeds={"x": 3 * X})
        with stopped(c, "worker/0"):
            quick = at(c, 1, receiver(), timeout=1)
            fails(errors.Timeout, 'key "k"', lambda: quick.run("y"))
        c.kill("worker/1")  # one that receives: what it has not taken is not lost
        check((b.run("y") == 3 * X).all(), "by the next process of the receiver")


def many_send_and_receive_at_once(weft):
    """Eight senders and eight receivers of one key: each value is received once."""
    each = 50
    with up(weft, workers=2) as c:
        c.must("up")
        pairs = [(at(c, 0, sender()), at(c, 1, receiver(), timeout=30)) for _ in range(8)]

        def sends(k, s):
            for i in range(each):
                s.run(targets="sent", feeds={"x": np.array([k, i, 0], "float32")})

        def receives(s):
            return [tuple(s.run("y")[:2]) for _ in range(each)]

        threads = [Later(lambda k=k, s=s: sends(k, s)) for k, (s, _) in enumerate(pairs)]
        got = [Later(lambda s=s: receives(s)) for _, s in pairs]
        for t in threads:
            t.result()
        lists = [t.result() for t in got]
        check(sorted(itertools.chain(*lists)) == [(k, i) for k in range(8) for i in range(each)],
              "each once")
        for found in lists:
            for k in range(8):
                mine = [i for who, i in found if who == k]
                check(mine == sorted(mine), "those of one sender come in their order")


def many_may_wait_at_once(weft):
    """And others compute meanwhile."""
    many = 70  # more than the plans that a worker keeps while nobody runs them
    with up(weft, more="session_values: 10") as c:
        c.must("up")
        waiting = [Later(lambda s=at(c, 1, receiver(key=f"k{i}"), timeout=30): s.run("y")) for i in range(many)]
        time.sleep(1)  # so that they do wait
        s = at(c, 1, make_model([helper.make_node("Neg", ["x"], ["n"])], [("x", [3])]))
        check((s.run("n", {"x": X}) == -X).all(), "another run")
        for i in range(many):
            at(c, 0, sender(key=f"k{i}")).run(targets="sent", feeds={"x": i * X})
        check(all((w.result() == i * X).all() for i, w in enumerate(waiting)), "each has its own")


def whatever_a_stranger_asks_changes_nothing(weft):
    """Takes of anything, and bytes that are none: each is answered by a sentence."""
    def text(*fields):
        return body(*fields).decode("latin-1")

    shape = text((1, 1), (2, 3))
    wrong = [b"\xff" * 40, np.random.default_rng(6).bytes(300), body((2, "k")), body((2, "k" * 5000), (4, shape)),
             body((1, "c" * 300), (2, "k"), (4, shape)), body((2, "k"), (3, 1), (4, text((1, 77)))), body((4, shape)),
             body((2, "k"), (3, 1), (4, text((1, 1), (2, 4)))), body((2, "k"), (3, 1), (4, shape), (7, 1 << 31)),
             body((2, "k"), (3, 1), (4, text((1, 1), (2, 1 << 40), (2, 1 << 40))))]
    with up(weft) as c:
        c.must("up")
        a, b = at(c, 0, sender()), at(c, 1, receiver())
        a.run(targets="sent", feeds={"x": X})
        pid, port = c.pid("worker/0"), int(addresses(c)["worker 0"].rsplit(":", 1)[1])
        s = Speaker(port)
        s.say(HELLO_KIND, hello(CLIENT, 9, WORKER), incarnation=800, sequence=1)
        s.hear(WELCOME_KIND)
        for i, ask in enumerate(wrong):
            s.say(TAKE_KIND, ask, incarnation=800, sequence=2 + i, request=7 + i)
            fields, _ = s.hear(TAKE_KIND + 1)
            check(fields["request"] == 7 + i, fields)
        check((b.run("y") == X).all(), "nobody else has it")
        check(c.pid("worker/0") == pid, "the worker has ended")
        s.close()


def sums_are_computed_with(weft):
    """y = AssignAdd(v, d), z = 2 y: two sessions that add a thousand times each see 2000 sums."""
    model = make_model([of_weft("AssignAdd", ["v", "one"], "y"),
                        helper.make_node("Mul", ["y", "two"], ["z"]),
                        on_worker(helper.make_node("Neg", ["y"], ["n"]), 1),
                        helper.make_node("Add", ["x", "y"], ["d"]),
                        of_weft("AssignAdd", ["u", "d"], "t"),
                        of_weft("Assign", ["last", "t"], "kept"),
                        helper.make_node("Mul", ["kept", "two"], ["end"])],
                       [("x", [])], v=np.float32(0), u=np.float32(0), last=np.float32(0),
                       one=np.array(1, "float32"), two=np.array(2, "float32"))
    with up(weft) as c:
        c.must("up")
        s = session(c, "master")
        s.extend(model)
        y, z, n = s.run(["y", "z", "n"])
        check((y, z, n) == (1, 2, -1) and s.read("v") == 1, (y, z, n))
        end, t, y = s.run(["end", "t", "y"], {"x": np.float32(10)})
        check((end, t, y) == (24, 12, 2), (end, t, y))
        check((s.read("u"), s.read("v"), s.read("last")) == (12, 2, 12), "what is kept")
        s.run(targets="z")
        check(s.read("v") == 3, "a target is run")
        several = [session(c, name) for name in ("worker 0", "worker 1", "ps 0", "ps 1")]
        for q in several:
            q.extend(model)
        s.assign("v", 0.0)
        all_z = [Later(lambda q=q: [float(q.run("z")) for _ in range(500)]) for q in several]
        found = sorted(itertools.chain(*(t.result() for t in all_z)))
        check(found == [2.0 * i for i in range(1, 2001)], "each addition has its own sum")


weftlib.main([a_program_in_c_sends_and_receives, what_one_run_sends_another_receives,
              a_task_may_send_to_itself_and_through_others, ping_pong_in_one_run,
              every_dtype_and_shape_goes, what_cannot_be_received_is_told, what_a_failed_run_received_is_given_back,
              a_task_that_dies_takes_what_it_holds, many_send_and_receive_at_once, many_may_wait_at_once,
              whatever_a_stranger_asks_changes_nothing,
              sums_are_computed_with])

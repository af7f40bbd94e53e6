# SPDX-License-Identifier: Apache-2.0
"""Drawn cases of recurrent layers."""
import numpy as np

from gradient_cases.case import Case, node, of


@of("LSTM", "GRU", "RNN")
def recurrent(random, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch, size, hidden = random.ints(4, 1, 3)
    direction = random.pick([None, "forward", "reverse", "bidirectional"])
    dirs, first = 2 if direction == "bidirectional" else 1, random.int(0, 1)
    state = [batch, dirs, hidden] if first else [dirs, batch, hidden]
    shapes = [[batch, steps, size] if first else [steps, batch, size],
              [dirs, gates * hidden, size], [dirs, gates * hidden, hidden]]
    words, consts = ["w0", "w1", "w2"], {}

    def optional(shape, p=0.6):
        if not random.chance(p):
            words.append("-")
            return
        words.append(f"w{len(shapes)}")
        shapes.append(shape)

    optional([dirs, 2 * gates * hidden])
    words.append("l" if random.chance(0.4) else "-")
    if words[-1] == "l":
        consts["l"] = np.array(random.ints(batch, 1, steps), np.int32)
    optional(state)
    if op == "LSTM":
        optional(state)
        optional([dirs, 3 * hidden], 0.4)
    attrs = dict(hidden_size=hidden, direction=direction, layout=first)
    if op == "GRU":
        attrs["linear_before_reset"] = random.int(0, 1)
    outs = random.pick(["y", "a y", "a b y"] if op == "LSTM" else ["y", "a y"])
    while words[-1] == "-":
        words.pop()
    return Case([random.apart(s, -0.9, 0.9) for s in shapes], node(op, " ".join(words), outs, **attrs),
                **consts)

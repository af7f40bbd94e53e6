# SPDX-License-Identifier: Apache-2.0
"""Update rules against Keras 3's formulas, written here in numpy as Keras has them, over many steps.

Keras computes in float32; the reference computes in float64, so that what is compared is weft's own
rounding. The error is counted against the way that a weight went.
"""
import math
import subprocess
import sys

try:
    import numpy as np
except ImportError as why:
    print("skipped:", why)
    sys.exit(77)

TOOL = sys.argv[1]
N, STEPS = 129, 600
WORST = 2e-4  # of the way gone


class Rule:
    """State by name; `t` counts from 1."""

    def __init__(self, **options):
        self.o = options
        self.s = {}
        self.t = 0

    def slot(self, name, like, first=0.0):
        return self.s.setdefault(name, np.full_like(like, first))

    def get(self, name, otherwise):
        return self.o.get(name, otherwise)

    def step(self, w, g):
        self.t += 1
        lr = self.rate()
        w = w - w * self.get("weight_decay", self.decay) * lr
        return self.move(w, g, lr)

    decay = 0.0
    learning_rate = 0.001

    def rate(self):
        lr = self.get("learning_rate", self.learning_rate)
        return lr * min(1.0, self.t / max(1.0, self.get("warmup_steps", 0.0)))


class Adadelta(Rule):
    def move(self, w, g, lr):
        rho, eps = self.get("rho", 0.95), 1e-7
        grad, delta = self.slot("grad", w), self.slot("delta", w)
        grad[:] = rho * grad + (1 - rho) * g * g
        step = -np.sqrt(delta + eps) * g / np.sqrt(grad + eps)
        delta[:] = rho * delta + (1 - rho) * step * step
        return w + lr * step


class Adamax(Rule):
    def move(self, w, g, lr):
        b1, b2, eps = self.get("beta_1", 0.9), self.get("beta_2", 0.999), 1e-7
        m, u = self.slot("m", w), self.slot("u", w)
        m += (g - m) * (1 - b1)
        u[:] = np.maximum(b2 * u, np.abs(g))
        return w - lr * m / ((1 - b1**self.t) * (u + eps))


class Amsgrad(Rule):
    def move(self, w, g, lr):
        b1, b2, eps = 0.9, 0.999, 1e-7
        m, v, h = self.slot("m", w), self.slot("v", w), self.slot("h", w)
        alpha = lr * math.sqrt(1 - b2**self.t) / (1 - b1**self.t)
        m += (g - m) * (1 - b1)
        v += (g * g - v) * (1 - b2)
        h[:] = np.maximum(h, v)
        return w - m * alpha / (np.sqrt(h) + eps)


class Ftrl(Rule):
    def move(self, w, g, lr):
        l1 = self.get("l1_regularization_strength", 0.0)
        l2 = self.get("l2_regularization_strength", 0.0) + self.get("beta", 0.0) / (2 * lr)
        shrink = self.get("l2_shrinkage_regularization_strength", 0.0)
        a = self.slot("a", w, self.get("initial_accumulator_value", 0.1))
        l = self.slot("l", w)
        b = a + g * g
        l += g + 2 * shrink * w - (np.sqrt(b) - np.sqrt(a)) / lr * w
        quadratic = np.sqrt(b) / lr + 2 * l2
        a[:] = b
        return (np.clip(l, -l1, l1) - l) / quadratic


class Lamb(Rule):
    def move(self, w, g, lr):
        b1, b2, eps = 0.9, 0.999, 1e-7
        m, v = self.slot("m", w), self.slot("v", w)
        m += (g - m) * (1 - b1)
        v += (g * g - v) * (1 - b2)
        step = m / (1 - b1**self.t) / (np.sqrt(v / (1 - b2**self.t)) + eps)
        w_norm, g_norm = np.sqrt(np.sum(w * w)), np.sqrt(np.sum(step * step))
        ratio = w_norm / g_norm if w_norm > 0 and g_norm > 0 else 1.0
        return w - ratio * lr * step


class Lion(Rule):
    def move(self, w, g, lr):
        b1, b2 = self.get("beta_1", 0.9), self.get("beta_2", 0.99)
        m = self.slot("m", w)
        w = w - lr * np.sign(m * b1 + g * (1 - b1))
        m[:] = m * b2 + g * (1 - b2)
        return w


class Nadam(Rule):
    def move(self, w, g, lr):
        b1, b2, eps = self.get("beta_1", 0.9), 0.999, 1e-7
        m, v = self.slot("m", w), self.slot("v", w)
        u_t = b1 * (1 - 0.5 * 0.96**self.t)
        u_next = b1 * (1 - 0.5 * 0.96 ** (self.t + 1))
        self.product = getattr(self, "product", 1.0) * u_t
        m += (g - m) * (1 - b1)
        v += (g * g - v) * (1 - b2)
        m_hat = u_next * m / (1 - self.product * u_next) + (1 - u_t) * g / (1 - self.product)
        v_hat = v / (1 - b2**self.t)
        return w - m_hat * lr / (np.sqrt(v_hat) + eps)


class ScheduledAmsgrad(Amsgrad):
    """cosine_decay with a warm-up."""

    def rate(self):
        s, steps, warm, target, alpha = self.t - 1, 400, 50, 0.01, 0.1
        if s < warm:
            return (target - 0.001) * s / warm + 0.001
        part = min(s - warm, steps) / steps
        return target * ((1 - alpha) * 0.5 * (1 + math.cos(math.pi * part)) + alpha)


COSINE = {
    "learning_rate.cosine_decay." + k: v
    for k, v in {"initial_learning_rate": 0.001, "decay_steps": 400, "warmup_steps": 50,
                 "warmup_target": 0.01, "alpha": 0.1}.items()
}
CASES = [
    ("adadelta", Adadelta, {}),
    ("adadelta", Adadelta, {"learning_rate": 1.0, "rho": 0.9, "weight_decay": 0.001}),
    ("adamax", Adamax, {}),
    ("adamax", Adamax, {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.95, "weight_decay": 0.01}),
    ("amsgrad", Amsgrad, {}),
    ("amsgrad", Amsgrad, {"learning_rate": 0.01, "warmup_steps": 100}),
    ("amsgrad", ScheduledAmsgrad, COSINE),
    ("ftrl", Ftrl, {}),
    ("ftrl", Ftrl, {"learning_rate": 0.05, "l1_regularization_strength": 0.1,
                    "l2_regularization_strength": 0.01, "beta": 0.2,
                    "l2_shrinkage_regularization_strength": 0.01}),
    ("lamb", Lamb, {}),
    ("lamb", Lamb, {"learning_rate": 0.01, "weight_decay": 0.01}),
    ("lion", Lion, {}),
    ("lion", Lion, {"learning_rate": 0.01, "beta_1": 0.95, "beta_2": 0.98, "weight_decay": 0.01}),
    ("nadam", Nadam, {}),
    ("nadam", Nadam, {"learning_rate": 0.01, "beta_1": 0.99}),
]


def run(rule, options, first, gradients):
    words = [f"{k}={v!r}" for k, v in options.items()]
    out = subprocess.run([TOOL, rule, str(N), str(STEPS), *words], check=True, capture_output=True,
                         input=first.tobytes() + gradients.tobytes()).stdout
    return np.frombuffer(out, np.float32).reshape(STEPS, N)


def main():
    rng = np.random.default_rng(5)
    first = rng.normal(size=N).astype(np.float32)
    scale = 10.0 ** rng.uniform(-3, 0, size=N)
    gradients = (rng.normal(size=(STEPS, N)) * scale + 0.3 * scale).astype(np.float32)
    gradients[::7, 3] = 0
    failed = 0
    for rule, cls, options in CASES:
        ours = run(rule, options, first, gradients)
        reference, w = cls(**options), first.astype(np.float64)
        way, worst = np.full(N, 1e-3), 0.0
        for t in range(STEPS):
            before = w
            w = reference.step(w, gradients[t].astype(np.float64))
            way += np.abs(w - before)
            # A weight's own last place counts too: a way of thousands of tiny steps rounds that often.
            room = way + 1e-2 * np.abs(w)
            worst = max(worst, float(np.max(np.abs(ours[t] - w) / room)))
        bad = not worst <= WORST
        failed += bad
        print(f"{'FAILED' if bad else 'ok':7}{rule:10}{worst:9.1e}  {options if cls is not ScheduledAmsgrad else 'cosine'}")
    return 1 if failed else 0


sys.exit(main())

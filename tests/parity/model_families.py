# SPDX-License-Identifier: Apache-2.0
"""Gradients of families of models, by `weft grad`, against PyTorch's autograd.

    model_families.py WEFT [PATTERN]

Each family is a small module with its loss inside. It is exported by the TorchScript exporter (opset
17, training preserved) and, where onnxscript is there, by the dynamo exporter (opset 18, not
optimised); the loss and the gradient of every parameter must be PyTorch's to 1e-4 of the largest
element. A gradient that is zero but for rounding (a bias in front of a normalisation) is measured
against a hundredth of the model's largest. The dynamo exporter writes BatchNormalization in inference
form whatever the model's mode (docs/decisions.md), so it is given the model in that mode.
Skipped where torch is not there.
"""
import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

LIMIT = 1e-4
UNSUPPORTED = 3
BATCH = 4
FAMILIES = []


def family(make):
    """A function that gives the module and its inputs by name."""
    FAMILIES.append(make)
    return make


class Loss(nn.Module):
    """A model and what it is judged by: the last input is the labels."""

    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs):
        return self.loss(self.model(*inputs[:-1]), inputs[-1])


def classes(model, n, **inputs):
    return Loss(model, F.cross_entropy), {**inputs, "y": torch.randint(n, (BATCH,))}


def tokens(model, n, loss_axis=(0, 1), **inputs):
    def loss(z, y):
        return F.cross_entropy(z.flatten(*loss_axis), y.flatten())
    first = next(iter(inputs.values()))
    return Loss(model, loss), {**inputs, "y": torch.randint(n, tuple(first.shape[:2]))}


def click(model, **inputs):
    y = torch.randint(2, (BATCH, 1)).float()
    return Loss(model, F.binary_cross_entropy_with_logits), {**inputs, "y": y}


def target(model, *shape, **inputs):
    return Loss(model, F.mse_loss), {**inputs, "y": torch.randn(BATCH, *shape)}


def image(c=3, size=8):
    return torch.randn(BATCH, c, size, size)


def ids(n, *shape):
    return torch.randint(n, (BATCH, *shape))


# ---- dense and convolutional ----

@family
def mlp():
    return classes(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(),
                                 nn.Linear(8, 3)), 3, x=torch.randn(BATCH, 6))


@family
def lenet():
    return classes(nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.Tanh(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(54, 12), nn.ReLU(), nn.Linear(12, 5)), 5,
        x=image(1, 16))


@family
def vgg():
    def stage(a, b):
        return [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU(),
                nn.MaxPool2d(2, 2)]
    return classes(nn.Sequential(*stage(3, 4), *stage(4, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                 nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)), 3, x=image())


class Residual(nn.Module):
    def __init__(self, way, short):
        super().__init__()
        self.way, self.short = way, short

    def forward(self, x):
        return F.relu(self.way(x) + self.short(x))


def conv_bn(a, b, k, stride=1, groups=1):
    return [nn.Conv2d(a, b, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(b)]


@family
def resnet_basic():
    def block(a, b, stride):
        short = nn.Identity() if a == b else nn.Sequential(*conv_bn(a, b, 1, stride))
        return Residual(nn.Sequential(*conv_bn(a, b, 3, stride), nn.ReLU(), *conv_bn(b, b, 3)), short)
    return classes(nn.Sequential(*conv_bn(3, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), block(4, 4, 1),
                                 block(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                 nn.Linear(6, 3)), 3, x=image())


@family
def resnet_bottleneck():
    def block(a, b, stride):
        return Residual(nn.Sequential(*conv_bn(a, b, 1), nn.ReLU(), *conv_bn(b, b, 3, stride),
                                      nn.ReLU(), *conv_bn(b, 2 * b, 1)),
                        nn.Sequential(*conv_bn(a, 2 * b, 1, stride)))
    return classes(nn.Sequential(*conv_bn(3, 4, 3), nn.ReLU(), block(4, 4, 1), block(8, 4, 2),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)), 3,
                   x=image())


class Inverted(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.way = nn.Sequential(*conv_bn(a, 2 * a, 1), nn.ReLU6(),
                                 *conv_bn(2 * a, 2 * a, 3, stride, 2 * a), nn.ReLU6(),
                                 *conv_bn(2 * a, b, 1))
        self.same = a == b and stride == 1

    def forward(self, x):
        return x + self.way(x) if self.same else self.way(x)


@family
def mobilenet_v2():
    return classes(nn.Sequential(*conv_bn(3, 4, 3), nn.ReLU6(), Inverted(4, 4, 1), Inverted(4, 6, 2),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.0),
                                 nn.Linear(6, 3)), 3, x=image())


class UNet(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.down, self.low = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2) if mode is None else nn.Conv2d(8, 4, 1)
        self.out, self.mode = nn.Conv2d(8, 3, 3, padding=1), mode

    def forward(self, x):
        skip = F.relu(self.down(x))
        y = F.relu(self.low(F.max_pool2d(skip, 2)))
        if self.mode:
            y = F.interpolate(y, scale_factor=2.0, mode=self.mode)
        return self.out(torch.cat([skip, F.relu(self.up(y))], 1))


def segments(model):
    return Loss(model, F.cross_entropy), {"x": image(), "y": torch.randint(3, (BATCH, 8, 8))}


@family
def unet_transposed():
    return segments(UNet(None))


@family
def unet_nearest():
    return segments(UNet("nearest"))


@family
def unet_bilinear():
    return segments(UNet("bilinear"))


@family
def autoencoder():
    return Loss(nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6), nn.Linear(6, 64),
        nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 1, 3, 2, 1, output_padding=1),
        nn.Sigmoid()), F.mse_loss), {"x": image(1), "y": torch.rand(BATCH, 1, 8, 8)}


class VAE(nn.Module):
    """Its noise is an input, as two programs draw two noises."""

    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(8, 8), nn.Linear(4, 8)

    def forward(self, x, noise, y):
        mean, log_var = self.enc(x).chunk(2, dim=1)
        z = mean + noise * (log_var / 2).exp()
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
        return F.binary_cross_entropy_with_logits(self.dec(z), y) + 0.1 * kl


@family
def vae():
    x = torch.rand(BATCH, 8)
    return VAE(), {"x": x, "noise": torch.randn(BATCH, 4), "y": x.clone()}


# ---- attention ----

class Attention(nn.Module):
    def __init__(self, form, width=8, heads=2, context=5):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.form, self.heads, self.size = form, heads, width // heads
        self.register_buffer("mask", torch.ones(context, context).tril() == 0, persistent=False)

    def forward(self, x, hidden=None):
        t = x.shape[1]
        q, k, v = self.qkv(x).reshape(-1, t, 3, self.heads, self.size).unbind(2)
        if self.form == "einsum":
            score = torch.einsum("bthd,bshd->bhts", q, k) * self.size ** -0.5
            y = torch.einsum("bhts,bshd->bthd", score.softmax(-1), v)
            return self.out(y.reshape(-1, t, self.heads * self.size))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        if self.form == "fused":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            score = q @ k.transpose(-2, -1) / self.size ** 0.5
            if self.form == "causal":
                score = score.masked_fill(self.mask[:t, :t], float("-inf"))
            if hidden is not None:
                score = score.masked_fill(hidden[:, None, None, :], float("-inf"))
            y = score.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(-1, t, self.heads * self.size))


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, form, gelu="none", norm=nn.LayerNorm, width=8):
        super().__init__()
        self.n1, self.n2, self.attention = norm(width), norm(width), Attention(form, width)
        self.up, self.down, self.gelu = nn.Linear(width, 16), nn.Linear(16, width), nn.GELU(gelu)

    def forward(self, x, hidden=None):
        x = x + self.attention(self.n1(x), hidden)
        return x + self.down(self.gelu(self.up(self.n2(x))))


class GPT(nn.Module):
    def __init__(self, form, gelu, norm=nn.LayerNorm, tied=True):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(11, 8), nn.Embedding(5, 8)
        self.blocks = nn.Sequential(Block(form, gelu, norm), Block(form, gelu, norm))
        self.norm, self.head = norm(8), nn.Linear(8, 11, bias=False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, x):
        x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x)))


@family
def gpt_gelu_erf():
    return tokens(GPT("causal", "none"), 11, x=ids(11, 5))


@family
def gpt_gelu_tanh():
    return tokens(GPT("causal", "tanh"), 11, x=ids(11, 5))


@family
def gpt_fused_attention():
    return tokens(GPT("fused", "none", tied=False), 11, x=ids(11, 5))


@family
def gpt_rms_norm():
    return tokens(GPT("causal", "none", RMSNorm), 11, x=ids(11, 5))


@family
def gpt_nn_rms_norm():
    return tokens(GPT("causal", "none", nn.RMSNorm), 11, x=ids(11, 5))


@family
def einsum_attention():
    return tokens(GPT("einsum", "none"), 11, x=ids(11, 5))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place, self.kind = nn.Embedding(11, 8), nn.Embedding(5, 8), nn.Embedding(2, 8)
        self.norm, self.block = nn.LayerNorm(8), Block("masked")
        self.pool, self.out = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x, kind, there):
        at = torch.arange(x.shape[1]).unsqueeze(0)
        x = self.norm(self.word(x) + self.place(at) + self.kind(kind))
        return self.out(torch.tanh(self.pool(self.block(x, there == 0)[:, 0])))


@family
def bert():
    there = (torch.arange(5) < torch.tensor([[5], [3], [4], [1]])).long()
    return classes(Bert(), 2, x=ids(11, 5), kind=ids(2, 5), there=there)


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.block = nn.Conv2d(3, 8, 4, 4), Block("plain")
        self.first = nn.Parameter(torch.randn(1, 1, 8))
        self.place = nn.Parameter(torch.randn(1, 5, 8))
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.out(self.norm(self.block(x))[:, 0])


@family
def vit():
    return classes(ViT(), 3, x=image())


@family
def transformer_encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return target(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), 5, 8,
                  x=torch.randn(BATCH, 5, 8))


# ---- recurrent ----

class Recurrent(nn.Module):
    def __init__(self, kind, layers, both):
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.cells = kind(6, 5, layers, batch_first=True, bidirectional=both)
        self.out = nn.Linear(10 if both else 5, 3)

    def forward(self, x):
        return self.out(self.cells(self.table(x))[0].mean(1))


def recurrent(name, kind, layers, both):
    def make():
        return classes(Recurrent(kind, layers, both), 3, x=ids(11, 7))
    make.__name__ = f"{name}_{layers}" + ("_both_ways" if both else "")
    family(make)


for named, cell in (("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn", nn.RNN)):
    for count, both_ways in ((1, False), (2, False), (1, True), (2, True)):
        recurrent(named, cell, count, both_ways)


# ---- recommendation ----

class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
        self.tables = nn.ModuleList(nn.Embedding(9, 6) for _ in range(3))
        self.top = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense, words):
        x = self.bottom(dense)
        v = torch.stack([x] + [t(words[:, i]) for i, t in enumerate(self.tables)], 1)
        dots = v @ v.transpose(1, 2)
        at = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, dots[:, at[0], at[1]]], 1))


@family
def dlrm():
    return click(DLRM(), dense=torch.randn(BATCH, 4), words=ids(9, 3))


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(27, 1), nn.Embedding(27, 4)
        self.linear, self.deep = nn.Linear(2, 1), nn.Sequential(
            nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense, words):
        words = words + torch.arange(3) * 9
        v = self.second(words)
        pairs = (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1, keepdim=True) / 2
        return (self.linear(dense) + self.first(words).sum(1) + pairs +
                self.deep(torch.cat([v.flatten(1), dense], 1)))


@family
def deepfm():
    return click(DeepFM(), dense=torch.randn(BATCH, 2), words=ids(9, 3))


class WideDeep(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.table = nn.Embedding(9, 1), nn.Embedding(9, 4)
        self.deep = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, dense, words):
        return self.wide(words).sum(1) + self.deep(torch.cat([self.table(words).flatten(1), dense], 1))


@family
def wide_and_deep():
    return click(WideDeep(), dense=torch.randn(BATCH, 2), words=ids(9, 3))


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(7, 4), nn.Embedding(9, 4)
        self.user_bias, self.item_bias = nn.Embedding(7, 1), nn.Embedding(9, 1)
        self.mean = nn.Parameter(torch.tensor(3.5))

    def forward(self, user, item):
        bias = (self.user_bias(user) + self.item_bias(item)).squeeze(-1)
        return (self.user(user) * self.item(item)).sum(-1) + bias + self.mean


@family
def matrix_factorisation():
    return target(Factors(), user=ids(7), item=ids(9))


# ---- normalisation ----

def normed(norm):
    return classes(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), norm, nn.SiLU(), nn.Flatten(),
                                 nn.Linear(256, 3)), 3, x=image())


@family
def batch_norm():
    return normed(nn.BatchNorm2d(4))


@family
def batch_norm_of_features():
    return classes(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Hardswish(),
                                 nn.Linear(5, 3)), 3, x=torch.randn(BATCH, 6))


@family
def group_norm():
    return normed(nn.GroupNorm(2, 4))


@family
def instance_norm():
    return normed(nn.InstanceNorm2d(4, affine=True))


@family
def layer_norm_of_images():
    return normed(nn.LayerNorm([4, 8, 8]))


# ---- exporting, running, comparing ----

def script(module, inputs, path):
    torch.onnx.export(module, tuple(inputs.values()), path, dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=list(inputs), output_names=["loss"],
                      dynamic_axes={name: {0: "batch"} for name in inputs})


def dynamo(module, inputs, path):
    batch = torch.export.Dim("batch", min=2, max=64)
    axes = tuple({0: batch} for _ in inputs)
    if isinstance(module, Loss):
        axes = (axes,)  # its forward takes any number of inputs
    torch.onnx.export(module, tuple(inputs.values()), path, dynamo=True, opset_version=18,
                      optimize=False, external_data=False, input_names=list(inputs),
                      output_names=["loss"], dynamic_shapes=axes, verbose=False)


@contextlib.contextmanager
def silence():
    """Neither Python nor torch's C++ has a word on stdout or stderr."""
    sys.stdout.flush()
    kept = [os.dup(fd) for fd in (1, 2)]
    with open(os.devnull, "w", encoding="utf-8") as nowhere, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        for fd in (1, 2):
            os.dup2(nowhere.fileno(), fd)
        try:
            yield
        finally:
            sys.stdout.flush()
            for fd, was in zip((1, 2), kept):
                os.dup2(was, fd)
                os.close(was)


def exported(exporter, module, inputs, path):
    """None, or why the exporter cannot."""
    try:
        with silence():
            exporter(module, inputs, path)
    except Exception as wrong:  # of an exporter: of any kind
        lines = [line for line in str(wrong).splitlines() if line.strip()] or [""]
        return f"{type(wrong).__name__}: {lines[0][:90]}"
    return None


def autograd(module, inputs):
    """The loss, and {name: gradient}; a tensor with two names has one of them."""
    module.zero_grad()
    loss = module(*inputs.values())
    loss.backward()
    return loss.item(), {name: p.grad.numpy().copy() for name, p in module.named_parameters()}


def weft_grad(weft, folder, path, inputs):
    words = []
    for name, value in inputs.items():
        np.save(os.path.join(folder, f"{name}.npy"), value.numpy())
        words += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run([weft, "grad", path, "--loss", "loss", *words, "--threads", "1",
                           "--output-dir", f"{folder}/grads"], capture_output=True, text=True)
    if done.returncode == UNSUPPORTED:
        raise NotImplementedError(done.stderr.split(": ", 2)[-1].strip())
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.strip()}")
    names = [name[:-4] for name in os.listdir(f"{folder}/grads") if name.endswith(".npy")]
    return {name: np.load(f"{folder}/grads/{name}.npy") for name in names}


def compare(got, loss, want):
    """The worst relative error; a weight that an exporter keeps transposed is turned back."""
    assert np.isclose(got["loss"], loss, rtol=LIMIT), f"the loss is {got['loss']}, not {loss}"
    largest, worst = max(np.abs(g).max() for g in want.values()), 0
    for name, g in want.items():
        if name not in got:
            alias = [k for k in got if k.endswith("head.weight") and name.endswith("wte.weight")]
            assert alias, f"no gradient of {name}; there are {', '.join(sorted(got))}"
            name = alias[0]
        mine = got[name] if got[name].shape == g.shape else got[name].T
        assert mine.shape == g.shape, f"{name} is {mine.shape}, not {g.shape}"
        error = np.abs(mine - g).max() / max(np.abs(g).max(), 1e-2 * largest)
        assert error < LIMIT, f"{name} is off by {error:.1e}"
        worst = max(worst, error)
    return worst


def check(weft, make, exporter):
    """One line that says how it went; whether it is as it should be."""
    torch.manual_seed(7)
    module, inputs = make()
    for part in module.modules():
        if "BatchNorm" in type(part).__name__:
            # Beside a fresh shift of 0 lies many an exact 0, where Clip's slope is a convention.
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.uniform_(part.bias, -0.5, 0.5)
    module.train(exporter is script or not any("BatchNorm" in type(m).__name__
                                               for m in module.modules()))
    state = {name: value.clone() for name, value in module.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        why = exported(exporter, module, inputs, path)
        if why:
            return "no export", why
        module.load_state_dict(state)  # exporting moved the running statistics
        loss, want = autograd(module, inputs)
        try:
            worst = compare(weft_grad(weft, folder, path, inputs), loss, want)
        except NotImplementedError as lacking:
            return "unsupported", str(lacking)
        except AssertionError as wrong:
            return "FAILED", str(wrong)
    return "ok", f"{len(want)} gradients, worst {worst:.1e}"


def main(weft, pattern=""):
    torch.set_num_threads(1)
    exporters = [script]
    if importlib.util.find_spec("onnxscript"):
        exporters.append(dynamo)
    else:
        print("without the dynamo exporter: there is no onnxscript")
    counts = {"ok": 0, "FAILED": 0, "unsupported": 0, "no export": 0}
    for make in FAMILIES:
        for exporter in exporters if pattern in make.__name__ else []:
            result, words = check(weft, make, exporter)
            counts[result] += 1
            print(f"{result:11} {make.__name__}.{exporter.__name__}: {words}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in counts.items()))
    return 1 if counts["FAILED"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

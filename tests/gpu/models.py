# SPDX-License-Identifier: Apache-2.0
"""The networks that are measured on a GPU: each as a job file of weft and as a module of PyTorch.

Both forms have the same layers and the same loss, so the same products. A network has two sizes; the
quick one is for tests on a host without a GPU. PyTorch is imported by network() alone.
"""

# Names as in the functions below, or `of` says which; `batch` and `below` (the limits of an input that
# holds whole numbers) are for both sides. compute: of weft's job; bfloat16 is autocast in PyTorch.
# tables: embeddings lie with the parameter servers, in PyTorch in memory of the host.
SIZES = {
    "mlp": {"batch": 128, "inputs": 784, "hidden": [128], "classes": 10},
    "mlp-wide": {"batch": 1024, "inputs": 1024, "hidden": [4096, 4096, 4096], "classes": 1000},
    "lenet": {"batch": 128, "size": 28, "channels": [32, 64], "hidden": 512},
    "resnet50": {"batch": 64, "size": 224, "width": 64, "blocks": [3, 4, 6, 3], "classes": 1000},
    "resnet50-bf16": {"of": "resnet50", "compute": "bfloat16", "batch": 64, "size": 224, "width": 64, "blocks": [3, 4, 6, 3],
                      "classes": 1000},
    "gpt124m-bf16": {"of": "gpt", "compute": "bfloat16", "batch": 8, "layers": 12, "width": 768, "heads": 12, "context": 1024,
                     "vocabulary": 50257},
    "gpt": {"batch": 16, "layers": 6, "width": 384, "heads": 6, "context": 256, "vocabulary": 65},
    "deepfm": {"batch": 512, "rows": 130000, "fields": 26, "dim": 8, "counts": 13, "hidden": [400, 400, 400]},
    "lstm": {"batch": 64, "words": 10000, "width": 128, "steps": 200},
}
# Trained with parameter servers alone.
WITH_TABLES = {
    "deepfm-tables": {"of": "deepfm", "tables": True, "batch": 512, "rows": 1000000, "fields": 26, "dim": 16, "counts": 13,
                      "hidden": [400, 400, 400]},
}
QUICK = {
    "mlp": {"batch": 8, "inputs": 36, "hidden": [12], "classes": 10},
    "mlp-wide": {"batch": 8, "inputs": 16, "hidden": [32, 32], "classes": 10},
    "lenet": {"batch": 2, "size": 8, "channels": [2, 3], "hidden": 8},
    "resnet50": {"batch": 2, "size": 32, "width": 2, "blocks": [1, 1, 1, 1], "classes": 10},
    "resnet50-bf16": {"of": "resnet50", "compute": "bfloat16", "batch": 2, "size": 32, "width": 4, "blocks": [1, 1, 1, 1], "classes": 10},
    "gpt124m-bf16": {"of": "gpt", "compute": "bfloat16", "batch": 2, "layers": 1, "width": 16, "heads": 2, "context": 6, "vocabulary": 11},
    "deepfm-tables": {"of": "deepfm", "tables": True, "batch": 4, "rows": 60, "fields": 6, "dim": 2, "counts": 3, "hidden": [8]},
    "gpt": {"batch": 2, "layers": 1, "width": 8, "heads": 2, "context": 6, "vocabulary": 11},
    "deepfm": {"batch": 4, "rows": 60, "fields": 6, "dim": 2, "counts": 3, "hidden": [8]},
    "lstm": {"batch": 2, "words": 20, "width": 4, "steps": 5},
}
# Networks in bfloat16 and float16 are compared with the CPU in these sizes: it takes minutes for the large ones, and behind more batch
# normalisations than a few the gradients of a random network follow from its rounding.
COMPARED = {
    "resnet50-bf16": {"of": "resnet50", "compute": "bfloat16", "batch": 16, "size": 32, "width": 8, "blocks": [1], "classes": 10},
    "gpt124m-bf16": {"of": "gpt", "compute": "bfloat16", "batch": 2, "layers": 2, "width": 32, "heads": 2, "context": 24, "vocabulary": 11},
}
COMPARED |= {name.replace("bf16", "f16"): {**size, "compute": "float16"} for name, size in COMPARED.items()}
# How the names of networks and products end that are computed in a narrow type.
ENDINGS = {"-bf16": "bfloat16", "-f16": "float16"}


def compute_of(name):
    """What the name of a network or a product says that it is computed in."""
    return next((compute for end, compute in ENDINGS.items() if name.endswith(end)), "float32")


def product(name):
    """(N, compute) of N, N-bf16 or N-f16."""
    return name.split("-")[0], compute_of(name)


def size_of(name, quick):
    return (QUICK if quick else {**SIZES, **WITH_TABLES})[name]


def flops(name, s):
    """Of a step's products, forward and backward, of a GPT: 6 for each weight that multiplies a token, and 12 for each
    of a layer's width and each token that one attends to, as if none were hidden (Chowdhery and others, "PaLM", 2022,
    appendix B). None for other networks."""
    if s.get("of", name) != "gpt":
        return None
    weights = 12 * s["layers"] * s["width"] ** 2 + s["width"] * s["vocabulary"]
    return s["batch"] * s["context"] * (6 * weights + 12 * s["layers"] * s["width"] * s["context"])


def below(name, s):
    """{input: limit} of the inputs that hold whole numbers, as weft's job names them."""
    name = s.get("of", name)
    return {"gpt": lambda: {"x": s["vocabulary"], "p": s["context"], "y": s["vocabulary"]},
            "deepfm": lambda: {"ids": s["rows"], "y": 2},
            "lstm": lambda: {"x": s["words"], "y": 2},
            "lenet": lambda: {"y": 10}}.get(name, lambda: {"y": s["classes"]})()


# ---- job files ----

class Layers:
    """The layers of a job file, each added by its name and options."""

    def __init__(self):
        self.lines, self.n = [], 0

    def add(self, kind, inputs=None, **options):
        self.n += 1
        name = f"l{self.n}"
        options = {"name": name, **options}
        if inputs:
            options["inputs"] = inputs if isinstance(inputs, str) else f"[{', '.join(inputs)}]"
        words = ", ".join(f"{k}: {str(v).lower() if isinstance(v, bool) else v}"
                          for k, v in options.items())
        self.lines.append(f"    - {kind}: {{{words}}}")
        return name

    def named(self, kind, behind):
        """The names of the layers of a kind, each with what stands behind it."""
        return [f'"l{i + 1}{behind}"' for i, line in enumerate(self.lines) if line.startswith(f"    - {kind}:")]


def mlp_layers(add, s):
    for units in s["hidden"]:
        add("dense", units=units, activation="relu")
    add("dense", units=s["classes"])


def lenet_layers(add, s):
    for filters in s["channels"]:
        add("conv2d", filters=filters, kernel_size=5, padding="same", activation="relu", data_format="channels_first")
        add("max_pooling2d", data_format="channels_first")
    add("flatten")
    add("dense", units=s["hidden"], activation="relu")
    add("dense", units=10)


def resnet50_layers(add, s):
    def conv(inputs, filters, kernel, stride=1):
        add("conv2d", inputs, filters=filters, kernel_size=kernel, strides=stride, padding="same", use_bias=False,
            data_format="channels_first")
        return add("batch_normalization", axis=1)

    conv("x", s["width"], 7, 2)
    add("relu")
    x = add("max_pooling2d", pool_size=3, strides=2, padding="same", data_format="channels_first")
    for stage, n in enumerate(s["blocks"]):
        width = s["width"] << stage
        for block in range(n):
            stride = 2 if stage and not block else 1
            conv(x, width, 1)
            conv(add("relu"), width, 3, stride)
            y = conv(add("relu"), 4 * width, 1)
            short = x if block else conv(x, 4 * width, 1, stride)
            add("add", [y, short])
            x = add("relu")
    add("global_average_pooling2d", data_format="channels_first")
    add("dense", units=s["classes"])


def gpt_layers(add, s):
    width = s["width"]
    token = add("embedding", "x", input_dim=s["vocabulary"], output_dim=width)
    place = add("embedding", "p", input_dim=s["context"], output_dim=width)
    x = add("add", [token, place])
    for _ in range(s["layers"]):
        y = add("layer_normalization", x)
        y = add("multi_head_attention", [y, y], num_heads=s["heads"], key_dim=width // s["heads"], use_causal_mask=True)
        x = add("add", [x, y])
        y = add("layer_normalization", x)
        add("dense", units=4 * width, activation="gelu")
        x = add("add", [x, add("dense", units=width)])
    add("layer_normalization", x)
    add("dense", units=s["vocabulary"], use_bias=False)


def deepfm_layers(add, s):
    vectors = add("embedding", "ids", input_dim=s["rows"], output_dim=s["dim"])
    pairs = add("factorization_machine")
    add("embedding", "ids", input_dim=s["rows"], output_dim=1)
    add("global_average_pooling1d")
    first = add("rescaling", scale=s["fields"])
    linear = add("dense", "counts", units=1)
    add("concatenate", [add("flatten", vectors), "counts"])
    for units in s["hidden"]:
        add("dense", units=units, activation="relu")
    add("add", [linear, first, pairs, add("dense", units=1)])


def lstm_layers(add, s):
    add("embedding", input_dim=s["words"], output_dim=s["width"])
    add("lstm", units=s["width"])
    add("dense", units=1)


def inputs_of(name, s):
    def ids(n):
        return f"{{shape: [{n}], dtype: int64}}"
    return {"lenet": lambda: f"{{x: [1, {s['size']}, {s['size']}]}}",
            "resnet50": lambda: f"{{x: [3, {s['size']}, {s['size']}]}}",
            "gpt": lambda: f"{{x: {ids(s['context'])}, p: {ids(s['context'])}}}",
            "deepfm": lambda: f"{{ids: {ids(s['fields'])}, counts: [{s['counts']}]}}",
            "lstm": lambda: f"{{x: {ids(s['steps'])}}}"}.get(name, lambda: f"{{x: [{s['inputs']}]}}")()


def job(name, s, records=1000, epochs=1, data=None, optimizer="sgd: {learning_rate: 0.1}"):
    """The text of a job file, called as the network."""
    network, layers = s.get("of", name), Layers()
    {"mlp": mlp_layers, "mlp-wide": mlp_layers, "lenet": lenet_layers, "resnet50": resnet50_layers, "gpt": gpt_layers,
     "deepfm": deepfm_layers, "lstm": lstm_layers}[network](layers.add, s)
    loss = "binary_crossentropy" if network in ("deepfm", "lstm") else "sparse_categorical_crossentropy"
    tables = [f"tables: [{', '.join(layers.named('embedding', '/*'))}]"] if s.get("tables") else []
    return "\n".join([f"job: {name}", "model:", f"  input: {inputs_of(network, s)}", "  layers:", *layers.lines,
                      f"loss: {{{loss}: {{from_logits: true}}}}", data or f"data: {{format: synthetic, records: {records}}}",
                      *tables, f"batch: {s['batch']}", f"epochs: {epochs}", f"compute: {s.get('compute', 'float32')}",
                      f"optimizer: {{{optimizer}}}", "seed: 1", ""])


# ---- PyTorch ----

def network(name, s):
    """(module of the loss, its inputs by the names of the job) of PyTorch."""
    name = s.get("of", name)
    import torch
    from torch import nn
    from torch.nn import functional as F

    def dense(sizes, *last):
        return [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())] + list(last)

    def mlp():
        return nn.Sequential(*dense([s["inputs"], *s["hidden"]]), nn.Linear(s["hidden"][-1], s["classes"]))

    def lenet():
        a, b = s["channels"]
        return nn.Sequential(
            nn.Conv2d(1, a, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(a, b, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear((s["size"] // 4) ** 2 * b, s["hidden"]), nn.ReLU(), nn.Linear(s["hidden"], 10))

    def conv(a, b, kernel, stride=1):
        return [nn.Conv2d(a, b, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(b)]

    class Bottleneck(nn.Module):
        def __init__(self, a, width, stride, first):
            super().__init__()
            self.way = nn.Sequential(*conv(a, width, 1), nn.ReLU(), *conv(width, width, 3, stride), nn.ReLU(),
                                     *conv(width, 4 * width, 1))
            self.short = nn.Sequential(*conv(a, 4 * width, 1, stride)) if first else nn.Identity()

        def forward(self, x):
            return F.relu(self.way(x) + self.short(x))

    def resnet50():
        parts, a = [*conv(3, s["width"], 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], s["width"]
        for stage, n in enumerate(s["blocks"]):
            for block in range(n):
                parts.append(Bottleneck(a, s["width"] << stage, 2 if stage and not block else 1, block == 0))
                a = 4 * s["width"] << stage
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(a, s["classes"]))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            width = s["width"]
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, width = x.shape
            q, k, v = (z.view(b, t, s["heads"], -1).transpose(1, 2) for z in self.qkv(self.first(x)).split(width, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.down(F.gelu(self.up(self.second(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(s["vocabulary"], s["width"])
            self.place = nn.Embedding(s["context"], s["width"])
            self.layers = nn.Sequential(*(Layer() for _ in range(s["layers"])))
            self.norm = nn.LayerNorm(s["width"])
            self.head = nn.Linear(s["width"], s["vocabulary"], bias=False)

        def forward(self, x, p):
            return self.head(self.norm(self.layers(self.token(x) + self.place(p))))

    class DeepFM(nn.Module):
        def __init__(self):
            super().__init__()
            self.vectors, self.weights = (nn.Embedding(s["rows"], n, sparse="tables" in s) for n in (s["dim"], 1))
            self.linear = nn.Linear(s["counts"], 1)
            self.deep = nn.Sequential(*dense([s["fields"] * s["dim"] + s["counts"], *s["hidden"]]),
                                      nn.Linear(s["hidden"][-1], 1))

        def forward(self, ids, counts):
            e, w = (rows(ids).to(counts.device, non_blocking=True) for rows in (self.vectors, self.weights))
            total = e.sum(1)
            pairs = 0.5 * (total * total - (e * e).sum(1)).sum(1, keepdim=True)
            return (self.linear(counts) + w.sum(1) + pairs + self.deep(torch.cat([e.flatten(1), counts], 1)))

        def on_host(self):
            """What stays there, and the names of the inputs that do."""
            return ([self.vectors, self.weights], ["ids"]) if "tables" in s else ([], [])

    class LSTM(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(s["words"], s["width"])
            self.lstm = nn.LSTM(s["width"], s["width"], batch_first=True)
            self.out = nn.Linear(s["width"], 1)

        def forward(self, x):
            return self.out(self.lstm(self.words(x))[0][:, -1])

    class Loss(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, y, **inputs):
            z = self.model(*inputs.values())
            if name in ("deepfm", "lstm"):
                return F.binary_cross_entropy_with_logits(z, y)
            return F.cross_entropy(z.flatten(0, -2), y.flatten())

    torch.manual_seed(1)
    n, limits = s["batch"], below(name, s)
    module = {"mlp": mlp, "mlp-wide": mlp, "lenet": lenet, "resnet50": resnet50, "gpt": GPT, "deepfm": DeepFM,
              "lstm": LSTM}[name]()
    inputs = {
        "lenet": lambda: {"x": torch.rand(n, 1, s["size"], s["size"])},
        "resnet50": lambda: {"x": torch.rand(n, 3, s["size"], s["size"])},
        "gpt": lambda: {v: torch.randint(limits[v], (n, s["context"])) for v in ("x", "p")},
        "deepfm": lambda: {"ids": torch.randint(limits["ids"], (n, s["fields"])), "counts": torch.rand(n, s["counts"])},
        "lstm": lambda: {"x": torch.randint(limits["x"], (n, s["steps"]))},
    }.get(name, lambda: {"x": torch.rand(n, s["inputs"])})()
    if name in ("deepfm", "lstm"):
        inputs["y"] = torch.randint(2, (n, 1)).float()
    else:
        inputs["y"] = torch.randint(limits["y"], (n, s["context"]) if name == "gpt" else (n,))
    return Loss(module), inputs

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the models of the jobs beside this file from PyTorch, as ONNX without a loss.

    models.py NAME... [--to DIR]

By the TorchScript exporter with training preserved, opset 17, the batch of any size: names of
parameters stay, Dropout and BatchNormalization stay in the form they have in training. Each name is
that of the job (lenet-mnist: lenet-mnist.yaml); the first values are drawn from seed 1.
"""
import argparse
import os
import warnings

import torch
import torch.nn.functional as F
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class BasicBlock(nn.Module):
    def __init__(self, c_in, c, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(c, c, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(c), nn.BatchNorm2d(c)
        self.down = None
        if stride != 1 or c_in != c:
            self.down = nn.Sequential(nn.Conv2d(c_in, c, 1, stride, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    """He et al. 2015 with the stem for small images, 3x3 without a pool; `width` channels first."""

    def __init__(self, width=64):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        blocks, c = [], width
        for i in range(4):
            for k in range(2):
                blocks.append(BasicBlock(c, width << i, 2 if i and not k else 1))
                c = width << i
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(c, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn(self.conv(x))))
        return self.fc(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("mask", torch.ones(context, context).tril() == 0, persistent=False)

    def forward(self, x):
        _, t, c = x.shape
        q, k, v = (part.reshape(-1, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        score = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5
        score = score.masked_fill(self.mask[:t, :t], float("-inf"))
        return self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(-1, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, context)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    """By characters, with the head tied to the table of letters."""

    def __init__(self, letters=65, context=64, width=96, layers=3, heads=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, context) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        for block in self.blocks:
            for last in (block.attention.out, block.down):
                nn.init.normal_(last.weight, std=0.02 / (2 * layers) ** 0.5)

    def forward(self, x):
        x = self.wte(x) + self.wpe.weight[:x.shape[1]]
        return self.ln(self.blocks(x)) @ self.wte.weight.t()


class LSTM(nn.Module):
    """Starts as Keras's does: rows of words are small, and the cells forget little."""

    def __init__(self, words=10_000, width=32, hidden=32):
        super().__init__()
        self.table, self.lstm = nn.Embedding(words, width), nn.LSTM(width, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)
        nn.init.uniform_(self.table.weight, -0.05, 0.05)
        nn.init.ones_(self.lstm.bias_ih_l0.data[hidden:2 * hidden])

    def forward(self, x):
        return self.fc(self.lstm(self.table(x))[0][:, -1])


class MeanEmbedding(nn.Module):
    """The mean of the rows of the words that are there; 0 pads."""

    def __init__(self, words=10_000, width=16):
        super().__init__()
        self.table, self.fc = nn.Embedding(words, width), nn.Linear(width, 1)
        nn.init.uniform_(self.table.weight, -0.05, 0.05)

    def forward(self, x):
        there = (x != 0).float().unsqueeze(-1)
        return self.fc((self.table(x) * there).sum(1) / there.sum(1).clamp(min=1))


def integers(*shape):
    return torch.zeros(2, *shape, dtype=torch.int64)


# job: (the model, its inputs by name)
MODELS = {
    "gpt-shakespeare": (GPT, {"x": integers(64)}),
    "lenet-mnist": (LeNet, {"x": torch.zeros(2, 1, 28, 28)}),
    "lstm-imdb": (LSTM, {"x": integers(200)}),
    "mean-embedding-imdb": (MeanEmbedding, {"x": integers(200)}),
    "resnet18-cifar": (lambda: ResNet18(16), {"x": torch.zeros(2, 3, 32, 32)}),
}


def build(name):
    torch.manual_seed(1)
    return MODELS[name][0]().train()


def export(name, folder):
    os.makedirs(folder, exist_ok=True)
    path, inputs = os.path.join(folder, f"{name}.onnx"), MODELS[name][1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(build(name), tuple(inputs.values()), path, dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                          input_names=list(inputs), output_names=["out"],
                          dynamic_axes={i: {0: "batch"} for i in [*inputs, "out"]})
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="+", choices=sorted(MODELS))
    parser.add_argument("--to", default=os.path.join(HERE, "..", "data", "models"))
    args = parser.parse_args()
    for name in args.name:
        print(export(name, args.to))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of a step between workers and ps, counted by the kernel, beside the model of docs/scale.md.

    bench/traffic.py --build FOLDER

Runs clusters of one to eight tasks over tcp (no shared memory) in a network namespace of its own, whose
loopback device counts what passes. The bytes of a step are the difference between a long and a short
job, so that starts, ends and signs of life do not count. Needs Linux with user namespaces, or root.
"""
import argparse
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORDS, BATCH, IDS, ROWS, WIDTH = 16384, 256, 8, 20000, 16
HIDDEN = 512
PACKET = 66  # bytes of Ethernet, IP and TCP with time stamps in each packet
HEADER, PART, TABLE = 64, 32, 8  # common/wire/header.h, common/wire/parts.h
CLUSTERS = [(1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4), (1, 7)]

JOB = """job: NAME
model:
  input: {ids: {shape: [8], dtype: int64}}
  layers:
    - embedding: {name: rows, input_dim: 20000, output_dim: 16}
    - flatten
    - dense: {units: 512, activation: relu}
    - dense: {units: 512, activation: relu}
    - dense: {units: 1}
loss: mse
data: {format: npy, train: {ids: ids.npy, y: y.npy}, split_records: 1024}
TABLES
batch: 256
epochs: EPOCHS
optimizer: {sgd: {learning_rate: 0.001}}
checkpoint: {every_steps: 100000000}
seed: 1
"""


def in_namespace():
    """Comes back in a process that has a network of its own."""
    if not os.environ.get("WEFT_TRAFFIC_NETNS"):
        os.environ["WEFT_TRAFFIC_NETNS"] = "1"
        os.execvp("unshare", ["unshare", "-rn", sys.executable, *sys.argv])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16xh14x", fcntl.ioctl(s, 0x8913, request))[0]  # SIOCGIFFLAGS
        fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", flags | 1))  # SIOCSIFFLAGS, IFF_UP


def passed():
    """Bytes that TCP has carried over the loopback device."""
    line = next(l for l in open("/proc/net/dev") if l.strip().startswith("lo:"))
    numbers = line.split(":")[1].split()
    return int(numbers[0]) - PACKET * int(numbers[1])


class Cluster:
    def __init__(self, build, ps, workers):
        self.weft = str(pathlib.Path(build).resolve() / "cmd/weft")
        self.folder = tempfile.TemporaryDirectory()
        port = iter(range(7800, 7900))
        lines = ["cluster: bench", "shared_memory: off", "master: {address: tcp://127.0.0.1:%d}" % next(port)]
        for role, n in (("ps", ps), ("workers", workers)):
            lines += [role + ":"] + ["  - {address: tcp://127.0.0.1:%d, threads: 1}" % next(port)
                                     for _ in range(n)]
        pathlib.Path(self.folder.name, "cluster.yaml").write_text("\n".join(lines + ["state_dir: .weft"]) + "\n")
        rng = np.random.default_rng(1)
        np.save(self.folder.name + "/ids.npy", rng.integers(0, ROWS, (RECORDS, IDS)))
        np.save(self.folder.name + "/y.npy", rng.normal(size=(RECORDS, 1)).astype(np.float32))

    def run(self, *words):
        return subprocess.run([self.weft, *words], cwd=self.folder.name, check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def __enter__(self):
        self.run("up")
        return self

    def __exit__(self, *_):
        self.run("down")
        self.folder.cleanup()

    def train(self, name, tables, epochs):
        """Bytes that passed during a job, and its steps."""
        text = JOB.replace("NAME", name).replace("EPOCHS", str(epochs))
        pathlib.Path(self.folder.name, name + ".yaml").write_text(
            text.replace("TABLES", "tables: [rows/*]" if tables else ""))
        before = passed()
        self.run("train", name + ".yaml")
        jobs = json.loads(self.run("status", "--json"))["jobs"]
        return passed() - before, next(j["step"] for j in jobs if j["job"] == name)

    def bytes_of_a_step(self, tables):
        kind = "table" if tables else "dense"
        short, steps = self.train(kind + "-short", tables, 2)
        long, more = self.train(kind + "-long", tables, 22)
        return (long - short) / (more - steps)


def rows_of_a_batch():
    """Distinct ids among so many uniform draws."""
    return ROWS * (1 - (1 - 1 / ROWS) ** (BATCH * IDS))


def model(ps, tables):
    """Bytes of a step: weights and gradients, and for each ps a pull, weights, a push and its
    acknowledgement, with an entry for each slice (4 MiB at most: one for each variable here)."""
    dense = IDS * WIDTH * HIDDEN + HIDDEN + HIDDEN * HIDDEN + HIDDEN + HIDDEN + 1
    values = 2 * 4 * dense
    entries = 6
    if tables:
        values += 2 * rows_of_a_batch() * (8 + 4 * WIDTH)
        entries += 2  # ids of the pull and of the push
    else:
        values += 2 * 4 * ROWS * WIDTH
    messages = 4 * ps
    return values + messages * HEADER + 2 * PART * (6 + 1) + 3 * TABLE * ps + 12 * ps + 4 * 7 + PART * entries


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=str(ROOT / "build"))
    args = p.parse_args()
    in_namespace()
    print("| ps | workers | variables | KB a step, counted | by the model | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for ps, workers in CLUSTERS:
        with Cluster(args.build, ps, workers) as c:
            for tables in (False, True):
                counted, said = c.bytes_of_a_step(tables), model(ps, tables)
                print(f"| {ps} | {workers} | {'rows by id' if tables else 'dense'} | {counted / 1000:.1f} | "
                      f"{said / 1000:.1f} | {counted / said:.3f} |", flush=True)


main()

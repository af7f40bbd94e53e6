# SPDX-License-Identifier: Apache-2.0
"""The files of a cluster that never ran: job small, and checkpoints of it that CKPT_TOOL has made."""
import os
import re
import subprocess

CLUSTER = """master: {address: ipc://run/m}
ps: [{address: ipc://run/p}]
workers: [{address: ipc://run/w}]
state_dir: state
checkpoint_dir: ckpt
"""
JOB = """job: small
model:
  input: {x: [6]}
  layers:
    - dense: {units: 4}
loss: mse
data: {format: npy, train: {x: x.npy, y: y.npy}}
batch: 2
optimizer: adam
"""


def write_zeros(path, rows, columns):
    """An npy file of float32, without numpy (NEP 1)."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns})}}".ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() +
                bytes(4 * rows * columns))


def write(folder):
    for name, text in (("cluster.yaml", CLUSTER), ("job.yaml", JOB)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    write_zeros(os.path.join(folder, "x.npy"), 8, 6)
    write_zeros(os.path.join(folder, "y.npy"), 8, 4)


def make_checkpoints(tool, folder, shown, *steps):
    """`shown`: what `weft graph job.yaml` prints, which names the graph's digest."""
    digest = re.search(r"graph ([0-9a-f]{16})", shown).group(1)
    for step in steps:
        subprocess.run([tool, "make", os.path.join(folder, "ckpt"), "small", digest, str(step)],
                       check=True)

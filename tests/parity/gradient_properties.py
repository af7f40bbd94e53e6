# SPDX-License-Identifier: Apache-2.0
"""The gradient of each operation over cases drawn from a seed, in float64 and by weft's kernels.

    gradient_properties.py GRADIENT_TOOL [--seeds N] [--first SEED] [--op NAME] [--keep FOLDER]
    gradient_properties.py GRADIENT_TOOL [--seeds N] --only-write FOLDER

Cases are drawn in gradient_cases/. An operation of the registry that has a gradient and no generator
there is a failure. A case that fails prints the command that repeats it. onnx_gradients.py holds the
same gradient graphs against onnx's evaluator; here it is shapes, axes, broadcasts and attributes that
nobody thought of. --only-write leaves the models in a folder, for a machine without onnx.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
    import onnx
except ImportError as missing:
    print(f"skipped: {missing}; set WEFT_PYTHON to an interpreter that has it")
    sys.exit(77)

from gradient_cases import GENERATORS  # noqa: E402
from gradient_cases.case import Luck  # noqa: E402

SEEDS = 20  # cases of each operation when nothing else is said
CHUNK = 100  # models to one run of the tool


def draw(op, seed):
    rng = Luck(np.random.default_rng([seed, zlib.crc32(op.encode())]))
    case = GENERATORS[op](rng)
    return case.model(symbolic=rng.chance(0.3))


def run(tool, paths):
    """{path: what is wrong} of those that fail; a crash is the fault of the first without a line."""
    done = subprocess.run([tool, "check", *paths], capture_output=True, text=True, check=False)
    failed, seen, worst = {}, set(), 0.0
    for line in done.stdout.splitlines():
        if line.startswith("ok "):
            _, error, path = line.split(" ", 2)
            worst = max(worst, float(error))
        else:
            path, why = line[5:].split(": ", 1)
            failed[path] = why
        seen.add(path)
    left = [p for p in paths if p not in seen]
    if left:
        failed[left[0]] = f"the tool ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
        more, more_worst = run(tool, left[1:]) if left[1:] else ({}, 0.0)
        failed.update(more)
        worst = max(worst, more_worst)
    return failed, worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--op")
    parser.add_argument("--keep")
    parser.add_argument("--only-write")
    args = parser.parse_args()
    rows = subprocess.run([args.tool, "ops"], capture_output=True, text=True, check=True).stdout
    registered = {line.split()[1] for line in rows.splitlines()}
    bad = 0
    for op in sorted(registered - set(GENERATORS)):
        bad += 1
        print(f"FAILED  {op}: has a gradient, and no generator in gradient_cases/")
    ops = [args.op] if args.op else sorted(registered & set(GENERATORS))
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.only_write or args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        names = {}
        for op in ops:
            for seed in range(args.first, args.first + args.seeds):
                path = os.path.join(folder, f"{op}-{seed}.onnx")
                onnx.save(draw(op, seed), path)
                names[path] = (op, seed)
        if args.only_write:
            return 0
        paths, worst = list(names), 0.0
        for i in range(0, len(paths), CHUNK):
            failed, error = run(args.tool, paths[i:i + CHUNK])
            worst = max(worst, error)
            for path, why in failed.items():
                op, seed = names[path]
                bad += 1
                print(f"FAILED  {op}: {why}\n        repeat: {sys.executable} {sys.argv[0]} "
                      f"{args.tool} --op {op} --first {seed} --seeds 1 --keep .")
    print(f"{len(paths) - bad} of {len(paths)} cases of {len(ops)} operations, largest error {worst:.2g}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings real mistakes back, one at a time, and sees whether the simulator finds them.

    tests/sim/museum.py [--seeds N] [NAME ...]

Each tests/sim/museum/NAME.patch is applied to a copy of the sources as git knows them, the simulator
is built there and runs N seeds (2000); the first that fails is printed. Exits with 1 when a mistake
goes unnoticed. What this measures is the simulator, so it is run by hand when that has changed.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "tests/sim/museum"


def copy_sources(to):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True,
                           text=True).stdout.split("\0")
    for name in filter(None, names):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def build(folder):
    """None, or what the compiler said."""
    done = run(["ninja", "-C", "build", "tests/sim/sim_seeds"], folder)
    return None if done.returncode == 0 else done.stdout[-2000:]


def patched(folder, patch, back):
    command = ["patch", "-p1", "--silent"] + (["-R"] if back else []) + ["-i", str(patch)]
    done = run(command, folder)
    if done.returncode != 0:
        sys.exit(f"{patch.name} does not apply any more: mend it\n{done.stdout}{done.stderr}")


def exhibit(folder, patch, seeds):
    """One line about what became of a mistake, and whether it was caught."""
    patched(folder, patch, back=False)
    try:
        said = build(folder)
        if said:
            return f"does not build:\n{said}", False
        done = run(["build/tests/sim/sim_seeds", "1", str(seeds)], folder)
        caught = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
        if caught:
            return caught[0], True
        if done.returncode != 0:
            return f"ended with {done.returncode}", True
        return f"not found in {seeds} seeds", False
    finally:
        patched(folder, patch, back=True)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--seeds", type=int, default=2000)
    args.add_argument("names", nargs="*", metavar="NAME")
    args = args.parse_args()
    patches = sorted(MUSEUM.glob("*.patch"))
    if args.names:
        patches = [MUSEUM / f"{name}.patch" for name in args.names]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="weft-museum-") as temporary:
        folder = pathlib.Path(temporary)
        copy_sources(folder)
        done = run(["meson", "setup", "build", "-Dwerror=false"], folder)
        if done.returncode != 0:
            sys.exit(done.stdout[-2000:])
        for patch in patches:
            line, caught = exhibit(folder, patch, args.seeds)
            print(f"{'caught' if caught else 'MISSED':7}{patch.stem}: {line}", flush=True)
            missed += not caught
    print(f"{len(patches)} mistakes, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

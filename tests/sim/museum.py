#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings real mistakes back, one at a time, and requires that a test finds each of them.

    tests/sim/museum.py [--build FOLDER] [--seeds N] [--apply] [NAME ...]

Each tests/sim/museum/NAME.patch is applied to a copy of the sources. Only what it touches is compiled
again, with the commands of an existing build, and linked in front of that build's libraries. Then the
simulator runs until the first seed that fails, N seeds (2000) at most. A patch whose head has a line
"Found by: tests/unit/unit_NAME" is for that test instead; "Histories: KIND" is for those of a kind of seeds.c; "First
seed: N" only saves time. Exits with 1 when a mistake goes unnoticed, and with 77 where something needed is missing.
With --apply, patches are tried on the sources as they are and nothing is built: a second tells which to write anew.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "tests/sim/museum"
ROOMS = ["common", "master", "ps", "supervisor", "worker", "tests/kit", "tests/sim", "tests/unit"]


def run(command, folder, **more):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)


def copy_sources(to):
    for room in ROOMS:
        shutil.copytree(ROOT / room, to / room, ignore=shutil.ignore_patterns("*.patch", "*.onnx"))


class Build:
    """What is known of an existing build: how each object is made, and of what."""

    def __init__(self, folder):
        self.folder = folder.resolve()
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.commands = {c["output"]: shlex.split(c["command"]) for c in commands}
        self.source = {c["output"]: self.resolve(c["file"]) for c in commands}
        self.users = {}
        output = None
        for line in run(["ninja", "-t", "deps"], self.folder, check=True).stdout.splitlines():
            if line and not line[0].isspace():
                output = line.split(":")[0]
            elif line.strip() and output in self.source:
                self.users.setdefault(self.resolve(line.strip()), set()).add(output)

    def resolve(self, name):
        return pathlib.Path(os.path.normpath(self.folder / name))

    def objects_of(self, target):
        """Objects that go into a target, and the command that links it."""
        done = run(["ninja", "-t", "commands", target], self.folder, check=True)
        lines = done.stdout.splitlines()
        return {o for o in self.source for line in lines if f" -o {o} " in line}, lines[-1]

    def stale(self, files, target):
        """Objects of the target that a change of these sources concerns."""
        objects, _ = self.objects_of(target)
        return sorted(o for o in objects
                      if any(self.source[o] == f or o in self.users.get(f, ()) for f in files))

    def compile_elsewhere(self, output, sources, to):
        """The command of an object, for a copy of the sources, without what names other outputs."""
        words, result, skip = self.commands[output], [], 0
        for word in words:
            if skip:
                skip -= 1
                continue
            if word in ("-MQ", "-MF", "-o"):
                skip = 1
                continue
            if word == "-MD":
                continue
            prefix, path = ("-I", word[2:]) if word.startswith("-I") else ("", word)
            there = self.resolve(path)
            mapped = there
            if there.is_relative_to(ROOT) and not there.is_relative_to(self.folder):
                mapped = sources / there.relative_to(ROOT)
            if prefix:
                result.append(prefix + str(mapped))
            elif there.suffix in (".c",) and there.exists():
                result.append(str(mapped))
            else:
                result.append(word)
        return result + ["-Wno-error", "-o", str(to)]


def head_line(patch, name):
    found = re.search(rf"^{name}: *(\S+)$", patch.read_text(), re.MULTILINE)
    return found.group(1) if found else None


def patched_build(build, sources, patch, target, folder):
    """Builds the target with the patch; the program, or None and what was said."""
    done = run(["patch", "-p1", "--silent", "-i", str(patch)], sources)
    if done.returncode != 0:
        return None, f"does not apply any more: {done.stdout}{done.stderr}"
    files = {ROOT / n for n in re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)}
    stale = build.stale(files, target)
    new = []
    for i, output in enumerate(stale):
        new.append(folder / f"{i}.o")
        done = run(build.compile_elsewhere(output, sources, new[-1]), build.folder)
        if done.returncode != 0:
            return None, f"does not build:\n{done.stderr[-1500:]}"
    program = folder / "program"
    _, link = build.objects_of(target)
    words = shlex.split(link)
    at = words.index("-o")
    words[at + 1] = str(program)
    words = [w for w in words if w not in stale]
    done = run(words[:at] + [str(n) for n in new] + words[at:], build.folder)
    return (program, "") if done.returncode == 0 else (None, f"does not link:\n{done.stderr[-1500:]}")


def run_seeds(program, first, count, histories):
    done = run([str(program), str(first), str(count), *histories, "-1"], program.parent)
    caught = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if caught:
        return caught[0]
    return f"ended with {done.returncode}" if done.returncode != 0 else ""


def exhibit(build, pristine, patch, seeds):
    """Whether a mistake is found, and a line about it."""
    target = head_line(patch, "Found by") or "tests/sim/sim_seeds"
    first = int(head_line(patch, "First seed") or 1)
    histories = [head_line(patch, "Histories")] if head_line(patch, "Histories") else []
    with tempfile.TemporaryDirectory(prefix="weft-museum-") as temporary:
        folder = pathlib.Path(temporary)
        shutil.copytree(pristine, folder / "src", copy_function=os.link)  # patch(1) replaces files
        program, said = patched_build(build, folder / "src", patch, target, folder)
        if not program:
            return False, said
        if target != "tests/sim/sim_seeds":
            done = run([str(program)], ROOT)
            return done.returncode != 0, f"{target} ended with {done.returncode}"
        line = run_seeds(program, first, 1, histories) if first > 1 else ""
        line = line or run_seeds(program, 1, seeds, histories)
    return bool(line), line or f"not found in {seeds} seeds"


def not_applying(patch):
    """What patch(1) says of a mistake that the sources have no place for any more, or nothing."""
    done = run(["patch", "-p1", "--silent", "--dry-run", "-i", str(patch)], ROOT)
    return done.stdout + done.stderr if done.returncode != 0 else ""


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args.add_argument("--seeds", type=int, default=2000)
    args.add_argument("--apply", action="store_true")
    args.add_argument("names", nargs="*", metavar="NAME")
    args = args.parse_args()
    for needed in ("ninja", "patch"):
        if not shutil.which(needed):
            print(f"skipped: {needed} is missing")
            return 77
    patches = [MUSEUM / f"{name}.patch" for name in args.names] or sorted(MUSEUM.glob("*.patch"))
    if args.apply:
        said = [f"{p.stem}: {text}" for p in patches if (text := not_applying(p))]
        print("\n".join(said) or f"{len(patches)} mistakes, and each has its place")
        return 1 if said else 0
    targets = {head_line(p, "Found by") or "tests/sim/sim_seeds" for p in patches}
    done = run(["ninja", *sorted(targets)], args.build)
    if done.returncode != 0:
        sys.exit(f"the build without a mistake fails:\n{done.stdout[-2000:]}")
    build, missed = Build(args.build), 0
    with tempfile.TemporaryDirectory(prefix="weft-museum-") as temporary, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pristine = pathlib.Path(temporary)
        copy_sources(pristine)
        found = pool.map(lambda p: exhibit(build, pristine, p, args.seeds), patches)
        for patch, (caught, line) in zip(patches, found):
            print(f"{'caught' if caught else 'MISSED':7}{patch.stem}: {line}", flush=True)
            missed += not caught
    print(f"{len(patches)} mistakes, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

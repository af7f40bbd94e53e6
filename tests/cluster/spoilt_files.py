# SPDX-License-Identifier: Apache-2.0
"""Files on disk that are not what they should be: pipes, renamed folders, cut and flipped bytes.

    spoilt_files.py WEFT CKPT_TOOL [TEST...]

No command waits for a pipe, no checkpoint passes under a number that is not its own, and each
sentence says which file, at which byte, and what to do.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import unrun
from weftlib import SLOWER, Cluster, check, main, needs, one_sentence

CKPT_TOOL = os.path.abspath(sys.argv.pop(2))


class Folder:
    """A cluster's folder with checkpoints 100, 200 and 300 of the job small, for the `with`."""

    def __init__(self, weft):
        self.weft = os.path.abspath(weft)

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="weft-")
        unrun.write(self.path)
        unrun.make_checkpoints(CKPT_TOOL, self.path, self.run("graph", "job.yaml")[1], 100, 200, 300)
        return self

    def __exit__(self, *rest):
        shutil.rmtree(self.path)

    def at(self, *parts):
        return os.path.join(self.path, *parts)

    def step(self, step, *parts):
        return self.at("ckpt", "small", f"step-{step:08d}", *parts)

    def run(self, *words):
        """(exit code, all that was printed); a command that waits fails the test."""
        try:
            done = subprocess.run([self.weft, *words], cwd=self.path, capture_output=True,
                                  text=True, timeout=10 * SLOWER, check=False)
        except subprocess.TimeoutExpired as waits:
            raise AssertionError(f"weft {' '.join(words)} does not end") from waits
        check("free some memory" not in done.stderr, done.stderr)
        return done.returncode, done.stdout + done.stderr

    def says(self, *words, code, text):
        got, said = self.run(*words)
        check(got == code, f"{words}: exit {got}, wanted {code}: {said}")
        check(re.search(text, said), f"{words}: {text!r} expected in: {said}")
        return said


def pipe_instead_of(path):
    if os.path.exists(path):
        os.unlink(path)
    os.mkfifo(path)


def nobody_waits_for_a_pipe(weft):
    for name in ("manifest.json", "shard-00000-of-00002.safetensors"):
        with Folder(weft) as f:
            pipe_instead_of(f.step(300, name))
            f.says("ckpt", "verify", "small", code=1, text=f"bad  step-00000300: .*{name} is a pipe")
            f.says("ckpt", "ls", "small", code=0, text=f"step-00000300 .*{name} is a pipe")
            f.says("ckpt", "show", "small", code=0, text="step-00000300 passed over: .*is a pipe")
            f.says("export", "job.yaml", "-o", "m.onnx", code=0, text="step-00000200")
    with Folder(weft) as f:
        for name in ("latest", "best", "initial.safetensors"):
            pipe_instead_of(f.at("ckpt", "small", name))
        f.says("ckpt", "verify", "small", code=1, text=r"bad  \S*initial.safetensors is a pipe")
        f.says("export", "job.yaml", "-o", "m.onnx", "--from", "best", code=1, text="is a pipe")
        f.says("export", "job.yaml", "-o", "m.onnx", code=0, text="step-00000300")
        for name in ("p.onnx", "p.npy", "p.yaml", "p.npy.gz"):
            pipe_instead_of(f.at(name))
        f.says("graph", "p.onnx", code=1, text="p.onnx is a pipe")
        f.says("graph", "p.yaml", code=1, text="p.yaml is a pipe")
        f.says("run", "m.onnx", "--input", "x=p.npy", "-o", "out", code=1, text="p.npy is a pipe")
        f.says("data", "peek", "p.npy.gz", code=1, text="p.npy.gz is a pipe")
        f.says("status", "--cluster", "p.yaml", code=1, text="p.yaml is a pipe")


def a_step_under_another_number_is_refused(weft):
    with Folder(weft) as f:
        os.rename(f.step(100), f.step(999))
        os.rename(f.step(200), f.step(100))
        os.rename(f.step(999), f.step(200))
        shutil.copytree(f.step(300), f.step(400))
        said = f.says("ckpt", "verify", "small", code=1, text="3 of 4")
        for folder, inside in ((100, 200), (200, 100), (400, 300)):
            check(re.search(f"bad  step-{folder:08d}: its manifest is of step {inside}, not {folder}"
                            f".*call it step-{inside:08d} again", said), said)
        check("ok   step-00000300" in said, said)
        listed = f.says("ckpt", "ls", "small", code=0, text="step-00000400 .*is of step 300, not 400")
        check(len(re.findall("newest$", listed, re.M)) == 1, listed)
        f.says("ckpt", "verify", "small", "400", code=1, text="bad  step-00000400")
        f.says("ckpt", "show", "small", "100", code=1, text="its manifest is of step 200, not 100")
        f.says("export", "job.yaml", "-o", "m.onnx", code=0,
               text="step-00000400 passed over: its manifest is of step 300, not 400")
        f.says("export", "job.yaml", "-o", "m.onnx", "--from", "100", code=1, text="of step 200")
        for folder in (100, 200, 400):
            check(os.path.isdir(f.step(folder)), f"step {folder} is gone")


def each_folder_is_verified_for_itself(weft):
    """A crash may leave a folder with its temporary name beside one of the same step."""
    with Folder(weft) as f:
        name = ".tmp-g1-c1-0000000000000abc"
        shutil.copytree(f.step(300), f.at("ckpt", "small", name))
        shard = f.at("ckpt", "small", name, "shard-00001-of-00002.safetensors")
        with open(shard, "rb") as file:
            data = file.read()
        with open(shard, "wb") as file:
            file.write(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
        said = f.says("ckpt", "verify", "small", code=1, text="ok   step-00000300")
        check(f"bad  {name}: shard-00001-of-00002.safetensors: checksum differs" in said, said)


def damage_is_described(weft):
    """What is done to which file, what is said, and that it says what to do."""
    def cut(n):
        return lambda data: data[:n]

    def flip(at, bit=1):
        return lambda data: data[:at] + bytes([data[at] ^ bit]) + data[at + 1:]

    def header(text):
        return lambda data: struct.pack("<Q", len(text)) + text + data[8 + len(text):]

    shard, manifest = "shard-00001-of-00002.safetensors", "manifest.json"
    rows = [
        (manifest, cut(10), r"manifest.json: cut short: 10 bytes are there"),
        (manifest, cut(700), r"manifest.json: cut short: 700 bytes are there, .*last line"),
        (manifest, flip(200), r"manifest.json: checksum differs: one of its \d+ bytes changed"),
        (shard, cut(100), r"shard-00001\S*: cut short: 100 of \d+ bytes are there"),
        (shard, flip(-5), r"shard-00001\S*: checksum differs"),
    ]
    with Folder(weft) as f:
        for name, spoil, says in rows:
            path = f.step(300, name)
            with open(path, "rb") as file:
                good = file.read()
            with open(path, "wb") as file:
                file.write(spoil(good))
            said = f.says("ckpt", "verify", "small", "300", code=1, text="bad  step-00000300: " + says)
            check("use an older checkpoint" in said, said)
            with open(path, "wb") as file:
                file.write(good)
        shutil.copy(f.step(300, shard), f.at("w.safetensors"))
        with open(f.at("w.safetensors"), "rb") as file:
            good = file.read()
        job = unrun.JOB + "weights: w.safetensors\n"
        with open(f.at("w.yaml"), "w", encoding="utf-8") as file:
            file.write(job)
        for spoil, says in [
                (cut(5), "cut short: 5 bytes are there"),
                (cut(60), "60 bytes are there, and its header alone takes"),
                (flip(3, 128), "damaged in its first 8 bytes"),
                (cut(-7), r"cut short: \d+ of \d+ bytes are there"),
                (header(b'{"a": [1, 2'), "unfinished at byte 19"),
                (header(b'{"a": [1 2]}'), r"damaged at byte \d+: not JSON"),
        ]:
            with open(f.at("w.safetensors"), "wb") as file:
                file.write(spoil(good))
            said = f.says("graph", "w.yaml", code=1, text=r"w\.safetensors: .*" + says)
            check("fetch or copy the file again" in said, said)


def models_that_are_cut_say_so(weft):
    with Folder(weft) as f:
        f.says("export", "job.yaml", "-o", "m.onnx", code=0, text="m.onnx")
        with open(f.at("m.onnx"), "rb") as file:
            good = file.read()
        for spoilt, says in [
                (good[:len(good) // 2], rf"cut short or damaged: {len(good) // 2} bytes are there"),
                (good[:-1], "cut short"),
                (b"<html>", "damaged"),
                (b"version https://git-lfs", "damaged|cut short")]:
            with open(f.at("c.onnx"), "wb") as file:
                file.write(spoilt)
            _, said = f.run("graph", "c.onnx")
            check(re.search("c.onnx: not an ONNX model: .*(" + says + ").*export or copy the model",
                            one_sentence(said)), said)


def first_values_are_verified(weft):
    needs("numpy")
    import small
    with Cluster(weft) as c:
        small.write_job(c)
        c.must("up")
        c.must("train", "small.yaml")
        c.must("down")
        result = c.must("ckpt", "verify", "small")
        check("ok   initial.safetensors  the initial values" in result.out, str(result))
        path = c.saved("small", "initial.safetensors")
        with open(path, "r+b") as f:
            f.seek(-9, os.SEEK_END)
            byte = f.read(1)[0]
            f.seek(-9, os.SEEK_END)
            f.write(bytes([byte ^ 1]))
        result = c.must("ckpt", "verify", "small", code=1)
        check("bad  initial.safetensors: checksum differs" in result.out, str(result))


if __name__ == "__main__":
    main([nobody_waits_for_a_pipe, a_step_under_another_number_is_refused,
          each_folder_is_verified_for_itself, damage_is_described, models_that_are_cut_say_so,
          first_values_are_verified])

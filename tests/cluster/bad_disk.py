# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are spoilt, of another model, or for which there is no room.

    bad_disk.py WEFT [TEST...]
"""
import os
import re

from weftlib import Cluster, check, main, needs, one_sentence, skip, until

needs("numpy")
import small  # noqa: E402
from small_disk import SmallDisk  # noqa: E402


def stopped_job(c, least):
    """A job stopped in the middle, with so many checkpoints at least; the cluster is down."""
    small.write_job(c, epochs=60, every_steps=200)
    c.must("up")
    c.must("submit", "small.yaml")
    until(lambda: len(c.checkpoints("small")) >= least, f"{least} checkpoints")
    c.must("stop", "small")
    c.must("down")
    names = c.checkpoints("small")
    check(len(names) >= least, str(names))
    return names


def flip(path):
    with open(path, "r+b") as f:
        f.seek(-3, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-3, os.SEEK_END)
        f.write(bytes([byte ^ 16]))


def a_spoilt_checkpoint_is_passed_over(weft):
    with Cluster(weft) as c:
        oldest, middle, newest = stopped_job(c, 3)[-3:]
        flip(c.saved("small", newest, "shard-00000-of-00002.safetensors"))
        os.unlink(c.saved("small", middle, "shard-00001-of-00002.safetensors"))
        result = c.must("recover", "small")
        check(re.search(rf"{newest} passed over: shard-00000-of-00002.safetensors: checksum differs",
                        result.err), str(result))
        check(re.search(rf"{middle} passed over: shard-00001-of-00002.safetensors", result.err),
              str(result))
        step = int(oldest.split("-")[1])
        check(f"generation 2 begins from step {step}" in result.err, str(result))
        check(result.out.startswith("done:"), str(result))


def with_all_spoilt_nothing_begins_anew(weft):
    with Cluster(weft) as c:
        for name in stopped_job(c, 1):
            flip(c.saved("small", name, "manifest.json"))
        before = c.checkpoints("small")
        result = c.must("recover", "small", code=1)
        check(re.search(rf"no checkpoint of job small#1 in \S+ verifies; the newest: {before[-1]} "
                        "passed over: manifest.json: .*weft ckpt verify small", result.err),
              str(result))
        check(c.checkpoints("small") == before, "checkpoints changed")


def a_checkpoint_of_another_model_is_refused(weft):
    with Cluster(weft) as c:
        before = stopped_job(c, 1)
        small.write_job(c, epochs=60, every_steps=200, change=[("units: 32", "units: 24")])
        result = c.must("train", "small.yaml", "--resume", code=1)
        sentence = result.err.strip().split("\n")[-1]
        check('small#1 was trained with another model: the variable "dense/kernel" was float32[' in
              sentence and sentence.endswith("train a new run without --resume"), sentence)
        check(c.checkpoints("small") == before, "checkpoints changed")
        small.write_job(c, epochs=60, every_steps=200)
        c.must("train", "small.yaml", "--resume")


def a_full_disk_fails_checkpoints_and_not_training(weft):
    with Cluster(weft) as c, SmallDisk(c.path("checkpoints")) as disk:
        if not disk.mounted:
            skip("only root may mount a small file system")
        small.write_job(c, epochs=100000, every_steps=500)
        c.must("up")
        c.must("submit", "small.yaml")
        c.until_job("small", lambda j: j["checkpoints"] > 0, "has a checkpoint")
        disk.fill()
        job = c.until_job("small", lambda j: j["failed_checkpoints"] >= 2, "fails checkpoints")
        safe = c.checkpoints("small")
        c.until_job("small", lambda j: j["step"] > job["step"] + 1000 and j["state"] == "running",
                    "trains on")
        check(safe and c.checkpoints("small") == safe, f"{safe} became {c.checkpoints('small')}")
        c.must("ckpt", "verify", "small")
        said = [line for line in c.job("small")["events"] if line.startswith("ckpt.failed")]
        check(said and re.search(r"checkpoints/small#1.*No space left on device.*free", said[-1]),
              str(said))
        disk.empty()
        saved = c.job("small")["checkpoints"]
        c.until_job("small", lambda j: j["checkpoints"] > saved, "saves checkpoints again")
        c.must("stop", "small")
        c.must("ckpt", "verify", "small")
        c.must("down")


main([a_spoilt_checkpoint_is_passed_over, with_all_spoilt_nothing_begins_anew,
      a_checkpoint_of_another_model_is_refused,
      a_full_disk_fails_checkpoints_and_not_training])

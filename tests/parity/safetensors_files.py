# SPDX-License-Identifier: Apache-2.0
"""safetensors_files.py CKPT_TOOL - weft's shards read by the safetensors library, and its files by weft."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

KERNEL, CUT_AT, BIAS, STEP = 24, 10, 4, 1200
SLOTS = ["", "/m", "/v"]


def values(slot, first, count):
    at = np.arange(first, first + count, dtype=np.float32)
    return np.float32(STEP) + np.float32(slot * 0.25) + at * np.float32(1000)


def check_ours(tool, folder):
    subprocess.run([tool, "make", folder, "mlp", "d1", str(STEP)], check=True)
    step = pathlib.Path(folder) / "mlp" / f"step-{STEP:08}"
    shards = [step / f"shard-0000{i}-of-00002.safetensors" for i in range(2)]
    first, second = (load_file(shard) for shard in shards)
    assert len(first) == 3 and len(second) == 6, (list(first), list(second))
    for slot, name in enumerate(SLOTS):
        assert np.array_equal(first[f"dense/kernel{name}#0"], values(slot, 0, CUT_AT))
        rest = second[f"dense/kernel{name}#{CUT_AT}"]
        assert np.array_equal(rest, values(slot, CUT_AT, KERNEL - CUT_AT))
        assert np.array_equal(second[f"dense/bias{name}"], values(slot, 0, BIAS))
    with safe_open(shards[0], framework="numpy") as shard:
        assert shard.metadata()["job"] == "mlp"
        assert shard.metadata()["cut"] == "g1-c1-0000000000000abc"
    assert (pathlib.Path(folder) / "mlp" / "latest").read_text() == step.name + "\n"


def check_theirs(tool, folder):
    rng = np.random.default_rng(1)
    tensors = {
        "a": rng.standard_normal((3, 5)).astype(np.float32),
        "empty": np.zeros((0, 4), np.float32),
        "scalar": np.array(2.5, np.float32),
        "ids": np.arange(7),
        "größe": rng.standard_normal(4).astype(np.float64),
        "half": np.ones(3, np.float16),
        "mask": np.array([True, False]),
    }
    path = pathlib.Path(folder) / "theirs.safetensors"
    save_file(tensors, path, metadata={"note": "any"})
    out = subprocess.run([tool, "list", path], check=True, capture_output=True, text=True).stdout
    seen = {}
    for line in out.splitlines():
        name, dtype, rest = line.split(" ", 2)
        shape, total = rest.rsplit(" ", 1)
        seen[name] = (dtype, shape, float(total))
    assert set(seen) == set(tensors), seen
    for name, tensor in tensors.items():
        dtype, shape, total = seen[name]
        assert dtype == str(tensor.dtype), (name, dtype)
        assert shape == str(list(tensor.shape)), (name, shape)
        if tensor.dtype == np.float32:
            assert np.isclose(total, tensor.astype(np.float64).sum(), atol=1e-6), name


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_ours(sys.argv[1], folder)
        check_theirs(sys.argv[1], folder)
    print("shards of both kinds read alike")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""csv_files.py BENCH_TEXT [--rows N] [--repeats N] - csv files beside numpy and pandas, where they are there.

One thread each. weft opens a file (finds its records), then reads all batches of an epoch, in order
and shuffled; numpy.loadtxt and pandas.read_csv make one array of it.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np

COLUMNS = 29


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def peers(path):
    yield "numpy.loadtxt", lambda: np.loadtxt(path, delimiter=",", dtype=np.float32)
    try:
        import pandas
    except ImportError:
        return
    yield "pandas.read_csv", lambda: pandas.read_csv(path, header=None, dtype=np.float32).to_numpy()


def measure(bench, path, size, repeats):
    rows = {}
    for _ in range(repeats):
        out = json.loads(subprocess.run([bench, path, str(COLUMNS)], check=True,
                                        capture_output=True, text=True).stdout)
        for key in ("open", "in_order", "shuffled"):
            rows.setdefault(f"weft {key}", []).append(out[f"{key}_s"])
        for name, work in peers(path):
            rows.setdefault(name, []).append(seconds(work))
    for name, times in rows.items():
        print(f"{os.path.basename(path):12} {name:18} {size / statistics.median(times) / 1e6:8.0f} "
              f"MB/s of text")
    print(f"{os.path.basename(path):12} weft holds at most {out['held'] / 2**20:.1f} MiB of "
          f"{size / 2**20:.0f}")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("bench")
    words.add_argument("--rows", type=int, default=300000)
    words.add_argument("--repeats", type=int, default=3)
    words = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.csv")
        x = np.random.default_rng(1).normal(size=(words.rows, COLUMNS)).astype(np.float32)
        np.savetxt(path, x, delimiter=",", fmt="%.7g")
        size = os.path.getsize(path)
        measure(words.bench, path, size, words.repeats)
        subprocess.run(["gzip", path], check=True)
        measure(words.bench, path + ".gz", size, words.repeats)


if __name__ == "__main__":
    main()

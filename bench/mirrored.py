#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft's multi_worker_mirrored beside DDP over gloo and MultiWorkerMirroredStrategy: the MLP 784-128-10.

mirrored.py [--peers DIR] [--torch PYTHON] [--tensorflow PYTHON] [--batch 128] [--workers 2] [--repeats 3]

Workers of one thread each, on the same host; the batch is that of each. weft: jobs on clusters that are up,
all examples over the time from the first step to the end, with one worker and with several in turns. The
peers, after each turn: DIR/torch_ddp.py BATCH WORKERS and DIR/tf_mwms.py BATCH WORKERS. Prints the medians and ratios.
"""
import argparse
import contextlib
import os
import statistics
import subprocess

from parameter_servers import HERE, RECORDS, Cluster

PEER_S = 300


def peer_rate(python, script, batch, workers):
    done = subprocess.run([python, script, str(batch), str(workers)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PEER_S)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| mlp")]
    if not rows:
        last = (done.stderr.strip() or "nothing was printed").splitlines()[-1]
        raise SystemExit(f"{script} ended with {done.returncode}: {last}")
    return float(rows[0].strip("| ").split("|")[3].split()[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--peers", default=os.path.join(os.environ.get("WEFT_SHARED", HERE + "/../../shared"), "peers"))
    p.add_argument("--torch", help="a Python with torch")
    p.add_argument("--tensorflow", help="a Python with tensorflow and tf_keras")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--repeats", type=int, default=3)
    a = p.parse_args()
    rates = {}
    print("load before: %.2f" % os.getloadavg()[0])
    with contextlib.ExitStack() as stack:
        clusters = {"weft, 1 worker": stack.enter_context(Cluster(0, 1, 1)),
                    "weft, %d workers" % a.workers: stack.enter_context(Cluster(0, a.workers, 1))}
        for turn in range(a.repeats):
            for name, c in clusters.items():
                rates.setdefault(name, []).append(c.run("r%d" % turn, a.batch, 1200000 // RECORDS)[0])
            for name, python, script in (("DDP over gloo", a.torch, "torch_ddp.py"),
                                         ("MultiWorkerMirroredStrategy", a.tensorflow, "tf_mwms.py")):
                if python:
                    rates.setdefault(name, []).append(
                        peer_rate(python, os.path.join(a.peers, script), a.batch, a.workers))
    print("| what, batch %d a worker | examples/s: median (min-max) | weft, %d workers, over it |\n|---|---|---|" % (
        a.batch, a.workers))
    ours = statistics.median(rates["weft, %d workers" % a.workers])
    for name, list_of in rates.items():
        m = statistics.median(list_of)
        print("| %s | %.0f (%.0f-%.0f) | %.2f |" % (name, m, min(list_of), max(list_of), ours / m))
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()

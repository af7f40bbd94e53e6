#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft's multi_worker_mirrored beside DDP over gloo and MultiWorkerMirroredStrategy: the MLP 784-128-10.

mirrored.py [--peers DIR] [--torch PYTHON] [--tensorflow PYTHON] [--batch 128] [--workers 2] [--repeats 5]

Workers of one thread each, on the same host; the batch is that of each. weft: all examples over the time from
the first step to the end, with one worker and with several, in turns; each turn has clusters of its own, since what
one makes differs more from start to start than from job to job. The machine's limit, in the same turns: as many
clusters of one worker as there are workers, all at once; workers that make each step together go at the pace of
the slowest. And the time of a cache line from one processor to another and back, before and after they train together:
gradients go that way, and a virtual machine's processors may be near to each other now and far apart later. And bench_in_step
(in_step.c), for two workers of batch 128, as it has: what two threads make of one's, if each step waits for both, without processes and messages. The peers, after each turn: DIR/torch_ddp.py BATCH WORKERS and DIR/tf_mwms.py BATCH WORKERS. Prints
the medians and ratios.
"""
import argparse
import concurrent.futures
import contextlib
import os
import re
import statistics
import subprocess

from parameter_servers import HERE, RECORDS, Cluster

PEER_S = 300
EPOCHS = 1200000 // RECORDS


def peer_rate(python, script, batch, workers):
    done = subprocess.run([python, script, str(batch), str(workers)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PEER_S)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| mlp")]
    if not rows:
        last = (done.stderr.strip() or "nothing was printed").splitlines()[-1]
        raise SystemExit(f"{script} ended with {done.returncode}: {last}")
    return float(rows[0].strip("| ").split("|")[3].split()[0])


def line_ns():
    return int(subprocess.run([os.path.join(HERE, "..", "build", "bench", "bench_cache_line")], check=True, text=True,
                              stdout=subprocess.PIPE).stdout)


def in_step():
    """By name, what threads make of one thread's rate."""
    done = subprocess.run([os.path.join(HERE, "..", "build", "bench", "bench_in_step"), "1"], check=True, text=True,
                          stdout=subprocess.PIPE)
    return {name.strip(): float(times) for name, times in re.findall(r"(?m)^(two.*?)  .*, ([0-9.]+) of one's", done.stdout)}


def rates_alone(clusters, batch):
    """Examples per second of each, while all train at once."""
    with concurrent.futures.ThreadPoolExecutor(len(clusters)) as pool:
        return list(pool.map(lambda c: c.run("alone", batch, EPOCHS)[0], clusters))


def turn(workers, batch):
    """One worker, several together, and as many alone, each on clusters that have just begun."""
    with Cluster(0, 1, 1) as one, Cluster(0, workers, 1) as several, contextlib.ExitStack() as stack:
        others = [one] + [stack.enter_context(Cluster(0, 1, 1)) for _ in range(workers - 1)]
        yield "weft, 1 worker", one.run("one", batch, EPOCHS)[0]
        before = line_ns()
        yield f"weft, {workers} workers", several.run("several", batch, EPOCHS)[0]
        yield "line", (before + line_ns()) / 2
        alone = rates_alone(others, batch)
        yield f"{workers} times the slowest of {workers} alone", workers * min(alone)
        yield f"{workers} alone, the sum", sum(alone)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--peers", default=os.path.join(os.environ.get("WEFT_SHARED", HERE + "/../../shared"), "peers"))
    p.add_argument("--torch", help="a Python with torch")
    p.add_argument("--tensorflow", help="a Python with tensorflow and tf_keras")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--repeats", type=int, default=5)
    a = p.parse_args()
    rates, limits = {}, {}
    print("load before: %.2f" % os.getloadavg()[0])
    for _ in range(a.repeats):
        for name, rate in turn(a.workers, a.batch):
            rates.setdefault(name, []).append(rate)
        for name, times in in_step().items() if (a.workers, a.batch) == (2, 128) else ():
            limits.setdefault(name, []).append(times)
        for name, python, script in (("DDP over gloo", a.torch, "torch_ddp.py"),
                                     ("MultiWorkerMirroredStrategy", a.tensorflow, "tf_mwms.py")):
            if python:
                rates.setdefault(name, []).append(
                    peer_rate(python, os.path.join(a.peers, script), a.batch, a.workers))
    print("| what, batch %d a worker | examples/s: median (min-max) | weft, %d workers, over it: medians; of each turn |\n|---|---|---|" % (
        a.batch, a.workers))
    ours, lines = rates["weft, %d workers" % a.workers], rates.pop("line")
    for name, list_of in rates.items():
        print("| %s | %.0f (%.0f-%.0f) | %.2f; %s |" % (
            name, statistics.median(list_of), min(list_of), max(list_of), statistics.median(ours) / statistics.median(list_of),
            " ".join("%.2f" % (x / y) for x, y in zip(ours, list_of))))
    for name, times in limits.items():
        print("threads, %s: %.2f of one; %s" % (name, statistics.median(times), " ".join("%.2f" % t for t in times)))
    print("a cache line takes, in the turns: %s ns" % " ".join("%.0f" % n for n in lines))
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()

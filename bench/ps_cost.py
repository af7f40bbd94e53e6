#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the way through a parameter server costs a worker: the MLP 784-128-10 with Adam.

ps_cost.py [--batches 32,128,512] [--threads 1,2] [--repeats 5]

Three clusters of one worker take turns, with the same number of threads: without a ps, where the worker
holds the variables and updates them itself; with one ps through shared memory; with one over tcp. The
first is what the worker makes alone. With one thread a fourth takes its turn, bench_mlp: the same records read, the
same arithmetic, and as many bytes sent and received over a bare TCP connection with a process that does nothing
else. It is what a worker reaches over tcp when what weft does besides takes no time. Prints medians, the ratios to
the first of each turn, and the time in which a cache line went from one processor to another and back meanwhile: a virtual machine's processors share
a cache at one time and at another not.
"""
import argparse
import contextlib
import os
import re
import statistics
import subprocess

from parameter_servers import RECORDS, Cluster

SECONDS = 2
KINDS = [("alone", dict(ps=0)), ("shared memory", dict(ps=1)),
         ("tcp", dict(ps=1, shared_memory=False))]


BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bench")


def run(program, *words):
    return subprocess.run([os.path.join(BUILD, program), *words], check=True, capture_output=True, text=True).stdout


def line_ns():
    return int(run("bench_cache_line"))


def bare_rate(batch):
    """Examples per second of bench_mlp."""
    out = run("bench_mlp", str(batch))
    return batch / float(re.search(r"sockets\s+([0-9.]+) us", out).group(1)) * 1e6


def measure(threads, batch, repeats):
    rates, lines = {name: [] for name, _ in KINDS}, []
    if threads == 1:
        rates["bare tcp"] = []
    with contextlib.ExitStack() as stack:
        clusters = [(name, stack.enter_context(Cluster(workers=1, threads=threads, **how)))
                    for name, how in KINDS]
        warm = [c.run("warm", batch, 2)[0] for _, c in clusters]
        epochs = max(2, int(SECONDS * min(warm) / RECORDS))
        for i in range(repeats):
            lines.append(line_ns())
            for name, c in clusters:
                rates[name].append(c.run("r%d" % i, batch, epochs)[0])
            if threads == 1:
                rates["bare tcp"].append(bare_rate(batch))
    for name, r in rates.items():
        ratio = statistics.median(a / b for a, b in zip(r, rates["alone"]))
        print("| %d | %d | %s | %.0f (%.0f-%.0f) | %.2f | %d-%d |" % (
            batch, threads, name, statistics.median(r), min(r), max(r), ratio, min(lines), max(lines)), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batches", default="32,128,512")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--repeats", type=int, default=5)
    a = p.parse_args()
    print("load before: %.2f" % os.getloadavg()[0])
    print("| batch | threads | variables | examples/s: median (min-max) | of alone | cache line, ns |\n|---|---|---|---|---|---|")
    for batch in map(int, a.batches.split(",")):
        for threads in map(int, a.threads.split(",")):
            measure(threads, batch, a.repeats)
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()

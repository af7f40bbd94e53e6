#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers of one thread that add up their gradients, beside one worker with all of those threads.

mirrored_jobs.py JOB.yaml [JOB.yaml ...] [--workers 2] [--epochs 1] [--repeats 5]

Trains each job in turns: by the workers together, each with the job's batch; by the one worker with that batch, so
that its steps have a share of their records; and by the one worker with the batches of all, so that its steps have
the same records as theirs. Each turn has clusters of its own (mirrored.py says why). The time is that from the job's
first step to its end, with the evaluation and the last checkpoint in it. Prints medians and ratios.
"""
import argparse
import os
import re
import statistics

from parameter_servers import Cluster


def batch_of(job):
    """The batch in the job file, which examples write on a line of its own."""
    try:
        with open(job, encoding="utf-8") as f:
            found = re.search(r"^batch: (\d+)$", f.read(), re.M)
    except OSError as e:
        raise SystemExit(str(e)) from e
    if not found:
        raise SystemExit(f"{job} has no line `batch: NUMBER`")
    return int(found.group(1))


def seconds(cluster, job, name, batch, epochs):
    cluster.weft("train", job, "--name", name, "--set", f"epochs={epochs}", "--set", f"batch={batch}")
    return next(j["elapsed_s"] for j in cluster.picture()["jobs"] if j["job"] == name)


def turn(job, workers, epochs):
    batch = batch_of(job)
    with Cluster(0, 1, workers) as one, Cluster(0, workers, 1) as several:
        yield f"{workers} workers, batch {batch} each", seconds(several, job, "several", batch, epochs)
        yield f"1 worker, batch {batch}", seconds(one, job, "small", batch, epochs)
        yield f"1 worker, batch {batch * workers}", seconds(one, job, "summed", batch * workers, epochs)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("jobs", nargs="+", type=os.path.abspath)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--repeats", type=int, default=5)
    a = p.parse_args()
    print("load before: %.2f" % os.getloadavg()[0])
    print(f"| job | what | seconds: median (min-max) | rate of the {a.workers} workers over it: medians; of each turn |\n"
          "|---|---|---|---|")
    for job in a.jobs:
        times = {}
        for _ in range(a.repeats):
            for name, s in turn(job, a.workers, a.epochs):
                times.setdefault(name, []).append(s)
        ours = next(iter(times.values()))
        for name, list_of in times.items():
            print("| %s | %s | %.1f (%.1f-%.1f) | %.2f; %s |" % (
                os.path.basename(job), name, statistics.median(list_of), min(list_of), max(list_of),
                statistics.median(list_of) / statistics.median(ours),
                " ".join("%.2f" % (x / y) for x, y in zip(list_of, ours))), flush=True)
    print("load after: %.2f" % os.getloadavg()[0])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process that holds its variables beside a cluster of one ps and one worker, and PyTorch.

local.py [--batches 32,128,512] [--repeats 5] [--torch PYTHON --peers DIR]

The MLP 784-128-10 with Adam, in turns: `weft train --local` with as many threads as there are
processors, a cluster of one ps and one worker (one thread each), and DIR/torch_train.py mlp BATCH run
by PYTHON, which prints its rate. weft's rate is all examples over the time that the job's log gives
from its first step to its end, with the last checkpoint in it. Prints medians and the ratios to the
cluster.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

from parameter_servers import JOB, RECORDS, WEFT, Cluster

EPOCHS = {32: 6, 128: 12, 512: 16}


def local_rate(batch, epochs):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "job.yaml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(JOB.format(name="local", records=RECORDS, batch=batch, epochs=epochs))
        out = subprocess.run([WEFT, "train", "--local", file], cwd=folder, check=True, text=True,
                             stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL).stdout
        if not out.startswith("done:"):
            raise SystemExit("weft train --local did not end well: " + out)
        with open(os.path.join(folder, ".weft", "jobs", "local#1", "events.jsonl"),
                  encoding="utf-8") as f:
            times = [json.loads(line) for line in f]
    states = {e["text"]: e["ts"] for e in times if e["event"] == "job.state"}
    seconds = moment(states["done"]) - moment(states["running"])
    return RECORDS * epochs / seconds


def moment(ts):
    hours, minutes, seconds = re.search(r"T(\d+):(\d+):([\d.]+)Z", ts).groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def torch_rate(python, peers, batch):
    out = subprocess.run([python, os.path.join(peers, "torch_train.py"), "mlp", str(batch)],
                         check=True, text=True, stdout=subprocess.PIPE).stdout
    return float(re.search(r"([\d.]+)\s*examples", out).group(1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batches", default="32,128,512")
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--torch")
    p.add_argument("--peers")
    args = p.parse_args()
    with Cluster(1, 1, 1) as c:
        for batch in map(int, args.batches.split(",")):
            epochs = EPOCHS.get(batch, 8)
            rates = {"local": [], "1 ps + 1 worker": [], "torch": []}
            for i in range(args.repeats):
                rates["local"].append(local_rate(batch, epochs))
                rates["1 ps + 1 worker"].append(c.run("b%d-%d" % (batch, i), batch, epochs)[0])
                if args.torch:
                    rates["torch"].append(torch_rate(args.torch, args.peers, batch))
            base = statistics.median(rates["1 ps + 1 worker"])
            for name, r in rates.items():
                if r:
                    print("batch %4d  %-16s %8.1f k examples/s  %.2f" %
                          (batch, name, statistics.median(r) / 1e3, statistics.median(r) / base))


if __name__ == "__main__":
    main()

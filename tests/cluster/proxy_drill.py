# SPDX-License-Identifier: Apache-2.0
"""Faults of connections and of processes, one after the other, while a ledger job trains.

    proxy_drill.py WEFT SEED... [--faults N] [--only KIND,KIND]

A seed may be a range, as 1-200. It chooses a sequence of faults: those of tests/kit/proxy.py on links
between tasks, SIGKILL and SIGTERM to any task, SIGSTOP of any task for up to 1.5 s. One run has a master,
2 ps and 3 workers, whose links all go through the proxy.

It must hold:
  - after each fault's end every worker trains on within 3 s; if not, status or a log says who
    waits for whom;
  - the job ends done, and its ledger is exact: each record at least once an epoch, and again only
    where workers were lost.
"""
import argparse
import random
import time

from weftlib import needs

needs("numpy", "onnx")
import drill  # noqa: E402
from disturb import KINDS, Disturber  # noqa: E402
from proxied import ProxiedCluster  # noqa: E402

MOVES_WITHIN_S = 3


class Run:
    def __init__(self, cluster, seed, kinds):
        self.rng = random.Random(seed)
        self.disturber = Disturber(cluster, self.rng, kinds)
        self.job = drill.Job(cluster, seed, every_steps=self.rng.choice([200, 1000]),
                             pipeline=self.rng.choice([0, 1]))

    def run(self, faults):
        self.job.begin()
        for i in range(faults):
            time.sleep(self.rng.uniform(0, 0.2))  # the seed chooses the moment
            what, ended = self.disturber.disturb()
            self.job.moves_again(f"fault {i + 1}, {what}", MOVES_WITHIN_S, everyone=True, since=ended)
        return self.job.finish()


def drill_seed(weft, seed, faults, kinds):
    with ProxiedCluster(weft) as c:
        began = time.monotonic()
        run = Run(c, seed, kinds)
        again = run.run(faults)
        worst = max(run.job.stood_still[1:], key=lambda f: f[1], default=("", 0))
        print(f"ok   seed {seed}  {time.monotonic() - began:.1f} s  {faults} faults, the longest wait "
              f"{worst[1]:.2f} s after {worst[0]}; {again} records trained again", flush=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("weft")
    options.add_argument("seeds", nargs="+")
    options.add_argument("--faults", type=int, default=8)
    options.add_argument("--only", default=",".join(KINDS))
    words = options.parse_args()
    drill.run_seeds(lambda seed: drill_seed(words.weft, seed, words.faults, words.only.split(",")),
                    words.seeds, f" --faults {words.faults} --only {words.only}")


main()

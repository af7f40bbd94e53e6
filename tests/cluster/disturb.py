# SPDX-License-Identifier: Apache-2.0
"""One fault after the other, drawn from a seed: of a connection between two tasks of a ProxiedCluster,
or of a process."""
import os
import signal
import time

from weftlib import check, until
from proxy import FAULTS  # tests/kit, where weftlib looks too

# Twice as often what weft itself has to find out: nobody tells it of these.
KINDS = [*FAULTS, "half_open", "flip_payload", "kill", "term", "stop"]
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}
# The supervisor leaves a task down that dies again after 20 restarts in 10 minutes, and starts one
# that has not lived for 10 s later each time; some die of other faults too.
MOST_DEATHS = {600: 12, 40: 3}  # within so many seconds


class Disturber:
    """`mortal`: the tasks that kill and term may choose; None: all."""

    def __init__(self, cluster, rng, kinds):
        self.c, self.rng, self.kinds, self.mortal = cluster, rng, kinds, None
        self.deaths = []  # (task, when)

    def _victim(self, kind):
        tasks = self.c.tasks() if kind == "stop" or self.mortal is None else self.mortal
        fit = [t for t in tasks if kind == "stop" or self._may_die(t)]
        return self.rng.choice(fit) if fit else None

    def _may_die(self, task):
        ages = [time.monotonic() - when for who, when in self.deaths if who == task]
        return all(sum(age < window for age in ages) < most for window, most in MOST_DEATHS.items())

    def _signal(self, kind):
        task, seconds = self._victim(kind), 0
        if not task:
            return f"no {kind}: all tasks have died often enough", time.monotonic()
        pid = until(lambda: self.c.pid(task), f"a process of {task}", 5)
        os.kill(pid, SIGNALS[kind])
        if kind == "stop":
            seconds = self.rng.uniform(0.2, 1.5)
            time.sleep(seconds)  # the fault itself
            os.kill(pid, signal.SIGCONT)
        else:
            self.deaths.append((task, time.monotonic()))
        return f"{kind} of {task}" + (f" for {seconds:.1f} s" if seconds else ""), time.monotonic()

    def _link_fault(self, kind):
        link = until(lambda: self.c.proxy.pick(self.rng), "a link that is whole", 10)
        fault = self.c.proxy.fault(kind, link, self.rng, self.rng.uniform(0.2, 1.5))
        check(fault.ended.wait(60), f"the proxy ends its {fault}")
        return str(fault), fault.ended_at

    def disturb(self):
        """Does one, and waits for its end; gives its name and when it was over."""
        kind = self.rng.choice(self.kinds)
        return self._signal(kind) if kind in SIGNALS else self._link_fault(kind)

# SPDX-License-Identifier: Apache-2.0
"""waits.py WEFT - what stands still says so: who waits for whom, and for what."""
import re
import time

from weftlib import main, needs, until

needs("numpy", "onnx")
import drill  # noqa: E402
from proxied import ProxiedCluster  # noqa: E402

# A wait is logged after 5 s.
NAMED_WITHIN_S, MOVES_WITHIN_S = 8, 3


def stands_still(weft, task, says):
    """Nothing reaches a task or comes from it, while its process and its links stand."""
    with ProxiedCluster(weft, workers=2, more="dead_ms: 60000") as c:
        job = drill.Job(c, seed=1)
        job.begin()
        began = time.time()
        c.proxy.darken(task, True)
        until(lambda: re.search(says, job.who_waits(began)), f"a log says {says}", NAMED_WITHIN_S)
        c.proxy.darken(task, False)
        job.moves_again(f"{task} was dark", MOVES_WITHIN_S, everyone=True)
        job.finish()


def workers_that_hear_nothing_of_a_ps_name_it(weft):
    stands_still(weft, "ps/1", r"worker/\d wait\.long for=ps/1 what=\"\w")


def workers_that_hear_nothing_of_the_master_name_it(weft):
    stands_still(weft, "master/0", r"worker/\d wait\.long for=master what=\"\w")


main([workers_that_hear_nothing_of_a_ps_name_it, workers_that_hear_nothing_of_the_master_name_it])

# SPDX-License-Identifier: Apache-2.0
"""Every failpoint of the code (common/base/failpoint.h): at its first and at its third passage the
process dies there, or the act there fails. The job trains on and its ledger is exact.

    failpoints.py WEFT [NAME...]

Without names: all that the sources hold, so that a new one is covered without a word here. Runs only
where the failpoints are built in (-Dfailpoints=true).
"""
import os
import re
import sys

from weftlib import Cluster, check, needs, skip, until

needs("numpy", "onnx")
import drill  # noqa: E402
import scripts  # noqa: E402

ACTIONS = ("kill@1", "kill@3", "error:EIO@1", "error:EIO@3")
MOVES_WITHIN_S = 5
# A task's first process is armed; the one that is started in its place must get past the point.
SCRIPT = """if mkdir "{folder}/started-{role}-$task" 2>/dev/null; then
    WEFT_FAILPOINTS=$(cat "{folder}/failpoints")
    export WEFT_FAILPOINTS
fi
exec "{program}" "$@"
"""


def are_built_in(weft):
    with open(os.path.join(os.path.dirname(weft), "weft-worker"), "rb") as f:
        return b"WEFT_FAILPOINTS" in f.read()


def names_in_sources():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    found = set()
    for folder in ("common", "master", "ps", "worker", "cmd"):
        for where, _, files in os.walk(os.path.join(root, folder)):
            for name in files:
                if name.endswith(".c"):
                    with open(os.path.join(where, name), encoding="utf-8") as f:
                        found |= set(re.findall(r'wf_failpoint\("([^"]+)"', f.read()))
    return sorted(found)


def times(cluster, words):
    """How often the logs say that."""
    folder = cluster.path(".weft", "logs")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sum(len(re.findall(words, cluster.read(f".weft/logs/{name}"))) for name in names)


def one_action(weft, name, action):
    """The armed point is passed in one process at least, and nothing else comes of it."""
    seen = "task.died .*killed by signal 9" if action.startswith("kill") else f"failpoint {name}"
    with Cluster(weft) as c:
        c.weft = scripts.write(weft, c.folder, SCRIPT)
        c.write("failpoints", f"{name}={action}")
        job = drill.Job(c, seed=1, every_steps=100)
        c.must("up")
        c.must("submit", "ledger.yaml")
        until(lambda: times(c, seen), f"the logs say {seen}", 20)
        job.moves_again(f"{name} {action}", MOVES_WITHIN_S, everyone=True)
        return job.finish()


def every_action_at(weft, name):
    again = [f"{action} {one_action(weft, name, action)}" for action in ACTIONS]
    print(f"ok   {name}  records trained again: {', '.join(again)}", flush=True)


def main():
    weft, names, failed = os.path.abspath(sys.argv[1]), sys.argv[2:], 0
    if not are_built_in(weft):
        skip("this build has no failpoints; make one with -Dfailpoints=true")
    names = names or names_in_sources()
    check(names, "no failpoint is in the sources")
    for name in names:
        try:
            every_action_at(weft, name)
        except AssertionError as why:
            failed += 1
            print(f"FAIL {name}: {why}", flush=True)
    sys.exit(1 if failed else 0)


main()

# SPDX-License-Identifier: Apache-2.0
"""count.py BROKEN LOG... - adds up test logs of build folders; the last line is "N passed, N failed, N skipped".

BROKEN is 1 when a build or a run of tests ended badly; a log that is not there counts as one failed test, so that
a build that does not compile can never look like success."""

import json
import pathlib
import sys


def main():
    broken, logs = sys.argv[1] == "1", map(pathlib.Path, sys.argv[2:])
    passed = failed = skipped = 0
    for log in logs:
        if not log.exists():
            failed += 1
            continue
        for line in log.read_text().splitlines():
            test = json.loads(line)
            name, result = f"{log.parent.parent}: {test['name']}", test["result"]
            if result in ("OK", "EXPECTEDFAIL"):
                passed += 1
            elif result == "SKIP":
                skipped += 1
                print(f"skipped {name}")
            else:
                failed += 1
                print(f"FAILED  {name}: {result}")
    if broken and failed == 0:
        failed = 1
    if skipped:
        print("a skipped test says in its log what it lacks: reference data, Python packages, a processor")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""count.py SCRIPT - the closing line of scripts/count.py, which machines read."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CLOSING = re.compile(r"\d+ passed, \d+ failed(, \d+ skipped)?")


def closing_line(broken, *logs):
    done = subprocess.run([sys.executable, sys.argv[1], broken, *map(str, logs)],
                          capture_output=True, text=True, check=False)
    line = done.stdout.splitlines()[-1]
    assert CLOSING.fullmatch(line), line
    return done.returncode, line


with tempfile.TemporaryDirectory() as name:
    log = pathlib.Path(name) / "build" / "meson-logs" / "testlog.json"
    log.parent.mkdir(parents=True)
    results = ["OK", "OK", "EXPECTEDFAIL", "SKIP", "SKIP"]
    rows = [json.dumps({"name": f"t{i}", "result": r}) for i, r in enumerate(results)]
    log.write_text("\n".join(rows) + "\n")
    assert closing_line("0", log) == (0, "3 passed, 0 failed, 2 skipped")
    assert closing_line("1", log) == (1, "3 passed, 1 failed, 2 skipped")
    assert closing_line("0", log, log.with_name("none.json")) == (1, "3 passed, 1 failed, 2 skipped")
    log.write_text(json.dumps({"name": "t", "result": "TIMEOUT"}) + "\n")
    assert closing_line("0", log) == (1, "0 passed, 1 failed, 0 skipped")
print("the closing line counts what passed, failed and was skipped")

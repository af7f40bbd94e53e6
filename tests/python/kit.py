# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package weft share: its place, and how tests are found and told of."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def set_up(library):
    """Has `import weft` find the source tree's package and this build's libweft."""
    sys.path.insert(0, str(SOURCE / "python"))
    os.environ["WEFT_LIBRARY"] = os.path.abspath(library)


def need(*names):
    """Ends the test as skipped where a package is missing."""
    for name in names:
        try:
            __import__(name)
        except ImportError:
            print(f"skipped: {name} is not installed")
            sys.exit(77)


def python_of(page):
    """The blocks of Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (SOURCE / page).read_text(), re.M | re.S)


def run_block(block):
    """Runs a block of Python in an empty folder; it has to work."""
    env = dict(os.environ, PYTHONPATH=str(SOURCE / "python"))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", block], env=env, cwd=folder, text=True,
                              capture_output=True, timeout=120)
    assert done.returncode == 0, block + done.stdout + done.stderr


def raises(kind, text, call):
    """That call() raises an error of this kind whose sentence has this text."""
    try:
        call()
    except kind as e:
        assert text in str(e), f"{e!r} has no {text!r}"
        return e
    raise AssertionError(f"nothing was raised, wanted {kind.__name__} with {text!r}")


def run(tests, only=None):
    """Runs functions by their names; exit 1 if one fails."""
    failed = 0
    for name, test in tests.items():
        if not name.startswith("test_") or (only and only not in name):
            continue
        try:
            test()
            print("ok", name[5:], flush=True)
        except Exception:
            failed += 1
            print("FAILED", name[5:])
            traceback.print_exc()
    sys.exit(failed > 0)

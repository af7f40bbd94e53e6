# SPDX-License-Identifier: Apache-2.0
"""package.py LIBWEFT - docstrings' examples, the lines of the pages, and how long `import weft` takes."""
import doctest
import importlib
import os
import pkgutil
import subprocess
import sys

import kit

kit.set_up(sys.argv[1])
kit.need("numpy")
MOST_MS = 50  # of `import weft`, as the best of several


def test_examples():
    import weft
    failed, tried = 0, 0
    for info in pkgutil.iter_modules(weft.__path__):
        module = importlib.import_module("weft." + info.name)
        result = doctest.testmod(module)
        failed, tried = failed + result.failed, tried + result.attempted
    result = doctest.testmod(weft)
    assert failed + result.failed == 0 and tried + result.attempted > 30, (failed, tried)


def test_import_is_quick():
    code = "import time; t = time.perf_counter(); import weft; print(time.perf_counter() - t)"
    env = dict(os.environ, PYTHONPATH=str(kit.SOURCE / "python"))
    best = min(float(subprocess.run([sys.executable, "-c", code], env=env, check=True,
                                    capture_output=True, text=True).stdout) for _ in range(5))
    assert best * 1000 < MOST_MS, best
    loaded = "import sys, weft; sys.exit(any(m in sys.modules for m in ('numpy', 'torch', 'ctypes')))"
    assert subprocess.run([sys.executable, "-c", loaded], env=env).returncode == 0


def test_pages():
    blocks = [b for b in kit.python_of("README.md") + kit.python_of("docs/python.md")
              if "torch" not in b and "Cluster(" not in b]
    assert blocks
    for block in blocks:
        kit.run_block(block)


kit.run(globals())

# SPDX-License-Identifier: Apache-2.0
"""package.py LIBWEFT WEFT - docstrings' examples, README's lines, and how long `import weft` takes."""
import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile

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


def python_of(page):
    """The Python of a page, but for blocks that begin with a comment `# elsewhere`."""
    with open(kit.SOURCE / page) as f:
        return [b for b in re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)]


def run_block(block):
    env = dict(os.environ, PYTHONPATH=str(kit.SOURCE / "python"))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", block], env=env, cwd=folder, text=True,
                              capture_output=True, timeout=120)
    assert done.returncode == 0, block + done.stdout + done.stderr


def test_pages():
    try:
        import torch  # noqa: F401
        has_torch = True
    except ImportError:
        has_torch = False
    blocks = python_of("README.md") + python_of("docs/python.md")
    assert len(blocks) > 3, len(blocks)
    for block in blocks:
        if "Cluster(" in block or ("torch" in block and not has_torch):
            continue
        run_block(block)


kit.run(globals())

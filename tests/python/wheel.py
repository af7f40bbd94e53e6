# SPDX-License-Identifier: Apache-2.0
"""wheel.py BUILD - the wheel: built without network, small, of use in an environment of its own.

The environment sees the packages of this interpreter, where numpy is.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import kit

kit.need("numpy")
import numpy  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
MOST = 10 * 1000 * 1000
TRY = """
import numpy as np, weft, weft_export, os
assert "WEFT_LIBRARY" not in os.environ and weft.__file__.startswith({root!r}), weft.__file__
x = np.eye(4, dtype="float32")
m = weft.Model.from_layers([weft.Input([4]), weft.layers.Dense(4)])
m.compile("adam", "mse")
m.fit(x, x, verbose=0)
assert m.predict(x).shape == (4, 4)
"""


def run(*words, **env):
    base = {k: v for k, v in os.environ.items() if k not in ("WEFT_LIBRARY", "PYTHONPATH")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=150, env={**base, **env})
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run(*pip, "wheel", "--no-deps", "--no-index", "-w", folder, str(kit.SOURCE / "python"),
        WEFT_BUILD=BUILD)
    (wheel,) = pathlib.Path(folder).glob("*.whl")
    size = wheel.stat().st_size
    assert size < MOST, size
    names = zipfile.ZipFile(wheel).namelist()
    assert {"weft/libweft.so", "weft/model.py", "weft_export.py"} <= set(names), names
    root = os.path.join(folder, "root")
    run(*pip, "install", "--no-deps", "--no-index", "--target", root, str(wheel))
    run(sys.executable, "-c", TRY.format(root=root),
        PYTHONPATH=os.pathsep.join([root, os.path.dirname(os.path.dirname(numpy.__file__))]))
    print(f"ok: {size} bytes")

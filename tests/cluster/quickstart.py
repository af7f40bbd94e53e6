# SPDX-License-Identifier: Apache-2.0
"""docs/quickstart.md, typed from its first command after the installation to its last one.

    quickstart.py WEFT [TEST...]
"""
import os
import re
import subprocess
import sys

from weftlib import SLOWER, Cluster, check, main, needs

needs("numpy", "onnxruntime")
import numpy as np  # noqa: E402
from snippets import ROOT, script, sections  # noqa: E402


def every_snippet_does_what_the_page_says(weft):
    with Cluster(weft) as c:  # for its folder, and to end what is left of it
        os.unlink(c.path("cluster.yaml"))
        path = os.path.dirname(c.weft) + ":" + os.environ["PATH"]
        page = sections("quickstart.md")
        blocks = [b for heading in page for b in page[heading]]
        check(len(blocks) >= 10, f"{len(blocks)} snippets")
        done = subprocess.run([sys.executable, "-c", script(blocks)], cwd=c.folder,
                              env=dict(c.env, PATH=path), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=150 * SLOWER)
        check(done.returncode == 0, done.stdout)
        for pattern in (r"done: .*digits#1/step-", r"done: .*digits#2/step-",
                        r"done: .*customers#1/step-", r"epoch +step", r"\* digits#1 loss",
                        r"digits\.onnx: ", r"\[\d \d \d \d \d\]", r"in a job file:\n +data:"):
            check(re.search(pattern, done.stdout), f"{pattern!r} expected in:\n{done.stdout}")
        check(not c.processes(), f"left: {c.processes()}")
        # The command that the page has in a sentence.
        check(c.bare("predict", "digits", "--input", "x=data/t10k-images-idx3-ubyte.gz", "-o",
                     "scores.npy").code == 0, "weft predict")
        check(np.load(c.path("scores.npy")).shape == (2000, 10), "shape of the scores")


def the_pages_install_what_the_script_installs(_):
    with open(ROOT / "scripts" / "deps", encoding="utf-8") as f:
        wanted = set(re.search(r"^packages=\((.*?)\)", f.read(), re.S | re.M).group(1).split())
    for page in (ROOT / "README.md", ROOT / "docs" / "quickstart.md"):
        line = re.search(r"^sudo apt install ((?:.*\\\n)*.*)", page.read_text(), re.M).group(1)
        check(set(line.replace("\\", " ").split()) == wanted, f"{page.name}: {line}")


main([every_snippet_does_what_the_page_says, the_pages_install_what_the_script_installs])

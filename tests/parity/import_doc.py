# SPDX-License-Identifier: Apache-2.0
"""The snippets of docs/import.md run, section by section (tests/kit/snippets.py).

Runs in the interpreter that WEFT_KERAS_PYTHON names (else this one); a section whose frameworks are
not there is skipped.

usage: import_doc.py WEFT
exit 77: skipped, no framework is there
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "kit"))
from snippets import ROOT, script, sections  # noqa: E402

NEEDS = {"PyTorch": "torch onnx", "Keras": "keras tensorflow tf2onnx", "scikit-learn": "sklearn skl2onnx"}


def main():
    weft = pathlib.Path(sys.argv[1]).resolve()
    python = os.environ.get("WEFT_KERAS_PYTHON", sys.executable)
    env = dict(os.environ, PATH=f"{weft.parent}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "python"),
               KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    ran = failed = 0
    found = {heading: blocks for heading, blocks in sections("import.md").items()
             if any(language == "python" for language, _ in blocks)}
    assert set(found) == set(NEEDS), f"sections with snippets: {sorted(found)}"
    for heading, blocks in found.items():
        has = "import importlib.util as u, sys; sys.exit(not all(u.find_spec(m) for m in sys.argv[1:]))"
        if subprocess.run([python, "-c", has, *NEEDS[heading].split()], env=env).returncode != 0:
            print(f"skipped: {heading}: {python} has no {NEEDS[heading]}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([python, "-c", script(blocks)], cwd=folder, env=env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        ran += 1
        warned = re.search(r"^warning: .*|.*: not kept: .*", done.stdout, re.M)
        if done.returncode != 0 or warned:
            failed += 1
            print(f"FAILED {heading}: {done.returncode} {warned.group() if warned else ''}\n{done.stdout}")
        else:
            print(f"ok     {heading}")
    sys.exit(1 if failed else 0 if ran else 77)


main()

# SPDX-License-Identifier: Apache-2.0
"""The snippets of a page of docs/, to be run in the order of the page and in one folder: python, the
job files (their first line is their name) and the commands.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEAD = ["import os, subprocess, warnings", "warnings.simplefilter('ignore')"]


def sections(page):
    """{heading: [(language, text)]} of a page's sections, in order."""
    found = {}
    for part in re.split(r"^## ", (ROOT / "docs" / page).read_text(), flags=re.M)[1:]:
        found[part.splitlines()[0]] = re.findall(r"^```(\w+)\n(.*?)^```$", part, re.M | re.S)
    return found


def script(blocks):
    """One Python program that does what the blocks say."""
    lines = list(HEAD)
    for language, text in blocks:
        if language == "python":
            lines.append(text)
        elif language == "yaml":
            name = re.match(r"# (\S+\.yaml)\n", text).group(1)
            lines.append(f"open({name!r}, 'w').write({text!r})")
        elif language == "sh":
            lines.append(f"subprocess.run(['sh', '-ec', {text!r}], check=True)")
    return "\n".join(lines)

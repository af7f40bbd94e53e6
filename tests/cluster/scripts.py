# SPDX-License-Identifier: Apache-2.0
"""Scripts in the place of weft's programs, for tests that start each task in a way of its own.

`weft` looks for the other programs in its own folder. write() puts a copy of it into FOLDER/bin beside
scripts that end in the real programs.
"""
import os
import shutil

HEAD = """#!/bin/sh
# Here $task is the task's number, and the arguments are those of the program.
task=0
for word; do
    [ "$last" = --task ] && task=$word
    last=$word
done
"""


def write(weft, folder, body):
    """`body`: text of each script behind HEAD; {program}, {folder} and {role} are put in. Gives the
    path of the copy."""
    programs, into = os.path.dirname(os.path.abspath(weft)), os.path.join(folder, "bin")
    os.mkdir(into)
    shutil.copy(weft, into)
    for role in ("master", "ps", "worker"):
        path = os.path.join(into, f"weft-{role}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(HEAD + body.format(program=os.path.join(programs, f"weft-{role}"), folder=folder,
                                       role=role))
        os.chmod(path, 0o755)
    return os.path.join(into, os.path.basename(weft))

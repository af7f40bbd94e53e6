# SPDX-License-Identifier: Apache-2.0
"""A small file system for tests of full disks; `mounted` is false where only root may have one."""
import os
import subprocess


class SmallDisk:
    """A file system of so many MiB, mounted for the `with`."""

    def __init__(self, path, mib=1):
        self.path = path
        os.makedirs(path, exist_ok=True)
        self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", path],
                                      stderr=subprocess.DEVNULL, check=False).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        if self.mounted:
            subprocess.run(["umount", "-l", self.path], check=True)

    def fill(self):
        with open(os.path.join(self.path, ".filler"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass

    def empty(self):
        os.unlink(os.path.join(self.path, ".filler"))

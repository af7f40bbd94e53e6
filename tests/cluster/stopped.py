# SPDX-License-Identifier: Apache-2.0
"""A thread that is stopped by ptrace, while the others of its process go on."""
import ctypes
import os

from weftlib import skip

SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Stopped:
    """A thread that does not run, in a process that does."""

    def __init__(self, thread):
        self.thread = thread

    def __enter__(self):
        if libc.ptrace(SEIZE, self.thread, None, None) != 0:
            skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
        libc.ptrace(INTERRUPT, self.thread, None, None)
        os.waitpid(self.thread, WALL)
        return self

    def __exit__(self, *rest):
        if libc.ptrace(DETACH, self.thread, None, None) != 0:  # it is dead, and waits for us
            os.waitpid(self.thread, WALL)

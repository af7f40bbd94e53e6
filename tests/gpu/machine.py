# SPDX-License-Identifier: Apache-2.0
"""A machine with a GPU: its card, its libraries, and programs that run on it within a time limit."""
import ctypes
import glob
import importlib.util
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What the machine brings; weft needs the first, PyTorch brings all.
LIBRARIES = ("libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9", "libnvrtc.so.13", "libnccl.so.2")
KILL_ME_TOO = 1  # PR_SET_PDEATHSIG


class Done:
    """A program that has ended. `cut` says that it ran into its limit."""

    def __init__(self, code, out, err, seconds, cut):
        self.code, self.out, self.err, self.seconds, self.cut = code, out, err, seconds, cut

    def why(self):
        """Its last words, for a report."""
        lines = [line for line in (self.err + "\n" + self.out).splitlines() if line.strip()]
        ended = f"ended by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return " | ".join(lines[-3:] + ([] if lines and self.code >= 0 else [ended]))[-600:]


LIBC = ctypes.CDLL(None)  # here, since between fork and exec nothing may be loaded


def end_with_parent():
    LIBC.prctl(KILL_ME_TOO, signal.SIGKILL)


def end(process):
    """Ends the group of a process; gives its output."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def run(argv, limit_s, env=None, cwd=None):
    """Runs a program. At its limit, or if this one is ended, it is asked to end, and then killed with all that
    it started."""
    begin = time.monotonic()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", env=env, cwd=cwd, start_new_session=True,
                               preexec_fn=end_with_parent)
    cut = False
    try:
        out, err = process.communicate(timeout=max(0.1, limit_s))
    except subprocess.TimeoutExpired:
        cut = True
        out, err = end(process)
    except BaseException:
        end(process)
        raise
    return Done(process.returncode, out, err, time.monotonic() - begin, cut)


class Server:
    """A program that answers each line of its input with a line, in a process group of its own."""

    def __init__(self, argv, cwd):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, cwd=cwd,
                                        start_new_session=True, preexec_fn=end_with_parent)
        self.read = b""

    def ask(self, line, limit_s):
        """Its answer; None: it ended, or took longer, and is ended then."""
        stop = time.monotonic() + limit_s
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        while b"\n" not in self.read:
            if not select.select([self.process.stdout], [], [], max(0, stop - time.monotonic()))[0]:
                self.close()
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                self.close()
                return None
            self.read += more
        answer, self.read = self.read.split(b"\n", 1)
        return answer.decode()

    def why(self):
        """Its last words."""
        self.errors.seek(0)
        return " | ".join([line.strip() for line in self.errors if line.strip()][-3:])[-600:] or "it took too long"

    def hold(self, held):
        """Stops all its processes, or has them go on."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGSTOP if held else signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def python_folders():
    """Where this interpreter's packages have the libraries of CUDA."""
    found = []
    for top in sys.path:
        found += glob.glob(os.path.join(top, "nvidia", "*", "lib"))
        found += glob.glob(os.path.join(top, "torch", "lib"))
    return found


def known_to_the_loader():
    tool = shutil.which("ldconfig") or "/sbin/ldconfig"
    if not os.path.exists(tool):
        return {}
    listed = re.findall(r"^\s*(\S+) .*=> (\S+)$", run([tool, "-p"], 10).out, re.M)
    return {name: path for name, path in reversed(listed)}


def find_libraries():
    """{name: path} of those of LIBRARIES that are there. A newer CUDA comes before an older one."""
    folders = python_folders()
    for pattern in ("/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib",
                    "/usr/lib/x86_64-linux-gnu"):
        folders += sorted(glob.glob(pattern), reverse=True)
    loader = known_to_the_loader()
    found = {}
    for name in LIBRARIES:
        paths = [os.path.join(f, name) for f in folders] + [loader.get(name, "")]
        path = next((p for p in paths if p and os.path.exists(p)), None)
        if path:
            found[name] = path
    return found


def packed_folders(here):
    """The packed libraries; without the compiler's if these want a newer glibc than there is."""
    compiler = os.path.join(here, "lib-compiler")
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = run([sys.executable, "-c", load, os.path.join(compiler, "libstdc++.so.6")], 20,
               env={**os.environ, "LD_LIBRARY_PATH": compiler})
    return [os.path.join(here, "lib")] + [compiler] * (done.code == 0)


def environment(here, libraries):
    """What weft's programs find in theirs: the packed libraries, the machine's, and the plug-in."""
    folders = packed_folders(here) + [os.path.dirname(p) for p in libraries.values()]
    env = dict(os.environ)
    env["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(folders + env.get("LD_LIBRARY_PATH", "").split(":"))).rstrip(":")
    env.setdefault("WEFT_CUDA", os.path.join(here, "weft-cuda.so"))
    env["WEFT_SHARED"] = here
    return env


def find_tool(name):
    """A program of CUDA's toolkit, or None."""
    places = [shutil.which(name) or ""] + sorted(glob.glob(f"/usr/local/cuda*/bin/{name}"), reverse=True)
    places += [p for top in sys.path for p in glob.glob(os.path.join(top, "nvidia", "*", "bin", name))]
    return next((p for p in places if p and os.access(p, os.X_OK)), None)


def card():
    """What nvidia-smi says of the first GPU; {} without it."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return {}
    keys = ["name", "driver_version", "memory.total", "compute_cap", "clocks.max.sm", "power.limit"]
    done = run([tool, f"--query-gpu={','.join(keys)}", "--format=csv,noheader", "-i", "0"], 20)
    return dict(zip(keys, (v.strip() for v in done.out.strip().split(",")))) if done.code == 0 else {}


def has_module(name):
    return importlib.util.find_spec(name) is not None

# SPDX-License-Identifier: Apache-2.0
"""library.py BUILD SOURCE - libweft as others find it: installed, found by pkg-config, linked.

The example of examples/c is built against the shared and against the static library, and trains.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = map(os.path.abspath, sys.argv[1:3])


def run(*words, cwd=None, env=None, timeout=120):
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env, timeout=timeout)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def install(into):
    """What `meson install` puts below a folder, and the environment in which that is found."""
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", str(into))
    (about,) = into.rglob("weft.pc")
    library = about.parent.parent
    assert os.readlink(library / "libweft.so").startswith("libweft.so."), os.listdir(library)
    assert list(into.rglob("include/weft.h"))
    return library, dict(os.environ, PKG_CONFIG_PATH=str(about.parent),
                         PKG_CONFIG_SYSROOT_DIR=str(into), LD_LIBRARY_PATH=str(library))


def check_trains(folder, env):
    out = run("./spirals", cwd=folder, env=env)
    assert re.search(r"^epoch 30  loss", out, re.M), out
    assert "step-" in out and (folder / "spirals.onnx").stat().st_size > 1000, out
    again = run("./spirals", cwd=folder, env=env)  # what is done stays done
    assert out.splitlines()[-2:] == again.splitlines()[-2:], again


def main():
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        library, env = install(top / "root")
        shared = top / "shared"
        shutil.copytree(os.path.join(SOURCE, "examples", "c"), shared)
        run("make", cwd=shared, env=env)
        assert "libweft.so.0" in run("ldd", "./spirals", cwd=shared, env=env)
        check_trains(shared, env)
        static = top / "static"
        shutil.copytree(os.path.join(SOURCE, "examples", "c"), static)
        # Against the shared libraries that it stands on: not all of Debian's have static ones.
        needs = re.findall(r"^([\w.-]+)", run("pkg-config", "--print-requires-private", "weft",
                                              env=env), re.M)
        flags = run("pkg-config", "--cflags", "weft", env=env).split() + ["spirals.c"]
        flags += [str(library / "libweft.a")] + run("pkg-config", "--libs", *needs).split()
        run("cc", "-o", "spirals", *flags, "-ldnnl", "-lgomp", "-lm", "-pthread", cwd=static, env=env)
        assert "libweft" not in run("ldd", "./spirals", cwd=static, env=env)
        check_trains(static, env)
        print("ok")


main()

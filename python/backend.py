# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel of weft (PEP 517), with libweft.so in it and nothing to fetch.

The library is that of the meson build folder WEFT_BUILD, else of ../build, else of a build that is
made here; it is stripped of what debuggers want. The wheel is for this kind of machine and system.
"""
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = "libweft.so"


def _project():
    """Name, version and needs of pyproject.toml, which Python 3.10 has no reader for."""
    text = (HERE / "pyproject.toml").read_text()
    one = {key: re.search(rf'^{key} = "(.*)"$', text, re.M).group(1)
           for key in ("name", "version", "description", "requires-python", "license")}
    needs = re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*?)\]", text, re.M | re.S).group(1))
    extras = {name: re.findall(r'"([^"]+)"', rest) for name, rest in re.findall(
        r"^(\w+) = \[(.*?)\]$", text.partition("[project.optional-dependencies]")[2], re.M)}
    return one, needs, extras


def _metadata():
    one, needs, extras = _project()
    lines = ["Metadata-Version: 2.1", f"Name: {one['name']}", f"Version: {one['version']}",
             f"Summary: {one['description']}", f"License: {one['license']}",
             f"Requires-Python: {one['requires-python']}"]
    lines += [f"Requires-Dist: {n}" for n in needs]
    for name, wanted in extras.items():
        lines += [f"Provides-Extra: {name}"]
        lines += [f'Requires-Dist: {n}; extra == "{name}"' for n in wanted]
    return "\n".join(lines) + "\n"


def _tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def _library(folder):
    """A stripped libweft.so in `folder`."""
    said = os.environ.get("WEFT_BUILD")
    build = pathlib.Path(said) if said else HERE.parent / "build"
    if not (build / "lib" / LIBRARY).exists():
        if said:
            raise FileNotFoundError(f"WEFT_BUILD={said} has no lib/{LIBRARY}; ninja -C {said} makes it")
        if not (HERE.parent / "meson.build").exists():
            raise FileNotFoundError("weft's sources are not beside python/, and WEFT_BUILD names no "
                                    "build; pip install ./python in a checkout")
        if not (build / "build.ninja").exists():
            subprocess.run(["meson", "setup", str(build), str(HERE.parent)], check=True)
        target = f"lib/{LIBRARY}"
        names = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], check=True,
                               capture_output=True, text=True).stdout
        real = re.search(rf"^({re.escape(target)}\.[\d.]+):", names, re.M).group(1)
        subprocess.run(["ninja", "-C", str(build), real], check=True)
    source = (build / "lib" / LIBRARY).resolve()
    if not source.exists():  # links are made when meson installs
        source = max((build / "lib").glob(LIBRARY + ".*.*"))
    to = pathlib.Path(folder, LIBRARY)
    shutil.copyfile(source, to)
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", str(to)], check=True)
    return to


def _modules():
    return [*sorted((HERE / "weft").glob("*.py")), HERE / "weft_export.py"]


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel, and returns its name."""
    one = _project()[0]
    base = f"{one['name']}-{one['version']}"
    name, info, record = f"{base}-{_tag()}.whl", f"{base}.dist-info", []

    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(
            os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as z:
        def put(at, content):
            entry = zipfile.ZipInfo(at, (2020, 1, 1, 0, 0, 0))  # the same wheel from the same files
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            z.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{at},sha256={digest},{len(content)}")

        for path in _modules():
            put(path.relative_to(HERE).as_posix(), path.read_bytes())
        put(f"weft/{LIBRARY}", _library(folder).read_bytes())
        put("weft/py.typed", b"")
        put(f"{info}/METADATA", _metadata().encode())
        put(f"{info}/WHEEL", ("Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: false\n"
                              f"Tag: {_tag()}\n").encode())
        record.append(f"{info}/RECORD,,")
        z.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    """The Python files alone: a wheel of it needs WEFT_BUILD."""
    one = _project()[0]
    base = f"{one['name']}-{one['version']}"
    with tempfile.TemporaryDirectory() as folder, tarfile.open(
            os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as t:
        about = pathlib.Path(folder, "PKG-INFO")
        about.write_text(_metadata())
        t.add(about, f"{base}/PKG-INFO")
        for path in [*_modules(), HERE / "pyproject.toml", HERE / "backend.py"]:
            t.add(path, f"{base}/{path.relative_to(HERE).as_posix()}")
    return base + ".tar.gz"

# SPDX-License-Identifier: Apache-2.0
"""Criteo's layout against a reader of its own, and DeepFM on it against PyTorch.

usage: recommenders.py WEFT LIBWEFT.SO
exit 77: skipped, a library or the data is not there
"""
import ctypes
import math
import os
import sys

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get("WEFT_SHARED", os.path.join(HERE, "..", "..", "..", "shared"))
CRITEO = os.path.abspath(os.path.join(SHARED, "data", "criteo-sample", "train.csv"))
BINS = 5000
MASK = (1 << 64) - 1

DATA = f"""
  format: csv
  schema: criteo
  train: {CRITEO}
  map: {{ids: [{{hash: {{bins: {BINS}, columns: separate}}}}]}}
"""

# ---- Criteo's layout, read by Python alone ----

FLIP = 0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE  # of XXH3's secret
ODD = 0x9FB21C651E98DF25
GAMMA = 0x9E3779B97F4A7C15


def xxh3(text):
    """XXH3 of 64 bits, of nothing and of 4 to 8 bytes (xxhash.h, XXH3_len_0to16_64b)."""
    if not text:
        return 0x2D06800538D394C2
    h = int.from_bytes(text[-4:], "little") + (int.from_bytes(text[:4], "little") << 32) ^ FLIP
    h ^= (h << 49 | h >> 15) & MASK ^ (h << 24 | h >> 40) & MASK
    h = h * ODD & MASK
    h = (h ^ (h >> 35) + len(text)) * ODD & MASK
    return h ^ h >> 28


def mix(z):
    """The finaliser of splitmix64."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def bin_of(text):
    return mix(mix(xxh3(text) + GAMMA & MASK)) % BINS


def read_criteo():
    with open(CRITEO, "rb") as f:
        rows = [line.rstrip(b"\n").split(b"\t") for line in f]
    assert {len(row) for row in rows} == {40}
    return {"numbers": np.array([[math.log1p(max(float(v or 0), 0)) for v in row[1:14]]
                               for row in rows], np.float32),
            "ids": np.array([[k * BINS + bin_of(v) for k, v in enumerate(row[14:])]
                             for row in rows]),
            "y": np.array([[float(row[0])] for row in rows], np.float32)}


# ---- the same, as weft reads it ----

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("owner", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 1024),
                ("hint", ctypes.c_char * 256), ("name", ctypes.c_char * 256)]


JOB = f"""job: criteo
model: {{input: {{numbers: [13]}}, layers: [dense: 1]}}
loss: binary_crossentropy
data:{DATA}batch: 64
optimizer: sgd
"""


def read_by_weft(lib, field, dtype, code):
    job, out, error = ctypes.c_void_p(), ctypes.POINTER(Tensor)(), Error()
    text = JOB.encode()
    done = lib.weft_job_parse(text, ctypes.c_size_t(len(text)), None, ctypes.byref(job),
                              ctypes.byref(error))
    done = done or lib.weft_job_records(job, None, field.encode(), CRITEO.encode(), code,
                                        ctypes.byref(out), ctypes.byref(error))
    assert done == 0, error.message.decode()
    t = out.contents
    shape = [t.shape[i] for i in range(t.rank)]
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made = np.frombuffer(ctypes.string_at(t.data, size), dtype).reshape(shape).copy()
    lib.weft_tensor_free(ctypes.byref(out))
    lib.weft_job_free(ctypes.byref(job))
    return made


def criteo_is_read_as_python_reads_it(library):
    lib, want = ctypes.CDLL(library), read_criteo()
    for field, dtype, code in (("numbers", np.float32, 1), ("ids", np.int64, 7), ("y", np.float32, 1)):
        got = read_by_weft(lib, field, dtype, code).reshape(want[field].shape)
        wrong = np.abs(got - want[field]) > (1e-6 * want[field] if field == "numbers" else 0)
        assert not wrong.any(), f"{field}: first at {np.argwhere(wrong)[0]}"
    records = len(want["y"])
    assert records == 7200 and 0.1 < want["y"].mean() < 0.4
    print(f"{records} records of 40 columns are as an independent reader has them")


def main(weft, library):
    if not os.path.exists(CRITEO):
        print(f"skipped: there is no {CRITEO}; set WEFT_SHARED to the folder of reference data")
        sys.exit(77)
    criteo_is_read_as_python_reads_it(library)


main(*map(os.path.abspath, sys.argv[1:3]))

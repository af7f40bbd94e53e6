# SPDX-License-Identifier: Apache-2.0
"""The seeds of the fuzzers of data and of other texts: small valid files of each kind.

    corpus_data.py FOLDER

FOLDER/data and FOLDER/texts are made anew, but for what the fuzzers found: found-... The first two bytes
of a file say what it is and how it is read (data.c, texts.c)."""
import glob
import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
IDX, NPY, NPZ, PACKED, TFRECORD, CSV, LIBSVM, TEXT, IMAGES, SURVEY = range(10)
JOB, CLUSTER, MANIFEST, TENSORS, PARTS, WORDS = range(6)
SIZE = 8000  # bytes; a larger one teaches the fuzzer nothing more


class Seeds:
    def __init__(self, folder):
        self.folder, self.total, self.count = folder, 0, 0
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            if not name.startswith("found-"):
                os.remove(os.path.join(folder, name))

    def put(self, name, kind, bits, data):
        if len(data) > SIZE:
            return
        with open(os.path.join(self.folder, f"{name}-{bits:02x}"), "wb") as f:
            f.write(bytes([kind, bits]) + data)
        self.total, self.count = self.total + len(data) + 2, self.count + 1


# ---- arrays ----


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(compression, **arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as z:
        for name, array in arrays.items():
            z.writestr(zipfile.ZipInfo(name + ".npy"), npy(array))
    return out.getvalue()


def idx(kind, *shape):
    size = {8: 1, 0xB: 2, 0xD: 4}[kind]
    n = int(np.prod(shape)) * size
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(range(n))


def zstd(data):
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout


def put_arrays(s):
    s.put("idx-u8", IDX, 0, idx(8, 3, 2, 2))
    s.put("idx-u8", IDX, 0x10, idx(8, 3, 2, 2))
    s.put("idx-f32", IDX, 0, idx(0xD, 2, 3))
    s.put("idx-i16", IDX, 0x10, idx(0xB, 2, 1))
    rows = np.arange(6.0).reshape(2, 3)
    for name, array in {"f64": rows, "big-i32": rows.astype(">i4"), "f16": rows.astype("f2"), "bool": rows > 2,
                        "fortran": np.asfortranarray(rows), "u64": rows.astype("u8"), "words": np.array(["ab"]),
                        "number": np.array(3.0), "fields": np.zeros(2, [("a", "f4"), ("b", "i4")])}.items():
        s.put("npy-" + name, NPY, 0, npy(array))
        s.put("npy-" + name, NPY, 0x11, npy(array))
    s.put("npz-stored", NPZ, 0, npz(zipfile.ZIP_STORED, x=rows))
    s.put("npz-deflated", NPZ, 1, npz(zipfile.ZIP_DEFLATED, x=rows, y=rows[0]))
    for bits, data in {2: npy(np.arange(60.0)), 0: idx(8, 3, 2, 2)}.items():
        s.put("zst", PACKED, bits, zstd(data))
        s.put("gz", PACKED, bits + 1, gzip.compress(data, mtime=0))
    s.put("gz-twice", PACKED, 1, gzip.compress(idx(8, 3, 2, 2)[:9], mtime=0) + gzip.compress(idx(8, 3, 2, 2)[9:], mtime=0))


# ---- records ----


def varint(x):
    out = b""
    while x >= 128:
        out, x = out + bytes([x & 127 | 128]), x >> 7
    return out + bytes([x])


def body(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(more):
    """The features f, i and b, of so many values more than the least."""
    floats = struct.pack(f"<{2 + more}f", *range(2 + more))
    lists = {b"f": body(2, body(1, floats)), b"i": body(3, body(1, b"\1" * (1 + more))),
             b"b": body(1, body(1, b"abc") * (1 + more))}
    return body(1, b"".join(body(1, body(1, name) + body(2, of)) for name, of in lists.items()))


def put_records(s):
    lists = {0x00: (0, 0, 0), 0x01: (0, 0), 0x02: (0, 0), 0x18: (0, 2, 1), 0x09: (0, 2, 1), 0x38: (0, 1, 1), 0x69: (4, 0, 9)}
    for bits, more in lists.items():
        records = [example(n) for n in more]
        s.put("tfrecord", TFRECORD, bits, b"".join(bytes([len(r)]) + r for r in records))


# ---- text ----

TABLE = b'a,b,c,d\n1,2.5,3,hello\n4,,5,"wo,rld"\n-1e5,.5,7,"x""y"\n'
BAGS = TABLE.replace(b",5,", b",5|6|7|8,")
WORDS_OF = b"a,b,c,d\r\n1,2,red,x\r\n3,4,blue,y\r\n"
BARE = b"1,2.5,3,hello\n4,,5,world\n7,8,9,\n"
PAIRS = b"1 1:2 4:.5\n0 2:1e3 # c\n1 3:1 7:2 9:4\n\n"
PROSE = b"the quick brown Fox. jumps over!\nthe lazy dog\n\nagain and again\n"
LABELLED = b"1\tthe quick brown\n0\tlazy dog, dog\n2\tend\n"


def put_text(s):
    for bits in (0x01, 0x05, 0x81, 0x95):
        s.put("csv", CSV, bits, TABLE)
    for bits in (0x61, 0x65, 0xF1):
        s.put("csv-bags", CSV, bits, BAGS)
    for bits in (0x00, 0x04, 0x80):
        s.put("csv-bare", CSV, bits, BARE)
    s.put("csv-tabs", CSV, 0x02, BARE.replace(b",", b"\t"))
    s.put("csv-words", CSV, 0x09, WORDS_OF)
    for bits in (0x00, 0x01, 0x03, 0x05, 0x09, 0x22, 0x11):
        s.put("libsvm", LIBSVM, bits, PAIRS)
    for bits in (0x00, 0x01, 0x02, 0x08, 0x10, 0x20, 0x21, 0xB2):
        s.put("text", TEXT, bits, PROSE)
    for bits in (0x40, 0x48, 0x50):
        s.put("text-labelled", TEXT, bits, LABELLED)
    for name, bits, data in (("libsvm", 0, PAIRS), ("text", 1, PROSE), ("labelled", 1, LABELLED), ("csv", 2, TABLE),
                             ("csv-gz", 0xA, gzip.compress(TABLE, mtime=0)), ("csv-zst", 0xE, zstd(TABLE))):
        s.put("survey-" + name, SURVEY, bits, data)


def put_images(s):
    from PIL import Image  # not needed to run the tests

    rgb = Image.fromarray(np.arange(360, dtype="u1").reshape(12, 10, 3))
    for name, image, more in (("rgb", rgb, {}), ("grey", rgb.convert("L"), {}), ("palette", rgb.convert("P"), {}),
                              ("alpha", rgb.convert("RGBA"), {}), ("progressive", rgb, {"progressive": True})):
        for bits, kind in ((0, "jpeg"), (1, "png")):
            if (name in ("palette", "alpha") and kind == "jpeg") or (name == "progressive" and kind == "png"):
                continue
            out = io.BytesIO()
            image.save(out, kind, **more)
            s.put(f"{kind}-{name}", IMAGES, bits, out.getvalue())
            s.put(f"{kind}-{name}", IMAGES, bits | 2, out.getvalue())


# ---- texts ----


def put_conf(s):
    for path in sorted(glob.glob(os.path.join(ROOT, "examples/*.yaml"))):
        with open(path, "rb") as f:
            text = f.read()
        name = os.path.basename(path)[: -len(".yaml")]
        is_cluster = b"\ncluster:" in text
        s.put(("cluster-" if is_cluster else "job-") + name, CLUSTER if is_cluster else JOB, 1, text)
    with open(os.path.join(ROOT, "cluster.yaml"), "rb") as f:
        s.put("cluster", CLUSTER, 0, f.read())
    s.put("cluster-hosts", CLUSTER, 0, b"master: {address: 'tcp://127.0.0.1:7000', http: '127.0.0.1:7001'}\n"
          b"ps:\n  - {address: 'tcp://127.0.0.1:7002'}\n  - {address: 'ipc:///tmp/ps1'}\nworkers:\n  "
          b"- {address: 'tcp://127.0.0.1:7003', threads: 1, devices: [cpu:0]}\nstate_dir: .weft\n")


def put_manifest(s):
    chief = "e89d9685343f5a24"
    slices = [{"offset": 0, "count": 8, "file": 0, "updates": 4}, {"offset": 8, "count": 4, "file": 1, "updates": 4}]
    kernel = {"name": "dense/kernel", "dtype": "float32", "shape": [4, 3], "kind": "trainable",
              "slots": ["momentum", "velocity"], "slices": slices}
    table = {"name": "vectors", "dtype": "bfloat16", "shape": [64, 2], "rows": "unbounded", "kind": "trainable",
             "slots": ["accumulator"], "slices": [{"offset": 2 * i, "count": 2, "file": 0, "updates": 1} for i in range(64)]}
    learnt = [{"field": "x", "step": 0, "type": "standardise", "dtype": "float32", "shape": [1], "numbers": [0.5, 2.0]},
              {"field": "z", "step": 0, "type": "vocabulary", "dtype": "uint8", "shape": [], "words": ["red", "blue"]}]
    for bits, variables in ((0, [kernel]), (1, [kernel, table])):
        text = json.dumps({
            "format": 1, "weft": "0.1.0", "job": "one#1", "digest": "fe0888f50628f024", "global_step": 4,
            "cut": {"generation": 1, "number": 1, "chief": chief}, "pause_ms": 4, "created_ms": 1795911086783,
            "seed": "0000000000000001", "optimizer": "adam", "options": {"learning_rate": 0.001, "beta_1": 0.9},
            "files": [{"name": f"shard-0000{i}-of-00002.safetensors", "bytes": 5344, "xxh3": "39163eda2da533f3fb53295e4ac10a18"}
                      for i in range(2)],
            "variables": variables,
            "ledger": {"epoch": 0, "records": 80, "split_records": 16, "evaluated": False, "next_cut": 8,
                       "finished": [[0, 64]], "open": [{"split": 4, "begin": 64, "next": 64, "end": 80}]},
            "clocks": [{"worker": 0, "incarnation": chief, "step": 4}], "metrics": {"loss": 0.5}, "learnt": learnt}, indent=1)
        s.put("manifest", MANIFEST, bits, text[:-2].encode())


def put_tensors(s):
    head = {"__metadata__": {"a": "b"}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "b": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]},
            "i": {"dtype": "I64", "shape": [], "data_offsets": [28, 36]}}
    text = json.dumps(head).encode()
    s.put("safetensors", TENSORS, 0, struct.pack("<Q", len(text)) + text + bytes(36))


def part(slice_, codec, frame, coding, offset, size):
    return struct.pack("<IBBBBIIQQ", slice_, codec, frame, coding, 0, offset, size, 1, 0)


def put_messages(s):
    tables = {"f32": [part(0, 0, 0, 0, 0, 16)], "halves": [part(0, 0, 0, 1, 0, 16), part(1, 0, 1, 2, 0, 8)],
              "rows": [part(0, 2, 0, 0, 0, 16), part(0, 4, 1, 0, 0, 8)], "int8": [part(0, 0, 0, 3, 0, 20)],
              "top-k": [part(0, 0, 0, 4, 0, 12)], "none": [part(0, 1, 0, 0, 0, 0)], "ids": [part(3, 4, 0, 0, 0, 16)]}
    before = {0: b"", 1: struct.pack("<III", 1, 2, 3), 2: struct.pack("<II", 1, 2)}
    frames = struct.pack("<IIf", 2, 1, 0.5) + bytes(28)
    for bits, more in before.items():
        for name, parts in tables.items():
            if (name == "ids") != (bits == 1):
                continue  # a pull has ids alone
            control = more + struct.pack("<II", len(parts), 0) + b"".join(parts)
            s.put("parts-" + name, PARTS, bits, bytes([len(control) // 4]) + control + frames)
    s.put("decided", WORDS, 0, bytes([3]) + struct.pack("<IQ", 1, 5))
    s.put("slices", WORDS, 0, bytes([2]) + struct.pack("<II", 1, 5))


def main(folder):
    data, texts = Seeds(os.path.join(folder, "data")), Seeds(os.path.join(folder, "texts"))
    for put in (put_arrays, put_records, put_text, put_images):
        put(data)
    for put in (put_conf, put_manifest, put_tensors, put_messages):
        put(texts)
    print(f"data: {data.count} files, {data.total} bytes; texts: {texts.count} files, {texts.total} bytes")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))

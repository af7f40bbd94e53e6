# SPDX-License-Identifier: Apache-2.0
"""Bags in the files of all formats: the same bags make the same steps, wherever they come from.

    bag_forms.py WEFT [TEST...]
"""
import json
import struct

from losses import losses
from weftlib import Cluster, check, main, needs

needs("numpy")
import numpy as np  # noqa: E402

RECORDS, ROWS, MOST = 1024, 400, 7
JOB = """job: forms
model:
  input: {{ids: {{shape: [{most}], dtype: int64}}, w: [{most}]}}
  layers:
    - embedding: {{input_dim: {rows}, output_dim: 3, combiner: mean, inputs: [ids, w]}}
    - dense: 1
loss: {{binary_crossentropy: {{from_logits: true}}}}
data: {{shuffle: false, {data}}}
batch: 32
optimizer: {{adagrad: {{learning_rate: 0.1}}}}
tables: [embedding/embeddings]
"""


def records():
    """Rising ids as libsvm wants them, weights that any text holds exactly, and labels."""
    rng = np.random.default_rng(4)
    out = []
    for _ in range(RECORDS):
        ids = np.sort(rng.choice(ROWS, rng.integers(0, MOST + 1), replace=False))
        out.append((ids, rng.integers(1, 17, len(ids)) / 8, int(ids.sum() % 3 == 0)))
    out[17] = (np.array([], int), np.array([]), 1)
    return out


CRC = [0] * 256
for i in range(256):
    CRC[i] = i
    for _ in range(8):
        CRC[i] = CRC[i] >> 1 ^ (0x82F63B78 if CRC[i] & 1 else 0)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(n):
    n &= 2**64 - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def feature(values):
    """A tf.train.Feature: a float_list of floats, else an int64_list."""
    if np.asarray(values).dtype.kind == "f":
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(3, field(1, b"".join(varint(int(v)) for v in values)))


def write_tfrecord(path, rows):
    with open(path, "wb") as f:
        for ids, w, y in rows:
            entries = {"ids": ids, "w": w, "y": [y]}
            data = field(1, b"".join(field(1, field(1, k.encode()) + field(2, feature(v)))
                                     for k, v in entries.items()))
            head = struct.pack("<Q", len(data))
            f.write(head + masked(head) + data + masked(data))


def write_all(c, rows):
    with open(c.path("t.libsvm"), "w", encoding="ascii") as f:
        for ids, w, y in rows:
            f.write(f"{y} " + " ".join(f"{i + 1}:{x:g}" for i, x in zip(ids, w)) + "\n")
    with open(c.path("t.csv"), "w", encoding="ascii") as f:
        f.write("y,ids,w\n")
        for ids, w, y in rows:
            f.write(f"{y},{'|'.join(map(str, ids))},{'|'.join(f'{x:g}' for x in w)}\n")
    write_tfrecord(c.path("t.tfrecord"), rows)
    filled = np.full((len(rows), MOST), -1), np.zeros((len(rows), MOST), np.float32)
    for k, (ids, w, _) in enumerate(rows):
        filled[0][k, :len(ids)], filled[1][k, :len(ids)] = ids, w
    np.save(c.path("ids.npy"), filled[0])
    np.save(c.path("w.npy"), filled[1])
    np.save(c.path("y.npy"), np.array([[y] for _, _, y in rows], np.float32))


FORMS = {
    "npy": "format: npy, train: {ids: ids.npy, w: w.npy, y: y.npy}",
    "libsvm": "format: libsvm, train: t.libsvm, columns: {ids: indices, w: values, y: label}",
    "csv": "format: csv, train: t.csv, columns: {ids: ids, w: w, y: y}, bags: [[ids, w]]",
    "tfrecord": "format: tfrecord, train: {ids: t.tfrecord, w: t.tfrecord, y: t.tfrecord}, "
                "bags: [[ids, w]]",
}


def run(c, data, most=MOST, rows=ROWS, code=0):
    open(c.path("losses"), "w", encoding="ascii").close()
    c.write("forms.yaml", JOB.format(data=data, most=most, rows=rows))
    c.must("train", "forms.yaml", "--check", code=code)
    result = c.must("train", "forms.yaml", code=code)
    return losses(c) if code == 0 else result.err.strip().splitlines()[-1]


def cluster(weft):
    c = Cluster(weft, ps=1, workers=1)
    c.env["WEFT_LOSS_LOG"] = c.path("losses")
    return c


def all_forms_give_the_same_steps(weft):
    want = None
    for form, data in FORMS.items():
        with cluster(weft) as c:
            write_all(c, records())
            got = run(c, data)
        check(len(got) == RECORDS // 32, f"{form}: {len(got)} steps")
        check(want in (None, got), f"{form}: other losses than npy has")
        want = got


def ids_are_hashed_and_words_numbered(weft):
    words = [[f"w{i}" for i in ids] for ids, _, _ in records()]
    y = [y for _, _, y in records()]
    with cluster(weft) as c:
        with open(c.path("t.csv"), "w", encoding="ascii") as f:
            f.write("y;ids\n" + "".join(f"{t};{' '.join(w)}\n" for w, t in zip(words, y)))
        for steps in ("hash: 400", "vocabulary: 399"):
            data = ("format: csv, delimiter: ';', train: t.csv, columns: {ids: ids, y: y}, "
                    f"bags: [ids], separator: ' ', map: {{ids: [{{{steps}}}]}}")
            text = JOB.format(data=data, most=MOST, rows=ROWS)
            c.write("forms.yaml", text.replace("w: [7]", "").replace("[ids, w]}", "ids}"))
            c.must("train", "forms.yaml", "--set", f"job={steps[:4]}")
        check(len(losses(c)) == 2 * RECORDS // 32, "steps")


def bags_are_surveyed_and_predicted(weft):
    rows = records()
    ids = np.concatenate([ids for ids, _, _ in rows])
    for form in ("csv", "libsvm"):
        with cluster(weft) as c:
            write_all(c, rows)
            run(c, FORMS[form])
            shown = json.loads(c.bare("data", "stats", "--job", c.path("forms.yaml"), "--json").out)
            of = {column["name"]: column for column in shown["columns"]}
            check(of["ids"]["least"] == 0 and of["ids"]["most"] == ids.max() and
                  of["ids"]["distinct"] == len(np.unique(ids)), f"{form}: {of['ids']}")
            check(of["w"]["numbers"] == of["ids"]["numbers"] == len(ids) and
                  of["w"]["missing"] == MOST * RECORDS - len(ids), f"{form}: {of['w']}")
            for name, path in (("a", f"ids=t.{form} w=t.{form}"), ("b", "ids=ids.npy w=w.npy")):
                c.must("predict", "forms", "--input", *path.split(), "-o", f"{name}.npy")
            check(np.array_equal(np.load(c.path("a.npy")), np.load(c.path("b.npy"))), form)


def long_bags_fail_or_are_cut(weft):
    for form in ("libsvm", "csv", "tfrecord"):
        with cluster(weft) as c:
            write_all(c, records())
            said = run(c, FORMS[form], most=4, code=1)
            check("a bag of more than the 4 values" in said and "on_long_bag: cut" in said, said)
            place = "record " if form == "tfrecord" else f"t.{form}:"
            check(place in said, said)
        with cluster(weft) as c:
            write_all(c, [(ids[:4], w[:4], y) for ids, w, y in records()])
            want = run(c, FORMS[form], most=4)
        with cluster(weft) as c:
            write_all(c, records())
            check(run(c, FORMS[form] + ", on_long_bag: cut", most=4) == want, f"{form}: is not cut")
            n = sum(len(ids) > 4 for ids, _, _ in records()) * 2  # ids, and their weights
            check(f"data.bags_cut bags={n} " in c.logs(), c.logs())


def what_is_no_bag_is_said(weft):
    lines = {"csv": [("1,3|-4,1|1", 'column "ids": the id -4 of a bag is below 0'),
                     ("1,3|4,1|1|2", 'column "w" has 3 weights, and column "ids" 2 ids'),
                     ("1,,1", 'column "w" has 1 weights, and column "ids" 0 ids'),
                     ("1,3|x,1|1", 'column "ids": "x" is no whole number'),
                     ("1,3|4,1|1,5", "a row of 4 columns, where there are 3")],
             "libsvm": [("1 3:1 -4:1", "is no pair"), ("1 4:1 3:1", "the index 3 stands behind 4"),
                        ("1 401:1", "names row 400 of the table")]}
    for form, cases in lines.items():
        with cluster(weft) as c:
            for line, says in cases:
                write_all(c, records())
                with open(c.path(f"t.{form}"), "a", encoding="ascii") as f:
                    f.write(line + "\n")
                said = run_bad(c, FORMS[form])
                check(says in said, f"{line}: {said}")
                check("names row" in says or f"t.{form}:" in said, said)
    with cluster(weft) as c:
        rows = records()
        rows[40] = (np.array([3, -4]), np.array([1.0, 1.0]), 1)
        write_tfrecord(c.path("t.tfrecord"), rows)
        said = run_bad(c, FORMS["tfrecord"])
        check('t.tfrecord: record 40: the feature "ids": the id -4' in said, said)


def run_bad(c, data):
    c.write("forms.yaml", JOB.format(data=data, most=MOST, rows=ROWS))
    return c.must("train", "forms.yaml", code=1).err.strip().splitlines()[-1]


def what_a_job_may_not_say_is_refused(weft):
    csv = FORMS["csv"]
    cases = [(csv.replace("[[ids, w]]", "[tags]"), '"bags" names "tags", which is no field'),
             (csv.replace("[[ids, w]]", "[[ids, w, y]]"), "the two of ids and their weights, not 3"),
             (csv.replace("bags: [[ids, w]]", "separator: ';'"), '"separator" is for bags'),
             (csv + ", separator: ','", "data.separator and data.delimiter are the same"),
             (csv + ", on_long_bag: drop", "fail, cut"),
             (csv + ", map: {ids: [{clip: [0, 5]}]}", "a bag of ids takes hash, vocabulary or text_vectorization"),
             (csv + ", map: {ids: [{hash: {bins: 5, columns: separate}}]}", "are no columns"),
             (csv.replace("ids: ids,", "ids: [ids, w],"), "has 2 columns"),
             (FORMS["npy"] + ", bags: [ids]", 'data of the format "npy" has no "bags"'),
             (csv + ", map: {w: [{scale: 2}]}", ""),
             (FORMS["libsvm"].replace("indices", "index"), 'libsvm has the columns label, features, indices')]
    with cluster(weft) as c:
        write_all(c, records())
        for data, says in cases:
            c.write("forms.yaml", JOB.format(data=data, most=MOST, rows=ROWS))
            result = c.run("train", "forms.yaml", "--check")
            check((result.code != 0) == bool(says) and says in result.err, f"{data}: {result}")
        for form in ("csv", "libsvm"):
            text = JOB.format(data=FORMS[form], most=MOST, rows=ROWS)
            for layer in ("dense: {units: 3, inputs: ids}",
                          "embedding: {input_dim: 400, output_dim: 3, inputs: ids}"):
                start = text.index("embedding: {input_dim")
                c.write("forms.yaml", text[:start] + layer + text[text.index("\n", start):])
                result = c.run("train", "forms.yaml", "--check")
                check(result.code == 2 and f'forms.yaml:5: layer "{layer[:layer.index(":")]}": the input '
                      '"ids" holds bags of ids' in result.err and "combiner: sum" in result.err, str(result))


main([all_forms_give_the_same_steps, bags_are_surveyed_and_predicted, ids_are_hashed_and_words_numbered, long_bags_fail_or_are_cut,
      what_is_no_bag_is_said, what_a_job_may_not_say_is_refused])

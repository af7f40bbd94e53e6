# SPDX-License-Identifier: Apache-2.0
"""Jobs whose data is csv, read from its files as it is needed.

    csv_stream.py WEFT [TEST...]

The files are written by Python's csv module, with everything that it quotes.
"""
import csv
import gzip
import io

from losses import cluster_with_data, losses
from weftlib import Cluster, check, main, needs, one_sentence, until

needs("numpy", "onnx")
import ledger  # noqa: E402
import numpy as np  # noqa: E402

RECORDS, WIDTH = 2000, 24
JOB = """
job: table
model:
  input: {{x: [24]}}
  layers: [{{dense: {{units: 10}}}}]
loss: sparse_categorical_crossentropy
data: {data}
batch: 32
epochs: 2
optimizer: {{sgd: {{learning_rate: 0.1}}}}
seed: 7
"""
NPY = "{format: npy, shuffle: false, train: {x: x.npy, y: y.npy}}"
COLUMNS = "columns: {x: [%s], y: label}" % ", ".join(f"f{i}" for i in range(WIDTH))


def write_table(path, header, rows, **options):
    """A csv file of Python's making, through gzip if its name says so."""
    text = io.StringIO()
    out = csv.writer(text, **options)
    out.writerows(([header] if header else []) + rows)
    data = text.getvalue().encode()
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as f:
        f.write(data)


def table(c):
    """x.npy and y.npy as rows of text, with a column that nobody reads between."""
    x, y = np.load(c.path("x.npy")), np.load(c.path("y.npy"))
    notes = ["", "a, b", 'say "a"', "two\nlines", "semi;colon", " blanks "]
    names = [f"f{i}" for i in range(WIDTH)]
    return (names[:5] + ["note"] + names[5:] + ["label"],
            [[*map(repr, map(float, r[:5])), notes[i % 6], *map(repr, map(float, r[5:])), f"c{k}"]
             for i, (r, k) in enumerate(zip(x, y))])


def words(names):
    return "[%s]" % ", ".join(names)


def csv_trains_as_npy_does(weft):
    schema = "schema: {label: %s}" % words(f"c{i}" for i in range(10))
    whole = "schema: {%s}"
    forms = {
        "plain": ("train: t.csv", schema, ["t.csv"], {}),
        "packed": ("train: [a.csv.gz, b.csv.gz, c.csv]", schema,
                                ["a.csv.gz", "b.csv.gz", "c.csv"], {"lineterminator": "\n"}),
        "headless": ('train: t.tsv, header: false, delimiter: "\\t"', whole, ["t.tsv"],
                      {"delimiter": "\t", "quoting": csv.QUOTE_ALL}),
    }
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        c.write("table.yaml", JOB.format(data=NPY))
        c.must("train", "--local", "table.yaml")
        want = losses(c)
        header, rows = table(c)
        check(len(want) == 2 * -(-RECORDS // 32), f"{len(want)} steps")
        for form, (train, said, files, options) in forms.items():
            for i, name in enumerate(files):
                part = rows[i * len(rows) // len(files):(i + 1) * len(rows) // len(files)]
                write_table(c.path(name), header if said == schema else None, part, **options)
            if said == whole:
                said = whole % ", ".join(
                    f"{h}: {words(f'c{i}' for i in range(10)) if h == 'label' else 'float32'}"
                    for h in header)
            c.write(f"{form}.yaml", JOB.replace("job: table", f"job: {form}").format(
                data=f"{{format: csv, shuffle: false, {train}, {COLUMNS}, {said}}}"))
            c.write("losses", "")
            c.must("train", "--local", f"{form}.yaml")
            check(losses(c) == want, f"{form}: other losses")


def each_record_is_trained_in_each_epoch_whoever_dies(weft):
    records, epochs = 4096, 12
    with Cluster(weft, ps=2, workers=2) as c:
        ledger.write_job(c.path(), records, epochs, 8, 64, 200, 1, 3)
        rows = [[str(i), "x" * 180] for i in range(records)]
        for k in range(2):
            half = rows[k * records // 2:(k + 1) * records // 2]
            write_table(c.path(f"ids{k}.csv.gz"), ["id", "padding"], half)
        text = c.read("ledger.yaml")
        c.write("ledger.yaml", text.replace("format: npy", "format: csv").replace(
            "train: {x: ids.npy}",
            "train: [ids0.csv.gz, ids1.csv.gz]\n  columns: {x: id}\n  schema: {id: int64}"))
        c.must("up")
        process = c.start("train", "ledger.yaml")
        for epoch in (2, 5):
            c.until_job("ledger", lambda j, e=epoch: j["epoch"] > e, f"epoch {epoch}")
            c.kill("worker/0")
        result = c.end_of(process)
        check(result.code == 0, str(result))
        c.must("export", "ledger", "-o", "out.onnx")
        counts = ledger.read_counts(c.path("out.onnx"))
        # What the dead had pushed and not yet reported is trained again.
        check(epochs <= counts.min() and counts.max() <= epochs + 2,
              f"trained {counts.min()} to {counts.max()} times in {epochs} epochs")


def a_bad_cell_ends_the_job_with_its_place(weft):
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        header, rows = table(c)
        rows[1234][3] = "many"
        write_table(c.path("t.csv"), header, rows)
        data = "{format: csv, train: t.csv, %s, schema: {label: %s}}" % (
            COLUMNS, words(f"c{i}" for i in range(10)))
        c.write("table.yaml", JOB.format(data=data))
        # The header, and a line more for each note of two lines.
        line = 2 + 1234 + sum(i % 6 == 3 for i in range(1234))
        result = c.run("train", "table.yaml")
        check(result.code == 1, str(result))
        check(f't.csv:{line}: column "f3": "many" is not a number' in result.out + result.err,
              str(result))


def what_does_not_fit_is_refused_in_a_sentence(weft):
    rows = [["1", "a"], ["2", "b"]]
    cases = [
        ("train: none.csv, columns: {x: n, y: l}", "there is no file"),
        ("train: t.csv, columns: {x: number, y: l}", 'no column "number"'),
        ("train: t.csv, columns: {x: [n], y: l}, schema: {l: [a, b, a]}", "twice"),
        ("train: t.csv, columns: {x: [n], y: l}, delimiter: ';'", 'no column "n"'),
        ("train: {x: t.csv, y: t.csv}", "has all fields in each file"),
        ("train: empty.csv, columns: {x: [n], y: l}", "holds no records"),
        ("train: t.csv.gz, columns: {x: [n], y: l}", "does not hold gzip data"),
    ]
    job = JOB.replace("[24]", "[1]")
    with Cluster(weft, ps=1, workers=1) as c:
        write_table(c.path("t.csv"), ["n", "l"], rows)
        write_table(c.path("empty.csv"), ["n", "l"], [])
        c.write("t.csv.gz", c.read("t.csv"))
        for i, (data, says) in enumerate(cases):
            c.write("bad.yaml", job.replace("table", f"table{i}").format(
                data="{format: csv, %s}" % data))
            result = c.run("train", "--local", "bad.yaml")
            check(result.code not in (0, 70) and says in result.err, f"{data}: {result}")
            one_sentence(result.err.strip().splitlines()[-1])


def memory_does_not_grow_with_the_file(weft):
    def peak(rows):
        with cluster_with_data(weft, 1, 64, WIDTH) as c:
            header, some = table(c)
            write_table(c.path("t.csv"), header, some * rows)
            data = "{format: csv, train: t.csv, %s, schema: {label: %s}}" % (
                COLUMNS, words(f"c{i}" for i in range(10)))
            c.write("table.yaml", JOB.format(data=data).replace("batch: 32", "batch: 512"))
            c.must("up")
            c.must("train", "table.yaml")
            return c.most_memory("worker/0")

    small, large = peak(40), peak(4000)  # 1 and 100 MiB of text
    check(large < small + (48 << 20), f"{small >> 20} MiB, then {large >> 20} MiB")


def bad_lines_are_skipped_if_the_job_says_so(weft):
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        schema = "schema: {label: %s}" % words(f"c{i}" for i in range(10))
        header, rows = table(c)
        write_table(c.path("good.csv"), header, rows)
        data = "{format: csv, shuffle: false, train: %s, " + COLUMNS + ", " + schema
        c.write("table.yaml", JOB.format(data=data % "good.csv" + "}"))
        c.must("train", "--local", "table.yaml")
        want = losses(c)
        for i in range(3, RECORDS, 100):
            rows.insert(i, rows[i][:-1] if i % 200 > 100 else rows[i] + ["1,2"])
        write_table(c.path("bad.csv"), header, rows)
        line = sum("two\nlines" in r for r in rows[:3]) + 5
        c.write("table.yaml", JOB.format(data=data % "bad.csv" + ", on_bad_line: skip}"))
        result = c.must("train", "--check", "table.yaml")
        check("20 lines of another number of columns are skipped; the first is" in result.err
              and f"bad.csv:{line}" in result.err, f"{line}: {result}")
        c.write("losses", "")
        c.must("up")
        c.must("train", "table.yaml")
        check(losses(c) == want, "other records")
        check("data.lines_skipped lines=20" in c.read(".weft/logs/worker-0.log"), "no event")
        c.write("table.yaml", JOB.format(data=data % "bad.csv" + "}"))
        result = c.run("train", "table.yaml")
        check(result.code == 1 and "columns, where there are" in result.err, str(result))


main([csv_trains_as_npy_does, each_record_is_trained_in_each_epoch_whoever_dies,
      a_bad_cell_ends_the_job_with_its_place, what_does_not_fit_is_refused_in_a_sentence,
      memory_does_not_grow_with_the_file,
      bad_lines_are_skipped_if_the_job_says_so])

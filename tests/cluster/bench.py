# SPDX-License-Identifier: Apache-2.0
"""bench.py WEFT - `weft bench`: its table, its JSON, its errors, and that it leaves nothing behind."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from weftlib import check, one_sentence, until

WEFT = os.path.abspath(sys.argv[1])
FIELDS = {"transport", "bytes", "dtype", "optimizer", "work", "samples", "gb_per_s", "p50_us", "p90_us",
          "p99_us", "zeromq_p50_us", "times_zeromq", "memcpy_gb_per_s", "memcpy_all_gb_per_s",
          "moved_bytes", "limit_us", "of_limit", "cache_line_ns"}
ROW_FIELDS = {"transport", "table_rows", "dim", "dtype", "row_bytes", "ids", "optimizer", "work", "samples", "rows",
              "rows_per_s", "p50_us", "p90_us", "p99_us", "flat_p50_us", "flat_rows_per_s", "of_flat",
              "cache_line_ns"}
WORKS = {"sgd": ["push", "pull", "push+pull"], "adam": ["push", "push+pull"]}


def bench(folder, *words, code=0):
    done = subprocess.run([WEFT, "bench", *words], text=True, capture_output=True, timeout=100,
                          env=dict(os.environ, TMPDIR=folder))
    check(done.returncode == code, f"{words}: exit {done.returncode}, wanted {code}: {done.stderr}")
    check(os.listdir(folder) == [], f"{words} leaves {os.listdir(folder)}")
    check(not processes(folder), f"{words} leaves {processes(folder)}")
    return done.stdout if code == 0 else one_sentence(done.stderr)


def processes(folder):
    """Those whose command line names the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if folder.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def check_json(folder):
    said = json.loads(bench(folder, "--sizes", "4KiB,1MB", "--steps", "7", "--ps", "2", "--workers",
                            "2", "--json"))
    check((said["ps"], said["workers"], said["push"], said["pull"]) == (2, 2, "f32", "f32"), said)
    got = [(r["transport"], r["bytes"], r["optimizer"], r["work"]) for r in said["rows"]]
    want = [(t, b, o, w) for t in ("shm", "ipc", "tcp") for b in (4096, 1000000)
            for o in WORKS for w in WORKS[o]]
    check(got == want, got)
    for row in said["rows"]:
        check(set(row) == FIELDS, set(row) ^ FIELDS)
        check(row["samples"] == 2 * 7 and row["dtype"] == "float32", row)
        check(0 < row["p50_us"] <= row["p90_us"] <= row["p99_us"] < 60e6, row)
        check(row["zeromq_p50_us"] > 0 and row["memcpy_gb_per_s"] > 0, row)
        slots = 2 if row["optimizer"] == "adam" else 0
        part = {"push": 3 + 2 * slots, "pull": 1, "push+pull": 4 + 2 * slots}[row["work"]]
        check(row["moved_bytes"] == 2 * row["bytes"] * part, row)
        close = lambda a, b: abs(a - b) < 1e-3 * b
        sent = 2 * row["bytes"] * (2 if row["work"] == "push+pull" else 1)
        check(close(row["gb_per_s"] * 1e3 * row["p50_us"], sent), row)
        check(close(row["times_zeromq"] * row["zeromq_p50_us"], row["p50_us"]), row)
        best = max(row["memcpy_gb_per_s"], row["memcpy_all_gb_per_s"])
        check(close(row["limit_us"] * best * 1e3, row["moved_bytes"]), row)
        check(close(row["of_limit"] * row["p50_us"], row["limit_us"]), row)


def rows_of(said):
    """The table's lines; behind them is the processors' distance, of which a machine of one has none."""
    lines = said.splitlines()
    if len(os.sched_getaffinity(0)) > 1:
        last = re.fullmatch(r"A cache line went to another processor and back in (\d+) to (\d+) ns.", lines.pop())
        check(last and 0 < int(last.group(1)) <= int(last.group(2)), said)
    return lines


def check_table(folder):
    lines = rows_of(bench(folder, "--sizes=64KiB", "--transports", "tcp", "--steps", "3"))
    check(lines[0].split()[:4] == ["TRANSPORT", "SIZE", "RULE", "WORK"], lines)
    check([l.split()[:4] for l in lines[1:]] ==
          [["tcp", "64KiB", o, w] for o in WORKS for w in WORKS[o]], lines)


def check_codec(folder):
    said = json.loads(bench(folder, "--sizes", "1MB", "--transports", "tcp", "--steps", "5", "--codec", "int8,bf16",
                            "--json"))
    check((said["push"], said["pull"]) == ("int8", "bf16"), said)
    check([r["bytes"] for r in said["rows"]] == 5 * [1000000], said)


def check_rows(folder):
    said = json.loads(bench(folder, "--table", "--rows", "5000", "--dim", "8", "--ids", "700", "--steps", "5",
                            "--ps", "2", "--workers", "2", "--json"))
    check((said["ps"], said["workers"]) == (2, 2), said)
    got = [(r["transport"], r["ids"], r["work"]) for r in said["rows"]]
    want = [(t, i, w) for t in ("shm", "ipc", "tcp") for i in ("uniform", "zipf") for w in WORKS["sgd"]]
    check(got == want, got)
    for row in said["rows"]:
        check(set(row) == ROW_FIELDS, set(row) ^ ROW_FIELDS)
        check((row["table_rows"], row["dim"], row["optimizer"]) == (5000, 8, "adagrad"), row)
        check((row["dtype"], row["row_bytes"]) == ("float32", 8 * 4 + 8 * 4), row)
        check(row["samples"] == 2 * 5, row)
        check(0 < row["p50_us"] <= row["p90_us"] <= row["p99_us"] < 60e6, row)
        # 700 draws from 5,000 name 5000 (1 - (1 - 1/5000)^700) = 653 rows; by Zipf there are fewer
        low, high = (640, 665) if row["ids"] == "uniform" else (200, 500)
        check(low < row["rows"] < high, row)
        close = lambda a, b: abs(a - b) < 1e-3 * b
        check(close(row["rows_per_s"] * row["p50_us"] / 1e6, 2 * row["rows"]), row)
        check(close(row["flat_rows_per_s"] * row["flat_p50_us"] / 1e6, row["rows"]), row)
        check(close(row["of_flat"] * row["flat_rows_per_s"], row["rows_per_s"]), row)
    said = json.loads(bench(folder, "--table", "--rows", "300", "--transports", "shm,tcp", "--steps", "4", "--at-once",
                            "3", "--json"))
    check(said["at_once"] == 3 and len(said["rows"]) == 12, said)
    check(all(row["samples"] == 4 and row["p50_us"] > 0 for row in said["rows"]), said)
    lines = rows_of(bench(folder, "--table", "--rows=300", "--dtype", "int8", "--transports", "tcp", "--steps",
                          "3"))
    check(lines[0].split()[:7] == ["TRANSPORT", "TABLE", "DTYPE", "BYTES", "IDS", "ROWS", "RULE"], lines)
    check([l.split()[:9] for l in lines[1:]] ==
          [["tcp", "300", "x", "16", "int8", "84", i, lines[1 + k].split()[7], "adagrad"]
           for k, i in enumerate(3 * ["uniform"] + 3 * ["zipf"])], lines)


def check_errors(folder):
    for words, says in [
            (["--sizes", "4KB"], '--sizes must be a size, not "4KB"'),
            (["--sizes", "4KiB,,1MiB"], '--sizes must be a size, not ""'),
            (["--table", "--dtype", "int4"], '--dtype: rows of a table are not held as "int4"'),
            (["--dtype", "int8"], "--dtype is about a table"),
            (["--sizes", "6"], "--sizes: 6 is no whole number of float32; write a multiple of 4"),
            (["--sizes", "900TB"], "--sizes: 900TB takes 16 times as much"),
            (["--sizes", ",".join(17 * ["4KiB"])], "--sizes has more than 16 words"),
            (["--transports", "tcpp"], 'there is no transport "tcpp"; did you mean tcp?'),
            (["--transports", "carrier"], 'there is no transport "carrier"; write shm or ipc or tcp'),
            (["--ps", "0"], "--ps must be a whole number from 1 to 64"),
            (["--workers", "65"], "--workers must be a whole number from 1 to 64"),
            (["--steps", "many"], "--steps must be a whole number"),
            (["--table", "--sizes", "4KiB"], "--sizes is not about a table; write --rows and --dim"),
            (["--rows", "7"], "--rows is about a table; add --table"),
            (["--codec", "int9"], 'there is no codec "int9" of gradients; did you mean int8?'),
            (["--codec", "bf16,int8"], 'there is no codec "int8" of weights; weights travel as f32'),
            (["--table", "--codec", "bf16"], "--codec is not about a table"),
            (["--ids", "7"], "--ids is about a table; add --table"),
            (["--at-once", "2"], "--at-once is about a table; add --table"),
            (["--table", "--at-once", "4"], "--at-once must be a whole number from 1 to 3"),
            (["--table", "--rows", "0"], "--rows must be a whole number from 1 to 1000000000"),
            (["--table", "--dim", "9999"], "--dim must be a whole number from 1 to 4096"),
            (["--table", "--ids", "none"], "--ids must be a whole number"),
            (["--table", "--rows", "900000000", "--dim", "4096"], "write a smaller table"),
            (["--table", "--rows", "3", "--ps", "4"], "--rows: 3 rows on 4 ps"),
            (["--size", "4KiB"], "did you mean --sizes?"),
            (["now"], '"now" is one word too many')]:
        said = bench(folder, *words, code=2)
        check(says in said, f"{words}: {said}")


def check_interrupt(folder):
    p = subprocess.Popen([WEFT, "bench", "--sizes", "1MiB", "--steps", "1000000"], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                         env=dict(os.environ, TMPDIR=folder))
    until(lambda: processes(folder), "its ps runs")
    os.killpg(p.pid, signal.SIGINT)  # as Ctrl-C does: all of the group
    out, err = p.communicate(timeout=60)
    check(p.returncode == 5, f"exit {p.returncode}: {err}")
    check(out == "", out)
    one_sentence(err)
    check(not processes(folder) and os.listdir(folder) == [], os.listdir(folder))


def check_kill(folder):
    """Killed, it leaves its folder, but no process."""
    p = subprocess.Popen([WEFT, "bench", "--sizes", "1MiB", "--steps", "1000000"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env=dict(os.environ, TMPDIR=folder))
    until(lambda: processes(folder), "its ps runs")
    p.kill()
    p.wait()
    until(lambda: not processes(folder), "its ps has ended")


with tempfile.TemporaryDirectory(prefix="bench-") as folder:
    check_errors(folder)
    check_table(folder)
    check_json(folder)
    check_codec(folder)
    check_rows(folder)
    check_interrupt(folder)
    check_kill(folder)

# SPDX-License-Identifier: Apache-2.0
"""weft predict --spread with files that are near some hosts: their splits go to workers there first, and the result is
the same."""
import re
import signal

import weftlib
from locality import spread_hosts
from predict_spread import by_workers, content, make, parts

weftlib.needs("numpy", "onnx")

import numpy as np  # noqa: E402

FILES, EACH, SPLIT = 4, 4096, 32
WORDS = ["predict", "m.onnx", "--input", "x=part-*.npy", "--batch", "32", "--split-records", str(SPLIT), "-o"]
HOSTS = ["--hosts", "part-[01].npy=127.0.0.1", "--hosts", "part-[23].npy=elsewhere,127.0.0.2"]
JOB = """job: near
model: {{input: {{x: [200]}}, layers: [dense: {{units: 2000, activation: relu}}, dense: {{units: 3}}]}}
loss: mean_squared_error
data:
  format: {format}
  train: {train}
  shuffle: false
  hosts: {{"part-[01].*": 127.0.0.1, "part-[23].*": 127.0.0.2}}
batch: 16
epochs: 1
optimizer: {{sgd: {{learning_rate: 0.001}}}}
"""


def make_parts(c):
    make(c, records=FILES * EACH)
    for i, rows in enumerate(np.split(np.load(c.path("rows.npy")), FILES)):
        np.save(c.path(f"part-{i}.npy"), rows)


def interrupted(c, words, many, meanwhile=lambda: None):
    """The job of a prediction that is stopped when it has so many parts."""
    out = words[words.index("-o") + 1]
    p = c.start(*words)
    weftlib.until(lambda: len(parts(c, out)) > 10 or p.poll() is not None, "the first parts")
    meanwhile()
    weftlib.until(lambda: len(parts(c, out)) > many or p.poll() is not None, "parts")
    p.send_signal(signal.SIGINT)
    result = c.end_of(p)
    weftlib.check(result.code == 5, str(result))
    return c.status()["jobs"][-1]


def check_near(job, least=0.9):
    near, far = job.get("splits_near", 0), job.get("splits_far", 0)
    weftlib.check(near >= least * (near + far) and near > 50, f"{near} near, {far} far")


def splits_go_to_workers_near_their_files(weft):
    with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
        spread_hosts(c)
        make_parts(c)
        c.must(*WORDS, "one.npy")
        c.must("up")
        job = interrupted(c, [*WORDS, "all.npy", "--spread", *HOSTS], 150)
        check_near(job)
        shown = c.must("status", job["name"]).out
        weftlib.check(re.search(r"near +\d+ of \d+ splits went to workers near their files", shown), shown)
        told = by_workers(c.run(*WORDS, "all.npy", "--spread")).err  # the same request without hosts
        weftlib.check("parts of all.npy are there: it goes on" in told, told)
        weftlib.check(content(c, "all.npy") == content(c, "one.npy"), "other bytes")
        by_workers(c.run(*WORDS, "more.npy", "--spread", *HOSTS))  # to the end, where any worker helps
        weftlib.check(content(c, "more.npy") == content(c, "one.npy"), "other bytes")
        swapped = [w.replace("127.0.0.1", "nobody") for w in HOSTS]
        job = interrupted(c, [*WORDS, "last.npy", "--spread", *swapped], 150)
        weftlib.check(job["splits_far"] > 0, f"{job}")  # worker 0 has none near it, and helps


def a_new_master_knows_them_too(weft):
    with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
        spread_hosts(c)
        make_parts(c)
        c.must("up")
        job = interrupted(c, [*WORDS, "all.npy", "--spread", *HOSTS], 200, lambda: c.kill("master"))
        check_near(job, 0.8)


def a_job_names_hosts_itself(weft):
    """Of npy files and of text; a word of the command is beside those of the job."""
    for kind in ("npy", "csv"):
        with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
            spread_hosts(c)
            make_parts(c)
            if kind == "npy":
                train = "{x: part-*.npy, y: y.npy}"
                np.save(c.path("y.npy"), np.zeros((FILES * EACH, 3), np.float32))
            else:
                train = "part-*.csv\n  columns: {x: [" + ", ".join(f"c{i}" for i in range(200)) + "], y: [c0, c1, c2]}"
                for i in range(FILES):
                    rows = np.load(c.path(f"part-{i}.npy"))
                    np.savetxt(c.path(f"part-{i}.csv"), rows, "%.3f", ",",
                               header=",".join(f"c{k}" for k in range(200)), comments="")
            c.write("job.yaml", JOB.format(format=kind, train=train))
            c.must("train", "job.yaml")
            c.must("up")
            words = ["predict", "near", "--input", f"x=part-*.{kind}", "--batch", "32", "--split-records", str(SPLIT),
                     "-o"]
            c.must(*words, "one.npy")
            check_near(interrupted(c, [*words, "all.npy", "--spread"], 150))
            by_workers(c.run(*words, "all.npy", "--spread"))
            weftlib.check(content(c, "all.npy") == content(c, "one.npy"), f"{kind}: other bytes")


def wrong_words_are_refused(weft):
    with weftlib.Cluster(weft, ps=1, workers=1) as c:
        make(c, hidden=20, records=100)
        words = ["predict", "m.onnx", "--input", "x=rows.npy", "-o", "a.npy"]
        for hosts in ("rows.npy", "rows.npy=", "=h", "rows.npy=a,,b", "rows.npy=a,"):
            told = weftlib.one_sentence(c.must(*words, "--spread", "--hosts", hosts, code=2).err)
            weftlib.check(f'"{hosts}" names no host; write --hosts FILE=HOST,HOST' in told, told)
        told = weftlib.one_sentence(c.must(*words, "--hosts", "rows.npy=h", code=2).err)
        weftlib.check("add --spread, or leave --hosts out" in told, told)
        told = weftlib.one_sentence(c.must(*words, "--spread", "--hosts", "other.npy=h", code=2).err)
        weftlib.check(re.search(r'--hosts: no input is read from ".*/other\.npy"; write it as a file of --input', told),
                      told)
        by_workers(c.run(*words, "--spread", "--hosts", "rows.npy=h"))


if __name__ == "__main__":
    weftlib.main([splits_go_to_workers_near_their_files, a_new_master_knows_them_too, a_job_names_hosts_itself,
                  wrong_words_are_refused])

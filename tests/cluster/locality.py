# SPDX-License-Identifier: Apache-2.0
"""data.hosts: splits go to workers that have their files near, and to others rather than to nobody."""
import json
import re

import weftlib

weftlib.needs("numpy")

import numpy as np  # noqa: E402

FILES, EACH, SPLIT = 4, 512, 32
JOB = """job: near
model: {{input: {{x: [3]}}, layers: [dense: {{units: 1}}]}}
loss: mean_squared_error
data:
  format: csv
  train: part-*.csv
  columns: {{x: [a, b, c], y: d}}
  shuffle: false
  split_records: {split}
  {hosts}
batch: 16
epochs: {epochs}
optimizer: {{sgd: {{learning_rate: 0.01}}}}
"""
NEAR = """hosts: {"part-[01].csv": 127.0.0.1, "part-[23].csv": [127.0.0.2, elsewhere]}"""


def make(c, hosts=NEAR, epochs=1):
    rng = np.random.default_rng(1)
    for i in range(FILES):
        c.write(f"part-{i}.csv", "a,b,c,d\n" + "".join(f"{a:.4f},{b:.4f},{d:.4f},{a + b - d:.4f}\n"
                                                       for a, b, d in rng.normal(size=(EACH, 3))))
    c.write("job.yaml", JOB.format(split=SPLIT, hosts=hosts, epochs=epochs))


def spread_hosts(c):
    """The workers' addresses on two hosts of loopback."""
    text = c.read("cluster.yaml")
    first = text.index("workers:")
    at = text.rindex("127.0.0.1", first, text.index("state_dir"))
    c.write("cluster.yaml", text[:at] + "127.0.0.2" + text[at + 9:])


def each_worker_reads_what_is_near(weft):
    with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
        spread_hosts(c)
        make(c, epochs=4)
        c.must("up")
        c.must("train", "job.yaml")
        job = c.job("near")
        splits = 4 * FILES * EACH // SPLIT
        weftlib.check(job["splits_near"] + job["splits_far"] == splits, f"{job}")
        # The last ones of an epoch go to whoever is free.
        weftlib.check(job["splits_near"] >= splits * 3 / 4, f"{job['splits_near']} of {splits} are near")
        shown = c.must("status", "near").out
        weftlib.check(re.search(rf"near +{job['splits_near']} of {splits} splits went to workers near their files", shown),
                      shown)


def shuffled_files_are_near_under_shard_file(weft):
    with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
        spread_hosts(c)
        make(c, NEAR + "\n  shard: file", epochs=4)
        c.write("job.yaml", c.read("job.yaml").replace("shuffle: false", "shuffle: true"))
        c.must("up")
        c.must("train", "job.yaml")
        job = c.job("near")
        splits = 4 * FILES * EACH // SPLIT
        weftlib.check(job["splits_near"] + job["splits_far"] == splits, f"{job}")
        weftlib.check(job["splits_near"] >= splits * 3 / 4, f"{job['splits_near']} of {splits} are near")


def one_worker_takes_all(weft):
    """Those that are near it, and then the others: none is left."""
    with weftlib.Cluster(weft, ps=1, workers=1, transport="tcp") as c:
        make(c)
        c.must("train", "job.yaml")
        events = [json.loads(line) for line in c.read(".weft/jobs/near#1/events.jsonl").splitlines()]
        weftlib.check(any(e.get("event") == "job.epoch" or "epoch 1" in json.dumps(e) for e in events), str(events))
        c.must("up")
        c.must("train", "job.yaml")
        job = c.job("near")
        weftlib.check((job["splits_near"], job["splits_far"]) == (32, 32), f"{job['splits_near']} {job['splits_far']}")


def a_new_master_knows_it_too(weft):
    with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
        spread_hosts(c)
        make(c, epochs=400)
        c.must("up")
        p = c.start("train", "job.yaml")
        c.until_job("near", lambda j: j["epoch"] >= 3, "three epochs")
        c.kill("master")
        weftlib.check(c.end_of(p).code == 0, "the job fails")
        job = c.job("near")
        near, far = job.get("splits_near", 0), job.get("splits_far", 0)
        weftlib.check(near > 1000 and near > 2 * far, f"{near} near, {far} far")


def bad_hosts_are_refused(weft):
    with weftlib.Cluster(weft, ps=1, workers=2, transport="tcp") as c:
        for hosts, text in (("hosts: [a]", "job.yaml:10: \"hosts\" is a map of files"),
                            ("hosts: {}", "job.yaml:10: \"hosts\" is a map of files"),
                            ("hosts: {a.csv: []}", "job.yaml:10: \"a.csv\" names no host"),
                            ('hosts: {"part-*.csv": a, "parts-*.csv": b}', "/parts-*.csv, and \"train\" has no such file; name files")):
            make(c, hosts)
            told = c.must("train", "job.yaml", "--check", code=2).err
            weftlib.check(text in told, told)
        make(c, 'hosts: {"part-*.csv": [127.0.0.1, 127.0.0.9]}')
        spread_hosts(c)
        told = c.must("train", "job.yaml", "--check").err
        weftlib.check('job.yaml:10: "hosts" names 127.0.0.9, and no worker has that name' in told, told)
        weftlib.check("names 127.0.0.1," not in told, told)
        make(c)
        c.write("job.yaml", c.read("job.yaml").replace("shuffle: false", "shuffle: true"))
        told = c.must("train", "job.yaml", "--check", code=2).err
        weftlib.check("a split of shuffled records is of all files, and near no host; add shuffle: false" in told, told)


if __name__ == "__main__":
    weftlib.main([each_worker_reads_what_is_near, shuffled_files_are_near_under_shard_file, one_worker_takes_all, a_new_master_knows_it_too, bad_hosts_are_refused])

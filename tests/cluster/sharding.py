# SPDX-License-Identifier: Apache-2.0
"""data.shard: no batch has records of two files, each record is trained once an epoch, whoever dies or
begins anew, and with another policy too."""
import re

import weftlib
from weftlib import Cluster, check

weftlib.needs("numpy", "onnx")

import ledger  # noqa: E402
import numpy as np  # noqa: E402

SIZES, BATCH, SPLIT = (100, 1370, 205), 8, 32
RECORDS = sum(SIZES)
STEPS = sum(-(-n // BATCH) for n in SIZES)  # of an epoch: the last batch of each file is short
assert STEPS != -(-RECORDS // BATCH)


def make(c, epochs, shard="file", sizes=SIZES, every_steps=300):
    ledger.write_job(c.path(), sum(sizes), epochs, BATCH, SPLIT, every_steps, 1, 5)
    ids = np.arange(sum(sizes), dtype=np.int64)
    for i, part in enumerate(np.split(ids, np.cumsum(sizes)[:-1])):
        np.save(c.path(f"ids-{i}.npy"), part)
    text = c.read("ledger.yaml").replace("{x: ids.npy}", "{x: ids-*.npy}")
    c.write("ledger.yaml", text.replace("  split_records", f"  shard: {shard}\n  split_records"))


def counts_of(c):
    c.must("export", "ledger", "-o", "out.onnx")
    return ledger.read_counts(c.path("out.onnx"))


def all_equal(c, epochs, what):
    counts = counts_of(c)
    check((counts == epochs).all(), f"{what}: trained {counts.min()} to {counts.max()} times in {epochs} epochs")


def no_batch_is_of_two_files(weft):
    with Cluster(weft, ps=2, workers=2) as c:
        make(c, 6)
        c.env["WEFT_LOSS_LOG"] = c.path("losses")
        c.must("up")
        c.must("train", "ledger.yaml")
        job = c.job("ledger")
        check(job["step"] == 6 * STEPS, f"{job['step']} steps, not {6 * STEPS}")
        check((job["shard"], job["shard_files"]) == ("file", 3), f"{job}")
        all_equal(c, 6, "file")
        splits = [line.split()[2:5] for line in c.read("losses").splitlines()]
        want = sum(-(-n // SPLIT) for n in SIZES)
        for epoch in range(6):
            found = {int(s) for e, s, _ in splits if int(e) == epoch}
            check(found == set(range(want)), f"epoch {epoch} has splits {sorted(found)}, not 0 to {want - 1}")
        check(len({tuple(s) for s in splits}) == 6 * STEPS, "a batch was trained twice")


def the_status_says_it(weft):
    for shard, sizes, said in (("file", SIZES, "file: no split has records of two of the 3 files"),
                               ("auto", SIZES, "file: no split has records of two of the 3 files"),
                               ("auto", (1000,), "data: splits are of any files")):
        with Cluster(weft, ps=1, workers=2) as c:
            make(c, 10**6, shard, sizes)
            c.must("up")
            c.must("submit", "ledger.yaml")
            c.until_job("ledger", lambda j: j["epoch"] >= 2, "two epochs")
            shown = c.must("status", "ledger").out
            check(re.search(rf"shard +{said}", shown), shown)


def fewer_files_than_workers_are_told_once(weft):
    with Cluster(weft, ps=1, workers=3) as c:
        make(c, 4, sizes=(500, 70))
        c.must("up")
        c.must("train", "ledger.yaml")
        told = c.read(".weft/jobs/ledger#1/events.jsonl").count("2 files for 3 workers")
        check(told == 1, f"told {told} times")
        all_equal(c, 4, "two files")


def a_dead_workers_files_are_dealt_again(weft):
    epochs = 12
    with Cluster(weft, ps=2, workers=2) as c:
        make(c, epochs)
        c.must("up")
        process = c.start("train", "ledger.yaml")
        for epoch in (2, 5):
            c.until_job("ledger", lambda j, e=epoch: j["epoch"] > e, f"epoch {epoch}")
            c.kill("worker/0")
        result = c.end_of(process)
        check(result.code == 0, str(result))
        counts = counts_of(c)
        # What the dead had pushed and not yet reported is trained again.
        check(epochs <= counts.min() and counts.max() <= epochs + 2,
              f"trained {counts.min()} to {counts.max()} times in {epochs} epochs")


def a_new_master_goes_on_with_the_epoch(weft):
    epochs = 30
    with Cluster(weft, ps=1, workers=2) as c:
        make(c, epochs)
        c.must("up")
        process = c.start("train", "ledger.yaml")
        for epoch in (3, 8, 14):
            c.until_job("ledger", lambda j, e=epoch: j["epoch"] > e, f"epoch {epoch}")
            c.kill("master")
        result = c.end_of(process)
        check(result.code == 0, str(result))
        all_equal(c, epochs, "a master that began anew")
        check(c.job("ledger")["step"] == epochs * STEPS, "other batches")


def a_checkpoint_goes_on_with_another_policy(weft):
    """From the middle of an epoch: that one ends as it began."""
    for first, then in (("file", "file"), ("file", "data"), ("data", "file")):
        with Cluster(weft, ps=2, workers=2) as c:
            make(c, 10**6, first, every_steps=130)
            c.must("up")
            c.must("submit", "ledger.yaml")
            c.until_job("ledger", lambda j: j["checkpoint"] is not None and j["checkpoint"] > 700, "checkpoints")
            c.kill_all()
            c.must("up")
            epochs = 1 + c.job("ledger")["step"] // STEPS + 6
            if first == then:
                told = c.must("recover", "ledger", "--set", "data.shard=auto", code=2).err
                check('"data.shard" cannot change on the way' in told, told)
                c.must("recover", "ledger", "--set", f"epochs={epochs}")
            else:
                make(c, epochs, then)
                c.must("train", "--resume", "ledger.yaml")
            all_equal(c, epochs, f"{first}, then {then}")


def steps_bound_a_job(weft):
    """So many steps, and no more, where the last batches of files are short."""
    with Cluster(weft, ps=1, workers=1) as c:
        make(c, 1)
        steps = STEPS + 20
        c.write("ledger.yaml", re.sub("epochs: 1\n", f"steps: {steps}\nepochs: 5\n", c.read("ledger.yaml")))
        c.must("train", "ledger.yaml")
        newest = c.checkpoints("ledger")[-1]
        check(newest == f"step-{steps:08d}", newest)


def bad_words_are_refused(weft):
    with Cluster(weft) as c:
        make(c, 1, "files")
        told = c.must("train", "ledger.yaml", "--check", code=2).err
        check(re.search(r'ledger.yaml:\d+: unknown shard "files"; did you mean "file"', told), told)


if __name__ == "__main__":
    weftlib.main([no_batch_is_of_two_files, the_status_says_it, fewer_files_than_workers_are_told_once,
                  a_dead_workers_files_are_dealt_again, a_new_master_goes_on_with_the_epoch,
                  a_checkpoint_goes_on_with_another_policy, steps_bound_a_job, bad_words_are_refused])

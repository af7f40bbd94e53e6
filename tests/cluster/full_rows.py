# SPDX-License-Identifier: Apache-2.0
"""Rows of a table that have no room in the ps's folder: the job ends with one sentence.

    full_rows.py WEFT [TEST...]
"""
from small_disk import SmallDisk
from weftlib import Cluster, check, main, needs, skip

needs("numpy")
import numpy as np  # noqa: E402

RECORDS, WIDTH = 4096, 2000
JOB = f"""job: rows
model:
  input: {{id: {{shape: [1], dtype: int64}}}}
  layers:
    - embedding: {{input_dim: unbounded, output_dim: {WIDTH}, inputs: id, name: emb}}
    - flatten: {{}}
    - dense: {{units: 1}}
loss: mean_squared_error
data: {{format: npy, train: {{id: id.npy, y: y.npy}}}}
batch: 64
optimizer: {{adagrad: {{learning_rate: 0.05}}}}
checkpoint: {{every_steps: 100000}}
consistency: {{mode: MODE}}
tables: [{{match: "emb/*", rows: unbounded, max_rows: 64, when_full: disk}}]
"""


def a_full_disk_ends_the_job_with_a_sentence(weft):
    """4096 rows of 16 KB, and room for 12 MiB; a slice takes 64 KiB of it when it is made."""
    for mode, workers in (("async", 1), ("bsp", 2)):
        with Cluster(weft, ps=1, workers=workers) as c, SmallDisk(c.path(".weft", "rows"), 12) as disk:
            if not disk.mounted:
                skip("only root may mount a small file system")
            np.save(c.path("id.npy"), np.arange(RECORDS, dtype=np.int64)[:, None])
            np.save(c.path("y.npy"), np.ones((RECORDS, 1), np.float32))
            c.write("rows.yaml", JOB.replace("MODE", mode))
            line = c.must("train", "rows.yaml", code=1).err.strip().split("\n")[-1]
            check(".weft/rows has no room for" in line and "No space left on device" in line, line)


main([a_full_disk_ends_the_job_with_a_sentence])

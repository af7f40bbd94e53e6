# SPDX-License-Identifier: Apache-2.0
"""A worker on a device whose memory the host cannot touch: the cpu's losses to the last bit.

    remote_device.py WEFT WORKER [TEST...]

WORKER is weft-worker with the devices of tests/kit/remote_device.h; it stands in a folder of its own
beside copies of the other programs, since weft starts what lies beside it. Convolution, batch
normalisation, dropout, clipping, and batches of two sizes are in the job; so are evaluations and a
gradient that is the sum of two batches.
"""
import os
import shutil
import sys
import tempfile

from weftlib import Cluster, check, main, needs

needs("numpy")
import numpy as np  # noqa: E402

RECORDS, BATCH = 1500, 32
PAIR = "cpu-remote+cpu-remote-half"
JOB = """
job: remote
model:
  input: {{x: [1, 12, 12]}}
  layers:
    - conv2d: {{filters: 6, kernel_size: 3, data_format: channels_first{first}}}
    - batch_normalization: {{axis: 1{second}}}
    - activation: relu
    - flatten
    - dropout: {{rate: 0.2{first}}}
    - dense: {{units: 5{second}}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: npy
  train: {{x: x.npy, y: y.npy}}
  eval: {{x: x.npy, y: y.npy}}
  split_records: 500
batch: {batch}
epochs: 2
optimizer: {{adam: {{learning_rate: 0.001, clipnorm: 1.0{more}}}}}
consistency: {{mode: async, pipeline: {pipeline}}}
seed: 7
"""


def write_data(c):
    x = np.random.default_rng(3).normal(size=(RECORDS, 1, 12, 12)).astype(np.float32)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), np.argmax(x.reshape(RECORDS, -1)[:, :5], axis=1).astype(np.int64))


def job(pipeline, more="", devices=()):
    """The job's text; its layers are on the two devices in turn where two are given."""
    first, second = (f", device: {d}" for d in devices) if devices else ("", "")
    return JOB.format(batch=BATCH, pipeline=pipeline, more=more, first=first, second=second)


def losses(weft, device, pipeline, more):
    """The line of each step, with its loss as a hexadecimal float, and what the evaluations gave."""
    devices = device.split("+") if "+" in device else ()
    with Cluster(weft, ps=2, workers=1, env={"WEFT_TEST_DEVICE": device}) as c:
        c.env["WEFT_LOSS_LOG"] = c.path("losses")
        write_data(c)
        c.write("remote.yaml", job(pipeline, more, devices))
        c.must("train", "remote.yaml")
        return c.read("losses").splitlines()


def with_worker(weft, worker, test):
    folder = tempfile.mkdtemp(prefix="weft-remote-")
    try:
        for name in ("weft", "weft-master", "weft-ps"):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(weft)), name), folder)
        shutil.copy(worker, os.path.join(folder, "weft-worker"))
        test(os.path.join(folder, "weft"))
    finally:
        shutil.rmtree(folder)


def a_job_on_a_remote_device_has_the_bits_of_the_cpu(weft):
    def compare(remote):
        for pipeline, more in ((0, ""), (1, ""), (0, ", gradient_accumulation_steps: 2")):
            want = losses(weft, "cpu", pipeline, more)
            check(len(want) > RECORDS // BATCH // 2, f"{len(want)} steps")
            for device in ("cpu-remote", "cpu-remote-half", PAIR):
                got = losses(remote, device, pipeline, more)
                check(got == want, f"{device}, pipeline {pipeline}{more}: the losses differ")

    with_worker(weft, WORKER, compare)


def a_layer_on_a_device_that_no_worker_has_ends_the_job(weft):
    with Cluster(weft, ps=1, workers=1) as c:
        write_data(c)
        c.write("remote.yaml", job(0, devices=("cpu", "gpu7")))
        said = c.run("train", "remote.yaml")
        check(said.code != 0, "the job trained")
        for words in ("is for the device gpu7", "list it under devices in cluster.yaml"):
            check(words in said.out + said.err, f"{words!r} is not in: {said.out}{said.err}")


if __name__ == "__main__":
    WORKER = sys.argv.pop(2)
    main([a_job_on_a_remote_device_has_the_bits_of_the_cpu, a_layer_on_a_device_that_no_worker_has_ends_the_job])

# SPDX-License-Identifier: Apache-2.0
"""A job whose model is divided among devices: two workers with one card, and the card beside the processor."""
CLUSTER = """cluster: gpu
master: {{address: 'ipc://{folder}/0.sock'}}
workers:
{workers}
state_dir: .weft
checkpoint_dir: checkpoints
"""
JOB = """job: stages
model:
  input: {{x: [784]}}
  layers:
    - dense: {{units: 128, activation: relu, name: low}}
    - batch_normalization: {{name: norm}}
    - dropout: {{rate: 0.2, name: drop}}
    - dense: {{units: 10, name: high}}
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data:
  format: idx
  train: {{x: {data}/train-images-idx3-ubyte.gz, y: {data}/train-labels-idx1-ubyte.gz}}
  eval: {{x: {data}/t10k-images-idx3-ubyte.gz, y: {data}/t10k-labels-idx1-ubyte.gz}}
  map: {{x: [{{scale: 0.00392156862745098}}, {{reshape: [784]}}]}}
  split_records: 400
batch: {batch}
epochs: 1
optimizer: {{adam: {{learning_rate: 0.001{accumulate}}}}}
deterministic: true
seed: 1
{place}
"""
MICRO_BATCHES, BATCH = 4, 64
# {name: (the devices of each worker, what the job says of stages)}; "GPU" is the card.
WAYS = {
    "one": ([["GPU"]], "strategy: local"),
    "two workers": ([["GPU"], ["GPU"]], '{"low/*": worker/0, "high/*": worker/1}'),
    "beside the processor": ([["GPU", "cpu"]], '{"low/*": "GPU", "high/*": cpu}'),
    "the processor": ([["cpu:0", "cpu:1"]], '{"low/*": "cpu:0", "high/*": "cpu:1"}'),
}
# Which has the bits of which, and which follows it closely. The card's sums are in an order of their own.
SAME, CLOSE = ("two workers", "one"), (("one", "the processor"), ("beside the processor", "the processor"))


def prepare(way, data, device, folder):
    """Writes a job and its cluster into a folder."""
    devices, place = WAYS[way]
    divided = way != "one"
    workers = "\n".join(f"  - {{address: 'ipc://{folder}/{i + 1}.sock', threads: {len(d)}, devices: {d}}}"
                        for i, d in enumerate(devices))
    place = f"place: {place}\nmicro_batches: {MICRO_BATCHES}" if divided else place
    with open(f"{folder}/cluster.yaml", "w", encoding="utf-8") as f:
        f.write(CLUSTER.format(folder=folder, workers=workers).replace("GPU", device))
    with open(f"{folder}/job.yaml", "w", encoding="utf-8") as f:
        f.write(JOB.format(data=data, batch=BATCH if divided else BATCH // MICRO_BATCHES,
                           accumulate="" if divided else f", gradient_accumulation_steps: {MICRO_BATCHES}",
                           place=place.replace("GPU", device)))


def differences(losses):
    """{what: the largest difference of two ways' losses, relative}, and what is wrong or ""."""
    figures = {}
    for a, b in (SAME, *CLOSE):
        if len(losses[a]) != len(losses[b]) or not losses[a]:
            return figures, f"{a} made {len(losses[a])} steps, {b} {len(losses[b])}"
        figures[f"{a}, {b}"] = max(abs(x - y) / abs(y) for x, y in zip(losses[a], losses[b]))
    if losses[SAME[0]] != losses[SAME[1]]:
        return figures, f"{SAME[0]} have other losses than {SAME[1]} with the same micro-batches"
    if max(figures.values()) > 0.05:
        return figures, f"losses differ from the processor's: {figures}"
    return figures, ""

# SPDX-License-Identifier: Apache-2.0
"""Data as people have it at hand: the same records in other forms train the same model.

    data_forms.py WEFT [TEST...]

Every form is held against a job on plain npy files, loss by loss and bit for bit.
"""
import csv
import gzip
import os
import re

from losses import cluster_with_data, losses
from weftlib import Cluster, check, main, needs, one_sentence, shared

needs("numpy")
import numpy as np  # noqa: E402

RECORDS, WIDTH = 2000, 24
JOB = """
job: {name}
model:
  input: {{x: [24]}}
  layers: [{{dense: {{units: 10}}}}]
loss: sparse_categorical_crossentropy
metrics: [accuracy]
data: {data}
batch: 32
epochs: 2
optimizer: {{sgd: {{learning_rate: 0.1}}}}
seed: 7
"""
ARRAYS = "{format: npy, train: {x: a.npy, y: b.npy}, eval: {x: c.npy, y: d.npy}}"


def evaluated(result):
    """loss and accuracy of the last evaluation, as the last line shows them."""
    found = re.search(r"done: .*val_loss (\S+)  val_accuracy (\S+)", result.out)
    check(found, f"no evaluation in {result}")
    return found.groups()


def outcome(c, name, data, *args):
    """The losses of all steps, and the last evaluation."""
    c.write(f"{name}.yaml", JOB.format(name=name, data=data))
    c.write("losses", "")
    result = c.must("train", *args, f"{name}.yaml")
    return losses(c), evaluated(result)


def cut_by_hand(c, records):
    """The files of ARRAYS: what Keras trains on, and what it validates on, with a fifth held out."""
    x, y = np.load(c.path("x.npy"))[:records], np.load(c.path("y.npy"))[:records]
    at = int(np.floor(records * (1 - 0.2)))
    for name, part in zip("abcd", (x[:at], y[:at], x[at:], y[at:])):
        np.save(c.path(f"{name}.npy"), part)
    np.save(c.path("x.npy"), x)
    np.save(c.path("y.npy"), y)
    return x, y


def a_validation_split_is_the_end_of_the_files(weft):
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        x, y = cut_by_hand(c, RECORDS - 3)
        want = outcome(c, "cut", ARRAYS, "--local")
        split = "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.2}"
        got = outcome(c, "split", split, "--local")
        check(got == want, f"evaluated {got[1]}, not {want[1]}; {len(got[0])} losses")
        got = outcome(c, "tasks", split)
        check(got == want, f"a cluster evaluated {got[1]}, not {want[1]}")
        again = c.must("eval", "tasks").out
        check(f"{len(x) - int(len(x) * 0.8)} records" in again and want[1][1] in again, again)
        with open(c.path("t.csv"), "w", encoding="ascii", newline="") as f:
            out = csv.writer(f)
            out.writerow([f"f{i}" for i in range(WIDTH)] + ["label"])
            out.writerows([*map(repr, map(float, r)), int(k)] for r, k in zip(x, y))
        columns = "columns: {x: [%s], y: label}" % ", ".join(f"f{i}" for i in range(WIDTH))
        plain = ARRAYS.replace("format: npy", "format: npy, shuffle: false")
        want = outcome(c, "unmixed", plain, "--local")
        got = outcome(c, "table", "{format: csv, shuffle: false, train: t.csv, %s, "
                      "validation_split: 0.2}" % columns, "--local")
        check(got == want, f"csv: evaluated {got[1]}, not {want[1]}")


def a_recovered_job_holds_out_the_same_records(weft):
    split = "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.2}"
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        cut_by_hand(c, RECORDS)
        want = outcome(c, "whole", ARRAYS, "--local")
        text = JOB.format(name="halved", data=split).replace("epochs: 2", "epochs: 1")
        c.write("halved.yaml", text + "checkpoint: {every_steps: 10}\n")
        c.must("up")
        c.must("train", "halved.yaml")
        c.write("losses", "")
        result = c.must("recover", "halved", "--set", "epochs=2")
        check(evaluated(result) == want[1], f"{evaluated(result)}, not {want[1]}")
        again = losses(c, generation=2)
        check(again == want[0][50:], f"{len(again)} losses after the recovery")


def a_split_that_leaves_nothing_is_refused(weft):
    with cluster_with_data(weft, 1, 3, WIDTH) as c:
        data = "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.9}"
        c.write("none.yaml", JOB.format(name="none", data=data))
        result = c.run("train", "--local", "none.yaml")
        check(result.code == 1, str(result))
        check("a validation_split of 0.9 leaves none for training" in result.err, result.err)


def archives_and_several_files_train_as_one_file_does(weft):
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        x, y = cut_by_hand(c, RECORDS)
        want = outcome(c, "plain", ARRAYS, "--local")
        parts = {k: np.load(c.path(f"{k}.npy")) for k in "abcd"}
        np.savez(c.path("train.npz"), x=parts["a"], labels=parts["b"])
        np.savez_compressed(c.path("eval.npz"), images=parts["c"], y=parts["d"])
        for i, at in enumerate((0, 700, 701)):
            end = (700, 701, len(parts["a"]))[i]
            np.save(c.path(f"x-{i}.npy"), parts["a"][at:end])
            np.savez(c.path(f"y-{i}.npz"), y=parts["b"][at:end])
        with np.load(c.path("eval.npz")) as found:
            check((found["images"] == parts["c"]).all(), "numpy reads another array")
        forms = {
            "npz": "{format: npz, train: {x: train.npz, y: train.npz#labels}, "
                   "eval: {x: eval.npz#images, y: eval.npz}}",
            "pattern": "{format: npy, train: {x: x-*.npy, y: b.npy}, eval: {x: c.npy, y: d.npy}}",
            "list": "{format: npz, train: {x: train.npz, y: [y-0.npz, 'y-[12].npz']}, "
                    "eval: {x: eval.npz#images, y: eval.npz}}",
            "home": "{format: npy, train: {x: ~/a.npy, y: ~/b.npy}, eval: {x: c.npy, y: d.npy}}",
        }
        c.env["HOME"] = c.path("")
        for form, data in forms.items():
            got = outcome(c, form, data, "--local")
            check(got == want, f"{form}: evaluated {got[1]}, not {want[1]}")
        got = outcome(c, "tasks", forms["list"])
        check(got == want, f"a cluster evaluated {got[1]}, not {want[1]}")


def files_that_do_not_fit_are_refused_in_a_sentence(weft):
    cases = {
        "{format: npz, train: {x: t.npz#imags, y: t.npz}}":
            't.npz has no array "imags"; did you mean "images"?',
        "{format: npz, train: {x: none.npz, y: t.npz}}": "there is no file",
        "{format: npz, train: {x: x.npy, y: t.npz}}": "is not a whole zip file",
        "{format: npz, train: {x: o.npz, y: t.npz}}": 'holds elements "|O"',
        "{format: npy, train: {x: part-*.npy, y: y.npy}}": "no file matches",
        "{format: npy, train: {x: [], y: y.npy}}": '"x" names no file',
        "{format: npy, train: {x: $HOME/x.npy, y: y.npy}}": "weft replaces no variables",
        "{format: npy, train: {x: [x.npy, x.npy], y: y.npy}}": "and 1 more holds",
        "{format: npz, train: {x: c.npz, y: t.npz}}": "damaged zip data",
    }
    with cluster_with_data(weft, 1, 64, WIDTH) as c:
        np.savez(c.path("t.npz"), images=np.load(c.path("x.npy")), y=np.load(c.path("y.npy")))
        np.savez(c.path("o.npz"), x=np.array([{"a": 1}, None] * 32, dtype=object))
        np.savez(c.path("c.npz"), x=np.load(c.path("x.npy")))
        with open(c.path("c.npz"), "r+b") as f:
            f.seek(3000)
            byte = f.read(1)
            f.seek(3000)
            f.write(bytes([byte[0] ^ 1]))
        for i, (data, says) in enumerate(cases.items()):
            c.write("bad.yaml", JOB.format(name=f"bad{i}", data=data))
            result = c.run("train", "--local", "bad.yaml")
            check(result.code in (1, 2, 3) and says in result.err, f"{data}: {result}")
            one_sentence(result.err.strip().splitlines()[-1])


def standardised(train, *parts):
    """By the mean and deviation of the training records, column by column."""
    mean, deviation = train.astype(np.float64).mean(0), train.astype(np.float64).std(0)
    deviation[deviation == 0] = 1
    return [((p - mean) / deviation).astype(np.float32) for p in parts]


def standardising_is_by_the_training_records(weft):
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        x = np.load(c.path("x.npy"))
        x[:, 3] = 7
        np.save(c.path("x.npy"), x * np.linspace(0.1, 90, WIDTH, dtype=np.float32) + 5)
        x, y = cut_by_hand(c, RECORDS)
        at = len(np.load(c.path("a.npy")))
        for name in "ac":
            os.rename(c.path(f"{name}.npy"), c.path(f"raw-{name}.npy"))
        for name, part in zip("ac", standardised(x[:at], x[:at], x[at:])):
            np.save(c.path(f"{name}.npy"), part)
        want = outcome(c, "ready", ARRAYS, "--local")
        forms = {
            "files": ARRAYS.replace("a.npy", "raw-a.npy").replace("c.npy", "raw-c.npy"),
            "split": "{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.2}",
        }
        for form, data in forms.items():
            for where, args in (("local", ["--local"]), ("tasks", [])):
                got = outcome(c, f"{form}-{where}", data[:-1] + ", map: {x: standardise}}", *args)
                check(same_losses(got, want), f"{form} {where}: {got[1]}, not {want[1]}")


def buckets_are_numpys(weft):
    edges = [-1, -0.25, 0, 1 / 3, 2]
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        cut_by_hand(c, RECORDS)
        for name in "ac":
            os.rename(c.path(f"{name}.npy"), c.path(f"raw-{name}.npy"))
            raw = np.load(c.path(f"raw-{name}.npy"))
            np.save(c.path(f"{name}.npy"), np.digitize(raw, np.float32(edges)).astype(np.int64))
        want = outcome(c, "ready", ARRAYS, "--local")
        data = ARRAYS.replace("a.npy", "raw-a.npy").replace("c.npy", "raw-c.npy")
        data = data[:-1] + ", map: {x: [{bucketise: [-1, -1/4, 0, 1/3, 2]}]}}"
        got = outcome(c, "buckets", data)
        check(got == want, f"{got[1]}, not {want[1]}; {len(got[0])} losses")


def a_batch_beyond_the_records_is_warned_of(weft):
    with cluster_with_data(weft, 1, 64, WIDTH) as c:
        text = JOB.format(name="large", data="{format: npy, train: {x: x.npy, y: y.npy}}")
        for batch, says in ((32, ""), (64, ""), (65, "the batch of 65 is larger than the 64 training "
                             "records: each epoch is one step")):
            c.write("large.yaml", text.replace("batch: 32", f"batch: {batch}"))
            result = c.must("train", "--check", "large.yaml")
            check(says in result.err and (says or not result.err), str(result))
            check(result.err.count("larger than") == bool(says), str(result))
    with Cluster(weft, ps=1, workers=3) as c:
        np.save(c.path("x.npy"), np.zeros((64, WIDTH), np.float32))
        np.save(c.path("y.npy"), np.zeros(64, np.int64))
        c.write("large.yaml", text)
        result = c.must("train", "--check", "large.yaml")
        check("a batch of 32 for each of 3 workers is more than the 64" in result.err, str(result))
        result = c.must("train", "--check", "--local", "large.yaml")
        check(not result.err, str(result))


def same_losses(got, want):
    """Equal but for the rounding of another order of sums."""
    pairs = list(zip(got[0], want[0]))
    return (len(got[0]) == len(want[0]) and all(a[0] == b[0] for a, b in pairs)
            and max(abs(float.fromhex(a[1]) - float.fromhex(b[1])) for a, b in pairs) < 1e-4
            and abs(float(got[1][0]) - float(want[1][0])) < 1e-3)


def chance_does_not_depend_on_the_workers(weft):
    text = JOB.replace("input: {{x: [24]}}", "input: {{x: [4, 4, 1]}}").replace(
        "layers: [", "layers: [flatten, ")
    data = ("{format: npy, train: {x: x.npy, y: y.npy}, validation_split: 0.2, "
            "map: {x: [{reshape: [4, 6, 1]}, {crop: {size: [4, 4], padding: 1}}, flip]}}")
    results = []
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        for name, args in (("one", ["--local"]), ("two", ["--local"]), ("three", [])):
            c.write(f"{name}.yaml", text.format(name=name, data=data))
            c.write("losses", "")
            c.must("train", *args, f"{name}.yaml")
            results.append(losses(c))
        plain = data.replace(", flip]", "]").replace("{size: [4, 4], padding: 1}", "[4, 4]")
        c.write("plain.yaml", text.format(name="plain", data=plain))
        c.write("losses", "")
        c.must("train", "--local", "plain.yaml")
        check(results[0] == results[1] == results[2], "another chance, with the same seed")
        check(results[0] != losses(c), "no chance at all")


def a_folder_of_images_trains_as_its_pixels_do(weft):
    image = image_module()
    random = np.random.default_rng(5)
    pixels = random.integers(0, 256, (60, 6, 4, 3), dtype=np.uint8)
    labels = np.sort(random.integers(0, 3, 60))
    names = ["ant", "bee 2", "cat"]
    text = JOB.replace("input: {{x: [24]}}", "input: {{x: [6, 4, 3]}}").replace(
        "layers: [", "layers: [flatten, ").replace("units: 10", "units: 3")
    with cluster_with_data(weft, 1, 64, WIDTH) as c:
        for part, first in (("train", 0), ("test", 40)):
            for i in range(60 if first == 0 else 20):
                folder = c.path(part, names[labels[first + i]])
                os.makedirs(folder, exist_ok=True)
                form = ("png", "PNG")[i % 2]
                image.fromarray(pixels[first + i]).save(f"{folder}/{i:03}.{form}", "png")
            np.save(c.path(f"{part}-x.npy"), pixels[first:])
            np.save(c.path(f"{part}-y.npy"), labels[first:])
        c.write("train/ant/notes.txt", "no image")
        c.write("train/readme.md", "no class")
        results = []
        for name, data in (
                ("arrays", "{format: npy, train: {x: train-x.npy, y: train-y.npy}, "
                 "eval: {x: test-x.npy, y: test-y.npy}"),
                ("folders", "{format: images, train: {x: train, y: train#class}, "
                 "eval: {x: test, y: test#class}")):
            c.write("losses", "")
            c.write(f"{name}.yaml", text.format(
                name=name, data=data + ", map: {x: {scale: 1/255}}}"))
            result = c.must("train", "--local", f"{name}.yaml")
            results.append((losses(c), evaluated(result)))
        check(results[0] == results[1], f"{results[0][1]} and {results[1][1]}")
        os.rename(c.path("test", "cat"), c.path("test", "cut"))
        c.write("folders.yaml", text.format(name="other", data=data + "}"))
        result = c.run("train", "--local", "folders.yaml")
        check(result.code == 1 and 'holds the class "cut"' in result.err, str(result))


def resized(images, size):
    """By onnxruntime, an implementation of its own."""
    import onnxruntime
    from onnx import TensorProto, helper
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear",
                            coordinate_transformation_mode="half_pixel")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, None, None]),
                      helper.make_tensor_value_info("s", TensorProto.INT64, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    run = onnxruntime.InferenceSession(model.SerializeToString()).run
    return np.stack([np.stack([
        run(None, {"x": image[None, None, :, :, k].astype(np.float32),
                   "s": np.array([1, 1, *size], np.int64)})[0][0, 0]
        for k in range(3)], -1) for image in images])


def images_of_any_size_are_resized(weft):
    needs("onnx", "onnxruntime")
    image = image_module()
    random = np.random.default_rng(6)
    text = JOB.replace("input: {{x: [24]}}", "input: {{x: [6, 4, 3]}}").replace(
        "layers: [", "layers: [flatten, ").replace("units: 10", "units: 2")
    with cluster_with_data(weft, 1, 64, WIDTH) as c:
        images = [random.integers(0, 256, (*random.integers(2, 14, 2), 3), dtype=np.uint8)
                  for _ in range(40)]
        images[0] = random.integers(0, 256, (6, 4, 3), dtype=np.uint8)
        for i, pixels in enumerate(images):
            folder = c.path("all", "ab"[i // 25])
            os.makedirs(folder, exist_ok=True)
            image.fromarray(pixels).save(f"{folder}/{i:03}.png")
        np.save(c.path("rx.npy"), resized(images, (6, 4)))
        np.save(c.path("ry.npy"), (np.arange(40) // 25).astype(np.int64))
        runs = []
        for name, data in (
                ("ready", "{format: npy, train: {x: rx.npy, y: ry.npy}, "
                 "eval: {x: rx.npy, y: ry.npy}, map: {x: {scale: 1/255}}}"),
                ("folder", "{format: images, train: {x: all, y: all#class}, "
                 "eval: {x: all, y: all#class}, map: {x: [{resize: [6, 4]}, {scale: 1/255}]}}")):
            c.write("losses", "")
            c.write(f"{name}.yaml", text.format(name=name, data=data))
            result = c.must("train", "--local", f"{name}.yaml")
            runs.append((losses(c), evaluated(result)))
        check(same_losses(runs[1], runs[0]), f"{runs[0][1]} and {runs[1][1]}")
        c.write("mixed.yaml", text.format(name="mixed", data=data.replace("{resize: [6, 4]}, ", "")))
        result = c.run("train", "--local", "mixed.yaml")
        check(result.code == 1 and "begin their data.map with resize" in result.err, str(result))

        # Other images go the same way, from an array of theirs.
        np.save(c.path("big.npy"), np.stack([images[0].repeat(3, 0).repeat(2, 1)]))
        np.save(c.path("small.npy"), resized([np.load(c.path("big.npy"))[0]], (6, 4)))
        c.must("predict", "folder", "--input", "x=big.npy", "-o", "p.npy")
        c.must("predict", "ready", "--input", "x=small.npy", "-o", "q.npy")
        gap = np.abs(np.load(c.path("p.npy")) - np.load(c.path("q.npy"))).max()
        check(gap < 1e-3, f"{gap}")


def image_module():
    needs("PIL")
    from PIL import Image
    return Image


LIBSVM = """
job: {name}
model: {{input: {{x: [123]}}, layers: [{{dense: {{units: 1}}}}]}}
loss: {{binary_crossentropy: {{from_logits: true}}}}
metrics: [accuracy]
data: {data}
batch: 64
epochs: 2
optimizer: {{sgd: {{learning_rate: 0.1}}}}
"""


def read_libsvm(path, features):
    """By Python: rows and labels."""
    with open(path, encoding="ascii") as f:
        lines = [line.split() for line in f]
    x = np.zeros((len(lines), features), np.float32)
    for row, (_, *pairs) in zip(x, lines):
        for pair in pairs:
            at, value = pair.split(":")
            row[int(at) - 1] = value
    return x, np.array([float(line[0]) for line in lines], np.float32)


def libsvm_files_train_as_their_rows_do(weft):
    source = os.path.join(shared("data"), "a9a")
    with cluster_with_data(weft, 1, 64, WIDTH) as c:
        for name, part in (("a", "a9a"), ("c", "a9a.t")):
            x, y = read_libsvm(os.path.join(source, part), 123)
            np.save(c.path(f"{name}.npy"), x)
            np.save(c.path(f"{chr(ord(name) + 1)}.npy"), y)
            with open(os.path.join(source, part), encoding="ascii") as f:
                text = f.read()
            c.write(part, "# signs in place of 0 and 1\n" + re.sub("^0", "-1", text, flags=re.M))
        plain = ARRAYS[:-1] + ", shuffle: false}"
        own = "{{format: libsvm, train: {0}a9a, eval: {0}a9a.t, shuffle: false{1}}}"
        runs = []
        for name, data, args in (("rows", plain, ["--local"]),
                                 ("file", own.format(source + "/", ""), ["--local"]),
                                 ("tasks", own.format(source + "/", ", features: 123"), []),
                                 ("signs", own.format("", ""), ["--local"])):
            c.write(f"{name}.yaml", LIBSVM.format(name=name, data=data))
            c.write("losses", "")
            result = c.must("train", *args, f"{name}.yaml")
            runs.append((losses(c), evaluated(result)))
            check(runs[-1] == runs[0], f"{name}: {runs[-1][1]}, not {runs[0][1]}")
        check(float(runs[0][1][1]) > 0.84, f"accuracy {runs[0][1]}")
        c.must("predict", "file", "--input", f"x={source}/a9a.t", "-o", "p.npy")
        c.must("predict", "file", "--input", "x=c.npy", "-o", "q.npy")
        check((np.load(c.path("p.npy")) == np.load(c.path("q.npy"))).all(), "other predictions")

        cases = {
            "1 1:1 124:1": "bad.libsvm:2: the index 124 is beyond the 123 features",
            "1 0:1": "bad.libsvm:2: the index 0, where indices count from 1",
            "2 1:1": "bad.libsvm:2: the label is 2",
        }
        for i, (line, says) in enumerate(cases.items()):
            c.write("bad.libsvm", f"1 1:1\n{line}\n")
            c.write("bad.yaml", LIBSVM.format(name=f"wrong{i}", data="{format: libsvm, train: bad.libsvm}"))
            result = c.run("train", "--local", "bad.yaml")
            check(result.code == 1 and says in result.err, f"{line}: {result}")
            one_sentence(result.err.strip().splitlines()[-1])
        c.write("bad.yaml", LIBSVM.format(name="bad", data="{format: libsvm, train: a9a, feature: 3}"))
        result = c.run("train", "--check", "bad.yaml")
        check(result.code == 2 and 'did you mean "features"?' in result.err, str(result))


def example_class():
    """tf.train.Example, made of descriptors: protobuf's own writer."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="t", syntax="proto3")
    for name, kind in (("BytesList", "BYTES"), ("FloatList", "FLOAT"), ("Int64List", "INT64")):
        file.message_type.add(name=name).field.add(
            name="value", number=1, label=3,
            type=getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind}"))
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for i, (name, kind) in enumerate((("bytes", "Bytes"), ("float", "Float"), ("int64", "Int64"))):
        feature.field.add(name=f"{name}_list", number=i + 1, label=1, type=11, oneof_index=0,
                          type_name=f".t.{kind}List")
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".t.Feature")
    features.field.add(name="feature", number=1, label=3, type=11,
                       type_name=".t.Features.FeatureEntry")
    file.message_type.add(name="Example").field.add(
        name="features", number=1, label=1, type=11, type_name=".t.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


def write_examples(path, x, y):
    """By protobuf, and TensorBoard's writer of records."""
    from tensorboard.summary.writer.record_writer import RecordWriter
    example = example_class()
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as f:
        out = RecordWriter(f)
        for row, label in zip(x, y):
            e = example()
            e.features.feature["pixels"].float_list.value.extend(row)
            e.features.feature["y"].int64_list.value.append(label)
            e.features.feature["raw"].bytes_list.value.append(row.tobytes())
            out.write(e.SerializeToString())
        out.flush()


def tfrecord_files_train_as_their_arrays_do(weft):
    needs("tensorboard", "google.protobuf")
    with cluster_with_data(weft, 1, RECORDS, WIDTH) as c:
        x, y = cut_by_hand(c, RECORDS)
        want = outcome(c, "arrays", ARRAYS, "--local")
        at = int(np.floor(RECORDS * 0.8))
        write_examples(c.path("train-0.tfrecord"), x[:700], y[:700])
        write_examples(c.path("train-1.tfrecord"), x[700:at], y[700:at])
        write_examples(c.path("eval.tfrecord.gz"), x[at:], y[at:])
        data = ("{format: tfrecord, train: {x: train-*.tfrecord#pixels, y: train-*.tfrecord}, "
                "eval: {x: eval.tfrecord.gz#pixels, y: eval.tfrecord.gz}}")
        for name, args in (("records", ["--local"]), ("tasks", [])):
            got = outcome(c, name, data, *args)
            check(got == want, f"{name}: {got[1]}, not {want[1]}")
        whole = c.path("train-1.tfrecord")
        with open(whole, "r+b") as f:
            f.seek(5000)
            byte = f.read(1)
            f.seek(5000)
            f.write(bytes([byte[0] ^ 1]))
        c.write("bad.yaml", JOB.format(name="bad", data=data))
        result = c.run("train", "--local", "bad.yaml")
        check(result.code == 1 and re.search(r"train-1.tfrecord: record \d+: .*checksum", result.err),
              str(result))
        one_sentence(result.err.strip().splitlines()[-1])
        c.write("bad.yaml", JOB.format(name="none", data=data.replace("#pixels", "#pixel")))
        result = c.run("train", "--local", "bad.yaml")
        check(result.code == 1 and 'did you mean "pixels"?' in result.err, str(result))


main([a_validation_split_is_the_end_of_the_files, a_recovered_job_holds_out_the_same_records,
      a_split_that_leaves_nothing_is_refused, archives_and_several_files_train_as_one_file_does,
      files_that_do_not_fit_are_refused_in_a_sentence, standardising_is_by_the_training_records,
      buckets_are_numpys, a_batch_beyond_the_records_is_warned_of,
      chance_does_not_depend_on_the_workers, a_folder_of_images_trains_as_its_pixels_do,
      images_of_any_size_are_resized, libsvm_files_train_as_their_rows_do,
      tfrecord_files_train_as_their_arrays_do])
